//go:build unix

package engine

import "golang.org/x/sys/unix"

// freeBytes returns the number of bytes that this user may still write to the file system at dir.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
