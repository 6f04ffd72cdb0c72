package learn

import (
	"math"
	"math/rand/v2"
)

// Principal returns n directions along which vectors differ most, as rows: a vector's
// products with them are its shorter form. Rows are scaled so that each product has a
// standard deviation of half, and rounded. Vectors are of one length and not empty; they
// are taken beside the origin, not beside their mean.
//
// The directions are found by orthogonal iteration: Golub and Van Loan, "Matrix
// computations", 8.2.4.
func Principal(vectors [][]float32, n int) [][]float32 {
	second := moments(vectors)
	dim := len(vectors[0])
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, dim)
		for k := range rows[i] {
			rows[i][k] = random.NormFloat64()
		}
	}
	var lengths []float64
	const rounds = 40
	for range rounds {
		for i := range rows {
			rows[i] = times(second, rows[i])
		}
		lengths = orthogonal(rows)
	}
	out := make([][]float32, n)
	for i := range rows {
		out[i] = make([]float32, dim)
		for k, x := range rows[i] {
			out[i][k] = float32(round(0.5*x/math.Sqrt(max(lengths[i], 1e-9)), 1e-3))
		}
	}
	return out
}

// moments are the mean products of the vectors' numbers.
func moments(vectors [][]float32) [][]float64 {
	dim := len(vectors[0])
	m := make([][]float64, dim)
	for i := range m {
		m[i] = make([]float64, dim)
	}
	for _, v := range vectors {
		for i, x := range v {
			row, f := m[i], float64(x)
			for k, y := range v[:i+1] {
				row[k] += f * float64(y)
			}
		}
	}
	for i := range m {
		for k := range i + 1 {
			m[i][k] /= float64(len(vectors))
			m[k][i] = m[i][k]
		}
	}
	return m
}

func times(m [][]float64, v []float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		for k, x := range row {
			out[i] += x * v[k]
		}
	}
	return out
}

// orthogonal makes rows orthogonal and of unit length, and returns the lengths that they
// had.
func orthogonal(rows [][]float64) []float64 {
	lengths := make([]float64, len(rows))
	for i, row := range rows {
		for _, before := range rows[:i] {
			p := 0.0
			for k, x := range row {
				p += x * before[k]
			}
			for k := range row {
				row[k] -= p * before[k]
			}
		}
		square := 0.0
		for _, x := range row {
			square += x * x
		}
		lengths[i] = math.Sqrt(square)
		for k := range row {
			row[k] /= max(lengths[i], 1e-12)
		}
	}
	return lengths
}
