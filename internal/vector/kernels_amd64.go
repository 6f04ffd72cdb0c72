package vector

import "golang.org/x/sys/cpu"

// The features of the processor. They take into account that the operating system must save the
// wide registers too.
var (
	hasAVX2   = cpu.X86.HasAVX2
	hasAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VPOPCNTDQ
)

// estimateAVX512 is Estimate for a group with the given number of words per code.
//
//go:noescape
func estimateAVX512(group *byte, code *uint64, words, dimensions int, base, gain, threshold, slope, bend float32, byNorm uint32, scores *float32) uint64

// estimateAVX2 is like estimateAVX512.
//
//go:noescape
func estimateAVX2(group *byte, code *uint64, words, dimensions int, base, gain, threshold, slope, bend float32, byNorm uint32, scores *float32) uint64

// dotAVX2 is Dot of n values, a positive multiple of 32.
//
//go:noescape
func dotAVX2(row *byte, q *int16, n int) int64

// prefetch prefetches n bytes, n > 0.
//
//go:noescape
func prefetch(b *byte, n int)

func estimate(e *Estimator, g Group, threshold float32, scores *[GroupRows]float32) uint64 {
	if !hasAVX2 {
		return estimatePortable(e, g, threshold, scores)
	}
	byNorm := uint32(0)
	if e.ByNorm {
		byNorm = 1
	}
	words := Words(e.Dimensions)
	if hasAVX512 {
		return estimateAVX512(&g[0], &e.Code[0], words, e.Dimensions, e.Base, e.Gain, threshold, e.Slope, e.Bend, byNorm, &scores[0])
	}
	return estimateAVX2(&g[0], &e.Code[0], words, e.Dimensions, e.Base, e.Gain, threshold, e.Slope, e.Bend, byNorm, &scores[0])
}

func dot(row []byte, q []int16) int64 {
	if !hasAVX2 || len(q) == 0 {
		return dotPortable(row, q)
	}
	return dotAVX2(&row[0], &q[0], len(q))
}
