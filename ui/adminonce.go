package ui

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// A secrets holds texts that are shown once: after a form has made one, the next page takes it. So
// loading that page again neither shows the text again nor sends the form again. It is safe for
// concurrent use.
type secrets struct {
	mu  sync.Mutex
	all map[string]secret // by a random word
}

// A secret is a text that its owner may see once.
type secret struct {
	owner string // engine.SessionOwner
	value any
	made  time.Time
}

const (
	secretLife = 2 * time.Minute
	maxSecrets = 1000
)

func newSecrets() *secrets { return &secrets{all: map[string]secret{}} }

// put keeps a value for the session of a request, and returns the word to take it with.
func (s *secrets) put(q *request, value any) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for word, one := range s.all {
		if now().Sub(one.made) > secretLife {
			delete(s.all, word)
		}
	}
	if len(s.all) >= maxSecrets {
		return "", fmt.Errorf("too many texts wait to be shown: %w", assay.ErrBusy)
	}
	word := rand.Text()
	s.all[word] = secret{engine.SessionOwner(q.session), value, now()}
	return word, nil
}

// take returns a value and forgets it. ok is false if it was taken, is too old, or is of another
// session.
func (s *secrets) take(q *request, word string) (value any, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[word]
	if !ok || one.owner != engine.SessionOwner(q.session) {
		return nil, false
	}
	delete(s.all, word)
	return one.value, now().Sub(one.made) <= secretLife
}
