// Package indextest holds every index to the contract of index.Index, and has
// the source in memory that such tests need.
package indextest
