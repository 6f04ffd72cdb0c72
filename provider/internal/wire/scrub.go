package wire

import "github.com/assay-rag/assay/internal/secret"

// minScrubbed is the least length of a credential that is removed from replies. Shorter ones are no
// real credentials but placeholders for local servers, required by some clients ("ollama",
// "lm-studio"), and occur as words in many replies.
const minScrubbed = 12

// A Scrubber removes credentials from a text that arrives in pieces.
type Scrubber = secret.Scrubber

// Scrub returns the text of a reply without the client's credentials.
func (c *Client) Scrub(text string) string { return secret.Scrub(text, c.scrubbed()...) }

// Scrubber returns a Scrubber for one reply.
func (c *Client) Scrubber() *Scrubber { return secret.NewScrubber(c.scrubbed()...) }

// scrubbed returns the credentials to remove from replies.
func (c *Client) scrubbed() []Secret {
	var long []Secret
	for _, s := range c.Secrets {
		if len(s.Reveal()) >= minScrubbed {
			long = append(long, s)
		}
	}
	return long
}
