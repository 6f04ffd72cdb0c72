package main

import (
	"context"
	"os"

	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/postgres"
)

// openPostgres opens the store in a database. Its folder is created if it is missing.
func (l location) openPostgres(ctx context.Context) (store.Store, error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	s, err := postgres.Open(ctx, l.remote.Address(), postgres.WithFolder(l.dir))
	if err != nil {
		return nil, err
	}
	return s, nil
}
