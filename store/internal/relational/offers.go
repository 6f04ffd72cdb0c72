package relational

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
	u, err := r.t.RunsUpdater(ctx)
	if err == nil {
		err = u.Update(ctx, func(t Tx) error { return r.offer(ctx, t, id, key) })
	}
	return wrap(err, "offer the answer of run %s", id)
}

func (r runs) offer(ctx context.Context, t Tx, id, key string) error {
	if key == "" || !utf8.ValidString(key) {
		return invalid("its key is empty or not UTF-8")
	}
	var number int64
	var state assay.RunState
	err := t.Row(ctx, `SELECT r.number, p.state FROM runs r JOIN progress p ON p.run = r.number WHERE r.id = ?`, []any{id}, &number, &state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return assay.ErrNotFound
	case err != nil:
		return err
	case state != assay.RunDone:
		return invalid("it is %s and not done", state)
	}
	if _, err := t.Exec(ctx, `INSERT INTO offers (run, key) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET key = ?2`, number, key); err != nil {
		return err
	}
	if err := appendRunAct(ctx, t, r.t.now(), store.KindRunOffered, id, assay.Principal{}, runOffered{key}); err != nil {
		return err
	}
	_, err = t.Exec(ctx, `DELETE FROM offers WHERE run <= (SELECT run FROM offers ORDER BY run DESC LIMIT 1 OFFSET ?)`, r.t.opts.MaxOffers)
	return err
}

const offersQuery = `SELECT r.id, r.question FROM offers o JOIN runs r ON r.number = o.run WHERE o.key = ? ORDER BY o.run DESC LIMIT ?`

// Offers implements store.Runs.
func (r runs) Offers(ctx context.Context, key string, limit int) ([]store.Offer, error) {
	if limit <= 0 {
		limit = noLimit
	}
	var offers []store.Offer
	err := r.t.runs.View(ctx, func(s Reader) error {
		return s.Each(ctx, offersQuery, []any{key, limit}, func(scan func(...any) error) error {
			var o store.Offer
			err := scan(&o.Run, &o.Question)
			offers = append(offers, o)
			return err
		})
	})
	return offers, wrap(err, "list offers")
}
