package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// toolCaller returns a model that makes the tool calls of one entry in each turn, and then none. Its
// plan is one goal, and its critiques find something missing.
func toolCaller(name string, replies ...[]llm.ToolCall) *scripted {
	return &scripted{name: name, reply: func(_ context.Context, _ int, req llm.Request) (llm.Response, error) {
		if req.Schema != nil && req.Schema.Name == "goals" {
			return spoken(`{"goals":[{"goal":"Who approves it?","needs":[]}]}`, req), nil
		}
		if req.Schema != nil {
			return spoken(`{"missing":["the rest"],"next_searches":["the answer is 42"],"covered":[],"revised":[],"sufficient":false}`, req), nil
		}
		r := spoken("Enough: the answer is 42.", req)
		turn := 0
		for _, m := range req.Messages {
			if m.Speaker == llm.Assistant {
				turn++
			}
		}
		if turn < len(replies) {
			r.Text, r.Calls, r.Finish = "On it.", replies[turn], llm.FinishTools
		}
		return r, nil
	}}
}

func callOn(name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: "call_" + name, Name: name, Arguments: arguments, Opaque: "signed:" + arguments}
}

// TestToolStrategies runs the strategies with tools on the handbook, with local roles and with
// models that call tools.
func TestToolStrategies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"react", "agent"} {
		e := open(t)
		var steps []string
		var a assay.Answer
		for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: name}) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind == StepEnded && (ev.Step.Kind == assay.StepTool || ev.Step.Kind == assay.StepRole) && !strings.HasPrefix(ev.Step.Summary, role.AnswerGraderTask) {
				steps = append(steps, ev.Step.Summary)
			}
			if ev.Kind == RunEnded {
				a = *ev.Answer
			}
		}
		if a.Status != assay.Answered || a.Strategy != name || !strings.Contains(a.Text, "approved by the head of the department") {
			t.Errorf("%s: %s by %s: %q", name, a.Status, a.Strategy, a.Text)
		}
		want := []string{"actor: plans ", `actor: calls "search"`, "search: ", "actor: criticises: sufficient"}
		if name == "agent" {
			want = []string{`actor: calls "search"`, "search: ", "actor: done"}
		}
		if len(steps) != len(want) || slices.ContainsFunc(want, func(w string) bool { return !strings.HasPrefix(steps[slices.Index(want, w)], w) }) {
			t.Errorf("%s: steps %q", name, steps)
		}
		replays(t, e, a.Run)
	}
}

func TestModelCallsTools(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"react", "agent"} {
		by := handbook.models()
		by[role.ActorRole] = toolCaller("fake/actor",
			[]llm.ToolCall{callOn(tool.Search, `{"query":"approval of travel"}`), callOn("send_email", `{"to":"x@example.com"}`)},
			[]llm.ToolCall{callOn(tool.GetDocument, `{"id":"d1"}`), callOn(tool.Extract, `{"chunks":[1],"entity_type":"any"}`)},
		)
		by[role.ExtractorTask] = texts("fake/extractor", func(llm.Request) string { return `{"entities":[],"facts":[]}` })
		e := openModels(t, served(by))
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: name})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != assay.Answered || !strings.Contains(a.Text, "approved by the head of the department") || strings.Contains(a.Text, "42") || len(a.Notes) > 0 {
			t.Errorf("%s: %s: %q, notes %q", name, a.Status, a.Text, a.Notes)
		}
		calls := map[string]int{"react": 10, "agent": 7}[name] // react's plan and two critiques more
		if !slices.Contains(who(a), "actor fake/actor") || a.Usage.Calls != calls {
			t.Errorf("%s: %q did it, with %+v", name, who(a), a.Usage)
		}
		asked := by[role.ActorRole].requests
		last := asked[len(asked)-1].Messages
		if got := last[1].Calls[0].Opaque; got != `signed:{"query":"approval of travel"}` {
			t.Errorf("%s: the provider gets %q back with its call", name, got)
		}
		if r := last[2].Results[1]; !r.Error || !strings.Contains(r.Text, "the tools are search, get_document") {
			t.Errorf("%s: a tool that there is not is answered with %+v", name, r)
		}
		replays(t, e, a.Run)

		// The run can be resumed after an interruption anywhere, even in the middle of the
		// actor's job.
		stored, records, err := e.journal(t.Context(), assay.Local(), a.Run)
		if err != nil {
			t.Fatal(err)
		}
		for i, rec := range records {
			if err := checkInterrupted(records[:i+1], e.config.Models); err != nil {
				t.Errorf("%s: interrupted after %s of %s: %v", name, rec.Path, stored.ID, err)
			}
		}
	}
}

