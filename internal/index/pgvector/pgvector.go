package pgvector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// An Index is the index of one source in a PostgreSQL database. It implements index.Index. Any
// number of Indexes in any number of processes may work on one schema.
type Index struct {
	source   index.Source
	identity string
	schema   string
	settings settings
	pool     *schemaPool

	sequence atomic.Int64
	sights   sightCache

	// updating is a lock that is held while this process reads the source, so that one connection
	// at most waits for the lock in the database. Sending to it acquires the lock.
	updating chan struct{}

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // calls and builds in progress
	builds map[string]*build

	lifetime context.Context // of builds
	end      context.CancelFunc
}

// settings are sizes that tests can reduce.
type settings struct {
	batchBytes  int // of text that become rows at a time
	vectorBytes int // of vectors that become rows at a time
	counts      int // distinct counts that are written at a time

	// exact is the number of eligible vectors up to which Nearest reads all of them.
	exact int

	// scan is the least hnsw.ef_search, the number of candidates of an approximate search.
	scan int

	// few is how many times more chunks than an access sees there must be for its searches to begin with
	// the documents that it sees.
	few int
}

var defaultSettings = settings{batchBytes: 4 << 20, vectorBytes: 32 << 20, counts: 500_000, exact: 10_000, scan: 400, few: 20}

var _ index.Index = (*Index)(nil)

// Sequence implements index.Index.
func (x *Index) Sequence() int64 { return x.sequence.Load() }

// Close implements index.Index. It waits for calls in progress and abandons builds.
func (x *Index) Close() error {
	x.end()
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.calls.Wait()
	return nil
}

// use marks the beginning of a call. The caller must call x.calls.Done.
func (x *Index) use() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return fmt.Errorf("index: %w", fs.ErrClosed)
	}
	x.calls.Add(1)
	return nil
}

// A version is the state of an index that a transaction reads.
type version struct {
	epoch    int64
	sequence int64
	model    model
	foreign  bool // of another source or an older format: to be read from the source again
}

// A model is a row of the table model.
type model struct {
	no         int32 // 0: the index has no vectors of the model
	dimensions int
	sequence   int64
}

// errRestart means that the index was begun anew while a transaction looked at it.
var errRestart = errors.New("the index was begun anew")

const versionQuery = `SELECT s.format, s.identity, s.epoch, s.sequence, coalesce(m.no, 0), coalesce(m.dimensions, 0), coalesce(m.sequence, 0)
	FROM state s LEFT JOIN model m ON m.name = $1`

// readVersion reads the state of the index and a model.
func (x *Index) readVersion(ctx context.Context, tx pgx.Tx, name string) (v version, err error) {
	var written int
	var identity string
	err = tx.QueryRow(ctx, versionQuery, encode(name)).Scan(&written, &identity, &v.epoch, &v.sequence, &v.model.no, &v.model.dimensions, &v.model.sequence)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return v, errRestart
	case err != nil:
		return v, err
	case written > format:
		return v, fmt.Errorf("the index has the format %d, this version reads %d: %w", written, format, assay.ErrNewer)
	}
	v.foreign = written < format || identity != encode(x.identity)
	return v, nil
}

// readState returns the version of an index that is opened. Its sequence is 0 if the next search
// reads the source from the beginning.
func (x *Index) readState(ctx context.Context) (v version, err error) {
	sequence, err := x.source.Sequence(ctx)
	if err != nil {
		return v, err
	}
	err = x.reading(ctx, func(tx pgx.Tx) (err error) {
		v, err = x.readVersion(ctx, tx, "")
		return err
	})
	if v.foreign || v.sequence > sequence {
		v.sequence = 0
	}
	return v, err
}

