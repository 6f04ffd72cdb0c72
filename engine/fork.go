package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// ForkedFrom names the run and the step that a fork began at.
type ForkedFrom struct {
	Run  string `json:"run"`
	Step string `json:"step"` // path of the first step that the fork took itself

	// Models are the models that did each role in the steps taken over and had that role then; "" is
	// the local role.
	Models map[string][]string `json:"models,omitempty"`
}

// did reports whether the model did the role in the steps taken over.
func (f *ForkedFrom) did(role, model string) bool {
	return f != nil && slices.Contains(f.Models[role], model)
}

// A ForkError reports that the steps before Step of a fork cannot be repeated with the fork's
// models and settings. It wraps the *run.DivergenceError.
type ForkError struct {
	Step string // path of the step of the parent that the change affects first
	Err  error
}

func (e *ForkError) Error() string { return fmt.Sprintf("the fork changes an earlier step: %v", e.Err) }

// Unwrap returns the divergence.
func (e *ForkError) Unwrap() error { return e.Err }

// Fork answers the question of an earlier run again as a new run, which takes over the steps before
// step and executes that step and all later ones with the engine's present models. step is a step's
// path or its number in the journal, counted from 1. The steps taken over are copied into the new
// run's journal, so it can be shown, resumed and replayed after its parent was deleted. They count
// towards its budget and usage, but nothing is paid again.
//
// change edits the request of the parent; nil: no change. The question, its conversation, the
// strategy, the collections and the filter must stay the same. Settings, Limits and the wall time
// are zero in the request that change gets, unless the parent's wall time was not a default. Zero
// fields have the meaning that they have for a new question, except that the wall time is at least
// the parent's. The answer of a fork is never cached.
//
// Fork yields the events of Ask. The errors are those of Ask and Replay. An unknown step, and one in
// the middle of a job whose model or prompt has changed, are assay.ErrInvalid. If the change affects
// a step before step, the error wraps a *ForkError, and a run that has executed nothing by then is
// deleted.
func (e *Engine) Fork(ctx context.Context, principal assay.Principal, id, step string, change func(*Request)) iter.Seq2[Event, error] {
	return stream(ctx, func(ctx context.Context, emit func(Event)) (assay.Answer, error) {
		return e.fork(ctx, principal, id, step, change, emit)
	})
}

func (e *Engine) fork(ctx context.Context, principal assay.Principal, id, step string, change func(*Request), emit func(Event)) (assay.Answer, error) {
	p, err := e.prepareFork(ctx, principal, id, step, change, nil)
	if err != nil {
		return assay.Answer{}, err
	}
	return p.drive(ctx, emit)
}

// prepareFork stores a run that takes over the first steps of another. A nil promise is none.
func (e *Engine) prepareFork(ctx context.Context, principal assay.Principal, id, step string, change func(*Request), promise *store.Promise) (*preparedRun, error) {
	parent, records, err := e.journal(ctx, principal, id)
	if err != nil {
		return nil, err
	}
	if principal.Access().Key() != parent.Principal.Access().Key() {
		return nil, fmt.Errorf("run %s: the access of %s has changed since it began; ask again: %w", id, principal.User, assay.ErrInvalid)
	}
	if err := e.checkReleased(ctx, parent); err != nil {
		return nil, err
	}
	before, err := questionOf(parent)
	if err != nil {
		return nil, err
	}
	at, err := findStep(records, step)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	req, err := e.changed(ctx, principal, before.Request, change)
	if err != nil {
		return nil, err
	}
	taken := takenOver(records, at)
	prior := priorTurns{turns: before.History, earlier: before.EarlierTurns, documents: before.Rests}
	began, err := e.begin(ctx, principal, req, prior)
	if err != nil {
		return nil, err
	}
	began.ForkedFrom = &ForkedFrom{Run: id, Step: at, Models: modelsOf(before, taken)}
	if len(taken) > 0 {
		began.keepPreparation(before, taken)
	}
	if err := checkInterrupted(taken, e.config.Models.unless(req.Local)); err != nil {
		return nil, fmt.Errorf("step %s is inside a job whose model or prompt has changed; fork from the job, %s: %w", at, jobOf(at), assay.ErrInvalid)
	}
	began.ID = e.config.NewID()
	p, err := e.admitted(ctx, principal, began.ID)
	if err != nil {
		return nil, err
	}
	if err := p.create(ctx, principal, began, taken, promise); err != nil {
		return nil, p.abandon(err)
	}
	p.failed = func(ctx context.Context, err error) error {
		if d, ok := errors.AsType[*run.DivergenceError](err); ok {
			return e.leftParent(ctx, err, d, len(taken))
		}
		return err
	}
	return p, nil
}

