package secret

import (
	"cmp"
	"slices"
	"strings"
)

// Scrub returns text without the secrets as they are written. All else of it stays as
// it is: JSON is JSON still.
func Scrub(text string, secrets ...Secret) string { return NewScrubber(secrets...).scrub(text) }

// A Scrubber is Scrub for a text that arrives in pieces. It finds secrets that lie
// across pieces, too: an end that could be the beginning of one is held back.
type Scrubber struct {
	secrets []string // the longest first, since one may be a part of another
	held    string
}

// NewScrubber returns a Scrubber of one text.
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

// Next takes the next piece and returns what is ready of the text.
func (s *Scrubber) Next(piece string) string {
	text := s.scrub(s.held + piece)
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

func (s *Scrubber) scrub(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return text
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
