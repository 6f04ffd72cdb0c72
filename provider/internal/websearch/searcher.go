// Package websearch contains the common parts of web searches over HTTP. Queries are checked before
// they are sent. Of the results, addresses other than the web's and duplicates are dropped, and
// invisible characters are removed from text.
package websearch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Searcher is an assay.WebSearcher over a service.
type Searcher struct {
	Client wire.Client
	Most   int // largest number of results of a request; 0: the service does not take a number

	// Fetch makes one request and returns the unchecked results of the reply.
	Fetch func(ctx context.Context, query string, n int) ([]Result, error)
}

// Name implements assay.WebSearcher.
func (s *Searcher) Name() string { return s.Client.Name }

// SearchWeb implements assay.WebSearcher. It returns at most Most results. An empty query and n < 1
// are assay.ErrInvalid; other failures are *llm.Error.
func (s *Searcher) SearchWeb(ctx context.Context, query string, n int) ([]assay.WebResult, error) {
	if n < 1 || strings.TrimSpace(query) == "" {
		return nil, fmt.Errorf("search the web for %d results of %q: %w", n, query, assay.ErrInvalid)
	}
	most := n
	if s.Most > 0 {
		most = min(n, s.Most)
	}
	raw, err := s.Fetch(ctx, query, most)
	if err != nil {
		return nil, err
	}
	return clean(&s.Client, raw, n)
}

// Listed decodes the list of results that several services share. A missing list is an *llm.Error
// of kind BadReply.
func Listed(c *wire.Client, list json.RawMessage) ([]Result, error) {
	var results *[]struct {
		URL     string `json:"url"`
		Title   string `json:"title"`
		Content string `json:"content"`
	}
	if len(list) > 0 {
		if err := c.Decode(list, &results); err != nil {
			return nil, err
		}
	}
	if results == nil {
		return nil, c.Fail(llm.BadReply, "unexpected reply: it has no list of results")
	}
	raw := make([]Result, len(*results))
	for i, r := range *results {
		raw[i] = Result{URL: r.URL, Title: r.Title, Text: r.Content}
	}
	return raw, nil
}
