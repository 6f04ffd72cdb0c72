package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Bounds of how long a share lives.
const (
	DefaultShareLife = 30 * 24 * time.Hour
	MaxShareLife     = 366 * 24 * time.Hour
)

// A Share is a link to the answer of a run.
type Share struct {
	ID      string    `json:"id"` // names it among the shares of the run; it opens nothing
	Run     string    `json:"run"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Expired bool      `json:"expired"`
}

// A NewShare is a share with the token that opens it. The store keeps only a hash of the token.
type NewShare struct {
	Share
	Token string `json:"token"`
}

// A SharedRun is what a share shows of a run: the answer with its citations, without the trace.
type SharedRun struct {
	Run     string       `json:"run"`
	User    string       `json:"user"` // whose run it is
	Asked   time.Time    `json:"asked"`
	Expires time.Time    `json:"expires"` // of the share
	Answer  assay.Answer `json:"answer"`
}

// share makes a link to the answer of the principal's run. life is how long it lives; 0:
// DefaultShareLife.
func (e *Engine) share(ctx context.Context, principal assay.Principal, id string, life time.Duration) (NewShare, error) {
	if life == 0 {
		life = DefaultShareLife
	}
	if life < time.Minute || life > MaxShareLife {
		return NewShare{}, fmt.Errorf("a share lives %s, want at least a minute and at most %d days: %w", life, MaxShareLife/(24*time.Hour), assay.ErrInvalid)
	}
	if _, _, err := e.shownRun(ctx, principal, id); err != nil {
		return NewShare{}, err
	}
	now := e.config.Now().UTC()
	token := rand.Text() // 130 bits
	s := store.Share{Run: id, ID: rand.Text()[:12], Hash: shareHash(token), Created: now, Expires: now.Add(life)}
	if err := e.tenant.Shares().Create(ctx, s, principal); err != nil {
		return NewShare{}, err
	}
	return NewShare{shareView(s, now), token}, nil
}

func shareView(s store.Share, now time.Time) Share {
	return Share{ID: s.ID, Run: s.Run, Created: s.Created, Expires: s.Expires, Expired: !now.Before(s.Expires)}
}

// shareHash returns the form in which the token of a share is stored.
func shareHash(token string) string { return hashOf("assay share\n" + token) }

// shownRun returns the principal's run and its records if its answer is shown to its owner.
func (e *Engine) shownRun(ctx context.Context, principal assay.Principal, id string) (assay.Run, []assay.Record, error) {
	r, records, err := e.journal(ctx, principal, id)
	if err == nil {
		err = e.checkShown(ctx, r)
	}
	return r, records, err
}

// checkShown returns an error unless the answer of a run may be shown: it is done, was not rejected, and
// nothing of it is withheld. An answer that a reviewer has edited is shown.
func (e *Engine) checkShown(ctx context.Context, r assay.Run) error {
	if r.State == assay.RunSuspended {
		return fmt.Errorf("run %s waits for a review: %w", r.ID, assay.ErrSuspended)
	}
	if r.State != assay.RunDone || r.Answer == nil {
		return fmt.Errorf("run %s has no answer (%s): %w", r.ID, r.State, assay.ErrInvalid)
	}
	if _, err := questionOf(r); err != nil {
		return err
	}
	set, err := e.canaries(ctx)
	if err == nil {
		err = hideCanaries(&r, set)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	switch r.Answer.Status {
	case assay.PendingReview, assay.Rejected:
		return fmt.Errorf("the answer of run %s is not shown: %w", r.ID, assay.ErrForbidden)
	}
	return nil
}

// shares returns the shares of the principal's run, the newest first.
func (e *Engine) shares(ctx context.Context, principal assay.Principal, id string) ([]Share, error) {
	if _, err := e.run(ctx, principal, id); err != nil {
		return nil, err
	}
	stored, err := e.tenant.Shares().List(ctx, id)
	if err != nil {
		return nil, err
	}
	all, now := make([]Share, len(stored)), e.config.Now()
	for i, s := range stored {
		all[len(stored)-1-i] = shareView(s, now)
	}
	return all, nil
}

// shared returns the run that a token opens, with its records, if principal may see it now. The error is
// assay.ErrNotFound if the token opens nothing or the answer is not shown, and assay.ErrForbidden if
// the answer rests on a document that principal may not see.
func (e *Engine) shared(ctx context.Context, principal assay.Principal, token string) (assay.Run, []assay.Record, store.Share, error) {
	fail := func(err error) (assay.Run, []assay.Record, store.Share, error) {
		return assay.Run{}, nil, store.Share{}, err
	}
	errNone := fmt.Errorf("this link opens nothing; it may have expired or been revoked: %w", assay.ErrNotFound)
	s, err := e.tenant.Shares().Find(ctx, shareHash(token))
	if errors.Is(err, assay.ErrNotFound) || err == nil && !e.config.Now().Before(s.Expires) {
		return fail(errNone)
	}
	if err != nil {
		return fail(err)
	}
	r, err := e.runs.Run(ctx, s.Run)
	if errors.Is(err, assay.ErrNotFound) { // it was deleted meanwhile
		return fail(errNone)
	}
	if err != nil {
		return fail(err)
	}
	records, err := e.runs.Records(ctx, s.Run)
	if err != nil {
		return fail(err)
	}
	err = e.checkAccess(ctx, principal.Access(), r, records)
	if errors.Is(err, assay.ErrNotFound) {
		return fail(fmt.Errorf("the answer rests on documents that you may not see: %w", assay.ErrForbidden))
	}
	if err != nil {
		return fail(err)
	}
	err = e.checkShown(ctx, r)
	for _, hidden := range []error{assay.ErrSuspended, assay.ErrInvalid, assay.ErrForbidden} {
		if errors.Is(err, hidden) {
			return fail(errNone)
		}
	}
	if err != nil {
		return fail(err)
	}
	return r, records, s, nil
}

// sharedRun returns what a share shows.
func (e *Engine) sharedRun(ctx context.Context, principal assay.Principal, token string) (SharedRun, error) {
	r, _, s, err := e.shared(ctx, principal, token)
	if err != nil {
		return SharedRun{}, err
	}
	return SharedRun{Run: r.ID, User: r.Principal.User, Asked: r.Created, Expires: s.Expires, Answer: sharedAnswer(*r.Answer)}, nil
}

// sharedAnswer returns the fields of an answer that are its content. Those that tell how it came about
// are left out.
func sharedAnswer(a assay.Answer) assay.Answer {
	return withLists(assay.Answer{
		Status: a.Status, Reason: a.Reason, Stop: a.Stop, Question: a.Question, Understood: a.Understood, UnderstoodByModel: a.UnderstoodByModel,
		Text: a.Text, Readings: a.Readings, AskBack: a.AskBack, Claims: a.Claims, Citations: a.Citations, Missing: a.Missing,
		Closest: a.Closest, Oversight: a.Oversight, Justification: a.Justification, Run: a.Run,
	})
}

// Share makes a link by which others of the tenant read the answer of the principal's run. They need the
// scope to ask and sight of every document that the run read, whenever they read it. life is how long
// the link lives; 0: DefaultShareLife. The error is assay.ErrSuspended, assay.ErrForbidden or
// assay.ErrInvalid if the run has no answer that is shown.
func (s *Session) Share(ctx context.Context, run string, life time.Duration) (NewShare, error) {
	return call(ctx, s, "Share", func(c *sessionCall) (NewShare, error) { return c.engine.share(ctx, c.principal, run, life) })
}

// Shares returns the links to the principal's run, the newest first, without their tokens.
func (s *Session) Shares(ctx context.Context, run string) ([]Share, error) {
	return call(ctx, s, "Shares", func(c *sessionCall) ([]Share, error) { return c.engine.shares(ctx, c.principal, run) })
}

// Unshare revokes a link to the principal's run.
func (s *Session) Unshare(ctx context.Context, run, id string) error {
	return do(ctx, s, "Unshare", func(c *sessionCall) error {
		if _, err := c.engine.run(ctx, c.principal, run); err != nil {
			return err
		}
		return c.engine.tenant.Shares().Revoke(ctx, run, id, c.principal)
	})
}

// SharedRun returns the answer that a link shows. The error is assay.ErrNotFound if the link is unknown,
// of another tenant, expired or revoked, and if the answer waits for a review, was rejected, withheld,
// erased or deleted. It is assay.ErrForbidden if the answer rests on a document that the principal may
// not see now.
func (s *Session) SharedRun(ctx context.Context, token string) (SharedRun, error) {
	return call(ctx, s, "SharedRun", func(c *sessionCall) (SharedRun, error) { return c.engine.sharedRun(ctx, c.principal, token) })
}
