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
		999:                "1 hit of 999, best",
		assay.MaxTotal:     "1 hit of 1000 or more, best",
		assay.MaxTotal + 1: "1 hit of 1001, best",
	} {
		got := searchSummary(assay.Query{}, assay.Results{Hits: make([]assay.Hit, 1), Total: total})
		if !strings.Contains(got, want) {
			t.Errorf("total %d: %q, want %q in it", total, got, want)
		}
	}
}
