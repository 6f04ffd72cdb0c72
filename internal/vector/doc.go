// Package vector holds the inner loops of vector search: the estimate of many similarities from
// 1-bit codes, and the product of a query with a row of 12-bit numbers. Files, filters and ranking
// are the concern of package index.
//
// Every kernel has a portable form in Go, and may have a faster one in assembly that is chosen by
// the features of the processor. Both give identical bits: the order of integer sums does not
// matter, and float operations have a fixed order.
package vector
