//go:build !unix

package sqlite

import "os"

// writable reports whether this process may write the file or into the folder,
// as far as the file's mode says.
func writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (info.IsDir() || info.Mode().Perm()&0o200 != 0)
}

// syncDirectory does nothing: these systems make names durable with the file.
func syncDirectory(string) error { return nil }
