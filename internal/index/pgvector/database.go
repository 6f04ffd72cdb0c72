package pgvector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	vectortypes "github.com/pgvector/pgvector-go/pgx"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// maxConnections is the largest number of connections to a database, besides one that creates and drops
// schemas, unless its URL has the parameter pool_max_conns.
const maxConnections = 16

// A Database is a pool of connections to a PostgreSQL database, which the indexes of all tenants in it
// share. It is safe for concurrent use.
type Database struct {
	config *pgxpool.Config

	// alone is a lock that is held while a connection beside the pool is used. Sending to it acquires
	// the lock.
	alone chan struct{}

	mu   sync.Mutex
	pool *pgxpool.Pool // nil: no index was opened yet
}

// Connect returns the indexes in the database of a URL (postgres://…). It makes no connection. The error
// wraps assay.ErrInvalid if the URL is not valid.
func Connect(url string) (*Database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("index in PostgreSQL: %w: %w", assay.ErrInvalid, err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = maxConnections
	}
	return &Database{config: config, alone: make(chan struct{}, 1)}, nil
}

// Open opens the index of a source in the schema SchemaOf(identity), which it creates if it does not
// exist. The source must be index.Identified. The extension vector, 0.8 or later, must exist, or the user
// must be allowed to create it. The database must stay open until the index is closed.
//
// The error wraps assay.ErrInvalid if the source or the database is not suitable, and assay.ErrNewer if a
// newer version of the program wrote the index.
func (d *Database) Open(ctx context.Context, source index.Source) (*Index, error) {
	named, ok := source.(index.Identified)
	if !ok {
		return nil, fmt.Errorf("open index in PostgreSQL: the source has no identity: %w", assay.ErrInvalid)
	}
	identity, err := named.Identity(ctx)
	if err != nil {
		return nil, fmt.Errorf("open index in PostgreSQL: %w", err)
	}
	return d.open(ctx, SchemaOf(identity), identity, source, defaultSettings)
}

func (d *Database) open(ctx context.Context, schema, identity string, source index.Source, s settings) (*Index, error) {
	x := &Index{source: source, identity: identity, schema: schema, settings: s, updating: make(chan struct{}, 1), builds: make(map[string]*build)}
	var err error
	if x.pool, err = d.schema(ctx, schema, identity); err != nil {
		return nil, fmt.Errorf("open index in PostgreSQL: %w", err)
	}
	x.lifetime, x.end = context.WithCancel(context.Background())
	v, err := x.readState(ctx)
	if err != nil {
		return nil, fmt.Errorf("open index in PostgreSQL: %w", err)
	}
	x.sequence.Store(v.sequence)
	return x, nil
}

// schema creates a schema, unless it exists, and returns its connections.
func (d *Database) schema(ctx context.Context, schema, identity string) (*schemaPool, error) {
	var extension string
	err := d.beside(ctx, func(conn *pgx.Conn) (err error) {
		extension, err = prepare(ctx, conn, schema, identity)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool == nil {
		if d.pool, err = newPool(d.config.Copy(), extension); err != nil {
			return nil, err
		}
	}
	return &schemaPool{d.pool, pgx.Identifier{schema}.Sanitize() + ", " + pgx.Identifier{extension}.Sanitize()}, nil
}

// newPool returns a pool of connections that each acquisition sets to a schema.
func newPool(config *pgxpool.Config, extension string) (*pgxpool.Pool, error) {
	parameters := config.ConnConfig.RuntimeParams
	for name, value := range map[string]string{
		"application_name": "assay",
		"search_path":      pgx.Identifier{extension}.Sanitize(),
		// Statements depend on the sizes of sets that only their parameters tell. Compiling them
		// takes longer than running them.
		"plan_cache_mode": "force_custom_plan",
		"jit":             "off",
		"work_mem":        "64MB",
	} {
		if _, given := parameters[name]; !given || name == "search_path" {
			parameters[name] = value
		}
	}
	config.MaxConnIdleTime = min(config.MaxConnIdleTime, time.Minute)
	config.AfterConnect = vectortypes.RegisterTypes
	config.PrepareConn = setPath
	return pgxpool.NewWithConfig(context.Background(), config)
}

// Drop removes the index of a source from the database, if there is one.
func (d *Database) Drop(ctx context.Context, identity string) error {
	err := d.beside(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{SchemaOf(identity)}.Sanitize()+` CASCADE`)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop index in PostgreSQL: %w", err)
	}
	return nil
}

// beside calls f with a connection beside the pool, one call after the other.
func (d *Database) beside(ctx context.Context, f func(*pgx.Conn) error) error {
	select {
	case d.alone <- struct{}{}:
		defer func() { <-d.alone }()
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := pgx.ConnectConfig(ctx, d.config.ConnConfig.Copy())
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(context.WithoutCancel(ctx)))
}

// Close closes the connections. All indexes must be closed before.
func (d *Database) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool != nil {
		d.pool.Close()
	}
}

// A schemaPool is the pool of a database, whose connections work on one schema.
type schemaPool struct {
	pool *pgxpool.Pool
	path string // search_path
}

type pathKey struct{}

func (p *schemaPool) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, pathKey{}, p.path)
}

// BeginTx begins a transaction in the schema.
func (p *schemaPool) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	return p.pool.BeginTx(p.with(ctx), o)
}

// Acquire returns a connection that works on the schema.
func (p *schemaPool) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	return p.pool.Acquire(p.with(ctx))
}

// QueryRow runs a query in the schema.
func (p *schemaPool) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	return p.pool.QueryRow(p.with(ctx), query, args...)
}

// Exec runs a statement in the schema.
func (p *schemaPool) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	return p.pool.Exec(p.with(ctx), statement, args...)
}

// setPath sets a connection to the schema of a schemaPool before it is used. Prepared statements are
// forgotten, because the tables of another schema may have vectors of another size.
func setPath(ctx context.Context, conn *pgx.Conn) (bool, error) {
	const key = "assay search_path"
	path, ok := ctx.Value(pathKey{}).(string)
	if !ok {
		return false, errors.New("a connection is used without a schema")
	}
	data := conn.PgConn().CustomData()
	if data[key] == path {
		return true, nil
	}
	delete(data, key)
	_, err := conn.PgConn().Exec(ctx, `SET search_path = `+path).ReadAll()
	if err = cmp.Or(err, conn.DeallocateAll(ctx)); err != nil {
		return false, err
	}
	data[key] = path
	return true, nil
}
