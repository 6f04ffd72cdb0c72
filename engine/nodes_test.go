package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// A fixedReflector is a judge whose reflector completes after a number of rounds.
type fixedReflector struct {
	role.Judge
	after int
}

func (f fixedReflector) Reflect(_ context.Context, _ role.Caller, in role.ReflectInput) (role.Reflection, error) {
	if in.Rounds >= f.after {
		return role.Reflection{Status: role.CompletedStatus, Coverage: 1, Threshold: in.Threshold, Justification: "all"}, nil
	}
	return role.Reflection{Status: role.IncompleteStatus, Coverage: 0.4, Threshold: in.Threshold, Justification: "some"}, nil
}

// A countingRewriter proposes a new query each time, a number of times.
type countingRewriter struct {
	role.Rewriter
	most int
}

func (c countingRewriter) Next(_ context.Context, _ role.Caller, in role.QueryInput) (role.NextQuery, error) {
	if len(in.History) > c.most {
		return role.NextQuery{Reason: "there is no other"}, nil
	}
	return role.NextQuery{Query: []string{"parental leave weeks", "password length", "expenses receipts"}[len(in.History)%3]}, nil
}

// reflecting configures a reflector that completes after a number of rounds.
func reflecting(after int) func(strategy.Roles) strategy.Roles { return querying(after, 9) }

// querying is reflecting with a number of further queries.
func querying(after, queries int) func(strategy.Roles) strategy.Roles {
	return func(r strategy.Roles) strategy.Roles {
		r.Judge, r.Rewriter = fixedReflector{r.Judge, after}, countingRewriter{r.Rewriter, queries}
		return r
	}
}

func openNodes(t *testing.T, roles func(strategy.Roles) strategy.Roles) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{Dir: t.TempDir(), Roles: roles, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	ingestPaths(t, e, "testdata/handbook")
	return e
}

// byNodes drives a run node by node, as the state machine does. It makes each call twice, and the calls
// before again.
func byNodes(t *testing.T, e *Engine, id string, req Request) (nodes []strategy.Node, answer assay.Answer) {
	t.Helper()
	type made struct {
		call   NodeCall
		result NodeResult
	}
	var before []made
	c := NodeCall{Run: id, Node: strategy.PlannerNode, Request: &req}
	for {
		nodes = append(nodes, c.Node)
		got, err := e.Node(t.Context(), assay.Local(), c)
		if err != nil {
			t.Fatalf("%s of round %d: %v", c.Node, c.Round, err)
		}
		before = append(before, made{c, got})
		for _, b := range before {
			again, err := e.Node(t.Context(), assay.Local(), b.call)
			if diff := cmp.Diff(b.result, again); diff != "" || err != nil {
				t.Fatalf("%s of round %d, repeated after the %s of round %d (-first +again):\n%s%v", b.call.Node, b.call.Round, c.Node, c.Round, diff, err)
			}
		}
		if c.Node == strategy.FinaliserNode {
			return nodes, *got.Answer
		}
		c = NodeCall{Run: id, Node: nextNode(c.Node, got), Round: got.Routes, Steps: got.Steps}
	}
}

// nextNode is the state machine.
func nextNode(node strategy.Node, r NodeResult) strategy.Node {
	if i := slices.Index(places, node); i < len(places)-1 {
		return places[i+1]
	}
	if r.Ended || r.Verdict == role.CompletedStatus || r.Routes >= strategy.MaxRoutes {
		return strategy.FinaliserNode
	}
	return strategy.PlannerNode
}

