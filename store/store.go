// Package store defines how assay stores documents, chunks, their vectors and runs. It contains the
// interfaces that every store implements. Package storetest tests their contract, and package
// sqlite implements a store on one machine.
//
// All data is accessed through a Tenant. Only Store.Tenant takes a tenant's name; no other method
// does.
package store

import (
	"context"
	"io"
	"iter"

	"github.com/assay-rag/assay"
)

// A Store holds the data of tenants. It is safe for concurrent use.
type Store interface {
	// Tenant opens the named tenant's data and creates it if it does not exist. Each call returns a
	// new handle, and all handles of a name share the same data. No handle sees another tenant's
	// data. A name has up to 64 characters of a-z, 0-9, '-', '_' and '.', the last neither first nor
	// last; any other name is assay.ErrInvalid. The error is assay.ErrDamaged if part of the data is
	// missing, assay.ErrNewer if a later version of the program wrote it, and assay.ErrReadOnly if
	// the tenant does not exist and cannot be created.
	Tenant(ctx context.Context, name string) (Tenant, error)

	// Tenants returns the names of the tenants that have data, sorted.
	Tenants(ctx context.Context) ([]string, error)

	// Close releases all resources. Tenants must be closed first.
	Close() error
}

// A Tenant is one tenant's data. It is safe for concurrent use.
type Tenant interface {
	// Name returns the tenant's name.
	Name() string

	// ReadOnly reports whether this handle cannot change the data. Every change then fails with
	// assay.ErrReadOnly.
	ReadOnly() bool

	Content() Content

	// Writer makes this process the only writer of the content until the Writer is closed. If
	// another process or another Writer of this process is the writer, the error is assay.ErrLocked
	// and its message names that process.
	Writer(ctx context.Context) (Writer, error)

	Runs() Runs

	// Lock takes the named lock of the tenant until the Closer is closed or the process ends. It
	// does not wait: if another process or another handle of this process holds the lock, the error
	// is assay.ErrLocked. Locks of different names, and the Writer, are independent. A name has 1 to
	// 64 characters of a-z, '-' and '_'; any other name is assay.ErrInvalid.
	Lock(ctx context.Context, name string) (io.Closer, error)

	// Setting returns a stored setting, or nil if there is none. The names are those of Lock. It is
	// cheap enough to call before every search.
	Setting(ctx context.Context, name string) ([]byte, error)

	// SetSetting durably replaces a setting, for all processes. An empty value removes it. Settings
	// are small, at most 64 KiB; a larger one is assay.ErrInvalid.
	SetSetting(ctx context.Context, name string, value []byte) error

	// IndexDir returns a folder on this machine for the index of the content, which the caller
	// creates and fills. It is the same for all handles of this tenant on this machine, belongs to
	// no other tenant, and may be lost without losing data. Empty: the store has no such folder, and
	// the caller keeps its index in a temporary one.
	IndexDir() string

	// Check reads all stored data and verifies its structure. Damage in parts that were not read yet
	// goes unnoticed otherwise. The error is assay.ErrDamaged. Check changes nothing and takes as
	// long as reading the data.
	Check(ctx context.Context) error

	// Size returns how much space the data takes, without the index.
	Size(ctx context.Context) (Size, error)

	// Close releases all resources. Writers, leases and locks must be closed first.
	Close() error
}

// A Size is the space that a tenant's data takes in the store, in bytes.
type Size struct {
	Content int64 // documents, chunks and vectors
	Runs    int64 // runs and their journals
}

// MaxSetting is the most bytes of a setting.
const MaxSetting = 64 << 10

