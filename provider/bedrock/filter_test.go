package bedrock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

// open is shared with every principal.
var open = bedrock.Sharing{OpenTo: []string{"*"}}

// ann is the calling principal.
var ann = assay.Principal{User: "ann", Groups: []string{"legal", "board"}}

// search searches a knowledge base in which every passage matches.
func search(t *testing.T, b *bedrocktest.Base, c bedrock.KnowledgeBase, who assay.Principal, q assay.Query) (assay.Results, error) {
	t.Helper()
	if b.Provider == nil {
		b.Serve(t)
	}
	c.ID = "KB12345678"
	k, err := b.Provider.KnowledgeBase(c)
	if err != nil {
		t.Fatal(err)
	}
	if q.Text == "" {
		q.Text = "days of leave"
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	return k.Retrieve(t.Context(), who.Access(), q)
}

// sent returns the filter that a search for f sends, as JSON.
func sent(t *testing.T, b *bedrocktest.Base, f assay.Filter, epochs ...string) (string, []string, error) {
	t.Helper()
	before := len(b.Requests())
	r, err := search(t, b, bedrock.KnowledgeBase{Sharing: open, EpochKeys: epochs}, ann, assay.Query{Filter: f})
	requests := b.Requests()
	if err != nil {
		if len(requests) > before {
			t.Errorf("%v: an error (%v), and a request", f, err)
		}
		return "", nil, err
	}
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, n.Text)
	}
	return string(requests[len(requests)-1].Config.Vector.Filter), notes, nil
}

func TestFilter(t *testing.T) {
	b := &bedrocktest.Base{}
	tests := []struct{ text, want string }{
		{`team = "legal"`, `{"equals":{"key":"team","value":"legal"}}`},
		{`year = 2022`, `{"equals":{"key":"year","value":2022}}`},
		{`draft = true`, `{"equals":{"key":"draft","value":true}}`},
		{`draft = false and year = 0 and team = ""`, `{"andAll":[{"equals":{"key":"draft","value":false}},{"equals":{"key":"year","value":0}},{"equals":{"key":"team","value":""}}]}`},
		{`team != "legal"`, `{"notEquals":{"key":"team","value":"legal"}}`},
		{`year > 2022`, `{"greaterThan":{"key":"year","value":2022}}`},
		{`year >= 2022.5`, `{"greaterThanOrEquals":{"key":"year","value":2022.5}}`},
		{`year < -1`, `{"lessThan":{"key":"year","value":-1}}`},
		{`year <= 1e20`, `{"lessThanOrEquals":{"key":"year","value":100000000000000000000}}`},
		{`team in ("a", "b")`, `{"in":{"key":"team","value":["a","b"]}}`},
		{`team in ("a")`, `{"in":{"key":"team","value":["a"]}}`},
		{`team not in ("a", "b")`, `{"notIn":{"key":"team","value":["a","b"]}}`},
		{`team startsWith "le"`, `{"startsWith":{"key":"team","value":"le"}}`},
		{`team contains "ga"`, `{"stringContains":{"key":"team","value":"ga"}}`},
		{`tags has "x"`, `{"listContains":{"key":"tags","value":"x"}}`},
		{`a = 1 and b = 2 and c = 3`, `{"andAll":[{"equals":{"key":"a","value":1}},{"equals":{"key":"b","value":2}},{"equals":{"key":"c","value":3}}]}`},
		{`a = 1 and (b = 2 and c = 3)`, `{"andAll":[{"equals":{"key":"a","value":1}},{"equals":{"key":"b","value":2}},{"equals":{"key":"c","value":3}}]}`},
		{`a = 1 or (b = 2 and c = 3)`, `{"orAll":[{"equals":{"key":"a","value":1}},{"andAll":[{"equals":{"key":"b","value":2}},{"equals":{"key":"c","value":3}}]}]}`},
		{`not team = "legal"`, `{"notEquals":{"key":"team","value":"legal"}}`},
		{`not not team = "legal"`, `{"equals":{"key":"team","value":"legal"}}`},
		{`not (team != "legal")`, `{"equals":{"key":"team","value":"legal"}}`},
		{`not (a = 1 and (b = 2 or not c in ("x")))`, `{"orAll":[{"notEquals":{"key":"a","value":1}},{"andAll":[{"notEquals":{"key":"b","value":2}},{"in":{"key":"c","value":["x"]}}]}]}`},
		{`not (team not in ("a"))`, `{"in":{"key":"team","value":["a"]}}`},
	}
	for _, test := range tests {
		f, err := assay.ParseFilter(test.text)
		if err != nil {
			t.Fatal(err)
		}
		got, notes, err := sent(t, b, f)
		if err != nil || compact(t, got) != test.want {
			t.Errorf("%s: sent %s, %v; want %s", test.text, got, err, test.want)
		}
		if len(notes) > 0 {
			t.Errorf("%s: notes %q", test.text, notes)
		}
	}
	t.Run("groups of one", func(t *testing.T) {
		one := assay.Filter{Op: assay.OpEquals, Key: "a", Value: assay.NumberValue(1)}
		f := assay.Filter{Op: assay.OpAndAll, Filters: []assay.Filter{{Op: assay.OpOrAll, Filters: []assay.Filter{one}}}}
		if got, _, err := sent(t, b, f); err != nil || compact(t, got) != `{"equals":{"key":"a","value":1}}` {
			t.Errorf("sent %s, %v", got, err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		if got, _, err := sent(t, b, assay.Filter{}); err != nil || got != "" {
			t.Errorf("sent %q, %v", got, err)
		}
	})
	t.Run("order, negated", func(t *testing.T) {
		f, _ := assay.ParseFilter(`not (year > 2020)`)
		got, notes, err := sent(t, b, f)
		if err != nil || compact(t, got) != `{"lessThanOrEquals":{"key":"year","value":2020}}` || len(notes) != 1 || !strings.Contains(notes[0], `without the key "year"`) {
			t.Errorf("sent %s, notes %q, %v", got, notes, err)
		}
	})
	t.Run("seconds since 1970", func(t *testing.T) {
		f, _ := assay.ParseFilter(`created >= 2024-01-31`)
		got, _, err := sent(t, b, f, "created")
		if want := fmt.Sprintf(`{"greaterThanOrEquals":{"key":"created","value":%d}}`, time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC).Unix()); err != nil || compact(t, got) != want {
			t.Errorf("sent %s, %v, want %s", got, err, want)
		}
	})
}

// TestFilterRefused checks that a filter that Bedrock cannot express is an error and is not
// dropped.
func TestFilterRefused(t *testing.T) {
	b := &bedrocktest.Base{}
	for _, text := range []string{
		`not tags has "x"`, `not team startsWith "le"`, `not (a = 1 or team contains "x")`, `created = 2024-01-31`, `created > 2024-01-31`, `tags = ["a", "b"]`,
		`not (a = 1 and tags has "x")`,
	} {
		f, err := assay.ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := sent(t, b, f); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: sent %s, %v; want ErrInvalid", text, got, err)
		}
	}
	for _, f := range []assay.Filter{
		{Op: assay.OpIn, Key: "a", Value: assay.ListValue()},
		{Op: assay.OpNotIn, Key: "a", Value: assay.ListValue()},
		{Op: "matches", Key: "a", Value: assay.StringValue("x")},
		{Op: assay.OpAndAll},
	} {
		if got, _, err := sent(t, b, f); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%v: sent %s, %v; want ErrInvalid", f, got, err)
		}
	}
}