// leftParent returns the error of a fork that left its parent's journal. If the fork executed no
// step besides those taken over, its run is deleted, so that the parent stays the latest run.
func (e *Engine) leftParent(ctx context.Context, err error, d *run.DivergenceError, taken int) error {
	early := &ForkError{Step: cmp.Or(d.Before, d.Path), Err: err}
	failed, ok := errors.AsType[*RunError](err)
	if !ok {
		return early
	}
	ctx = context.WithoutCancel(ctx)
	records, err := e.runs.Records(ctx, failed.Run)
	if err != nil {
		return errors.Join(early, err)
	}
	executed := func(r assay.Record) bool { return r.Kind != assay.StepClock }
	if slices.ContainsFunc(records[taken:], executed) {
		return early
	}
	early.Err = d
	err = e.runs.Delete(ctx, failed.Run, deletion(assay.Principal{}, "a fork that did not begin"))
	if err != nil && !errors.Is(err, assay.ErrForbidden) { // a hold keeps even this
		return errors.Join(early, err)
	}
	return early
}

// findStep returns the path of the step that a caller names by its path or its number.
func findStep(records []assay.Record, name string) (string, error) {
	if len(records) == 0 {
		return "", fmt.Errorf("there is no step %q, and its journal is empty: %w", name, assay.ErrInvalid)
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n < 1 || n > len(records) {
			return "", fmt.Errorf("there is no step %d; its journal has the steps 1 to %d: %w", n, len(records), assay.ErrInvalid)
		}
		return records[n-1].Path, nil
	}
	if slices.ContainsFunc(records, func(r assay.Record) bool { return r.Path == name }) {
		return name, nil
	}
	near := strings.Join(nearSteps(records, name), ", ")
	return "", fmt.Errorf("there is no step %q; steps with similar paths are %s: %w", name, near, assay.ErrInvalid)
}

