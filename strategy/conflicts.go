package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/run"
)

// Steps of the reader.
const (
	conflictsStep = "conflicts" // finds conflicts in the evidence
	replaceStep   = "replace"   // finds the sentences nearest to refused statements
)

// conflicts finds sentences of the evidence that answer the question differently, in one step.
// Passages of one document do not conflict. Without a reader there are no conflicts. If the reader
// fails, there are none either and a note is added.
func (e Env) conflicts(ctx context.Context, s run.Scope, evidence []assay.Evidence, passages []passage, notes *noteList) ([]ground.Conflict, error) {
	documents := map[string]bool{}
	for _, ev := range evidence {
		documents[ev.Hit.Chunk.Document] = true
	}
	if e.ReaderModel == "" || len(documents) < 2 {
		return nil, nil
	}
	in := make([]ground.Passage, len(passages))
	for i, p := range passages {
		in[i] = ground.Passage{Quote: p.Text, Context: p.Text, Heading: headingsOf(evidence[i].Hit)}
	}
	apart := func(i, j int) bool {
		a, b := evidence[i].Hit, evidence[j].Hit
		return a.Chunk.Document != b.Chunk.Document
	}
	step := run.Step{Name: conflictsStep, Kind: assay.StepReader, Model: e.ReaderModel}
	out, err := run.Do(ctx, s, step, in, func(ctx context.Context, in []ground.Passage) (conflictsFound, assay.Usage, error) {
		found, err := ground.Conflicts(ctx, e.Roles.Reader, e.Question, in, apart)
		if err != nil && ctx.Err() == nil {
			return conflictsFound{Failure: err.Error()}, assay.Usage{}, nil
		}
		return conflictsFound{Conflicts: found}, assay.Usage{}, err
	})
	if out.Failure != "" {
		notes.say(assay.NoteFailed, "reader: it failed to look for conflicts in the evidence: "+out.Failure)
	}
	return out.Conflicts, err
}

// conflictsFound is the recorded output of the step.
type conflictsFound struct {
	Conflicts []ground.Conflict `json:"conflicts"`
	Failure   string            `json:"failure,omitempty"`
}

// opposite returns the side of a conflict that contradicts a claim, if the claim cites the other
// side only.
func (c checkedClaim) opposite(x ground.Conflict, evidence []assay.Evidence) (side ground.Span, ok bool) {
	cites := func(side ground.Span) bool {
		h := evidence[side.Passage].Hit.Chunk
		return slices.ContainsFunc(c.cited, func(cit assay.Citation) bool {
			return cit.Document == h.Document && cit.Start < h.Start+side.End && h.Start+side.Start < cit.End
		})
	}
	switch a, b := cites(x.A), cites(x.B); {
	case a && !b:
		return x.B, true
	case b && !a:
		return x.A, true
	}
	return side, false
}
