package relational

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

const syncColumns = `name, kind, target, collection, options, credentials, cursor, sweep_due, since_sweep,
	last_sync, last_try, last_error, report`

// SyncSources implements store.Content.
func (c content) SyncSources(ctx context.Context) ([]store.SyncSource, error) {
	sources := []store.SyncSource{}
	err := c.db.View(ctx, func(s Reader) error {
		return s.Each(ctx, `SELECT `+syncColumns+` FROM sync_sources ORDER BY name`, nil, func(scan func(...any) error) error {
			source, err := scanSyncSource(scan)
			sources = append(sources, source)
			return err
		})
	})
	if err != nil {
		return nil, wrap(err, "list the sources")
	}
	return sources, nil
}

func scanSyncSource(scan func(...any) error) (store.SyncSource, error) {
	var s store.SyncSource
	var options, credentials, lastSync, lastTry string
	var report sql.NullString
	err := scan(&s.Name, &s.Kind, &s.Target, &s.Collection, &options, &credentials, &s.Cursor, &s.SweepDue, &s.SinceSweep,
		&lastSync, &lastTry, &s.LastError, &report)
	if err != nil {
		return store.SyncSource{}, err
	}
	if report.Valid {
		s.Report = []byte(report.String)
	}
	if err := decodeJSON("options of source "+s.Name, options, &s.Options); err != nil {
		return store.SyncSource{}, err
	}
	if err := decodeJSON("credentials of source "+s.Name, credentials, &s.Credentials); err != nil {
		return store.SyncSource{}, err
	}
	if s.LastSync, err = decodeTime(lastSync); err != nil {
		return store.SyncSource{}, err
	}
	s.LastTry, err = decodeTime(lastTry)
	return s, err
}

// SyncItems implements store.Content.
func (c content) SyncItems(ctx context.Context, name string) iter.Seq2[store.SyncItem, error] {
	return func(yield func(store.SyncItem, error) bool) {
		err := c.db.View(ctx, func(s Reader) error {
			var number int64
			err := s.Row(ctx, `SELECT number FROM sync_sources WHERE name = ?`, []any{name}, &number)
			if errors.Is(err, sql.ErrNoRows) {
				return assay.ErrNotFound
			}
			if err != nil {
				return err
			}
			return s.Each(ctx, `SELECT uri, version, hash, reason, detail, retry, failures, acl FROM sync_items WHERE source = ? ORDER BY uri`,
				[]any{number}, func(scan func(...any) error) error {
					var item store.SyncItem
					var retry, failures, acl sql.NullString
					if err := scan(&item.URI, &item.Version, &item.Hash, &item.Reason, &item.Detail, &retry, &failures, &acl); err != nil {
						return err
					}
					if retry.Valid {
						item.Retry = []byte(retry.String)
					}
					if failures.Valid {
						err := errors.Join(
							decodeJSON("failures of item "+item.URI, failures.String, &item.Failures),
							decodeJSON("ACL of item "+item.URI, acl.String, &item.ACL))
						if err != nil {
							return err
						}
					}
					if !yield(item, nil) {
						return errStop
					}
					return nil
				})
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(store.SyncItem{}, wrap(err, "read the items of source %s", name))
		}
	}
}

// SetSyncSource implements store.Writer.
func (w *writer) SetSyncSource(ctx context.Context, s store.SyncSource) error {
	doing := fmt.Sprintf("set source %q", s.Name)
	if err := errors.Join(checkFolderName("source", s.Name), checkName("kind", s.Kind), checkName("collection", s.Collection)); err != nil {
		return wrap(err, "%s", doing)
	}
	options, err := json.Marshal(s.Options)
	if err != nil {
		return wrap(err, "%s", doing)
	}
	credentials, err := json.Marshal(s.Credentials)
	if err != nil {
		return wrap(err, "%s", doing)
	}
	var report any
	if s.Report != nil {
		report = string(s.Report)
	}
	return w.update(ctx, doing, func(t Tx) error {
		before, err := syncSourceRow(ctx, t, s.Name)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `
INSERT INTO sync_sources (`+syncColumns+`) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (name) DO UPDATE SET kind = ?2, target = ?3, collection = ?4, options = ?5, credentials = ?6, cursor = ?7,
	sweep_due = ?8, since_sweep = ?9, last_sync = ?10, last_try = ?11, last_error = ?12, report = ?13`,
			s.Name, s.Kind, s.Target, s.Collection, string(options), string(credentials), s.Cursor, s.SweepDue, s.SinceSweep,
			encodeTime(s.LastSync), encodeTime(s.LastTry), s.LastError, report)
		if err != nil {
			return err
		}
		row, err := syncSourceRow(ctx, t, s.Name)
		if err != nil || row == before {
			return err
		}
		return w.wait(ctx, t, w.tenant.now(), store.KindSourceSet, s.Name, sourceSet{row})
	})
}

