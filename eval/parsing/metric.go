package main

import (
	"math/bits"
	"strings"
)

// f1 returns the F1 of two bags: the harmonic mean of precision and recall. Two empty bags are equal.
func f1(a, b []string) float64 {
	if len(a)+len(b) == 0 {
		return 1
	}
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	common := 0
	for _, s := range b {
		if count[s] > 0 {
			count[s]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b))
}

// similarity returns the normalised indel similarity of words joined by spaces, by characters.
func similarity(a, b []string) float64 {
	x, y := []rune(strings.Join(a, " ")), []rune(strings.Join(b, " "))
	if len(x)+len(y) == 0 {
		return 1
	}
	return 2 * float64(lcs(x, y)) / float64(len(x)+len(y))
}

// lcs returns the length of the longest common subsequence in time len(a)·len(b)/64. The algorithm
// is of H. Hyyrö, Bit-Parallel LCS-length Computation Revisited, AWOCA 2004.
func lcs(a, b []rune) int {
	n := (len(a) + 63) / 64
	at := map[rune][]uint64{} // the positions of each character in a, as bits
	for i, c := range a {
		if at[c] == nil {
			at[c] = make([]uint64, n)
		}
		at[c][i/64] |= 1 << (i % 64)
	}
	v := make([]uint64, n)
	for i := range v {
		v[i] = ^uint64(0)
	}
	for _, c := range b {
		m := at[c]
		if m == nil {
			continue
		}
		var carry uint64
		for i := range v {
			u := v[i] & m[i]
			var sum uint64
			sum, carry = bits.Add64(v[i], u, carry)
			v[i] = sum | (v[i] - u)
		}
	}
	length := 0
	for i := range v {
		length += bits.OnesCount64(^v[i])
	}
	return length
}
