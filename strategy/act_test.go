package strategy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/stats"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A scriptedActor plans, acts and criticises by script, and records what it is shown. After its
// last turn it is done, and after its last critique it finds everything missing.
type scriptedActor struct {
	plan      role.Plan
	turns     [][]llm.ToolCall
	critiques []role.SelfCritique
	fails     error // of every critique

	unreadable bool // the replies after the last turn

	acted, judged []role.ActInput
	planned       int
}

func (a *scriptedActor) Plan(context.Context, role.Caller, string) (role.Plan, error) {
	a.planned++
	return a.plan, nil
}

func (a *scriptedActor) Act(_ context.Context, _ role.Caller, in role.ActInput) (role.Action, error) {
	a.acted = append(a.acted, in)
	if n := len(a.acted); n <= len(a.turns) {
		return role.Action{Thought: "Go on.", Calls: a.turns[n-1]}, nil
	}
	if a.unreadable {
		return role.Action{Done: true, Unreadable: true, Outcome: role.Outcome{Failure: "no reply could be used"}}, nil
	}
	return role.Action{Done: true}, nil
}

func (a *scriptedActor) Critique(_ context.Context, _ role.Caller, in role.ActInput) (role.SelfCritique, error) {
	a.judged = append(a.judged, in)
	if n := len(a.judged); n <= len(a.critiques) {
		return a.critiques[n-1], a.fails
	}
	return role.SelfCritique{Missing: []string{"all of it"}}, a.fails
}

// searches returns one turn for each query.
func searches(queries ...string) [][]llm.ToolCall {
	var turns [][]llm.ToolCall
	for _, q := range queries {
		turns = append(turns, []llm.ToolCall{call("search", fmt.Sprintf(`{"query":%q}`, q))})
	}
	return turns
}

// appleTurns returns n searches, each of which finds something new among withApples.
func appleTurns(n int) [][]llm.ToolCall {
	var queries []string
	for i := range n {
		queries = append(queries, fmt.Sprintf("apple%d", i+1))
	}
	return searches(queries...)
}

func goals(texts ...string) role.Plan {
	p := role.Plan{Shape: role.Conjunction}
	for _, text := range texts {
		p.SubQuestions = append(p.SubQuestions, role.SubQuestion{Text: text})
	}
	return p
}

