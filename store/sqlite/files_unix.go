//go:build unix

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// writable reports whether this process may write to the file or folder.
func writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }

// syncDirectory makes the directory entries of a folder durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
