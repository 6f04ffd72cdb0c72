// Package index is assay's own search engine. It searches text by BM25 over fields and searches
// vectors, both with filters applied before scoring, and it holds the graph of the entities that
// passages name. The index is derived from a store and is rebuilt from the store when it is lost.
// Package indextest is the contract test that every index passes.
//
// [Open] opens the index of one [Source] as a [Searcher]. The index consists of immutable segments,
// mapped from their files, and the number of the last change they include. A search first asks the
// source for its current number. If the number has moved, the new changes become a small segment in
// memory, and the documents they replace are marked as deleted in a copy of the old segments'
// views. Each search reads one such snapshot and never waits for the scoring of another search. A
// snapshot holds its files for as long as a search needs them.
//
// [Searcher.Flush] writes new segments to files and replaces the manifest that names them. Only one
// process writes. After a flush, segments are merged in the background, and [Searcher.Settle] waits
// for that. Other processes adopt the new manifest with their next search after a change. Vectors
// arrive later than the text and are stored in sidecars of the segments. The folder may be deleted
// at any time.
//
// The files of the package:
//
//	index.go         the contract
//	shared.go        analysis and scores, for indexes on other engines
//	open.go          Searcher: opening, searching, catching up, adopting a manifest
//	flush.go         snapshots to disk
//	settle.go        merges in the background
//	snapshot.go      one state of the index
//	visibility.go    the visibility of a snapshot's rows for an access
//	graph.go         the graph of the passages that a search may find
//	search.go        a query from start to end
//
//	catchup.go       changes to segments
//	build.go         documents to a segment; entitybuilder.go their entities
//	merge.go         segments to a segment; which segments to merge
//	fetch.go         a source's vectors to sidecars
//	sidecars.go      sidecars to a sidecar
//
//	manifest.go      the list of the files of the index
//	mapped.go        how files are created, mapped, held and removed
//	frame.go         the header, table and trailer of every file
//	segment.go       the sections of a segment
//	dictionary.go    terms to postings
//	postings.go      chunks that hold a term; block.go reads them
//	entities.go      entities to chunks and chunks to entities
//	bound.go         an upper bound on the score of a block of postings
//	score.go         the best chunks by text; window.go iterates over them
//	vectors.go       the layout of a sidecar
//	nearest.go       the best chunks by vector
//	filters.go       access, collections, languages and metadata to sets of chunks
//	column.go        the layout of filters; columnreader.go reads them
//	filterwriter.go  documents to filters; filtermerge.go merges them
//	chunkset.go      the layout of a set of chunks; roaring.go reads its bitmaps
//	encoding.go      varints and strings
//	bitset.go        sets of chunks while searching
//
// The package does not embed, fuse or rerank, and its scores are not comparable between queries.
// Package retrieve turns them into relevance.
package index