// TestActorsBranches walks the branches of the loop with scripted actors, in react and in agent. The
// latter has neither a plan nor critiques of its own.
func TestActorsBranches(t *testing.T) {
	missing := role.SelfCritique{Missing: []string{"the length"}, NextSearches: []string{"length of the Beta"}}
	bad := call("shell", `{"command":"id"}`)
	unplanned := &scriptedActor{plan: role.Plan{}}
	for _, test := range []struct {
		name                   string
		actor                  scriptedActor
		stop, agentStop        assay.Stop
		status                 assay.Status
		turns, judged, agented int // replies and critiques in react, replies in agent
		done                   string
	}{
		{"the critique says that it suffices", scriptedActor{plan: goals("a?", "b?"), turns: appleTurns(4), critiques: []role.SelfCritique{missing, {Sufficient: true}}},
			assay.StopSufficient, assay.StopSufficient, assay.Answered, 2, 2, 5, "open open"},
		{"all goals are covered", scriptedActor{plan: goals("a?", "b?"), turns: appleTurns(4), critiques: []role.SelfCritique{{Covered: []int{1}}, {Covered: []int{0, 0, 7, -1}}}},
			assay.StopSufficient, assay.StopSufficient, assay.Answered, 2, 2, 5, "done done"},
		{"a critique that fails covers nothing", scriptedActor{plan: goals("a?"), turns: appleTurns(1), fails: errors.New("broken"), critiques: []role.SelfCritique{{Sufficient: true, Covered: []int{0}}}},
			assay.StopSufficient, assay.StopSufficient, assay.Answered, 2, 1, 2, "open"},
		{"a critique with a failure covers nothing", scriptedActor{plan: goals("a?"), turns: appleTurns(1), critiques: []role.SelfCritique{{Sufficient: true, Covered: []int{0}, Outcome: role.Outcome{Failure: "no reply"}}}},
			assay.StopSufficient, assay.StopSufficient, assay.Answered, 2, 1, 2, "open"},
		{"no step is left", scriptedActor{plan: goals("a?"), turns: appleTurns(9)}, assay.StopIterationLimit, assay.StopIterationLimit, assay.Answered, 8, 8, 8, "open"},
		{"diminishing returns", scriptedActor{plan: goals("a?"), turns: searches("river 1", "river 2", "river 3", "river 4")},
			assay.StopNoProgress, assay.StopNoProgress, assay.Answered, 3, 3, 3, "open"},
		{"a circle", scriptedActor{plan: goals("a?"), turns: searches("river", "RIVER")}, assay.StopCircular, assay.StopCircular, assay.Answered, 2, 1, 2, "open"},
		{"the actor stops", scriptedActor{plan: goals("a?")}, assay.StopSufficient, assay.StopSufficient, assay.Answered, 1, 0, 1, ""},
		{"three malformed calls", scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{appleTurns(1)[0], {bad}, {bad}, {bad}, appleTurns(2)[1]}},
			assay.StopMalformed, assay.StopMalformed, assay.Incomplete, 4, 1, 4, "open"},
		{"replies that stay unreadable", scriptedActor{plan: goals("a?"), turns: appleTurns(1), unreadable: true}, assay.StopMalformed, assay.StopMalformed, assay.Incomplete, 2, 1, 2, "open"},
		{"malformed calls at the end of a reply count on", scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{{appleTurns(1)[0][0], bad, bad}, {bad}}},
			assay.StopMalformed, assay.StopMalformed, assay.Incomplete, 2, 1, 2, "open"},
		{"a valid call in between", scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{{bad, bad, appleTurns(1)[0][0]}, {bad, bad}}},
			assay.StopSufficient, assay.StopSufficient, assay.Answered, 3, 1, 3, "open"},
		{"a plan of nothing is the question", *unplanned, assay.StopSufficient, assay.StopSufficient, assay.Answered, 1, 0, 1, ""},
		{"a turn that did not retrieve is not criticised", scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{appleTurns(1)[0], {call("summarise_results", `{"chunks":[1]}`)}}},
			assay.StopSufficient, assay.StopSufficient, assay.Answered, 3, 1, 3, "open"},
		{"reading is retrieving", scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{appleTurns(1)[0], {call("get_document", `{"id":"d1"}`)}}},
			assay.StopSufficient, assay.StopSufficient, assay.Answered, 3, 2, 3, "open"},
	} {
		actor := test.actor
		a, records := acted(t, env(withApples(rivers, second), lengthOf, localRoles()), &actor, assay.Budget{})
		if a.Stop != test.stop || a.Status != test.status || len(actor.acted) != test.turns || len(actor.judged) != test.judged || actor.planned != 1 {
			t.Errorf("%s: %s (%s) after %d plans, %d turns and %d critiques: %s", test.name, a.Status, a.Stop, actor.planned, len(actor.acted), len(actor.judged), a.Justification)
		}
		if test.status == assay.Incomplete && (len(a.Claims) == 0 || a.Reason != assay.ReasonMalformed) {
			t.Errorf("%s: the best verified part is not shown: %s (%s)", test.name, a.Text, a.Reason)
		}
		if got := lastPlan(t, records); got != test.done {
			t.Errorf("%s: the goals are %q in the end, want %q", test.name, got, test.done)
		}
		again := test.actor
		e := env(withApples(rivers, second), lengthOf, localRoles())
		e.Roles.Actor = actsBy{by: &again}
		b := ask(t, strategy.Agent, e, assay.Budget{})
		if b.Stop != test.agentStop || b.Status != test.status || len(again.acted) != test.agented || len(again.judged)+again.planned != 0 {
			t.Errorf("agent, %s: %s (%s) after %d plans, %d turns and %d critiques", test.name, b.Status, b.Stop, again.planned, len(again.acted), len(again.judged))
		}
		for _, in := range again.acted {
			if in.Plan != nil || in.Critique() != nil {
				t.Errorf("agent, %s: a plan is shown: %+v", test.name, in)
			}
		}
	}
}

