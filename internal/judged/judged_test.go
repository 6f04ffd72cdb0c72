package judged

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// step returns a step that judged claims, given as pairs of text and score; a score of at least 0.5
// means supported.
func step(path string, claims ...any) Step {
	var in, out []map[string]any
	for i := 0; i < len(claims); i += 2 {
		verdict := assay.Unsupported
		if claims[i+1].(float64) >= 0.5 {
			verdict = assay.Supported
		}
		in = append(in, map[string]any{"claim": claims[i]})
		out = append(out, map[string]any{"verdict": verdict, "score": claims[i+1]})
	}
	input, _ := json.Marshal(in)
	output, _ := json.Marshal(out)
	return Step{Path: path, Input: input, Output: output}
}

func TestClaims(t *testing.T) {
	const yes, no = assay.Supported, assay.Unsupported
	first := step("finish[0]/verify", "it opens at nine", 0.9, "it costs two euros", 0.1)
	tests := []struct {
		name  string
		steps []Step
		want  []Claim
	}{
		{"none", nil, []Claim{}},
		{"once", []Step{first}, []Claim{{0, 0, yes}, {0, 1, no}}},
		{"repaired", []Step{first, step("finish[0]/repair[0]/elsewhere[0]/verify", "it costs two euros", 0.8)}, []Claim{{0, 0, yes}, {0, 1, yes}}},
		{"not sure enough to be repaired", []Step{first, step("finish[0]/repair[0]/elsewhere[0]/verify", "it costs two euros", 0.6)}, []Claim{{0, 0, yes}, {0, 1, no}}},
		{"refused twice", []Step{first, step("finish[0]/repair[0]/elsewhere[0]/verify", "it costs two euros", 0.2)}, []Claim{{0, 0, yes}, {0, 1, no}}},
		{"the other side of a repaired one", []Step{first, step("finish[0]/repair[0]/opposed[0]/verify", "it costs two euros", 0.9)}, []Claim{{0, 0, yes}, {0, 1, no}}},
		{"sought", []Step{first, step("finish[0]/sought[0]/verify", "it costs two euros", 0.8)}, []Claim{{0, 0, yes}, {0, 1, yes}}},
		{"as its sentence", []Step{first, step("finish[0]/sentences[0]/verify", "it costs two euros and is blue", 0.6)}, []Claim{{0, 0, yes}, {0, 1, yes}}},
		{"another sentence", []Step{first, step("finish[0]/sentences[0]/verify", "it is blue and round", 0.9)}, []Claim{{0, 0, yes}, {0, 1, no}}},
		{"a better draft", []Step{first, step("finish[0]/again[0]/verify", "it opens at nine", 0.9, "it costs 2 euros", 0.9, "it is red", 0.1)}, []Claim{{1, 0, yes}, {1, 1, yes}, {1, 2, no}}},
		{"a draft that is no better", []Step{first, step("finish[0]/again[0]/verify", "it opens at nine", 0.9)}, []Claim{{0, 0, yes}, {0, 1, no}}},
		{"a repair of the other draft", []Step{first, step("finish[0]/again[0]/verify", "it costs two euros", 0.1), step("finish[0]/again[0]/repair[0]/elsewhere[0]/verify", "it costs two euros", 0.9)},
			[]Claim{{0, 0, yes}, {0, 1, no}}},
		{"quotations in its place", []Step{step("finish[0]/verify", "it is red", 0.1), step("finish[0]/quoted[0]/verify", "it opens at nine", 0.9)}, []Claim{{0, 0, no}}},
		{"quotations alone", []Step{step("finish[0]/verify"), step("finish[0]/quoted[0]/verify", "it opens at nine", 0.9)}, []Claim{{1, 0, yes}}},
		{"a finish of its own", []Step{step("quoted[0]/finish[0]/verify", "it opens at nine", 0.9)}, []Claim{{0, 0, yes}}},
		{"two finishes", []Step{first, step("finish[1]/verify", "it costs two euros", 0.9, "it is round", 0.9)}, []Claim{{0, 0, yes}, {0, 1, yes}, {1, 1, yes}}},
		{"without words", []Step{{Path: "finish[0]/verify", Output: json.RawMessage(`[{"verdict":"supported"},{"verdict":"unsupported"}]`)}}, []Claim{{0, 0, yes}, {0, 1, no}}},
		{"damaged", []Step{{Path: "verify", Output: json.RawMessage(`{`)}}, []Claim{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Claims(tt.steps)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
