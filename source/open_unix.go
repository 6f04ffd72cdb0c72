//go:build unix

package source

import "syscall"

// openFlag prevents open from waiting for the other end of a named pipe that replaced a regular
// file.
const openFlag = syscall.O_NONBLOCK
