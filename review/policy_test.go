package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/embedded"
)

func ptr[T any](v T) *T { return &v }

// someFacts are the facts of an answer that cites one document.
func someFacts() Facts {
	return Facts{
		Run:   "run1",
		Asker: assay.Principal{User: "ann", Groups: []string{"sales"}, Roles: []string{"reader"}},
		Answer: assay.Answer{
			Status: assay.Answered, Strategy: "static", Relevance: ptr(0.7), Usage: assay.Usage{CostMicros: 500},
			Claims: []assay.Claim{{Score: 0.9}, {Score: 0.6}},
		},
		Documents: []Document{{Collection: "policies", Metadata: assay.Metadata{"risk": assay.StringValue("high"), "area": assay.ListValue("hr", "legal")}}},
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	scorer := func(scores ...float64) TopicScorer {
		return func(context.Context, []string) ([]float64, error) { return scores, nil }
	}
	tests := []struct {
		name   string
		policy Policy
		change func(*Facts)
		match  bool
		failed bool
	}{
		{"always", Policy{Always: true}, nil, true, false},
		{"collection", Policy{Collections: []string{"x", "policies"}}, nil, true, false},
		{"other collection", Policy{Collections: []string{"x"}}, nil, false, false},
		{"unread document", Policy{Collections: []string{"x"}}, func(f *Facts) { f.Unread = "gone" }, true, true},
		{"tag", Policy{Tags: map[string]string{"risk": "high"}}, nil, true, false},
		{"tag of a list", Policy{Tags: map[string]string{"area": "legal", "risk": "high"}}, nil, true, false},
		{"one of two tags", Policy{Tags: map[string]string{"area": "it", "risk": "high"}}, nil, false, false},
		{"strategy", Policy{Strategies: []string{"static"}}, nil, true, false},
		{"status", Policy{Statuses: []assay.Status{assay.Conflicting}}, nil, false, false},
		{"score", Policy{ScoreBelow: ptr(0.65)}, nil, true, false},
		{"good score", Policy{ScoreBelow: ptr(0.6)}, nil, false, false},
		{"score that is no number", Policy{ScoreBelow: ptr(0.1)}, func(f *Facts) { f.Answer.Claims[0].Score = math.NaN() }, true, true},
		{"relevance", Policy{RelevanceBelow: ptr(0.8)}, nil, true, false},
		{"relevance not judged", Policy{RelevanceBelow: ptr(0.1)}, func(f *Facts) { f.Answer.Relevance = nil }, true, true},
		{"no answer to judge", Policy{RelevanceBelow: ptr(0.1)}, func(f *Facts) { f.Answer.Relevance, f.Answer.Claims = nil, nil }, false, false},
		{"cost", Policy{CostAbove: ptr(int64(499))}, nil, true, false},
		{"low cost", Policy{CostAbove: ptr(int64(500))}, nil, false, false},
		{"group", Policy{Groups: []string{"sales"}}, nil, true, false},
		{"role", Policy{Roles: []string{"editor"}}, nil, false, false},
		{"topic", Policy{Topics: []string{"a", "b"}}, func(f *Facts) { f.Topics = scorer(0, 0.5) }, true, false},
		{"other topics", Policy{Topics: []string{"a", "b"}}, func(f *Facts) { f.Topics = scorer(0, 0.1) }, false, false},
		{"own threshold", Policy{Topics: []string{"a"}, TopicThreshold: 0.05}, func(f *Facts) { f.Topics = scorer(0.1) }, true, false},
		{"no reader", Policy{Topics: []string{"a"}}, nil, true, true},
		{"reader fails", Policy{Topics: []string{"a"}}, func(f *Facts) {
			f.Topics = func(context.Context, []string) ([]float64, error) { return nil, errors.New("broken") }
		}, true, true},
		{"reader gives too few scores", Policy{Topics: []string{"a", "b"}}, func(f *Facts) { f.Topics = scorer(0) }, true, true},
		{"score of a topic is no number", Policy{Topics: []string{"a"}}, func(f *Facts) { f.Topics = scorer(math.NaN()) }, true, true},
		{"all conditions", Policy{Groups: []string{"sales"}, Statuses: []assay.Status{assay.Answered}}, nil, true, false},
		{"one condition is not met", Policy{Groups: []string{"it"}, Topics: []string{"a"}}, nil, false, false},
		{"malformed", Policy{}, nil, true, true},
	}
	for _, tt := range tests {
		f := someFacts()
		if tt.change != nil {
			tt.change(&f)
		}
		tt.policy.Name = tt.name
		m, ok := tt.policy.Match(t.Context(), f)
		if ok != tt.match || m.Failed != tt.failed || ok && (m.Why == "" || m.Policy != tt.name) {
			t.Errorf("%s: Match = %+v, %t; want %t, failed %t", tt.name, m, ok, tt.match, tt.failed)
		}
		if ok && !tt.policy.Possible(f.Run, f.Asker, []string{"policies", "x"}) {
			t.Errorf("%s: it matches, but is not possible", tt.name)
		}
	}
}

// TestSample checks that a sample is about as large as configured and the same every time.
func TestSample(t *testing.T) {
	t.Parallel()
	p := Policy{Name: "some", Sample: 10}
	n := 0
	for i := range 10_000 {
		run := fmt.Sprint("run", i)
		if p.Sampled(run) {
			n++
		}
		if p.Sampled(run) != p.Possible(run, assay.Local(), nil) {
			t.Fatalf("%s: the sample is not known before the run", run)
		}
	}
	if n < 900 || n > 1100 {
		t.Errorf("%d of 10,000 runs are in a sample of 10 %%", n)
	}
	if p.Sample = 100; !p.Sampled("x") {
		t.Error("a sample of 100 % leaves a run out")
	}
}

func TestPolicyInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `{"name":"x"}`, `{"name":"x","always":true,"sample":1}`, `{"name":"x","sample":101}`, `{"name":"x","sample":-1}`,
		`{"name":"x","score_below":1.5}`, `{"name":"x","topics":[" "]}`, `{"name":"x","always":true,"approvals":3}`,
		`{"name":"x","always":true,"reject":true}`, `{"name":"x","statuses":["pending_review"]}`, `{"name":"x","new":1}`, `[`,
		`{"name":"x","always":true,"deadline_ns":-1}`, `{"name":"x","topics":["a"],"topic_threshold":1}`,
	} {
		if _, err := ParsePolicy([]byte(text)); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("ParsePolicy(%s) = %v, want invalid", text, err)
		}
	}
	if _, err := ParsePolicy([]byte(`{"name":"x","sample":2.5,"approvals":2,"deadline_ns":3600000000000,"reject":true}`)); err != nil {
		t.Error(err)
	}
}

