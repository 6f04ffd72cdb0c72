// Package safetensors reads and writes files of named tensors in the layout of
// the safetensors format: eight bytes with the length of a header, the header,
// which is JSON, and the tensors' bytes, little-endian, one after another.
//
// A File is one that is read. It is checked whole when it is opened, before any
// tensor is: a file that is cut short, too long, or whose tensors overlap or
// leave gaps is assay.ErrDamaged, so that what opens can be read to its end.
// The package does not know what the tensors mean.
package safetensors
