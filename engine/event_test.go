package engine

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// A total past which a search does not count is not shown as exact. A journal of
// before there was such a limit may hold a larger one, which is.
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
