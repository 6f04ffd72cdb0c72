//go:build !unix

package sqlite

import "os"

// writable reports whether this process may write to the file or folder, judging by the file's
// mode.
func writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (info.IsDir() || info.Mode().Perm()&0o200 != 0)
}

// syncDirectory does nothing, because these systems make names durable together with the file.
func syncDirectory(string) error { return nil }
