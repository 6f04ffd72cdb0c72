package source

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"time"

	"github.com/assay-rag/assay"
)

// A Source is a place where documents live, such as a bucket, a repository or a wiki. Package
// sourcetest tests the contract.
//
// A failure that concerns one item is a *Skip, and the iteration continues. Any other error is the
// last value yielded: ctx's, ErrCursor, ErrCredentials, or another reason why the source cannot be
// read now. Sources honour Retry-After and retry transient failures a bounded number of times.
//
// Fetch is called from several goroutines, also while Changes or Sweep iterates.
type Source interface {
	// Changes yields the items that were added or changed since cursor, which is empty for all
	// items or a cursor that an earlier call yielded. It yields deleted items as far as the source
	// reports them. The error is ErrCursor if the source no longer accepts the cursor.
	Changes(ctx context.Context, cursor string) iter.Seq2[Change, error]

	// Sweep yields all items that exist now, with their ACLs, without reading their content. A sync
	// deletes the documents that a complete sweep did not yield. A sweep that could not list a part
	// of the source yields an error that is not a *Skip.
	Sweep(ctx context.Context) iter.Seq2[Item, error]

	// Fetch returns the content of an item that Changes or Sweep yielded. Its errors are *Skip
	// (Vanished if it no longer exists) or those above.
	Fetch(ctx context.Context, item Item) (Content, error)

	// Close releases all resources.
	Close() error
}

// A Watcher is a Source that notices changes at once.
type Watcher interface {
	// Watch calls changed when the watch has begun and after an item may have changed, until ctx ends,
	// and then returns nil. It may miss changes, so syncs at intervals are still needed.
	Watch(ctx context.Context, changed func()) error
}

// An Item is a document in a source, without its content. An item whose ACL cannot be determined is
// not yielded; it is a *Skip with the reason UnknownACL.
type Item struct {
	URI      string         `json:"uri"`                // unique and permanent, for users to open if the source has such an address
	Name     string         `json:"name"`               // file name with an extension, as a hint for the format
	Type     string         `json:"type,omitempty"`     // media type, if the source states it
	Version  string         `json:"version,omitempty"`  // equal for equal content; empty: not known, so the content must be fetched
	Metadata assay.Metadata `json:"metadata,omitempty"` // author, created, modified and the source's own keys
	ACL      assay.ACL      `json:"acl"`                // unrestricted if the source has no permissions
	Ref      string         `json:"ref,omitempty"`      // what Fetch needs to find the item, in the source's own form
	Size     int64          `json:"size,omitempty"`     // bytes; 0: not known
}

// A Change is an item that was added, changed or deleted.
type Change struct {
	Item    Item
	Deleted bool // only Item.URI is set

	// Cursor continues after this change and all before it. It is empty where the source cannot
	// continue. The last change of a complete iteration has a cursor; an iteration without changes
	// yields one Change with an empty URI and a cursor.
	Cursor string
}

// Errors of sources. Errors of a source wrap these, with a message that names the source.
var (
	ErrCursor      = errors.New("the source no longer accepts the cursor")
	ErrCredentials = errors.New("the source refuses the credentials")
)

// A Kind is a kind of source that users can add.
type Kind struct {
	Name   string // such as "s3"
	Short  string // one line of help
	Target string // form of the target, such as "s3://BUCKET[/PREFIX]"
	Help   string // what it reads, what it needs, what it maps to ACLs

	Options     []Option
	Credentials []Credential

	// DeletesInChanges reports that Changes yields every deletion, so that a sync needs no sweep
	// while its cursor is valid.
	DeletesInChanges bool

	// SweepOnly reports that the source has no feed of changes. A sync is a sweep, and Changes is
	// ChangesOf(Sweep).
	SweepOnly bool

	// KeepsMissing reports that an item may still exist although a sweep does not yield it, as the
	// older entries of a feed do. A sync deletes only what Changes reports as deleted.
	KeepsMissing bool

	// Hosts are the hosts that the source connects to besides those of its target and of the options
	// that are addresses, in the form of the egress rules (docs/egress.md).
	Hosts []string

	// Absolute, if set, returns the form of a target that does not depend on the working folder. It
	// is the form that is stored.
	Absolute func(target string) (string, error)

	// Open checks the configuration without reaching the source. The error is assay.ErrInvalid.
	Open func(ctx context.Context, c Config) (Source, error)
}

// An Option is a setting of a source that is not secret.
type Option struct {
	Name    string // lower case with dashes
	Help    string
	Default string
}

// A Credential is a secret that a source needs. It comes from the environment or a file and is
// never stored.
type Credential struct {
	Name     string // lower case with dashes, such as "token"
	Env      string // environment variable that holds it unless another is named
	Help     string
	Optional bool
}

// A Config is the configuration of a source. WithDefaults fills in the fields that are nil or 0.
type Config struct {
	Target  string
	Options map[string]string // by Option.Name; every option of the kind has a value

	// Dir is a folder of this source alone, which the source may create and use as a cache. Losing
	// it loses no data. Empty: no cache.
	Dir string

	// Credential returns the value of a credential, or "" if an optional one has none.
	// nil means that there are none.
	Credential func(name string) (string, error)

	// HTTP is used for all requests; nil means a client that reaches public addresses only, or also
	// a private one of Target if Options[AllowPrivate] is "true".
	HTTP *http.Client

	// Dial makes connections other than those of HTTP, such as a database's; nil means one that
	// reaches only the host of Target.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// MaxBytes is the size above which an item is skipped; 0 means DefaultMaxFileBytes.
	MaxBytes int64

	// Now and Sleep are the clock of retries; nil means the real one.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}
