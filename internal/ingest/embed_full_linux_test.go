package ingest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm/llmtest"
)

// TestEmbedOnAFullDisk checks that a full disk ends Embed, that acknowledged vectors are stored,
// and that Embed continues once there is space.
func TestEmbedOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("this process may not mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	w, err := openTenant(t, filepath.Join(disk, "data")).Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	x := &embedWorld{t, w}
	files := map[string]string{}
	for i := range 400 {
		files[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("The %d. text.\n", i)
	}
	x.ingest(files)
	filler := filepath.Join(disk, "filler")
	var free syscall.Statfs_t
	if err := syscall.Statfs(disk, &free); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filler, make([]byte, int64(free.Bavail)*free.Bsize-300<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &llmtest.Hashing{Dimensions: 384}
	var acknowledged []string
	opts := EmbedOptions{Batch: 16, Progress: func(p EmbedProgress) { acknowledged = append(acknowledged, p.Hashes...) }}
	report, err := Embed(t.Context(), w, e, opts)
	if !errors.Is(err, assay.ErrFull) || report.Stored != len(acknowledged) || report.Stored == 400 {
		t.Fatalf("%d stored, %d acknowledged, %v; want the disk full before the end", report.Stored, len(acknowledged), err)
	}
	lacking := x.passages(e.Model())
	for _, hash := range acknowledged {
		if _, ok := lacking[hash]; ok {
			t.Errorf("the vector of %s was acknowledged and is not there", hash)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	report, err = Embed(t.Context(), w, e, opts)
	if err != nil || report.Stored != len(lacking) {
		t.Errorf("with room again: %+v, %v; want %d", report, err, len(lacking))
	}
	if c := x.check(e); c.Embedded != c.Chunks {
		t.Errorf("coverage %+v", c)
	}
}