// nearSteps returns the paths that share most elements with name, at most five, in the order of the
// journal.
func nearSteps(records []assay.Record, name string) []string {
	const most = 5
	wanted := strings.FieldsFunc(name, betweenWords)
	shared := func(r assay.Record) int {
		n := 0
		for _, word := range strings.FieldsFunc(r.Path, betweenWords) {
			if slices.Contains(wanted, word) {
				n++
			}
		}
		return n
	}
	near := slices.Clone(records)
	slices.SortStableFunc(near, func(a, b assay.Record) int { return cmp.Compare(shared(b), shared(a)) })
	near = near[:min(len(near), most)]
	if i := slices.IndexFunc(near, func(r assay.Record) bool { return shared(r) == 0 }); i > 0 {
		near = near[:i]
	}
	slices.SortFunc(near, func(a, b assay.Record) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	paths := make([]string, len(near))
	for i, r := range near {
		paths[i] = r.Path
	}
	return paths
}

// betweenWords separates the words of a path.
func betweenWords(c rune) bool { return strings.ContainsRune("/[]", c) }

// takenOver returns the records that had been written before the step at path, or its first inner
// step, began. Of a job of another branch that was not finished by then, nothing is taken over,
// because the job's model may be another one now.
func takenOver(records []assay.Record, at string) []assay.Record {
	cut := slices.IndexFunc(records, func(r assay.Record) bool { return r.Path == at || strings.HasPrefix(r.Path, at+"/") })
	unfinished, finished := map[string]bool{}, map[string]bool{}
	for i, r := range records {
		finished[r.Path] = i < cut
	}
	for _, r := range records {
		for _, group := range []string{r.Path, jobOf(r.Path)} {
			if group != "" && !finished[group] && !strings.HasPrefix(at, group+"/") {
				unfinished[group] = true
			}
		}
	}
	var taken []assay.Record
	for _, r := range records[:cut] {
		if !withinAny(r.Path, unfinished) {
			taken = append(taken, r)
		}
	}
	return taken
}

// withinAny reports whether a step at path is inside one of the groups.
func withinAny(at string, groups map[string]bool) bool {
	for at = path.Dir(at); at != "."; at = path.Dir(at) {
		if groups[at] {
			return true
		}
	}
	return false
}

// modelsOf returns the models that did each role in the records taken over from a parent, where they
// were the parent's model for it.
func modelsOf(parent storedRequest, taken []assay.Record) map[string][]string {
	models := map[string][]string{}
	for _, r := range taken {
		name := roleOf(r.Kind, r.Path)
		if name == "" || strategy.Quoted(r.Path) || slices.Contains(models[name], r.Model) {
			continue
		}
		if r.Model == parent.Models[name] || parent.ForkedFrom.did(name, r.Model) {
			models[name] = append(models[name], r.Model)
		}
	}
	return models
}

// changed returns the request of a run as change edits it, checked and completed like that of a new
// run.
func (e *Engine) changed(ctx context.Context, principal assay.Principal, parent Request, change func(*Request)) (Request, error) {
	req := parent
	req.ID = ""
	req.Settings, req.Limits = strategy.Settings{}, strategy.Limits{}
	if wall := req.Budget.Wall; wall == req.Mode.Wall(defaultWall) || wall == req.Mode.Wall(modelWall) {
		req.Budget.Wall = 0
	}
	if change != nil {
		change(&req)
	}
	if err := checkKept(parent, req); err != nil {
		return Request{}, err
	}
	follows, wall := req.Follows, req.Budget.Wall
	req.Follows = "" // the conversation was read when the parent began
	req, err := e.check(ctx, principal, req)
	req.Follows = follows
	if wall == 0 { // time for the models of both
		req.Budget.Wall = max(req.Budget.Wall, parent.Budget.Wall)
	}
	return req, err
}

// checkKept returns assay.ErrInvalid if a fork's request asks something else than its parent's.
func checkKept(parent, fork Request) error {
	type kept struct {
		Question, Strategy, Follows string
		Collections                 []string
		Filter                      assay.Filter
		History                     []assay.Turn
	}
	of := func(r Request) ([]byte, error) {
		return json.Marshal(kept{r.Question, r.Strategy, r.Follows, r.Collections, r.Filter, r.History})
	}
	a, err := of(parent)
	if err != nil {
		return err
	}
	b, err := of(fork)
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("a fork keeps the question, conversation, strategy, collections and filter of its run: %w", assay.ErrInvalid)
	}
	return nil
}

// keepPreparation replaces what a new run prepares before its first step by what the parent had
// prepared, as far as the steps taken over depend on it.
func (s *storedRequest) keepPreparation(parent storedRequest, taken []assay.Record) {
	s.Outline, s.NamedCollections = parent.Outline, parent.NamedCollections
	if parent.Keys != nil {
		s.Keys = parent.Keys
	}
	s.Keep = parent.Keep
	// The same evidence, if the generator's window can hold it.
	window := cmp.Or(s.ContextTokens, strategy.DefaultLimits().ContextTokens)
	if window >= cmp.Or(parent.ContextTokens, strategy.DefaultLimits().ContextTokens) {
		s.ContextTokens = parent.ContextTokens
	}
	if slices.ContainsFunc(taken, func(r assay.Record) bool { return r.Kind == assay.StepCache }) {
		s.Earlier = parent.Earlier
	}
}
