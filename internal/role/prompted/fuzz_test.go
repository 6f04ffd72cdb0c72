package prompted_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
)

// FuzzReplies checks that no reply makes a role fail, and that no output contains a number that was
// not given.
func FuzzReplies(f *testing.F) {
	for _, name := range prompted.Tasks() {
		f.Add(everyRole[name].good)
	}
	f.Add(`{"statements":[{"text":"x","sources":[9]}],"conflicts":[{"one":0,"other":7}],"shape":"table"}`)
	f.Add(`{"sub_questions":[{"text":"x","needs":[1,9,-1]}]}`)
	f.Add(`{"verdict":"sufficient","relevant_chunks":[-1,0,99]}`)
	f.Fuzz(func(t *testing.T, reply string) {
		for _, name := range prompted.Tasks() {
			c := replies(t, reply)
			out, err := everyRole[name].do(t.Context(), c, config())
			if err != nil || len(c.calls) > 3 {
				t.Fatalf("%s: %v after %d calls", name, err, len(c.calls))
			}
			if _, err := json.Marshal(out); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			checkNumbers(t, out)
		}
	})
}

func checkNumbers(t *testing.T, out any) {
	t.Helper()
	statements := func(list []role.Statement) {
		for _, s := range list {
			if s.Text == "" || len(s.Evidence) == 0 || slices.ContainsFunc(s.Evidence, func(n int) bool { return n < 1 || n > len(sources) }) {
				t.Errorf("statement %+v", s)
			}
		}
	}
	switch o := out.(type) {
	case role.Plan:
		if len(o.SubQuestions) == 0 || len(o.SubQuestions) > 6 {
			t.Errorf("plan %+v", o)
		}
		for i, s := range o.SubQuestions {
			if s.Text == "" || slices.ContainsFunc(s.Needs, func(n int) bool { return n < 0 || n >= i }) {
				t.Errorf("plan %+v", o)
			}
		}
	case role.Grade:
		if slices.ContainsFunc(o.Relevant, func(id string) bool { return id != "chunk-1" && id != "chunk-2" }) || o.Verdict != assay.Insufficient && len(o.Relevant) == 0 {
			t.Errorf("grade %+v", o)
		}
	case role.Draft:
		statements(o.Statements)
		for _, c := range o.Conflicts {
			if c[0] == c[1] || min(c[0], c[1]) < 0 || max(c[0], c[1]) >= len(o.Statements) {
				t.Errorf("draft %+v", o)
			}
		}
		if (o.Shape == role.Table) != (len(o.Columns) > 0) {
			t.Errorf("draft %+v", o)
		}
	case []ground.Judgement:
		for _, j := range o {
			if j.Verdict == "" || j.Score < 0 || j.Score > 1 || j.Failed && j.Verdict != assay.Unsupported {
				t.Errorf("judgement %+v", j)
			}
		}
	case role.HitScores:
		if len(o.Scores) != 2 || slices.ContainsFunc(o.Scores, func(x float64) bool { return x < 0 || x > 1 }) {
			t.Errorf("scores %+v", o)
		}
	case role.RetrievalGrades:
		if len(o.Grades) != 2 || slices.Contains(o.Grades, "") {
			t.Errorf("grades %+v", o)
		}
	case role.SupportGrades:
		if len(o.Grades) != 2 || slices.Contains(o.Grades, "") {
			t.Errorf("grades %+v", o)
		}
	case role.Analysis:
		for _, c := range o.Categories {
			statements(c.Statements)
		}
	case role.Reflection:
		if o.Status == role.CompletedStatus && o.Coverage < o.Threshold || o.Coverage < 0 || o.Coverage > 1 {
			t.Errorf("reflection %+v", o)
		}
	case role.Judgement:
		if o.Verdict == role.Accept && len(o.Revise) > 0 || o.Verdict != role.Accept && (o.Verdict != role.Revise || len(o.Revise) == 0) {
			t.Errorf("judgement %+v", o)
		}
	case role.Critique:
		for _, r := range o.Remarks {
			if r.Statement < -1 || r.Statement > 1 {
				t.Errorf("critique %+v", o)
			}
		}
	case role.Extraction:
		statements(o.Facts)
	case role.Summary:
		statements(o.Statements)
	case role.Contrast:
		for _, p := range o.Points {
			statements(p.Sides)
			if len(p.Sides) < 2 {
				t.Errorf("point %+v", p)
			}
		}
	}
}

// TestMutatedReplies replaces or removes each value of a valid reply.
func TestMutatedReplies(t *testing.T) {
	others := []any{nil, "", "x", -1, 0, 1, 2, 99, 1.5, 1e12, true, []any{}, map[string]any{}, []any{nil}, []any{1, 1, 2}}
	if testing.Short() {
		others = others[:5]
	}
	for _, name := range prompted.Tasks() {
		var good any
		if err := json.Unmarshal([]byte(everyRole[name].good), &good); err != nil {
			t.Fatal(err)
		}
		try := func() {
			raw, err := json.Marshal(good)
			if err != nil {
				t.Fatal(err)
			}
			out, err := everyRole[name].do(t.Context(), replies(t, string(raw)), config())
			if err != nil {
				t.Fatalf("%s: %s: %v", name, raw, err)
			}
			checkNumbers(t, out)
			if t.Failed() {
				t.Fatalf("%s, after the reply %s", name, raw)
			}
		}
		var mutate func(node any)
		mutate = func(node any) {
			switch n := node.(type) {
			case map[string]any:
				for key, was := range n {
					for _, other := range others {
						n[key] = other
						try()
					}
					delete(n, key)
					try()
					n[key] = was
					mutate(was)
				}
			case []any:
				for i, was := range n {
					for _, other := range others {
						n[i] = other
						try()
					}
					n[i] = was
					mutate(was)
				}
			}
		}
		mutate(good)
	}
}
