package secret_test

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/secret"
)

// TestScrubber checks that secrets are removed however a text is split, and that text that only
// begins like a secret is kept.
func TestScrubber(t *testing.T) {
	secrets := []secret.Secret{secret.New(canary), {}, secret.New(canary + "-longer")}
	text := "a " + canary + " b " + canary + "-longer, " + canary[:9] + " c " + canary[:10]
	want := "a [secret] b [secret], " + canary[:9] + " c " + canary[:10]
	if got := secret.Scrub(text, secrets...); got != want {
		t.Errorf("as a whole: %q", got)
	}
	for size := 1; size <= len(text); size++ {
		s, got := secret.NewScrubber(secrets...), ""
		for at := 0; at < len(text); at += size {
			got += s.Next(text[at:min(at+size, len(text))])
		}
		got += s.Rest()
		// The longer of the two may already have been treated as the shorter one.
		if got = strings.Replace(got, "[secret]-longer", "[secret]", 1); got != want {
			t.Errorf("in pieces of %d: %q", size, got)
		}
		if rest := s.Rest(); rest != "" {
			t.Errorf("in pieces of %d: after its end %q", size, rest)
		}
	}
}
