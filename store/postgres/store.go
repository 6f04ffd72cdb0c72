// Package postgres stores documents and runs in a PostgreSQL database, so that several servers on
// several machines share them. A [Store] is the database, and implements store.Store.
//
//	assay_system         the layout, the tenants, API keys and what else the store keeps about itself
//	assay_content_WORD   a tenant's documents, versions, chunks, vectors
//	assay_runs_WORD      a tenant's runs, their journals, the versions they cite, its settings
//
// WORD is the tenant's random identity. Each transaction works in one schema, which is all that its
// search path has. Row-level security is a second wall: the rows of a table exist only while the setting
// assay.tenant is the word of its schema, which each transaction sets too.
//
// Two roles are used. assay_owner owns the tables; migrations and the creation and deletion of tenants use
// it. Everything else has the role assay_app, which reads and writes rows, and can neither change a table
// nor a policy, nor a leaf of an audit log. Open refuses a server where that role is a superuser, may
// bypass row-level security, or is a member of the owner.
//
// A local folder has the files of leases, and the indexes that are derived from the content.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// A Store is a PostgreSQL database. It is safe for concurrent use.
type Store struct {
	*connector
	opts     relational.Options
	name     string // host and database
	identity string // random word
	dir      string // local folder of this store
	readOnly bool   // the server is a replica
	system   *database

	mu     sync.Mutex
	queues map[string]turn // of writing goroutines, by schema

	unlocked unlocked
}

var _ store.Store = (*Store)(nil)

// options are what the options of Open set.
type options struct {
	relational.Options
	dir              string
	readers, writers int32
	statementTimeout time.Duration
	dial             func(ctx context.Context, network, addr string) (net.Conn, error)
}

// An Option changes a default of Open.
type Option func(*options)

// WithClock sets the clock, which is time.Now by default. Leases, the times of runs and Prune use
// it. The clocks of servers that share a store must agree to a fraction of the lease time.
func WithClock(now func() time.Time) Option { return func(o *options) { o.Now = now } }

// WithLeaseTime sets how long the lease of a process on another machine counts after its last
// renewal; the default is 30 seconds. Leases are renewed three times as often.
func WithLeaseTime(d time.Duration) Option { return func(o *options) { o.LeaseTime = d } }

// WithFolder sets the local folder, which the processes of this machine share. It is
// assay/postgres in the user's cache folder by default.
func WithFolder(dir string) Option { return func(o *options) { o.dir = dir } }

// WithConnections sets how many connections the process opens at most for reading and for writing; the
// defaults are 16 and 8. Each Writer and each named lock has one more.
func WithConnections(readers, writers int) Option {
	return func(o *options) { o.readers, o.writers = int32(readers), int32(writers) }
}

// WithStatementTimeout sets how long a statement may take; the default is two minutes. Migrations, Check
// and Scrub take as long as they need.
func WithStatementTimeout(d time.Duration) Option {
	return func(o *options) { o.statementTimeout = d }
}

// WithDial sets how connections to the server are made, which is by net.Dialer by default.
func WithDial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(o *options) { o.dial = dial }
}

// Open opens the database at an address such as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the
// parameters of libpq. Several hosts with target_session_attrs=read-write name a primary and its
// replicas. Open creates the layout in a database that has none, and brings an older one to the current
// layout, while others that do the same wait.
//
// The error is assay.ErrForeign if the schema assay_system is another program's, assay.ErrNewer for a
// later layout, and assay.ErrReadOnly if something must be created and the user has no right to. A
// server that is a replica is opened for reading. Errors do not contain the password.
func Open(ctx context.Context, address string, opts ...Option) (*Store, error) {
	o := options{Options: relational.DefaultOptions(), readers: 16, writers: 8, statementTimeout: 2 * time.Minute}
	for _, opt := range opts {
		opt(&o)
	}
	config, err := parseURL(address, o)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o.Options, name: nameOf(&config.ConnConfig.Config), queues: map[string]turn{}}
	s.connector = &connector{url: config, timeout: o.statementTimeout, wait: openWait}
	if err := s.prepare(ctx); err != nil {
		return nil, wrap(err, "open the PostgreSQL database %s", s.name)
	}
	if s.connector, err = newConnector(config, o); err != nil {
		return nil, wrap(err, "open the PostgreSQL database %s", s.name)
	}
	if err := s.openFolder(o.dir); err != nil {
		return nil, errors.Join(wrap(err, "open the PostgreSQL database %s", s.name), s.Close())
	}
	s.system = s.database(tenancy{identity: s.identity, system: true}, runsPart)
	if err := s.removeFolders(ctx); err != nil {
		return nil, errors.Join(wrap(err, "open the PostgreSQL database %s", s.name), s.Close())
	}
	return s, nil
}

// nameOf names a database in errors.
func nameOf(c *pgconn.Config) string {
	u := url.URL{Host: net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), Path: c.Database}
	return u.String()[len("//"):]
}

// Name returns the host, the port and the name of the database.
func (s *Store) Name() string { return s.name }

// prepare checks the layout and the role of the application.
func (s *Store) prepare(ctx context.Context) (err error) {
	x, err := s.dial(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	l, err := prepare(ctx, x)
	if err != nil {
		return err
	}
	s.identity = l.identity
	var powerful bool
	err = x.row(`
SELECT rolsuper OR rolbypassrls OR pg_has_role(oid, '`+ownerRole+`', 'MEMBER'), pg_is_in_recovery() FROM pg_roles WHERE rolname = current_user`,
		nil, []any{&powerful, &s.readOnly})
	if err == nil && powerful {
		err = invalid("the role %s is a superuser, may bypass row-level security, or is a member of %s; it must not", appRole, ownerRole)
	}
	return err
}

// openFolder creates the local folder. Its name is that of the store, and it has a random word that
// tells it from the folders of other machines and containers, which have other leases.
func (s *Store) openFolder(dir string) error {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no folder for leases and indexes: %w", err)
		}
		dir = filepath.Join(cache, "assay", "postgres")
	}
	s.dir = filepath.Join(dir, s.identity)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	word, err := wordOf(filepath.Join(s.dir, "machine"))
	if err != nil {
		return err
	}
	host := relational.ThisHost()
	s.opts.Host = relational.Host{Machine: host.Machine + "/" + word}
	return nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	_ = s.unlocked.close() // they hold nothing
	s.connector.close()
	return nil
}

// queue returns the queue of the goroutines that write a schema.
func (s *Store) queue(schema string) turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[schema]
	if !ok {
		q = newTurn()
		s.queues[schema] = q
	}
	return q
}

// System implements store.Store.
func (s *Store) System(context.Context) (store.System, error) { return s.systemWith(s.system), nil }

func (s *Store) systemWith(d relational.Database) *relational.System {
	return relational.NewSystem(relational.SystemConfig{Database: d, Options: s.opts, CheckTenants: s.checkSchemas})
}

// checkReadOnly returns assay.ErrReadOnly if the server is a replica.
func (s *Store) checkReadOnly() error {
	if s.readOnly {
		return fmt.Errorf("the server is a replica: %w", assay.ErrReadOnly)
	}
	return nil
}
