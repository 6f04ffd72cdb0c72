package rest

import "hash/maphash"

// Limits of a list: more pages than any source has, and more pages without items than a filter
// causes.
const (
	maxPages      = 1 << 20
	maxEmptyPages = 500
)

// A Pager bounds the pages of a list, so that a service that repeats pages or never ends the list
// is an error.
type Pager struct {
	client *Client
	seed   maphash.Seed
	seen   map[uint64]bool
	empty  int
}

// Pager returns a Pager for one list.
func (c *Client) Pager() *Pager {
	return &Pager{client: c, seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
}

// Next checks the token of the next page after a page with n items. The error is for a token that
// was used before, and for too many pages.
func (p *Pager) Next(token string, n int) error {
	p.empty++
	if n > 0 {
		p.empty = 0
	}
	key := maphash.String(p.seed, token)
	switch {
	case p.seen[key]:
		return p.client.Fail("a list leads back to an earlier page")
	case len(p.seen) >= maxPages:
		return p.client.Fail("a list has more than %d pages", maxPages)
	case p.empty >= maxEmptyPages:
		return p.client.Fail("a list has %d pages without items", maxEmptyPages)
	}
	p.seen[key] = true
	return nil
}
