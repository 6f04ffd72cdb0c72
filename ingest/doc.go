// Package ingest brings documents into a store: source → parse → chunk → store.
// [Run] is the whole of it. [Embed] makes the vectors that the store then lacks.
//
// It is incremental. A source whose size, modification time and sidecar are as
// they were is not read; one with the same bytes is not parsed; a change of its
// ACL alone changes the ACL of the stored version. What is gone from below the
// ingested roots is removed, unless it cannot be told: below a root that is
// itself gone, or in a folder that cannot be read, documents are kept, and the
// report says so. So are those that were ingested by another root and are still
// there.
//
// It fails closed. A document whose sidecar cannot be used is not ingested, and
// an earlier version of it is removed, because who may see it is not known. So
// is one without an ACL in a collection that requires one.
//
// One goroutine writes, in small transactions: when ctx is cancelled or the
// process killed, what was committed stays, and the next Run goes on from there.
//
// The package does not keep an index; an index follows the store by itself.
package ingest