// TestNodes checks that a run that is driven node by node has the steps and the answer of one that is
// driven as a whole, that its journal replays, and that calls may be repeated.
func TestNodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		roles    func(strategy.Roles) strategy.Roles
		question string
		nodes    int
		change   func(*Request)
	}{
		{"local roles", nil, someQuestion, 5, nil},
		{"completed at once", reflecting(1), someQuestion, 5, nil},
		{"completed in the second round", reflecting(2), someQuestion, 9, nil},
		{"never completed", reflecting(9), someQuestion, 13, nil},
		{"no query for the second round", querying(9, 0), someQuestion, 9, nil},
		{"no query for the third round", querying(9, 1), someQuestion, 13, nil},
		{"two parts", reflecting(2), someQuestion + " And how long is parental leave?", 9, nil},
		{"no evidence", reflecting(1), "Zyxw vutsr qponm?", 0, nil},
		{"no budget", nil, someQuestion, 5, func(r *Request) { r.Budget.Wall = 1 }},
		{"a follow-up", reflecting(1), "And who approves it?", 0, func(r *Request) {
			r.History = []assay.Turn{{Question: "What is said about travel to a customer?", Answer: "It needs approval."}}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := openNodes(t, tt.roles)
			req := Request{Question: tt.question, NoCache: true}
			if tt.change != nil {
				tt.change(&req)
			}
			nodes, got := byNodes(t, e, "bynodes", req)
			if tt.nodes > 0 && len(nodes) != tt.nodes {
				t.Errorf("the nodes are %q, want %d", nodes, tt.nodes)
			}
			if _, err := e.Replay(t.Context(), assay.Local(), "bynodes"); err != nil {
				t.Errorf("Replay: %v", err)
			}
			req.Strategy = "reflect"
			want, err := e.Answer(t.Context(), assay.Local(), req)
			if err != nil {
				t.Fatal(err)
			}
			if tt.change == nil { // otherwise the time may differ
				sameSteps(t, e, want.Run, "bynodes")
			}
			if err := compare(want, got); err != nil {
				t.Error(err)
			}
		})
	}
}

// sameSteps checks that two runs have the same steps with the same inputs. Those of parallel branches may
// have another order.
func sameSteps(t *testing.T, e *Engine, a, b string) {
	t.Helper()
	steps := func(id string) map[string]string {
		records, err := e.runs.Records(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]string{}
		for _, r := range records {
			of[r.Path] = string(r.Input)
		}
		return of
	}
	if diff := cmp.Diff(steps(a), steps(b)); diff != "" {
		t.Errorf("steps of the whole run and of the nodes (-want +got):\n%s", diff)
	}
}

// TestNodeCached checks that a run with an earlier answer has ended for all its nodes.
func TestNodeCached(t *testing.T) {
	t.Parallel()
	e := openNodes(t, nil)
	req := Request{Question: someQuestion, Strategy: "reflect"}
	first, err := e.Answer(t.Context(), assay.Local(), req)
	if err != nil {
		t.Fatal(err)
	}
	nodes, got := byNodes(t, e, "cached", req)
	if len(nodes) != 5 || got.Cached == nil || got.Cached.Run != first.Run {
		t.Errorf("%s after %q, want the answer of run %s", got.Text, nodes, first.Run)
	}
}

// TestNodeInterrupted checks that a node that was interrupted is continued where it was, by another
// engine too.
func TestNodeInterrupted(t *testing.T) {
	t.Parallel()
	e := openNodes(t, reflecting(2))
	ctx, cancel := context.WithCancel(t.Context())
	searches := watch(t, e, func(ctx context.Context, q assay.Query) error {
		cancel()
		return ctx.Err()
	})
	req := Request{Question: someQuestion + " And how long is parental leave?", NoCache: true}
	c := NodeCall{Run: "interrupted", Node: strategy.PlannerNode, Request: &req}
	r, err := e.Node(ctx, assay.Local(), c)
	if err == nil { // otherwise the first search is the planner's
		c.Node, c.Steps = strategy.RetrieverNode, r.Steps
		_, err = e.Node(ctx, assay.Local(), c)
	}
	if !errors.Is(err, context.Canceled) || searches.searches.Load() == 0 {
		t.Fatalf("Node in a context that is cancelled: %v after %d searches", err, searches.searches.Load())
	}
	before, err := e.runs.Records(t.Context(), "interrupted")
	if err != nil {
		t.Fatal(err)
	}
	if nodes, answer := byNodes(t, e, "interrupted", req); len(nodes) != 9 || len(answer.Claims) == 0 {
		t.Errorf("nodes %q, answer %q", nodes, answer.Text)
	}
	after, err := e.runs.Records(t.Context(), "interrupted")
	if err != nil || !slices.EqualFunc(before, after[:len(before)], func(a, b assay.Record) bool { return a.Leaf == b.Leaf }) {
		t.Errorf("the steps before the interruption were taken again: %v", err)
	}
}

