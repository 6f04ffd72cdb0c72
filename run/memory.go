package run

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
)

// Memory is a journal in memory, for tests and for runs that need not be kept. The zero Memory is
// empty and ready to use.
type Memory struct {
	mu      sync.Mutex
	records []assay.Record
	paths   map[string]map[string]bool // by run; the number of paths is the run's next ordinal
}

// Append implements Journal. Like a store, it refuses a duplicate path with assay.ErrInvalid.
func (m *Memory) Append(ctx context.Context, rec assay.Record) (assay.Record, error) {
	if err := ctx.Err(); err != nil {
		return assay.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	paths := m.paths[rec.Run]
	if paths[rec.Path] {
		return assay.Record{}, fmt.Errorf("journal holds step %q of run %q already: %w", rec.Path, rec.Run, assay.ErrInvalid)
	}
	rec.Sequence, rec.Ordinal = int64(len(m.records)+1), len(paths)
	sealed, err := journal.Seal(rec, journal.NewSalt())
	if err != nil {
		return assay.Record{}, err
	}
	rec.Bytes, rec.Leaf = sealed.Header, sealed.Leaf
	if paths == nil {
		paths = map[string]bool{}
		if m.paths == nil {
			m.paths = map[string]map[string]bool{}
		}
		m.paths[rec.Run] = paths
	}
	paths[rec.Path] = true
	m.records = append(m.records, rec)
	return rec, nil
}

// Records returns the records so far, in the order of Append.
func (m *Memory) Records() []assay.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}
