// Package assay holds the vocabulary of the assay engine: documents, chunks,
// queries, hits, evidence, claims, citations, answers and runs, and the metadata
// filter. It is plain structs without I/O; every other package speaks in these
// words.
//
// Two flows use them:
//
//	ingest   source → parse → chunk → store → index
//	ask      question → plan → retrieve → grade → generate → verify → answer
//
// A [Document] is the parsed text of one source, a [Chunk] a span of it. A
// [Query] is searched by a [Retriever] on behalf of a [Principal], whose
// [Access] decides what can be seen; it returns [Results] with a [Hit] for each
// chunk found. A run accepts hits as numbered [Evidence], and ends in an
// [Answer], whose every [Claim] has a [Citation] and a [Verdict].
//
// The package engine is where a program starts: it opens a store, ingests and
// asks.
package assay
