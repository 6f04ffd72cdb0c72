//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkProcess measures whole processes of the built binary, as a user experiences them.
func BenchmarkProcess(b *testing.B) {
	root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	docs := filepath.Join(strings.TrimSpace(string(root)), "src", "net", "http")
	if _, err := os.Stat(docs); err != nil {
		b.Skip("the documents are Go's own source code, which is not here: ", err)
	}
	binary, err := buildBinary()
	if err != nil {
		b.Fatal(err)
	}
	start := func(home string, args ...string) {
		cmd := exec.CommandContext(b.Context(), binary, args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "ASSAY_DATA=")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("assay %q: %v\n%s", args, err, out)
		}
	}
	ask := []string{"ask", "--docs", docs, "How do I shut a server down without dropping requests?"}
	b.Run("version", func(b *testing.B) { // cost of starting a process
		for b.Loop() {
			start(b.TempDir(), "version")
		}
	})
	b.Run("first", func(b *testing.B) { // reads the documents
		for b.Loop() {
			start(b.TempDir(), ask...)
		}
	})
	b.Run("next", func(b *testing.B) { // finds them unchanged
		home := b.TempDir()
		start(home, ask...)
		for b.Loop() {
			start(home, ask...)
		}
	})
}
