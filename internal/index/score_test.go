package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A testView is a view and the data that it was made from.
type testView struct {
	textView
	lists       [][]posting // by term
	chunkLength []uint32
}

// randomBM25 returns parameters, the defaults half of the time.
func randomBM25(random *rand.Rand) assay.BM25 {
	if random.IntN(2) == 0 {
		return assay.BM25{}
	}
	return assay.BM25{K1: pick(random, 0, 1e-9, 0.1, 1.2, assay.MaxK1), B: pick(random, 0, 1e-9, 0.1, 0.75, 1)}
}

// exhaustive computes the result of bestByText in the simplest way.
func exhaustive(views []testView, average float64, p assay.BM25, limit int) ([]candidate, int) {
	var all []candidate
	s := newSaturation(average, p)
	for i, v := range views {
		scores := make([]uint64, len(v.chunkLength))
		holds := make([]bool, len(v.chunkLength))
		for t, list := range v.lists {
			for _, p := range list {
				scores[p.chunk] += s.contribution(v.terms[t].idf*scoreUnit, p.tf, v.chunkLength[p.chunk])
				holds[p.chunk] = true
			}
		}
		for c, score := range scores {
			if holds[c] && (v.kept == nil || v.kept.has(uint32(c))) {
				all = append(all, candidate{view: i, chunk: uint32(c), score: score})
			}
		}
	}
	slices.SortFunc(all, func(x, y candidate) int {
		if n := cmp.Compare(y.score, x.score); n != 0 {
			return n
		}
		return cmp.Compare(string(views[x.view].ids[16*x.chunk:][:16]), string(views[y.view].ids[16*y.chunk:][:16]))
	})
	return all[:min(limit, len(all))], min(len(all), MaxTotal)
}

func textViews(views []testView) []textView {
	var list []textView
	for _, v := range views {
		list = append(list, v.textView)
	}
	return list
}

func pick[T any](random *rand.Rand, list ...T) T { return list[random.IntN(len(list))] }

// randomView returns a segment of rare and common terms, in chunks with similar or extreme lengths.
func randomView(random *rand.Rand, idfs []float64) testView {
	chunks := pick(random, 1, 2, 100, 128, 129, windowSize-1, windowSize, windowSize+1, 3*windowSize, 4*windowSize+random.IntN(windowSize))
	v := testView{chunkLength: make([]uint32, chunks)}
	longest := pick[uint32](random, 1, 3, 200, 200, 200, 70_000, 1<<32-1)
	for c := range v.chunkLength {
		v.chunkLength[c] = random.Uint32N(longest)
		v.ids = binary.BigEndian.AppendUint64(v.ids, random.Uint64N(3)) // usually the second half decides
		v.ids = binary.BigEndian.AppendUint64(v.ids, random.Uint64())
		v.lengths = binary.LittleEndian.AppendUint32(v.lengths, v.chunkLength[c])
	}
	maxTF := pick[uint32](random, 1, 2, 9, 9, 400, 1<<32-1)
	for _, idf := range idfs {
		share := pick(random, 0, 0.001, 0.01, 0.1, 0.5, 0.9, 1)
		var list []posting
		for c := range uint32(chunks) {
			if random.Float64() < share {
				list = append(list, posting{chunk: c, tf: 1 + random.Uint32N(1+random.Uint32N(maxTF))})
			}
		}
		v.lists = append(v.lists, list)
		v.terms = append(v.terms, scoredTerm{postings: written(list, v.chunkLength), idf: idf})
	}
	v.kept = randomKept(random, chunks)
	return v
}

func written(list []posting, lengths []uint32) postings {
	if len(list) == 0 {
		return postings{}
	}
	return postings{count: len(list), bytes: appendPostings(nil, list, lengths), chunks: uint32(len(lengths))}
}

