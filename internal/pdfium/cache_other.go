//go:build !unix

package pdfium

import "io/fs"

// onlyUserWrites reports true: on Windows the cache folder is below the user's profile, which its
// access control list protects.
func onlyUserWrites(fs.FileInfo) bool { return true }
