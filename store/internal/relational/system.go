package relational

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/assay-rag/assay/store"
)

// A SystemConfig describes what a store keeps about itself, whose database is open.
type SystemConfig struct {
	Database Database
	Options  Options

	// CheckTenants compares the tenants with their entries in the registry, and reports differences.
	CheckTenants func(ctx context.Context, r store.Registry, report func(sequence int64, object, format string, args ...any)) error
}

// A System implements store.System. Its database has the tables of runs, of which it uses the audit
// log, the registry and uses.
type System struct {
	log auditLog
	db  Database

	mu      sync.Mutex
	updater Updater // nil until the first change
}

// NewSystem returns a system, which closes the database.
func NewSystem(c SystemConfig) *System {
	s := &System{db: c.Database}
	s.log = auditLog{d: c.Database, updater: s.writer, now: func() time.Time { return c.Options.Now() }, maxOffers: c.Options.MaxOffers, tenants: c.CheckTenants}
	return s
}

// Audit implements store.System.
func (s *System) Audit() store.Audit { return s.log }

// Registry implements store.System.
func (s *System) Registry() store.Registry { return registry{s.log} }

func (s *System) writer(ctx context.Context) (Updater, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.updater == nil {
		u, err := s.db.Updater(ctx)
		if err != nil {
			return nil, err
		}
		s.updater = u
	}
	return s.updater, nil
}

// Close implements store.System.
func (s *System) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.updater != nil {
		err, s.updater = s.updater.Close(), nil
	}
	return errors.Join(err, s.db.Close())
}
