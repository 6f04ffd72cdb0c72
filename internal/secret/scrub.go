package secret

import (
	"cmp"
	"slices"
	"strings"
)

// Scrub removes the secrets from text where they occur verbatim. The rest is unchanged, so that
// JSON stays valid.
func Scrub(text string, secrets ...Secret) string { return NewScrubber(secrets...).scrub(text) }

// A Scrubber is Scrub for a text that arrives in pieces. It also finds secrets that span pieces, by
// holding back an end that could begin a secret.
type Scrubber struct {
	secrets []string // longest first, since one may be part of another
	held    string
}

// NewScrubber returns a Scrubber for one text.
func NewScrubber(secrets ...Secret) *Scrubber {
	s := new(Scrubber)
	for _, secret := range secrets {
		if !secret.Empty() {
			s.secrets = append(s.secrets, secret.Reveal())
		}
	}
	slices.SortStableFunc(s.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return s
}

// Next adds a piece and returns the part of the text that is ready.
func (s *Scrubber) Next(piece string) string {
	text := s.scrub(s.held + piece)
	keep := 0
	for _, secret := range s.secrets {
		keep = max(keep, overlap(text, secret))
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// Rest returns the text held back. Call it at the end of the text.
func (s *Scrubber) Rest() string {
	rest := s.held
	s.held = ""
	return rest
}

func (s *Scrubber) scrub(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return text
}

// overlap returns the length of the longest end of text with which the secret begins.
func overlap(text, secret string) int {
	for n := min(len(secret)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}
