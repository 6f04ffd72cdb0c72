package relational

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/assay-rag/assay/store"
)

// KeepReplaced is how long Prune keeps a replaced or deleted version, whether it is cited or not.
// No run lasts that long, so a live run can read and cite every version that it has found.
const KeepReplaced = 24 * time.Hour

// pruneBatch is how many versions are dropped at a time. No run can pin a version while a batch is
// checked and dropped, so it must be small.
const pruneBatch = 64

// Prune implements store.Writer. If the runs cannot be read, it stops and returns the error with
// the number of versions dropped so far. While the tenant is being copied it drops none, and the next
// Prune does.
func (w *writer) Prune(ctx context.Context) (int, error) {
	const doing = "prune"
	runs, err := w.tenant.RunsUpdater(ctx)
	if err != nil {
		return 0, wrap(err, "%s", doing)
	}
	unlock, ok, err := w.tenant.place.LockKept(ctx)
	if err != nil || !ok {
		return 0, wrap(err, "%s", doing)
	}
	defer unlock()
	keep, err := w.keepReplaced(ctx)
	if err != nil {
		return 0, wrap(err, "%s", doing)
	}
	before := w.tenant.now().Add(-keep).UnixNano()
	dropped, last := 0, int64(0)
	for {
		batch, n, err := w.pruneBatch(ctx, runs, before, last)
		if err != nil {
			return dropped, wrap(err, "%s", doing)
		}
		dropped += n
		_ = w.tenant.collectActs(ctx) // later, if it fails; see update
		if len(batch) < pruneBatch {
			return dropped, nil
		}
		last = batch[len(batch)-1].number
	}
}

// keepReplaced returns how long a replaced version is kept: KeepReplaced, or the tenant's retention of
// versions if that is longer.
func (w *writer) keepReplaced(ctx context.Context) (time.Duration, error) {
	var value string
	err := w.tenant.runs.Row(ctx, `SELECT value FROM registry WHERE kind = ? AND name = ?`, []any{store.RetentionKind, store.RetainVersions}, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return KeepReplaced, nil
	}
	var kept store.Retention
	if err == nil {
		err = decodeJSON("retention of versions", value, &kept)
	}
	return max(KeepReplaced, kept.Duration()), err
}

// pruneBatch checks the next versions after the given number and drops those that no run cites. It
// takes the lock on runs.db only once it has the turn to change the content. The lock blocks new
// pins until the versions are dropped.
func (w *writer) pruneBatch(ctx context.Context, runs Updater, before, after int64) (batch []replacedVersion, dropped int, err error) {
	if err := w.open("prune"); err != nil {
		return nil, 0, err
	}
	drop := func(pins, t Tx) error {
		var err error
		if batch, err = replacedVersions(ctx, t, before, after); err != nil {
			return err
		}
		holds, err := activeHolds(ctx, pins, w.tenant.now())
		if err != nil {
			return err
		}
		gone, err := dropUnpinned(ctx, pins, t, holds, batch)
		if err != nil || len(gone) == 0 {
			return err
		}
		dropped = len(gone)
		return w.wait(ctx, t, w.tenant.now(), store.KindContentPruned, "", gone)
	}
	err = w.u.Turn(ctx, func(u Updater) error {
		return runs.Update(ctx, func(pins Tx) error {
			return u.Update(ctx, func(t Tx) error { return drop(pins, t) })
		})
	})
	if err != nil {
		return nil, 0, err
	}
	return batch, dropped, nil
}

// A replacedVersion is a version that is not current.
type replacedVersion struct {
	number                        int64
	document, version, collection string
}

// replacedVersions returns the next versions after the given number that were replaced at or before
// a time.
func replacedVersions(ctx context.Context, t Tx, before, after int64) ([]replacedVersion, error) {
	var batch []replacedVersion
	err := t.Each(ctx, `
SELECT v.number, d.id, v.version, c.name FROM versions v JOIN documents d ON d.number = v.document
JOIN collections c ON c.number = d.collection
WHERE v.replaced <= ? AND v.number > ? ORDER BY v.number LIMIT ?`,
		[]any{before, after, pruneBatch}, func(scan func(...any) error) error {
			var v replacedVersion
			if err := scan(&v.number, &v.document, &v.version, &v.collection); err != nil {
				return err
			}
			batch = append(batch, v)
			return nil
		})
	return batch, err
}

// dropUnpinned drops the versions that no run cites and no hold covers, and returns them.
func dropUnpinned(ctx context.Context, runs, content Tx, holds store.Holds, batch []replacedVersion) ([]pin, error) {
	var dropped []pin
	for _, v := range batch {
		if holds.Documents(v.collection) != nil {
			continue
		}
		var pinned bool
		err := runs.Row(ctx, `SELECT EXISTS (SELECT 1 FROM pins WHERE document = ? AND version = ?)`,
			[]any{v.document, v.version}, &pinned)
		if err != nil {
			return nil, err
		}
		if pinned {
			continue
		}
		if err := dropVectors(ctx, content, v.number); err != nil {
			return nil, err
		}
		if err := dropVersion(ctx, content, v.number); err != nil {
			return nil, err
		}
		dropped = append(dropped, pin{v.document, v.version})
	}
	return dropped, nil
}
