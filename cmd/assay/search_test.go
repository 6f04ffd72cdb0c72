package main

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
)

// TestWriteHitsTotal checks that a total at the limit of the count is not shown as exact.
func TestWriteHitsTotal(t *testing.T) {
	t.Parallel()
	for total, want := range map[int]string{
		1:              "1 of 1 passage with",
		2:              "1 of 2 passages with",
		999:            "1 of 999 passages with",
		assay.MaxTotal: "1 of 1000 or more passages with",
	} {
		var b strings.Builder
		if err := writeHits(&b, hitsOf(1, total), false, 80); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); !strings.HasPrefix(lines[len(lines)-1], want) {
			t.Errorf("total %d: %q, want %q", total, lines[len(lines)-1], want)
		}
	}
	var b strings.Builder
	many := hitsOf(1500, assay.MaxTotal)
	if err := writeHits(&b, many, false, 80); err != nil {
		t.Fatal(err)
	}
	if want := "1500 of 1500 or more passages with"; !strings.Contains(b.String(), want) {
		t.Errorf("%d hits: no %q", len(many.Hits), want)
	}
}

// hitsOf returns a search result with a number of hits and a total.
func hitsOf(hits, total int) retrieve.Explanation {
	return retrieve.Explanation{
		Results: assay.Results{Hits: make([]assay.Hit, hits), Chunks: 5000, Total: total},
		Hits:    make([]retrieve.Explained, hits),
	}
}