// lastPlan returns the states of the goals after the last critique, by the journal.
func lastPlan(t *testing.T, records []assay.Record) string {
	t.Helper()
	last := ""
	var done []bool
	for _, rec := range records {
		switch {
		case rec.Path == "plan[0]/actor":
			var p role.Plan
			if err := json.Unmarshal(rec.Output, &p); err != nil {
				t.Fatal(err)
			}
			done = make([]bool, len(p.SubQuestions))
		case strings.HasSuffix(rec.Path, "/critique[0]/actor"):
			var k role.SelfCritique
			if err := json.Unmarshal(rec.Output, &k); err != nil {
				t.Fatal(err)
			}
			for _, n := range k.Covered {
				if n >= 0 && n < len(done) && k.Failure == "" {
					done[n] = true
				}
			}
			var states []string
			for _, d := range done {
				states = append(states, map[bool]string{true: "done", false: "open"}[d])
			}
			last = strings.Join(states, " ")
		}
	}
	return last
}

// TestActorsPlanDrives checks that each turn shows the plan as it was revised and the last critique,
// also after the steps were compressed.
func TestActorsPlanDrives(t *testing.T) {
	a := &scriptedActor{
		plan:  role.Plan{Shape: role.Chain, SubQuestions: []role.SubQuestion{{Text: "a?"}, {Text: "b?", Needs: []int{0}}, {Text: " A?"}}},
		turns: appleTurns(5),
		critiques: []role.SelfCritique{
			{Covered: []int{0}, Missing: []string{"b"}, NextSearches: []string{"b now"}},
			{Missing: []string{"c"}, Revised: []string{"c?", "a?", " C? ", strings.Repeat("x", 9<<10)}},
			{Revised: []string{"a?"}},
			{Covered: []int{1}, Missing: []string{"nothing"}},
		},
	}
	answer, _ := acted(t, env(withApples(rivers, second), lengthOf, localRoles()), a, assay.Budget{})
	var shown []string
	for _, in := range a.acted {
		var states []string
		for _, g := range in.Current() {
			states = append(states, fmt.Sprintf("%s %v %t", g.Text, g.Needs, g.Done))
		}
		critique := ""
		if k := in.Critique(); k != nil {
			critique = " | " + strings.Join(append(slices.Clone(k.Missing), k.NextSearches...), ", ")
		}
		shown = append(shown, strings.Join(states, "; ")+critique)
	}
	want := []string{
		"a? [] false; b? [0] false",
		"a? [] true; b? [0] false | b, b now",
		"a? [] true; c? [] false | c",
		"a? [] true; c? [] false | ",
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the actor is shown (-want +got):\n%s", diff)
	}
	if answer.Stop != assay.StopSufficient || len(a.judged) != 4 {
		t.Errorf("%s after %d critiques, want the covered goals to end it", answer.Stop, len(a.judged))
	}
	if last := a.acted[3]; len(last.Steps) != 1 || len(last.Made) != 2 || cmp.Diff([]role.Goal{{Text: "a?", Done: true}, {Text: "c?"}}, last.Plan) != "" {
		t.Errorf("after three steps the input is %+v", last)
	}
}