// TestNodeOvertaken drives a node that another process has already finished, with later nodes or with the
// whole run. The call must return the recorded result and append nothing to the run.
func TestNodeOvertaken(t *testing.T) {
	t.Parallel()
	e := openNodes(t, reflecting(2))
	req := Request{Question: someQuestion, NoCache: true}
	c := NodeCall{Run: "overtaken", Node: strategy.PlannerNode, Request: &req}
	planned, err := e.Node(t.Context(), assay.Local(), c)
	if err != nil {
		t.Fatal(err)
	}
	retriever := NodeCall{Run: c.Run, Node: strategy.RetrieverNode, Steps: planned.Steps}
	want, err := e.Node(t.Context(), assay.Local(), retriever)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Node(t.Context(), assay.Local(), NodeCall{Run: c.Run, Node: strategy.AnalystNode, Steps: want.Steps}); err != nil {
		t.Fatal(err)
	}
	p, err := e.prepareNode(t.Context(), assay.Local(), c.Run)
	if err != nil {
		t.Fatal(err)
	}
	until := &nodeEnd{call: retriever}
	p.req.until = until
	answer, err := p.drive(t.Context(), nil)
	got, err := until.outcome(answer, err)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("the retriever after the analyst (-want +got):\n%s%v", diff, err)
	}
	if nodes, answer := byNodes(t, e, c.Run, req); len(nodes) != 9 || answer.Status != assay.Answered {
		t.Errorf("%s after %q", answer.Status, nodes)
	}
}

// TestNodeRefused checks that calls that do not fit the run are refused, take no step and leave the run
// as it is.
func TestNodeRefused(t *testing.T) {
	t.Parallel()
	e := openNodes(t, reflecting(9))
	req := Request{Question: someQuestion, NoCache: true}
	node := func(c NodeCall) (NodeResult, error) {
		c.Run = "refused"
		return e.Node(t.Context(), assay.Local(), c)
	}
	planned, err := node(NodeCall{Node: strategy.PlannerNode, Request: &req})
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := e.Answer(t.Context(), assay.Local(), req); err != nil {
		t.Fatal(err)
	} else if _, err := e.Node(t.Context(), assay.Local(), NodeCall{Run: whole.Run, Node: strategy.RetrieverNode}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a node of a whole run: %v", err)
	}
	other, many := Request{Question: "Another?"}, req
	many.Settings.Reflect.Rounds = 5
	tests := []struct {
		name string
		call NodeCall
		want error
	}{
		{"another request", NodeCall{Node: strategy.PlannerNode, Request: &other}, assay.ErrReused},
		{"no request", NodeCall{Node: strategy.PlannerNode}, assay.ErrInvalid},
		{"more rounds", NodeCall{Node: strategy.PlannerNode, Request: &many}, assay.ErrInvalid},
		{"steps that there are not", NodeCall{Node: strategy.RetrieverNode, Steps: planned.Steps + 1}, assay.ErrInvalid},
		{"fewer steps", NodeCall{Node: strategy.RetrieverNode, Steps: planned.Steps - 1}, assay.ErrInvalid},
	}
	for _, tt := range tests {
		if _, err := node(tt.call); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	stranger := assay.Principal{User: "eve"}
	if _, err := e.Node(t.Context(), stranger, NodeCall{Run: "refused", Node: strategy.RetrieverNode, Steps: planned.Steps}); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a call of another user: %v", err)
	}
	c := NodeCall{Node: strategy.RetrieverNode, Steps: planned.Steps}
	for _, next := range places[1:] {
		c.Node = next
		r, err := node(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Round, c.Steps = r.Routes, r.Steps
	}
	c.Node = strategy.FinaliserNode
	if _, err := node(c); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("the finaliser after one round of three: %v", err)
	}
	r, records, err := e.journal(t.Context(), assay.Local(), "refused")
	if err != nil || len(records) != c.Steps || r.State != assay.RunActive {
		t.Errorf("the run is %s with %d steps, want %d: %v", r.State, len(records), c.Steps, err)
	}
}
