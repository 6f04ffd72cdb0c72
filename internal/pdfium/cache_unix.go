//go:build unix

package pdfium

import (
	"io/fs"
	"os"
	"syscall"
)

// onlyUserWrites reports whether the file belongs to the user and others may not write it.
func onlyUserWrites(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}