// Content reads documents and chunks. Each call sees one committed state.
type Content interface {
	// Identity returns a word that identifies this content permanently. Content that is created anew
	// has another one, even under the same tenant's name, so that what was derived from the old
	// content is not used with the new.
	Identity(ctx context.Context) (string, error)

	// Sequence returns the sequence of the last committed change, or 0 if there is none. It is
	// cheap enough to call before every search.
	Sequence(ctx context.Context) (int64, error)

	// Changes yields the latest state of each document that changed after the given sequence, in
	// the order of Change.Sequence. Of several changes of a document it yields only the last.
	// Changes(ctx, 0) yields every current document and may omit deleted ones. It reads one
	// snapshot.
	Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error]

	// Document returns the current version, or assay.ErrNotFound if there is none.
	Document(ctx context.Context, id string) (assay.Document, error)

	// Version returns a version, current or kept, or assay.ErrNotFound if it does not exist.
	Version(ctx context.Context, id, version string) (assay.Document, error)

	// ACL returns the ACL that now applies to all versions of a document. It is the ACL of the
	// current version, or, for a deleted document, that of its last version, even after Prune has
	// dropped that version. The error is assay.ErrNotFound if the store never contained the
	// document or no longer knows its ACL. ACL reads no text.
	ACL(ctx context.Context, id string) (assay.ACL, error)

	// Documents yields the current documents of the collections, or of all collections if none is
	// given, by collection and URI, without Text and Anchors.
	Documents(ctx context.Context, collections ...string) iter.Seq2[assay.Document, error]

	// Passages returns the chunks with these IDs in the given order, of current and kept versions.
	// If a chunk does not exist, the error is assay.ErrNotFound. The cost grows with the passages,
	// not with the size of their documents.
	Passages(ctx context.Context, ids []string) ([]assay.Passage, error)

	// Collections returns the collections sorted by name.
	Collections(ctx context.Context) ([]Collection, error)

	// Models returns the names of the models that the content has vectors of, sorted.
	Models(ctx context.Context) ([]string, error)

	// Vectors yields the model's vector of each chunk of a current version if the vector was stored
	// or the document changed after the given sequence. Vectors(ctx, model, 0) yields all. Changed
	// documents come first, in the order of Changes and by Ordinal within each. Section chunks have
	// no vectors. All Values have the same length; they are valid until the next vector is yielded.
	// Vectors reads one snapshot.
	//
	// If DropModel has dropped some of the vectors after the given sequence and the sequence is not
	// 0, the error is assay.ErrNotFound. Vectors read before are then invalid, and the caller must
	// read from 0 again.
	Vectors(ctx context.Context, model string, after int64) iter.Seq2[assay.ChunkVector, error]

	// Unembedded yields the passages that lack a vector of the model: the chunks of current
	// versions, except sections, in documents that changed after the given sequence, in the order
	// of Changes. It holds no snapshot while the caller works, and includes documents committed
	// meanwhile, until no passage is left. A passage shared by several chunks may be yielded
	// several times before its vector is stored.
	Unembedded(ctx context.Context, model string, after int64) iter.Seq2[assay.Passage, error]

	// Coverage counts the chunks with a vector of the model. It visits every chunk, which takes
	// some seconds for a million, so callers should call it once and keep count from there.
	Coverage(ctx context.Context, model string) (Coverage, error)
}

// A Coverage is the share of the content that a model has embedded.
type Coverage struct {
	Chunks   int // of current versions, without sections
	Embedded int // those with a vector
}

// A Collection is a named set of documents.
type Collection struct {
	Name string `json:"name"`
	// RequireACL rejects documents without an ACL.
	RequireACL bool `json:"require_acl"`
	Documents  int  `json:"documents"`
	Chunks     int  `json:"chunks"`
}

// An Entry is a document with its chunks.
type Entry struct {
	Document assay.Document
	Chunks   []assay.Chunk // by Ordinal, of Document.Version
}

// A Vector is a model's vector of a passage.
type Vector struct {
	Hash   string // assay.Passage.Hash
	Values []float32
}

