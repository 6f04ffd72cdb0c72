package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay/store/internal/relational"
)

// Check implements store.Tenant. It reads every row of every table, which verifies the checksums of pages
// where the server has them, and uncompresses every value.
func (t *Tenant) Check(ctx context.Context) error {
	for _, d := range []*database{t.content, t.runs} {
		err := d.View(ctx, func(r relational.Reader) error { return d.readAll(ctx, r) })
		if err != nil {
			return wrap(err, "check %s", d.schema(d.part))
		}
	}
	return nil
}

// readAll reads all rows of a schema.
func (d *database) readAll(ctx context.Context, r relational.Reader) error {
	if err := unlimited(ctx, r); err != nil {
		return err
	}
	tables, err := d.tables(ctx, r)
	if err != nil {
		return err
	}
	for _, name := range tables {
		var bytes int64
		err := r.Row(ctx, `SELECT CAST(COALESCE(SUM(octet_length(CAST(t AS text))), 0) AS bigint) FROM "`+name+`" t`, nil, &bytes)
		if err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// unlimited lets the further queries of a snapshot take as long as they need.
func unlimited(ctx context.Context, r relational.Reader) error {
	const limit = 24 * time.Hour
	v, ok := r.(*snapshot)
	if !ok {
		return nil
	}
	var setting string
	err := v.Row(ctx, `SELECT set_config('statement_timeout', '0', true)`, nil, &setting)
	v.s.limit = limit
	return err
}

// tables returns the names of the tables of the schema.
func (d *database) tables(ctx context.Context, r relational.Reader) ([]string, error) {
	var names []string
	err := r.Each(ctx, `
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r' ORDER BY 1`,
		[]any{d.schema(d.part)}, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		})
	return names, err
}

// Integrity implements relational.Database. It checks that every row has the row that it refers to, and
// compares the schema with one that the migrations make, which takes a user who may become the owner.
func (d *database) Integrity(ctx context.Context, r relational.Reader, report func(format string, args ...any)) error {
	if err := unlimited(ctx, r); err != nil {
		return err
	}
	if err := d.checkReferences(ctx, r, report); err != nil {
		return err
	}
	found, err := readDefinitions(func(query string, args []any, fn func(func(...any) error) error) error {
		return r.Each(ctx, query, args, fn)
	}, d.schema(d.part), d.identity)
	if err != nil {
		return err
	}
	wanted, err := d.s.definitionsOf(ctx, d)
	if err != nil || wanted == nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if wanted[key] != found[key] {
			report("%s is not that of this program", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if _, there := found[key]; !there {
			report("%s is missing", key)
		}
	}
	return nil
}

const referencesQuery = `
SELECT child.relname, a.attname, parent.relname, b.attname
FROM pg_constraint x JOIN pg_class child ON child.oid = x.conrelid JOIN pg_class parent ON parent.oid = x.confrelid
JOIN pg_namespace n ON n.oid = x.connamespace
JOIN pg_attribute a ON a.attrelid = x.conrelid AND a.attnum = x.conkey[1] JOIN pg_attribute b ON b.attrelid = x.confrelid AND b.attnum = x.confkey[1]
WHERE x.contype = 'f' AND n.nspname = ? ORDER BY 1, 2`

// checkReferences reports rows that refer to no row.
func (d *database) checkReferences(ctx context.Context, r relational.Reader, report func(format string, args ...any)) error {
	return r.Each(ctx, referencesQuery, []any{d.schema(d.part)}, func(scan func(...any) error) error {
		var child, column, parent, key string
		if err := scan(&child, &column, &parent, &key); err != nil {
			return err
		}
		var n int64
		err := r.Row(ctx, fmt.Sprintf(`SELECT COUNT(*) FROM %q c WHERE c.%q IS NOT NULL AND NOT EXISTS (SELECT 1 FROM %q p WHERE p.%q = c.%q)`,
			child, column, parent, key, column), nil, &n)
		if err == nil && n > 0 {
			report("%d rows of %s refer to no row of %s", n, child, parent)
		}
		return err
	})
}

// definitionsQuery returns what is defined in a schema as names and texts.
const definitionsQuery = `
SELECT 'table ' || c.relname, concat_ws(' ', c.relrowsecurity, c.relforcerowsecurity, pg_get_userbyid(c.relowner),
	(SELECT string_agg(p::text, ' ' ORDER BY p::text) FROM unnest(c.relacl) p))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1 AND c.relkind = 'r'
UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, l.collname, pg_get_expr(f.adbin, f.adrelid))
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
WHERE n.nspname = ?1 AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint ' || c.relname || '.' || x.conname, pg_get_constraintdef(x.oid) || ' ' || x.convalidated
FROM pg_constraint x JOIN pg_class c ON c.oid = x.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1
UNION ALL
SELECT 'index ' || c.relname, pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1
UNION ALL
SELECT 'policy ' || tablename || '.' || policyname, concat_ws(' ', permissive, roles, cmd, qual, with_check) FROM pg_policies WHERE schemaname = ?1
UNION ALL
SELECT 'trigger ' || c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid) || ' ' || CAST(t.tgenabled AS text)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1 AND NOT t.tgisinternal
UNION ALL
SELECT 'internal triggers of ' || c.relname, string_agg(CAST(t.tgenabled AS text), '')
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1 AND t.tgisinternal GROUP BY 1
UNION ALL
SELECT 'function ' || p.proname, pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ?1`

// readDefinitions reads what is defined in a schema. The names of the schema and the tenant are left out.
func readDefinitions(each func(string, []any, func(func(...any) error) error) error, schema, identity string) (map[string]string, error) {
	all := map[string]string{}
	plain := strings.NewReplacer(schema+".", "", identity, "")
	err := each(definitionsQuery, []any{schema}, func(scan func(...any) error) error {
		var key, text string
		err := scan(&key, &text)
		all[key] = plain.Replace(text)
		return err
	})
	return all, err
}

// definitions caches what the migrations define, by part and version of the server.
var definitions sync.Map // map[string]string by string

// definitionsOf returns what the migrations define for a database, or nil if the user may not become the
// owner.
func (s *Store) definitionsOf(ctx context.Context, d *database) (map[string]string, error) {
	if s.readOnly {
		return nil, nil
	}
	parts := []part{d.part}
	if d.system {
		parts = []part{systemPart, runsPart}
	}
	var version string
	if err := d.Row(ctx, `SELECT version()`, nil, &version); err != nil {
		return nil, err
	}
	key := fmt.Sprint(parts, version)
	if all, ok := definitions.Load(key); ok {
		return all.(map[string]string), nil
	}
	all, err := s.defined(ctx, parts)
	if err == nil && all != nil {
		definitions.Store(key, all)
	}
	return all, err
}

// defined creates a schema by the migrations, reads its definitions and drops it.
func (s *Store) defined(ctx context.Context, parts []part) (all map[string]string, err error) {
	const schema, identity = "assay_definitions", "DEFINITIONS"
	x, err := s.dial(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	err = x.script(ctx, `BEGIN; SET LOCAL ROLE `+ownerRole)
	if codeOf(err) == "42501" {
		return nil, x.script(ctx, `ROLLBACK`)
	}
	if err == nil {
		err = x.script(ctx, `SELECT pg_advisory_xact_lock(`+itoa(lockBase)+`, `+itoa(lockDefinitions)+`); CREATE SCHEMA `+schema)
	}
	for _, p := range parts {
		if err == nil {
			err = apply(ctx, x, schema, identity, p, 0)
		}
	}
	if err == nil && slices.Contains(parts, systemPart) {
		err = x.script(ctx, `GRANT SELECT ON layout, schemas TO `+appRole)
	}
	if err == nil {
		err = secure(ctx, x, schema, identity)
	}
	if err == nil {
		all, err = readDefinitions(func(query string, args []any, fn func(func(...any) error) error) error {
			return x.each(ctx, query, args, fn)
		}, schema, identity)
	}
	if x.broken != nil {
		return nil, err
	}
	return all, errors.Join(err, x.script(context.WithoutCancel(ctx), `ROLLBACK`))
}
