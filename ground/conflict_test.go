package ground_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// answering reads the answer that stands in brackets in a text.
func answering(entail func(llm.ClaimPair) (llm.Entailment, error)) *llmtest.Reader {
	return &llmtest.Reader{
		OnEntail: entail,
		OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
			start, end := strings.Index(p.Text, "["), strings.Index(p.Text, "]")
			if start < 0 {
				return llm.Reading{}, nil
			}
			return llm.Reading{Answerable: 0.9, Spans: []llm.Extract{{Start: start + 1, End: end, Score: 0.9}}}, nil
		},
	}
}

func TestConflicts(t *testing.T) {
	neither := func(llm.ClaimPair) (llm.Entailment, error) { return neutral, nil }
	opposite := func(llm.ClaimPair) (llm.Entailment, error) { return contradicts, nil }
	same := func(llm.ClaimPair) (llm.Entailment, error) { return supports, nil }
	for _, tt := range []struct {
		name, a, b string
		entail     func(llm.ClaimPair) (llm.Entailment, error)
		want       bool
	}{
		{"by the reader", "It is red. The pump runs [always].", "The pump is [switched off at night].", opposite, true},
		{"another number", "The limit of the pump is [5 bar].", "The pump has a limit of [7 bar].", neither, true},
		{"another name", "The pump is made by [Acme Corp].", "The pump is made by [Bolt].", neither, true},
		{"the same number in another unit", "The limit of the pump is [60 minutes].", "The limit of the pump is [1 hour].", neither, false},
		{"in other words", "It must not exceed [5 bar].", "The pump bears up to [7 bar].", neither, true},
		{"of another thing", "The limit of the Falcon pump is [5 bar].", "The limit of the Heron pump is [7 bar].", neither, false},
		{"of another time", "In 2019 the limit was [5 bar].", "In 2023 the limit was [7 bar].", opposite, false},
		{"of another unit", "The limit of the pump is [5 bar].", "In winter we close at [7 hours].", neither, false},
		{"one supports the other", "The limit of the pump is [5 bar].", "The limit of the pump is [7 bar].", same, false},
		{"no answer", "The limit of the pump is [5 bar].", "The limit of the pump is 7 bar.", opposite, false},
		{"no contradiction", "The pump runs [always].", "The pump runs [day and night].", neither, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			passages := append(cited(tt.a), cited(tt.b)...)
			apart := func(i, j int) bool { return i != j }
			found, err := ground.Conflicts(t.Context(), answering(tt.entail), "What is the limit?", passages, apart)
			if err != nil || (len(found) == 1) != tt.want || len(found) > 1 {
				t.Fatalf("%+v, %v, want %v", found, err, tt.want)
			}
			if tt.want {
				if a := tt.a[found[0].A.Start:found[0].A.End]; !strings.Contains(a, "[") || strings.Contains(a, "red") {
					t.Errorf("one side is %q", a)
				}
			}
			none, err := ground.Conflicts(t.Context(), answering(tt.entail), "What is the limit?", passages, func(int, int) bool { return false })
			if err != nil || len(none) != 0 {
				t.Errorf("in one document: %+v, %v", none, err)
			}
		})
	}
}

func TestConflictsFails(t *testing.T) {
	passages := append(cited("It is [5]."), cited("It is [7].")...)
	for name, r := range map[string]*llmtest.Reader{
		"reading":   {OnRead: func(string, llm.Excerpt) (llm.Reading, error) { return llm.Reading{}, errors.New("broken") }},
		"entailing": answering(func(llm.ClaimPair) (llm.Entailment, error) { return llm.Entailment{}, errors.New("broken") }),
		"no place": {OnRead: func(string, llm.Excerpt) (llm.Reading, error) {
			return llm.Reading{Answerable: 1, Spans: []llm.Extract{{Start: 3, End: 99}}}, nil
		}},
	} {
		if found, err := ground.Conflicts(t.Context(), r, "What?", passages, func(int, int) bool { return true }); err == nil {
			t.Errorf("%s: %+v and no error", name, found)
		}
	}
}

func TestDiffer(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"The notice period is three months.", "The notice period is 6 months.", true},
		{"Interns may work overtime.", "Interns may not work overtime.", true},
		{"The notice period is three months.", "The notice period is 3 months.", false},
		{"The notice period is three months.", "The trial period ends after 6 weeks.", false},
		{"Interns may not work 3 nights.", "Interns may work 4 nights.", false},
	} {
		if got := ground.Differ(tt.a, tt.b); got != tt.want || ground.Differ(tt.b, tt.a) != tt.want {
			t.Errorf("Differ(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
