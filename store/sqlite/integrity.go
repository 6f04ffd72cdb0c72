package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	driver "modernc.org/sqlite"

	"github.com/assay-rag/assay/store/internal/relational"
)

// Integrity implements relational.Database.
func (d *database) Integrity(ctx context.Context, s relational.Reader, report func(format string, args ...any)) error {
	err := s.Each(ctx, `PRAGMA integrity_check(10)`, nil, func(scan func(...any) error) error {
		var text string
		err := scan(&text)
		if err == nil && text != "ok" {
			report("%s", text)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = s.Each(ctx, `PRAGMA foreign_key_check`, nil, func(scan func(...any) error) error {
		var table, parent string
		var row, key any
		err := scan(&table, &row, &parent, &key)
		report("row %v of %s refers to no row of %s", row, table, parent)
		return err
	})
	if err != nil {
		return err
	}
	expected, err := d.schema.objects()
	if err != nil {
		return err
	}
	seen := 0
	err = s.Each(ctx, schemaQuery, nil, func(scan func(...any) error) error {
		var key, text string
		err := scan(&key, &text)
		seen++
		if expected[key] != text {
			report("%s is not that of this program", key)
		}
		return err
	})
	if err == nil && seen < len(expected) {
		report("%d tables or indexes of %d are missing", len(expected)-seen, len(expected))
	}
	return err
}

const schemaQuery = `SELECT type || ' ' || name, COALESCE(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'`

var schemaObjects sync.Map // objects by application ID

// objects returns the definitions of the schema's tables and indexes by type and name.
func (s schema) objects() (map[string]string, error) {
	if known, ok := schemaObjects.Load(s.applicationID); ok {
		return known.(map[string]string), nil
	}
	connector, err := driver.NewConnector(":memory:")
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(1)
	objects := map[string]string{}
	err = func() error {
		for _, m := range s.migrations {
			if _, err := pool.Exec(m); err != nil {
				return err
			}
		}
		rows, err := pool.Query(schemaQuery)
		if err != nil {
			return err
		}
		return eachRow(context.Background(), rows, func(scan func(...any) error) error {
			var key, text string
			err := scan(&key, &text)
			objects[key] = text
			return err
		})
	}()
	if err := errors.Join(err, pool.Close()); err != nil {
		return nil, err
	}
	schemaObjects.Store(s.applicationID, objects)
	return objects, nil
}
