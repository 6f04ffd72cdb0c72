package engine

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// TestSearchSummaryTotal checks that a total at the counting limit is not shown as exact.
// Journals from before this limit may hold larger totals, which are exact.
func TestSearchSummaryTotal(t *testing.T) {
	for total, want := range map[int]string{
		999:                "1 hit, best relevance 0.00; 999 with a word of it",
		assay.MaxTotal:     "; 1000 or more with a word of it",
		assay.MaxTotal + 1: "; 1001 with a word of it",
	} {
		got := searchSummary(assay.Query{}, assay.Results{Hits: make([]assay.Hit, 1), Total: total})
		if !strings.Contains(got, want) {
			t.Errorf("total %d: %q, want %q in it", total, got, want)
		}
	}
}
