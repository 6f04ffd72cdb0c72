package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/internal/index/shared"
)

// sharedIndexes are the connections of this process to indexes that others share, by the settings that
// they were made with. The settings of a server may change.
type sharedIndexes struct {
	mu   sync.Mutex
	open []openIndexes
}

type openIndexes struct {
	settings string
	indexes  shared.Indexes
}

// of returns the indexes of a store, which stay open until close.
func (s *sharedIndexes) of(ctx context.Context, store config.Store) (shared.Indexes, error) {
	c := store.Cluster
	settings := fmt.Sprint(store.Index, store.Address())
	if store.Index == config.OpenSearch {
		settings = fmt.Sprintf("%q %q %q %q %q %d %v", c.Addresses, c.Username, c.Password.Reveal(), c.CA, c.Prefix, c.Shards, c.Offline)
		if c.Replicas != nil {
			settings += fmt.Sprint(" ", *c.Replicas)
		}
		if c.AWS != nil {
			settings += fmt.Sprintf(" %q", *c.AWS)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		if o.settings == settings {
			return o.indexes, nil
		}
	}
	var x shared.Indexes
	var err error
	if store.Index == config.PGVector {
		x, err = shared.Postgres(store.Address())
	} else {
		x, err = shared.OpenSearch(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	s.open = append(s.open, openIndexes{settings, x})
	return x, nil
}

// close ends the connections. s may be nil.
func (s *sharedIndexes) close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, o := range s.open {
		errs = append(errs, o.indexes.Close())
	}
	s.open = nil
	return errors.Join(errs...)
}

// checkIndex checks the servers of a shared index.
func (l location) checkIndex(ctx context.Context) config.Check {
	check := config.Check{Name: "shared index"}
	x, err := l.indexes.of(ctx, l.remote)
	if err == nil {
		check.Detail, err = x.Describe(ctx)
	}
	if err != nil {
		check.Err, check.Detail = err, err.Error()
		check.Hint = "check that the nodes run, and addresses, username and password (docs/scale.md)"
		return check
	}
	check.OK, check.Detail = true, l.remote.Index+": "+check.Detail
	return check
}
