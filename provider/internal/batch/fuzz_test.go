package batch

import (
	"encoding/json"
	"math"
	"testing"
)

// FuzzVectors checks that any rows result in one finite vector of unit length per text, or an
// error.
func FuzzVectors(f *testing.F) {
	f.Add(`[{"Values":[3,4]},{"Values":[1e-300,0]}]`)
	f.Add(`[{"Index":1,"Values":[3,4]},{"Index":0,"Values":[1e300,0]}]`)
	f.Add(`[{"Values":[null]},{"Values":[]}]`)
	f.Fuzz(func(t *testing.T, data string) {
		var rows []Row
		if json.Unmarshal([]byte(data), &rows) != nil {
			return
		}
		vectors, err := Vectors(2, rows)
		if err != nil {
			return
		}
		for _, v := range vectors {
			square := 0.0
			for _, x := range v {
				square += float64(x) * float64(x)
			}
			if math.Abs(math.Sqrt(square)-1) > 1e-3 || len(v) != len(vectors[0]) {
				t.Errorf("%q: the vector %v", data, v)
			}
		}
	})
}

// FuzzScores checks that any scores result in one finite number per text, or an error.
func FuzzScores(f *testing.F) {
	f.Add(`[{"index":1,"relevance_score":-8.1},{"index":0,"relevance_score":1e308}]`)
	f.Add(`[{"index":0,"relevance_score":null},{"index":0}]`)
	f.Fuzz(func(t *testing.T, data string) {
		var scores []Score
		if json.Unmarshal([]byte(data), &scores) != nil {
			return
		}
		out, err := Scores(2, scores)
		for _, x := range out {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%q: %v", data, out)
			}
		}
		if err == nil && len(out) != 2 {
			t.Errorf("%q: %v", data, out)
		}
	})
}
