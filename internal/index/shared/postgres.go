package shared

import (
	"context"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/pgvector"
)

// A database is a PostgreSQL database with pgvector.
type database struct{ url string }

// Postgres returns the indexes in the database of a URL, in which package pgvector keeps them.
func Postgres(url string) Indexes { return database{url} }

func (d database) Open(ctx context.Context, source index.Source) (index.Follower, error) {
	x, err := pgvector.Open(ctx, d.url, source)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (d database) Remove(ctx context.Context, identity string) error {
	return pgvector.Drop(ctx, d.url, identity)
}

func (d database) Describe(context.Context) (string, error) {
	return "in the database of the store", nil
}

func (d database) Close() error { return nil }