// topicSet is a labelled set. Topics of a text are indexes.
type topicSet struct {
	Topics []string
	Texts  []struct {
		Q, A   string
		Topics []int
	}
}

// TestTopics measures the default threshold. The topics and texts of the hold-out were not used to fit
// it. Floors are the measured values, less one text.
func TestTopics(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("reads 800 pairs of texts")
	}
	reader, err := embedded.OpenReader()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file              string
		precision, recall float64
	}{
		{"topics_fit.json", 0.68, 0.90},
		{"topics_holdout.json", 0.79, 0.78},
	} {
		data, err := os.ReadFile("testdata/" + tt.file)
		if err != nil {
			t.Fatal(err)
		}
		var set topicSet
		if err := json.Unmarshal(data, &set); err != nil {
			t.Fatal(err)
		}
		right, found, all := 0, 0, 0
		for _, text := range set.Texts {
			scores, err := Topics(reader, text.Q, text.A)(t.Context(), set.Topics)
			if err != nil {
				t.Fatal(err)
			}
			all += len(text.Topics)
			for i, s := range scores {
				if s < DefaultTopicThreshold {
					continue
				}
				found++
				for _, want := range text.Topics {
					if i == want {
						right++
					}
				}
			}
		}
		precision, recall := float64(right)/float64(found), float64(right)/float64(all)
		t.Logf("%s: %d texts, %d topics: precision %.2f (%d of %d), recall %.2f (%d of %d)", tt.file, len(set.Texts), len(set.Topics), precision, right, found, recall, right, all)
		if precision < tt.precision || recall < tt.recall {
			t.Errorf("%s: precision %.2f, recall %.2f; want at least %.2f and %.2f", tt.file, precision, recall, tt.precision, tt.recall)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ before, after, want string }{
		{"", "", ""},
		{"One. Two.", "One. Two.", "same:One.|same:Two."},
		{"One. Two. Three.", "One. Deux. Three.", "same:One.|removed:Two.|added:Deux.|same:Three."},
		{"", "One.", "added:One."},
		{"One. [1]", "One. [1] Two. (statement of the reviewer x)", "same:One. [1]|added:Two. (statement of the reviewer x)"},
	} {
		var got []string
		for _, c := range Diff(tt.before, tt.after) {
			got = append(got, c.Op+":"+strings.TrimSpace(c.Text))
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("Diff(%q, %q) = %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
