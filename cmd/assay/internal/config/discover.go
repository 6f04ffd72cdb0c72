package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A listing is a server's reply to a request for its models.
type listing struct {
	models []llm.Listed
	err    error
}

// A discovery is the model chosen from a listing.
type discovery struct {
	model  llm.Listed
	others int // number of other candidates
	err    error
}

// mostListed is the largest number of models from which the first one is chosen. A server with more
// is a commercial vendor, whose first model may be its most expensive one.
const mostListed = 20

// discover chooses the model of a provider from those that its server lists.
func (s *Set) discover(ctx context.Context, name string, e *endpoint) discovery {
	all, err := s.list(ctx, name, e)
	able := writers(all)
	switch {
	case err != nil:
		return discovery{err: err}
	case len(all) == 0:
		return discovery{err: &llm.Error{Model: name, Kind: llm.NoModel, Message: "the server has no models"}}
	case len(able) == 0:
		return discovery{err: &llm.Error{Model: name, Kind: llm.NoModel, Message: "judging by their names, none of the server's models generates text: " + someOf(all)}}
	case len(able) > mostListed:
		return discovery{err: &Error{
			Where: s.c.where(), Detail: fmt.Sprintf("%s has %d models, too many to choose the first", name, len(able)),
			Hint: fmt.Sprintf("name one, as in ASSAY_MODEL=%s/%s or large: %[1]s/%[2]s", name, able[0].Name),
		}}
	}
	return discovery{model: able[0], others: len(able) - 1}
}

// list returns the models that a provider's server lists. It asks the server once.
func (s *Set) list(ctx context.Context, name string, e *endpoint) ([]llm.Listed, error) {
	s.mu.Lock()
	known, ok := s.listings[name]
	s.mu.Unlock()
	if ok {
		return known.models, known.err
	}
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := e.list(limited)
	if err != nil && limited.Err() != nil && !isFailure(err) {
		err = &llm.Error{Model: name, Kind: llm.TimedOut, Message: fmt.Sprintf("it did not list its models within %s", listTimeout)}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // this caller's error is not cached
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listings[name] = listing{all, err}
	return all, err
}

// sizes returns the sizes of a model as its server reports them, or zero Facts. It asks the server
// once for each model.
func (s *Set) sizes(ctx context.Context, provider, model string, e *endpoint) llm.Facts {
	s.mu.Lock()
	known, ok := s.reported[provider+"/"+model]
	s.mu.Unlock()
	if ok {
		return known
	}
	var f llm.Facts
	all, err := s.list(ctx, provider, e)
	for _, m := range all {
		if m.Name == model {
			f = m.Facts
		}
	}
	if f.Window == 0 && e.window != nil && err == nil { // a failing server is reported by the first call
		limited, cancel := context.WithTimeout(ctx, windowTimeout)
		defer cancel()
		f.Window = e.window(limited, model)
	}
	if ctx.Err() != nil {
		return f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported[provider+"/"+model] = f
	return f
}

func isFailure(err error) bool {
	_, ok := errors.AsType[*llm.Error](err)
	return ok
}

// someOf names the first few models.
func someOf(all []llm.Listed) string {
	const most = 5
	var names []string
	for _, m := range all[:min(most, len(all))] {
		names = append(names, m.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// silent is a model whose server did not list its models.
type silent struct {
	provider string
	err      error
}

// Model returns the provider alone, because the model is unknown.
func (m silent) Model() string { return m.provider }

// Generate returns the server's error.
func (m silent) Generate(context.Context, llm.Request, func(llm.Delta)) (llm.Response, error) {
	if failed, ok := errors.AsType[*llm.Error](m.err); ok {
		again := *failed
		again.Model, again.Usage, again.Attempts = m.provider, assay.Usage{}, nil
		return llm.Response{}, &again
	}
	return llm.Response{}, &llm.Error{Model: m.provider, Kind: llm.Unreachable, Message: m.err.Error()}
}

// listTimeout bounds a request for a server's models.
const listTimeout = 5 * time.Second

// windowTimeout bounds the requests for a model's window.
const windowTimeout = 3 * time.Second

// notForChat holds parts of the names of models that do not write text.
var notForChat = []string{"embed", "rerank", "bge-", "gte-", "e5-", "minilm", "colbert", "whisper", "tts", "clip", "dall-e", "moderation", "guard"}

// writers returns the models that may write answers, in the order of the list.
func writers(all []llm.Listed) []llm.Listed {
	var out []llm.Listed
next:
	for _, m := range all {
		for _, part := range notForChat {
			if strings.Contains(strings.ToLower(m.Name), part) {
				continue next
			}
		}
		out = append(out, m)
	}
	return out
}
