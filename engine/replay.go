package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
)

// A ReplayError reports that a replay repeated the recorded steps but reached a different answer.
// It wraps assay.ErrDiverged.
type ReplayError struct {
	Field    string // field of the answer: "status", "text", …
	Stored   json.RawMessage
	Replayed json.RawMessage
}

func (e *ReplayError) Error() string {
	return fmt.Sprintf("%v: the answer has another %s: stored %s, replayed %s", assay.ErrDiverged, e.Field, e.Stored, e.Replayed)
}

// Unwrap returns assay.ErrDiverged.
func (e *ReplayError) Unwrap() error { return assay.ErrDiverged }

// Replay repeats a run from its journal alone, without searches or model calls, and returns its
// answer, which equals the stored one. If a step's input differs from the journal, the error is a
// *run.DivergenceError with both inputs. If the answer differs, the error is a *ReplayError.
// Replay returns assay.ErrDamaged, naming the record, if the journal was altered, and
// assay.ErrInvalid if the run has no answer.
func (e *Engine) Replay(ctx context.Context, principal assay.Principal, id string) (assay.Answer, error) {
	r, records, err := e.journal(ctx, principal, id)
	if err != nil {
		return assay.Answer{}, err
	}
	req, err := questionOf(r)
	if err != nil {
		return assay.Answer{}, err
	}
	if err := checkStored(r); err != nil {
		return assay.Answer{}, fmt.Errorf("run %s: %w", id, err)
	}
	if r.Answer.Reason == assay.ReasonWithheld {
		return assay.Answer{}, fmt.Errorf("run %s: its answer was withheld, so it is not made again: %w", id, assay.ErrInvalid)
	}
	answer, err := e.replay(ctx, r, req, records)
	if err == nil {
		err = compare(*r.Answer, answer)
	}
	if err == nil {
		err = compareOwn(*r.Answer, answer)
	}
	if err != nil {
		return assay.Answer{}, e.replayError(ctx, r, err)
	}
	if r.Question != req.Question {
		return assay.Answer{}, fmt.Errorf("run %s: its question is not the one it answers, %q: %w", id, req.Question, assay.ErrDamaged)
	}
	return answer, nil
}

// replay returns the answer that the journal of a run leads to: that of its strategy, and of the rulings
// of reviewers about it.
func (e *Engine) replay(ctx context.Context, r assay.Run, req storedRequest, records []assay.Record) (assay.Answer, error) {
	steps, rulings := splitRulings(records)
	observer := runObserver{}
	session, err := run.Replay(run.Config{Run: r.ID, Records: steps, Budget: req.Budget, Observe: observer.stepEvent})
	if err != nil {
		return assay.Answer{}, err
	}
	answer, err := e.answer(ctx, r, req, session, runTools{}, nil)
	observer.complete(&answer, req)
	if diverged := session.Finish(); diverged != nil {
		err = diverged
	}
	if err == nil && len(rulings) > 0 {
		answer, err = e.replayRulings(ctx, r, req, answer, rulings)
	}
	return answer, err
}

// replayError returns the error of a replay. That of a run whose steps are withheld has no details,
// because they quote the steps.
func (e *Engine) replayError(ctx context.Context, r assay.Run, err error) error {
	if withheld, failed := e.withheld(ctx, r); failed != nil || withheld != "" {
		kind := assay.ErrDiverged
		if errors.Is(err, assay.ErrDamaged) {
			kind = assay.ErrDamaged
		}
		return fmt.Errorf("replay run %s: %w; details are %s", r.ID, kind, withheldText)
	}
	return fmt.Errorf("replay run %s: %w", r.ID, err)
}

// checkStored checks that a run has an answer and that its state agrees. A run has an answer
// exactly when it is done.
func checkStored(r assay.Run) error {
	done := r.State == assay.RunDone
	switch {
	case r.State == assay.RunSuspended:
		return fmt.Errorf("it waits for a review: %w", assay.ErrSuspended)
	case done && r.Answer == nil:
		return fmt.Errorf("it is done, but has no answer: %w", assay.ErrDamaged)
	case !done && r.Answer != nil:
		return fmt.Errorf("it has an answer, but is %q: %w", r.State, assay.ErrDamaged)
	case !done:
		return fmt.Errorf("it has no answer to compare with (%s): %w", r.State, assay.ErrInvalid)
	}
	return nil
}

// A field is one field of an answer, as stored and as replayed.
type field struct {
	name             string
	stored, replayed any
}

// compare compares the content of two answers byte for byte.
func compare(stored, replayed assay.Answer) error {
	return compareFields([]field{
		{"status", stored.Status, replayed.Status},
		{"reason", stored.Reason, replayed.Reason},
		{"stop", stored.Stop, replayed.Stop},
		{"question", stored.Question, replayed.Question},
		{"understood", stored.Understood, replayed.Understood},
		{"understood_by_model", stored.UnderstoodByModel, replayed.UnderstoodByModel},
		{"text", stored.Text, replayed.Text},
		{"readings", stored.Readings, replayed.Readings},
		{"ask_back", stored.AskBack, replayed.AskBack},
		{"relevance", stored.Relevance, replayed.Relevance},
		{"held", stored.Answerability, replayed.Answerability},
		{"cached", stored.Cached, replayed.Cached},
		{"strategy", stored.Strategy, replayed.Strategy},
		{"claims", stored.Claims, replayed.Claims},
		{"citations", stored.Citations, replayed.Citations},
		{"missing", stored.Missing, replayed.Missing},
		{"review", stored.Review, replayed.Review},
		{"oversight", stored.Oversight, replayed.Oversight},
		{"searched", stored.Searched, replayed.Searched},
		{"closest", stored.Closest, replayed.Closest},
		{"notes", stored.Notes, replayed.Notes},
		{"roles", stored.Roles, replayed.Roles},
		{"index", stored.Index, replayed.Index},
		{"iterations", stored.Iterations, replayed.Iterations},
		{"justification", stored.Justification, replayed.Justification},
		{"usage", stored.Usage, replayed.Usage},
	})
}

// compareOwn compares the fields that differ between two runs of the same question.
func compareOwn(stored, replayed assay.Answer) error {
	return compareFields([]field{
		{"run", stored.Run, replayed.Run},
		{"elapsed_ms", stored.ElapsedMS, replayed.ElapsedMS},
	})
}

// compareFields returns a *ReplayError for the first field that differs.
func compareFields(fields []field) error {
	for _, f := range fields {
		want, err := json.Marshal(f.stored)
		if err != nil {
			return fmt.Errorf("compare %s: %w", f.name, err)
		}
		got, err := json.Marshal(f.replayed)
		if err != nil {
			return fmt.Errorf("compare %s: %w", f.name, err)
		}
		if !bytes.Equal(want, got) {
			return &ReplayError{Field: f.name, Stored: want, Replayed: got}
		}
	}
	return nil
}
