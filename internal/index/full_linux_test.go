package index_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// smallDisk mounts a disk of a few megabytes, or skips the test if the system does not allow it.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("this process may not mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill writes a file that leaves the given number of bytes free on a disk.
func fill(t *testing.T, path string, leaveBytes int) {
	t.Helper()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &disk); err != nil {
		t.Fatal(err)
	}
	size := int(disk.Bavail)*int(disk.Bsize) - leaveBytes
	if err := os.WriteFile(path, make([]byte, max(0, size)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk checks that Flush and Settle report a full disk, and that the index answers
// correctly from memory and from the files on disk meanwhile. When space is available again, the
// next Flush must write everything and leave no incomplete files.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	dir, filler := filepath.Join(disk, "index"), filepath.Join(disk, "filler")
	s := indextest.NewSource("a")
	random := rand.New(rand.NewPCG(9, 9))
	ix := opened(t, index.OpenEager, s, dir)
	failed, rounds := 0, uint64(indextest.Rounds(15, 60, 600))
	for round := range rounds {
		for range 8 {
			indextest.Churn(s, random, 40)
		}
		fill(t, filler, 4096*random.IntN(24))
		for _, write := range []func() error{func() error { return ix.Flush(t.Context()) }, func() error { return ix.Settle(t.Context()) }} {
			if err := write(); err != nil {
				failed++
				if !errors.Is(err, assay.ErrFull) {
					t.Errorf("round %d: error %v, want ErrFull", round, err)
				}
			}
		}
		indextest.Check(t, ix, s, round, 2)
		again := opened(t, index.OpenEager, s, dir)
		indextest.Check(t, again, s, round, 2)
		if err := errors.Join(again.Lost(), again.Close(), os.Remove(filler)); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		_ = ix.Settle(t.Context()) // a merge may have failed since
		if err := ix.Flush(t.Context()); err != nil {
			t.Errorf("round %d: with room: %v", round, err)
		}
		if err := ix.Settle(t.Context()); err != nil {
			t.Errorf("round %d: with room: %v", round, err)
		}
		if leaked := unnamed(t, dir); len(leaked) > 0 {
			t.Errorf("round %d: files that the manifest does not name: %v", round, leaked)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if failed < int(rounds)/6 {
		t.Errorf("the disk was full %d times, want it more often", failed)
	}
	if err := ix.Close(); err != nil {
		t.Error(err)
	}
}
