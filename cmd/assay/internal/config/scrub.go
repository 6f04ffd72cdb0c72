package config

import (
	"context"
	"errors"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
)

// Everything that a provider returns is searched for all credentials that this process has read
// before it is passed on. A server may echo its input, in replies as well as in errors, and the key
// of one provider must not get into the journal through another. Adapters remove their own keys
// themselves, so this is a second line of defense.

// scrubModel wraps m and removes credentials from its replies and errors.
func scrubModel(m llm.Model, secrets *Secrets) llm.Model { return scrubbedModel{m, secrets} }

type scrubbedModel struct {
	inner   llm.Model
	secrets *Secrets
}

func (m scrubbedModel) Model() string { return m.inner.Model() }

// Facts implements llm.Described.
func (m scrubbedModel) Facts() llm.Facts { return llm.FactsOf(m.inner) }

func (m scrubbedModel) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	pieces := secret.NewScrubber(m.secrets.list()...)
	tell := func(text string) {
		if text != "" && stream != nil {
			stream(llm.Delta{Text: text})
		}
	}
	var each func(llm.Delta)
	if stream != nil {
		each = func(d llm.Delta) { tell(pieces.Next(d.Text)) }
	}
	r, err := m.inner.Generate(ctx, req, each)
	if err != nil {
		return llm.Response{}, m.secrets.scrubError(err)
	}
	tell(pieces.Rest())
	r.Text = m.secrets.Scrub(r.Text)
	r.Served = m.secrets.Scrub(r.Served)
	for i := range r.Calls {
		c := &r.Calls[i]
		c.ID, c.Name, c.Arguments = m.secrets.Scrub(c.ID), m.secrets.Scrub(c.Name), m.secrets.Scrub(c.Arguments)
		c.Opaque = m.secrets.Scrub(c.Opaque)
	}
	m.secrets.scrubAttempts(r.Attempts)
	return r, nil
}

// scrubError removes credentials from an error. An *llm.Error keeps its kind and other fields. Any
// other error is wrapped, so that errors.Is and errors.As still work. An error without credentials
// is returned unchanged.
func (s *Secrets) scrubError(err error) error {
	if err == nil {
		return nil
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok && s.Scrub(failed.Error()) != failed.Error() {
		clean := *failed
		clean.Message = s.Scrub(failed.Message)
		clean.Attempts = append([]llm.Attempt(nil), failed.Attempts...)
		s.scrubAttempts(clean.Attempts)
		return &clean
	}
	if clean := s.Scrub(err.Error()); clean != err.Error() {
		return scrubbedError{clean, err}
	}
	return err
}

// A scrubbedError wraps an error and has its text without credentials.
type scrubbedError struct {
	text string
	err  error
}

func (e scrubbedError) Error() string { return e.text }
func (e scrubbedError) Unwrap() error { return e.err }

func (s *Secrets) scrubAttempts(attempts []llm.Attempt) {
	for i := range attempts {
		attempts[i].Message = s.Scrub(attempts[i].Message)
	}
}

// scrubReranker is scrubModel for a reranker.
func scrubReranker(r llm.Reranker, secrets *Secrets) llm.Reranker {
	return scrubbedReranker{r, secrets}
}

type scrubbedReranker struct {
	llm.Reranker
	secrets *Secrets
}

// Facts implements llm.Described.
func (r scrubbedReranker) Facts() llm.Facts { return llm.FactsOf(r.Reranker) }

func (r scrubbedReranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	scores, err := r.Reranker.Rerank(ctx, query, texts)
	return scores, r.secrets.scrubError(err)
}

// scrubVerifier is scrubModel for a verifier that is a service.
func scrubVerifier(v ground.Service, secrets *Secrets) ground.Service {
	return scrubbedVerifier{v, secrets}
}

type scrubbedVerifier struct {
	ground.Service
	secrets *Secrets
}

// Facts implements llm.Described.
func (v scrubbedVerifier) Facts() llm.Facts { return llm.FactsOf(v.Service) }

func (v scrubbedVerifier) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	return v.scrub(v.Service.Verify(ctx, claim, cited))
}

func (v scrubbedVerifier) VerifyFor(ctx context.Context, question, text string, cited []ground.Passage) (ground.Judgement, error) {
	return v.scrub(v.Service.VerifyFor(ctx, question, text, cited))
}

func (v scrubbedVerifier) scrub(j ground.Judgement, err error) (ground.Judgement, error) {
	j.Reason, j.Refused = v.secrets.Scrub(j.Reason), v.secrets.Scrub(j.Refused)
	return j, v.secrets.scrubError(err)
}
