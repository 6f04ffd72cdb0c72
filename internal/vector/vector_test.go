package vector

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// A form is an implementation of the kernels that this processor supports. use selects it until the
// test ends.
type form struct {
	name string
	use  func(testing.TB)
}

var forms = []form{{"fastest", func(testing.TB) {}}}

// sizes are numbers of dimensions: every remainder of a code's word and of the dimensions that Dot
// processes at once, and those of models.
var sizes = func() []int {
	sizes := []int{200, 384, 513, 768, 1024, 4095, 4096}
	for n := range 130 {
		sizes = append(sizes, n+1)
	}
	return sizes
}()

func randomCode(r *rand.Rand, dimensions int) []uint64 {
	code := make([]uint64, Words(dimensions))
	for i := range dimensions {
		code[i/64] |= r.Uint64() & 1 << (i % 64)
	}
	return code
}

func TestEstimate(t *testing.T) {
	for _, dimensions := range sizes {
		r := rand.New(rand.NewPCG(uint64(dimensions), 1))
		group := make(Group, GroupBytes(dimensions))
		var codes [GroupRows][]uint64
		var numbers [GroupRows]Numbers
		for row := range GroupRows {
			codes[row] = randomCode(r, dimensions)
			numbers[row] = Numbers{Scale: r.Float32(), Offset: r.Float32() - 0.5, Norm: float32(r.ExpFloat64()), Step: r.Float32()}
			group.Put(row, codes[row], numbers[row])
		}
		copied := make(Group, len(group))
		for row := range GroupRows {
			if got := group.Numbers(Words(dimensions), row); got != numbers[row] {
				t.Fatalf("%d dimensions: the numbers of row %d are %v, want %v", dimensions, row, got, numbers[row])
			}
			copied.CopyRow((row+13)%GroupRows, group, row, dimensions)
		}
		back := make(Group, len(group))
		for row := range GroupRows {
			back.CopyRow(row, copied, (row+13)%GroupRows, dimensions)
		}
		if !bytes.Equal(back, group) {
			t.Fatalf("%d dimensions: a group copied row by row and back is another", dimensions)
		}
		e := &Estimator{Code: randomCode(r, dimensions), Dimensions: dimensions, Base: r.Float32(), Gain: r.Float32() / 10}
		for _, byNorm := range []bool{false, true} {
			e.ByNorm, e.Slope, e.Bend = byNorm, 1+r.Float32(), r.Float32()
			var want [GroupRows]float32
			estimatePortable(e, group, 0, &want)
			for row := range GroupRows {
				h := 0
				for w, word := range codes[row] {
					h += bits.OnesCount64(word ^ e.Code[w])
				}
				n := numbers[row]
				exact := float64(n.Offset) + float64(e.Base) + float64(n.Scale)*float64(e.Gain)*float64(dimensions-2*h)
				if byNorm {
					exact = float64(n.Norm) * (float64(e.Slope)*exact - float64(e.Bend)*float64(n.Norm))
				}
				if math.Abs(exact-float64(want[row])) > 1e-4*(1+math.Abs(exact)) {
					t.Fatalf("%d dimensions, by norm %v, row %d: %v, want %v", dimensions, byNorm, row, want[row], exact)
				}
			}
			for _, threshold := range []float32{float32(math.Inf(-1)), want[17], e.Base, float32(math.Inf(1))} {
				var above uint64
				for row, score := range want {
					if score >= threshold {
						above |= 1 << row
					}
				}
				for _, f := range forms {
					t.Run(fmt.Sprintf("%s %d", f.name, dimensions), func(t *testing.T) {
						f.use(t)
						var got [GroupRows]float32
						reached := e.Estimate(group, threshold, &got)
						if got != want || reached != above {
							t.Errorf("Estimate = %x, %v, want %x, %v", reached, got, above, want)
						}
					})
				}
			}
		}
	}
}

