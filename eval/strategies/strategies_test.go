package strategies_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/scripted"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/strategies"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/llm/recorded"
	"github.com/assay-rag/assay/strategy"
)

// orchard returns a set with more passages about its subjects than the generator is given, and with
// a two-hop question.
func orchard() testset.Set {
	set := testset.Set{Name: "orchard"}
	add := func(id, title, text string) {
		set.Passages = append(set.Passages, testset.Passage{ID: id, Title: title, Text: text})
	}
	for i, fruit := range []string{"apple", "pear", "plum", "quince", "cherry", "medlar", "apricot", "peach", "walnut", "almond", "fig", "mulberry"} {
		add(fruit, "The "+fruit+" tree", fmt.Sprintf("The %s tree in the orchard was planted in 19%02d. It is watered on Mondays.", fruit, 10+i))
	}
	add("mill", "The old mill", "The old mill was built by Harriet Crane. It stands beside the orchard.")
	add("crane", "Harriet Crane", "Harriet Crane was born in Lanford. She learned to build there.")
	ask := func(id, kind, question, answer string, relevant ...string) {
		q := testset.Query{ID: id, Text: question, Kind: kind, Relevant: map[string]int{}}
		for _, r := range relevant {
			q.Relevant[r] = 1
		}
		if answer != "" {
			q.Answers = []string{answer}
		}
		set.Queries = append(set.Queries, q)
	}
	ask("q1", "one", "When was the quince tree planted?", "in 1913", "quince")
	ask("q2", "two", "Where was the builder of the old mill born?", "Lanford", "mill", "crane")
	ask("q3", "one", "Which tree in the orchard is watered on Mondays?", "", "apple", "pear", "plum")
	return set
}

