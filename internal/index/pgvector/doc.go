// Package pgvector is an index on PostgreSQL with the extension pgvector, for up to a few million
// chunks that several servers search. It holds the terms of the chunks with their frequencies, as
// package analysis finds them, so that its BM25 scores equal those of the index of package index,
// and the vectors of any number of models. Package indextest is its contract.
//
// [Open] opens the index of one source in a schema of its own, whose name has the source's
// identity. The index is derived: it may be dropped at any time, and is then read from the source
// again.
//
// A search first asks the source for its sequence number. If the index has another one, the search
// reads the changes in one transaction that stores the new number with the data, under an advisory
// lock, so that one process at a time writes. It then reads everything in one REPEATABLE READ
// transaction.
//
// Documents with the same collection and ACL form a class. An access sees some of the classes, and
// every statement on chunks and vectors is restricted to their numbers. The counts that scores
// depend on are kept by class, so that a search adds up those of the classes it sees, and documents
// in other classes have no influence.
//
// The files of the package:
//
//	pgvector.go  Index: opening, closing, reading one snapshot
//	schema.go    the tables
//	catchup.go   changes of the source to rows
//	batch.go     documents to rows; move.go documents with another ACL; counts.go their counts
//	fetch.go     the source's vectors to rows
//	sight.go     what an access sees
//	filter.go    filters to SQL
//	search.go    text queries
//	nearest.go   vector queries
//	build.go     HNSW indexes, in the background
//	graph.go     the graph of the passages that a search may find
package pgvector
