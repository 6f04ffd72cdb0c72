package assay

import "context"

// A WebSearcher searches the open web. Its queries leave the machine. It is safe for concurrent
// use.
type WebSearcher interface {
	// Name returns the name of the service: "searxng".
	Name() string

	// SearchWeb returns up to n results, best first. The error is ErrUnavailable if the service
	// failed.
	SearchWeb(ctx context.Context, query string, n int) ([]WebResult, error)
}

// A PricedSearcher is a WebSearcher whose searches are paid for.
type PricedSearcher interface {
	WebSearcher

	// SearchPrice returns the most that one search may cost, in millionths of the configured
	// currency. known is false if no price is configured.
	SearchPrice() (micros int64, known bool)
}

// A WebResult is a page that a web search found.
type WebResult struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Snippet string `json:"snippet"` // the excerpt that the service shows
}
