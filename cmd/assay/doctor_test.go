package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCheckCache checks that doctor examines the cache directory without creating it.
func TestCheckCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "a", "b")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	none := errors.New("no home")
	tests := []struct {
		name string
		dir  string
		err  error
		ok   bool
	}{
		{"there", dir, nil, true},
		{"not there yet", missing, nil, true},
		{"a file", file, nil, false},
		{"below a file", filepath.Join(file, "a"), nil, false},
		{"none", "", none, false},
	}
	for _, tt := range tests {
		a := &app{cacheDir: func() (string, error) { return tt.dir, tt.err }}
		if c := a.checkCache(); c.OK != tt.ok || (c.Err == nil) != tt.ok {
			t.Errorf("%s: %+v, want OK %v", tt.name, c, tt.ok)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
