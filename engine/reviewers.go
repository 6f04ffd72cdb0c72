package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
)

// A ReviewFilter selects reviews. The zero filter selects those that are open.
type ReviewFilter struct {
	Decided bool   // also those that are decided
	Policy  string // of this policy; empty: of any
}

// A ReviewSummary is a review in a list. It holds nothing of the answer.
type ReviewSummary struct {
	Run       string         `json:"run"`
	Question  string         `json:"question"`
	Asker     string         `json:"asker"`
	Policies  []review.Match `json:"policies"`
	Created   time.Time      `json:"created"`
	Deadline  time.Time      `json:"deadline,omitzero"`
	Escalated time.Time      `json:"escalated,omitzero"`

	Needed    int       `json:"approvals_needed"`
	Approved  []string  `json:"approved_by"` // the present text
	ClaimedBy string    `json:"claimed_by,omitempty"`
	Expires   time.Time `json:"claim_expires,omitzero"`

	Decision assay.Decision `json:"decision"`
	Decided  time.Time      `json:"decided,omitzero"`
	By       []string       `json:"by,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// A ReviewView is what a reviewer decides by. If the run read documents that the reviewer may not see,
// Hidden counts them, and the fields below it are empty.
type ReviewView struct {
	ReviewSummary
	Hidden int `json:"hidden_documents"`

	Draft    *assay.Answer    `json:"draft,omitempty"`    // as it would be approved now, with the verdicts
	Original *assay.Answer    `json:"original,omitempty"` // before it was edited; nil: it was not
	Changes  []review.Change  `json:"changes,omitempty"`  // from Original to Draft
	Evidence []assay.Evidence `json:"evidence,omitempty"` // what an edit can cite
	Steps    []Step           `json:"steps,omitempty"`
	Rulings  []review.Ruling  `json:"rulings,omitempty"` // so far
}

// An openReview is a stored review, decoded.
type openReview struct {
	row   store.Review
	c     review.Case
	draft heldDraft
}

// maxConflicts is how often a change of a review is tried again because someone else changed it.
const maxConflicts = 20

// retry calls fn until it succeeds or fails for another reason than a conflict, at most maxConflicts
// times.
func retry(fn func() error) (err error) {
	for range maxConflicts {
		if err = fn(); !errors.Is(err, errConflict) {
			return err
		}
	}
	return err
}

// errConflict is the error of change if someone else has changed the review. It wraps assay.ErrLocked.
var errConflict = fmt.Errorf("the review has changed meanwhile: %w", assay.ErrLocked)

// loadReview reads a review and its run. If the deadline has passed, what follows it is done first.
func (e *Engine) loadReview(ctx context.Context, id string) (o openReview, r assay.Run, err error) {
	err = retry(func() error {
		if o, r, err = e.readReview(ctx, id); err != nil || !o.c.Overdue(e.config.Now()) || e.tenant.ReadOnly() {
			return err
		}
		if err := e.escalate(ctx, o, r); err != nil {
			return err
		}
		o, r, err = e.readReview(ctx, id)
		return err
	})
	return o, r, err
}

func (e *Engine) readReview(ctx context.Context, id string) (openReview, assay.Run, error) {
	row, err := e.tenant.Reviews().Review(ctx, id)
	if err != nil {
		return openReview{}, assay.Run{}, fmt.Errorf("review of run %q: %w", id, err)
	}
	o := openReview{row: row}
	if o.c, err = review.ParseCase(row.Case); err == nil {
		o.draft, err = parseDraft(row.Draft)
	}
	if err == nil && o.c.Run != id {
		err = fmt.Errorf("the review of run %s is that of %q: %w", id, o.c.Run, assay.ErrDamaged)
	}
	if err != nil {
		return o, assay.Run{}, err
	}
	r, err := e.runs.Run(ctx, id)
	return o, r, err
}

// Reviews returns the reviews that principal may take part in, the oldest first. Administrators see all.
// Principals without the role of a reviewer get assay.ErrForbidden.
func (e *Engine) Reviews(ctx context.Context, principal assay.Principal, filter ReviewFilter) ([]ReviewSummary, error) {
	if !mayReview(principal) {
		return nil, fmt.Errorf("list reviews: %w", assay.ErrForbidden)
	}
	if _, err := e.EscalateReviews(ctx); err != nil {
		return nil, err
	}
	rows, err := e.tenant.Reviews().List(ctx, !filter.Decided)
	if err != nil {
		return nil, err
	}
	out := []ReviewSummary{}
	for _, row := range rows {
		c, err := review.ParseCase(row.Case)
		if err != nil {
			return nil, err
		}
		if !isPrivileged(principal) && c.May(principal, false) != nil {
			continue
		}
		of := func(m review.Match) bool { return m.Policy == filter.Policy }
		if filter.Policy == "" || slices.ContainsFunc(c.Matches, of) {
			out = append(out, e.summarise(c))
		}
	}
	return out, nil
}

func (e *Engine) summarise(c review.Case) ReviewSummary {
	s := ReviewSummary{
		Run: c.Run, Question: c.Question, Asker: c.Asker.User, Policies: c.Matches, Created: c.Created, Deadline: c.Deadline,
		Escalated: c.Escalated, Needed: c.Needed, Approved: []string{}, Decision: c.Decision, Decided: c.Decided, By: c.By, Reason: c.Reason,
	}
	for _, a := range c.Approvals {
		s.Approved = append(s.Approved, a.By)
	}
	if s.ClaimedBy = c.ClaimedBy(e.config.Now()); s.ClaimedBy != "" {
		s.Expires = c.Claim.Expires
	}
	return s
}

// EscalateReviews does what follows the deadlines that have passed, and returns how many there were.
// Every other method for reviews does so for the reviews that it reads; a server calls this from time
// to time.
func (e *Engine) EscalateReviews(ctx context.Context) (int, error) {
	if e.tenant.ReadOnly() {
		return 0, nil
	}
	rows, err := e.tenant.Reviews().List(ctx, true)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, row := range rows {
		c, err := review.ParseCase(row.Case)
		if err != nil {
			return n, err
		}
		if !c.Overdue(e.config.Now()) {
			continue
		}
		if _, _, err := e.loadReview(ctx, row.Run); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// escalate does what follows the deadline of a review.
func (e *Engine) escalate(ctx context.Context, o openReview, r assay.Run) error {
	c, ruling := o.c.Escalate(e.config.Now().UTC())
	act, err := reviewAct("review.escalated", assay.Principal{}, reviewNeeded{
		Policies: policyNames(c.Matches), Deadline: timeOrNil(c.Deadline), Approvals: c.Needed,
	})
	if err != nil {
		return err
	}
	if !ruling.Final {
		return e.change(ctx, o, c, store.ReviewChange{Acts: []store.Act{act}})
	}
	return e.storeRuling(ctx, o, r, c, assay.Principal{}, ruling, act)
}

// reviewer returns the review of a run if principal may take part in it.
func (e *Engine) reviewer(ctx context.Context, principal assay.Principal, id string) (openReview, assay.Run, error) {
	if !mayReview(principal) {
		return openReview{}, assay.Run{}, fmt.Errorf("review of run %q: %w", id, assay.ErrForbidden)
	}
	o, r, err := e.loadReview(ctx, id)
	if err == nil {
		err = o.c.May(principal, isPrivileged(principal))
	}
	return o, r, err
}

// hiddenFrom counts the documents that a run read and principal may not see.
func (e *Engine) hiddenFrom(ctx context.Context, principal assay.Principal, r assay.Run, records []assay.Record, draft heldDraft) (int, error) {
	documents, err := documentsOf(r, records)
	if err != nil {
		return 0, err
	}
	for _, ev := range draft.Evidence {
		if id := ev.Hit.Chunk.Document; id != "" && ev.Hit.Origin == assay.FromDocuments {
			documents[id] = true
		}
	}
	hidden := 0
	for _, id := range slices.Sorted(maps.Keys(documents)) {
		err := e.checkDocument(ctx, principal.Access(), id)
		if err != nil && !errors.Is(err, assay.ErrNotFound) {
			return 0, err
		}
		if err != nil {
			hidden++
		}
	}
	return hidden, nil
}

// Review returns what a reviewer decides by, and records that the reviewer has seen it. The errors are
// assay.ErrForbidden for a principal that may not review this run, and assay.ErrNotFound.
func (e *Engine) Review(ctx context.Context, principal assay.Principal, id string) (view ReviewView, err error) {
	err = retry(func() error {
		o, r, err := e.reviewer(ctx, principal, id)
		if err != nil {
			return err
		}
		if view, err = e.view(ctx, principal, o, r); err != nil || view.Hidden > 0 || e.tenant.ReadOnly() {
			return err
		}
		c, changed := o.c.See(principal.User, e.config.Now().UTC())
		if !changed {
			return nil
		}
		return e.change(ctx, o, c, store.ReviewChange{})
	})
	if err != nil {
		return ReviewView{}, err
	}
	return view, nil
}

func (e *Engine) view(ctx context.Context, principal assay.Principal, o openReview, r assay.Run) (ReviewView, error) {
	view := ReviewView{ReviewSummary: e.summarise(o.c)}
	records, err := e.runs.Records(ctx, r.ID)
	if err != nil {
		return view, fmt.Errorf("run %s: %w", r.ID, err)
	}
	if view.Hidden, err = e.hiddenFrom(ctx, principal, r, records, o.draft); err != nil || view.Hidden > 0 {
		return view, err
	}
	present := o.draft.present()
	view.Draft, view.Evidence = &present, o.draft.Evidence
	if o.draft.Edited != nil {
		view.Original = &o.draft.Answer
		view.Changes = review.Diff(o.draft.Answer.Text, present.Text)
	}
	for _, rec := range records {
		view.Steps = append(view.Steps, stepOf(rec))
		if given := rulingOf(rec); given != nil {
			view.Rulings = append(view.Rulings, given.Ruling)
		}
	}
	return view, nil
}

// Claim gives a reviewer the right to decide, for a time (0: review.DefaultLease), or renews it. The
// error is assay.ErrLocked while another reviewer holds the claim, and assay.ErrForbidden if the run
// read documents that the reviewer may not see.
func (e *Engine) Claim(ctx context.Context, principal assay.Principal, id string, lease time.Duration) (ReviewSummary, error) {
	return e.transition(ctx, principal, id, "review.claimed", func(o openReview, r assay.Run, now time.Time) (review.Case, error) {
		if err := e.checkSeesAll(ctx, principal, o, r); err != nil {
			return o.c, err
		}
		return o.c.Take(principal.User, lease, now)
	})
}

// checkSeesAll returns assay.ErrForbidden if a run read documents that a reviewer may not see now.
func (e *Engine) checkSeesAll(ctx context.Context, principal assay.Principal, o openReview, r assay.Run) error {
	records, err := e.runs.Records(ctx, r.ID)
	if err != nil {
		return err
	}
	hidden, err := e.hiddenFrom(ctx, principal, r, records, o.draft)
	if err == nil && hidden > 0 {
		err = fmt.Errorf("run %s: it read %s that you may not see, so you cannot review it: %w", r.ID, counted(hidden, "document"), assay.ErrForbidden)
	}
	return err
}

// Release gives a claim back.
func (e *Engine) Release(ctx context.Context, principal assay.Principal, id string) (ReviewSummary, error) {
	return e.transition(ctx, principal, id, "review.released", func(o openReview, _ assay.Run, now time.Time) (review.Case, error) {
		return o.c.Release(principal.User, now)
	})
}

// transition changes a case by fn, with an act. If someone else changes it meanwhile, fn is called again.
func (e *Engine) transition(ctx context.Context, principal assay.Principal, id, kind string, fn func(openReview, assay.Run, time.Time) (review.Case, error)) (s ReviewSummary, err error) {
	err = retry(func() error {
		o, r, err := e.reviewer(ctx, principal, id)
		if err != nil {
			return err
		}
		c, err := fn(o, r, e.config.Now().UTC())
		if err != nil {
			return err
		}
		detail := struct {
			Policies []string   `json:"policies"`
			Expires  *time.Time `json:"expires,omitempty"`
		}{Policies: policyNames(c.Matches)}
		if c.Claim != nil {
			detail.Expires = &c.Claim.Expires
		}
		act, err := reviewAct(kind, principal, detail)
		if err != nil {
			return err
		}
		s = e.summarise(c)
		return e.change(ctx, o, c, store.ReviewChange{Acts: []store.Act{act}})
	})
	if err != nil {
		return ReviewSummary{}, err
	}
	return s, nil
}

// change stores a case with what changes together with it.
func (e *Engine) change(ctx context.Context, o openReview, c review.Case, with store.ReviewChange) error {
	state, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("store the review: %w", err)
	}
	row := o.row
	row.Case, row.Draft = state, nil
	if o.draft.Edited != nil {
		if row.Draft, err = json.Marshal(o.draft); err != nil {
			return fmt.Errorf("store the answer that waits: %w", err)
		}
	}
	err = e.tenant.Reviews().Change(ctx, row, with)
	if errors.Is(err, assay.ErrLocked) {
		err = fmt.Errorf("run %s: %w", row.Run, errConflict)
	}
	return err
}

// Await waits until a run has ended, and returns its answer: the one that reviewers decided, if it had
// to wait for them. The errors are those of Run; the end of ctx ends the wait, not the run. A run
// that failed is a *RunError.
func (e *Engine) Await(ctx context.Context, principal assay.Principal, id string) (assay.Answer, error) {
	const first, longest = 20 * time.Millisecond, time.Second
	for pause := first; ; pause = min(2*pause, longest) {
		r, _, err := e.journal(ctx, principal, id)
		if err != nil {
			return assay.Answer{}, err
		}
		switch {
		case r.State == assay.RunDone && r.Answer != nil:
			return *r.Answer, nil
		case r.State == assay.RunErased:
			_, err := requestOf(r)
			return assay.Answer{}, err
		case r.State == assay.RunFailed:
			return assay.Answer{}, &RunError{Run: id, Err: errors.New(cmp.Or(r.Error, "it failed"))}
		case r.State == assay.RunSuspended:
			if _, _, err := e.loadReview(ctx, id); err != nil {
				return assay.Answer{}, err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return assay.Answer{}, ctx.Err()
		}
	}
}

// underReview returns the answer of a run that waits for a review or was decided in one.
func (e *Engine) underReview(ctx context.Context, principal assay.Principal, id string) (assay.Answer, error) {
	if r, err := e.run(ctx, principal, id); err != nil || r.State == assay.RunSuspended {
		if err == nil {
			_, _, err = e.loadReview(ctx, id) // the deadline may have passed
		}
		if err != nil {
			return assay.Answer{}, err
		}
	}
	r, _, err := e.journal(ctx, principal, id)
	if err != nil {
		return assay.Answer{}, err
	}
	if r.Answer == nil {
		return assay.Answer{}, fmt.Errorf("run %s has no answer: %w", id, assay.ErrDamaged)
	}
	return *r.Answer, nil
}

// policyNames returns the names of the policies that match, once each. A request that asked for a
// review has none.
func policyNames(matches []review.Match) []string {
	names := []string{}
	for _, m := range matches {
		if m.Policy != "" && !slices.Contains(names, m.Policy) {
			names = append(names, m.Policy)
		}
	}
	return names
}

// reviewNeeded is the detail of the acts "review.needed" and "review.escalated".
type reviewNeeded struct {
	Policies  []string   `json:"policies"`
	Deadline  *time.Time `json:"deadline,omitempty"`
	Approvals int        `json:"approvals_needed"`
	Draft     string     `json:"draft,omitempty"` // SHA-256 of the stored draft
}

// reviewAct returns an act about a review. The store sets its subject.
func reviewAct(kind string, actor assay.Principal, detail any) (store.Act, error) {
	data, err := json.Marshal(detail)
	if err != nil {
		return store.Act{}, fmt.Errorf("act %s: %w", kind, err)
	}
	return store.Act{Kind: kind, Actor: actor, Detail: data}, nil
}