// TestFilterMeaning checks that the filter received by Bedrock is equivalent to the original one
// for documents that have all of its keys.
func TestFilterMeaning(t *testing.T) {
	b := &bedrocktest.Base{}
	rnd := rand.New(rand.NewPCG(1, 2))
	sentFilters := 0
	for range 300 {
		f := randomFilter(rnd, 4)
		got, _, err := sent(t, b, f)
		if errors.Is(err, assay.ErrInvalid) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		sentFilters++
		var arrived assay.Filter
		if err := json.Unmarshal([]byte(got), &arrived); err != nil {
			t.Fatal(err)
		}
		checkGrammar(t, arrived)
		for range 20 {
			m := assay.Metadata{
				"s": assay.StringValue(pick(rnd, "a", "ab", "b")), "n": assay.NumberValue(float64(rnd.IntN(4))),
				"l": assay.ListValue(pick(rnd, "a", "b"), pick(rnd, "ab", "c")), "f": assay.BooleanValue(rnd.IntN(2) == 0),
			}
			if f.Match(m) != arrived.Match(m) {
				t.Fatalf("%v arrives as %v: of %v one keeps it, the other does not", f, arrived, m)
			}
		}
	}
	if sentFilters < 100 {
		t.Errorf("only %d of the filters could be sent", sentFilters)
	}
}

// checkGrammar checks that Bedrock accepts a filter.
func checkGrammar(t *testing.T, f assay.Filter) {
	t.Helper()
	if f.Op == assay.OpNot || (f.Op == assay.OpAndAll || f.Op == assay.OpOrAll) && len(f.Filters) < 2 {
		t.Errorf("Bedrock refuses %v", f)
	}
	for _, part := range f.Filters {
		checkGrammar(t, part)
	}
}

func randomFilter(rnd *rand.Rand, depth int) assay.Filter {
	if depth > 0 && rnd.IntN(2) == 0 {
		op := pick(rnd, assay.OpAndAll, assay.OpOrAll, assay.OpNot)
		f := assay.Filter{Op: op, Filters: []assay.Filter{randomFilter(rnd, depth-1)}}
		for op != assay.OpNot && len(f.Filters) < 3 && rnd.IntN(3) > 0 {
			f.Filters = append(f.Filters, randomFilter(rnd, depth-1))
		}
		return f
	}
	word := assay.StringValue(pick(rnd, "a", "ab", "b", "c"))
	switch rnd.IntN(8) {
	case 0:
		return assay.Filter{Op: pick(rnd, assay.OpEquals, assay.OpNotEquals), Key: "s", Value: word}
	case 1:
		return assay.Filter{Op: pick(rnd, assay.OpEquals, assay.OpNotEquals), Key: "f", Value: assay.BooleanValue(rnd.IntN(2) == 0)}
	case 2, 3, 4:
		op := pick(rnd, assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals, assay.OpEquals)
		return assay.Filter{Op: op, Key: "n", Value: assay.NumberValue(float64(rnd.IntN(4)))}
	case 5, 6:
		return assay.Filter{Op: pick(rnd, assay.OpIn, assay.OpNotIn), Key: "s", Value: assay.ListValue("a", pick(rnd, "b", "c"))}
	}
	return assay.Filter{Op: pick(rnd, assay.OpListContains, assay.OpStringContains), Key: "l", Value: word}
}

func pick[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

// compact returns JSON in canonical form.
func compact(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