// TestRefusedCallsAreToolErrors checks that refused calls are steps of the run, so that the signals
// count them, and that the journal has them in bounded length.
func TestRefusedCallsAreToolErrors(t *testing.T) {
	a := &scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{
		{call("search", `{"query":"river Beta"}`), call("shell\x1b[2J\u202e", strings.Repeat("9", 1<<20)), call("summarise_results", `{"chunks":[999]}`)},
		{call("search", `{"query":"river Alpha"}`), call("search", `{"query":"RIVER beta"}`)},
	}}
	_, records := acted(t, env(newLibrary(rivers, second), lengthOf, localRoles()), a, assay.Budget{})
	o := stats.Observe(assay.Run{ID: "r", State: assay.RunActive, Request: json.RawMessage(`{}`)}, records, nil)
	if o.ToolCalls != 5 || o.ToolErrors != 3 {
		t.Errorf("%d calls of tools, %d errors; want an unknown tool, a chunk that does not exist and a repeated call", o.ToolCalls, o.ToolErrors)
	}
	var refused []string
	for _, rec := range records {
		if !strings.HasSuffix(rec.Path, "/refused") {
			continue
		}
		var in tool.Refused
		var out tool.Output
		if err := errors.Join(json.Unmarshal(rec.Input, &in), json.Unmarshal(rec.Output, &out)); err != nil {
			t.Fatal(err)
		}
		refused = append(refused, fmt.Sprintf("%s %s: %t", rec.Path, in.Tool, out.Invalid))
		if len(rec.Input) > 1000 || out.Refused == "" || rec.Kind != assay.StepTool {
			t.Errorf("%s: %s, %d bytes, refused for %q", rec.Path, rec.Kind, len(rec.Input), out.Refused)
		}
	}
	want := []string{"step[0]/refused[1]/refused shell[2J: true", "step[0]/refused[2]/refused summarise_results: true", "step[1]/refused[1]/refused search: false"}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// A spendingActor calls a model for its plan, each turn and each critique.
type spendingActor struct {
	model llm.Model
	turns int
	calls []string
}

func (a *spendingActor) spend(ctx context.Context, c role.Caller, what string) error {
	a.calls = append(a.calls, what)
	_, err := c.Call(ctx, role.Call{Role: role.ActorRole, Prompt: "actor@test", Model: a.model, Request: llm.Request{
		Messages: []llm.Message{{Speaker: llm.User, Text: "next"}}, MaxTokens: 10,
	}})
	return err
}

func (a *spendingActor) Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error) {
	return goals(question), a.spend(ctx, c, "plan")
}

func (a *spendingActor) Act(ctx context.Context, c role.Caller, _ role.ActInput) (role.Action, error) {
	a.turns++
	return role.Action{Calls: []llm.ToolCall{call("search", fmt.Sprintf(`{"query":"river Beta apple%d"}`, a.turns))}}, a.spend(ctx, c, "act")
}

func (a *spendingActor) Critique(ctx context.Context, c role.Caller, _ role.ActInput) (role.SelfCritique, error) {
	return role.SelfCritique{}, a.spend(ctx, c, "critique")
}

// TestCritiquesCountInTheBudget checks that plans and critiques never use the three calls that the
// answer needs, and that the first search is made before a plan.
func TestCritiquesCountInTheBudget(t *testing.T) {
	for budget, want := range map[int]string{
		4: "act", 5: "plan act", 6: "plan act critique", 7: "plan act critique act", 8: "plan act critique act critique",
	} {
		e := env(withApples(rivers, second), lengthOf, localRoles())
		e.Began = map[string]string{role.ActorRole: "scripted/model", role.GraderRole: "x", role.GeneratorRole: "y", role.VerifierRole: "z"}
		m := &spendingActor{model: &llmtest.Scripted{}}
		a, _ := acted(t, e, m, assay.Budget{Calls: budget})
		if got := strings.Join(m.calls, " "); got != want || a.Stop != assay.StopCallBudget || a.Usage.Calls > budget-3 {
			t.Errorf("%d calls: %q (%s), %d spent; want %q, and three kept", budget, got, a.Stop, a.Usage.Calls, want)
		}
	}
}