func TestEstimateOfNoNumber(t *testing.T) {
	group := make(Group, GroupBytes(64))
	nan := float32(math.NaN())
	group.Put(3, []uint64{1}, Numbers{Scale: nan})
	for _, f := range forms {
		f.use(t)
		var scores [GroupRows]float32
		e := &Estimator{Code: []uint64{1}, Dimensions: 64, Gain: 1}
		if got := e.Estimate(group, float32(math.Inf(-1)), &scores); got != ^uint64(1<<3) {
			t.Errorf("%s: %x, want all rows but 3", f.name, got)
		}
	}
}

func randomValues(r *rand.Rand, n int) []int16 {
	values := make([]int16, n)
	for i := range values {
		values[i] = int16(r.IntN(2*MaxValue+1) - MaxValue)
	}
	return values
}

func TestTable(t *testing.T) {
	var table Table
	for _, dimensions := range sizes {
		r := rand.New(rand.NewPCG(uint64(dimensions), 2))
		query, code := randomValues(r, dimensions), randomCode(r, dimensions)
		want := 0
		for i, q := range query {
			if code[i/64]>>(i%64)&1 != 0 {
				want += int(q)
			} else {
				want -= int(q)
			}
		}
		group := make(Group, GroupBytes(dimensions))
		row := r.IntN(GroupRows)
		group.Put(row, code, Numbers{})
		table.Fill(query)
		if got := table.Sum(group, row); got != want {
			t.Errorf("%d dimensions: %d, want %d", dimensions, got, want)
		}
	}
}

func TestDot(t *testing.T) {
	for _, dimensions := range sizes {
		r := rand.New(rand.NewPCG(uint64(dimensions), 3))
		cases := [][2][]int16{{randomValues(r, dimensions), randomValues(r, dimensions)}}
		var same, most []int16
		for range dimensions {
			same, most = append(same, -MaxValue), append(most, MaxValue)
		}
		cases = append(cases, [2][]int16{most, most}, [2][]int16{same, most}, [2][]int16{same, same})
		for _, c := range cases {
			var want int64
			for i := range c[0] {
				want += int64(c[0][i]) * int64(c[1][i])
			}
			row := make([]byte, RowBytes(dimensions))
			PutRow(row, c[0])
			back := make([]int16, dimensions)
			if Row(row, back); fmt.Sprint(back) != fmt.Sprint(c[0]) {
				t.Fatalf("%d dimensions: row %v is read as %v", dimensions, c[0], back)
			}
			query := append(c[1][:dimensions:dimensions], make([]int16, Padded(dimensions)-dimensions)...)
			for _, f := range forms {
				t.Run(fmt.Sprintf("%s %d", f.name, dimensions), func(t *testing.T) {
					f.use(t)
					if got := Dot(row, query); got != want {
						t.Errorf("Dot = %d, want %d", got, want)
					}
				})
			}
		}
	}
}

func BenchmarkEstimate(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 4))
	group := make(Group, GroupBytes(384))
	for i := range group {
		group[i] = byte(r.Uint32())
	}
	e := &Estimator{Code: randomCode(r, 384), Dimensions: 384, Gain: 1}
	for _, f := range forms {
		b.Run(f.name, func(b *testing.B) {
			f.use(b)
			var scores [GroupRows]float32
			for b.Loop() {
				e.Estimate(group, 0, &scores)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/GroupRows, "ns/row")
		})
	}
}

func BenchmarkTable(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 5))
	query := randomValues(r, 384)
	group := make(Group, GroupBytes(384))
	group.Put(5, randomCode(r, 384), Numbers{})
	var table Table
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			table.Fill(query)
		}
	})
	b.Run("sum", func(b *testing.B) {
		for b.Loop() {
			table.Sum(group, 5)
		}
	})
}

func BenchmarkDot(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 6))
	row := make([]byte, RowBytes(384))
	PutRow(row, randomValues(r, 384))
	query := randomValues(r, 384)
	for _, f := range forms {
		b.Run(f.name, func(b *testing.B) {
			f.use(b)
			for b.Loop() {
				Dot(row, query)
			}
		})
	}
}
