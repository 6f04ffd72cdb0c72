// Package store defines how assay stores documents, chunks, their vectors and runs. It contains the
// interfaces that every store implements. Package storetest tests their contract, and package
// sqlite implements a store on one machine.
//
// All data is accessed through a Tenant. Only the methods of Store take a tenant's name, and those
// that return data return a Tenant.
package store

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/assay-rag/assay"
)

// A Store holds the data of tenants. It is safe for concurrent use.
type Store interface {
	// Tenant opens the named tenant's data. Each call returns a new handle, and all handles of a name
	// share the same data. No handle sees another tenant's data. DefaultTenant is created if it does
	// not exist. The error is assay.ErrNotFound if there is no such tenant, assay.ErrStopped if it is
	// suspended, and assay.ErrInvalid if the name is not valid (see CreateTenant). It is
	// assay.ErrDamaged if part of the data is missing, assay.ErrNewer if a later version of the
	// program wrote it, and assay.ErrReadOnly if DefaultTenant cannot be created.
	Tenant(ctx context.Context, name string) (Tenant, error)

	// InspectTenant is Tenant for a tenant that may be suspended. It is for audits and backups.
	InspectTenant(ctx context.Context, name string) (Tenant, error)

	// Tenants returns the names of the tenants, sorted. Those that are being deleted are left out.
	Tenants(ctx context.Context) ([]string, error)

	// CreateTenant creates an empty tenant. A name has up to 64 characters of a-z, 0-9, '-', '_' and
	// '.', the last neither first nor last; any other name, and that of a tenant that exists, is
	// assay.ErrInvalid. The change is an act in the system's log, as is each change below. Of the
	// given act only Actor and Reason count.
	CreateTenant(ctx context.Context, name string, act Act) error

	// SuspendTenant makes Tenant fail with assay.ErrStopped until ResumeTenant. Handles that are open
	// stay usable. Both return assay.ErrNotFound if there is no such tenant, and assay.ErrInvalid if
	// it is in the wanted state already.
	SuspendTenant(ctx context.Context, name string, act Act) error
	ResumeTenant(ctx context.Context, name string, act Act) error

	// DeleteTenant removes a tenant with its documents, vectors, runs, caches, index, settings and API
	// keys. It is atomic: after a crash at any moment the tenant is either complete or gone for every
	// caller, and the next change of tenants, or the next use of this one, removes the rest of its
	// data. Handles that are open fail from then on. The system's log keeps the tenant's
	// identity, a hash of its name, and the size and root of its audit log. A tenant that is created
	// under the name afterwards has another identity.
	//
	// The error is assay.ErrForbidden while there is a Hold in the tenant, even if force is set.
	// Unless force is set, the error is assay.ErrLocked while a process writes the content or holds a
	// lock of the tenant, and assay.ErrLeased while one drives a run. It is also assay.ErrLocked if
	// the tenant is gone, but the system cannot remove a file that another process has open.
	DeleteTenant(ctx context.Context, name string, force bool, act Act) error

	// System opens what the store keeps about itself. Each call returns a new handle. The error is both
	// assay.ErrNotFound and assay.ErrReadOnly if there is nothing yet and it cannot be created.
	System(ctx context.Context) (System, error)

	// Close releases all resources. Tenants and systems must be closed first.
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

	// Audit returns the tenant's audit log, and Registry what its administrators decided.
	Audit() Audit
	Registry() Registry

	Ledger() Ledger
	Reviews() Reviews
	Outbox() Outbox
	Shares() Shares
	Feedbacks() Feedbacks
	Questions() Questions

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

	// Scrub overwrites what was removed from the stored files: erased runs and, if content is true,
	// dropped versions. It takes as long as writing the data anew. Until it has succeeded, removed
	// bytes may still be in the files. The error is assay.ErrLocked if another process reads an
	// older state, which Scrub can then not remove.
	Scrub(ctx context.Context, content bool) error

	// Size returns how much space the data takes, without the index.
	Size(ctx context.Context) (Size, error)

	// Close releases all resources. Writers, leases and locks must be closed first.
	Close() error
}

