package index

import (
	"encoding/binary"
	"math"
)

// boundPoints is the number of (tf, length) pairs that a skip row stores for its block. They bound
// the contribution of the term to the score of any chunk in the block.
//
// A higher tf and a shorter chunk score more, whatever the average length is, and the average is
// known only at search time. So the block is bounded by its frontier: the pairs for which no other
// pair has at least the tf at no more length. Neighbours on the frontier are merged, taking the
// higher tf and the lower length, until boundPoints are left.
//
// Source: Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011;
// Mallia, Ottaviano, Porciani, Tonellotto and Venturini, "Faster BlockMax WAND with Variable-sized
// Blocks", SIGIR 2017. Both store the largest score, which requires that the average does not
// change.
const boundPoints = 2

// In a skip row, a tf of unboundedTF and a length of longLength mean that value or more.
const (
	unboundedTF = math.MaxUint8
	longLength  = math.MaxUint16
)

// putBound writes the points of a block's bound. Unused points are zero.
func putBound(row []byte, block []posting, lengths []uint32) {
	points := reduce(frontier(block, lengths))
	for i := range points {
		row[3*i] = byte(min(points[i].tf, unboundedTF))
		binary.LittleEndian.PutUint16(row[3*i+1:], uint16(min(points[i].length, longLength)))
	}
}

type tfLength struct{ tf, length uint32 }

// frontier returns the pairs of a block for which no other pair has at least the tf at no more
// length. Both components ascend.
func frontier(block []posting, lengths []uint32) []tfLength {
	var points []tfLength
	for _, p := range block {
		x := tfLength{tf: p.tf, length: lengths[p.chunk]}
		// Pairs with a lower tf stay before x if they are shorter.
		i := len(points)
		for i > 0 && points[i-1].tf > x.tf {
			i--
		}
		if i < len(points) && points[i].length <= x.length {
			continue
		}
		first := i
		for first > 0 && points[first-1].length >= x.length {
			first--
		}
		if i > 0 && points[i-1].tf == x.tf && points[i-1].length <= x.length {
			continue
		}
		points = append(points[:first], append([]tfLength{x}, points[i:]...)...)
	}
	return points
}

// reduce merges neighbours until at most boundPoints are left. Each time it merges the two
// neighbours whose joint bound is the lowest.
func reduce(points []tfLength) []tfLength {
	for len(points) > boundPoints {
		best, lowest := 0, math.Inf(1)
		for i := range points[1:] {
			joint := tfLength{tf: points[i+1].tf, length: points[i].length}
			if v := joint.typical(); v < lowest {
				best, lowest = i, v
			}
		}
		points[best].tf = points[best+1].tf
		points = append(points[:best+1], points[best+2:]...)
	}
	return points
}

// typical returns the score of the pair if the average chunk had 100 words.
func (p tfLength) typical() float64 {
	return float64(p.tf) / (float64(p.tf) + k1*(1-b) + float64(k1*b/100*float64(p.length)))
}

// bound returns an upper bound on the contribution of a term with the given units to block i of a
// list with a skip table.
func (l *blockList) bound(i int, units float64, s saturation) uint64 {
	most := uint64(0)
	points := l.table[i*skipRow+10:][:3*boundPoints]
	for p := 0; p < len(points); p += 3 {
		tf, length := uint32(points[p]), uint32(binary.LittleEndian.Uint16(points[p+1:]))
		switch tf {
		case 0:
		case unboundedTF:
			most = max(most, uint64(int64(units))+2)
		default:
			// Add one, because a product rounded the other way may differ by one unit.
			most = max(most, s.contribution(units, tf, length)+1)
		}
	}
	return most
}
