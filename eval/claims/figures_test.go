package claims

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
)

func TestParseGrounding(t *testing.T) {
	const file = "\ufeff" + `{"id": "a", "claim": "It rains.", "evidence": "It rains.", "label": "SUPPORTS"}` + "\r\n\r\n" +
		`{"id": 7, "claim": "It snows.", "evidence": ["It rains.", "No snow falls."], "label": "CONTRADICT", "extra": {"x": []}}` + "\n" +
		`{"claim": "It hails.", "evidence": [], "label": 0, "kind": "negation", "heading": ["Weather"]}` + "\n" +
		`{"claim": "It is dry.", "evidence": "", "label": true}`
	want := []Case{
		{ID: "a", Claim: "It rains.", Evidence: []string{"It rains."}, Label: "SUPPORTS", Verdict: assay.Supported},
		{ID: "7", Claim: "It snows.", Evidence: []string{"It rains.", "No snow falls."}, Label: "CONTRADICT", Verdict: assay.Contradicted},
		{ID: "line 4", Claim: "It hails.", Evidence: []string{}, Label: "0", Verdict: assay.Unsupported, Heading: []string{"Weather"}, Kind: "negation"},
		{ID: "line 5", Claim: "It is dry.", Evidence: []string{""}, Label: "true", Verdict: assay.Supported},
	}
	got, err := Parse(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseGroundingErrors(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"", "contains no claims"},
		{"\n \n", "contains no claims"},
		{"\n{torn", "line 2: "},
		{`[]`, "line 1: "},
		{`{"evidence": "x", "label": "yes"}`, "line 1: has no claim"},
		{`{"claim": " ", "evidence": "x", "label": "yes"}`, "line 1: has no claim"},
		{`{"claim": "x", "label": "yes"}`, "line 1: has no evidence"},
		{`{"claim": "x", "evidence": 3, "label": "yes"}`, "neither a text nor a list"},
		{`{"claim": "x", "evidence": [["x"]], "label": "yes"}`, "neither a text nor a list"},
		{`{"claim": "x", "evidence": "x"}`, "line 1: has no label"},
		{`{"claim": "x", "evidence": "x", "label": null}`, "line 1: has no label"},
	} {
		_, err := Parse(strings.NewReader(tt.file))
		if err == nil || !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.file, err, tt.want)
		}
	}
}

func FuzzParseGrounding(f *testing.F) {
	f.Add(`{"claim": "x", "evidence": ["y"], "label": "yes"}`)
	f.Add("\ufeff{}\r\n")
	f.Add(`{"claim": "x", "evidence": "y", "label": 1, "kind": {}, "heading": 4}`)
	f.Fuzz(func(t *testing.T, file string) {
		cases, err := Parse(strings.NewReader(file))
		if (err == nil) != (len(cases) > 0) {
			t.Errorf("%d cases and error %v", len(cases), err)
		}
		for _, c := range cases {
			if c.ID == "" || c.Claim == "" || c.Verdict == "" {
				t.Errorf("a case without ID, claim or verdict: %+v", c)
			}
		}
	})
}

func TestVerdictOf(t *testing.T) {
	for verdict, labels := range map[assay.Verdict]string{
		assay.Supported:    "supported SUPPORT SUPPORTS entailment attributable consistent yes Yes 1 true",
		assay.Contradicted: "contradiction CONTRADICT refuted REFUTES Contradicted",
		assay.Unsupported:  "partially_supported neutral NOT_ENOUGH_INFO not_supported inconsistent no 0 false whatever not-enough-info",
	} {
		for label := range strings.FieldsSeq(labels) {
			if got := VerdictOf(label); got != verdict {
				t.Errorf("VerdictOf(%q) = %s, want %s", label, got, verdict)
			}
		}
	}
	if got := VerdictOf("not supported"); got != assay.Unsupported {
		t.Errorf("VerdictOf(not supported) = %s", got)
	}
}

// TestFiguresOf compares FiguresOf with values worked out by hand. Of 3 supported claims 2 have
// that verdict, and of 4 others 3 do not.
func TestFiguresOf(t *testing.T) {
	s, c, u := assay.Supported, assay.Contradicted, assay.Unsupported
	judged := func(gold, verdict assay.Verdict, score float64) Judged {
		return Judged{Gold: gold, Verdict: verdict, Score: score}
	}
	f := FiguresOf([]Judged{
		judged(s, s, 0.95), judged(s, s, 0.85), judged(s, u, 0.15),
		judged(c, c, 0.05), judged(c, s, 0.95), judged(u, u, 0.25), judged(u, c, 0.05),
	})
	near := cmpopts.EquateApprox(0, 1e-9)
	want := Figures{
		Claims: 7, Gold: map[assay.Verdict]int{s: 3, c: 2, u: 2},
		BalancedAccuracy: (2.0/3 + 3.0/4) / 2,
		F1:               map[assay.Verdict]*float64{s: new(2.0 * 2 / (3 + 3)), c: new(2.0 * 1 / (2 + 2)), u: new(2.0 * 1 / (2 + 2))},
		MacroF1:          (2.0/3 + 0.5 + 0.5) / 3,
		// 0.0–0.1: two of mean 0.05, none supported; 0.1: 0.15, all supported; 0.2: 0.25, none;
		// 0.8: 0.85, all; 0.9: two of 0.95, half.
		ECE: (2*0.05 + 0.85 + 0.25 + 0.15 + 2*0.45) / 7,
		// Of 12 pairs 0.95 wins 3 and ties 1, 0.85 wins 3, 0.15 wins 2.
		AUC: new((3.5 + 3 + 2) / 12),
	}
	if d := cmp.Diff(want, f, near, cmpopts.IgnoreFields(Figures{}, "Calibration")); d != "" {
		t.Error(d)
	}
	if len(f.Calibration) != 5 || f.Calibration[4].Supported != 0.5 || f.Calibration[4].Claims != 2 {
		t.Errorf("calibration %+v", f.Calibration)
	}
	two := FiguresOf([]Judged{judged(s, s, 1), judged(u, c, 0), judged(u, u, 0)})
	if got, want := two.MacroF1, 1.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("macro F1 of two verdicts %g, want %g", got, want)
	}
	if two.BalancedAccuracy != 1 || *two.AUC != 1 || two.ECE != 0 {
		t.Errorf("%+v", two)
	}
}
