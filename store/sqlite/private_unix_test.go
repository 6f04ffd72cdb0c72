//go:build unix

package sqlite

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay"
)

// TestPrivate checks that only the owner may read the files that a store writes, even below a
// world-readable folder.
func TestPrivate(t *testing.T) {
	tenant := openTestTenant(t) // below a folder of mode 0755
	dir := filepath.Dir(filepath.Dir(tenant.dir))
	if _, err := tenant.Runs().Create(t.Context(), assay.Run{ID: "run", Question: "?"}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen++
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %o, want nothing for group and others", path, mode)
		}
		return nil
	})
	if err != nil || seen < 6 {
		t.Errorf("walked %d files: %v", seen, err)
	}
}
