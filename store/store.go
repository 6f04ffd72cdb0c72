// Package store says how assay keeps documents, chunks, their vectors and runs:
// the interfaces that every store implements. The contract, as tests, is
// storetest; the store on one machine is sqlite.
//
// A Tenant is the only way to data: no method takes a tenant's name and returns
// what is the tenant's.
package store

import (
	"context"
	"iter"

	"github.com/assay-rag/assay"
)

// A Tenant is one tenant's data. It is safe for concurrent use.
type Tenant interface {
	Content() Content

	// Writer makes this process the content's one writer until it is closed.
	// While another process (or another Writer here) is, the error is
	// assay.ErrLocked and its message names that process.
	Writer(ctx context.Context) (Writer, error)

	Runs() Runs

	// Close releases everything. Writers and leases must be closed before.
	Close() error
}

// Content reads documents and chunks. Each call sees one committed state.
type Content interface {
	// Sequence returns the sequence of the last committed change, 0 when there
	// has been none. It is cheap enough to be asked before every search.
	Sequence(ctx context.Context) (int64, error)

	// Changes yields the latest state of each document that changed after the
	// given sequence, in the order of Change.Sequence: of several changes of one
	// document only the last. Changes(ctx, 0) yields every current document, and
	// may leave out what has been deleted. It reads one snapshot.
	Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error]

	// Document returns the current version; assay.ErrNotFound if there is none.
	Document(ctx context.Context, id string) (assay.Document, error)

	// Version returns one version, current or kept; else assay.ErrNotFound.
	Version(ctx context.Context, id, version string) (assay.Document, error)

	// ACL returns the ACL that decides now who may see a document, whichever of
	// its versions: that of the current version; of a deleted document that of
	// its last version, also once Prune has dropped that one. assay.ErrNotFound
	// if the store never held the document, or does not know the ACL any more.
	// It reads no text.
	ACL(ctx context.Context, id string) (assay.ACL, error)

	// Documents yields the current documents of the collections (none named: of
	// all), by collection and URI, without Text and Anchors.
	Documents(ctx context.Context, collections ...string) iter.Seq2[assay.Document, error]

	// Passages returns the chunks with these IDs in the given order, of current
	// and kept versions. A chunk that does not exist is assay.ErrNotFound. Its
	// cost grows with the passages, not with the documents that they are of.
	Passages(ctx context.Context, ids []string) ([]assay.Passage, error)

	// Collections lists the collections by name.
	Collections(ctx context.Context) ([]Collection, error)

	// Models lists the models that the content has vectors of, by name.
	Models(ctx context.Context) ([]string, error)

	// Vectors yields the vector of each chunk of a current version that got it
	// from the model after the given sequence: because the vector was stored
	// then, or because the document changed then. Vectors(ctx, model, 0) yields
	// all. Documents that changed come first, in the order of Changes and each
	// by Ordinal. Section chunks have none. All Values have the same length;
	// they are valid until the next is yielded. It reads one snapshot.
	// When DropModel has dropped some after the given sequence, if that is not
	// 0, what was read before counts no more: the error is assay.ErrNotFound, and
	// they are to be read from 0.
	Vectors(ctx context.Context, model string, after int64) iter.Seq2[assay.ChunkVector, error]

	// Unembedded yields the passages that the model has yet to embed: of the
	// chunks of current versions, sections left out, that have no vector of it,
	// in documents that changed after the given sequence, in the order of
	// Changes. It holds no snapshot while the caller works: it goes on with what
	// is committed meanwhile, until there is nothing left. A passage that several
	// chunks have may come several times before its vector is stored.
	Unembedded(ctx context.Context, model string, after int64) iter.Seq2[assay.Passage, error]

	// Coverage counts how far a model has come. It looks at every chunk: at a
	// million in some seconds, so ask once, and count on from there.
	Coverage(ctx context.Context, model string) (Coverage, error)
}

// A Coverage says how much of the content a model has embedded.
type Coverage struct {
	Chunks   int // of current versions, sections left out
	Embedded int // those of them that have a vector
}

// A Collection is a named set of documents.
type Collection struct {
	Name string `json:"name"`
	// RequireACL: a document without an ACL is not taken into it.
	RequireACL bool `json:"require_acl"`
	Documents  int  `json:"documents"`
	Chunks     int  `json:"chunks"`
}

// An Entry is a document with its chunks.
type Entry struct {
	Document assay.Document
	Chunks   []assay.Chunk // by Ordinal, of Document.Version
}

// A Vector is what a model made of a passage.
type Vector struct {
	Hash   string // assay.Passage.Hash
	Values []float32
}

