// Package tensor holds the inner loops of transformer encoders of the BERT family on CPUs: products
// of weight matrices with rows of activations, attention within one sequence, and layer
// normalisation. Models, files and tokens are the concern of package provider/local.
//
// A matrix is a slice of float32, row by row. Sequences follow one another as rows, without
// padding. No function starts a goroutine. Callers use more cores by giving each some of the rows,
// or some of the sequences.
//
// Every kernel has a portable form in Go, and may have faster ones in assembly that are chosen by
// the features of the processor: AVX-512 (with VNNI for integers), AVX2 with FMA, NEON. Integer
// results are identical in all forms. Float results differ by the order of sums and by fused
// products, by at most 1e-5 of the sum of the absolute values of the summands. A NaN or an infinity
// in a row of the input makes every value of the output that depends on it a NaN or an infinity. It
// never affects another row or another sequence.
package tensor
