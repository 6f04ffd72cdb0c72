package testset_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/eval/testset"
)

var sameCases = []cmp.Option{cmpopts.IgnoreUnexported(testset.Case{}), cmpopts.EquateEmpty()}

// TestReadCases checks that cases are read under the field names of common sets.
func TestReadCases(t *testing.T) {
	yes := true
	tests := []struct {
		name, line string
		want       testset.Case
	}{
		{"a case as it is written", `{"id":"q","question":"Who?","answers":["A","B"],"gold":[{"document":"a.md","start":3,"end":9,"quote":"A does","grade":2}],"all_gold":true,"tenant":"t","slices":{"type":"person"}}`,
			testset.Case{ID: "q", Question: "Who?", Answers: []string{"A", "B"}, Gold: []testset.Gold{{Document: "a.md", Start: 3, End: 9, Quote: "A does", Grade: 2}}, AllGold: true, Tenant: "t", Slices: map[string]string{"type": "person"}}},
		{"one answer, documents by name", `{"_id":7,"query":"Who?","answer":"A","documents":["a.md","b.md"]}`,
			testset.Case{ID: "7", Question: "Who?", Answers: []string{"A"}, Gold: []testset.Gold{{Document: "a.md"}, {Document: "b.md"}}}},
		{"a place alone", `{"question":"Who?","gold":"a.md"}`, testset.Case{ID: "1", Question: "Who?", Gold: []testset.Gold{{Document: "a.md"}}}},
		{"unanswerable", `{"question":"Who?","answerable":false}`, testset.Case{ID: "1", Question: "Who?", Unanswerable: true}},
		{"nothing is known", `{"question":"Who?","answers":[]}`, testset.Case{ID: "1", Question: "Who?"}},
		{"a conflict", `{"question":"Who?","answers":["A"],"conflicting":true}`, testset.Case{ID: "1", Question: "Who?", Answers: []string{"A"}, Conflicting: &yes}},
		{"a filter for people", `{"question":"Who?","answer":"A","filter":"year = 2020"}`,
			testset.Case{ID: "1", Question: "Who?", Answers: []string{"A"}, Filter: assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.NumberValue(2020)}}},
		{"a filter in JSON", `{"question":"Who?","answer":"A","filter":{"equals":{"key":"year","value":2020}}}`,
			testset.Case{ID: "1", Question: "Who?", Answers: []string{"A"}, Filter: assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.NumberValue(2020)}}},
		{"collections", `{"question":"Who?","answer":"A","collections":["it","legal"]}`, testset.Case{ID: "1", Question: "Who?", Answers: []string{"A"}, Collections: []string{"it", "legal"}}},
		{"turns", `{"question":"And she?","answer":"A","conversation":[{"question":"Who is he?","answer":"B."}]}`,
			testset.Case{ID: "1", Question: "And she?", Answers: []string{"A"}, History: []assay.Turn{{Question: "Who is he?", Answer: "B."}}}},
		{"messages", `{"question":"And she?","answer":"A","conversation":[{"role":"user","content":"Who is he?"},{"role":"assistant","content":"B."}]}`,
			testset.Case{ID: "1", Question: "And she?", Answers: []string{"A"}, History: []assay.Turn{{Question: "Who is he?", Answer: "B."}}}},
		{"metadata, of which a text is none to slice by", `{"question":"Who?","answer":"A","metadata":{"hops":2,"kind":["bridge"],"easy":true,"all":["a","b"],"story":"` + strings.Repeat("long ", 20) + `"}}`,
			testset.Case{ID: "1", Question: "Who?", Answers: []string{"A"}, Slices: map[string]string{"hops": "2", "kind": "bridge", "easy": "true"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := testset.ReadDataset(evaltest.WriteFile(t, "set.jsonl", "\uFEFF\r\n"+tt.line+"\r\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]testset.Case{tt.want}, d.Cases, sameCases...); diff != "" {
				t.Error(diff)
			}
			if d.Golden || d.Name != "set" {
				t.Errorf("name %q, golden %v", d.Name, d.Golden)
			}
		})
	}
}

