//go:build unix

package secret

import (
	"os/exec"
	"syscall"
)

// killGroup makes the command a process group of its own, all of which is killed.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
