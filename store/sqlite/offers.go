package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Offer implements store.Runs.
func (r runs) Offer(ctx context.Context, id, key string) error {
	u, err := r.t.runsUpdater(ctx)
	if err == nil {
		err = u.update(ctx, func(t tx) error { return r.offer(ctx, t, id, key) })
	}
	return wrap(err, "offer the answer of run %s", id)
}

func (r runs) offer(ctx context.Context, t tx, id, key string) error {
	if key == "" || !utf8.ValidString(key) {
		return invalid("its key is empty or not UTF-8")
	}
	var number int64
	var state assay.RunState
	err := t.row(ctx, `SELECT r.number, p.state FROM runs r JOIN progress p ON p.run = r.number WHERE r.id = ?`, []any{id}, &number, &state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return assay.ErrNotFound
	case err != nil:
		return err
	case state != assay.RunDone:
		return invalid("it is %s and not done", state)
	}
	if _, err := t.exec(ctx, `INSERT INTO offers (run, key) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET key = ?2`, number, key); err != nil {
		return err
	}
	if err := appendRunAct(ctx, t, r.t.now(), store.KindRunOffered, id, assay.Principal{}, runOffered{key}); err != nil {
		return err
	}
	_, err = t.exec(ctx, `DELETE FROM offers WHERE run <= (SELECT run FROM offers ORDER BY run DESC LIMIT 1 OFFSET ?)`, r.t.opts.maxOffers)
	return err
}

const offersQuery = `SELECT r.id, r.question FROM offers o JOIN runs r ON r.number = o.run WHERE o.key = ? ORDER BY o.run DESC LIMIT ?`

// Offers implements store.Runs.
func (r runs) Offers(ctx context.Context, key string, limit int) ([]store.Offer, error) {
	if limit <= 0 {
		limit = -1 // no limit in SQLite
	}
	var offers []store.Offer
	err := r.t.runs.view(ctx, func(s snapshot) error {
		return s.each(ctx, offersQuery, []any{key, limit}, func(scan func(...any) error) error {
			var o store.Offer
			err := scan(&o.Run, &o.Question)
			offers = append(offers, o)
			return err
		})
	})
	return offers, wrap(err, "list offers")
}
