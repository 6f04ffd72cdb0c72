package answers

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/testset"
)

// TestSaid checks that the text of an answer keeps the words that join the clauses of a sentence.
func TestSaid(t *testing.T) {
	tests := []struct {
		name, text string
		claims     []string
		want       string
	}{
		{"two sentences", "It lasts two years. [1] It is red. [2]", []string{"It lasts two years.", "It is red."}, "It lasts two years. It is red."},
		{"two clauses", "The warranty lasts two years and does not cover damage. [1, 2]", []string{"The warranty lasts two years", "does not cover damage."}, "The warranty lasts two years and does not cover damage."},
		{"a clause after its number", "It lasts two years [1], and it is red. [2]", []string{"It lasts two years", "it is red."}, "It lasts two years , and it is red."},
		{"list items", "- one [1]\n- two [1]", []string{"one", "two"}, "one two"},
		{"a long remark", "One is so. [1] The documents do not agree on this: Two is so. [2]", []string{"One is so.", "Two is so."}, "One is so. Two is so."},
		{"none", "Nothing was found.", nil, ""},
	}
	for _, tt := range tests {
		a := assay.Answer{Text: tt.text}
		for _, c := range tt.claims {
			at := strings.Index(tt.text, c)
			a.Claims = append(a.Claims, assay.Claim{Start: at, End: at + len(c)})
		}
		if got := metric.Said(a); strings.ReplaceAll(got, " ,", ",") != strings.ReplaceAll(tt.want, " ,", ",") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestAgainstBaselineRounds checks that the rounding of a baseline alone makes no difference.
func TestAgainstBaselineRounds(t *testing.T) {
	third := 1.0 / 3
	n := &tally{name: "auto", values: map[string][]float64{"f1": {third, third, third, third, third, third, third, third}}}
	other := map[string][]float64{"f1": {}}
	for range n.values["f1"] {
		other["f1"] = append(other["f1"], rounded(third))
	}
	if p := n.against("baseline", other); len(p) != 1 || p[0].Mean != 0 || p[0].P < 1 {
		t.Errorf("%+v", p)
	}
}

// TestRemediesOfWhatIsNotThere checks that chunking is no remedy if most of the missing gold is not
// in the index.
func TestRemediesOfWhatIsNotThere(t *testing.T) {
	s := System{Figures: []Figure{{Name: "recall@10", Mean: 0}}, Lost: map[Stage]int{NotIngested: 2, NotRetrieved: 1}}
	if all := remediesOf(s); len(all) != 2 || !strings.HasPrefix(all[0], "not ingested") {
		t.Errorf("%q", all)
	}
	s.Lost[NotRetrieved] = 3
	if all := remediesOf(s); len(all) != 3 || !strings.HasPrefix(all[0], "recall@10 is 0.00") {
		t.Errorf("%q", all)
	}
}

// TestNotJudged checks that missing judgements are counted, with the reason of the first question,
// and that refused questions name no judge.
func TestNotJudged(t *testing.T) {
	n := newTally("auto", make([]testset.Case, 3))
	refused := assay.Answer{Status: assay.NotFound}
	n.add(0, Outcome{Answer: refused, Metrics: map[string]float64{"correctness": 0}, Judges: map[string]string{"correctness": "m"}}, false)
	n.add(2, Outcome{Answer: assay.Answer{Status: assay.Answered}, NotJudged: map[string]string{"correctness": "no score", "claims": "none"}}, false)
	n.add(1, Outcome{Answer: assay.Answer{Status: assay.Answered}, NotJudged: map[string]string{"correctness": "no reply"}}, false)
	s := n.system()
	if s.NotJudged["correctness"] != 2 || s.NotJudged["claims"] != 1 || s.Notes["correctness"] != "not judged for 2 of the questions: no reply" {
		t.Errorf("%v, %v", s.NotJudged, s.Notes)
	}
	for _, f := range s.Figures {
		if f.Name == "correctness" && f.By != nobody {
			t.Errorf("judged by %q, and nobody was asked", f.By)
		}
	}
}

// TestUnsliced checks that a note names the properties with too many values for a table, if
// questions share them.
func TestUnsliced(t *testing.T) {
	n := newTally("auto", make([]testset.Case, 50))
	for i := range 50 {
		n.add(i, Outcome{Case: testset.Case{Slices: map[string]string{"key": string(rune('A' + i)), "team": string(rune('A' + i%25)), "kind": string(rune('A' + i%2))}}}, false)
	}
	if note := n.system().Notes["slices"]; note != "team: more than 20 values, so no table" {
		t.Errorf("%q", note)
	}
}

// TestExportCollections checks that an exported run keeps the collections that it searched.
func TestExportCollections(t *testing.T) {
	if x, err := testset.Export(assay.Run{ID: "a", Question: "Who?", Request: []byte(`{"collections": ["it"]}`)}); err != nil || len(x.Collections) != 1 || x.Collections[0] != "it" {
		t.Errorf("%+v", x)
	}
}
