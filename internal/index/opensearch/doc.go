// Package opensearch is an index on an OpenSearch cluster: sharded, replicated and searched by
// any number of processes. It is derived from an index.Source, and one process writes it.
//
// A [Cluster] is a connection, and [Cluster.Open] returns the [Index] of one tenant. Each tenant has
// an alias of its own, which names one index of OpenSearch. A row of that index is a chunk with its
// terms, a vector of a chunk, or a document without chunks. Rows carry what the filters need: the
// document's access list, collection, language and metadata. One function, state.scope, builds the
// filter of every query from the tenant's state, the access and the changes that the index does not
// have yet.
//
// # Scores
//
// Chunks are analysed here, by package analysis, and OpenSearch gets the terms. Term statistics are
// counted by aggregations over the chunks that the access may see, and a script computes BM25 from
// them and from the frequencies of the postings. So the scores are those of package index, as
// float32, and documents that may not be seen do not influence them.
//
// If more than 10,000 eligible chunks match, the script scores only candidates: of each shard, the
// 1,000 chunks, or 20 for each hit if these are more, with the best sums of impacts. The impact of a
// term in a chunk is its frequency divided by the length normalization of BM25 with a constant average
// length. It is stored with the chunk, as a rank feature. A search saturates it by k1 and weights it by
// the same idf, so that the sum differs from the score only by the average length and by a parameter b
// of the query. Lucene skips blocks of postings that have no candidate. Neither the impacts nor the
// weights depend on hidden documents, and the filter is inside the search, so that a hidden document
// takes no candidate's place.
//
// Vectors are searched by k-NN (engine lucene) with the filter inside the search. They are stored with
// length 1 and their norm beside them, from which all three metrics follow. The candidates are the
// nearest by cosine, at most 10,000: a search by another metric is exact only if the vectors have
// equal norms or if at most that many chunks are eligible.
//
// # States
//
// The writer numbers its claims. Rows are never changed. Each has the number of the claim that wrote
// it, and a state document in the same index has the number of the last committed claim. Flush writes
// rows that nobody sees yet, refreshes the index, and then replaces the state document by
// compare-and-set. The new state lists the documents whose older rows no longer count. These rows are
// deleted later, when no search can still use the state before. So every search reads one state,
// whatever the shards have refreshed, and a writer that crashed or was superseded leaves only rows
// that no state includes.
//
// A search reads the state document, and from the source the IDs of the documents that changed since.
// It excludes these documents. Therefore it never shows a deleted document, an old version, or a
// document to a principal who lost the right to see it, however late the next Flush is. New and
// changed documents appear with that Flush, and Result.Sequence is the sequence number of the last
// one.
//
// If the index is missing, belongs to another source, is ahead of its source or has another layout,
// Flush builds a new index beside it and then moves the alias. [Index.Rebuild] does the same at will.
package opensearch