func opened(t *testing.T, set testset.Set) *retrieval.Opened {
	t.Helper()
	o, err := retrieval.Open(t.Context(), set, retrieval.Parts{Embedder: &llmtest.Hashing{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// times ignores the fields that differ between two measurements.
var times = cmp.Options{
	cmpopts.IgnoreFields(strategies.Row{}, "MedianMS", "Roles"), cmpopts.IgnoreFields(strategies.Outcome{}, "MS"), cmpopts.IgnoreUnexported(strategies.Outcome{}),
}

func TestStrategies(t *testing.T) {
	o := opened(t, orchard())
	rows, err := strategies.Measure(t.Context(), o, strategies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(strategy.Names()) - 1; len(rows) != want { // all but managed
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for _, row := range rows {
		if row.Questions != 3 || row.Answers != 2 || row.Failed > 0 || len(row.Outcomes) != 3 {
			t.Errorf("%s: %+v", row.Strategy, row)
		}
		if row.Handed != strategies.Handed || row.Over > 0 {
			t.Errorf("%s hands the generator %.1f passages, want %d", row.Strategy, row.Handed, strategies.Handed)
		}
		for _, out := range row.Outcomes {
			if out.AllGold != (len(out.Missed) == 0) || out.Recall < 0 || out.Recall > 1 {
				t.Errorf("%s: %+v", row.Strategy, out)
			}
		}
	}
	static := rows[slices.IndexFunc(rows, func(r strategies.Row) bool { return r.Strategy == "static" })]
	first := static.Outcomes[0]
	if first.Status != assay.Answered || !first.Match || first.Recall != 1 || len(first.Handed) != strategies.Handed || first.Usage.Searches != 1 || first.Steps != 6 {
		t.Errorf("static: %+v", first)
	}
	if static.Gain != nil || rows[len(rows)-1].Gain == nil || rows[len(rows)-1].Gain.Strategy != "static" {
		t.Error("all but static are compared with static")
	}
	again, err := strategies.Measure(t.Context(), o, strategies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, again, times); diff != "" {
		t.Errorf("measured twice (-first +second):\n%s", diff)
	}
}

// TestNaiveRow checks that the baseline is the first row, takes one search and one draft, and changes
// no other row.
func TestNaiveRow(t *testing.T) {
	o := opened(t, orchard())
	opts := strategies.Options{Strategies: []string{"static"}}
	without, err := strategies.Measure(t.Context(), o, opts)
	if err != nil {
		t.Fatal(err)
	}
	opts.Naive = true
	rows, err := strategies.Measure(t.Context(), o, opts)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	naive := rows[0]
	if naive.Strategy != strategies.Naive || naive.Steps != 2 || naive.Searches != 1 || naive.Iterations != 1 || naive.Handed != strategy.NaivePassages || naive.Failed > 0 {
		t.Errorf("%+v", naive)
	}
	if naive.Gain == nil || naive.Gain.Strategy != "static" {
		t.Errorf("the baseline is compared with %+v, want static", naive.Gain)
	}
	if diff := cmp.Diff(without, rows[1:], times); diff != "" {
		t.Errorf("with a baseline (-without +with):\n%s", diff)
	}
	if _, err := strategies.Measure(t.Context(), o, strategies.Options{Strategies: []string{strategies.Naive}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("as a strategy: %v, want ErrInvalid", err)
	}
}

func TestStrategiesOfSome(t *testing.T) {
	o := opened(t, orchard())
	rows, err := strategies.Measure(t.Context(), o, strategies.Options{Strategies: []string{"static"}, Questions: 2})
	if err != nil || len(rows) != 1 || rows[0].Questions != 2 {
		t.Errorf("%v, %v", rows, err)
	}
	if _, err := strategies.Measure(t.Context(), o, strategies.Options{Strategies: []string{"hasty"}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an unknown strategy: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := strategies.Measure(ctx, o, strategies.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// TestStrategiesRecorded checks that every strategy runs with scripted models, and that the
// recorded replies are enough to measure it again. The scripts must fill in every form of the
// prompts.
func TestStrategiesRecorded(t *testing.T) {
	o := opened(t, orchard())
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	recorder, err := recorded.Record(path, scripted.Models().Roles)
	if err != nil {
		t.Fatal(err)
	}
	made, err := strategies.Measure(t.Context(), o, strategies.Options{Roles: "recording", Models: engine.Models{Roles: recorder.Roles()}})
	if err = errors.Join(err, recorder.Close()); err != nil {
		t.Fatal(err)
	}
	for _, row := range made {
		if row.Handed != strategies.Handed {
			t.Errorf("%s hands the generator %.1f passages, want %d", row.Strategy, row.Handed, strategies.Handed)
		}
		if row.CallsFailed > 0 || row.Calls == 0 {
			t.Errorf("%s: %.1f calls for a question, and no reply of %d", row.Strategy, row.Calls, row.CallsFailed)
		}
		for _, n := range row.Notes {
			if strings.Contains(n.Note, "stood in") || strings.Contains(n.Note, "could be used") {
				t.Errorf("%s: %s", row.Strategy, n.Note)
			}
		}
	}
	tape, err := recorded.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	played, err := strategies.Measure(t.Context(), o, strategies.Options{Roles: "recorded", Models: engine.Models{Roles: tape.Roles()}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, played, times); diff != "" {
		t.Errorf("(-recorded +played back)\n%s", diff)
	}
	if tape.Unknown() > 0 {
		t.Errorf("%d requests were not recorded", tape.Unknown())
	}
	// Calls that were not recorded are counted. Local roles replace them, and their draft is
	// verified locally.
	other := orchard()
	other.Queries[0].Text = "When was the medlar tree planted?"
	rows, err := strategies.Measure(t.Context(), opened(t, other), strategies.Options{
		Roles: "recorded", Models: engine.Models{Roles: tape.Roles()}, Strategies: []string{"static"}, Questions: 1,
	})
	if err != nil || rows[0].CallsFailed == 0 || tape.Unknown() != rows[0].CallsFailed || rows[0].Statuses[assay.Answered] != 1 {
		t.Errorf("a question that was not recorded: %+v, %v; %d unknown", rows, err, tape.Unknown())
	}
}

func TestTargets(t *testing.T) {
	row := func(set, name string, recall, allGold, steps float64, gain *strategies.Gain) strategies.Row {
		return strategies.Row{
			Set: set, Strategy: name, Roles: "local", Recall: stat.Interval{Mean: recall}, AllGold: stat.Interval{Mean: allGold}, Steps: steps, Gain: gain,
		}
	}
	better := &strategies.Gain{Strategy: "static", AllGold: stat.Interval{Mean: 0.1, Low: 0.02, High: 0.2}}
	rows := []strategies.Row{
		row("a", "auto", 0.8, 0.6, 6, nil), row("a", "static", 0.7, 0.5, 5, nil), row("a", "corrective", 0.8, 0.6, 10, better), row("a", "multihop", 0.9, 0.7, 12, better),
		row("b", "auto", 1, 0.8, 6, nil), row("b", "static", 1, 0.8, 5, nil), row("b", "corrective", 1, 0.8, 10, nil), row("b", "multihop", 1, 0.9, 12, nil),
	}
	rows = append(rows, strategies.Row{Set: "a", Strategy: "multihop", Roles: "recorded", Steps: 100, Gain: better})
	got := strategies.TargetsOf(rows)
	want := strategies.Targets{
		MultiHop: []strategies.SetGain{{"a", "corrective", better.AllGold, stat.Interval{}}, {"a", "multihop", better.AllGold, stat.Interval{}}},
		Auto:     &strategies.Share{Sets: 2, Best: "multihop", Recall: 1.8 / 1.9, BestAllGold: "multihop", AllGold: 1.4 / 1.6, Steps: 0.5},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if strategies.TargetsOf(rows[1:]).Auto != nil { // auto was not measured on every set
		t.Error("a share without all sets")
	}
}

// TestAnswersOfSets checks that ReadSet reads the reference answers in the metadata of queries in
// all their variants.
func TestAnswersOfSets(t *testing.T) {
	queries := `{"_id":"q1","text":"a","metadata":{"answer":"35","answer_aliases":["thirty-five"],"hops":"2hop"}}
{"_id":"q2","text":"b","metadata":{"answers":["x","y"],"type":"bridge"}}
{"_id":"q3","text":"c","metadata":{"answer":null,"type":7}}
{"_id":"q4","text":"d","metadata":["odd"]}
{"_id":"q5","text":"e"}
`
	var qrels strings.Builder
	for i := range 5 {
		fmt.Fprintf(&qrels, "q%d\tp1\t1\n", i+1)
	}
	set, err := testset.ReadSet(evaltest.WriteSet(t, evaltest.Corpus, queries, qrels.String()))
	if err != nil {
		t.Fatal(err)
	}
	type answers struct {
		Answers []string
		Kind    string
	}
	var got []answers
	for _, q := range set.Queries {
		got = append(got, answers{q.Answers, q.Kind})
	}
	want := []answers{{[]string{"35", "thirty-five"}, "2hop"}, {[]string{"x", "y"}, "bridge"}, {}, {}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestDocsNameStrategies checks that docs/strategies.md has a section for each strategy, in
// their order, with the source, thresholds and steps of its Spec.
func TestDocsNameStrategies(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "strategies.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n## The strategies\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var named []string
	for section := range strings.SplitSeq(text, "\n### ") {
		name, body, _ := strings.Cut(section, "\n")
		if len(named) == 0 && !slices.Contains(strategy.Names(), name) {
			continue // the text before the first section
		}
		named = append(named, name)
		spec, err := strategy.Lookup(name)
		if err != nil {
			t.Errorf("docs/strategies.md: %v", err)
		}
		body = strings.Join(strings.Fields(body), " ")
		for _, want := range []string{"- Source: " + spec.Source, "- Thresholds: " + spec.Defaults, "- Steps: " + spec.UsualCost} {
			if !strings.Contains(body, want+".") {
				t.Errorf("docs/strategies.md: the section on %s does not have %q", name, want)
			}
		}
	}
	if diff := cmp.Diff(strategy.Names(), named); diff != "" {
		t.Errorf("docs/strategies.md (-strategies +sections):\n%s", diff)
	}
}

// TestStrategyFigures compares the strategies with stored figures, measured with lexical search on
// the first 30 questions of two sets. The tolerance is two questions, and one step more per
// question. TestStrategyTargets in train/fit covers all questions of three sets, with vectors.
func TestStrategyFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("searches two sets")
	}
	const tolerance, moreSteps = 2.0 / 30, 1.0
	for _, tt := range strategyFigures {
		t.Run(tt.set, func(t *testing.T) {
			for _, row := range measured(t, evaltest.Shared(t, tt.set)[0], retrieval.Parts{}, 30) {
				got, want := figure{row.Recall.Mean, row.AllGold.Mean, row.Steps}, tt.want[row.Strategy]
				t.Logf("%-10s recall %.3f, all gold %.3f, match %.2f, %.1f steps", row.Strategy, got.recall, got.allGold, row.Match, got.steps)
				if got.recall < want.recall-tolerance || got.allGold < want.allGold-tolerance || got.steps > want.steps+moreSteps {
					t.Errorf("%s: %+v, want %+v or better", row.Strategy, got, want)
				}
			}
		})
	}
}

// measured measures measuredStrategies on a set.
func measured(t *testing.T, set testset.Set, parts retrieval.Parts, questions int) []strategies.Row {
	t.Helper()
	o, err := retrieval.Open(t.Context(), set, parts)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	rows, err := strategies.Measure(t.Context(), o, strategies.Options{Strategies: measuredStrategies, Questions: questions})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// measuredStrategies are the strategies with stored figures.
var measuredStrategies = []string{"static", "corrective", "multihop", "auto"}

// A figure holds the means of a strategy over questions.
type figure struct{ recall, allGold, steps float64 }

// strategyFigures are the figures with lexical search on the first 30 questions.
var strategyFigures = []struct {
	set  string
	want map[string]figure
}{
	{"musique-train100", map[string]figure{
		"static": {0.783, 0.567, 6.0}, "corrective": {0.817, 0.633, 15.1}, "multihop": {0.808, 0.600, 10.4}, "auto": {0.819, 0.600, 7.2},
	}},
	{"hotpotqa-train100", map[string]figure{
		"static": {0.967, 0.933, 6.0}, "corrective": {0.967, 0.933, 10.5}, "multihop": {0.967, 0.933, 8.7}, "auto": {0.967, 0.933, 7.1},
	}},
}
