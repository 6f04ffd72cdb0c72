package relational

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// A registry implements store.Registry.
type registry struct{ log auditLog }

var _ store.Registry = registry{}

// Version implements store.Registry.
func (r registry) Version(ctx context.Context) (version int64, err error) {
	err = r.log.d.Row(ctx, `SELECT registry FROM store`, nil, &version)
	return version, wrap(err, "version of the registry")
}

// Items implements store.Registry.
func (r registry) Items(ctx context.Context, kind string) ([]store.RegistryItem, error) {
	var items []store.RegistryItem
	err := r.log.d.View(ctx, func(s Reader) error {
		return s.Each(ctx, `SELECT name, value, updated FROM registry WHERE kind = ? ORDER BY name`, []any{kind}, func(scan func(...any) error) error {
			item := store.RegistryItem{Kind: kind}
			var value string
			var updated int64
			if err := scan(&item.Name, &value, &updated); err != nil {
				return err
			}
			item.Value, item.Updated = json.RawMessage(value), time.Unix(0, updated).UTC()
			items = append(items, item)
			return nil
		})
	})
	return items, wrap(err, "list %s in the registry", kind)
}

// Item implements store.Registry.
func (r registry) Item(ctx context.Context, kind, name string) (store.RegistryItem, error) {
	var value string
	var updated int64
	err := r.log.d.Row(ctx, `SELECT value, updated FROM registry WHERE kind = ? AND name = ?`, []any{kind, name}, &value, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		err = assay.ErrNotFound
	}
	if err != nil {
		return store.RegistryItem{}, wrap(err, "%s %q", kind, name)
	}
	return store.RegistryItem{Kind: kind, Name: name, Value: json.RawMessage(value), Updated: time.Unix(0, updated).UTC()}, nil
}

// Set implements store.Registry.
func (r registry) Set(ctx context.Context, item store.RegistryItem, act store.Act) error {
	return r.put(ctx, item, act, `
INSERT INTO registry (kind, name, value, updated) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (kind, name) DO UPDATE SET value = ?3, updated = ?4`)
}

// Create implements store.Registry.
func (r registry) Create(ctx context.Context, item store.RegistryItem, act store.Act) error {
	return r.put(ctx, item, act, `INSERT INTO registry (kind, name, value, updated) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING`)
}

func (r registry) put(ctx context.Context, item store.RegistryItem, act store.Act, query string) error {
	if err := checkItem(item); err != nil {
		return err
	}
	if act.Detail == nil {
		act.Detail = item.Value
	}
	logged := &journal.Item{Kind: item.Kind, Name: item.Name, Value: hashOf(item.Value), Updated: r.log.now().UnixNano()}
	return r.change(ctx, act, logged, func(t Tx) error {
		n, err := t.Exec(ctx, query, item.Kind, item.Name, string(item.Value), logged.Updated)
		if err == nil && n == 0 {
			err = invalid("it exists already")
		}
		return err
	})
}

// Delete implements store.Registry.
func (r registry) Delete(ctx context.Context, kind, name string, act store.Act) error {
	return r.change(ctx, act, &journal.Item{Kind: kind, Name: name}, func(t Tx) error {
		n, err := t.Exec(ctx, `DELETE FROM registry WHERE kind = ? AND name = ?`, kind, name)
		if err == nil && n == 0 {
			err = assay.ErrNotFound
		}
		return err
	})
}

// change runs fn, which changes an item, and appends the act in one transaction.
func (r registry) change(ctx context.Context, act store.Act, item *journal.Item, fn func(Tx) error) error {
	err := checkKind(act)
	var u Updater
	if err == nil {
		u, err = r.log.updater(ctx)
	}
	if err == nil {
		err = u.Update(ctx, func(t Tx) error {
			if err := fn(t); err != nil {
				return err
			}
			if _, err := t.Exec(ctx, `UPDATE store SET registry = registry + 1`); err != nil {
				return err
			}
			return appendItemAct(ctx, t, r.log.now(), act, item)
		})
	}
	return wrap(err, "%s %q", item.Kind, item.Name)
}

func checkItem(item store.RegistryItem) error {
	const mostName = 256
	if err := CheckFileName(item.Kind); err != nil {
		return err
	}
	ok := item.Name != "" && len(item.Name) <= mostName && utf8.ValidString(item.Name)
	for _, c := range item.Name {
		ok = ok && !unicode.IsControl(c)
	}
	if !ok {
		return invalid("name %q of a %s: want 1 to %d bytes of UTF-8 without control characters", item.Name, item.Kind, mostName)
	}
	if !json.Valid(item.Value) {
		return invalid("the value of %s %q is not JSON", item.Kind, item.Name)
	}
	return nil
}
