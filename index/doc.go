// Package index is assay's own search engine: text search by BM25 over fields,
// with filters applied before scoring, derived from a store and rebuilt from it
// when lost. The contract that every index passes is indextest.
package index
