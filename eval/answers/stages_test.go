package answers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/strategy"
)

// refusing is a verifier that rejects every claim.
type refusing struct{}

func (refusing) Verify(context.Context, string, []ground.Passage) (ground.Judgement, error) {
	return ground.Judgement{Verdict: assay.Unsupported, Reason: "it never is"}, nil
}

// handbook opens an engine over a few documents.
func handbook(t *testing.T, config engine.Config) *engine.Engine {
	t.Helper()
	e, _ := handbookIn(t, config)
	return e
}

// handbookIn is handbook and also returns the data directory.
func handbookIn(t *testing.T, config engine.Config) (*engine.Engine, string) {
	t.Helper()
	docs := t.TempDir()
	for name, text := range map[string]string{
		"travel.md":   "# Travel\n\n## Approval\n\nTravel to a customer is approved by the head of the department.\n\n## Receipts\n\nReceipts are handed in within 30 days.\n",
		"security.md": "# Security\n\n## Devices\n\nA lost laptop is reported to the platform team.\n\n## Visitors\n\nVisitors of the office wear a yellow badge.\n",
		"history.md":  "# History\n\nThe company was founded in Ghent in 1987 by Anna Peeters.\n\n## Badges\n\nBadges were introduced for visitors of the office in 1994.\n",
		"garden.md":   "# Garden\n\nTulips flower in spring.\n",
	} {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config.Dir = t.TempDir()
	e, err := engine.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if _, err := e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{docs}}); err != nil {
		t.Fatal(err)
	}
	return e, config.Dir
}

// outcomesOf asks cases and returns their outcomes.
func outcomesOf(t *testing.T, e *engine.Engine, req engine.Request, cases ...testset.Case) []answers.Outcome {
	t.Helper()
	return judgedBy(t, nil, e, req, cases...)
}

// judgedBy is outcomesOf with a judge.
func judgedBy(t *testing.T, by judge.Judge, e *engine.Engine, req engine.Request, cases ...testset.Case) []answers.Outcome {
	t.Helper()
	d := testset.Dataset{Name: "test", Hash: "1", Cases: cases}
	folder, err := answers.OpenFolder(t.Context(), t.TempDir(), answers.Identity{Set: d.Name, Hash: d.Hash})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	opts := answers.Options{Contenders: []answers.Contender{{Name: "it", Request: req}}, Principal: assay.Local(), Parallel: 1, Judge: by}
	if err := answers.AskAll(t.Context(), e, d, folder, opts); err != nil {
		t.Fatal(err)
	}
	var all []answers.Outcome
	for o, err := range folder.Outcomes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// TestStages checks each stage at which a question can be lost, on a real engine. The gold, the
// limits or the verifier of each case are chosen so that it is lost there.
func TestStages(t *testing.T) {
	const approval = "Who approves travel to a customer?"
	never := assay.Filter{Op: assay.OpEquals, Key: "no such key", Value: assay.StringValue("x")}
	gold := func(doc string) []testset.Gold { return []testset.Gold{{Document: doc}} }
	tests := []struct {
		name   string
		c      testset.Case
		config engine.Config
		req    engine.Request
		want   answers.Stage
	}{
		{"right", testset.Case{Question: approval, Gold: gold("travel.md"), Answers: []string{"the head of the department"}}, engine.Config{}, engine.Request{}, ""},
		{"right by section", testset.Case{Question: approval, Gold: []testset.Gold{{Document: "travel.md", Section: "approval"}}}, engine.Config{}, engine.Request{}, ""},
		{"right by quote", testset.Case{Question: approval, Gold: []testset.Gold{{Document: "travel.md", Quote: "approved by the  head"}}}, engine.Config{}, engine.Request{}, ""},
		{"right by answer alone", testset.Case{Question: approval, Answers: []string{"Head of the department."}}, engine.Config{}, engine.Request{}, ""},
		{"rightly refused", testset.Case{Question: "What is the boiling point of tungsten?", Unanswerable: true}, engine.Config{}, engine.Request{}, ""},
		{"no such document", testset.Case{Question: approval, Gold: gold("flights.md")}, engine.Config{}, engine.Request{}, answers.NotIngested},
		{"no such words", testset.Case{Question: approval, Gold: []testset.Gold{{Document: "travel.md", Quote: "approved by nobody"}}}, engine.Config{}, engine.Request{}, answers.Mislabelled},
		{"found by no search", testset.Case{Question: approval, Gold: gold("garden.md")}, engine.Config{}, engine.Request{}, answers.NotRetrieved},
		{"relevant, and no room for it", testset.Case{Question: "What do visitors of the office wear?", Gold: gold("history.md")}, engine.Config{},
			engine.Request{Limits: strategy.Limits{Keep: 1, Floor: 0.01}}, answers.RankedTooLow},
		{"too high a floor", testset.Case{Question: "When did visitors of the office get badges?", Gold: gold("history.md")}, engine.Config{},
			engine.Request{Limits: strategy.Limits{Floor: 0.99999}}, answers.GradedAway},
		{"too high a floor, and no gold to tell by", testset.Case{Question: approval, Answers: []string{"the head of the department"}}, engine.Config{},
			engine.Request{Limits: strategy.Limits{Floor: 0.99999}}, answers.GradedAway},
		{"handed over, and not cited", testset.Case{Question: "What do visitors of the office wear?", Gold: gold("history.md")}, engine.Config{},
			engine.Request{Limits: strategy.Limits{Floor: 0.01, Passages: 10}}, answers.NotCited},
		{"a verifier that refuses", testset.Case{Question: approval, Gold: gold("travel.md"), Answers: []string{"the head of the department"}},
			engine.Config{Models: engine.Models{Verifier: refusing{}}}, engine.Request{}, answers.VerifierWrong},
		{"a wrong answer", testset.Case{Question: approval, Gold: gold("travel.md"), Answers: []string{"the chief executive"}}, engine.Config{}, engine.Request{}, answers.GeneratedWrong},
		{"answered wrongly", testset.Case{Question: approval, Unanswerable: true}, engine.Config{}, engine.Request{}, answers.AnsweredWrongly},
		{"a filter that is wrong", testset.Case{Question: approval, Gold: gold("travel.md"), Filter: never}, engine.Config{}, engine.Request{}, answers.Broke},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.ID = "1"
			tt.req.Strategy = "static"
			o := outcomesOf(t, handbook(t, tt.config), tt.req, tt.c)[0]
			if o.Lost != tt.want || o.Right != (tt.want == "") {
				var cited []string
				for _, c := range o.Answer.Citations {
					cited = append(cited, filepath.Base(c.URI))
				}
				t.Errorf("right %v, lost %q, want %q; %s: %s; handed %d, cited %s; %s", o.Right, o.Lost, tt.want, o.Answer.Status, o.Answer.Text, len(o.Contexts), strings.Join(cited, " "), o.Error)
			}
			if right, ok := o.Metrics["right"]; !ok || (right == 1) != o.Right {
				t.Errorf("metrics %v", o.Metrics)
			}
		})
	}
}

