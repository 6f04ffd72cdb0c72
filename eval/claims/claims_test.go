package claims_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/claims"
	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/ground"
)

func TestReadGrounding(t *testing.T) {
	file := evaltest.WriteFile(t, "claims.jsonl", "\ufeff"+`{"id": 7, "claim": "a b", "evidence": "a b c", "label": "SUPPORTS"}

{"claim": "a d", "evidence": ["a b c.", "d e."], "label": 1.0}
{"id": "x", "claim": "a d", "evidence": "a", "label": "Not-Enough Info"}
{"id": "y", "claim": "a d", "evidence": "a", "label": "suported"}
{"id": "z", "claim": "a d", "evidence": "a", "label": "banana"}
{"id": "zz", "claim": "a d", "evidence": "a", "label": "banana"}
{"id": "f", "claim": "a d", "evidence": "a", "label": false}
`)
	cases, err := claims.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []claims.Case{
		{ID: "7", Claim: "a b", Evidence: []string{"a b c"}, Label: "SUPPORTS", Verdict: assay.Supported},
		{ID: "line 3", Claim: "a d", Evidence: []string{"a b c.", "d e."}, Label: "1.0", Verdict: assay.Supported},
		{ID: "x", Claim: "a d", Evidence: []string{"a"}, Label: "Not-Enough Info", Verdict: assay.Unsupported},
		{ID: "y", Claim: "a d", Evidence: []string{"a"}, Label: "suported", Verdict: assay.Unsupported},
		{ID: "z", Claim: "a d", Evidence: []string{"a"}, Label: "banana", Verdict: assay.Unsupported},
		{ID: "zz", Claim: "a d", Evidence: []string{"a"}, Label: "banana", Verdict: assay.Unsupported},
		{ID: "f", Claim: "a d", Evidence: []string{"a"}, Label: "false", Verdict: assay.Unsupported},
	}
	if diff := cmp.Diff(want, cases); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"suported": 1, "banana": 2}, claims.UnknownLabels(cases)); diff != "" {
		t.Error(diff)
	}
}

func TestReadGroundingErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "contains no claims",
		`[{"claim": "a"}]`:             "line 1: is part of a JSON array, want one JSON object per line",
		"\n[\n  {\"claim\": \"a\"}\n]": "line 2: is part of a JSON array",
		`{"claim": 1, "evidence": "a", "label": 1}`: "line 1: claim is a JSON number, want a text",
		`7`: "line 1: it is a JSON number, want an object",
		`{"claim": "a", "evidence": 1, "label": 1}`:      "neither a text nor a list",
		`{"claim": "a", "label": 1}`:                     "has no evidence",
		`{"claim": "a", "evidence": "a"}`:                "has no label",
		`{"claim": "a", "evidence": "a", "label": [1]}`:  "has no label",
		`{"claim": " ", "evidence": "a", "label": "no"}`: "has no claim",
		`{"claim`: "line 1",
	} {
		_, err := claims.Read(evaltest.WriteFile(t, "claims.jsonl", text))
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "struct") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	dir := t.TempDir()
	for file, want := range map[string]string{filepath.Join(dir, "none.jsonl"): "none.jsonl", dir: "is a folder"} {
		if _, err := claims.Read(file); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

func TestFiguresOfWhatIsNotThere(t *testing.T) {
	f := claims.FiguresOf([]claims.Judged{
		{Gold: assay.Supported, Verdict: assay.Supported, Score: 1},
		{Gold: assay.Supported, Verdict: assay.Unsupported, Score: 0.25},
		{Gold: assay.Unsupported, Verdict: assay.Unsupported, Score: 0.25},
		{Gold: assay.Unsupported, Verdict: assay.Contradicted, Score: 0},
	})
	if f.AUC == nil || *f.AUC != 0.875 || f.BalancedAccuracy != 0.75 || math.Abs(f.ECE-0.125) > 1e-9 || len(f.Calibration) != 3 {
		t.Errorf("%+v", f)
	}
	if f.F1[assay.Contradicted] != nil || *f.F1[assay.Supported] != 2.0/3 || *f.F1[assay.Unsupported] != 0.8 || math.Abs(f.MacroF1-(2.0/3+0.8)/2) > 1e-9 {
		t.Errorf("%+v", f.F1)
	}
	one := claims.FiguresOf([]claims.Judged{{Gold: assay.Supported, Verdict: assay.Supported, Score: 0.9}})
	if one.AUC != nil || one.F1[assay.Unsupported] != nil || one.BalancedAccuracy != 1 || one.MacroF1 != 1 {
		t.Errorf("one claim: %+v", one)
	}
}

// A scorer is a verifier that always returns the same score.
type scorer float64

func (s scorer) Verify(context.Context, string, []ground.Passage) (ground.Judgement, error) {
	return ground.Judgement{Verdict: assay.Supported, Score: float64(s)}, nil
}

// TestJudgeGroundingScores checks that a score outside [0, 1] is an error.
func TestJudgeGroundingScores(t *testing.T) {
	cases := []claims.Case{{ID: "7", Claim: "a", Evidence: []string{"a"}, Verdict: assay.Supported}}
	for _, score := range []float64{math.NaN(), -0.1, 1.1} {
		if _, err := claims.Judge(t.Context(), scorer(score), cases, nil); err == nil || !strings.Contains(err.Error(), "claim 7") {
			t.Errorf("a score of %v: %v", score, err)
		}
	}
	judged, err := claims.Judge(t.Context(), scorer(1), cases, nil)
	if err != nil || judged[0].ID != "7" || judged[0].Score != 1 {
		t.Errorf("%+v, %v", judged, err)
	}
}
