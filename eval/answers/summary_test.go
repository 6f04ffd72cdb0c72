package answers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
)

// TestSummarise checks that a report has the figures with their intervals, slices, losses with
// remedies, the worst cases with their runs, and a comparison of the second system with the first.
// It must not depend on the order of the outcomes.
func TestSummarise(t *testing.T) {
	e := handbook(t, engine.Config{})
	d := testset.Dataset{Name: "test", Hash: "1", Cases: []testset.Case{
		{ID: "1", Question: "Who approves travel to a customer?", Answers: []string{"the head of the department"}, Gold: []testset.Gold{{Document: "travel.md"}}, Tenant: "a"},
		{ID: "2", Question: "Who waters the plants of the garden?", Answers: []string{"the gardener"}, Gold: []testset.Gold{{Document: "plants.md"}}, Tenant: "a"},
		{ID: "3", Question: "What is the boiling point of tungsten?", Unanswerable: true, Tenant: "b"},
		{ID: "4", Question: "What do visitors of the office wear?", Answers: []string{"a yellow badge"}, Gold: []testset.Gold{{Document: "security.md"}}, Tenant: "b"},
		{ID: "5", Question: "What is known of nothing at all?"},
	}}
	folder, err := answers.OpenFolder(t.Context(), t.TempDir(), answers.Identity{Set: d.Name, Hash: d.Hash})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	contenders := []answers.Contender{{Name: "static", Request: engine.Request{Strategy: "static"}}, {Name: "corrective", Request: engine.Request{Strategy: "corrective"}}}
	opts := answers.Options{Contenders: contenders, Principal: assay.Local(), Parallel: 3}
	var progress []eval.Progress
	opts.Progress = func(p eval.Progress) { progress = append(progress, p) }
	if err := answers.AskAll(t.Context(), e, d, folder, opts); err != nil {
		t.Fatal(err)
	}
	if len(progress) != 10 || progress[4].Done != 5 || progress[4].All != 5 {
		t.Errorf("progress %+v", progress)
	}
	r, err := answers.Summarise(t.Context(), d, folder, answers.SummaryOptions{Systems: []string{"static", "corrective"}, Outcomes: true})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Systems[0]
	at := slices.IndexFunc(s.Figures, func(f answers.Figure) bool { return f.Name == "right" })
	want := stat.Bootstrap([]float64{1, 0, 1, 1}) // the fifth is neither right nor wrong
	if f := s.Figures[at]; at != 0 || f.Cases != 4 || f.Mean != want.Mean || f.Low != want.Low || f.High != want.High {
		t.Errorf("right %+v, want %+v", f, want)
	}
	if diff := cmp.Diff(map[answers.Stage]int{answers.NotIngested: 1}, s.Lost); diff != "" {
		t.Error(diff)
	}
	if len(s.Worst) != 1 || s.Worst[0].ID != "2" || s.Worst[0].Run == "" || s.Worst[0].Why == "" {
		t.Errorf("worst %+v", s.Worst)
	}
	if len(s.Remedies) != 1 || !strings.Contains(s.Remedies[0], "assay ingest skipped") { // chunking is no remedy for documents that are not there
		t.Errorf("remedies %q", s.Remedies)
	}
	tenants := map[string]float64{}
	for _, slice := range s.Slices {
		if slice.By == "tenant" && slice.Figures[0].Name == "right" {
			tenants[slice.Value] = slice.Figures[0].Mean
		}
	}
	if diff := cmp.Diff(map[string]float64{"a": 0.5, "b": 1}, tenants); diff != "" {
		t.Error(diff)
	}
	for i, o := range s.Outcomes {
		if o.ID != d.Cases[i].ID || slices.ContainsFunc(o.Contexts, func(c answers.Context) bool { return c.Text != "" }) {
			t.Errorf("outcome %d is of %s", i, o.ID)
		}
	}
	other := r.Systems[1]
	if len(s.Against) > 0 || len(other.Against) == 0 || other.Against[0].Other != "static" || other.Against[0].Cases != 4 || other.Against[0].P != 1 {
		t.Errorf("against %+v", other.Against)
	}
	if _, err := answers.Summarise(t.Context(), d, folder, answers.SummaryOptions{Systems: []string{"static"}, Limit: 2}); err != nil {
		t.Error(err)
	}
}
