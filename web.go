package assay

import "context"

// A WebSearcher searches the open web. What is asked of it leaves the machine. It is
// safe for concurrent use.
type WebSearcher interface {
	// Name says who is asked: "searxng".
	Name() string

	// SearchWeb returns up to n results, best first. Errors are ErrUnavailable where
	// the service failed.
	SearchWeb(ctx context.Context, query string, n int) ([]WebResult, error)
}

// A PricedSearcher is a WebSearcher whose searches are paid for.
type PricedSearcher interface {
	WebSearcher

	// SearchPrice is what one search may cost at most, in millionths of the configured
	// currency; known is false where nobody has said.
	SearchPrice() (micros int64, known bool)
}

// A WebResult is a page that a search of the web found.
type WebResult struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Snippet string `json:"snippet"` // what the service shows of it
}