// A Writer changes content. A change is durable, whole, and visible to every
// reader of every process when the method returns; on an error nothing of it is
// (assay.ErrFull, assay.ErrReadOnly, ...).
type Writer interface {
	Content

	// Put stores the documents in one transaction. A document replaces the
	// version before it, which is kept until Prune. Putting the current version
	// again with another ACL or SourceInfo changes those; its Text, Anchors and
	// Chunks may be left out then. A document whose collection requires an ACL
	// and that has none is assay.ErrInvalid. It returns the sequence of the
	// change.
	Put(ctx context.Context, entries ...Entry) (int64, error)

	// Delete removes the documents in one transaction; IDs that do not exist
	// are passed over. Their last versions are kept until Prune.
	Delete(ctx context.Context, ids ...string) (int64, error)

	// SetCollection creates or changes a collection; only Name and RequireACL
	// count. A collection that Put meets first is created with RequireACL false.
	SetCollection(ctx context.Context, c Collection) error

	// Prune drops the replaced and deleted versions that no stored run cites
	// and that were replaced longer ago than a run may last, and the vectors of
	// passages that no version is left to have. It returns how many versions.
	Prune(ctx context.Context) (int, error)

	// PutVectors stores vectors of the model in one transaction and returns the
	// sequence of the change; it is no change of a document. A vector replaces
	// the one before it; one that is stored as it stands changes nothing, and
	// one of a passage that no version has is passed over: the last was pruned
	// while it was made. A model's vectors have the same number of dimensions;
	// another number is assay.ErrInvalid and names both, and so is a vector
	// without dimensions, with more than assay.MaxDimensions, with a value that
	// is not finite, or longer than assay.MaxNorm.
	//
	// The name of a model stands for what it makes of a passage, for good: when
	// that changes, so must the name.
	PutVectors(ctx context.Context, model string, vectors ...Vector) (int64, error)

	// DropModel removes the vectors of a model, some at a time, each a change of
	// its own: when it ends early, the rest is there. A model that has none is
	// passed over.
	DropModel(ctx context.Context, model string) error

	// Close gives the writer's place up.
	Close() error
}

// Runs keeps runs and their journals. Records are immutable and every write is
// durable when the method returns.
type Runs interface {
	// Create stores a new active run and returns the lease on it.
	Create(ctx context.Context, r assay.Run) (Lease, error)

	// Run returns a run; assay.ErrNotFound if there is none.
	Run(ctx context.Context, id string) (assay.Run, error)

	// List returns the runs, newest first, at most limit (0: all).
	List(ctx context.Context, limit int) ([]assay.Run, error)

	// Records returns a run's journal by Ordinal. Every record's hashes are
	// checked: one that was altered is assay.ErrDamaged, named with its path and
	// ordinal; so is a gap.
	Records(ctx context.Context, run string) ([]assay.Record, error)

	// Acquire takes the lease of an unfinished run; assay.ErrLeased while a
	// live process holds it. A lease whose process has died is free at once on
	// the same machine, elsewhere when it expires.
	Acquire(ctx context.Context, run string) (Lease, error)

	// Delete removes a run, its journal and its offer; assay.ErrLeased while it is live.
	Delete(ctx context.Context, run string) error

	// Offer offers the answer of a run to whoever asks under the same key, which says
	// all that the answer depends on. A run has one offer: a second one replaces it. A
	// run that is not done is assay.ErrInvalid, and so is an empty key. Only the offers
	// of the MaxOffers runs that were created last are kept.
	Offer(ctx context.Context, run, key string) error

	// Offers returns the runs that are offered under the key, the last created first,
	// at most limit (0: all).
	Offers(ctx context.Context, key string, limit int) ([]Offer, error)
}

// MaxOffers is how many offers a tenant keeps.
const MaxOffers = 10_000

// An Offer is a run whose answer may be given again.
type Offer struct {
	Run      string
	Question string
}

// A Lease is the right to write one run's journal. It is renewed in the
// background until it is closed. It is safe for concurrent use.
type Lease interface {
	// Append stores one record and returns it with Sequence, Ordinal, Bytes and
	// Leaf filled in. A path that the run's journal already holds is
	// assay.ErrInvalid. When the lease was lost the error is assay.ErrLeased and
	// nothing is stored.
	Append(ctx context.Context, rec assay.Record) (assay.Record, error)

	// Finish stores the run's end: its state, answer and error text, and pins
	// the versions that the answer cites. A run that is done stays as it is:
	// finishing it again is assay.ErrInvalid.
	Finish(ctx context.Context, state assay.RunState, answer *assay.Answer, errText string) error

	// Close gives the lease up.
	Close() error
}
