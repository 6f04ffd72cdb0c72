package sqlite

import (
	"context"
	"time"
)

// KeepReplaced is how long Prune keeps a version that was replaced or deleted,
// cited or not: no run lasts that long, so that every version that a live run
// has found can still be read and cited by it.
const KeepReplaced = 24 * time.Hour

// pruneBatch is how many versions are dropped at a time. While a batch is
// looked at and dropped no run can pin a version, so it must be short.
const pruneBatch = 64

// Prune implements store.Writer. If the runs cannot be read, it drops nothing
// more and returns the error with the number of versions dropped before.
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

// pruneBatch looks at the next versions after number and drops those that no run
// cites. The lock on runs.db, taken once nothing else can be in the way, holds
// new pins off until the versions are gone.
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

// A replacedVersion is one that is not current.
type replacedVersion struct {
	number            int64
	document, version string
}

// replacedVersions returns the next versions after number that were replaced at
// or before a time.
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

// dropUnpinned drops those of the versions that no run cites.
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
