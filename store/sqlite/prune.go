package sqlite

import (
	"context"
	"time"
)

// KeepReplaced is how long Prune keeps a replaced or deleted version, whether it is cited or not.
// No run lasts that long, so a live run can read and cite every version that it has found.
const KeepReplaced = 24 * time.Hour

// pruneBatch is how many versions are dropped at a time. No run can pin a version while a batch is
// checked and dropped, so it must be small.
const pruneBatch = 64

// Prune implements store.Writer. If the runs cannot be read, it stops and returns the error with
// the number of versions dropped so far.
func (w *writer) Prune(ctx context.Context) (int, error) {
	const doing = "prune"
	runs, err := w.tenant.runsUpdater(ctx)
	if err != nil {
		return 0, wrap(err, "%s", doing)
	}
	before := w.tenant.now().Add(-KeepReplaced).UnixNano()
	dropped, last := 0, int64(0)
	for {
		batch, n, err := w.pruneBatch(ctx, runs, before, last)
		if err != nil {
			return dropped, wrap(err, "%s", doing)
		}
		dropped += n
		if len(batch) < pruneBatch {
			return dropped, nil
		}
		last = batch[len(batch)-1].number
	}
}

// pruneBatch checks the next versions after the given number and drops those that no run cites. It
// takes the lock on runs.db only once it has the turn to change the content. The lock blocks new
// pins until the versions are dropped.
func (w *writer) pruneBatch(ctx context.Context, runs *updater, before, after int64) (batch []replacedVersion, dropped int, err error) {
	if err := w.open("prune"); err != nil {
		return nil, 0, err
	}
	if err := w.u.takeTurn(ctx); err != nil {
		return nil, 0, err
	}
	defer w.u.endTurn()
	err = runs.update(ctx, func(pins tx) error {
		return w.u.updateInTurn(ctx, func(t tx) error {
			var err error
			if batch, err = replacedVersions(ctx, t, before, after); err != nil {
				return err
			}
			dropped, err = dropUnpinned(ctx, pins, t, batch)
			return err
		})
	})
	if err != nil {
		return nil, 0, err
	}
	return batch, dropped, nil
}

// A replacedVersion is a version that is not current.
type replacedVersion struct {
	number            int64
	document, version string
}

// replacedVersions returns the next versions after the given number that were replaced at or before
// a time.
func replacedVersions(ctx context.Context, t tx, before, after int64) ([]replacedVersion, error) {
	var batch []replacedVersion
	err := t.each(ctx, `
SELECT v.number, d.id, v.version FROM versions v JOIN documents d ON d.number = v.document
WHERE v.replaced <= ? AND v.number > ? ORDER BY v.number LIMIT ?`,
		[]any{before, after, pruneBatch}, func(scan func(...any) error) error {
			var v replacedVersion
			if err := scan(&v.number, &v.document, &v.version); err != nil {
				return err
			}
			batch = append(batch, v)
			return nil
		})
	return batch, err
}

// dropUnpinned drops the versions that no run cites.
func dropUnpinned(ctx context.Context, runs, content tx, batch []replacedVersion) (int, error) {
	dropped := 0
	for _, v := range batch {
		var pinned bool
		err := runs.row(ctx, `SELECT EXISTS (SELECT 1 FROM pins WHERE document = ? AND version = ?)`,
			[]any{v.document, v.version}, &pinned)
		if err != nil {
			return 0, err
		}
		if pinned {
			continue
		}
		if err := dropVectors(ctx, content, v.number); err != nil {
			return 0, err
		}
		if _, err := content.exec(ctx, `DELETE FROM versions WHERE number = ?`, v.number); err != nil {
			return 0, err
		}
		dropped++
	}
	return dropped, nil
}
