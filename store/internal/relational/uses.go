package relational

import (
	"context"
	"time"

	"github.com/assay-rag/assay/store"
)

// Uses implements store.System.
func (s *System) Uses() store.Uses { return uses{s} }

// A uses implements store.Uses.
type uses struct{ s *System }

// Touch implements store.Uses.
func (x uses) Touch(ctx context.Context, name string, at time.Time, every time.Duration) error {
	u, err := x.s.writer(ctx)
	if err == nil {
		err = u.Update(ctx, func(t Tx) error {
			_, err := t.Exec(ctx, `
INSERT INTO uses (name, used) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET used = ?2 WHERE uses.used < ?3`, name, at.Unix(), at.Add(-every).Unix())
			return err
		})
	}
	return wrap(err, "record the use of %q", name)
}

// Last implements store.Uses.
func (x uses) Last(ctx context.Context) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	err := x.s.db.View(ctx, func(s Reader) error {
		return s.Each(ctx, `SELECT name, used FROM uses`, nil, func(scan func(...any) error) error {
			var name string
			var used int64
			if err := scan(&name, &used); err != nil {
				return err
			}
			last[name] = time.Unix(used, 0).UTC()
			return nil
		})
	})
	return last, wrap(err, "read when keys were last used")
}

// Forget implements store.Uses.
func (x uses) Forget(ctx context.Context, names ...string) error {
	u, err := x.s.writer(ctx)
	if err == nil {
		err = u.Update(ctx, func(t Tx) error {
			for _, name := range names {
				if _, err := t.Exec(ctx, `DELETE FROM uses WHERE name = ?`, name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return wrap(err, "forget when keys were last used")
}
