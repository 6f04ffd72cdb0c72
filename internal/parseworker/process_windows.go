package parseworker

import "os/exec"

func isolate(*exec.Cmd) {}

// killChildren does nothing: the children of a worker end when their input ends.
func killChildren(*exec.Cmd) {}

// killProcess kills a worker. Its children end when their input ends.
func killProcess(cmd *exec.Cmd) error { return cmd.Process.Kill() }
