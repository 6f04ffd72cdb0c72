package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	marks "github.com/assay-rag/assay/internal/canary"
	"github.com/assay-rag/assay/store"
)

// A RunSummary is a run in a list. It holds no text from documents, because listing runs does not
// check access to the documents that they read.
type RunSummary struct {
	ID       string         `json:"id"`
	Question string         `json:"question"`
	State    assay.RunState `json:"state"`
	Status   assay.Status   `json:"status,omitempty"` // status of the answer; empty: no answer
	Stop     assay.Stop     `json:"stop,omitempty"`
	Cached   string         `json:"cached,omitempty"` // ID of the run whose answer was reused
	Live     bool           `json:"live"`             // a process is driving it

	// Measuring is the Measuring field of the request: an evaluation asked.
	Measuring  bool        `json:"measuring,omitempty"`
	ForkedFrom *ForkedFrom `json:"forked_from,omitempty"` // nil: the run is no fork

	// Describing means that the run describes images at ingest. It answers no question and cannot
	// be resumed, replayed, forked or followed.
	Describing bool `json:"describing,omitempty"`

	Steps   int       `json:"steps"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// Runs returns the principal's runs, newest first, at most limit (0: all).
func (e *Engine) Runs(ctx context.Context, principal assay.Principal, limit int) ([]RunSummary, error) {
	if limit < 0 {
		return nil, fmt.Errorf("list at most %d runs: %w", limit, assay.ErrInvalid)
	}
	all, err := e.runs.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	runs := []RunSummary{}
	for _, r := range all {
		if !owns(principal, r) {
			continue
		}
		if limit > 0 && len(runs) == limit {
			break
		}
		runs = append(runs, summaryOf(r))
	}
	return runs, nil
}

// summaryOf returns the summary of a run.
func summaryOf(r assay.Run) RunSummary {
	s := RunSummary{
		ID: r.ID, Question: r.Question, State: r.State, Live: r.Live, Steps: r.Steps, Created: r.Created, Updated: r.Updated,
	}
	var asked struct {
		Measuring  bool
		ForkedFrom *ForkedFrom `json:"forked_from"`
		Strategy   string
	}
	_ = json.Unmarshal(r.Request, &asked) // unknown if the request cannot be decoded
	s.Measuring, s.ForkedFrom, s.Describing = asked.Measuring, asked.ForkedFrom, asked.Strategy == describeStrategy
	if r.Answer != nil {
		s.Status, s.Stop = r.Answer.Status, r.Answer.Stop
		if r.Answer.Cached != nil {
			s.Cached = r.Answer.Cached.Run
		}
	}
	return s
}

// Run returns a run and its steps so far. It returns assay.ErrNotFound if the run does not exist,
// belongs to another principal, or read a document that principal may no longer see. What the steps read
// and wrote is left out while a review is possible, and afterwards unless the answer was approved as it
// was. So is what holds the text of a canary.
func (e *Engine) Run(ctx context.Context, principal assay.Principal, id string) (assay.Run, []Step, error) {
	r, records, err := e.journal(ctx, principal, id)
	if err != nil {
		return assay.Run{}, nil, err
	}
	withheld, err := e.withheld(ctx, r)
	if err != nil {
		return assay.Run{}, nil, err
	}
	set, err := e.canaries(ctx)
	if err != nil {
		return assay.Run{}, nil, fmt.Errorf("run %s: %w", id, err)
	}
	steps := make([]Step, len(records))
	for i, rec := range records {
		steps[i] = stepOf(rec)
		switch {
		case withheld != "":
			steps[i] = withheldStep(steps[i], withheld)
		case isRuling(rec):
			steps[i] = withheldStep(steps[i], withheldText)
		case holdsCanary(set, steps[i]):
			steps[i] = withheldStep(steps[i], withheldCanaryText)
		}
	}
	if err := hideCanaries(&r, set); err != nil {
		return assay.Run{}, nil, err
	}
	return r, steps, nil
}

// hideCanaries removes an answer that holds the text of a canary, which is then newer than the run.
func hideCanaries(r *assay.Run, set *marks.Set) error {
	if r.Answer == nil || r.Answer.Reason == assay.ReasonWithheld || set.Empty() {
		return nil
	}
	texts, err := answerTexts(*r.Answer)
	if err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	if len(set.Find(texts...)) > 0 {
		hidden := withheldAnswer(*r.Answer)
		r.Answer = &hidden
	}
	return nil
}

// owns reports whether a run belongs to principal.
func owns(principal assay.Principal, r assay.Run) bool {
	return principal.User != "" && principal.User == r.Principal.User
}

// run returns the principal's run with that ID.
func (e *Engine) run(ctx context.Context, principal assay.Principal, id string) (assay.Run, error) {
	r, err := e.runs.Run(ctx, id)
	if err == nil && !owns(principal, r) {
		err = assay.ErrNotFound
	}
	if errors.Is(err, assay.ErrNotFound) {
		return assay.Run{}, fmt.Errorf("run %q: %w", id, assay.ErrNotFound)
	}
	return r, err
}

// journal returns the principal's run and its records. It checks the hashes of the records, and
// again the access to all documents that the run read.
func (e *Engine) journal(ctx context.Context, principal assay.Principal, id string) (assay.Run, []assay.Record, error) {
	r, err := e.run(ctx, principal, id)
	if err != nil {
		return assay.Run{}, nil, err
	}
	records, err := e.runs.Records(ctx, id)
	if err != nil {
		return assay.Run{}, nil, fmt.Errorf("run %s: %w", id, err)
	}
	if err := e.checkAccess(ctx, principal.Access(), r, records); err != nil {
		return assay.Run{}, nil, fmt.Errorf("run %s: %w", id, err)
	}
	return r, records, nil
}

// checkAccess returns an error unless access allows all documents that a run read (see
// documentsOf). It uses the current ACL of each document: that of the current version if the
// document was replaced, and the last one if it was deleted (see store.Content). If the ACL is
// unknown, access is denied. The error does not name the document.
func (e *Engine) checkAccess(ctx context.Context, access assay.Access, r assay.Run, records []assay.Record) error {
	documents, err := documentsOf(r, records)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(documents)) {
		if err := e.checkDocument(ctx, access, id); err != nil {
			return fmt.Errorf("it read a document %w", err)
		}
	}
	return nil
}

// checkDocument returns an error that states why access may not see a document; nil: it may.
func (e *Engine) checkDocument(ctx context.Context, access assay.Access, id string) error {
	allowed, err := mayRead(ctx, e.content, access, id)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return fmt.Errorf("that was deleted, so access to it cannot be checked: %w", assay.ErrNotFound)
	case err != nil:
		return fmt.Errorf("whose access cannot be checked: %w", unnamedError{err})
	case !allowed:
		return fmt.Errorf("that you may no longer see: %w", assay.ErrNotFound)
	}
	return nil
}

// An unnamedError is an error without its text, which may name a document.
type unnamedError struct{ err error }

func (unnamedError) Error() string { return "the store cannot be read" }

// Unwrap returns the error with its text.
func (e unnamedError) Unwrap() error { return e.err }

// mayRead reports whether access may see a document, by its current ACL and its collection. The
// error is assay.ErrNotFound if either is unknown.
func mayRead(ctx context.Context, content store.Content, access assay.Access, id string) (bool, error) {
	acl, err := content.ACL(ctx, id)
	if err != nil {
		return false, err
	}
	if access.Collections() == nil {
		return access.Allows("", acl), nil
	}
	d, err := content.Document(ctx, id) // only the current version tells the collection
	return err == nil && access.Allows(d.Collection, acl), err
}