// randomKept keeps all chunks, none, runs or single ones.
func randomKept(random *rand.Rand, chunks int) bitset {
	kept := newBitset(chunks)
	switch random.IntN(6) {
	case 0, 1:
		return nil
	case 2: // all or none
		if random.IntN(2) == 0 {
			kept.fill(chunks)
		}
	case 3:
		for range 5 {
			first := random.IntN(chunks)
			kept.setRange(uint32(first), uint32(first+random.IntN(chunks-first+1)))
		}
	default:
		share := pick(random, 0.0005, 0.01, 0.1, 0.2, 0.25, 0.3, 0.5, 0.9)
		for c := range uint32(chunks) {
			if random.Float64() < share {
				kept.set(c)
			}
		}
	}
	return kept
}

func randomIDFs(random *rand.Rand) []float64 {
	n := 1 + random.IntN(9)
	if random.IntN(20) == 0 {
		n = maxCursors + 2
	}
	idfs := make([]float64, n)
	for i := range idfs {
		idfs[i] = pick(random, 0, 1e-12, 1, 1, 2, 12*random.Float64(), 12*random.Float64())
	}
	return idfs
}

// rounds returns the number of repetitions of a random test.
func rounds(short, normal, long int) int {
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		return long
	case testing.Short():
		return short
	}
	return normal
}

// TestBestByTextIsExhaustive checks that pruning does not change the result, to the last unit.
func TestBestByTextIsExhaustive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(rounds(30, 300, 20_000)) {
		random := rand.New(rand.NewPCG(seed, 3))
		idfs := randomIDFs(random)
		views := make([]testView, 1+random.IntN(5))
		for i := range views {
			views[i] = randomView(random, idfs)
		}
		average := pick(random, 0, 0.5, 100, 100, 116.5, 1e6)
		limit := pick(random, 1, 1, 2, 10, 50, 200, 5000)
		p := randomBM25(random)
		want, wantTotal := exhaustive(views, average, p, limit)
		got, total, err := bestByText(t.Context(), textViews(views), average, p, limit)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if total != wantTotal {
			t.Fatalf("seed %d: total %d, want %d", seed, total, wantTotal)
		}
		if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(candidate{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: the best %d of %d chunks (-exhaustive +got):\n%s", seed, limit, total, diff)
		}
	}
}

func TestContribution(t *testing.T) {
	t.Parallel()
	for _, average := range []float64{0, 1, 116.5, 1e9} {
		for _, tf := range []uint32{1, 2, 30, 1<<32 - 1} {
			for _, length := range []uint32{0, 1, 117, 1<<32 - 1} {
				relative := 0.0
				if average > 0 {
					relative = float64(length) / average
				}
				for given, p := range map[assay.BM25]assay.BM25{{}: {K1: k1, B: b}, {K1: 1.2}: {K1: 1.2, B: b}, {K1: 2, B: 0.75}: {K1: 2, B: 0.75}} {
					want := 7.5 * float64(tf) / (float64(tf) + p.K1*(1-p.B+p.B*relative))
					got := float64(newSaturation(average, given).contribution(7.5*scoreUnit, tf, length)) / scoreUnit
					if math.Abs(got-want) > 1e-9 {
						t.Errorf("%+v: tf %d in length %d of %g on average contributes %.12f, want %.12f", given, tf, length, average, got, want)
					}
				}
			}
		}
	}
}

// TestBound checks that no posting of a block contributes more than the block's bound, for any
// average.
func TestBound(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	for range rounds(300, 3000, 100_000) {
		lengths := make([]uint32, 2*blockSize)
		longest := pick[uint32](random, 1, 10, 300, 70_000, 1<<32-1)
		maxTF := pick[uint32](random, 1, 3, 9, 300, 1<<32-1)
		var list []posting
		for c := range lengths {
			lengths[c] = random.Uint32N(longest)
			list = append(list, posting{chunk: uint32(c), tf: 1 + random.Uint32N(1+random.Uint32N(maxTF))})
		}
		l, err := written(list, lengths).open()
		if err != nil {
			t.Fatal(err)
		}
		for _, average := range []float64{0, 0.01, 1, 50, 116.5, 1e4, 1e10} {
			s := newSaturation(average, randomBM25(random))
			units := 20 * random.Float64() * scoreUnit
			for i := range l.blocks() {
				bound := l.bound(i, units, s)
				for _, p := range list[i*blockSize:][:blockSize] {
					if got := s.contribution(units, p.tf, lengths[p.chunk]); got > bound {
						t.Fatalf("tf %d in length %d (average %g) contributes %d, bound %d", p.tf, lengths[p.chunk], average, got, bound)
					}
				}
			}
		}
	}
}

