package local

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// evidenceWith is evidence of one document for each text.
func evidenceWith(texts ...string) []assay.Evidence {
	var out []assay.Evidence
	for i, text := range texts {
		uri := fmt.Sprintf("/doc%d.md", i+1)
		out = append(out, assay.Evidence{Number: i + 1, Hit: assay.Hit{
			Chunk: assay.Chunk{ID: uri, Document: uri, Kind: assay.ChunkProse, End: len(text)}, Text: text, URI: uri, Scores: assay.Scores{Relevance: 0.9},
		}})
	}
	return out
}

// callsOf lists the calls of an action.
func callsOf(a role.Action) []string {
	var out []string
	for _, c := range a.Calls {
		out = append(out, c.Name+" "+c.Arguments)
	}
	return out
}

func TestActor(t *testing.T) {
	ask := func(in role.ActInput) role.Action {
		t.Helper()
		in.Most, in.Left, in.Floor = 4, 8, 0.5
		a, err := Actor{}.Act(t.Context(), nil, in)
		if err != nil || a.Done != (len(a.Calls) == 0) {
			t.Fatalf("%+v, %v", a, err)
		}
		return a
	}
	made := func(calls ...llm.ToolCall) []role.ActStep {
		s := role.ActStep{}
		for _, c := range calls {
			s.Uses = append(s.Uses, role.ToolUse{Call: c})
		}
		return []role.ActStep{s}
	}
	again := func(a role.Action) []role.ActStep { return made(a.Calls...) }
	terms := func(question string, chunks int) []assay.Term {
		out := read(question, nil).terms
		for i := range out {
			out[i].Chunks = chunks
		}
		return out
	}

	question := "How much is the deposit?"
	first := ask(role.ActInput{Question: question})
	if want := []string{`search {"query":"How much is the deposit?"}`}; !slices.Equal(callsOf(first), want) {
		t.Errorf("begins with %q, want %q", callsOf(first), want)
	}
	found := evidenceWith("The deposit is 900 euros.", "The deposit is due in May.")
	if a := ask(role.ActInput{Question: question, Steps: again(first), Found: found, Terms: terms(question, 2), Fresh: 2}); !a.Done {
		t.Errorf("what suffices is followed by %q", callsOf(a))
	}
	// What is open is looked for, and on where the best passage is cut off; each call once.
	open := "Who founded the company that owns Acme Housing?"
	cut := evidenceWith("Acme Housing belongs to Initech and")
	in := role.ActInput{Question: open, Steps: again(ask(role.ActInput{Question: open})), Found: cut, Terms: terms(open, 3), Fresh: 1}
	a := ask(in)
	if got := callsOf(a); !slices.ContainsFunc(got, func(c string) bool { return strings.HasPrefix(c, `get_document {"id":"/doc1.md","page":1}`) }) || !strings.HasPrefix(got[0], "search ") {
		t.Errorf("what is open is looked for with %q", got)
	}
	in.Made, in.Steps = []role.ToolUse{in.Steps[0].Uses[0]}, again(a)
	for _, c := range callsOf(ask(in)) {
		if slices.Contains(callsOf(a), c) || strings.HasPrefix(c, documentTool) {
			t.Errorf("%s is called again", c)
		}
	}
	in.Fresh = 0
	if b := ask(in); !b.Done {
		t.Errorf("calls that brought nothing are followed by %q", callsOf(b))
	}

	// Both sides of a comparison are searched, and their documents compared, once.
	compare := "What is the difference between cats and dogs?"
	a = ask(role.ActInput{Question: compare})
	if got := callsOf(a); len(got) != 3 || !strings.Contains(got[1], `"cats"`) || !strings.Contains(got[2], `"dogs"`) {
		t.Errorf("a comparison begins with %q", got)
	}
	in = role.ActInput{Question: compare, Steps: again(a), Found: evidenceWith("Cats purr.", "Dogs bark."), Terms: terms(compare, 1), Fresh: 2}
	b := ask(in)
	if want := []string{`compare_documents {"aspect":"What is the difference between cats and dogs?","ids":["/doc1.md","/doc2.md"]}`}; !slices.Equal(callsOf(b), want) {
		t.Errorf("a comparison goes on with %q, want %q", callsOf(b), want)
	}
	in.Steps = append(in.Steps, again(b)...)
	for _, c := range callsOf(ask(in)) {
		if strings.HasPrefix(c, compareTool) {
			t.Error("the documents are compared twice")
		}
	}
	if got := callsOf(ask(role.ActInput{Question: "Who made Alpha, and where is Beta?", Style: role.AllInOne})); len(got) != 3 {
		t.Errorf("all in one begins with %q", got)
	}
	for _, a := range []role.Action{first, b} {
		for _, c := range a.Calls {
			if !json.Valid([]byte(c.Arguments)) {
				t.Errorf("%s is no JSON", c.Arguments)
			}
		}
	}
}

// TestActorsCritique checks the local actor's plan, and its critique of results that answer all,
// some or none of it.
func TestActorsCritique(t *testing.T) {
	const question = "How much is the deposit, and who repairs the roof?"
	plan, err := Actor{}.Plan(t.Context(), nil, question)
	if err != nil || len(plan.SubQuestions) != 2 {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	if chain, err := (Actor{}).Plan(t.Context(), nil, "Where does the director of Jump for Glory live?"); err != nil || strings.Contains(fmt.Sprint(chain), "#1") {
		t.Errorf("a goal is not spelled out: %+v, %v", chain, err)
	}
	var goals []role.Goal
	for _, sub := range plan.SubQuestions {
		goals = append(goals, role.Goal{Text: sub.Text})
	}
	for name, test := range map[string]struct {
		found      []assay.Evidence
		sufficient bool
		covered    []int
	}{
		"all":     {evidenceWith("How much is the deposit? The deposit is 900 euros. The landlord repairs the roof."), true, []int{0, 1}},
		"one":     {evidenceWith("The deposit is 900 euros."), false, []int{0}},
		"none":    {evidenceWith("Bananas are yellow."), false, []int{}},
		"nothing": {nil, false, []int{}},
	} {
		terms := read(question, nil).terms
		for i := range terms {
			terms[i].Chunks = 1
		}
		in := role.ActInput{Question: question, Plan: goals, Found: test.found, Terms: terms, Floor: 0.5, Steps: []role.ActStep{{Uses: []role.ToolUse{
			{Call: llm.ToolCall{Name: searchTool, Arguments: `{"query":"How much is the deposit, and who repairs the roof?"}`}},
		}}}}
		k, err := Actor{}.Critique(t.Context(), nil, in)
		if err != nil || k.Sufficient != test.sufficient || !slices.Equal(k.Covered, test.covered) || k.Sufficient == (len(k.Missing) > 0) || len(k.Revised) > 0 {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
		if name == "one" && !slices.Equal(k.Missing, []string{goals[1].Text}) {
			t.Errorf("%s: missing %q, want the open goal", name, k.Missing)
		}
		// The next turn follows the critique.
		in.Steps[0].Critique = &role.SelfCritique{Missing: []string{"m"}, NextSearches: []string{"roof repairs by Acme"}}
		in.Most, in.Fresh = 4, 1
		a, err := Actor{}.Act(t.Context(), nil, in)
		if err != nil || len(a.Calls) == 0 || a.Calls[0].Arguments != `{"query":"roof repairs by Acme"}` {
			t.Errorf("%s: the next turn is %+v, %v", name, a, err)
		}
	}
}
