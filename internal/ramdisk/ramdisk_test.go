package ramdisk_test

import (
	"os"
	"testing"

	"github.com/assay-rag/assay/internal/ramdisk"
)

// TestUse checks that a folder in memory can be written to and that TMPDIR takes precedence.
func TestUse(t *testing.T) {
	t.Setenv("TMPDIR", "")
	ramdisk.Use()
	f, err := os.CreateTemp("", "ramdisk-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if ramdisk.Use(); os.TempDir() != dir {
		t.Errorf("os.TempDir() = %s, want that of TMPDIR, %s", os.TempDir(), dir)
	}
}
