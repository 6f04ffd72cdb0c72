package ground_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
)

// entailing is a reader made of a function.
type entailing func(ctx context.Context, claim, text string) (llm.Entailment, error)

func (entailing) Model() string { return "scripted/reader" }

func (entailing) Read(context.Context, string, []llm.Excerpt) ([]llm.Reading, error) {
	return nil, errors.New("it only entails")
}

func (e entailing) Entail(ctx context.Context, pairs []llm.ClaimPair) ([]llm.Entailment, error) {
	out := make([]llm.Entailment, len(pairs))
	for i, p := range pairs {
		var err error
		if out[i], err = e(ctx, p.Claim, p.Passage.Text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var (
	supports    = llm.Entailment{Supported: 0.99, Neutral: 0.01, Decisive: llm.Extract{Start: 0, End: 3}}
	contradicts = llm.Entailment{Contradicted: 0.99, Neutral: 0.01, Decisive: llm.Extract{Start: 0, End: 3}}
	neutral     = llm.Entailment{Neutral: 0.99, Supported: 0.01, Decisive: llm.Extract{Start: 0, End: 3}}
)

// reads returns a reader that supports a claim if the text has the supporting words, contradicts it
// if the text has the contradicting ones, and is neutral otherwise.
func reads(supporting, contradicting string) llm.Reader {
	return entailing(func(_ context.Context, _, text string) (llm.Entailment, error) {
		e := neutral
		switch {
		case supporting != "" && strings.Contains(text, supporting):
			e = supports
			e.Decisive.Start = strings.Index(text, supporting)
			e.Decisive.End = e.Decisive.Start + len(supporting)
		case contradicting != "" && strings.Contains(text, contradicting):
			e = contradicts
		}
		return e, nil
	})
}

func cited(text string, heading ...string) []ground.Passage {
	return []ground.Passage{{Quote: text, Context: text, Heading: heading}}
}

func TestLocal(t *testing.T) {
	const lease = "The flat has a garden. The tenant pays the rent in advance. Dogs are welcome."
	for _, tt := range []struct {
		name, source, claim string
		reader              llm.Reader
		verdict             assay.Verdict
		quote               string // of the first span
	}{
		{"verbatim", lease, "The tenant pays the rent in advance.", reads("", "flat"), assay.Supported, "The tenant pays the rent in advance."},
		{"verbatim without a reader", lease, "Dogs are  welcome.", nil, assay.Supported, "Dogs are welcome."},
		{"nearly verbatim without a reader", lease, "A tenant pays the rent in advance", nil, assay.Supported, "The tenant pays the rent in advance."},
		{"a part of a sentence", "It is wrong that dogs are welcome.", "dogs are welcome", nil, assay.Unsupported, ""},
		{"exchanged without a reader", "The tenant pays the landlord.", "The landlord pays the tenant.", nil, assay.Unsupported, ""},
		{"a paraphrase", lease, "Rent is due beforehand.", reads("in advance", ""), assay.Supported, "The tenant pays the rent in advance."},
		{"a paraphrase without a reader", lease, "Rent is due beforehand.", nil, assay.Unsupported, ""},
		{"contradicted", lease, "Rent is due afterwards.", reads("", "in advance"), assay.Contradicted, ""},
		{"neither", lease, "The rent is high.", reads("", ""), assay.Unsupported, ""},
		{"refused by a check", lease, "Rent is due 3 days in advance.", reads("in advance", ""), assay.Unsupported, ""},
		{"a verbatim item", "You may bring:\n- dogs and cats", "dogs and cats", reads("", ""), assay.Supported, "dogs and cats"},
		{"an item under a negation", "You may not bring:\n- dogs and cats", "dogs and cats", nil, assay.Unsupported, ""},
		{"an item that its head takes back", "These are myths:\n- Dogs can fly.", "Dogs can fly.", reads("", "myths"), assay.Contradicted, ""},
		{"an empty source", " ", "Rent is due.", reads("", ""), assay.Unsupported, ""},
		{"no word", lease, "…", reads("", ""), assay.Unsupported, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, err := ground.Local{Reader: tt.reader, Floor: 0.5, Model: readerModel()}.Verify(t.Context(), tt.claim, cited(tt.source))
			if err != nil || j.Verdict != tt.verdict || j.Failed {
				t.Fatalf("%+v, %v, want %s", j, err, tt.verdict)
			}
			if tt.quote != "" && (len(j.Spans) == 0 || tt.source[j.Spans[0].Start:j.Spans[0].End] != tt.quote) {
				t.Errorf("the spans are %+v, want %q", j.Spans, tt.quote)
			}
		})
	}
}

// readerModel returns a model that uses the reader's probabilities directly.
func readerModel() *ground.Model {
	m, err := ground.DecodeModel([]byte(plainModel()))
	if err != nil {
		panic(err)
	}
	return m
}

// plainModel returns a model with weights for two features: support of the least part, and
// contradiction.
func plainModel() string {
	var names, zeros, ones, supported, contradicted []string
	for _, n := range ground.FeatureNames() {
		names, zeros, ones = append(names, `"`+n+`"`), append(zeros, "0"), append(ones, "1")
		s, c := "0", "0"
		switch n {
		case "least_part":
			s = "1"
		case "contradicted_max":
			c = "1"
		}
		supported, contradicted = append(supported, s), append(contradicted, c)
	}
	linear := func(weights []string) string {
		return `{"bias": 0, "mean": [` + strings.Join(zeros, ",") + `], "scale": [` + strings.Join(ones, ",") + `], "weights": [` + strings.Join(weights, ",") + `]}`
	}
	return `{"features": [` + strings.Join(names, ",") + `], "supported": ` + linear(supported) + `, "contradicted": ` + linear(contradicted) + `, "shown": 0.7, "balanced": 0.5, "disputed": 0.5}`
}

// TestLocalParts checks that each part of a claim has to be supported.
func TestLocalParts(t *testing.T) {
	const source = "The office opens now. The canteen is new."
	onlyOffice := entailing(func(_ context.Context, claim, _ string) (llm.Entailment, error) {
		if strings.Contains(claim, "closed") && !strings.Contains(claim, "office") {
			return neutral, nil
		}
		return supports, nil
	})
	l := ground.Local{Reader: onlyOffice, Model: readerModel()}
	for claim, want := range map[string]assay.Verdict{
		"Now the office is open.":                                 assay.Supported,
		"Now the office is open, and the canteen is closed down.": assay.Unsupported,
	} {
		if j, err := l.Verify(t.Context(), claim, cited(source)); err != nil || j.Verdict != want {
			t.Errorf("%q: %+v, %v, want %s", claim, j, err, want)
		}
	}
}

// TestLocalFails checks that a reader that fails, or returns an invalid probability, supports no
// claim.
func TestLocalFails(t *testing.T) {
	const source, claim = "The tenant pays the rent in advance.", "Rent is due beforehand."
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx    context.Context
		reader llm.Reader
	}{
		"an error": {t.Context(), entailing(func(context.Context, string, string) (llm.Entailment, error) { return supports, errors.New("broken") })},
		"no number": {t.Context(), entailing(func(context.Context, string, string) (llm.Entailment, error) {
			return llm.Entailment{Supported: math.NaN()}, nil
		})},
		"over one": {t.Context(), entailing(func(context.Context, string, string) (llm.Entailment, error) {
			return llm.Entailment{Supported: 2}, nil
		})},
		"too few entailments": {t.Context(), few{}},
		"the end":             {ended, reads("rent", "")},
	} {
		j, err := ground.Local{Reader: tt.reader, Model: readerModel()}.Verify(tt.ctx, claim, cited(source))
		if err == nil || j.Verdict != assay.Unsupported || !j.Failed || j.Reason == "" {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
}

type few struct{ entailing }

func (few) Entail(context.Context, []llm.ClaimPair) ([]llm.Entailment, error) { return nil, nil }

func TestDecodeModelErrors(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":        "{",
		"empty":          "{}",
		"other features": strings.Replace(plainModel(), `"order"`, `"disorder"`, 1),
		"a floor of 1":   strings.Replace(plainModel(), `"shown": 0.7`, `"shown": 1`, 1),
	} {
		if _, err := ground.DecodeModel([]byte(text)); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	shown, balanced, err := ground.Floors()
	if err != nil || !(0 < balanced && balanced <= shown && shown < 1) {
		t.Errorf("the floors in the binary are %v and %v, %v", shown, balanced, err)
	}
}

func TestRowClaim(t *testing.T) {
	columns := []string{"Plan", "", "Price"}
	for _, tt := range []struct {
		row  ground.Row
		want string
	}{
		{ground.Row{Columns: columns, Cells: []string{"Pro", "new", "5 €"}, Sentence: "The new Pro plan costs 5 €."}, "The new Pro plan costs 5 €."},
		{ground.Row{Columns: columns, Cells: []string{"Pro", "new", "9 €"}, Sentence: "The new Pro plan costs 5 €."}, "Plan: Pro; new; Price: 9 €"},
		{ground.Row{Columns: columns, Cells: []string{"Pro", "", "9 €"}}, "Plan: Pro; Price: 9 €"},
	} {
		if got := tt.row.Claim(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.row, got, tt.want)
		}
	}
}
