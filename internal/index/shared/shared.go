// Package shared opens the indexes that the processes of an installation share: in a PostgreSQL database
// with pgvector, or in an OpenSearch cluster. The index of a tenant is found by the identity of its
// content. So a tenant that is created under the name of a deleted one never gets the index of that.
package shared

import (
	"context"

	"github.com/assay-rag/assay/internal/index"
)

// Indexes are the indexes of all tenants of a store. They are safe for concurrent use.
type Indexes interface {
	// Open opens the index of a source, which must be index.Identified.
	Open(ctx context.Context, source index.Source) (index.Follower, error)

	// Remove deletes the index of a source with this identity, if there is one.
	Remove(ctx context.Context, identity string) error

	// Describe asks the server for its version and state, in words.
	Describe(ctx context.Context) (string, error)

	// Close ends the connections. All indexes must be closed before.
	Close() error
}