// TestShortRunsReplayWithoutModels checks that the replay of a run that was short of calls does
// not depend on the models configured now.
func TestShortRunsReplayWithoutModels(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"react", "auto"} {
		for calls := 1; calls <= 6; calls++ {
			by := handbook.models()
			by[role.ActorRole] = toolCaller("fake/actor",
				[]llm.ToolCall{callOn(tool.Search, `{"query":"approval of travel"}`)}, []llm.ToolCall{callOn(tool.Search, `{"query":"travel to a customer"}`)})
			e := openModels(t, served(by))
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Strategy: name, Budget: assay.Budget{Calls: calls}})
			if err != nil {
				t.Fatal(err)
			}
			e.config.Models = Models{}
			replays(t, e, a.Run)
		}
	}
}

// TestPagesAreCheckedAgain checks that a principal who may no longer see a document cannot see a
// run whose tools read it, even if no search found it.
func TestPagesAreCheckedAgain(t *testing.T) {
	t.Parallel()
	docs := copyHandbook(t)
	by := handbook.models()
	e := openModels(t, served(by))
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}, Collection: "kept"}); err != nil {
		t.Fatal(err)
	}
	uri := filepath.ToSlash(filepath.Join(docs, "travel.md"))
	by[role.ActorRole] = toolCaller("fake/actor", []llm.ToolCall{
		callOn(tool.Search, `{"query":"unused annual leave carried over"}`), callOn(tool.GetDocument, fmt.Sprintf(`{"id":%q}`, uri)),
	})
	e.config.Models = served(by)
	year := assay.Filter{Op: assay.OpLessThan, Key: "year", Value: assay.NumberValue(2025)}
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "How many days of annual leave are carried over?", Strategy: "react", Collections: []string{"kept"}, Filter: year})
	if err != nil {
		t.Fatal(err)
	}
	_, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	page := slices.IndexFunc(steps, func(s Step) bool { return s.Path == "step[0]/use[1]/get_document/page" })
	if page < 0 || !strings.HasPrefix(steps[page].Summary, "bytes 0 to ") || !strings.Contains(steps[page].Summary, "travel.md") {
		t.Fatalf("no page was read: %+v", steps)
	}
	records := []assay.Record{{Kind: assay.StepRead, Path: "page", Output: steps[page].Output}}
	read, err := documentsOf(assay.Run{}, records)
	if err != nil || len(read) != 1 || !read[assay.DocumentID("kept", uri)] {
		t.Errorf("a page counts as the documents %v, %v", read, err)
	}
	if err := os.WriteFile(filepath.Join(docs, "travel.md.metadata.json"), []byte(`{"acl": ["group:board"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}, Collection: "kept"}); err != nil {
		t.Fatal(err)
	}
	if err := e.checkAccess(t.Context(), assay.Local().Access(), assay.Run{}, records); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a page of what may not be seen any more: %v", err)
	}
	if _, _, err := e.Run(t.Context(), assay.Local(), a.Run); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("the run can be seen: %v", err)
	}
	if err := e.checkAccess(t.Context(), assay.Local().Access(), assay.Run{}, []assay.Record{{Kind: assay.StepRead, Path: "page", Output: []byte(`{"x":1}`)}}); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a page of nobody knows what: %v", err)
	}

	// A new run cannot read the page either. Documents outside the filter are not read at all.
	for _, test := range []struct {
		collections []string
		filter      assay.Filter
	}{
		{[]string{"kept"}, assay.Filter{}}, {nil, assay.Filter{}},
		{[]string{"default"}, assay.Filter{}}, {[]string{"kept"}, assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.NumberValue(2024)}},
	} {
		by[role.ActorRole] = toolCaller("fake/actor", []llm.ToolCall{callOn(tool.GetDocument, fmt.Sprintf(`{"id":%q}`, uri))})
		e.config.Models = served(by)
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "How many days of leave are carried over?", Strategy: "react", Collections: test.collections, Filter: test.filter})
		if err != nil {
			t.Fatal(err)
		}
		_, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if s.Kind == assay.StepRead && s.Error == nil && len(s.Output) > 0 && s.Output[0] == '{' {
				t.Errorf("%v, %s: read %s", test.collections, test.filter, s.Output)
			}
		}
	}
}

// TestToolsOnRealDocuments checks that the local actor finds the same as a single search on real
// documents, and stops if no document has the words.
func TestToolsOnRealDocuments(t *testing.T) {
	t.Parallel()
	docs := filepath.Join(goRoot(t), "doc")
	if _, err := os.Stat(docs); err != nil {
		t.Skip("the documents are Go's own, which are not here: ", err)
	}
	e := openDir(t, t.TempDir())
	ingestPaths(t, e, docs)
	answers := map[string]assay.Status{}
	for _, question := range []string{
		"What happens when I send on a closed channel?", "What is the difference between a slice and an array?", "What does XYZZYGC control?",
	} {
		for _, name := range []string{"react", "agent"} {
			a, err := e.Answer(t.Context(), assay.Local(), Request{Question: question, Strategy: name, Budget: assay.Budget{Wall: 10 * time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := answers[question]; ok && before != a.Status {
				t.Errorf("%q: %s, %s before", question, a.Status, before)
			}
			answers[question] = a.Status
			if len(a.Searched) > 12 {
				t.Errorf("%q: %d searches", question, len(a.Searched))
			}
			replays(t, e, a.Run)
		}
	}
	want := map[string]assay.Status{
		"What happens when I send on a closed channel?": assay.Answered, "What is the difference between a slice and an array?": assay.Answered, "What does XYZZYGC control?": assay.NotFound,
	}
	for question, status := range want {
		if got := answers[question]; got != status {
			t.Errorf("%q: %s, want %s", question, got, status)
		}
	}
}

// TestGraphToolWalks checks on a real index that the tool graph finds a passage that shares a name
// with one that was found and no word with the question, and does not for a filter that excludes it.
func TestGraphToolWalks(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	for name, text := range map[string]string{
		"ship.md":   "---\nyear: 2020\n---\n\n# The Corvina\n\nThe survey ship Corvina was built for Halvard Brinkmann in 1931.",
		"man.md":    "---\nyear: 1990\n---\n\n# Halvard Brinkmann\n\nHalvard Brinkmann was born in Tromsø and studied geology.",
		"other.md":  "# Bread\n\nSourdough rises overnight in a warm place.",
		"others.md": "# Rivers\n\nThe river Orla freezes in January.",
	} {
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	by := handbook.models()
	e := openDir(t, t.TempDir())
	ingestPaths(t, e, docs)
	for _, req := range []Request{{}, {Filter: assay.Filter{Op: assay.OpGreaterThan, Key: "year", Value: assay.NumberValue(2000)}}} {
		by[role.ActorRole] = toolCaller("fake/actor", []llm.ToolCall{callOn(tool.Graph, `{"entities":["Halvard Brinkmann"]}`)})
		e.config.Models = served(by)
		req.Question, req.Strategy = "For whom was the survey ship Corvina built?", "agent"
		if _, err := e.Answer(t.Context(), assay.Local(), req); err != nil {
			t.Fatal(err)
		}
		asked := by[role.ActorRole].requests
		last := asked[len(asked)-1].Messages
		brought := last[len(last)-1].Results[0].Text
		if walked := req.Filter.IsZero(); strings.Contains(brought, "born in Tromsø") != walked || strings.Contains(brought, "Sourdough") {
			t.Errorf("with the filter %q the walk brought %s", req.Filter, brought)
		}
	}
}
