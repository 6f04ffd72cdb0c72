package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/assay-rag/assay/llm"
)

// Values are the numbers of a vector, decoded from JSON without null.
type Values []float64

// UnmarshalJSON implements json.Unmarshaler. It rejects null, which encoding/json would decode as
// 0.
func (v *Values) UnmarshalJSON(data []byte) error {
	if bytes.Contains(data, []byte("null")) {
		return errors.New("a vector contains null")
	}
	return json.Unmarshal(data, (*[]float64)(v))
}

// Vectors returns the vectors in the order of the n texts, one per text, at unit length. Rows
// without an index must be in that order and complete.
func Vectors(n int, rows []Row) ([]llm.Vector, error) {
	if len(rows) != n {
		return nil, fmt.Errorf("got %d vectors for %d texts", len(rows), n)
	}
	out, seen := make([]llm.Vector, n), make([]bool, n)
	for i, row := range rows {
		if row.Index == nil {
			row.Index = &i
		}
		if err := place(row.Index, seen); err != nil {
			return nil, err
		}
		if len(row.Values) == 0 || len(row.Values) != len(rows[0].Values) {
			return nil, fmt.Errorf("a vector has %d dimensions, the first has %d", len(row.Values), len(rows[0].Values))
		}
		v, err := unit(row.Values)
		if err != nil {
			return nil, err
		}
		out[*row.Index] = v
	}
	return out, nil
}

// unit returns a vector at unit length.
func unit(values Values) (llm.Vector, error) {
	square := 0.0
	for _, x := range values {
		square += x * x
	}
	if norm := math.Sqrt(square); norm > 0 && !math.IsInf(norm, 0) && !math.IsNaN(norm) {
		v := make(llm.Vector, len(values))
		for d, x := range values {
			v[d] = float32(x / norm)
		}
		return v, nil
	}
	return nil, errors.New("a vector is zero or not finite")
}
