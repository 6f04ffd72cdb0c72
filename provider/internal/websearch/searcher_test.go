package websearch

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// TestSearchWeb checks that a service is asked for no more results than it allows, and only for
// valid queries.
func TestSearchWeb(t *testing.T) {
	tests := []struct {
		query          string
		n, most, asked int // 0: it is not asked
	}{
		{"leave", 3, 20, 3}, {"leave", 50, 20, 20}, {"leave", 50, 0, 50}, {"leave", 0, 20, 0}, {" ", 3, 20, 0},
	}
	for _, test := range tests {
		asked := 0
		s := &Searcher{Most: test.most, Fetch: func(_ context.Context, _ string, n int) ([]Result, error) {
			asked = n
			return []Result{{URL: "https://example.org"}}, nil
		}}
		found, err := s.SearchWeb(t.Context(), test.query, test.n)
		if asked != test.asked || (asked == 0) != errors.Is(err, assay.ErrInvalid) || asked > 0 && len(found) != 1 {
			t.Errorf("%d results of %q: asked for %d, want %d; %v, %v", test.n, test.query, asked, test.asked, found, err)
		}
	}
}

func TestListed(t *testing.T) {
	tests := []struct {
		list string
		n    int // -1: an error
	}{
		{`[]`, 0}, {`[{"url":"a","title":null,"content":"c"},{}]`, 2}, {``, -1}, {`null`, -1}, {`{}`, -1}, {`[7]`, -1},
	}
	for _, test := range tests {
		got, err := Listed(&wire.Client{}, json.RawMessage(test.list))
		failed, _ := errors.AsType[*llm.Error](err)
		if test.n < 0 && (failed == nil || failed.Kind != llm.BadReply) || test.n >= 0 && (err != nil || len(got) != test.n) {
			t.Errorf("%s: %v, %v", test.list, got, err)
		}
	}
}
