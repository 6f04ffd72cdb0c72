// Package stepfn is the strategy reflect as functions that a state machine of AWS Step Functions calls,
// one for each node: planner, retriever, analyst, reflector and finaliser. The router is a Choice state of
// the machine.
//
// A function drives a run through one node (see engine.Engine.Node) and returns a [State] that names the
// run, counts its reflections and refers to its evidence. Texts of documents, queries and drafts stay in
// the run's journal, where access rights, reviews and erasure apply to them; the finaliser alone returns
// an answer. Calls may be repeated: a node whose steps are recorded takes none again.
//
// The [Definition] of the machine calls the functions as AWS Lambda functions, or through a queue that
// [Worker]s read. [Schemas] describes the JSON of all messages.
package stepfn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/strategy"
)

// Limits of messages.
const (
	// MaxBytes is the maximum length of a State and an Answer as JSON. It leaves room for what the
	// state machine adds below its own limit of 256 KiB.
	MaxBytes = 192 << 10

	// MaxReferences is the maximum number of references to evidence in a State.
	MaxReferences = 256

	// MaxStartBytes is the maximum length of a Start as JSON.
	MaxStartBytes = 64 << 10
)

// A Call is a message of the state machine to a function.
type Call struct {
	Node      strategy.Node   `json:"node" jsonschema:"the function"`
	Execution string          `json:"execution,omitempty" jsonschema:"the name of the execution, which names the run if its start does not"`
	Token     string          `json:"token,omitempty" jsonschema:"the task token, for functions that are called through a queue"`
	State     json.RawMessage `json:"state" jsonschema:"the input of the execution for the first planner, else the state that the last function returned"`
}

// A Start is the input of an execution.
type Start struct {
	Run     string  `json:"run,omitempty" jsonschema:"the ID of the run that begins; absent: the name of the execution"`
	Request Request `json:"request" jsonschema:"the question"`
}

// A Request is a question. Its fields are those of engine.Request.
type Request struct {
	Question    string        `json:"question" jsonschema:"at most 8192 bytes"`
	Collections []string      `json:"collections,omitempty" jsonschema:"collections to search; absent: all"`
	Filter      assay.Filter  `json:"filter,omitzero" jsonschema:"selects documents by their metadata"`
	Mode        strategy.Mode `json:"mode,omitempty" jsonschema:"the effort: quick or thorough; absent: normal"`
	Follows     string        `json:"follows,omitempty" jsonschema:"the ID of a run whose conversation the question continues"`
	Local       bool          `json:"local,omitempty" jsonschema:"use no language model"`
}

// A State is the result of each function except the finaliser, and the input of the next. It has no
// text of the run.
type State struct {
	Run        string        `json:"run" jsonschema:"the ID of the run"`
	Node       strategy.Node `json:"node" jsonschema:"the function that returned the state"`
	RouteCount int           `json:"route_count" jsonschema:"reflections so far"`
	Verdict    Verdict       `json:"verdict" jsonschema:"of the last reflection; empty before the first, and if the rounds ended without another"`
	Coverage   *float64      `json:"coverage,omitempty" jsonschema:"the share of the question that the last reflection found answered"`
	Stop       assay.Stop    `json:"stop" jsonschema:"why the rounds ended; empty: they go on"`
	Steps      int           `json:"steps" jsonschema:"records in the journal of the run, which the next function continues"`
	Queries    int           `json:"queries" jsonschema:"searches so far"`
	Passages   int           `json:"passages" jsonschema:"passages of evidence in the last analysis"`
	Evidence   []Reference   `json:"evidence" jsonschema:"the first of them, by reference"`
}

// A Verdict is the reflector's decision.
type Verdict string

// The verdicts. The empty one is neither: the state machine then goes on to the finaliser.
const (
	Completed  Verdict = "COMPLETED"
	Incomplete Verdict = "INCOMPLETE"
)

