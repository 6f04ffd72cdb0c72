package index

import (
	"encoding/binary"
	"math"
)

// What a term may contribute to the score of any chunk of a block is bounded by
// the block's pairs of tf and chunk length. More tf and less length score more,
// whatever the average length is, which is known only when it is searched. So
// the pairs than which no other has as much tf at as little length bound all. Of
// those a skip row holds boundPoints: neighbours are taken together, as the tf of
// the one with more and the length of the one with less, until they are so few.
//
// Source: Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max
// Indexes", SIGIR 2011; Mallia, Ottaviano, Porciani, Tonellotto and Venturini,
// "Faster BlockMax WAND with Variable-sized Blocks", SIGIR 2017, use the largest
// score, for which the average must not change.
const boundPoints = 2

// In a skip row a tf of unboundedTF means as much or more, and so does a length
// of longLength.
const (
	unboundedTF = math.MaxUint8
	longLength  = math.MaxUint16
)

// putBound writes the points of a block's bound. Those that are not needed are
// zero.
func putBound(row []byte, block []posting, lengths []uint32) {
	points := reduce(frontier(block, lengths))
	for i := range points {
		row[3*i] = byte(min(points[i].tf, unboundedTF))
		binary.LittleEndian.PutUint16(row[3*i+1:], uint16(min(points[i].length, longLength)))
	}
}

type tfLength struct{ tf, length uint32 }

// frontier returns the pairs of a block than which no other has at least the tf
// at no more length, ascending by both.
func frontier(block []posting, lengths []uint32) []tfLength {
	var points []tfLength
	for _, p := range block {
		x := tfLength{tf: p.tf, length: lengths[p.chunk]}
		// Those with less tf stay before it if they are shorter.
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

// reduce takes neighbours together until at most boundPoints are left, each time
// those whose bound is then the lowest.
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

// typical is what the pair would score if chunks had 100 words on average.
func (p tfLength) typical() float64 {
	return float64(p.tf) / (float64(p.tf) + k1*(1-b) + float64(k1*b/100*float64(p.length)))
}

// bound returns what a term of so many units contributes at most in block i of a
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
			// One more: a product rounded the other way may make a unit of difference.
			most = max(most, s.contribution(units, tf, length)+1)
		}
	}
	return most
}