// RemoveSyncSource implements store.Writer.
func (w *writer) RemoveSyncSource(ctx context.Context, name string) error {
	return w.update(ctx, fmt.Sprintf("remove source %q", name), func(t Tx) error {
		n, err := t.Exec(ctx, `DELETE FROM sync_sources WHERE name = ?`, name)
		if err == nil && n == 0 {
			err = assay.ErrNotFound
		}
		if err != nil {
			return err
		}
		return w.wait(ctx, t, w.tenant.now(), store.KindSourceRemoved, name, struct{}{})
	})
}

// ApplySync implements store.Writer.
func (w *writer) ApplySync(ctx context.Context, b store.SyncBatch) (int64, error) {
	rows, err := encodeEntries(b.Put)
	if err != nil {
		return 0, wrap(err, "put documents")
	}
	return w.change(ctx, "change documents", func(p *change) error {
		for _, id := range b.Delete {
			if err := p.delete(ctx, id); err != nil {
				return fmt.Errorf("document %s: %w", id, err)
			}
		}
		for _, r := range rows {
			if err := p.put(ctx, r); err != nil {
				return fmt.Errorf("%s: %w", r.doc.URI, err)
			}
		}
		if err := p.dropRetitled(ctx); err != nil || b.Source == "" {
			return err
		}
		return p.advance(ctx, b)
	})
}

// advance stores the progress of a source.
func (p *change) advance(ctx context.Context, b store.SyncBatch) error {
	var number int64
	err := p.t.Row(ctx, `SELECT number FROM sync_sources WHERE name = ?`, []any{b.Source}, &number)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("source %s: %w", b.Source, assay.ErrNotFound)
	}
	if err != nil {
		return err
	}
	for _, uri := range b.Gone {
		if _, err := p.t.Exec(ctx, `DELETE FROM sync_items WHERE source = ? AND uri = ?`, number, uri); err != nil {
			return err
		}
	}
	for _, item := range b.Items {
		if err := p.setSyncItem(ctx, number, item); err != nil {
			return err
		}
	}
	if b.Cursor == "" {
		return nil
	}
	_, err = p.t.Exec(ctx, `UPDATE sync_sources SET cursor = ? WHERE number = ?`, b.Cursor, number)
	return err
}

func (p *change) setSyncItem(ctx context.Context, source int64, item store.SyncItem) error {
	var retry, failures, acl any
	if item.Retry != nil {
		retry = string(item.Retry)
	}
	if len(item.Failures) > 0 {
		list, err := json.Marshal(item.Failures)
		if err != nil {
			return invalid("failures: %v", err)
		}
		readers, err := json.Marshal(item.ACL)
		if err != nil {
			return invalid("ACL: %v", err)
		}
		failures, acl = string(list), string(readers)
	}
	_, err := p.t.Exec(ctx, `
INSERT INTO sync_items (source, uri, version, hash, reason, detail, retry, failures, acl) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (source, uri) DO UPDATE SET version = ?3, hash = ?4, reason = ?5, detail = ?6, retry = ?7, failures = ?8, acl = ?9`,
		source, item.URI, item.Version, item.Hash, item.Reason, item.Detail, retry, failures, acl)
	return err
}
