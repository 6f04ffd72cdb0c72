package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
)

// VectorStatus describes the encoders of a data directory and the coverage of their vectors.
type VectorStatus struct {
	Wanted  string `json:"wanted"`            // model that passages are embedded with; empty: none
	Serving string `json:"serving"`           // model whose vectors are searched; empty: text only
	Problem string `json:"problem,omitempty"` // why the wanted encoder cannot be used

	Chunks int             `json:"chunks"` // chunks that can have a vector
	Models []ModelCoverage `json:"models"` // by name: the wanted model and those that have vectors

	// Rate is how many passages per second this engine is embedding; 0: none.
	Rate float64 `json:"rate"`

	problem error // the error that Problem describes
}

// ModelCoverage is the number of chunks that have a vector of a model.
type ModelCoverage struct {
	Model    string `json:"model"`
	Embedded int    `json:"embedded"`
}

// Coverage returns the share of chunks that have a vector of the model. It returns 1 if there are
// no chunks.
func (s VectorStatus) Coverage(model string) float64 {
	if s.Chunks == 0 {
		return 1
	}
	for _, m := range s.Models {
		if m.Model == model {
			return float64(m.Embedded) / float64(s.Chunks)
		}
	}
	return 0
}

// Vectors returns the encoders in use and the coverage of their vectors. It reads every chunk.
func (e *Engine) Vectors(ctx context.Context) (VectorStatus, error) {
	s, err := e.encoderSelector.status(ctx)
	if p := e.embedder.rate.Load(); p != nil {
		s.Rate = p.Rate
	}
	return s, err
}

func (c *encoderSelector) status(ctx context.Context) (VectorStatus, error) {
	s := VectorStatus{Models: []ModelCoverage{}}
	chosen, err := c.selection(ctx)
	if err != nil {
		return s, err
	}
	s.Wanted, s.Serving = chosen.wanted, chosen.serving
	problem := chosen.problem
	if problem == nil && s.Wanted != "" && s.Wanted != s.Serving {
		_, problem = c.encoders.open(ctx, s.Wanted)
	}
	if problem != nil {
		s.problem, s.Problem = problem, problem.Error()
	}
	models, err := c.content.Models(ctx)
	if err != nil {
		return s, err
	}
	if s.Wanted != "" && !slices.Contains(models, s.Wanted) {
		models = append(models, s.Wanted)
		slices.Sort(models)
	}
	for _, m := range models {
		n, err := c.content.Coverage(ctx, m)
		if err != nil {
			return s, err
		}
		s.Chunks = n.Chunks
		s.Models = append(s.Models, ModelCoverage{m, n.Embedded})
	}
	return s, nil
}

// Embed makes the missing vectors and returns when none are missing or an error prevents it. If
// ctx ends, the stored vectors stay and the next Embed continues. Passages that the encoder fails
// at are listed in the report and are not errors. Embed waits while another process makes
// vectors. It returns assay.ErrInvalid if the engine has no encoders.
func (e *Engine) Embed(ctx context.Context, progress func(EmbedProgress)) (VectorReport, error) {
	ctx = e.outgoing(ctx)
	e.embedder.wanted.Add(1)
	var made ingest.EmbedReport
	var err error
	for again := true; again; again = errors.Is(err, errYield) {
		var more ingest.EmbedReport
		more, err = e.embedder.pass(ctx, ingest.EmbedOptions{Progress: progress})
		made.Stored += more.Stored
		made.ElapsedMS += more.ElapsedMS
		made.Failed = more.Failed
	}
	e.embedder.wanted.Add(-1)
	e.embedder.wake()
	report, statusErr := e.vectorReport(context.WithoutCancel(ctx))
	if report == nil {
		report = new(VectorReport)
	}
	report.Stored, report.Failed, report.ElapsedMS = made.Stored, made.Failed, made.ElapsedMS
	if report.Failed == nil {
		report.Failed = []EmbedFailed{}
	}
	return *report, errors.Join(err, statusErr)
}

// vectorReport returns the coverage of the wanted model's vectors; nil: there is no wanted model.
func (e *Engine) vectorReport(ctx context.Context) (*VectorReport, error) {
	chosen, err := e.encoderSelector.selection(ctx)
	if err != nil || chosen.wanted == "" && chosen.problem == nil {
		return nil, err
	}
	report := &VectorReport{Model: chosen.wanted, Failed: []EmbedFailed{}}
	if chosen.problem != nil {
		report.Problem = chosen.problem.Error()
	}
	if chosen.wanted == "" {
		return report, nil
	}
	n, err := e.content.Coverage(ctx, chosen.wanted)
	report.Chunks, report.Embedded = n.Chunks, n.Embedded
	return report, err
}

// UseEncoder selects the encoder that embeds the documents from now on. source describes where it
// came from, for display. An empty name, or the name of the default encoder, selects the default,
// even if a later version has another one. The encoder must exist. The previous model's vectors
// are searched until the new model has caught up.
func (e *Engine) UseEncoder(ctx context.Context, name, source string) error {
	encoders := e.encoderSelector.encoders
	if name == encoders.standard() {
		name = ""
	}
	if name != "" {
		if _, err := encoders.open(ctx, name); err != nil {
			return err
		}
	}
	if e.tenant.ReadOnly() {
		return fmt.Errorf("use encoder %s: %w", cmp.Or(name, encoders.standard()), assay.ErrReadOnly)
	}
	if err := writeEncoder(ctx, e.tenant, encoderChoice{Model: name, Source: source}); err != nil {
		return fmt.Errorf("use encoder %s: %w", cmp.Or(name, encoders.standard()), err)
	}
	e.encoderSelector.forget()
	e.embedder.wake()
	return nil
}
