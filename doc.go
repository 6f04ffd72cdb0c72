// Package assay defines the vocabulary of the assay engine: documents, chunks, queries, hits,
// evidence, claims, citations, answers and runs, and the metadata filter. It is plain structs
// without I/O. All other packages use these types.
//
// Two flows use them:
//
//	ingest   source → parse → chunk → store → index
//	ask      question → plan → retrieve → grade → generate → verify → answer
//
// A [Document] is the parsed text of one source, and a [Chunk] is a span of it. A [Retriever]
// searches a [Query] on behalf of a [Principal], whose [Access] decides which documents are
// visible. It returns [Results] with a [Hit] for each chunk found. A run accepts hits as numbered
// [Evidence] and ends in an [Answer]. Each [Claim] of the answer has a [Citation] and a [Verdict].
//
// Programs start with the package engine, which opens a store, ingests and asks.
package assay