// A Size is the space that a tenant's data takes in the store, in bytes.
type Size struct {
	Content int64 `json:"content"` // documents, their originals, chunks and vectors
	Runs    int64 `json:"runs"`    // runs and their journals
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
	// Changes(ctx, 0) yields every current document and may omit deleted ones. Documents have no
	// Structure and no Aliases. It reads one snapshot.
	Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error]

	// Document returns the current version, or assay.ErrNotFound if there is none.
	Document(ctx context.Context, id string) (assay.Document, error)

	// Version returns a version, current or kept, or assay.ErrNotFound if it does not exist.
	Version(ctx context.Context, id, version string) (assay.Document, error)

	// Versions returns the versions of a document that are stored: the current one first, then those
	// that were replaced or deleted, the last first. It returns none for a document that does not
	// exist. It reads no text.
	Versions(ctx context.Context, id string) ([]KeptVersion, error)

	// Original returns the file that a version was read from. The error is assay.ErrNotFound if the
	// version does not exist or was stored without it.
	Original(ctx context.Context, id, version string) (assay.Original, error)

	// ACL returns the ACL that now applies to all versions of a document. It is the ACL of the
	// current version, or, for a deleted document, that of its last version, even after Prune has
	// dropped that version. The error is assay.ErrNotFound if the store never contained the
	// document or no longer knows its ACL. ACL reads no text.
	ACL(ctx context.Context, id string) (assay.ACL, error)

	// Chunks returns the chunks of a version by Ordinal, or assay.ErrNotFound if there is no such
	// version.
	Chunks(ctx context.Context, id, version string) ([]assay.Chunk, error)

	// Documents yields the current documents of the collections, or of all collections if none is
	// given, by collection and URI, without Text, Anchors and Structure.
	Documents(ctx context.Context, collections ...string) iter.Seq2[assay.Document, error]

	// Sources yields the sources of the collections, or of all collections if none is given, by
	// collection and URI.
	Sources(ctx context.Context, collections ...string) iter.Seq2[Source, error]

	// Source returns one source with its current documents, as Sources and Documents yield them. It
	// costs the same whatever else the collection holds. A source that is not stored is the zero
	// Source, and has documents if they were put without it. An unknown collection has neither.
	Source(ctx context.Context, collection, uri string) (Source, []assay.Document, error)

	// Passages returns the chunks with these IDs in the given order, of current and kept versions.
	// If a chunk does not exist, the error is assay.ErrNotFound. The cost grows with the passages,
	// not with the size of their documents.
	Passages(ctx context.Context, ids []string) ([]assay.Passage, error)

	// Collections returns the collections sorted by name.
	Collections(ctx context.Context) ([]Collection, error)

	// Collection returns the settings of a collection, without counting its documents and chunks. The
	// error is assay.ErrNotFound if there is none.
	Collection(ctx context.Context, name string) (Collection, error)

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

	// SyncSources returns the sources sorted by name.
	SyncSources(ctx context.Context) ([]SyncSource, error)

	// SyncItems yields the records of a source's items by URI, from one snapshot. The error is
	// assay.ErrNotFound if there is no such source.
	SyncItems(ctx context.Context, source string) iter.Seq2[SyncItem, error]
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

	// Chunker, ChunkSize and ChunkOverlap are how its documents are divided into chunks, sizes in
	// tokens; zero values are the chunker's defaults.
	Chunker      string `json:"chunker,omitempty"`
	ChunkSize    int    `json:"chunk_size,omitempty"`
	ChunkOverlap int    `json:"chunk_overlap,omitempty"`

	Documents int `json:"documents"`
	Chunks    int `json:"chunks"`
}

// An Entry is a document with its chunks.
type Entry struct {
	Document assay.Document
	Chunks   []assay.Chunk // by Ordinal, of Document.Version

	// Original is what Document.Version was read from, if it is to be kept. It counts when the version
	// is stored for the first time, and if the stored one is damaged. Equal files are stored once.
	Original assay.Original
}

// A KeptVersion is a version of a document that is stored.
type KeptVersion struct {
	Version  string
	Title    string
	Modified time.Time // of its source; zero: not known
	Replaced time.Time // when it was replaced or deleted; zero: it is the current one
	Original string    // media type of its original; empty: none is stored
}

