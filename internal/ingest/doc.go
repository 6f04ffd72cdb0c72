// Package ingest brings documents into a store: source → parse → chunk → store. [Run] does all of
// it. [Embed] then makes the missing vectors.
//
// Ingestion is incremental. A source whose size, modification time and sidecar are unchanged is not
// read, and one with the same bytes is not parsed. A change of only the ACL updates the ACL of the
// stored version. Documents that disappeared from below the ingested roots are removed. If it is
// uncertain whether they disappeared, because the root itself is missing or a folder cannot be
// read, they are kept and the report lists them. Documents that were ingested by another root and
// still exist are kept too.
//
// A source gives any number of documents: itself, and those inside it, such as the files of an
// archive. The documents of a source are complete with the transaction that stores its row. What
// could not be parsed is part of that row, and is not tried again while source and parser are
// unchanged. Sources with the same bytes, metadata and ACL share one set of documents.
//
// Ingestion fails closed. A document whose sidecar cannot be used is not ingested, and an earlier
// version of it is removed, because its ACL is unknown. The same holds for a document without an
// ACL in a collection that requires one. All documents inside a source have its ACL.
//
// One goroutine writes, in small transactions. If ctx is cancelled or the process is killed,
// committed documents stay and the next Run continues from there.
//
// The package does not maintain an index; an index follows the store by itself.
package ingest
