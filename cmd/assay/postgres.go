package main

import (
	"context"

	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/postgres"
)

// openPostgres opens the store in a database.
func (l location) openPostgres(ctx context.Context) (store.Store, error) {
	s, err := postgres.Open(ctx, l.remote.Address(), postgres.WithFolder(l.dir))
	if err != nil {
		return nil, err
	}
	return s, nil
}