// TestReadGoldenSet checks that golden questions are recognised, and that those without sections
// are unanswerable.
func TestReadGoldenSet(t *testing.T) {
	d, err := testset.ReadDataset(evaltest.WriteFile(t, "g.jsonl", `{"question":"Who?","document":"a.md","sections":["One","Two"]}
{"question":"Whom?"}
`))
	want := []testset.Case{
		{ID: "1", Question: "Who?", Gold: []testset.Gold{{Document: "a.md", Section: "One"}, {Document: "a.md", Section: "Two"}}},
		{ID: "2", Question: "Whom?", Unanswerable: true},
	}
	if diff := cmp.Diff(want, d.Cases, sameCases...); err != nil || diff != "" || !d.Golden {
		t.Errorf("golden %v, %v\n%s", d.Golden, err, diff)
	}
}

// TestReadExported checks that exported runs get the labels of their corrections, and that runs
// without one are left out.
func TestReadExported(t *testing.T) {
	d, err := testset.ReadDataset(evaltest.WriteFile(t, "runs.jsonl", `{"id":"a","question":"Who?","given":{"status":"answered","answer":"A.","cited":[{"document":"/a.md","start":0,"end":2,"quote":"A."}]},"correct":true,"answers":[],"gold":[]}
{"id":"b","question":"Whom?","given":{"status":"answered","answer":"B."},"correct":false,"answers":["C"],"gold":["/c.md"]}
{"id":"c","question":"Whose?","given":{"status":"not_found","answer":""},"correct":true,"answers":[],"gold":[]}
{"id":"d","question":"Why?","given":{"status":"answered","answer":"D."},"correct":null,"answers":[],"gold":[]}
{"id":"e","question":"What?","given":{"status":"answered","answer":"E."},"correct":null,"answers":[],"gold":[],"unanswerable":true}
`))
	no := false
	want := []testset.Case{
		{ID: "a", Question: "Who?", Answers: []string{"A."}, Gold: []testset.Gold{{Document: "/a.md", End: 2, Quote: "A."}}, Conflicting: &no},
		{ID: "b", Question: "Whom?", Answers: []string{"C"}, Gold: []testset.Gold{{Document: "/c.md"}}},
		{ID: "c", Question: "Whose?", Unanswerable: true},
		{ID: "e", Question: "What?", Unanswerable: true},
	}
	if diff := cmp.Diff(want, d.Cases, sameCases...); err != nil || diff != "" || d.Unseen != 1 {
		t.Errorf("%d unseen, %v\n%s", d.Unseen, err, diff)
	}
}

