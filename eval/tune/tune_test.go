package tune_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/eval/tune"
	"github.com/assay-rag/assay/strategy"
)

// houses returns an engine over similar documents, with a question about each that does not have
// all of its words.
func houses(t *testing.T, n int) (*engine.Engine, []testset.Case) {
	t.Helper()
	docs := t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	var cases []testset.Case
	for i := range n {
		name := fmt.Sprintf("house%02d.md", i)
		owner, trees := pick("Anna", "Bruno", "Clara")+" "+pick("Peeters", "Maes", "Jacobs"), pick("apple", "pear", "plum")
		text := fmt.Sprintf("# Number %d\n\nThe %s dwelling at number %d was erected in %d for %s. Its garden has %s trees.\n", i, pick("brick", "wooden"), i, 1800+i, owner, trees)
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, testset.Case{
			ID: fmt.Sprint(i), Question: fmt.Sprintf("What trees are in the garden of number %d?", i), Answers: []string{trees},
			Gold: []testset.Gold{{Document: name}},
		})
	}
	e, err := engine.Open(t.Context(), engine.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if _, err := e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{docs}}); err != nil {
		t.Fatal(err)
	}
	return e, cases
}

// tuneIn tunes with a folder.
func tuneIn(t *testing.T, e *engine.Engine, cases []testset.Case, dir string, opts tune.Options) tune.Tuning {
	t.Helper()
	d := testset.Dataset{Name: "houses", Hash: "1", Cases: cases}
	folder, err := answers.OpenFolder(t.Context(), dir, answers.Identity{Set: d.Name, Hash: d.Hash})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	opts.Principal = assay.Local()
	if opts.Strategy == "" {
		opts.Strategy = "static"
	}
	got, err := tune.Run(t.Context(), e, d, folder, opts)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func knob(t *testing.T, of tune.Tuning, name string) tune.Knob {
	t.Helper()
	i := slices.IndexFunc(of.Knobs, func(k tune.Knob) bool { return k.Name == name })
	if i < 0 {
		t.Fatalf("nothing of %s in %+v", name, of)
	}
	return of.Knobs[i]
}

// TestTuneFindsWrongThresholds checks that Run lowers thresholds that are far too high and reports
// the gain. It must leave no runs, and a second one must not measure anything again.
func TestTuneFindsWrongThresholds(t *testing.T) {
	t.Parallel()
	e, cases := houses(t, 32)
	dir := t.TempDir()
	got := tuneIn(t, e, cases, dir, tune.Options{Limits: strategy.Limits{Floor: 0.9999, MinAnswerability: 0.9}})
	k := knob(t, got, "strategies.corrective.floor")
	if !got.Change || !k.Change || k.Gain.Low < 0.1 || k.Settings["strategies.corrective.floor"] == nil {
		t.Errorf("with a floor of 0.9999: %+v", k)
	}
	for _, c := range k.Tried {
		if c.Value < "0.5" {
			t.Errorf("a threshold of %s is tried, and every question has an answer", c.Value)
		}
	}
	if k := knob(t, got, "retrieval.rerank"); k.Change || k.Questions != 32 || k.Groups != 32 {
		t.Errorf("nothing is wrong with the searches: %+v", k)
	}
	runs, err := e.Runs(t.Context(), assay.Local(), 10)
	if err != nil || len(runs) > 0 {
		t.Errorf("%d runs are left, %v", len(runs), err)
	}
	asked := 0
	again := tuneIn(t, e, cases, dir, tune.Options{Limits: strategy.Limits{Floor: 0.9999, MinAnswerability: 0.9}, Progress: func(p eval.Progress) {
		if p.What != "searching" {
			asked++
		}
	}})
	if diff := cmp.Diff(got, again); diff != "" || asked > 0 {
		t.Errorf("again: %d questions asked (-first +again):\n%s", asked, diff)
	}
}

// TestTuneRoutes checks that the routes of auto are measured, and those of no other strategy, and that
// one which costs more than needed is replaced by the cheapest that is not worse.
func TestTuneRoutes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("asks 30 questions 26 times")
	}
	e, cases := houses(t, 30)
	for i := range cases { // the documents do not say
		cases[i].Question = fmt.Sprintf("Who invented telescope %d?", i)
		cases[i].Answers, cases[i].Gold, cases[i].Unanswerable = nil, nil, true
	}
	k := knob(t, tuneIn(t, e, cases, t.TempDir(), tune.Options{Strategy: "auto"}), "strategies.auto.escalate")
	var tried []string
	for _, c := range k.Tried {
		tried = append(tried, c.Value)
		if c.Steps <= 0 {
			t.Errorf("%s takes %v steps", c.Value, c.Steps)
		}
	}
	if want := []string{"corrective", "static", "adaptive", "multihop", "graph"}; !slices.Equal(tried, want) {
		t.Errorf("tried %q, want %q", tried, want)
	}
	if !k.Cheaper || k.Chosen != "static" || k.Settings["strategies.auto.escalate"] != "static" {
		t.Errorf("of questions without an answer: %+v", k)
	}
	for _, k := range tuneIn(t, e, cases, t.TempDir(), tune.Options{}).Knobs {
		if k.Name == "strategies.auto.escalate" {
			t.Error("the route of auto is measured with static")
		}
	}
}

// TestTuneChangesNothing checks that random labels and sets with few questions change nothing.
func TestTuneChangesNothing(t *testing.T) {
	t.Parallel()
	e, cases := houses(t, 32)
	random := rand.New(rand.NewPCG(9, 9))
	chance := slices.Clone(cases)
	for i, at := range random.Perm(len(cases)) {
		chance[i].Gold, chance[i].Answers = cases[at].Gold, nil
	}
	if got := tuneIn(t, e, chance, t.TempDir(), tune.Options{}); got.Change {
		t.Errorf("labels of chance: %+v", got)
	}
	few := tuneIn(t, e, cases[:8], t.TempDir(), tune.Options{Limits: strategy.Limits{Floor: 0.9999, MinAnswerability: 0.9}})
	if few.Change || knob(t, few, "strategies.corrective.floor").Needed < 30 {
		t.Errorf("eight questions: %+v", few)
	}
	none := testset.Dataset{Name: "none", Cases: []testset.Case{{ID: "x", Question: "what is not labelled?"}}}
	if _, err := tune.Run(t.Context(), e, none, nil, tune.Options{Principal: assay.Local()}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("no labels: %v, want assay.ErrInvalid", err)
	}
}
