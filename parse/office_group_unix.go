//go:build unix

package parse

import (
	"os/exec"
	"syscall"
)

// inGroup has cmd run in a process group of its own, all of which is killed when its context ends.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
