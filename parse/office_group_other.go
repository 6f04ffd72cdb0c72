//go:build !unix

package parse

import "os/exec"

// inGroup does nothing: only the process of cmd is killed when its context ends.
func inGroup(*exec.Cmd) {}
