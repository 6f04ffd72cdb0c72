package relational

import (
	"context"
	"database/sql"
	"errors"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// aboutActs selects the acts about a run, and those that erased one of them.
const aboutActs = `
SELECT l.sequence, l.header, l.leaf, a.payload, a.salt, '' FROM acts a JOIN log l ON l.sequence = a.sequence
WHERE a.subject = ?1 OR a.kind = 'act.erased' AND a.subject IN (SELECT CAST(b.sequence AS TEXT) FROM acts b WHERE b.subject = ?1)
UNION ALL`

// aboutQuery selects the records of a run and the acts about it.
const aboutQuery = aboutActs + `
SELECT l.sequence, l.header, l.leaf, r.payload, r.salt, runs.id FROM runs JOIN records r ON r.run = runs.number JOIN log l ON l.sequence = r.sequence
WHERE runs.id = ?1
ORDER BY 1`

// aboutDeletedQuery is aboutQuery for a run whose records have no rows any more.
func aboutDeletedQuery(d Dialect) string {
	return aboutActs + `
SELECT l.sequence, l.header, l.leaf, NULL, NULL, '' FROM log l WHERE ` + d.Member("l.header", "run") + ` = ?1
ORDER BY 1`
}

// About implements store.Audit.
func (l auditLog) About(ctx context.Context, run string) (store.RunFile, error) {
	var f store.RunFile
	err := l.d.View(ctx, func(s Reader) error {
		var number int64
		var request, answer sql.NullString
		err := s.Row(ctx, `SELECT number, question, request, answer FROM runs WHERE id = ?`, []any{run}, &number, &f.Question, &request, &answer)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		f.Stored = err == nil
		f.Request, f.Answer = bytesOf(request), bytesOf(answer)
		query := aboutQuery
		if !f.Stored {
			query = aboutDeletedQuery(l.d.Dialect())
		}
		err = s.Each(ctx, query, []any{run}, func(scan func(...any) error) error {
			e, err := scanEntry(scan)
			f.Entries = append(f.Entries, e)
			return err
		})
		if err != nil {
			return err
		}
		if len(f.Entries) == 0 {
			return assay.ErrNotFound
		}
		return s.Each(ctx, `SELECT v.data FROM value_uses u JOIN long_values v ON v.number = u.value WHERE u.run = ? ORDER BY v.hash`, []any{number},
			func(scan func(...any) error) error {
				var data []byte
				err := scan(&data)
				f.Values = append(f.Values, data)
				return err
			})
	})
	return f, wrap(err, "log of run %s", run)
}

// bytesOf returns the bytes of a text; nil: NULL.
func bytesOf(text sql.NullString) []byte {
	if !text.Valid {
		return nil
	}
	return []byte(text.String)
}