// A Reference names a passage of evidence: the bytes [Start, End) of a document version.
type Reference struct {
	Number   int    `json:"number" jsonschema:"the number of the evidence"`
	Document string `json:"document" jsonschema:"the ID of the document"`
	Version  string `json:"version" jsonschema:"its version"`
	Start    int    `json:"start" jsonschema:"the first byte"`
	End      int    `json:"end" jsonschema:"the byte after the last"`
}

// An Answer is the result of the finaliser and of the execution.
type Answer struct {
	Run    string        `json:"run" jsonschema:"the ID of the run, under which the store has the answer and its evidence"`
	Node   strategy.Node `json:"node" jsonschema:"finaliser"`
	Status assay.Status  `json:"status" jsonschema:"of the answer"`
	Stop   assay.Stop    `json:"stop" jsonschema:"why the rounds ended"`
	Steps  int           `json:"steps" jsonschema:"records in the journal of the run"`

	// Answer is nil if it is longer than MaxBytes.
	Answer  *assay.Answer `json:"answer,omitempty" jsonschema:"the answer, as the HTTP interface gives it"`
	Omitted bool          `json:"omitted,omitempty" jsonschema:"the answer is too long for a state; it is in the store"`
}

// An Engine drives runs node by node. *engine.Engine implements it.
type Engine interface {
	Node(ctx context.Context, principal assay.Principal, c engine.NodeCall) (engine.NodeResult, error)
}

// Functions are the functions of the state machine. They are safe for concurrent use.
type Functions struct {
	Engine Engine

	// Principal is the user on whose behalf all calls are made. It never comes from a message: the
	// right to start the state machine is the right to ask as this user.
	Principal assay.Principal
}

// Handle calls a function with a Call as JSON and returns a State or an Answer as JSON. A message that is
// not a Call is assay.ErrInvalid. Otherwise the errors are those of engine.Engine.Node.
func (f Functions) Handle(ctx context.Context, message []byte) (json.RawMessage, error) {
	var c Call
	if err := strict(message, &c); err != nil {
		return nil, fmt.Errorf("the message is not a call: %w: %w", assay.ErrInvalid, err)
	}
	node, err := nodeCall(c)
	if err != nil {
		return nil, err
	}
	result, err := f.Engine.Node(ctx, f.Principal, node)
	if err != nil {
		return nil, err
	}
	if node.Node == strategy.FinaliserNode {
		return answerOf(node.Run, result)
	}
	return stateOf(node.Run, result)
}

// nodes are the functions.
var nodes = []strategy.Node{strategy.PlannerNode, strategy.RetrieverNode, strategy.AnalystNode, strategy.ReflectorNode, strategy.FinaliserNode}

