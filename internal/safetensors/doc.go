// Package safetensors reads and writes files of named tensors in the safetensors format: eight
// bytes with the length of a header, the header in JSON, and the tensors' bytes, little-endian, one
// after another.
//
// Opening a File checks its whole layout. A file that is truncated, too long, or whose tensors
// overlap or leave gaps gives assay.ErrDamaged, so an open file can be read to its end. The package
// does not interpret the tensors.
package safetensors
