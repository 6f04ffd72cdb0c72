package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// A Tenant is one tenant's data. It implements store.Tenant.
type Tenant struct {
	*rows
	tenancy

	s             *Store
	content, runs *database
}

// rows is what a tenant has in its tables.
type rows = relational.Tenant

var _ store.Tenant = (*Tenant)(nil)

// openTenant opens the schemas of a tenant. The error is assay.ErrDamaged if they are missing.
func (s *Store) openTenant(ctx context.Context, name, identity string) (*Tenant, error) {
	t := &Tenant{s: s, tenancy: tenancy{identity: identity}}
	if err := checkIdentity(identity); err != nil {
		return nil, err
	}
	err := s.system.Row(ctx, `SELECT number FROM schemas WHERE identity = ?`, []any{identity}, &scanInt32{&t.number})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, damaged("its schemas are missing")
	}
	if err != nil {
		return nil, err
	}
	t.content, t.runs = s.database(t.tenancy, contentPart), s.database(t.tenancy, runsPart)
	for _, d := range []*database{t.content, t.runs} {
		var word string
		err := d.Row(ctx, `SELECT tenant FROM store`, nil, &word)
		if code := codeOf(err); code == "42P01" || code == "3F000" || errors.Is(err, sql.ErrNoRows) || err == nil && word != identity {
			return nil, damaged("the schema %s is missing, or is not this tenant's", d.schema(d.part))
		}
		if err != nil {
			return nil, err
		}
	}
	t.rows = relational.NewTenant(relational.Config{
		Name: name, Content: t.content, Runs: t.runs, Place: place{t}, ReadOnly: s.readOnly, Options: s.opts,
	})
	return t, nil
}

// A place is where a tenant is. It implements relational.Place.
type place struct{ t *Tenant }

// Name implements relational.Place.
func (p place) Name() string { return p.t.s.name }

// LockWriter implements relational.Place.
func (p place) LockWriter(ctx context.Context) (relational.Updater, func() error, error) {
	u, release, err := p.t.lockWriter(ctx)
	if err != nil {
		return nil, nil, wrap(err, "write the content of tenant %s", p.t.Name())
	}
	return u, release, nil
}

// LockKept implements relational.Place. A copy of a database is one state of all schemas, so that nothing
// needs to be kept for it.
func (p place) LockKept(context.Context) (unlock func() error, ok bool, err error) {
	return func() error { return nil }, true, nil
}

// Leases implements relational.Place.
func (p place) Leases() string { return filepath.Join(p.t.folder(), "leases") }

// folder returns the local folder of the tenant.
func (t *Tenant) folder() string { return filepath.Join(t.s.dir, t.identity) }

// IndexDir implements store.Tenant. The folder is in the local one.
func (t *Tenant) IndexDir() string { return filepath.Join(t.folder(), "index") }

const sizeQuery = `
SELECT CAST(COALESCE(SUM(pg_total_relation_size(c.oid)), 0) AS bigint) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND c.relkind = 'r'`

// Size implements store.Tenant. It counts tables with their indexes and free space.
func (t *Tenant) Size(ctx context.Context) (store.Size, error) {
	var size store.Size
	err := t.content.Row(ctx, sizeQuery, []any{t.schema(contentPart)}, &size.Content)
	if err == nil {
		err = t.runs.Row(ctx, sizeQuery, []any{t.schema(runsPart)}, &size.Runs)
	}
	return size, wrap(err, "size of tenant %s", t.Name())
}

// Scrub implements store.Tenant. It rewrites every table without the rows that were removed (VACUUM FULL),
// which locks it meanwhile, so that runs and searches wait. The error is assay.ErrLocked if a
// transaction keeps the tables in use, or an older one may still read what was removed.
//
// What was removed stays where the server copied it before: in the write-ahead log until its files are
// reused, in archives and backups of it, in replicas until they have replayed the rewriting, and in freed
// blocks of the file system.
func (t *Tenant) Scrub(ctx context.Context, content bool) error {
	if err := t.CheckWritable(); err != nil {
		return err
	}
	schemas := []string{t.schema(runsPart)}
	if content {
		schemas = append(schemas, t.schema(contentPart))
	}
	for _, schema := range schemas {
		if err := t.s.rewrite(ctx, schema); err != nil {
			return wrap(err, "remove erased bytes from %s", schema)
		}
	}
	return nil
}

// rewrite rewrites the tables of a schema.
func (s *Store) rewrite(ctx context.Context, schema string) (err error) {
	x, err := s.dial(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := x.script(ctx, `SET ROLE `+ownerRole+`; SET statement_timeout = 0`); err != nil {
		return roleError(err)
	}
	if err := waitForReaders(ctx, x); err != nil {
		return err
	}
	var tables []string
	err = x.each(ctx, `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND c.relkind = 'r' ORDER BY 1`, []any{schema}, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		tables = append(tables, name)
		return err
	})
	for _, name := range tables {
		if err == nil {
			err = x.script(ctx, `VACUUM (FULL) `+name)
		}
	}
	return err
}

// waitForReaders waits until no transaction sees an older state than the present one, for which VACUUM
// would keep rows. The error is assay.ErrLocked if that takes too long.
func waitForReaders(ctx context.Context, x *session) error {
	const pause = 50 * time.Millisecond
	var next string
	if err := x.row(`SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text)`, nil, []any{&next}); err != nil {
		return err
	}
	deadline := time.Now().Add(lockWait)
	for {
		var older int
		err := x.row(`
SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND backend_type IN ('client backend', 'walsender') AND GREATEST(age(backend_xid), age(backend_xmin)) > age(CAST(CAST(? AS xid8) AS xid))`,
			[]any{next}, []any{&older})
		if err != nil || older == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d transactions read an older state: %w", older, assay.ErrLocked)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
