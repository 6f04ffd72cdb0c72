package main

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsStoreLayout checks that the store of --docs has a name that depends on the store's layout,
// so that a store written by a program with another layout is left alone instead of being an error.
func TestDocsStoreLayout(t *testing.T) {
	docs := t.TempDir()
	a := newApp()
	a.docs = []string{docs}
	a.cacheDir = func() (string, error) { return "/cache", nil }
	dir, err := a.dataDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(docs))
	if !strings.HasPrefix(dir, filepath.Join("/cache", "assay")) || strings.Contains(dir, hex.EncodeToString(sum[:8])) {
		t.Errorf("the store is %s, which depends on the path alone", dir)
	}
}
