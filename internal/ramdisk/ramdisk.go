// Package ramdisk lets tests keep their temporary files in memory.
package ramdisk

import "os"

// least is the free space in bytes from which on a file system is used.
const least = 1 << 30

// Use makes os.TempDir, and so testing.T.TempDir, a folder in memory if the system has one with
// enough space and TMPDIR is not set. Tests that make many small files durable then run several
// times faster. Such a folder keeps its files when a process is killed, as crash tests require.
// A TestMain calls it first.
func Use() {
	const shm = "/dev/shm"
	if os.Getenv("TMPDIR") == "" && free(shm) >= least {
		os.Setenv("TMPDIR", shm) // without it the tests are only slower
	}
}