func TestBestByTextEndsWhenCancelled(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	for _, terms := range []int{3, maxCursors + 1} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		v := randomView(random, make([]float64, terms))
		for v.lists[0] == nil {
			v = randomView(random, make([]float64, terms))
		}
		if _, _, err := bestByText(ctx, []textView{v.textView}, 100, assay.BM25{}, 10); !errors.Is(err, context.Canceled) {
			t.Errorf("%d terms: error %v, want Canceled", terms, err)
		}
	}
}

// FuzzBestByText scores postings with changed bytes. The result must be an error or any result, and
// the scorer's buffers must be clean afterwards.
func FuzzBestByText(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, uint32(seed*seed*7), byte(1<<(seed%8)), byte(seed%3), uint16(seed*100))
	}
	good := make([]testView, 1)
	random := rand.New(rand.NewPCG(6, 6))
	var want []candidate
	var wantTotal int
	for wantTotal < MaxTotal {
		good[0] = randomView(random, []float64{1, 2, 3})
		want, wantTotal = exhaustive(good, 100, assay.BM25{}, 20)
	}
	f.Fuzz(func(t *testing.T, seed uint64, at uint32, flip, term byte, cut uint16) {
		v := randomView(rand.New(rand.NewPCG(seed%64, 7)), []float64{3, 2, 1})
		p := &v.terms[int(term)%3].postings
		if n := len(p.bytes); n > 0 {
			p.bytes[int(at)%n] ^= flip
			p.bytes = p.bytes[:n-int(cut)%(n+1)*int(flip&1)]
		}
		if _, _, err := bestByText(t.Context(), []textView{v.textView}, 100, assay.BM25{}, 20); err != nil && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("error %v is not ErrDamaged", err)
		}
		got, total, err := bestByText(t.Context(), textViews(good), 100, assay.BM25{}, 20)
		if err != nil || total != wantTotal || !gocmp.Equal(got, want, gocmp.AllowUnexported(candidate{})) {
			t.Errorf("the next search found %v of %d, error %v, want %v of %d", got, total, err, want, wantTotal)
		}
	})
}

// BenchmarkBestByText scores 8 terms with Zipf-distributed frequencies in 200,000 chunks.
func BenchmarkBestByText(b *testing.B) {
	const chunks = 200_000
	random := rand.New(rand.NewPCG(8, 8))
	v := textView{ids: make([]byte, 16*chunks)}
	lengths := make([]uint32, chunks)
	for c := range lengths {
		lengths[c] = 60 + random.Uint32N(120)
		v.lengths = binary.LittleEndian.AppendUint32(v.lengths, lengths[c])
		binary.BigEndian.PutUint64(v.ids[16*c:], random.Uint64())
	}
	for rank := range 8 {
		share := 0.3 / float64(1+rank*rank)
		var list []posting
		for c := range uint32(chunks) {
			if random.Float64() < share {
				list = append(list, posting{chunk: c, tf: 1 + random.Uint32N(1+random.Uint32N(6))})
			}
		}
		v.terms = append(v.terms, scoredTerm{postings: written(list, lengths), idf: -math.Log(share)})
	}
	for _, one := range []int{1, 2, 10, 100, 10_000} {
		b.Run(fmt.Sprintf("kept=1in%d", one), func(b *testing.B) {
			v := v
			if one > 1 {
				v.kept = randomSet(random, chunks, one)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := bestByText(b.Context(), []textView{v}, 120, assay.BM25{}, 50); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
