package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// TestPlansHaveFilters checks that a planner gets the metadata keys of the documents and that the
// filters in its plan restrict the search.
func TestPlansHaveFilters(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	planner := by[role.PlannerRole]
	planner.reply = func(_ context.Context, _ int, req llm.Request) (llm.Response, error) {
		return spoken(jsonOf(map[string]any{"shape": "single", "sub_questions": []any{map[string]any{
			"text": "Who approves travel to a customer?", "needs": []int{},
			"conditions": []any{map[string]any{"key": "year", "operator": "equals", "value": "2022"}},
		}}}), req), nil
	}
	e := openModels(t, served(by))
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "In 2022, who approves travel to a customer?", Strategy: "corrective"})
	if err != nil {
		t.Fatal(err)
	}
	prompt := planner.requests[0].Messages[0].Text
	for _, want := range []string{"team (string): finance, people, platform", "year (number): 2022, 2024, 2025"} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, prompt)
		}
	}
	for _, hidden := range []string{".md", "file", "title (string):", "path (list):"} { // names of files and folders
		if strings.Contains(prompt, hidden) {
			t.Errorf("the prompt has %q:\n%s", hidden, prompt)
		}
	}
	if a.Status != assay.Answered || a.Searched[0].Filter.Key != "year" || a.Searched[0].Hits == 0 {
		t.Errorf("%s, searched %+v, notes %q", a.Status, a.Searched, a.Notes)
	}
	replays(t, e, a.Run)
}

// TestKeysOfOthersStayTheirs checks that metadata of documents that a principal may not see is
// not revealed to it.
func TestKeysOfOthersStayTheirs(t *testing.T) {
	t.Parallel()
	e := openModels(t, Models{})
	keys, err := e.keys(t.Context(), assay.Principal{}.Access(), nil)
	if err != nil || len(keys) > 0 {
		t.Errorf("nobody is told %+v, %v", keys, err)
	}
	mine, err := e.keys(t.Context(), assay.Local().Access(), nil)
	if err != nil || len(mine) == 0 {
		t.Fatalf("%+v, %v", mine, err)
	}
	ingestPaths(t, e, writeNotes(t, 0, 1))
	if again, err := e.keys(t.Context(), assay.Local().Access(), nil); err != nil || cmp.Equal(mine, again) && len(again) == 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestKeysAreLookedForOnce checks that a caller waiting for another's scan can be cancelled, that
// it takes over if the scan is interrupted, and that the cache is bounded.
func TestKeysAreLookedForOnce(t *testing.T) {
	t.Parallel()
	e := openModels(t, Models{})
	access := assay.Local().Access()
	sequence, err := e.content.Sequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of := access.Key() + "\x00"
	other, mine := e.keyCache.scan(sequence, of)
	if !mine {
		t.Fatal("somebody looks already")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.keys(ended, access, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for another: %v", err)
	}
	got := make(chan []prompted.Key, 1)
	go func() {
		keys, err := e.keys(t.Context(), access, nil)
		if err != nil {
			t.Error(err)
		}
		got <- keys
	}()
	other.err = context.Canceled
	e.keyCache.end(of, other)
	if keys := <-got; len(keys) == 0 {
		t.Error("nobody looked again")
	}
	for i := range 3 * maxScans {
		e.keyCache.scan(sequence, strings.Repeat("x", i))
	}
	if n := len(e.keyCache.found); n > maxScans {
		t.Errorf("%d askers are remembered", n)
	}
}

func TestKeysOf(t *testing.T) {
	t.Parallel()
	seen := map[string]*seenKey{}
	for i := range 20 {
		see(seen, assay.Metadata{
			"n": assay.NumberValue(float64(i)), "tags": assay.ListValue("a", "b"), "odd": assay.StringValue("x"), strings.Repeat("k", 65): assay.NumberValue(1),
		})
	}
	see(seen, assay.Metadata{"odd": assay.NumberValue(3), "tags": assay.ListValue("c")})
	want := []prompted.Key{
		{Name: "odd", Kinds: []assay.ValueKind{assay.KindNumber, assay.KindString}, Values: []string{"3", "x"}},
		{Name: "tags", Kinds: []assay.ValueKind{assay.KindList}, Values: []string{"a", "b", "c"}},
		{Name: "n", Kinds: []assay.ValueKind{assay.KindNumber}},
	}
	if diff := cmp.Diff(want, keysOf(seen, true)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := keysOf(seen, false); got[0].Values != nil {
		t.Errorf("not all documents were looked at, and %q are said to be all values", got[0].Values)
	}
	data, err := json.Marshal(want)
	var back []prompted.Key
	if err != nil || json.Unmarshal(data, &back) != nil || !cmp.Equal(want, back) {
		t.Errorf("%s, %v", data, err)
	}
}

// TestDomainIsSearched checks that the domain's synonyms for words of a question are searched
// too.
func TestDomainIsSearched(t *testing.T) {
	t.Parallel()
	domain, err := prompted.ParseDomain("team.md", []byte("---\nname: team\n---\n## Vocabulary\n\n- leave: furlough, sabbatical\n"))
	if err != nil {
		t.Fatal(err)
	}
	const query = "furlough"
	if r := searchFor(t, openModels(t, Models{}), query); len(r.Hits) > 0 {
		t.Fatalf("%d hits without the domain", len(r.Hits))
	}
	e := openModels(t, Models{Domain: domain})
	if r := searchFor(t, e, query); len(r.Hits) == 0 {
		t.Error("no hits in the words of the domain")
	}
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "How long does a furlough for parents last?"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Searched[0].Hits == 0 {
		t.Errorf("searched %+v", a.Searched)
	}
	replays(t, e, a.Run)
}

// TestModelsReadMore checks that a generator model reads more of the passages that a grader model
// calls relevant.
func TestModelsReadMore(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	by[role.GraderRole] = texts("fake/grader", func(req llm.Request) string {
		relevant := []int{}
		for n := range len(passages(req)) {
			relevant = append(relevant, n+1)
		}
		return jsonOf(map[string]any{"reason": "all", "relevant_chunks": relevant, "missing": []string{}, "verdict": "sufficient", "reformulated_query": ""})
	})
	e := openModels(t, served(by))
	ingestPaths(t, e, writeNotes(t, 0, 30))
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "Does lantern3 burn brightly in the harbour at night?", Strategy: "static"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(passages(by[role.GeneratorRole].requests[0])); n < 10 {
		t.Errorf("the generator reads %d passages", n)
	}
	replays(t, e, a.Run)
}