// A Source is the state in which a file, or another item of a place where documents live, was
// ingested. Its documents are the one with its URI and those with it as their Container.
type Source struct {
	Collection string
	URI        string
	Path       []string // of the URI below the root by which it was ingested; nil: it is a root itself

	// Info is what tells whether the source has changed since. Its Hash is empty while the documents
	// are not complete, because they did not fit into one transaction.
	Info assay.SourceInfo
	ACL  assay.ACL

	// SameAs is the URI of a source of the collection with the same content, whose documents stand
	// for this source too. Empty: it has documents of its own, if any.
	SameAs string

	Failures []Failure // of the source or documents in it, by URI
}

// A Failure is a document that could not be parsed.
type Failure struct {
	URI    string    `json:"uri"`
	Reason string    `json:"reason"`
	Detail string    `json:"detail"` // human-readable
	Time   time.Time `json:"time"`   // of the attempt
}

// A Batch is a set of changes that are stored in one transaction. No document and no source may be
// named twice.
type Batch struct {
	Delete  []string // IDs of documents
	Put     []Entry
	Forget  []Source // sources to remove, of which only Collection and URI count; documents stay
	Sources []Source // each replaces the stored source of its collection and URI
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
	// version again with another ACL or SourceInfo changes only those, and Text, Anchors, Structure
	// and Chunks may be omitted. If a document has no ACL and its collection requires one, the error
	// is assay.ErrInvalid.
	Put(ctx context.Context, entries ...Entry) (int64, error)

	// Delete removes the documents in one transaction and ignores IDs that do not exist. The last
	// versions are kept until Prune.
	Delete(ctx context.Context, ids ...string) (int64, error)

	// Apply makes the changes of a batch in one transaction, as Delete and Put do, and returns the
	// sequence after it. A change of sources alone does not count as a change of documents.
	Apply(ctx context.Context, b Batch) (int64, error)

	// ApplySync deletes and puts documents, and stores the progress of their source, in one transaction.
	// It returns the sequence of the change. If the batch names a source that does not exist, the
	// error is assay.ErrNotFound.
	ApplySync(ctx context.Context, b SyncBatch) (int64, error)

	// SetSyncSource creates or replaces a source. Its items stay. An invalid name is assay.ErrInvalid.
	SetSyncSource(ctx context.Context, s SyncSource) error

	// RemoveSyncSource removes a source and the records of its items, and no documents. The error is
	// assay.ErrNotFound if there is no such source.
	RemoveSyncSource(ctx context.Context, name string) error

	// SetCollection creates or replaces a collection, except Documents and Chunks, which it ignores.
	// Put creates a missing collection with only a name.
	SetCollection(ctx context.Context, c Collection) error

	// Prune drops the replaced and deleted versions that no stored run cites, no Hold covers, and that
	// were replaced longer ago than a run may last and the Retention of versions. It also drops the vectors of passages and the
	// originals that no remaining version has. It returns the number of versions dropped.
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
// method returns. Create, Append, Finish and Delete append to the audit log in their transaction.
type Runs interface {
	// Create stores a new active run and returns the lease on it. Its journal begins with copies of
	// the given records, in order, which are stored in the same transaction as the run. The copies
	// get their own Run, Sequence, Ordinal, Bytes and Leaf.
	Create(ctx context.Context, r assay.Run, records ...assay.Record) (Lease, error)

	// Run returns a run, or assay.ErrNotFound if there is none.
	Run(ctx context.Context, id string) (assay.Run, error)

	// List returns at most limit runs (0: all), newest first.
	List(ctx context.Context, limit int) ([]assay.Run, error)

	// Citing returns at most limit runs (0: all) of the principals with this user for which a version of
	// a document is kept, because their answer or draft cites it, newest first.
	Citing(ctx context.Context, document, user string, limit int) ([]assay.Run, error)

	// Records returns a run's journal by Ordinal. It checks the hashes of every record. If a record
	// was altered, the error is assay.ErrDamaged and names its path and ordinal. A gap is
	// assay.ErrDamaged too.
	Records(ctx context.Context, run string) ([]assay.Record, error)

	// RecordsFrom is Records without the records before an ordinal.
	RecordsFrom(ctx context.Context, run string, ordinal int) ([]assay.Record, error)

	// Accept is Create for a run with a promise, of which Run and Stuck do not count. If a run has its
	// slot, the error is a *SlotError and nothing is stored.
	Accept(ctx context.Context, r assay.Run, p Promise, records ...assay.Record) (Lease, error)

	// Promise returns the promise with a slot, or assay.ErrNotFound.
	Promise(ctx context.Context, slot string) (Promise, error)

	// Promised returns the promises whose runs are active and driven by no live process, by the
	// creation of their runs.
	Promised(ctx context.Context) ([]Promise, error)

	// Adopt makes a promise for a run that exists, without attempts. If there is one, its slot stays.
	Adopt(ctx context.Context, run string) error

	// Attempt counts that driving a run begins and returns the promise's Attempts. Calm sets them to 0,
	// after the run was interrupted in an orderly way. The caller holds the lease. The error of
	// Attempt is assay.ErrNotFound if there is no promise.
	Attempt(ctx context.Context, run string) (int, error)
	Calm(ctx context.Context, run string) error

	// Cancel stores that a run is to end with what it has, with an act of the kind KindRunCancelled.
	// Cancelling it again changes nothing. The error is assay.ErrInvalid if it is not active. Whoever
	// drives the run calls Cancelled, which returns whether it was cancelled.
	Cancel(ctx context.Context, run string, actor assay.Principal) error
	Cancelled(ctx context.Context, run string) (bool, error)

	// Acquire takes the lease of an unfinished run. The error is assay.ErrLeased while a live
	// process holds it, and assay.ErrSuspended while its review is open. The lease of a dead process is free immediately on the same machine, and
	// after it expires on others.
	Acquire(ctx context.Context, run string) (Lease, error)

	// Delete removes a run, its journal and its offer. The leaves of its records stay in the audit
	// log, and why, whose Subject is the run's ID whatever it says, is appended to it. Its Kind is
	// KindRunDeleted or KindRunExpired; any other is assay.ErrInvalid. The error is assay.ErrLeased
	// while the run is leased, assay.ErrSuspended while its review is open, and assay.ErrForbidden if
	// a Hold covers it. The payloads of the acts about the run are erased.
	// Its shares and feedback go with it, and so do the questions made from it unless the Kind is
	// KindRunExpired.
	Delete(ctx context.Context, run string, why Act) error

	// Erase removes a run's question, request, answer and error, the payloads and salts of its records
	// and of the acts about it, the long values that no other run uses, and its offer. Its leaves stay
	// in the audit log, and its row and the headers of its records stay: times, kinds, models and
	// usage. Its review with the draft goes, and so do messages about it that were not delivered, its shares, its
	// feedback and the questions made from it. Its state becomes assay.RunErased, and its principal keeps only the user. why, whose Kind
	// is KindRunErased and whose Subject the run's ID whatever it says, is appended to the log with the sequences of the
	// erased acts, all in one transaction. Erasing twice changes nothing. The error is
	// assay.ErrLeased while the run is leased, assay.ErrSuspended while its review is open, and
	// assay.ErrForbidden if a Hold covers it.
	Erase(ctx context.Context, run string, why Act) error

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
	// Reserve sets usage aside for a step before it is executed, for the subjects of the run's
	// principal. Append ends the reservation of the step that it records, Settle that of one that
	// gets no record, and Close all others. See Ledger.
	Reserver

	// Append stores one record and returns it with Sequence, Ordinal, Bytes and Leaf filled in. The
	// error is assay.ErrInvalid if the run's journal already has a record with that path, and
	// assay.ErrLeased if the lease was lost; in both cases nothing is stored.
	Append(ctx context.Context, rec assay.Record) (assay.Record, error)

	// Finish stores the end of the run, which is its state, answer and error text, and pins the
	// versions that the answer cites. The error is assay.ErrInvalid if the run is already done; it
	// then stays unchanged.
	Finish(ctx context.Context, state assay.RunState, answer *assay.Answer, errText string) error

	// Suspend stores that the run waits for a person: the answer that is shown until then, the review
	// of which only Case and Draft count, the versions to keep, and the acts, in one transaction. The
	// run cannot be acquired or deleted until Reviews.Change has ended it.
	Suspend(ctx context.Context, shown assay.Answer, r Review, pins []Pin, acts ...Act) error

	// Close releases the lease.
	Close() error
}
