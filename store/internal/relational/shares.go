package relational

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Shares implements store.Tenant.
func (t *Tenant) Shares() store.Shares { return shares{t} }

// shares implements store.Shares.
type shares struct{ t *Tenant }

// shareStored is the detail of store.KindShareCreated: what the row of a share holds.
type shareStored struct {
	ID      string `json:"id"`
	Hash    string `json:"hash"`
	Created int64  `json:"created"` // nanoseconds since 1970
	Expires int64  `json:"expires"`
}

// shareRevoked is the detail of store.KindShareRevoked.
type shareRevoked struct {
	ID string `json:"id"`
}

// Create implements store.Shares.
func (s shares) Create(ctx context.Context, share store.Share, actor assay.Principal) error {
	err := runs(s).updateRun(ctx, share.Run, func(t Tx, number int64) error {
		if err := notErased(ctx, t, number); err != nil {
			return err
		}
		var n int
		if err := t.Row(ctx, `SELECT COUNT(*) FROM shares WHERE run = ?`, []any{number}, &n); err != nil {
			return err
		}
		if n >= store.MaxShares {
			return invalid("it has %d shares; revoke one", n)
		}
		row := shareStored{ID: share.ID, Hash: share.Hash, Created: share.Created.UnixNano(), Expires: share.Expires.UnixNano()}
		added, err := t.Exec(ctx, `INSERT INTO shares (run, id, hash, created, expires) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			number, row.ID, row.Hash, row.Created, row.Expires)
		if err == nil && added == 0 {
			err = invalid("its ID or its token is in use")
		}
		if err != nil {
			return err
		}
		return appendRunAct(ctx, t, s.t.now(), store.KindShareCreated, share.Run, actor, row)
	})
	return wrap(err, "share run %s", share.Run)
}

// notErased returns assay.ErrInvalid if a run was erased.
func notErased(ctx context.Context, t Tx, number int64) error {
	var state assay.RunState
	err := t.Row(ctx, `SELECT state FROM progress WHERE run = ?`, []any{number}, &state)
	if err == nil && state == assay.RunErased {
		err = invalid("it was erased")
	}
	return err
}

const shareQuery = `SELECT r.id, s.id, s.hash, s.created, s.expires FROM shares s JOIN runs r ON r.number = s.run `

// scanShare reads a row of shareQuery.
func scanShare(scan func(...any) error) (store.Share, error) {
	var s store.Share
	var created, expires int64
	err := scan(&s.Run, &s.ID, &s.Hash, &created, &expires)
	s.Created, s.Expires = time.Unix(0, created).UTC(), time.Unix(0, expires).UTC()
	return s, err
}

// List implements store.Shares.
func (s shares) List(ctx context.Context, run string) ([]store.Share, error) {
	var all []store.Share
	err := s.t.runs.View(ctx, func(v Reader) error {
		return v.Each(ctx, shareQuery+`WHERE r.id = ? ORDER BY s.number`, []any{run}, func(scan func(...any) error) error {
			share, err := scanShare(scan)
			all = append(all, share)
			return err
		})
	})
	return all, wrap(err, "list the shares of run %s", run)
}

// Find implements store.Shares.
func (s shares) Find(ctx context.Context, hash string) (store.Share, error) {
	share, err := scanShare(func(dest ...any) error { return s.t.runs.Row(ctx, shareQuery+`WHERE s.hash = ?`, []any{hash}, dest...) })
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err != nil {
		return store.Share{}, wrap(err, "share")
	}
	return share, nil
}

// Revoke implements store.Shares.
func (s shares) Revoke(ctx context.Context, run, id string, actor assay.Principal) error {
	err := runs(s).updateRun(ctx, run, func(t Tx, number int64) error {
		n, err := t.Exec(ctx, `DELETE FROM shares WHERE run = ? AND id = ?`, number, id)
		if err == nil && n == 0 {
			err = assay.ErrNotFound
		}
		if err != nil {
			return err
		}
		return appendRunAct(ctx, t, s.t.now(), store.KindShareRevoked, run, actor, shareRevoked{id})
	})
	return wrap(err, "revoke share %.64q of run %s", id, run)
}

// checkShares compares the shares of runs, by which answers are read.
func (c *auditChecker) checkShares(ctx context.Context) error {
	type share struct{ run, id string }
	seen := map[share]bool{}
	err := c.runs.Each(ctx, `SELECT r.id, s.id, s.hash, s.created, s.expires FROM shares s JOIN runs r ON r.number = s.run`, nil,
		func(scan func(...any) error) error {
			var run string
			var got shareStored
			if err := scan(&run, &got.ID, &got.Hash, &got.Created, &got.Expires); err != nil {
				return err
			}
			seen[share{run, got.ID}] = true
			r := c.state.runs[run]
			if r == nil { // reported by checkRuns
				return nil
			}
			want, there := r.shares[got.ID]
			switch {
			case !there:
				c.report(r.sequence, "share "+got.ID+" of run "+run, "it is stored, but the log does not have it")
			case got != want:
				c.report(r.sequence, "share "+got.ID+" of run "+run, "it was altered")
			}
			return nil
		})
	for run, r := range c.state.runs {
		for id := range r.shares {
			if !seen[share{run, id}] {
				c.report(r.sequence, "share "+id+" of run "+run, "it is missing")
			}
		}
	}
	return err
}
