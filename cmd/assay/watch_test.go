package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWatch checks ingest --watch and source sync --watch with real files: new, changed and removed
// ones, and a folder that is removed and created again.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, commands := range map[string][][]string{
		"ingest": {{"ingest", "--watch", "DOCS"}},
		"sync":   {{"source", "add", "folder", "docs", "DOCS"}, {"source", "sync", "--watch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs, data := filepath.Join(t.TempDir(), "docs"), t.TempDir()
			write := func(name, text string) {
				t.Helper()
				at := filepath.Join(docs, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("a.md", "# Apples\n\nApples are red.")
			ctx, cancel := context.WithCancel(t.Context())
			out, in := io.Pipe()
			ended := make(chan int, 1)
			for i, args := range commands {
				args = append([]string{"--data", data}, args...)
				for j := range args {
					args[j] = strings.Replace(args[j], "DOCS", docs, 1)
				}
				a := newApp()
				a.stdout, a.stderr, a.terminal = &output{w: in}, &output{w: io.Discard}, io.Discard
				a.installed = nil
				if i == len(commands)-1 {
					go func() {
						ended <- a.run(ctx, args)
						in.Close()
					}()
					break
				}
				a.stdout = &output{w: io.Discard}
				if code := a.run(ctx, args); code != exitAnswered {
					t.Fatalf("%v exits with %d", args, code)
				}
			}
			lines := bufio.NewScanner(out)
			// until waits for a report; the counts of several may add up to the change.
			until := func(text string) {
				t.Helper()
				for lines.Scan() {
					if strings.Contains(lines.Text(), text) {
						return
					}
				}
				t.Fatalf("the command ended before it printed %q: %v", text, lines.Err())
			}
			until("1 added")
			write("b.md", "# Bananas\n\nBananas are yellow.")
			until("1 added")
			write("deep/er/c.md", "# Cherries\n\nCherries are small.")
			until("1 added")
			write("b.md", "# Berries\n\nBerries are blue and sweet.")
			until("1 updated")
			if err := os.RemoveAll(filepath.Join(docs, "deep")); err != nil {
				t.Fatal(err)
			}
			until("1 removed")
			cancel()
			go io.Copy(io.Discard, out)
			if code := <-ended; code != exitInterrupted {
				t.Errorf("exits with %d after an interruption, want %d", code, exitInterrupted)
			}
		})
	}
}
