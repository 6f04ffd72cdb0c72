//go:build unix

package parseworker

import (
	"errors"
	"os/exec"
	"syscall"
)

// isolate gives a worker a process group of its own, so that the terminal's signals do not reach it
// and that its children end with it.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// killChildren kills the children of a worker that has ended.
func killChildren(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // an error means that it has none

// killProcess kills a worker and its children.
func killProcess(cmd *exec.Cmd) error {
	return errors.Join(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), cmd.Process.Kill())
}
