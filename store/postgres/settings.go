package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// Setting implements store.Tenant.
func (t *Tenant) Setting(ctx context.Context, name string) ([]byte, error) {
	if err := relational.CheckFileName(name); err != nil {
		return nil, err
	}
	var value []byte
	err := t.runs.Row(ctx, `SELECT value FROM settings WHERE name = ?`, []any{name}, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return value, wrap(err, "read the setting %s", name)
}

// SetSetting implements store.Tenant.
func (t *Tenant) SetSetting(ctx context.Context, name string, value []byte) error {
	if err := relational.CheckFileName(name); err != nil {
		return err
	}
	if len(value) > store.MaxSetting {
		return invalid("the setting %s has %d bytes, want at most %d", name, len(value), store.MaxSetting)
	}
	u, err := t.RunsUpdater(ctx)
	if err == nil {
		err = u.Update(ctx, func(x relational.Tx) error {
			if len(value) == 0 {
				_, err := x.Exec(ctx, `DELETE FROM settings WHERE name = ?`, name)
				return err
			}
			_, err := x.Exec(ctx, `INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2`, name, value)
			return err
		})
	}
	return wrap(err, "write the setting %s", name)
}