// doubting is a judging model that finds no claim in the passages and gives each answer the same
// correctness.
type doubting struct{ correct float64 }

func (doubting) Name() string { return "test/model" }

func (d doubting) Judge(_ context.Context, in judge.Input) (judge.Judgement, error) {
	j := judge.Judgement{By: "test/model", Scores: map[string]judge.Score{judge.Correctness: {Value: d.correct, By: "test/model"}}}
	for range in.Claims {
		j.Claims = append(j.Claims, metric.Claim{})
	}
	return j, nil
}

// TestStagesJudged checks that a judging model decides whether an answer is right, and that a shown
// claim which it finds in no passage is an error of the verifier. The name of the judge is kept.
func TestStagesJudged(t *testing.T) {
	c := testset.Case{ID: "1", Question: "Who approves travel to a customer?", Gold: []testset.Gold{{Document: "travel.md"}}, Answers: []string{"the chief executive"}}
	e := handbook(t, engine.Config{})
	for _, tt := range []struct {
		correct float64
		want    answers.Stage
	}{{1, ""}, {0, answers.VerifierWrong}} {
		o := judgedBy(t, doubting{tt.correct}, e, engine.Request{Strategy: "static"}, c)[0]
		if o.Lost != tt.want || o.Judges["correctness"] != "test/model" || o.Judges["faithfulness"] != "test/model" || o.Judges["right"] != "" {
			t.Errorf("correctness %v: lost %q, judged by %v", tt.correct, o.Lost, o.Judges)
		}
	}
	if o := outcomesOf(t, e, engine.Request{Strategy: "static"}, c)[0]; len(o.Judges) > 0 || o.Metrics["faithfulness"] != 0 {
		t.Errorf("without a judge: %v, %v", o.Judges, o.Metrics)
	}
	if o := judgedBy(t, judge.Local{}, e, engine.Request{Strategy: "static"}, c)[0]; o.Metrics["faithfulness"] != 1 || !strings.HasPrefix(o.Judges["faithfulness"], "local") {
		t.Errorf("by the local judge: %v, %v", o.Judges, o.Metrics)
	}
}
