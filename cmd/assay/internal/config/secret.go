package config

import (
	"encoding/base64"
	"slices"
	"sync"

	"github.com/assay-rag/assay/internal/secret"
)

// A Key is a credential and the place it was read from.
type Key struct {
	secret.Secret
	From string // "OPENAI_API_KEY", "key_file /run/secrets/openai"; empty: no credential
}

func newKey(text, from string) Key {
	if text == "" {
		return Key{}
	}
	return Key{secret.New(text), from}
}

// minSecretBytes is the minimum length of a credential that is searched for in texts. Shorter ones,
// such as "none" or "ollama", are placeholders for servers that need no key. They are also ordinary
// words.
const minSecretBytes = 10

// Secrets are the credentials that no text may contain.
type Secrets struct {
	mu  sync.Mutex
	all []secret.Secret
}

// add adds credentials that are long enough to be distinguished from words, both verbatim and in
// the base64 forms of echoed headers.
func (s *Secrets) add(keys ...secret.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// Scrub returns text with the credentials replaced. The rest is unchanged.
func (s *Secrets) Scrub(text string) string { return secret.Scrub(text, s.list()...) }

// list returns the credentials that are known now.
func (s *Secrets) list() []secret.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}
