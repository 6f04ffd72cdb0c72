package config

import (
	"encoding/base64"
	"slices"

	"github.com/assay-rag/assay/internal/secret"
)

// A Key is a credential and where it was read.
type Key struct {
	secret.Secret
	From string // "OPENAI_API_KEY", "key_file /run/secrets/openai"; empty: there is no credential
}

func newKey(text, from string) Key {
	if text == "" {
		return Key{}
	}
	return Key{secret.New(text), from}
}

// minSecretBytes is the length from which on a credential is looked for in texts.
// Shorter ones ("none", "ollama") are what people write where none is needed, and
// are words.
const minSecretBytes = 10

// Secrets are credentials that no text may hold.
type Secrets struct{ all []secret.Secret }

// add adds credentials that are long enough to be told from words, as they are and as
// they stand in headers that are echoed in base64.
func (s *Secrets) add(keys ...secret.Secret) {
	for _, k := range keys {
		text := k.Reveal()
		known := slices.ContainsFunc(s.all, func(other secret.Secret) bool { return other.Reveal() == text })
		if len(text) < minSecretBytes || known {
			continue
		}
		s.all = append(s.all, k)
		for _, form := range []string{text, "Bearer " + text, ":" + text} {
			s.all = append(s.all, secret.New(base64.RawStdEncoding.EncodeToString([]byte(form))))
		}
	}
}

// Scrub returns text without the credentials; all else of it stays as it is.
func (s Secrets) Scrub(text string) string { return secret.Scrub(text, s.all...) }
