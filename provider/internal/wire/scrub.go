package wire

import "strings"

// minScrubbed is how long a credential has to be for replies to be searched for it.
// Shorter ones are no credentials but what local servers are given for the sake of
// clients that insist on one ("ollama", "lm-studio"), and words of many a reply.
const minScrubbed = 12

const scrubbed = "[secret]"

// Scrub returns text, of a reply, without the client's credentials. All else is left
// as it is.
func (c *Client) Scrub(text string) string {
	s := c.Scrubber()
	return s.Next(text) + s.Rest()
}

// Scrubber returns a Scrubber of one reply.
func (c *Client) Scrubber() *Scrubber {
	s := new(Scrubber)
	for _, secret := range c.Secrets {
		if text := secret.Reveal(); len(text) >= minScrubbed {
			s.secrets = append(s.secrets, text)
		}
	}
	return s
}

// A Scrubber takes credentials out of a text that arrives in pieces, also those that
// lie across pieces: it holds back an end that could be the beginning of one.
type Scrubber struct {
	secrets []string
	held    string
}

// Next takes the next piece and returns what is ready of the text.
func (s *Scrubber) Next(piece string) string {
	if len(s.secrets) == 0 {
		return piece
	}
	text := s.held + piece
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, scrubbed)
	}
	keep := 0
	for _, secret := range s.secrets {
		keep = max(keep, overlap(text, secret))
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// Rest returns what was held back, at the end of the text.
func (s *Scrubber) Rest() string {
	rest := s.held
	s.held = ""
	return rest
}

// overlap returns how many bytes at the end of text the secret begins with.
func overlap(text, secret string) int {
	for n := min(len(secret)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}
