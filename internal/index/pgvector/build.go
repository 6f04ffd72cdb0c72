package pgvector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/assay-rag/assay/internal/index"
)

// A build is an HNSW index that is being built.
type build struct {
	done  chan struct{}
	err   error
	ended time.Time
}

// buildPause is the time after a failed build before another search tries again.
const buildPause = time.Minute

// Limits of the dimensions of HNSW indexes, on vectors and on vectors of 16 bits per dimension.
const (
	maxIndexed     = 2000
	maxIndexedHalf = 4000
)

// indexed returns the expression on vectors that HNSW indexes are on.
func indexed(dimensions int, value string) string {
	if dimensions <= maxIndexed {
		return value
	}
	return fmt.Sprintf("(%s::halfvec(%d))", value, dimensions)
}

// indexName returns the name of a model's HNSW index for a metric.
func indexName(model int32, metric index.Metric) string {
	return fmt.Sprintf("vector_%d_%s", model, metric)
}

const validIndex = `SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	WHERE c.relname = $1 AND c.relnamespace = $2::text::regnamespace`

// hasIndex reports whether there is an HNSW index for the query's metric.
func (n *neighbours) hasIndex(ctx context.Context) (bool, error) {
	if n.model.dimensions > maxIndexedHalf {
		return false, nil
	}
	return indexValid(ctx, n.tx, n.schema, indexName(n.model.no, n.vector.Metric))
}

type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

func indexValid(ctx context.Context, q querier, schema, name string) (valid bool, err error) {
	err = q.QueryRow(ctx, validIndex, name, pgx.Identifier{schema}.Sanitize()).Scan(&valid)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return valid, err
}

// buildIndex starts to build a model's HNSW index for a metric, unless a process is building it.
// Until it exists, searches read all vectors.
func (x *Index) buildIndex(schema string, m model, metric index.Metric) {
	if m.dimensions > maxIndexedHalf {
		return
	}
	name := indexName(m.no, metric)
	x.mu.Lock()
	defer x.mu.Unlock()
	if before := x.builds[name]; x.closed || before != nil && before.excludesAnother() {
		return
	}
	b := &build{done: make(chan struct{})}
	x.builds[name] = b
	x.calls.Add(1)
	go func() {
		defer x.calls.Done()
		defer close(b.done)
		b.err = x.build(x.lifetime, m, metric)
		b.ended = time.Now()
	}()
}

// excludesAnother reports whether the build is running or has just failed.
func (b *build) excludesAnother() bool {
	return b.running() || b.err != nil && time.Since(b.ended) < buildPause
}

func (b *build) running() bool {
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

// build builds an index beside searches and updates.
func (x *Index) build(ctx context.Context, m model, metric index.Metric) error {
	conn, err := x.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	name := indexName(m.no, metric)
	// The lock ends with the connection, even if this process is killed.
	key := lockKey(x.schema, name)
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, key).Scan(&locked); err != nil || !locked {
		return err
	}
	err = x.buildLocked(ctx, conn, m, metric)
	_, unlockErr := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, key)
	return errors.Join(err, unlockErr)
}

func (x *Index) buildLocked(ctx context.Context, conn *pgxpool.Conn, m model, metric index.Metric) error {
	name := indexName(m.no, metric)
	valid, err := indexValid(ctx, conn, x.schema, name)
	if err != nil || valid {
		return err
	}
	// What a build leaves that was interrupted is not valid. Concurrent builds do not run in
	// transactions, and neither in one message of several statements.
	class := "vector_"
	if m.dimensions > maxIndexed {
		class = "halfvec_"
	}
	for _, statement := range []string{
		`DROP INDEX CONCURRENTLY IF EXISTS ` + name,
		`SET maintenance_work_mem = '1GB'`,
		fmt.Sprintf(`CREATE INDEX CONCURRENTLY %s ON %s USING hnsw (%s %s) WITH (m = 16, ef_construction = 100)`,
			name, vectorTable(m.no), indexed(m.dimensions, "value"), class+measures[metric].class),
		`RESET maintenance_work_mem`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	return nil
}

// Settle waits until no HNSW index is being built by this process. It returns the errors of builds
// that have not been reported yet.
func (x *Index) Settle(ctx context.Context) error {
	x.mu.Lock()
	var running []*build
	for _, b := range x.builds {
		running = append(running, b)
	}
	clear(x.builds)
	x.mu.Unlock()
	var err error
	for _, b := range running {
		select {
		case <-b.done:
			err = errors.Join(err, b.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
