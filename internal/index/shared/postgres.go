package shared

import (
	"context"

	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/pgvector"
)

// A database is a PostgreSQL database with pgvector.
type database struct{ *pgvector.Database }

// Postgres returns the indexes in the database of a URL, in which package pgvector keeps them. It connects
// to nothing. An invalid URL is assay.ErrInvalid.
func Postgres(url string) (Indexes, error) {
	d, err := pgvector.Connect(url)
	if err != nil {
		return nil, err
	}
	return database{d}, nil
}

// Open implements Indexes.
func (d database) Open(ctx context.Context, source index.Source) (index.Follower, error) {
	x, err := d.Database.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Remove implements Indexes.
func (d database) Remove(ctx context.Context, identity string) error { return d.Drop(ctx, identity) }

// Describe implements Indexes. The check of the store describes the server.
func (d database) Describe(context.Context) (string, error) {
	return "in the database of the store", nil
}

// Close implements Indexes.
func (d database) Close() error {
	d.Database.Close()
	return nil
}
