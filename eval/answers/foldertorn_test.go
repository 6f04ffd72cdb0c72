package answers

import (
	"errors"
	"testing"

	"github.com/assay-rag/assay/eval/testset"
)

// A fullDisk writes only half of each line while it is full.
type fullDisk struct {
	lineFile
	full, stuck bool // stuck: truncation fails as well
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) WriteAt(p []byte, off int64) (int, error) {
	if !d.full {
		return d.lineFile.WriteAt(p, off)
	}
	n, err := d.lineFile.WriteAt(p[:len(p)/2], off)
	return n, errors.Join(err, errFull)
}

func (d *fullDisk) Truncate(size int64) error {
	if d.stuck {
		return errFull
	}
	return d.lineFile.Truncate(size)
}

// TestFolderFullDisk checks that a partial line from a full disk does not damage later lines.
func TestFolderFullDisk(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		dir := t.TempDir()
		folder, err := OpenFolder(t.Context(), dir, Identity{Set: "a", Hash: "1"})
		if err != nil {
			t.Fatal(err)
		}
		disk := &fullDisk{lineFile: folder.outcomes, stuck: stuck}
		folder.outcomes = disk
		add := func(id, question string) error {
			return folder.Add(Outcome{Case: testset.Case{ID: id, Question: question}, System: "s"})
		}
		if err := add("1", "One?"); err != nil {
			t.Fatal(err)
		}
		disk.full = true
		if err := add("2", "Two, which is a question of very many words, more than the one that follows it has, and more?"); !errors.Is(err, errFull) || folder.Has("s", "2") {
			t.Errorf("a full disk: %v", err)
		}
		disk.full = false
		if err := add("3", "Three?"); err != nil {
			t.Fatal(err)
		}
		if err := folder.Close(); err != nil {
			t.Fatal(err)
		}
		folder, err = OpenFolder(t.Context(), dir, Identity{Set: "a", Hash: "1"})
		if err != nil {
			t.Fatalf("stuck %v: %v", stuck, err)
		}
		if !folder.Has("s", "1") || folder.Has("s", "2") || !folder.Has("s", "3") {
			t.Errorf("stuck %v: it has %v", stuck, folder.done)
		}
		if err := folder.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
