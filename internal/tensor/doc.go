// Package tensor holds the inner loops of transformer encoders of the BERT family
// on processors: products of matrices of weights with rows of activations,
// attention within one sequence, and the normalisation of rows. It knows nothing of
// models, files or tokens; package provider/local does.
//
// Matrices are rows one after another in a slice of float32. Sequences stand one
// after another as rows, without padding. No function starts a goroutine: callers
// use more cores by giving each some of the rows, or some of the sequences.
//
// Every kernel has a portable form, in Go, and may have faster ones in assembly that
// are chosen by what the processor can do: AVX-512 (with VNNI for integers), AVX2 with
// FMA, NEON. Integers come out the same in each. Floats
// differ by the order of sums and by fused products: by at most 1e-5 of the sum of the
// absolute values of what is added. A NaN or an infinity in a row of the input makes
// every value of the output that depends on it a NaN or an infinity; it never reaches
// another row, nor another sequence.
package tensor
