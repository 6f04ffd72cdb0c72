package relational

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Reviews implements store.Tenant.
func (t *Tenant) Reviews() store.Reviews { return reviews{t} }

// reviews implements store.Reviews.
type reviews struct{ t *Tenant }

// notInReview returns assay.ErrSuspended while the review of a run is open.
func (t *Tenant) notInReview(ctx context.Context, x Tx, run int64) error {
	var open bool
	err := x.Row(ctx, `SELECT EXISTS (SELECT 1 FROM reviews WHERE run = ? AND open = 1)`, []any{run}, &open)
	if err == nil && open {
		err = fmt.Errorf("it waits for a review: %w", assay.ErrSuspended)
	}
	return err
}

// Suspend implements store.Lease.
func (l *lease) Suspend(ctx context.Context, shown assay.Answer, r store.Review, pins []store.Pin, acts ...store.Act) error {
	err := checkReview(r.Case, r.Draft)
	if err == nil {
		err = l.u.Update(ctx, func(t Tx) error {
			if err := l.finish(ctx, t, assay.RunSuspended, &shown, "", pins...); err != nil {
				return err
			}
			n, err := t.Exec(ctx, `INSERT INTO reviews (run, open, version, created, state, draft) VALUES (?, 1, 1, ?, ?, ?) ON CONFLICT DO NOTHING`,
				l.number, l.t.now().UnixNano(), string(r.Case), string(r.Draft))
			if err == nil && n == 0 {
				err = invalid("it has a review already")
			}
			if err == nil {
				err = appendStoredReview(ctx, t, l.t.now(), l.run, l.number)
			}
			if err != nil {
				return err
			}
			return appendReviewActs(ctx, t, l.t.now(), l.run, acts)
		})
	}
	return wrap(err, "suspend run %s", l.run)
}

func checkReview(parts ...json.RawMessage) error {
	for _, p := range parts {
		if !json.Valid(p) {
			return invalid("the case or the draft of a review is not JSON")
		}
	}
	return nil
}

func appendReviewActs(ctx context.Context, t Tx, now time.Time, run string, acts []store.Act) error {
	for _, a := range acts {
		a.Subject = run
		if err := appendAct(ctx, t, now, a); err != nil {
			return err
		}
	}
	return nil
}

const reviewColumns = `r.id, v.open, v.version, v.created, v.state`

// List implements store.Reviews.
func (v reviews) List(ctx context.Context, onlyOpen bool) ([]store.Review, error) {
	var all []store.Review
	err := v.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, `
SELECT `+reviewColumns+` FROM reviews v JOIN runs r ON r.number = v.run WHERE v.open >= ? ORDER BY v.created, v.run`, []any{onlyOpen},
			func(scan func(...any) error) error {
				r, err := scanReview(scan)
				all = append(all, r)
				return err
			})
	})
	return all, wrap(err, "list reviews")
}

