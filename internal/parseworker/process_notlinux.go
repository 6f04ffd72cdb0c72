//go:build unix && !linux

package parseworker

import "syscall"

// dieWithParent does nothing: the worker ends when its standard input ends.
func dieWithParent(*syscall.SysProcAttr) {}
