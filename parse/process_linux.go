package parse

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill cmd's process when the thread that started it ends.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
