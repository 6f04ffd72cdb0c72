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

// A PageFetcher fetches pages that a WebSearcher found. Their addresses are untrusted: the one that
// the engine uses by default connects only to the public internet. It is safe for concurrent use.
type PageFetcher interface {
	// Fetch returns the page at an address. The error is ErrInvalid if the address must not be
	// fetched, and ErrUnavailable if it could not be.
	Fetch(ctx context.Context, url string) (WebPage, error)
}

// A WebPage is a fetched page.
type WebPage struct {
	URL  string // of the page itself, after all redirects
	Type string // media type without parameters: "text/html", "text/plain"
	Data []byte // in UTF-8 if the server named the encoding
}
