package wire

import "github.com/assay-rag/assay/internal/secret"

// minScrubbed is how long a credential has to be for replies to be searched for it.
// Shorter ones are no credentials but what local servers are given for the sake of
// clients that insist on one ("ollama", "lm-studio"), and words of many a reply.
const minScrubbed = 12

// A Scrubber takes credentials out of a text that arrives in pieces.
type Scrubber = secret.Scrubber

// Scrub returns text, of a reply, without the client's credentials. All else is left
// as it is.
func (c *Client) Scrub(text string) string { return secret.Scrub(text, c.scrubbed()...) }

// Scrubber returns a Scrubber of one reply.
func (c *Client) Scrubber() *Scrubber { return secret.NewScrubber(c.scrubbed()...) }

// scrubbed returns the credentials that replies are searched for.
func (c *Client) scrubbed() []Secret {
	var long []Secret
	for _, s := range c.Secrets {
		if len(s.Reveal()) >= minScrubbed {
			long = append(long, s)
		}
	}
	return long
}