// runID is the form of the ID of a run.
const runIDPattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`

var runID = lazyregexp.New(runIDPattern)

// nodeCall checks a call and returns it in the engine's form.
func nodeCall(c Call) (engine.NodeCall, error) {
	invalid := func(format string, args ...any) (engine.NodeCall, error) {
		return engine.NodeCall{}, fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), assay.ErrInvalid)
	}
	if !slices.Contains(nodes, c.Node) {
		return invalid("there is no function %.40q", c.Node)
	}
	var s State
	if err := json.Unmarshal(c.State, &s); err != nil {
		return invalid("the state of the %s cannot be read: %v", c.Node, err)
	}
	if s.Node == "" && c.Node == strategy.PlannerNode {
		return startCall(c)
	}
	before := map[strategy.Node]strategy.Node{
		strategy.PlannerNode: strategy.ReflectorNode, strategy.RetrieverNode: strategy.PlannerNode, strategy.AnalystNode: strategy.RetrieverNode,
		strategy.ReflectorNode: strategy.AnalystNode, strategy.FinaliserNode: strategy.ReflectorNode,
	}[c.Node]
	switch {
	case !runID.MatchString(s.Run):
		return invalid("the state has no ID of a run")
	case s.Node != before:
		return invalid("run %s: the %s follows the %s, not the %.40q", s.Run, c.Node, before, s.Node)
	case s.RouteCount < 0 || s.RouteCount > strategy.MaxRoutes || s.Steps < 0:
		return invalid("run %s: the state has %d routes and %d steps", s.Run, s.RouteCount, s.Steps)
	}
	return engine.NodeCall{Run: s.Run, Node: c.Node, Round: s.RouteCount, Steps: s.Steps}, nil
}

// startCall returns the call that begins a run.
func startCall(c Call) (engine.NodeCall, error) {
	var s Start
	err := strict(c.State, &s)
	s.Run = cmp.Or(s.Run, c.Execution)
	switch {
	case len(c.State) > MaxStartBytes:
		err = fmt.Errorf("it has more than %d bytes", MaxStartBytes)
	case err == nil && !runID.MatchString(s.Run):
		err = errors.New("neither it nor the execution names the run")
	}
	if err != nil {
		return engine.NodeCall{}, fmt.Errorf("the input of the execution is wrong: %w: %w", assay.ErrInvalid, err)
	}
	r := s.Request
	return engine.NodeCall{Run: s.Run, Node: c.Node, Request: &engine.Request{
		Question: r.Question, Collections: r.Collections, Filter: r.Filter, Mode: r.Mode, Follows: r.Follows, Local: r.Local,
	}}, nil
}

// strict decodes one JSON value without unknown fields.
func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("it is followed by another value")
	}
	return nil
}

// stateOf returns the state after a node, with as many references as fit.
func stateOf(run string, r engine.NodeResult) (json.RawMessage, error) {
	s := State{
		Run: run, Node: r.Node, RouteCount: r.Routes, Verdict: Verdict(r.Verdict), Coverage: r.Coverage, Stop: r.Stop,
		Steps: r.Steps, Queries: r.Queries, Passages: len(r.Evidence), Evidence: []Reference{},
	}
	if r.Ended {
		s.Verdict = ""
	}
	for _, ev := range r.Evidence[:min(len(r.Evidence), MaxReferences)] {
		c := ev.Hit.Chunk
		s.Evidence = append(s.Evidence, Reference{Number: ev.Number, Document: c.Document, Version: c.Version, Start: c.Start, End: c.End})
	}
	for {
		data, err := json.Marshal(s)
		if err != nil || len(data) <= MaxBytes {
			return data, err
		}
		s.Evidence = s.Evidence[:len(s.Evidence)/2]
	}
}

// answerOf returns the result of the finaliser.
func answerOf(run string, r engine.NodeResult) (json.RawMessage, error) {
	a := Answer{Run: run, Node: r.Node, Status: r.Answer.Status, Stop: r.Stop, Steps: r.Steps, Answer: r.Answer}
	data, err := json.Marshal(a)
	if err != nil || len(data) <= MaxBytes {
		return data, err
	}
	a.Answer, a.Omitted = nil, true
	return json.Marshal(a)
}

// A Failure is an error in the form of the state machine.
type Failure struct {
	Name  string // "assay." and the name of the error's kind, or "assay.error"
	Cause string // at most maxCause bytes
}

const maxCause = 2 << 10

// FailureOf returns an error in the form of the state machine.
func FailureOf(err error) Failure {
	name := "error"
	if k, ok := assay.KindOf(err); ok {
		name = k.Name
	}
	cause := err.Error()
	if len(cause) > maxCause {
		cause = string(bytes.ToValidUTF8([]byte(cause[:maxCause]), nil)) + "…"
	}
	return Failure{Name: "assay." + name, Cause: cause}
}

// passing are the kinds of failure that another attempt may not have. Every other one is final.
var passing = []error{
	context.Canceled, context.DeadlineExceeded, assay.ErrLocked, assay.ErrLeased, assay.ErrFull, assay.ErrReadOnly, assay.ErrUnavailable,
	assay.ErrQuota, assay.ErrBusy,
}

// finalNames returns the names of the failures that no other attempt can avoid.
func finalNames() []string {
	var names []string
	for _, k := range assay.Kinds() {
		if !slices.Contains(passing, k.Err) {
			names = append(names, FailureOf(k.Err).Name)
		}
	}
	return names
}
