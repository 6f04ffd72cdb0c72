package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/assay-rag/assay"
)

// smallDisk mounts a disk of the given size, or skips the test if that is not permitted.
func smallDisk(t *testing.T, sizeBytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", sizeBytes)); err != nil {
		t.Skipf("this process may not mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill fills the disk of dir except for the given number of bytes. The function it returns frees
// the space.
func fill(t *testing.T, dir string, leaveBytes int64) (free func()) {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(fs.Bavail)*fs.Bsize - leaveBytes
	if n > 0 {
		err = syscall.Fallocate(int(f.Fd()), 0, 0, n)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDisk fills a real disk at different moments: while the directory is created, while the
// content grows, and while a run is active. Acknowledged changes survive.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t, 8<<20)
	ctx := t.Context()
	dir := filepath.Join(disk, "data")
	next, steps, full := 1, 0, 0
	step := int64(13 << 10)
	if testing.Short() {
		step *= 5
	}
	for leave := int64(0); leave < 900<<10; leave += step {
		free := fill(t, disk, leave)
		err := func() (err error) {
			s, err := Open(ctx, dir)
			if err != nil {
				return err
			}
			tenant, err := created(s, ctx, "crash")
			if err != nil {
				return err
			}
			defer func() { // a checkpoint without space is done later
				if closeErr := tenant.Close(); closeErr != nil && !errors.Is(closeErr, assay.ErrFull) {
					err = errors.Join(err, closeErr)
				}
			}()
			w, err := tenant.Writer(ctx)
			if err != nil {
				return err
			}
			defer w.Close()
			l, err := tenant.Runs().Acquire(ctx, "run")
			if errors.Is(err, assay.ErrNotFound) {
				l, err = tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
			}
			if err != nil {
				return err
			}
			defer l.Close()
			for range 12 {
				if _, err := w.Put(ctx, crashEntry(next, 0), crashEntry(next+1, 0), crashEntry(0, next)); err != nil {
					return err
				}
				next += 2
				if _, err := l.Append(ctx, crashRecord(steps)); err != nil {
					return err
				}
				steps++
			}
			return nil
		}()
		free()
		if err != nil {
			if full++; !errors.Is(err, assay.ErrFull) {
				t.Errorf("with %d bytes left: %v, want an error of kind %q", leave, err, assay.ErrFull)
			}
		}
		if n := checkDocuments(t, dir, next); n != next {
			t.Fatalf("with %d bytes left: the next document is %d, want %d", leave, n, next)
		}
		if n := checkJournal(t, dir, steps); n != steps {
			t.Fatalf("with %d bytes left: %d records, want %d", leave, n, steps)
		}
	}
	if full == 0 || next == 1 || steps == 0 {
		t.Errorf("the disk was full %d times, %d documents and %d records were stored", full, next-1, steps)
	}
	t.Logf("the disk was full %d times; %d documents, %d records", full, next-1, steps)
}
