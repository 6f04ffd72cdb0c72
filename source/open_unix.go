//go:build unix

package source

import "syscall"

// openFlag keeps open from waiting for the other end of a named pipe, should one
// stand where a regular file was a moment ago.
const openFlag = syscall.O_NONBLOCK
