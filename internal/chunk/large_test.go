package chunk

import (
	"runtime"
	"strings"
	"testing"

	"github.com/assay-rag/assay/parse"
)

// TestLinear checks that Split needs memory in proportion to the document: four times as much text
// at most five times as much, garbage included.
func TestLinear(t *testing.T) {
	for _, tt := range []struct{ name, file, unit string }{
		{"rows", "a.csv", "1024,some words,3.5,x\n"},
		{"prose", "a.md", "Some words of a sentence, and some more of them.\n\n"},
		{"one paragraph", "a.txt", "Some words of a sentence, and some more of them. "},
		{"one run", "a.txt", "abcdefghij"},
		{"words", "a.txt", "word "},
		{"code", "a.md", "    some code here\n"},
		{"headings", "a.md", "# One\n\ntext\n\n## Two\n\ntext\n\n"},
		{"items", "a.md", "- an item of a list\n"},
	} {
		measure := func(size int) (bytes uint64, chunks int) {
			doc, err := parse.Parse(t.Context(), parse.Input{Name: tt.file, Data: []byte("# T\n\nx\n\n" + strings.Repeat(tt.unit, size/len(tt.unit)))})
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			chunks = len(mustSplit(t, doc, Options{}))
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc, chunks
		}
		small, n := measure(1 << 18)
		large, m := measure(1 << 20)
		t.Logf("%-14s %5d chunks, %6d KiB; %5d chunks, %6d KiB", tt.name, n, small>>10, m, large>>10)
		if large > 5*small+1<<20 {
			t.Errorf("%s: %d bytes for 1 MiB, %d for a quarter of it", tt.name, large, small)
		}
	}
}
