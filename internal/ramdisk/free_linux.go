package ramdisk

import "golang.org/x/sys/unix"

// free returns the free bytes of a file system in memory, or 0 if folder is not on one or cannot be
// written to.
func free(folder string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil || s.Type != unix.TMPFS_MAGIC || unix.Access(folder, unix.W_OK) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
