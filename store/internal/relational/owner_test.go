package relational

import (
	"errors"
	"os"
	"testing"
	"time"
)

// TestOwnerFiles checks that the files of live processes stay, that those of dead ones are
// eventually removed, and that close removes the process's own file.
func TestOwnerFiles(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	live, err := newOwner(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"dead", live.word} {
		path := ownerPath(dir, word)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Close(), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(ownerPath(dir, "young"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := newOwner(dir)
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{"dead": false, "young": true, live.word: true, other.word: true} {
		if _, err := os.Stat(ownerPath(dir, word)); (err == nil) != want {
			t.Errorf("file of %s: there %t, want %t", word, err == nil, want)
		}
	}
	own := ownerPath(dir, other.word)
	if err := errors.Join(other.close(), live.close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(own); err == nil {
		t.Error("the file of a closed owner is still there")
	}
}
