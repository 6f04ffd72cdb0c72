package llmtest_test

import (
	"errors"
	"math"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func TestReaderKeepsTheContract(t *testing.T) {
	llmtest.TestReader(t, func(testing.TB) llm.Reader { return new(llmtest.Reader) })
}

// TestScriptedReader checks that a Reader calls its functions and returns their errors.
func TestScriptedReader(t *testing.T) {
	broken := errors.New("broken")
	r := &llmtest.Reader{
		Name: "reader@test",
		OnRead: func(question string, p llm.Excerpt) (llm.Reading, error) {
			if p.Text == "" {
				return llm.Reading{}, broken
			}
			return llm.Reading{Answerable: 0.25}, nil
		},
		OnEntail: func(llm.ClaimPair) (llm.Entailment, error) { return llm.Entailment{Contradicted: 1}, nil },
	}
	readings, err := r.Read(t.Context(), "q", []llm.Excerpt{{Text: "a"}, {Text: "b"}})
	if err != nil || len(readings) != 2 || readings[1].Answerable != 0.25 || r.Model() != "reader@test" {
		t.Errorf("%s: %+v, %v", r.Model(), readings, err)
	}
	if _, err := r.Read(t.Context(), "q", []llm.Excerpt{{}}); !errors.Is(err, broken) {
		t.Errorf("error %v, want the script's", err)
	}
	if e, err := r.Entail(t.Context(), make([]llm.ClaimPair, 1)); err != nil || e[0].Contradicted != 1 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestReadByWords(t *testing.T) {
	p := llm.Excerpt{Heading: "Leave", Text: "Ask early. Five days may be carried over. It ends in May."}
	r, err := llmtest.ReadByWords("How many days are carried over?", p)
	if err != nil || len(r.Spans) != 3 || p.Text[r.Spans[0].Start:r.Spans[0].End] != "Five days may be carried over." {
		t.Errorf("%+v, %v", r, err)
	}
	for claim, want := range map[string]llm.Entailment{
		"Five days may be carried over.":     {Supported: 1},
		"Five days may not be carried over.": {Contradicted: 1},
		"Elephants forget.":                  {Neutral: 1},
	} {
		e, err := llmtest.EntailByWords(llm.ClaimPair{Claim: claim, Passage: p})
		e.Decisive = llm.Extract{}
		if err != nil || e != want {
			t.Errorf("%s: %+v, %v, want %+v", claim, e, err, want)
		}
	}
}

// TestCheckReading checks that CheckReading detects contract violations.
func TestCheckReading(t *testing.T) {
	const text = "Five days, é."
	for name, r := range map[string]llm.Reading{
		"probability":    {Answerable: 1.1},
		"no number":      {Relevance: math.NaN()},
		"outside":        {Spans: []llm.Extract{{Start: 5, End: 99}}},
		"empty":          {Spans: []llm.Extract{{Start: 5, End: 5}}},
		"half a rune":    {Spans: []llm.Extract{{Start: 5, End: 12}}},
		"over another":   {Spans: []llm.Extract{{Start: 0, End: 6, Score: 0.5}, {Start: 5, End: 9, Score: 0.1}}},
		"best not first": {Spans: []llm.Extract{{Start: 0, End: 4, Score: 0.1}, {Start: 5, End: 9, Score: 0.5}}},
		"six":            {Spans: make([]llm.Extract, 6)},
	} {
		if llmtest.CheckReading(r, text) == nil {
			t.Errorf("%s: %+v passes", name, r)
		}
	}
	for name, e := range map[string]llm.Entailment{
		"sum":         {Supported: 0.5, Neutral: 0.4, Decisive: llm.Extract{End: 4}},
		"no number":   {Supported: math.NaN(), Neutral: 1, Decisive: llm.Extract{End: 4}},
		"no decisive": {Neutral: 1},
	} {
		if llmtest.CheckEntailment(e, text) == nil {
			t.Errorf("%s: %+v passes", name, e)
		}
	}
}
