package stepfn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

var update = flag.Bool("update", false, "write the files of deploy/stepfunctions")

var folder = filepath.Join("..", "deploy", "stepfunctions")

// TestFiles checks that the files of deploy/stepfunctions are those of this package.
func TestFiles(t *testing.T) {
	files := map[string][]byte{}
	for target, name := range map[Target]string{Lambda: "reflect.asl.json", SQS: "reflect-sqs.asl.json"} {
		data, err := Definition(target)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	for name, schema := range schemas(t) {
		data, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		files[name+".schema.json"] = append(data, '\n')
	}
	for name, want := range files {
		path := filepath.Join(folder, name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(string(want), string(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")))); diff != "" {
			t.Errorf("%s is not that of the package; run go test ./stepfn -update (-want +got):\n%s", path, diff)
		}
	}
}

func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	s, err := Schemas()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check checks a message against a schema.
func check(t *testing.T, name string, message []byte) {
	t.Helper()
	if err := validate(t, name, message); err != nil {
		t.Errorf("%s does not fit its schema: %v\n%s", name, err, message)
	}
}

func validate(t *testing.T, name string, message []byte) error {
	t.Helper()
	resolved, err := schemas(t)[name].Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(message, &v); err != nil {
		return err
	}
	return resolved.Validate(v)
}

// A fixedEngine returns a fixed result.
type fixedEngine struct {
	result engine.NodeResult
	err    error
	call   engine.NodeCall
	who    assay.Principal
}

func (f *fixedEngine) Node(_ context.Context, who assay.Principal, c engine.NodeCall) (engine.NodeResult, error) {
	f.who, f.call = who, c
	return f.result, f.err
}

// TestRouter checks that the Choice state decides as strategy.Route for all verdicts and counts, and goes
// on to the finaliser without a verdict.
func TestRouter(t *testing.T) {
	for _, target := range []Target{Lambda, SQS} {
		choose := routerOf(t, target)
		for _, verdict := range []Verdict{Completed, Incomplete} {
			for count := range strategy.MaxRoutes + 2 {
				want := stateName(strategy.Route(role.ReflectionStatus(verdict), count, strategy.MaxRoutes))
				if got := choose(verdict, count); got != want {
					t.Errorf("%s: %s with %d routes goes on to the %s, want the %s", target, verdict, count, got, want)
				}
			}
		}
		if got := choose("", 0); got != "Finaliser" {
			t.Errorf("%s: no verdict goes on to the %s", target, got)
		}
	}
}

// A rule is a rule of the Choice state.
type rule struct {
	Variable                                  string
	StringEquals                              string
	NumericGreaterThanEquals, NumericLessThan *int
	And, Or                                   []rule
	Next                                      string
}

func (r rule) holds(v Verdict, count int) bool {
	holds := func(r rule) bool { return r.holds(v, count) }
	switch {
	case r.And != nil:
		return !slices.ContainsFunc(r.And, func(r rule) bool { return !holds(r) })
	case r.Or != nil:
		return slices.ContainsFunc(r.Or, holds)
	case r.Variable == "$.verdict":
		return r.StringEquals == string(v)
	case r.NumericLessThan != nil:
		return count < *r.NumericLessThan
	}
	return count >= *r.NumericGreaterThanEquals
}

// routerOf returns the decision of a machine's Choice state.
func routerOf(t *testing.T, target Target) func(Verdict, int) string {
	t.Helper()
	data, err := Definition(target)
	if err != nil {
		t.Fatal(err)
	}
	var machine struct {
		States struct {
			Router struct {
				Choices []rule
				Default string
			}
		}
	}
	if err := json.Unmarshal(data, &machine); err != nil {
		t.Fatal(err)
	}
	router := machine.States.Router
	if len(router.Choices) != 2 {
		t.Fatalf("the router has %d rules, want 2", len(router.Choices))
	}
	return func(v Verdict, count int) string {
		for _, r := range router.Choices {
			if r.holds(v, count) {
				return r.Next
			}
		}
		return router.Default
	}
}

// TestStateFits checks that a state with the largest evidence is within the state machine's limit, has no
// text of the evidence, and that an answer that is too long is left to the store.
func TestStateFits(t *testing.T) {
	long := strings.Repeat("<&", 64) // each byte takes six in JSON
	var evidence []assay.Evidence
	for i := range 5000 {
		evidence = append(evidence, assay.Evidence{Number: i + 1, Hit: assay.Hit{
			Text: "the text of a passage", Chunk: assay.Chunk{Document: long, Version: long, Start: 1 << 40, End: 1 << 41},
		}})
	}
	e := &fixedEngine{result: engine.NodeResult{Steps: 1 << 20, Progress: strategy.Progress{
		Node: strategy.AnalystNode, Routes: 2, Verdict: role.IncompleteStatus, Coverage: new(0.3), Queries: 1 << 20, Evidence: evidence,
	}}}
	f := Functions{Engine: e, Principal: assay.Local()}
	message := []byte(`{"node":"analyst","state":{"run":"a","node":"retriever","route_count":2,"verdict":"INCOMPLETE","stop":"","steps":9,"queries":2,"passages":0,"evidence":[]}}`)
	check(t, "call", message)
	got, err := f.Handle(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", got)
	var s State
	if err := json.Unmarshal(got, &s); err != nil {
		t.Fatal(err)
	}
	if len(got) > MaxBytes || s.Passages != 5000 || len(s.Evidence) == 0 || strings.Contains(string(got), "the text of") {
		t.Errorf("%d bytes, %d references to %d passages", len(got), len(s.Evidence), s.Passages)
	}
	if next := fmt.Sprintf(`{"node":"reflector","state":%s}`, got); len(next)+4096 > 256<<10 {
		t.Errorf("the next call has %d bytes", len(next))
	}

	for _, n := range []int{100, MaxBytes} {
		e.result = engine.NodeResult{Answer: &assay.Answer{Status: assay.Answered, Text: strings.Repeat("x", n)}, Progress: strategy.Progress{Node: strategy.FinaliserNode, Stop: assay.StopSufficient}}
		got, err := f.Handle(t.Context(), []byte(`{"node":"finaliser","state":{"run":"a","node":"reflector","route_count":3}}`))
		if err != nil {
			t.Fatal(err)
		}
		check(t, "answer", got)
		var a Answer
		if err := json.Unmarshal(got, &a); err != nil || a.Omitted != (n == MaxBytes) || (a.Answer == nil) != a.Omitted || len(got) > MaxBytes || a.Status != assay.Answered {
			t.Errorf("an answer of %d bytes: %d bytes, omitted %v: %v", n, len(got), a.Omitted, err)
		}
	}
}

// TestHandleRefuses checks that wrong messages are refused before the engine is called.
func TestHandleRefuses(t *testing.T) {
	state := func(s string) string { return `{"node":"retriever","state":` + s + `}` }
	for name, message := range map[string]string{
		"nothing":                    "",
		"no JSON":                    "hello",
		"two values":                 `{"node":"planner","state":{}}{}`,
		"an unknown field":           `{"node":"planner","user":"admin","state":{"run":"a","request":{"question":"q"}}}`,
		"a user in the start":        `{"node":"planner","state":{"run":"a","principal":{"user":"admin"},"request":{"question":"q"}}}`,
		"an unknown node":            `{"node":"router","state":{}}`,
		"no state":                   `{"node":"retriever"}`,
		"no run":                     `{"node":"planner","state":{"request":{"question":"q"}}}`,
		"a run that is a path":       `{"node":"planner","state":{"run":"../a","request":{"question":"q"}}}`,
		"a start that is too long":   `{"node":"planner","state":{"run":"a","request":{"question":"` + strings.Repeat("q", MaxStartBytes) + `"}}}`,
		"a start for another node":   state(`{"run":"a","request":{"question":"q"}}`),
		"the state of another node":  state(`{"run":"a","node":"analyst"}`),
		"a negative count":           state(`{"run":"a","node":"planner","route_count":-1}`),
		"a count above the limit":    state(`{"run":"a","node":"planner","route_count":4}`),
		"negative steps":             state(`{"run":"a","node":"planner","steps":-1}`),
		"a state that is not one":    state(`[1]`),
		"a count that is no integer": state(`{"run":"a","node":"planner","route_count":"x"}`),
	} {
		e := &fixedEngine{}
		if _, err := (Functions{Engine: e, Principal: assay.Local()}).Handle(t.Context(), []byte(message)); !errors.Is(err, assay.ErrInvalid) || e.who.User != "" {
			t.Errorf("%s: %v; the engine was called for %q", name, err, e.who.User)
		}
	}
}

// TestHandleStart checks what the engine gets of a start, and that the execution names a run that has no
// name.
func TestHandleStart(t *testing.T) {
	e := &fixedEngine{result: engine.NodeResult{Progress: strategy.Progress{Node: strategy.PlannerNode}}}
	start := `{"request":{"question":"q","collections":["c"],"filter":{"equals":{"key":"k","value":"v"}},"mode":"quick","follows":"r","local":true}}`
	check(t, "start", []byte(start))
	message := `{"node":"planner","execution":"e-1","token":"t","state":` + start + `}`
	check(t, "call", []byte(message))
	got, err := Functions{Engine: e, Principal: assay.Principal{User: "ann"}}.Handle(t.Context(), []byte(message))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", got)
	filter, err := assay.ParseFilter(`k = "v"`)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.NodeCall{Run: "e-1", Node: strategy.PlannerNode, Request: &engine.Request{
		Question: "q", Collections: []string{"c"}, Filter: filter, Mode: strategy.Quick, Follows: "r", Local: true,
	}}
	if jsonOf(t, want) != jsonOf(t, e.call) || e.call.Run != "e-1" || e.who.User != "ann" {
		t.Errorf("the engine got %s for %q, want %s", jsonOf(t, e.call), e.who.User, jsonOf(t, want))
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSchemasRefuse checks that the schemas refuse what the functions refuse.
func TestSchemasRefuse(t *testing.T) {
	for message, name := range map[string]string{
		`{"run":"../a","request":{"question":"q"}}`: "start",
		`{"run":"a"}`: "start",
		`{"run":"a","request":{"question":"q","user":"x"}}`:                                                                       "start",
		`{"run":"a","node":"finaliser","route_count":0,"verdict":"","stop":"","steps":0,"queries":0,"passages":0,"evidence":[]}`:  "state",
		`{"run":"a","node":"planner","route_count":4,"verdict":"","stop":"","steps":0,"queries":0,"passages":0,"evidence":[]}`:    "state",
		`{"run":"a","node":"planner","route_count":0,"verdict":"YES","stop":"","steps":0,"queries":0,"passages":0,"evidence":[]}`: "state",
	} {
		if err := validate(t, name, []byte(message)); err == nil {
			t.Errorf("the schema of %s accepts %s", name, message)
		}
	}
}

// TestFailures checks the names of failures, and that each is either retried or final.
func TestFailures(t *testing.T) {
	final := finalNames()
	for err, want := range map[error]string{
		fmt.Errorf("x: %w", assay.ErrInvalid): "assay.invalid", assay.ErrLeased: "assay.leased", errors.New("boom"): "assay.error", context.Canceled: "assay.interrupted",
	} {
		f := FailureOf(err)
		if f.Name != want || f.Cause != err.Error() {
			t.Errorf("%v: %+v, want %s", err, f, want)
		}
	}
	if slices.Contains(final, "assay.leased") || slices.Contains(final, "assay.error") || !slices.Contains(final, "assay.invalid") {
		t.Errorf("final: %q", final)
	}
	if f := FailureOf(errors.New(strings.Repeat("é", maxCause))); len(f.Cause) > maxCause+3 || !strings.HasSuffix(f.Cause, "é…") {
		t.Errorf("a long cause has %d bytes", len(f.Cause))
	}
}
