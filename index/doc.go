// Package index is assay's own search engine: text search by BM25 over fields,
// with filters applied before scoring, derived from a store and rebuilt from it
// when lost. The contract that every index passes is indextest.
//
// [Open] gives the index of one [Source] as a [Searcher]. It holds immutable
// segments in memory and the number of the last change they know. A search
// first asks the source for its number; when that has moved, the changes since
// become a small new segment, the documents they replace are marked as deleted in
// a copy of the old segments' views, and small segments are merged. Searches read
// one such snapshot and never wait for another's scoring. [Searcher.Flush] writes
// segments and a manifest that names them; the folder may be deleted at any time.
//
// Where to look:
//
//	index.go     the contract
//	open.go      Searcher: opening, catching up, flushing
//	snapshot.go  one state of the index and how the next is made
//	search.go    scoring and the best hits
//	filter.go    access, collections and metadata, to a set of chunks
//	segment.go   the layout of a segment and its reader
//	column.go    the layout of metadata
//	build.go     documents to a segment
//	merge.go     segments to a segment
//	manifest.go  the files and how they are replaced
//	frame.go     what every file starts with
//
// It does not embed, fuse or rerank, and its scores mean nothing outside one
// query; package retrieve makes relevance of them. All text is analysed as
// English, whatever its language.
package index
