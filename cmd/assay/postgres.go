package main

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// openPostgres opens the store in a database.
func (l location) openPostgres(context.Context) (store.Store, error) {
	return nil, fmt.Errorf("open the store %s: %w", l, assay.ErrUnavailable)
}
