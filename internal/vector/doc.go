// Package vector holds the inner loops of vector search: the estimate of many
// similarities from 1-bit codes, and the product of a query with a row of 12-bit
// numbers. It knows nothing of files, filters or ranking; package index does.
//
// Every kernel has a portable form, in Go, and may have a faster one in assembly
// that is chosen by what the processor can do. Both give the same bits: integers
// are added in any order, and floats only in the order that is written down.
package vector
