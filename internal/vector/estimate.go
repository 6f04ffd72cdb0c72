package vector

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// GroupRows is the number of rows of a group, the unit that Estimate scores.
const GroupRows = 64

// lanes is the number of rows whose words are interleaved, so that one vector register holds the
// same word of eight rows.
const lanes = 8

// Words returns the number of 64-bit words of a code of the given dimensions.
func Words(dimensions int) int { return (dimensions + 63) / 64 }

// octetBytes returns the size of eight rows with the given number of words per code.
func octetBytes(words int) int { return lanes * (8*words + 16) }

// GroupBytes returns the size of a group, a multiple of 64.
func GroupBytes(dimensions int) int { return GroupRows / lanes * octetBytes(Words(dimensions)) }

// A Group is 64 rows of 1-bit codes with four numbers for each, as 8 octets of rows. Each octet is
// little-endian:
//
//	for each word of a code: 8 uint64, one a row
//	8 float32  scale
//	8 float32  offset
//	8 float32  norm
//	8 float32  step
//
// Bit i of a code, bit i%64 of its word i/64, is 1 if the row's residual is positive in dimension
// i. Bits past the last dimension are 0.
type Group []byte

// Numbers holds the numbers stored with a row's code.
type Numbers struct {
	Scale, Offset, Norm float32 // see Estimator
	Step                float32 // not used by this package
}

// Put writes one row.
func (g Group) Put(row int, code []uint64, n Numbers) {
	octet, lane := g.Octet(len(code), row), row%lanes
	for w, bits := range code {
		binary.LittleEndian.PutUint64(octet[8*(w*lanes+lane):], bits)
	}
	numbers := octet[8*lanes*len(code):]
	for i, x := range [4]float32{n.Scale, n.Offset, n.Norm, n.Step} {
		binary.LittleEndian.PutUint32(numbers[4*(i*lanes+lane):], math.Float32bits(x))
	}
}

// Octet returns the bytes of the eight rows that include row.
func (g Group) Octet(words, row int) []byte {
	return g[row/lanes*octetBytes(words):][:octetBytes(words)]
}

// CopyRow copies a row of another group of the same dimensions.
func (g Group) CopyRow(row int, from Group, fromRow, dimensions int) {
	words := Words(dimensions)
	to, octet := g.Octet(words, row), from.Octet(words, fromRow)
	lane, fromLane := row%lanes, fromRow%lanes
	for w := range words {
		copy(to[8*(w*lanes+lane):][:8], octet[8*(w*lanes+fromLane):])
	}
	to, octet = to[8*lanes*words:], octet[8*lanes*words:]
	for i := range 4 {
		copy(to[4*(i*lanes+lane):][:4], octet[4*(i*lanes+fromLane):])
	}
}

// Numbers returns the numbers of a row whose code has the given number of words.
func (g Group) Numbers(words, row int) Numbers {
	numbers, lane := g.Octet(words, row)[8*lanes*words:], row%lanes
	return Numbers{
		Scale:  float(numbers, lane),
		Offset: float(numbers, lanes+lane),
		Norm:   float(numbers, 2*lanes+lane),
		Step:   float(numbers, 3*lanes+lane),
	}
}

func float(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

// An Estimator is a query in the form that Estimate needs. A row's estimate is, with every
// operation rounded to float32,
//
//	similarity = (offset + Base) + scale*(Gain*(dimensions - 2*hamming))
//	estimate   = similarity                          when ByNorm is false
//	estimate   = norm*(Slope*similarity - Bend*norm) when it is true
//
// where hamming is the number of bits in which the row's code differs from Code.
type Estimator struct {
	Code        []uint64
	Dimensions  int
	Base, Gain  float32
	ByNorm      bool
	Slope, Bend float32
}

// Estimate writes the estimates of the group's 64 rows to scores. It returns a bit set of those
// that reach the threshold (bit i for row i). The group must have e.Dimensions, and len(e.Code)
// must be their number of words.
func (e *Estimator) Estimate(g Group, threshold float32, scores *[GroupRows]float32) uint64 {
	_ = g[:GroupBytes(e.Dimensions)]
	_ = e.Code[Words(e.Dimensions)-1]
	return estimate(e, g, threshold, scores)
}

// estimatePortable is Estimate for any processor.
func estimatePortable(e *Estimator, g Group, threshold float32, scores *[GroupRows]float32) uint64 {
	words := Words(e.Dimensions)
	var above uint64
	for octet := 0; octet < GroupRows; octet += lanes {
		rows := g[octet/lanes*octetBytes(words):][:octetBytes(words)]
		distances := hamming(rows, e.Code[:words])
		for lane, h := range distances {
			score := e.score(rows[8*lanes*words:], lane, h)
			scores[octet+lane] = score
			if score >= threshold {
				above |= 1 << (octet + lane)
			}
		}
	}
	return above
}

// hamming returns the number of bits in which each code of an octet of rows differs from code.
func hamming(rows []byte, code []uint64) [lanes]int {
	var h0, h1, h2, h3, h4, h5, h6, h7 int
	for _, q := range code {
		w := rows[:8*lanes]
		h0 += bits.OnesCount64(binary.LittleEndian.Uint64(w[0:]) ^ q)
		h1 += bits.OnesCount64(binary.LittleEndian.Uint64(w[8:]) ^ q)
		h2 += bits.OnesCount64(binary.LittleEndian.Uint64(w[16:]) ^ q)
		h3 += bits.OnesCount64(binary.LittleEndian.Uint64(w[24:]) ^ q)
		h4 += bits.OnesCount64(binary.LittleEndian.Uint64(w[32:]) ^ q)
		h5 += bits.OnesCount64(binary.LittleEndian.Uint64(w[40:]) ^ q)
		h6 += bits.OnesCount64(binary.LittleEndian.Uint64(w[48:]) ^ q)
		h7 += bits.OnesCount64(binary.LittleEndian.Uint64(w[56:]) ^ q)
		rows = rows[8*lanes:]
	}
	return [lanes]int{h0, h1, h2, h3, h4, h5, h6, h7}
}

// score returns the estimate of a row of an octet with these numbers. The explicit conversions
// prevent compilers from fusing a product with a sum.
func (e *Estimator) score(numbers []byte, lane, hamming int) float32 {
	score := float32(e.Gain * float32(e.Dimensions-2*hamming))
	score = float32(float(numbers, lane) * score)
	score = float32(float32(float(numbers, lanes+lane)+e.Base) + score)
	if e.ByNorm {
		norm := float(numbers, 2*lanes+lane)
		score = float32(norm * float32(float32(e.Slope*score)-float32(e.Bend*norm)))
	}
	return score
}