// TestReadBEIRSet checks that a set in the BEIR layout is read with the labels in its metadata.
func TestReadBEIRSet(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"corpus.jsonl": `{"_id":"p1","title":"One","text":"A."}
{"_id":"p2","title":"Two","text":"B."}`,
		"queries.jsonl": `{"_id":"q1","text":"Who?","metadata":{"answer":"A","answer_aliases":["a"],"hops":"2hop"}}
{"_id":"q2","text":"And she?","metadata":{"conversation":[{"speaker":"user","text":"Who is he?"},{"speaker":"agent","text":"B."}],"Answerability":["ANSWERABLE"],"answerability":["ANSWERABLE"]}}
{"_id":"q3","text":"Whom?","metadata":{"answerable":false}}
{"_id":"q4","text":"of which nothing is known"}`,
		"qrels.tsv": "q1\tp1\t1\nq1\tp2\t2\nq2\tp2\t1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := testset.ReadDataset(dir)
	want := []testset.Case{
		{ID: "q1", Question: "Who?", Answers: []string{"A", "a"}, Gold: []testset.Gold{{Document: "p1", Grade: 1}, {Document: "p2", Grade: 2}}, AllGold: true, Slices: map[string]string{"hops": "2hop"}},
		{ID: "q2", Question: "And she?", History: []assay.Turn{{Question: "Who is he?", Answer: "B."}}, Gold: []testset.Gold{{Document: "p2", Grade: 1}},
			Slices: map[string]string{"Answerability": "ANSWERABLE", "answerability": "ANSWERABLE"}},
		{ID: "q3", Question: "Whom?", Unanswerable: true, Slices: map[string]string{"answerable": "false"}},
	}
	if diff := cmp.Diff(want, d.Cases, sameCases...); err != nil || diff != "" || d.Corpus == nil || len(d.Corpus.Passages) != 2 {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestReadDatasetErrors checks that the error for an invalid set names the line.
func TestReadDatasetErrors(t *testing.T) {
	const first = `{"question":"Who?","answer":"A"}` + "\n"
	tests := []struct{ name, text, want string }{
		{"nothing", "", "holds no question"},
		{"no JSON", first + "Who?", "set.jsonl:2:"},
		{"no question", first + `{"answer":"A"}`, "set.jsonl:2: no question"},
		{"an ID twice", `{"id":"1","question":"Who?","answer":"A"}` + "\n" + `{"id":"1","question":"Whom?"}`, `the ID "1" is that of question 1 already`},
		{"a place that is none", `{"question":"Who?","gold":[{"document":"a.md","start":9,"end":3}]}`, "from byte 9 to 3"},
		{"gold without a document", `{"question":"Who?","gold":[{"quote":"A"}]}`, "gold without a document"},
		{"both", `{"question":"Who?","answer":"A","unanswerable":true}`, "said to be unanswerable"},
		{"answers of another kind", `{"question":"Who?","answers":{"a":1}}`, "want a text or a list of texts"},
		{"an answer to nothing", `{"question":"Who?","conversation":[{"role":"assistant","content":"B."}]}`, "answers no question"},
		{"a filter that is none", `{"question":"Who?","filter":"year ="}`, "set.jsonl:1:"},
		{"a slip", first + `{"question":"Who?","answer":"A","filtr":"year = 2000"}`, `set.jsonl:2: there is no field "filtr"`},
		{"a slip in gold", `{"question":"Who?","gold":[{"document":"a.md","qoute":"A"}]}`, `set.jsonl:1: gold: there is no field "qoute"`},
		{"a list", `["Who?"]`, "set.jsonl:1: want an object, not a list"},
		{"a text for a flag", `{"question":"Who?","answerable":"no"}`, "set.jsonl:1: answerable: want true or false, not a text"},
		{"a text for a number", `{"question":"Who?","gold":{"document":"a.md","start":"3"}}`, "set.jsonl:1: gold: start: want a whole number, not a text"},
		{"answers of a wrong kind", `{"question":"Who?","answers":[1]}`, "want a text or a list of texts: want a text, not a number"},
		{"runs that nobody has judged", `{"question":"Who?","given":{"status":"answered","answer":"A"},"correct":null}`, "none is judged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := testset.ReadDataset(evaltest.WriteFile(t, "set.jsonl", tt.text))
			if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	_, err := testset.ReadDataset(evaltest.WriteFile(t, "set.jsonl", `{"question":"Who?","goldd":["a.md"]}`))
	if e, ok := errors.AsType[*testset.UnknownFieldError](err); !ok || e.Field != "goldd" || !slices.Contains(e.Known, "gold") {
		t.Errorf("a field that is not known: %v", err)
	}
	if _, err := testset.ReadDataset(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a set that is not there: %v", err)
	}
}

// FuzzReadCases checks that reading any file neither panics nor returns two cases with the same ID.
func FuzzReadCases(f *testing.F) {
	f.Add(`{"question":"Who?","answer":"A","gold":[{"document":"a.md"}]}`)
	f.Add(`{"question":"Who?","document":"a.md","sections":["One"]}` + "\n" + `{"question":"Whom?"}`)
	f.Add(`{"question":"Who?","conversation":[{"speaker":"user","text":"Hm?"}],"filter":"a = 1","metadata":{"a":[1]}}`)
	f.Add(`{"question":"Who?","given":{"status":"answered"},"correct":true,"answers":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := testset.ReadDataset(evaltest.WriteFile(t, "set.jsonl", text))
		seen := map[string]bool{}
		for _, c := range d.Cases {
			if c.ID == "" || seen[c.ID] || strings.TrimSpace(c.Question) == "" {
				t.Errorf("case %+v", c)
			}
			seen[c.ID] = true
		}
		if err == nil && len(d.Cases) == 0 {
			t.Error("an empty set is no error")
		}
	})
}
