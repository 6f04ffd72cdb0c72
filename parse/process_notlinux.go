//go:build !linux

package parse

import "os/exec"

// dieWithParent does nothing: other systems do not offer it.
func dieWithParent(*exec.Cmd) {}