// A Writer changes content. A change is durable, complete and visible to every reader in every
// process when the method returns. If the method returns an error (assay.ErrFull,
// assay.ErrReadOnly, ...), no part of the change is stored.
type Writer interface {
	Content

	// Put stores the documents in one transaction and returns the sequence of the change. A
	// document replaces its previous version, which is kept until Prune. Putting the current
	// version again with another ACL or SourceInfo changes only those, and Text, Anchors and Chunks
	// may be omitted. If a document has no ACL and its collection requires one, the error is
	// assay.ErrInvalid.
	Put(ctx context.Context, entries ...Entry) (int64, error)

	// Delete removes the documents in one transaction and ignores IDs that do not exist. The last
	// versions are kept until Prune.
	Delete(ctx context.Context, ids ...string) (int64, error)

	// SetCollection creates or changes a collection. It uses only Name and RequireACL. Put creates
	// a missing collection with RequireACL false.
	SetCollection(ctx context.Context, c Collection) error

	// Prune drops the replaced and deleted versions that no stored run cites and that were replaced
	// longer ago than a run may last. It also drops the vectors of passages that no remaining
	// version has. It returns the number of versions dropped.
	Prune(ctx context.Context) (int, error)

	// PutVectors stores vectors of the model in one transaction and returns the sequence of the
	// change, which does not count as a change of documents. A vector replaces the previous one. An
	// equal vector changes nothing. A vector of a passage that no version has is ignored, because
	// the last version may have been pruned while the vector was computed. All vectors of a model
	// have the same number of dimensions. The error is assay.ErrInvalid, and names both numbers, if
	// a vector has a different number. It is also assay.ErrInvalid if a vector has no dimensions,
	// more than assay.MaxDimensions, a value that is not finite, or a norm above assay.MaxNorm.
	//
	// A model name permanently identifies the function from passage to vector. If that function
	// changes, the name must change.
	PutVectors(ctx context.Context, model string, vectors ...Vector) (int64, error)

	// DropModel removes the vectors of a model in several changes. If it ends early, the remaining
	// vectors stay. A model without vectors is ignored.
	DropModel(ctx context.Context, model string) error

	// Close ends the right to write.
	Close() error
}

// Runs stores runs and their journals. Records are immutable, and every write is durable when the
// method returns.
type Runs interface {
	// Create stores a new active run and returns the lease on it. Its journal begins with copies of
	// the given records, in order, which are stored in the same transaction as the run. The copies
	// get their own Run, Sequence, Ordinal, Bytes and Leaf.
	Create(ctx context.Context, r assay.Run, records ...assay.Record) (Lease, error)

	// Run returns a run, or assay.ErrNotFound if there is none.
	Run(ctx context.Context, id string) (assay.Run, error)

	// List returns at most limit runs (0: all), newest first.
	List(ctx context.Context, limit int) ([]assay.Run, error)

	// Records returns a run's journal by Ordinal. It checks the hashes of every record. If a record
	// was altered, the error is assay.ErrDamaged and names its path and ordinal. A gap is
	// assay.ErrDamaged too.
	Records(ctx context.Context, run string) ([]assay.Record, error)

	// Acquire takes the lease of an unfinished run. The error is assay.ErrLeased while a live
	// process holds it. The lease of a dead process is free immediately on the same machine, and
	// after it expires on others.
	Acquire(ctx context.Context, run string) (Lease, error)

	// Delete removes a run, its journal and its offer. The error is assay.ErrLeased while the run
	// is leased.
	Delete(ctx context.Context, run string) error

	// Offer makes the answer of a run available under a cache key, which covers everything that the
	// answer depends on. A run has one offer; a second one replaces it. The error is
	// assay.ErrInvalid if the run is not done or the key is empty. Only the offers of the last
	// MaxOffers created runs are kept.
	Offer(ctx context.Context, run, key string) error

	// Offers returns at most limit (0: all) of the runs offered under the key, the last created
	// first.
	Offers(ctx context.Context, key string, limit int) ([]Offer, error)
}

// MaxOffers is the most offers that a tenant keeps.
const MaxOffers = 10_000

// An Offer is a run whose answer may be reused.
type Offer struct {
	Run      string
	Question string
}

// A Lease is the right to write one run's journal. It is renewed in the background until it is
// closed. It is safe for concurrent use.
type Lease interface {
	// Append stores one record and returns it with Sequence, Ordinal, Bytes and Leaf filled in. The
	// error is assay.ErrInvalid if the run's journal already has a record with that path, and
	// assay.ErrLeased if the lease was lost; in both cases nothing is stored.
	Append(ctx context.Context, rec assay.Record) (assay.Record, error)

	// Finish stores the end of the run, which is its state, answer and error text, and pins the
	// versions that the answer cites. The error is assay.ErrInvalid if the run is already done; it
	// then stays unchanged.
	Finish(ctx context.Context, state assay.RunState, answer *assay.Answer, errText string) error

	// Close releases the lease.
	Close() error
}
