package ground_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// answering returns a reader whose answer is the words in brackets. It finds an answer to a
// question made of the other passage's sentence only if same is set.
func answering(entail func(llm.ClaimPair) (llm.Entailment, error), same bool) *llmtest.Reader {
	return &llmtest.Reader{
		OnEntail: entail,
		OnRead: func(question string, p llm.Excerpt) (llm.Reading, error) {
			start, end := strings.Index(p.Text, "["), strings.Index(p.Text, "]")
			if start < 0 || !same && strings.Contains(question, "[what]") {
				return llm.Reading{}, nil
			}
			return llm.Reading{Answerable: 0.9, Relevance: 0.9, Spans: []llm.Extract{{Start: start + 1, End: end, Score: 0.9}}}, nil
		},
	}
}

// exchanging returns an entailment function that supports a sentence with the other's answer
// substituted if same is set, and contradicts the sentences themselves.
func exchanging(same bool) func(llm.ClaimPair) (llm.Entailment, error) {
	return func(p llm.ClaimPair) (llm.Entailment, error) {
		_, answer, _ := strings.Cut(p.Passage.Text, "[")
		answer, _, _ = strings.Cut(answer, "]")
		switch {
		case !same:
			return neutral, nil
		case strings.Contains(p.Claim, "["+answer+"]"):
			return supports, nil
		}
		return contradicts, nil
	}
}

func TestConflicts(t *testing.T) {
	for _, tt := range []struct {
		name, question string
		a, b           string // heading | text
		same           bool   // the reader finds both to be about the same thing
		want           bool
	}{
		{"in other words", "How much may the pump take?", "Pump | It is red. The pump must not exceed [5 bar].", "Manual | The pump bears up to [7 bar].", true, true},
		{"dates", "When did it open?", "Bridge | The bridge opened on [4 May 1967].", "History | The bridge was opened in [June 1968].", true, true},
		{"names", "Who makes the pump?", "Pump | The pump is made by [Acme Corp].", "Parts | The pump is made by [Bolt].", true, true},
		{"yes and no", "Are dogs allowed?", "Camp | Dogs are [allowed] here.", "Rules | Dogs are [not allowed] here.", true, true},
		{"editions", "How many days of leave do we get?", "Leave policy 2022 | Employees get [25 days] of leave.", "Leave policy 2024 | Employees get [28 days] of leave.", true, true},

		{"in the same words", "How long does the warranty last?", "Shop | The warranty lasts for [two years].", "Old | The warranty lasts for [three years].", false, true},

		{"half past", "When does it open?", "Shop | It opens at [7] o'clock.", "Sign | It opens at [6:30] on all days.", true, true},
		{"the unit beside", "How long is it?", "Road | The road measures [7] km in all.", "Plan | The road has [nine kilometres].", true, true},

		{"another unit", "How long is it?", "Pump | It runs for [60 minutes].", "Manual | It runs for [1 hour].", true, false},
		{"another form", "When did it open?", "Bridge | It opened on [4 May 1967].", "History | Opening: [1967-05-04].", true, false},
		{"a part of a date", "When did it open?", "Bridge | It opened on [4 May 1967].", "History | It opened in [1967].", true, false},
		{"words and digits", "How many seats are there?", "Hall | It has [four hundred and twenty] seats.", "Town | There are [420] seats.", true, false},
		{"another thing", "Which port does the service use?", "Billing | The billing service uses [port 8080].", "Orders | The orders service uses [port 9090].", false, false},
		{"of the question", "How tall is Elden tower?", "Elden | Elden tower is [41 m] tall.", "Sights | The tower is [28 m] tall in Harnby.", false, false},
		{"another part of the year", "How many trains run?", "Summer | In summer [4] trains run.", "Winter | In winter [2] trains run.", false, false},
		{"another time", "What was the limit?", "Limits | In 2019 the limit was [5 bar].", "News | In 2023 the limit was [7 bar].", false, false},
		{"another version", "Which port is used?", "Halyard | Halyard 2 uses [port 7070].", "Halyard | Halyard 3 uses [port 8443].", false, false},
		{"no answer", "What is the limit?", "Pump | The limit of the pump is [5 bar].", "Manual | The limit of the pump is 7 bar.", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var passages []ground.Passage
			for _, side := range []string{tt.a, tt.b} {
				heading, text, _ := strings.Cut(side, " | ")
				passages = append(passages, ground.Passage{Quote: text, Context: text, Heading: []string{heading}})
			}
			reader := answering(exchanging(tt.same), tt.same)
			found, err := ground.Conflicts(t.Context(), reader, tt.question, passages, func(i, j int) bool { return i != j })
			if err != nil || (len(found) == 1) != tt.want || len(found) > 1 {
				t.Fatalf("%+v, %v, want %v", found, err, tt.want)
			}
			if tt.want {
				if a := passages[0].Context[found[0].A.Start:found[0].A.End]; !strings.Contains(a, "[") || strings.Contains(a, "red") {
					t.Errorf("one side is %q", a)
				}
			}
			none, err := ground.Conflicts(t.Context(), reader, tt.question, passages, func(int, int) bool { return false })
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
		"entailing": answering(func(llm.ClaimPair) (llm.Entailment, error) { return llm.Entailment{}, errors.New("broken") }, true),
		"asking": {OnRead: func(question string, p llm.Excerpt) (llm.Reading, error) {
			if question != "What?" {
				return llm.Reading{}, errors.New("broken")
			}
			return llm.Reading{Answerable: 0.9, Spans: []llm.Extract{{Start: 6, End: 9}}}, nil
		}, OnEntail: func(llm.ClaimPair) (llm.Entailment, error) { return neutral, nil }},
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
