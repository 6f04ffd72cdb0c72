package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/assay-rag/assay"
)

// An Act is something that happened besides the steps of a run: a tenant was created, a key revoked,
// a run deleted, an ingest finished. It becomes an entry of the audit log.
type Act struct {
	Kind    string          // object and participle, "key.revoked": a-z, '_' and '.'
	Subject string          // identifies the object; it stays when the act is erased, so it names no person
	Actor   assay.Principal // who did it; zero: the program itself
	Reason  string          // given by the actor; may be empty
	Detail  json.RawMessage // any JSON; nil: none
}

// A LogEntry is one leaf of an audit log: a record of a run, or an act.
type LogEntry struct {
	Sequence int64  // from 1; the leaf's index in the Merkle tree is Sequence - 1
	Header   []byte // the leaf's exact bytes, canonical JSON with the salted hash of the payload
	Leaf     [32]byte

	// Payload and Salt are the part of the leaf that can be erased. They are nil if it was.
	Payload []byte
	Salt    []byte

	Run string // ID of the run whose record it is; empty: an act
}

// A RunFile is what is stored about a run, byte for byte.
type RunFile struct {
	Stored   bool       // false: the run was deleted
	Question string     // the run's row; empty if it was erased or deleted
	Request  []byte     // JSON; nil: none
	Answer   []byte     // JSON; nil: none
	Entries  []LogEntry // the run's records and the acts about it, by Sequence
	Values   [][]byte   // long values that its records refer to
}

// An Audit is the audit log of a tenant or of the store: a Merkle tree (RFC 6962) over every record
// of every run and every act. Entries are only ever appended, each in the transaction of what it
// describes.
type Audit interface {
	// Identity returns a random word that identifies the log permanently.
	Identity(ctx context.Context) (string, error)

	// Append appends acts of which nothing else is stored, in one transaction. An act whose Kind or
	// Detail has no valid form is assay.ErrInvalid.
	Append(ctx context.Context, acts ...Act) error

	// Size returns the number of entries. Acts on content are counted once they have reached the
	// log: Size, Entries and Append bring them there.
	Size(ctx context.Context) (int64, error)

	// Entries yields the entries with a sequence in (after, upTo], from one snapshot. It checks no
	// hash. The error is assay.ErrDamaged if one is missing.
	Entries(ctx context.Context, after, upTo int64) iter.Seq2[LogEntry, error]

	// About returns what the log and the store have about a run, from one snapshot. It checks no hash.
	// Of a deleted run only the entries are left, whose search reads every header. The error is
	// assay.ErrNotFound if there is nothing.
	About(ctx context.Context, run string) (RunFile, error)

	// Hashes returns stored hashes of the tree by their positions, as tlog.HashReader does
	// (golang.org/x/mod/sumdb/tlog).
	Hashes(ctx context.Context, positions []int64) ([][32]byte, error)

	// Erase removes the payload of an act. The leaf stays, and so does every proof. The act why,
	// whose Kind is KindErased and whose Subject the sequence whatever it says, is appended in the
	// same transaction. The error is assay.ErrNotFound if there is no such act, and assay.ErrInvalid
	// if something that is still stored is checked against it: content, a run, or an item of the
	// registry. It is assay.ErrForbidden if a hold covers the act.
	// Erasing twice changes nothing.
	Erase(ctx context.Context, sequence int64, why Act) error

	// EraseActs does what Erase does for each act that the filter selects and that can be erased, and
	// returns their number. It keeps the payloads of acts that a hold covers, and of acts that say
	// what was erased, kept or backed up.
	EraseActs(ctx context.Context, which ActFilter, why Act) (int, error)

	// Check compares the log with everything that is stored beside it and that an answer or a right
	// rests on, in one state of the store, and calls found for each difference. It does not compare
	// the log with itself; package audit does. An error of found ends the check and is returned.
	// Other errors mean that the store could not be read.
	Check(ctx context.Context, found func(Finding) error) error
}

// An ActFilter selects acts.
type ActFilter struct {
	Before time.Time // acts before it
	Kinds  []string  // beginnings of kinds; nil: all
	Except []string  // beginnings of kinds that are not selected
	Dry    bool      // counts the acts and erases nothing
}

// A Finding is a place where what is stored differs from the audit log, or the log from itself.
type Finding struct {
	Sequence int64  `json:"sequence,omitempty"` // of the entry; 0: none
	Object   string `json:"object"`             // what differs, "run 01J…" or "entry"
	Problem  string `json:"problem"`
}

// String returns the finding as one line.
func (f Finding) String() string {
	if f.Sequence > 0 {
		return fmt.Sprintf("entry %d: %s: %s", f.Sequence, f.Object, f.Problem)
	}
	return f.Object + ": " + f.Problem
}

// Kinds of acts that a store appends itself, with what they describe. Acts of callers cannot have
// them.
const (
	KindRunBegun       = "run.begun"
	KindRunEnded       = "run.ended"
	KindRunSuspended   = "run.suspended"
	KindRunOffered     = "run.offered"
	KindRunCancelled   = "run.cancelled"
	KindReviewStored   = "draft.stored" // every state of a review, with its draft
	KindShareCreated   = "share.created"
	KindShareRevoked   = "share.revoked"
	KindContentChanged = "content.changed"
	KindContentPruned  = "content.pruned"
	KindCollectionSet  = "collection.set"
	KindSourceSet      = "source.set"
	KindSourceRemoved  = "source.removed"
	KindErased         = "act.erased"
)

// KindRunDeleted and KindRunExpired are the kinds of acts that Runs.Delete accepts. KindRunErased is
// that of the act after which the payloads of a run's records and of the acts on it are gone.
const (
	KindRunDeleted = "run.deleted"
	KindRunExpired = "run.expired"
	KindRunErased  = "run.erased"
)

// A RegistryItem is something that an administrator decides: an API key, a policy, a limit, a canary. It
// is a JSON value with a kind and a name.
type RegistryItem struct {
	Kind    string // a-z, '-' and '_'
	Name    string // unique in its kind; any UTF-8 without control characters, at most 256 bytes
	Value   json.RawMessage
	Updated time.Time // set by the store
}

// A Registry holds what administrators decide. Every change is an act, which is appended to the
// audit log in the same transaction. The act's Detail is replaced by the item's value unless it is
// set, so a value with a secret needs a Detail without it.
type Registry interface {
	// Version counts the changes. It is cheap enough to call before every search.
	Version(ctx context.Context) (int64, error)

	// Items returns the items of a kind by name.
	Items(ctx context.Context, kind string) ([]RegistryItem, error)

	// Item returns one item, or assay.ErrNotFound.
	Item(ctx context.Context, kind, name string) (RegistryItem, error)

	// Set creates or replaces an item.
	Set(ctx context.Context, item RegistryItem, act Act) error

	// Create is Set for an item that must not exist; if it does, the error is assay.ErrInvalid.
	Create(ctx context.Context, item RegistryItem, act Act) error

	// Delete removes an item, or returns assay.ErrNotFound.
	Delete(ctx context.Context, kind, name string, act Act) error
}

// A System is what a store keeps about itself, outside every tenant: which tenants there are, their
// API keys, the stop of all runs, and an audit log of their changes. It holds no tenant's data.
type System interface {
	Audit() Audit
	Registry() Registry
	Uses() Uses
	Close() error
}
