package durable_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/assay-rag/assay/internal/durable"
)

// TestWrite checks that a file is written completely and with its mode. After a failed write the
// old content must remain and no other files be left.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.json")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	for _, s := range []string{"one", "two"} {
		if err := durable.Write(file, 0o600, text(s)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != s {
			t.Errorf("%q, %v; want %q", got, err, s)
		}
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	broken := errors.New("no more")
	err := durable.Write(file, 0o600, func(w io.Writer) error { return errors.Join(text("three")(w), broken) })
	if got, _ := os.ReadFile(file); !errors.Is(err, broken) || string(got) != "two" {
		t.Errorf("%v, and %q is there", err, got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want the file alone", entries, err)
	}
	if err := durable.Write(filepath.Join(dir, "nowhere", "a"), 0o600, text("")); err == nil {
		t.Error("a folder that is not there is no error")
	}
}