// reading runs f in a transaction that reads one snapshot of the database.
func (x *Index) reading(ctx context.Context, f func(tx pgx.Tx) error) error {
	for {
		tx, err := x.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err == nil {
			err = errors.Join(f(tx), endTx(ctx, tx))
		}
		if !errors.Is(err, errRestart) || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// endTx ends a transaction that wrote nothing.
func endTx(ctx context.Context, tx pgx.Tx) error {
	if err := tx.Rollback(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

// A snapshot is the state of the index that one call reads.
type snapshot struct {
	version
	tx pgx.Tx
}

// current runs f, once or twice, on a snapshot that includes everything that the source had committed when current
// was called, and all vectors of the named model; empty: of none.
func (x *Index) current(ctx context.Context, name string, f func(s *snapshot) error) error {
	for again := true; ; again = false {
		s, err := x.begin(ctx, name)
		if err != nil {
			return err
		}
		err = f(s)
		err = cmp.Or(ctx.Err(), errors.Join(err, endTx(ctx, s.tx)))
		if !again || !missing(err) {
			return err
		}
		// The vectors of a model were dropped since the snapshot was taken.
	}
}

// begin returns the snapshot of current. The caller must end its transaction.
func (x *Index) begin(ctx context.Context, name string) (*snapshot, error) {
	wanted, err := x.source.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	for prepared := false; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tx, err := x.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return nil, cmp.Or(ctx.Err(), err)
		}
		s := &snapshot{tx: tx}
		s.version, err = x.readVersion(ctx, tx, name)
		fresh := false
		if err == nil {
			fresh, err = x.isCurrent(ctx, s.version, wanted, name)
		}
		if err == nil && fresh {
			x.sequence.Store(s.sequence)
			return s, nil
		}
		err = errors.Join(err, endTx(ctx, tx))
		if err == nil {
			err = x.update(ctx, name)
		}
		if missing(err) && !prepared { // the schema was dropped
			prepared = true
			err = x.prepareAgain(ctx)
		}
		if err != nil && !errors.Is(err, errRestart) {
			return nil, cmp.Or(ctx.Err(), err)
		}
	}
}

// missing reports whether an error is that of a table that does not exist.
func missing(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == "42P01"
}

// prepareAgain creates the schema after it was dropped.
func (x *Index) prepareAgain(ctx context.Context) error {
	conn, err := x.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = prepare(ctx, conn.Conn(), x.schema, x.identity)
	return err
}

// isCurrent reports whether a version includes what the source has committed up to the wanted
// sequence, and the vectors of a model.
func (x *Index) isCurrent(ctx context.Context, v version, wanted int64, name string) (bool, error) {
	if v.foreign {
		return false, nil
	}
	if v.sequence > wanted { // another process has read later changes, or the source was replaced
		var err error
		if wanted, err = x.source.Sequence(ctx); err != nil || v.sequence > wanted {
			return false, err
		}
	} else if v.sequence < wanted {
		return false, nil
	}
	vectors, ok := x.source.(index.VectorSource)
	if !ok || name == "" || v.model.no > 0 && v.model.sequence == v.sequence {
		return true, nil
	}
	if v.model.no > 0 {
		return false, nil
	}
	known, err := hasModel(ctx, vectors, name)
	return !known, err
}

// CatchUp brings the index up to date with the source's documents, as the next search would.
func (x *Index) CatchUp(ctx context.Context) error {
	if err := x.use(); err != nil {
		return err
	}
	defer x.calls.Done()
	if err := x.current(ctx, "", func(*snapshot) error { return nil }); err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	return nil
}

// Flush implements index.Index. It reads the documents and the vectors of all models; everything
// else is in the database already.
func (x *Index) Flush(ctx context.Context) error {
	if err := x.use(); err != nil {
		return err
	}
	defer x.calls.Done()
	names := []string{""}
	if vectors, ok := x.source.(index.VectorSource); ok {
		list, err := vectors.Models(ctx)
		if err != nil {
			return fmt.Errorf("flush index: %w", err)
		}
		names = append(names, list...)
	}
	for _, name := range names {
		if err := x.current(ctx, name, func(*snapshot) error { return nil }); err != nil {
			return fmt.Errorf("flush index: %w", err)
		}
	}
	return nil
}

// Size returns the number of bytes that the tables and indexes take.
func (x *Index) Size(ctx context.Context) (bytes int64, err error) {
	if err := x.use(); err != nil {
		return 0, err
	}
	defer x.calls.Done()
	const query = `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
		WHERE relkind = 'r' AND relnamespace = $1::text::regnamespace`
	if err := x.pool.QueryRow(ctx, query, pgx.Identifier{x.schema}.Sanitize()).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("size of the index: %w", err)
	}
	return bytes, nil
}

// retried reports an error after which a transaction can be tried again.
func retried(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && (failed.Code == "40P01" || failed.Code == "40001")
}
