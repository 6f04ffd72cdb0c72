package engine

import (
	"context"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
)

// The wrappers in this file look for canaries in what a run sends to services, before it is sent.
// Local roles, encoders and rerankers, which run in this process, are not wrapped.

// screened returns m with its services wrapped.
func (e *Engine) screened(m Models) Models {
	roles := map[string]llm.Model{}
	for name, model := range m.Roles {
		roles[name] = e.screenModel(model)
	}
	m.Roles, m.Small = roles, e.screenModel(m.Small)
	if s, ok := m.Verifier.(ground.Service); ok {
		m.Verifier = screenedVerifier{s, e}
	}
	return m
}

func (e *Engine) screenModel(m llm.Model) llm.Model {
	if m == nil {
		return nil
	}
	return screenedModel{inner: m, e: e}
}

// A screenedModel is a model whose prompts and replies are screened.
type screenedModel struct {
	inner llm.Model
	e     *Engine
}

// Model implements llm.Model.
func (m screenedModel) Model() string { return m.inner.Model() }

// Facts implements llm.Described.
func (m screenedModel) Facts() llm.Facts { return llm.FactsOf(m.inner) }

// Generate implements llm.Model.
func (m screenedModel) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	w, err := m.e.watch(ctx)
	if err != nil {
		return llm.Response{}, err
	}
	if w.set.Empty() {
		return m.inner.Generate(ctx, req, stream)
	}
	if err := w.screen(ctx, "prompt", promptTexts(req)...); err != nil {
		return llm.Response{}, m.refused(err)
	}
	if stream == nil {
		return m.inner.Generate(ctx, req, nil)
	}
	text := w.set.Stream()
	pass := func(ready string, found []string) {
		if len(found) > 0 {
			err = w.raise(ctx, "draft", found)
		} else if ready != "" {
			stream(llm.Delta{Text: ready})
		}
	}
	r, failed := m.inner.Generate(ctx, req, func(d llm.Delta) { pass(text.Next(d.Text)) })
	pass(text.Rest())
	if err != nil {
		return llm.Response{}, m.refused(err)
	}
	return r, failed
}

// refused returns the error of a call that was not made, in the form of a provider's.
func (m screenedModel) refused(err error) error {
	return &llm.Error{Model: m.inner.Model(), Kind: llm.BadRequest, Message: err.Error()}
}

// promptTexts returns the texts of a request.
func promptTexts(req llm.Request) []string {
	texts := []string{req.System}
	for _, m := range req.Messages {
		texts = append(texts, m.Text)
		for _, c := range m.Calls {
			texts = append(texts, c.Arguments)
		}
		for _, r := range m.Results {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// A screenedVerifier is a service whose claims and passages are screened.
type screenedVerifier struct {
	ground.Service
	e *Engine
}

// Facts implements llm.Described.
func (v screenedVerifier) Facts() llm.Facts { return llm.FactsOf(v.Service) }

// Verify implements ground.Verifier.
func (v screenedVerifier) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	if err := v.screen(ctx, cited, claim); err != nil {
		return ground.Judgement{}, err
	}
	return v.Service.Verify(ctx, claim, cited)
}

// VerifyFor implements ground.Service.
func (v screenedVerifier) VerifyFor(ctx context.Context, question, text string, cited []ground.Passage) (ground.Judgement, error) {
	if err := v.screen(ctx, cited, question, text); err != nil {
		return ground.Judgement{}, err
	}
	return v.Service.VerifyFor(ctx, question, text, cited)
}

func (v screenedVerifier) screen(ctx context.Context, cited []ground.Passage, texts ...string) error {
	for _, p := range cited {
		texts = append(append(texts, p.Quote, p.Context), p.Heading...)
	}
	return v.e.screenCall(ctx, "prompt", texts...)
}

// screenCall looks for canaries in what is about to be sent to a service.
func (e *Engine) screenCall(ctx context.Context, place string, texts ...string) error {
	w, err := e.watch(ctx)
	if err != nil {
		return err
	}
	return w.screen(ctx, place, texts...)
}

// A screenedReranker is a service whose texts are screened.
type screenedReranker struct {
	llm.Reranker
	e *Engine
}

// Facts implements llm.Described.
func (r screenedReranker) Facts() llm.Facts { return llm.FactsOf(r.Reranker) }

// Rerank implements llm.Reranker.
func (r screenedReranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	if err := r.e.screenCall(ctx, "rerank", append([]string{query}, texts...)...); err != nil {
		return nil, err
	}
	ctx, end := r.e.observeCall(ctx, ObservedCall{CallRerank, r.Model(), len(texts)})
	scores, err := r.Reranker.Rerank(ctx, query, texts)
	end(err)
	return scores, err
}

// screenedEncoders opens encoders whose texts are screened, if they are services.
type screenedEncoders struct {
	Encoders
	e *Engine
}

// Open implements Encoders.
func (s screenedEncoders) Open(ctx context.Context, name string) (llm.Embedder, error) {
	inner, err := s.Encoders.Open(ctx, name)
	if err != nil || !isService(inner) {
		return inner, err
	}
	own := screenedEmbedder{inner, s.e}
	if counter, ok := inner.(llm.TokenCounter); ok {
		return screenedCounter{own, counter}, nil
	}
	return own, nil
}

// A screenedEmbedder is a service whose texts are screened. The passages of documents may hold the
// tenant's own canaries, because they are vectorised like all others.
type screenedEmbedder struct {
	llm.Embedder
	e *Engine
}

// A screenedCounter is a screenedEmbedder that also counts tokens.
type screenedCounter struct {
	screenedEmbedder
	llm.TokenCounter
}

// Facts implements llm.Described.
func (s screenedEmbedder) Facts() llm.Facts { return llm.FactsOf(s.Embedder) }

// Languages implements llm.Linguist.
func (s screenedEmbedder) Languages() []string {
	if l, ok := s.Embedder.(llm.Linguist); ok {
		return l.Languages()
	}
	return nil
}

// Close closes the encoder if it can be closed.
func (s screenedEmbedder) Close() error {
	if c, ok := s.Embedder.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// Embed implements llm.Embedder.
func (s screenedEmbedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	w, err := s.e.watch(ctx)
	if err != nil {
		return nil, err
	}
	find := w.set.Find
	if p != llm.Query {
		find = func(texts ...string) []string { return w.foreign(texts) }
	}
	if found := find(texts...); len(found) > 0 {
		return nil, w.raise(ctx, "embedding", found)
	}
	ctx, end := s.e.observeCall(ctx, ObservedCall{CallEmbed, s.Model(), len(texts)})
	vectors, err := s.Embedder.Embed(ctx, p, texts)
	end(err)
	return vectors, err
}

// screenEncoders returns the encoders with their services wrapped; nil stays nil.
func (e *Engine) screenEncoders(from Encoders) Encoders {
	if from == nil {
		return nil
	}
	return screenedEncoders{from, e}
}

// screenReranker wraps a reranker that is a service.
func (e *Engine) screenReranker(r llm.Reranker) llm.Reranker {
	if !isService(r) {
		return r
	}
	return screenedReranker{r, e}
}
