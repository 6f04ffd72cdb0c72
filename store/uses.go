package store

import (
	"context"
	"time"
)

// Uses remembers when things were last used, API keys above all. It is no evidence: it is neither in
// the audit log nor counted by Registry.Version.
type Uses interface {
	// Touch records that name was used at a time, which is kept to the second. It writes only if the
	// recorded time is older than every before it. Names are those of the registry.
	Touch(ctx context.Context, name string, at time.Time, every time.Duration) error

	// Last returns when each name was last used.
	Last(ctx context.Context) (map[string]time.Time, error)

	// Forget removes names. Unknown ones are ignored.
	Forget(ctx context.Context, names ...string) error
}