// TestGraphTool checks that the tool graph searches with the names beside the question, starts at the
// results that have them, returns only what a walk reached, and keeps to the caller's access and
// filter.
func TestGraphTool(t *testing.T) {
	w := &linked{walled: &walled{library: newLibrary(rivers, second, "The Alpha belongs to Omega.", "Unrelated to the river.")}}
	e := env(w.library, lengthOf, localRoles())
	e.Retriever, e.Content = w, w
	e.Filter = assay.Filter{Op: assay.OpGreaterThan, Key: "year", Value: assay.NumberValue(2000)}
	a := &scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{
		{call("search", `{"query":"river"}`)}, {call("graph", `{"entities":["Omega","Beta"]}`)}, {call("graph", `{"entities":["beta","OMEGA"]}`)},
	}}
	answer, records := acted(t, e, a, assay.Budget{})
	if want := []string{"step[0]/use[0]/search", "step[1]/use[0]/graph"}; !slices.Equal(toolSteps(records), want) || answer.Stop != assay.StopCircular {
		t.Errorf("%q, then %s", toolSteps(records), answer.Stop)
	}
	i := slices.IndexFunc(w.queries, func(q assay.Query) bool { return q.Walk == assay.WalkFar })
	if i < 0 {
		t.Fatalf("no walk among %+v", w.queries)
	}
	q := w.queries[i]
	if q.Text != lengthOf || !slices.Equal(q.Rewrites, []string{lengthOf + " Beta, Omega"}) || len(q.From) != 3 || q.Filter.String() != "year > 2000" || w.access[i].Key() != e.Access.Key() {
		t.Errorf("walked %+v", q)
	}
	use := a.acted[2].Steps[1].Uses[0]
	if use.Failed || strings.Count(use.Brought, `"chunk":`) != 1 || !strings.Contains(use.Brought, "belongs to Omega") {
		t.Errorf("the walk brought %s", use.Brought)
	}
}

// A linked library has a graph that reaches its third document.
type linked struct{ *walled }

func (w *linked) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	found, err := w.walled.Retrieve(ctx, access, q)
	for i, h := range found.Hits {
		if q.Walk == assay.WalkFar && strings.Contains(h.Text, "belongs to Omega") {
			found.Hits[i].Scores.Graph = new(0.4)
		}
	}
	return found, err
}

// TestPagesAgree checks that the local actor counts pages as the tool does.
func TestPagesAgree(t *testing.T) {
	for _, at := range []int{0, local.PageBytes - 1, local.PageBytes, 10*local.PageBytes + 1} {
		if got := tool.PageOn(at); got != at/local.PageBytes+1 {
			t.Errorf("byte %d is on page %d", at, got)
		}
	}
}

// TestActorsErrorState checks what an error state shows where nothing was found to answer from.
func TestActorsErrorState(t *testing.T) {
	bad := []llm.ToolCall{call("a", ""), call("b", ""), call("c", "")}
	a, _ := acted(t, env(newLibrary("Bananas are yellow."), lengthOf, localRoles()), &scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{bad}}, assay.Budget{})
	if a.Status != assay.Incomplete || a.Reason != assay.ReasonMalformed || a.Stop != assay.StopMalformed || len(a.Claims) > 0 || !strings.Contains(a.Text, "ended early in an error") {
		t.Errorf("%s (%s, %s): %s", a.Status, a.Reason, a.Stop, a.Text)
	}
	var journal run.Memory
	r, err := run.New(run.Config{Run: "r", Journal: &journal})
	if err != nil {
		t.Fatal(err)
	}
	e := env(newLibrary(rivers, second), lengthOf, localRoles())
	e.Settings.React.Invalid = 1
	e.Roles.Actor = actsBy{by: &scriptedActor{plan: goals("a?"), turns: [][]llm.ToolCall{bad[:1]}}}
	if got, err := strategy.React(t.Context(), r.Scope(), e); err != nil || got.Stop != assay.StopMalformed {
		t.Errorf("with a limit of one: %s, %v", got.Stop, err)
	}
}
