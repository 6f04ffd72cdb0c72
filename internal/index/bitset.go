package index

import "math/bits"

// A bitset is a set of small numbers. The nil bitset is empty. A bitset made for n numbers holds
// only numbers below n.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) has(i uint32) bool {
	w := int(i >> 6)
	return w < len(s) && s[w]&(1<<(i&63)) != 0
}

func (s bitset) set(i uint32)   { s[i>>6] |= 1 << (i & 63) }
func (s bitset) unset(i uint32) { s[i>>6] &^= 1 << (i & 63) }

// setRange adds the numbers start to end-1.
func (s bitset) setRange(start, end uint32) {
	for ; start < end && start&63 != 0; start++ {
		s.set(start)
	}
	for ; start+64 <= end; start += 64 {
		s[start>>6] = ^uint64(0)
	}
	for ; start < end; start++ {
		s.set(start)
	}
}

// fill adds all numbers below n, the size that s was made for.
func (s bitset) fill(n int) { s.setRange(0, uint32(n)) }

// complement replaces s, made for n numbers, by the numbers below n that are not in it.
func (s bitset) complement(n int) {
	for i := range s {
		s[i] = ^s[i]
	}
	if rest := n & 63; rest != 0 {
		s[len(s)-1] &= 1<<rest - 1
	}
}

// and removes from s the numbers that are not in o, which has the same size.
func (s bitset) and(o bitset) {
	for i := range s {
		s[i] &= o[i]
	}
}

// or adds the numbers in o, which has the same size, to s.
func (s bitset) or(o bitset) {
	for i := range s {
		s[i] |= o[i]
	}
}

// each calls f for every number in s, in order.
func (s bitset) each(f func(i uint32)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			f(uint32(w<<6 + bits.TrailingZeros64(word)))
		}
	}
}

// andNot removes from s the numbers in o, which has the same size or is nil.
func (s bitset) andNot(o bitset) {
	for i := range o {
		s[i] &^= o[i]
	}
}

// count returns how many numbers are in s.
func (s bitset) count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// next returns the first number in s that is at least i, and false if none is.
func (s bitset) next(i uint32) (uint32, bool) {
	w := int(i >> 6)
	if w >= len(s) {
		return 0, false
	}
	for word := s[w] >> (i & 63) << (i & 63); ; word = s[w] {
		if word != 0 {
			return uint32(w<<6 + bits.TrailingZeros64(word)), true
		}
		if w++; w == len(s) {
			return 0, false
		}
	}
}

// nextHole returns the first number not in s that is at least i. The result is at most the size of
// s rounded up to words, or i if that is more.
func (s bitset) nextHole(i uint32) uint32 {
	w := int(i >> 6)
	if w >= len(s) {
		return i
	}
	for word := ^s[w] >> (i & 63) << (i & 63); ; word = ^s[w] {
		if word != 0 {
			return uint32(w<<6 + bits.TrailingZeros64(word))
		}
		if w++; w == len(s) {
			return uint32(w << 6)
		}
	}
}
