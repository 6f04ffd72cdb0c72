package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/source"
)

// PlanIngest returns what Ingest would do, without reading the documents or changing anything. It
// estimates the vectors of the new text: how long an encoder on this machine takes for them, by
// embedding a few passages, or what a service charges. The error is of the kinds of Ingest.
func (e *Engine) PlanIngest(ctx context.Context, req IngestRequest) (IngestPlan, error) {
	opts, err := e.ingestOptions(ctx, req)
	if err != nil {
		return IngestPlan{}, err
	}
	plan, err := ingest.MakePlan(ctx, e.content, opts)
	if err != nil && !errors.As(err, new(*source.RootError)) {
		return plan, err
	}
	vectors, planErr := e.planVectors(ctx, plan.TextBytes)
	plan.Vectors = vectors
	return plan, errors.Join(err, planErr)
}

// Estimates of the passages of text in Markdown, from Go's documentation: 380 passages of 220,000
// bytes, and 4 bytes for each token of the encoder.
const (
	bytesPerPassage = 580
	bytesPerToken   = 4
)

// samplePassages is how many passages planVectors embeds to measure the rate of an encoder.
const samplePassages = 16

// planVectors estimates the vectors for the given bytes of text. It returns nil if there is no
// encoder.
func (e *Engine) planVectors(ctx context.Context, textBytes int64) (*VectorPlan, error) {
	chosen, err := e.encoderSelector.selection(ctx)
	if err != nil || chosen.wanted == "" && chosen.problem == nil {
		return nil, err
	}
	plan := &VectorPlan{
		Model:    chosen.wanted,
		Passages: int((textBytes + bytesPerPassage - 1) / bytesPerPassage),
		Tokens:   int((textBytes + bytesPerToken - 1) / bytesPerToken),
	}
	embedder, err := e.encoderSelector.encoders.open(ctx, chosen.wanted)
	if err = errors.Join(chosen.problem, err); err != nil {
		plan.Problem = err.Error()
		return plan, ctx.Err()
	}
	if isService(embedder) { // a sample would be paid for
		facts := llm.FactsOf(embedder)
		plan.Remote, plan.Priced = true, facts.Priced
		plan.CostMicros = facts.Cost(assay.Usage{InputTokens: plan.Tokens})
		return plan, nil
	}
	if plan.Passages == 0 {
		return plan, nil
	}
	if plan.Rate, err = measureRate(ctx, embedder); err != nil {
		plan.Problem = err.Error()
		return plan, ctx.Err()
	}
	plan.Seconds = float64(plan.Passages) / plan.Rate
	return plan, nil
}

// measureRate returns how many passages of a usual length an encoder embeds in a second.
func measureRate(ctx context.Context, e llm.Embedder) (float64, error) {
	texts := make([]string, samplePassages)
	for i := range texts {
		texts[i] = strings.Repeat("An expense of up to 140 euros is approved by the department within ten days. ", bytesPerPassage/77)
	}
	if _, err := llm.Embed(ctx, e, llm.Passage, texts[:1]); err != nil { // loads the model
		return 0, err
	}
	began := time.Now()
	if _, err := llm.Embed(ctx, e, llm.Passage, texts); err != nil {
		return 0, err
	}
	return samplePassages / max(time.Since(began).Seconds(), 1e-6), nil
}
