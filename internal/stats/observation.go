// Package stats monitors the runs of a store from their journals alone, without labels. It turns
// runs into observations, and observations into signals by day, strategy and collection. From those
// it computes alerts, drift against the days before, and the likely causes of several signals that
// get worse together.
//
// It contains no text of a question or a document.
package stats

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/judged"
)

// An Observation holds the measurements of one run.
type Observation struct {
	Run         string
	Created     time.Time
	Strategy    string   // that answered; of a run without an answer, the requested one
	Collections []string // that the request named; empty: all
	State       assay.RunState
	Status      assay.Status // of the answer; empty: none
	Stop        assay.Stop
	Measuring   bool // the run belongs to an evaluation or is a fork, not a user's question; Of leaves it out
	Cached      bool // it repeated the answer of an earlier run: only its state, status and latency count

	Graded       bool    // some evidence was graded
	FirstTry     bool    // the first grade of every sub-question was sufficient
	Iterations   int     // of the answer
	Searched     bool    // at least one search ran
	TopRelevance float64 // of all searches, in [0, 1]

	Claims   int // that were drafted and judged, each counted once; see judged.Claims
	Rejected int // claims that were not supported in the end

	ToolCalls, ToolErrors   int            // tool calls; those that failed, were refused or were invalid
	ModelCalls, ModelErrors int            // attempts to call a model; those that failed
	Finishes                map[string]int // model replies by finish reason
	OutputTokens            int
	CostMicros              int64

	// Citations counts the citations of the answer that were checked later. Stale counts those
	// whose document has been replaced or removed since.
	Citations, Stale int
	Latency          time.Duration // while the run was active

	Stages map[assay.StepKind]Stage // by kind; those of an enclosing step include its inner ones
	Fault  string                   // why the trace of an ended run is incomplete; empty: complete
}

// A Stage is the time and cost of the steps of one kind in one run.
type Stage struct {
	Elapsed    time.Duration
	CostMicros int64
}

// Ended reports whether the run is done or has failed.
func (o Observation) Ended() bool { return o.State == assay.RunDone || o.State == assay.RunFailed }

// CapHit reports whether a limit ended the run's search. The iteration limit does not count for a
// strategy that searches once.
func (o Observation) CapHit() bool {
	switch o.Stop {
	case assay.StopIterationLimit:
		return o.Iterations > 1
	case assay.StopDeadline, assay.StopTokenBudget, assay.StopCallBudget, assay.StopMoneyBudget, assay.StopQuota:
		return true
	}
	return false
}

// Observe reads a run and its journal, in order. Unreadable is the error of reading that journal,
// or nil if it was read completely.
func Observe(r assay.Run, records []assay.Record, unreadable error) Observation {
	var request struct {
		Measuring   bool            `json:"measuring"`
		ForkedFrom  json.RawMessage `json:"forked_from"`
		Strategy    string          `json:"strategy"`
		Collections []string        `json:"collections"`
	}
	requestErr := json.Unmarshal(r.Request, &request)
	o := Observation{
		Run: r.ID, Created: r.Created, State: r.State, Strategy: request.Strategy, Measuring: request.Measuring || request.ForkedFrom != nil,
		Collections: slices.Compact(slices.Sorted(slices.Values(request.Collections))),
		Finishes:    map[string]int{}, Stages: map[assay.StepKind]Stage{},
	}
	if a := r.Answer; a != nil {
		o.Strategy, o.Status, o.Stop, o.Iterations, o.Cached = a.Strategy, a.Status, a.Stop, a.Iterations, a.Cached != nil
		o.Latency = time.Duration(a.ElapsedMS) * time.Millisecond
		for _, s := range a.Searched {
			o.Searched = true
			o.TopRelevance = max(o.TopRelevance, s.TopRelevance)
		}
	} else {
		for _, rec := range records {
			o.Latency = max(o.Latency, rec.Active)
		}
	}
	first := map[string]bool{} // by sub-question, whether its first grade was sufficient
	for i, rec := range records {
		o.step(rec, first, within(records, i))
	}
	o.claims(records)
	o.FirstTry = len(first) > 0
	for _, sufficient := range first {
		o.Graded, o.FirstTry = true, o.FirstTry && sufficient
	}
	if o.Ended() {
		o.Fault = fault(r, records, errors.Join(unreadable, requestErr))
	}
	return o
}

