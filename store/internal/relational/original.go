package relational

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// checkOriginal checks that an original has both of its fields or none.
func checkOriginal(o assay.Original) error {
	if (o.Media == "") != (len(o.Data) == 0) {
		return invalid("the original of %d bytes has the media type %q", len(o.Data), o.Media)
	}
	return nil
}

// original stores an original, unless it is stored already, and returns its number; nil: there is
// none.
func (p *change) original(ctx context.Context, o assay.Original) (any, error) {
	if o.Media == "" {
		return nil, nil
	}
	hash := sha256.Sum256(o.Data)
	var number int64
	err := p.t.Row(ctx, `SELECT number FROM originals WHERE hash = ?`, []any{hash[:]}, &number)
	if errors.Is(err, sql.ErrNoRows) {
		number, err = p.t.Insert(ctx, `INSERT INTO originals (hash, data) VALUES (?, ?)`, hash[:], o.Data)
	}
	return number, err
}

// repairOriginal stores the original of a version again if it is damaged and the entry has the same
// one, and reports whether it did.
func (p *change) repairOriginal(ctx context.Context, version int64, r entryRow) (bool, error) {
	if r.original.Media == "" {
		return false, nil
	}
	if _, err := loadOriginal(ctx, p.t, version); !errors.Is(err, assay.ErrDamaged) {
		return false, err
	}
	hash := sha256.Sum256(r.original.Data)
	n, err := p.t.Exec(ctx, `
UPDATE originals SET data = ?1 WHERE hash = ?2 AND number = (SELECT original FROM versions WHERE number = ?3)`,
		r.original.Data, hash[:], version)
	return n > 0, err
}

// loadOriginal reads the original of a version, which has no Media if there is none.
func loadOriginal(ctx context.Context, from Reader, version int64) (assay.Original, error) {
	var o assay.Original
	err := from.Each(ctx, `SELECT v.media, o.hash, o.data FROM versions v LEFT JOIN originals o ON o.number = v.original WHERE v.number = ?`,
		[]any{version}, func(scan func(...any) error) error {
			var hash []byte
			if err := scan(&o.Media, &hash, &o.Data); err != nil {
				return err
			}
			if sum := sha256.Sum256(o.Data); (hash != nil || o.Media != "") && !bytes.Equal(hash, sum[:]) {
				return damaged("its original was altered since it was stored; ingest it again with --verify")
			}
			return nil
		})
	return o, err
}

// Original implements store.Content.
func (c content) Original(ctx context.Context, id, version string) (assay.Original, error) {
	var o assay.Original
	err := c.db.View(ctx, func(s Reader) error {
		var number int64
		err := s.Row(ctx, `SELECT v.number FROM versions v JOIN documents d ON d.number = v.document WHERE d.id = ? AND v.version = ?`,
			[]any{id, version}, &number)
		if errors.Is(err, sql.ErrNoRows) {
			return assay.ErrNotFound
		}
		if err == nil {
			o, err = loadOriginal(ctx, s, number)
		}
		if err == nil && o.Media == "" {
			err = assay.ErrNotFound
		}
		return err
	})
	return o, wrap(err, "original of document %s, version %s", id, version)
}

// Versions implements store.Content.
func (c content) Versions(ctx context.Context, id string) ([]store.KeptVersion, error) {
	var all []store.KeptVersion
	err := c.db.View(ctx, func(s Reader) error {
		return s.Each(ctx, `
SELECT v.version, v.title, v.source_modified, v.replaced, v.media FROM versions v JOIN documents d ON d.number = v.document
WHERE d.id = ? ORDER BY v.number = d.version DESC, v.replaced DESC, v.number DESC`, []any{id}, func(scan func(...any) error) error {
			var v store.KeptVersion
			var modified string
			var replaced sql.NullInt64
			err := scan(&v.Version, &v.Title, &modified, &replaced, &v.Original)
			if err == nil {
				v.Modified, err = decodeTime(modified)
			}
			if replaced.Valid {
				v.Replaced = time.Unix(0, replaced.Int64).UTC()
			}
			all = append(all, v)
			return err
		})
	})
	return all, wrap(err, "versions of document %s", id)
}

// dropVersion removes a version with all that only it has, except its vectors.
func dropVersion(ctx context.Context, t Tx, version int64) error {
	var original sql.NullInt64
	if err := t.Row(ctx, `SELECT original FROM versions WHERE number = ?`, []any{version}, &original); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, `DELETE FROM versions WHERE number = ?`, version); err != nil || !original.Valid {
		return err
	}
	_, err := t.Exec(ctx, `
DELETE FROM originals WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM versions WHERE original = ?1)`, original.Int64)
	if err != nil {
		return fmt.Errorf("drop the original: %w", err)
	}
	return nil
}
