// Package index is assay's own search engine: text search by BM25 over fields and
// search by vectors, with filters applied before scoring, and the graph of what
// passages name; derived from a store and rebuilt from it when lost. The contract
// that every index passes is indextest.
//
// [Open] gives the index of one [Source] as a [Searcher]. It holds immutable
// segments, mapped from their files, and the number of the last change they know.
// A search first asks the source for its number; when that has moved, the changes
// since become a small segment in memory, and the documents they replace are marked
// as deleted in a copy of the old segments' views. Searches read one such snapshot,
// which holds its files as long as one of them needs it, and never wait for
// another's scoring. [Searcher.Flush], of the one process that writes, brings fresh
// segments into files and replaces the manifest that names them; after it segments
// are merged in the background, which [Searcher.Settle] waits for. Other processes
// adopt the new manifest with their next search after a change. Vectors come later
// than the text and lie in sidecars of the segments. The folder may be deleted at
// any time.
//
// Where to look:
//
//	index.go         the contract
//	open.go          Searcher: opening, searching, catching up, adopting a manifest
//	flush.go         to disk
//	settle.go        merges in the background
//	snapshot.go      one state of the index
//	sight.go         what an access sees of it
//	graph.go         what the passages that a search may find name
//	search.go        a query from start to end
//
//	catchup.go       changes to segments
//	build.go         documents to a segment; entitybuilder.go what they name
//	merge.go         segments to a segment; which ones
//	fetch.go         a source's vectors to sidecars
//	sidecars.go      sidecars to a sidecar
//
//	manifest.go      what the index is made of
//	mapped.go        files: how they appear, are mapped, held and removed
//	frame.go         what every file starts and ends with
//	segment.go       the sections of a segment
//	dictionary.go    terms to postings
//	postings.go      chunks that hold a term; block.go reads them
//	entities.go      entities to chunks and chunks to entities
//	bound.go         what a block of postings can score at most
//	score.go         the best chunks by text; window.go goes through them
//	vectors.go       the layout of a sidecar
//	nearest.go       the best chunks by vector
//	filters.go       access, collections, languages and metadata to sets of chunks
//	column.go        the layout of filters; columnreader.go reads them
//	filterwriter.go  documents to filters; filtermerge.go merges them
//	chunkset.go      the layout of a set of chunks; roaring.go reads its bitmaps
//	encoding.go      varints and strings
//	bitset.go        sets of chunks while searching
//
// It does not embed, fuse or rerank, and its scores mean nothing outside one
// query; package retrieve makes relevance of them.
package index