// fault returns why the trace of an ended run is incomplete, or "".
func fault(r assay.Run, records []assay.Record, unreadable error) string {
	switch {
	case unreadable != nil:
		return unreadable.Error()
	case r.State == assay.RunDone && r.Answer == nil:
		return "it is done, and has no answer"
	case r.State == assay.RunFailed && r.Error == "":
		return "it failed, and does not say why"
	case r.State == assay.RunDone && len(records) == 0:
		return "it has an answer, and no step"
	case len(records) != r.Steps:
		return "steps are missing"
	}
	for i, rec := range records {
		if rec.Ordinal != i {
			return "steps are missing"
		}
		if rec.Output == nil && rec.Error == nil {
			return "the step " + rec.Path + " has neither an output nor an error"
		}
	}
	return ""
}

// step adds one record. Inner means that it lies within a record of its kind.
func (o *Observation) step(rec assay.Record, first map[string]bool, inner bool) {
	if !inner {
		s := o.Stages[rec.Kind]
		s.Elapsed += rec.Elapsed
		o.Stages[rec.Kind] = s
	}
	s := o.Stages[rec.Kind]
	s.CostMicros += rec.Usage.CostMicros // an enclosing step spends nothing itself
	o.Stages[rec.Kind] = s
	o.OutputTokens += rec.Usage.OutputTokens
	o.CostMicros += rec.Usage.CostMicros
	switch rec.Kind {
	case assay.StepGrade:
		var grade struct{ Verdict assay.GradeVerdict }
		_ = json.Unmarshal(rec.Output, &grade) // an unreadable grade is not sufficient
		if sub := subOf(rec.Path); path.Base(rec.Path) == "grade" {
			if _, known := first[sub]; !known {
				first[sub] = grade.Verdict == assay.Sufficient
			}
		}
	case assay.StepTool:
		var out struct {
			Refused string
			Invalid bool
		}
		_ = json.Unmarshal(rec.Output, &out)
		o.ToolCalls++
		if rec.Error != nil || out.Refused != "" || out.Invalid {
			o.ToolErrors++
		}
	case assay.StepModel:
		o.call(rec)
	}
}

// claims counts the drafted claims and those that were finally rejected.
func (o *Observation) claims(records []assay.Record) {
	var steps []judged.Step
	for _, rec := range records {
		if rec.Kind == assay.StepVerify && rec.Error == nil {
			steps = append(steps, judged.Step{Path: rec.Path, Input: rec.Input, Output: rec.Output})
		}
	}
	for _, c := range judged.Claims(steps) {
		o.Claims++
		if c.Verdict != assay.Supported {
			o.Rejected++
		}
	}
}

// call adds one model call.
func (o *Observation) call(rec assay.Record) {
	var reply struct {
		Finish   string
		Attempts []struct{}
	}
	_ = json.Unmarshal(rec.Output, &reply)
	attempts := max(rec.Usage.Calls, len(reply.Attempts)+1)
	o.ModelCalls += attempts
	if rec.Error != nil {
		o.ModelErrors += attempts
		o.Finishes["error"]++
		return
	}
	o.ModelErrors += len(reply.Attempts)
	if reply.Finish != "" {
		o.Finishes[reply.Finish]++
	}
}

// subOf returns the sub-question of a step: the first part of its path that is numbered as one. It
// is "" if the question has no sub-questions.
func subOf(p string) string {
	for part := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(part, "sub[") {
			return part
		}
	}
	return ""
}

// within reports whether a record lies within another one of its kind. An enclosing record follows
// those that it encloses.
func within(records []assay.Record, i int) bool {
	for _, outer := range records[i+1:] {
		if outer.Kind == records[i].Kind && strings.HasPrefix(records[i].Path, outer.Path+"/") {
			return true
		}
	}
	return false
}