// Review implements store.Reviews.
func (v reviews) Review(ctx context.Context, run string) (store.Review, error) {
	var draft string
	r, err := scanReview(func(dest ...any) error {
		return v.t.runs.Row(ctx, `
SELECT `+reviewColumns+`, v.draft FROM reviews v JOIN runs r ON r.number = v.run WHERE r.id = ?`, []any{run}, append(dest, &draft)...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err != nil {
		return store.Review{}, wrap(err, "review of run %s", run)
	}
	r.Draft = json.RawMessage(draft)
	return r, nil
}

// scanReview reads reviewColumns.
func scanReview(scan func(...any) error) (store.Review, error) {
	var r store.Review
	var created int64
	var state string
	if err := scan(&r.Run, &r.Open, &r.Version, &created, &state); err != nil {
		return r, err
	}
	r.Created, r.Case = time.Unix(0, created).UTC(), json.RawMessage(state)
	return r, nil
}

// Change implements store.Reviews.
func (v reviews) Change(ctx context.Context, r store.Review, c store.ReviewChange) error {
	err := checkReview(r.Case)
	if err == nil && r.Draft != nil {
		err = checkReview(r.Draft)
	}
	if err == nil {
		var u Updater
		if u, err = v.t.RunsUpdater(ctx); err == nil {
			err = u.Update(ctx, func(t Tx) error { return v.change(ctx, t, u, r, c) })
		}
	}
	return wrap(err, "review of run %s", r.Run)
}

func (v reviews) change(ctx context.Context, t Tx, u Updater, r store.Review, c store.ReviewChange) error {
	number, err := v.replace(ctx, t, r, c.Answer == nil)
	if err != nil {
		return err
	}
	if err := appendReviewActs(ctx, t, v.t.now(), r.Run, c.Acts); err != nil {
		return err
	}
	if len(c.Records) == 0 && c.Answer == nil {
		return nil
	}
	// The journal is written under a lease that exists only inside this transaction.
	l := &lease{t: v.t, u: u, run: r.Run, number: number, token: rand.Text(), stored: map[string]bool{}}
	if _, err := t.Exec(ctx, `UPDATE progress SET token = ? WHERE run = ?`, l.token, number); err != nil {
		return err
	}
	spent, err := v.holderOf(ctx, t, l, c.Account)
	if err != nil {
		return err
	}
	for _, rec := range c.Records {
		rec.Run = r.Run
		if _, err := l.append(ctx, t, &rec); err != nil {
			return fmt.Errorf("append %s: %w", rec.Path, err)
		}
		if err := spent.settle(ctx, t, rec.Path, rec.Usage, false); err != nil {
			return fmt.Errorf("count %s: %w", rec.Path, err)
		}
	}
	if c.Answer != nil {
		if err := l.finish(ctx, t, assay.RunDone, c.Answer, ""); err != nil {
			return err
		}
	} else if err := l.finish(ctx, t, assay.RunSuspended, nil, ""); err != nil {
		return err
	}
	_, err = t.Exec(ctx, `UPDATE progress SET token = NULL, expires = NULL WHERE run = ?`, number)
	return err
}

// holderOf returns the holder that counts what the records of a change have spent.
func (v reviews) holderOf(ctx context.Context, t Tx, l *lease, a store.Account) (*holder, error) {
	if a == nil {
		l.spent.l, l.spent.u, l.spent.token = ledger(v), l.u, l.token
		return &l.spent, l.payFor(ctx, t)
	}
	own, ok := a.(*account)
	if !ok {
		return nil, invalid("the account is not one of this store")
	}
	return &own.holder, nil
}

// replace stores the new state of an open review and returns the number of its run.
func (v reviews) replace(ctx context.Context, t Tx, r store.Review, open bool) (number int64, err error) {
	var isOpen bool
	var version int64
	err = t.Row(ctx, `
SELECT v.run, v.open, v.version FROM reviews v JOIN runs r ON r.number = v.run WHERE r.id = ?`, []any{r.Run}, &number, &isOpen, &version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, assay.ErrNotFound
	case err != nil:
		return 0, err
	case !isOpen:
		return 0, invalid("it is decided")
	case version != r.Version:
		return 0, fmt.Errorf("someone else has changed it: %w", assay.ErrLocked)
	}
	if r.Draft != nil {
		if _, err := t.Exec(ctx, `UPDATE reviews SET draft = ? WHERE run = ?`, string(r.Draft), number); err != nil {
			return 0, err
		}
	}
	_, err = t.Exec(ctx, `UPDATE reviews SET state = ?, open = ?, version = version + 1 WHERE run = ?`, string(r.Case), open, number)
	if err != nil {
		return 0, err
	}
	return number, appendStoredReview(ctx, t, v.t.now(), r.Run, number)
}

// reviewStored is the detail of store.KindReviewStored: what the row of a review holds. Hashes are as
// in runBegun.
type reviewStored struct {
	Open    bool   `json:"open"`
	Version int64  `json:"version"`
	Created int64  `json:"created"` // nanoseconds since 1970
	Case    string `json:"case"`
	Draft   string `json:"draft"`
}

// appendStoredReview appends the act that says what the row of a run's review holds now.
func appendStoredReview(ctx context.Context, t Tx, now time.Time, run string, number int64) error {
	var s reviewStored
	var state, draft string
	err := t.Row(ctx, `SELECT open, version, created, state, draft FROM reviews WHERE run = ?`, []any{number}, &s.Open, &s.Version, &s.Created, &state, &draft)
	if err != nil {
		return err
	}
	s.Case, s.Draft = hashOf([]byte(state)), hashOf([]byte(draft))
	return appendRunAct(ctx, t, now, store.KindReviewStored, run, assay.Principal{}, s)
}
