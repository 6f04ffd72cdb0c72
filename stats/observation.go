// Package stats says how the runs of a store went, from their journals alone: no labels
// are needed. It turns runs into observations, observations into signals by day,
// strategy and collection, and tells from those what is out of bounds, what drifts
// against the days before, and what several signals that get worse together point to.
//
// It holds no word of a question or a document.
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

// An Observation is what one run shows.
type Observation struct {
	Run         string
	Created     time.Time
	Strategy    string   // that answered; of a run without an answer, the one that was asked for
	Collections []string // that the request named; empty: everywhere
	State       assay.RunState
	Status      assay.Status // of the answer; empty: there is none
	Stop        assay.Stop
	Measuring   bool // an evaluation asked, and nobody waited for the answer: Of leaves it out
	Cached      bool // it gave the answer of an earlier run again: only its state, status and latency count

	Graded       bool    // some evidence was graded
	FirstTry     bool    // of every sub-question the first grade was sufficient
	Iterations   int     // of the answer
	Searched     bool    // something was searched
	TopRelevance float64 // of all searches, in [0, 1]

	Claims   int // that were drafted and judged, each once however often it was; see judged.Claims
	Rejected int // of those, not supported in the end

	ToolCalls, ToolErrors   int            // calls of a tool; those that failed, were refused or were none
	ModelCalls, ModelErrors int            // attempts to call a model; those that failed
	Finishes                map[string]int // replies of models by what ended them
	OutputTokens            int
	CostMicros              int64

	// Citations are those of the answer that were looked at later, and Stale those of
	// them whose document has been replaced or removed since.
	Citations, Stale int
	Latency          time.Duration // while the run was active

	Stages map[assay.StepKind]Stage // by what was done; those of an embracing step hold its inner ones as well
	Fault  string                   // why the trace of a run that has ended is not complete; empty: it is
}

// A Stage is what the steps of one kind took in one run.
type Stage struct {
	Elapsed    time.Duration
	CostMicros int64
}

// Ended reports whether the run has come to an end, good or bad.
func (o Observation) Ended() bool { return o.State == assay.RunDone || o.State == assay.RunFailed }

// CapHit reports whether a limit ended the run's search. A strategy that searches once
// has not hit one by not searching again.
func (o Observation) CapHit() bool {
	switch o.Stop {
	case assay.StopIterationLimit:
		return o.Iterations > 1
	case assay.StopDeadline, assay.StopTokenBudget, assay.StopCallBudget, assay.StopMoneyBudget:
		return true
	}
	return false
}

// Observe reads a run and its journal, in order. Unreadable is the error of reading that
// journal, nil where it could be read whole.
func Observe(r assay.Run, records []assay.Record, unreadable error) Observation {
	var request struct {
		Measuring   bool     `json:"measuring"`
		Strategy    string   `json:"strategy"`
		Collections []string `json:"collections"`
	}
	requestErr := json.Unmarshal(r.Request, &request)
	o := Observation{
		Run: r.ID, Created: r.Created, State: r.State, Strategy: request.Strategy, Measuring: request.Measuring,
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

// fault says what is missing of a run that has ended; empty: nothing.
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

// step adds what one record shows. Inner says that it lies in a record of its kind.
func (o *Observation) step(rec assay.Record, first map[string]bool, inner bool) {
	if !inner {
		s := o.Stages[rec.Kind]
		s.Elapsed += rec.Elapsed
		o.Stages[rec.Kind] = s
	}
	s := o.Stages[rec.Kind]
	s.CostMicros += rec.Usage.CostMicros // an embracing step spends nothing itself
	o.Stages[rec.Kind] = s
	o.OutputTokens += rec.Usage.OutputTokens
	o.CostMicros += rec.Usage.CostMicros
	switch rec.Kind {
	case assay.StepGrade:
		var grade struct{ Verdict assay.GradeVerdict }
		_ = json.Unmarshal(rec.Output, &grade) // what cannot be read is not sufficient
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

// claims counts the claims that were drafted, and those of them that were refused for good.
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

// call adds what one call of a model shows.
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

// subOf returns the sub-question that a step is of: the first part of its path that is
// numbered as one; empty: there is but the question itself.
func subOf(p string) string {
	for part := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(part, "sub[") {
			return part
		}
	}
	return ""
}

// within reports whether a record lies in another one of its kind: such a one follows
// those that it embraces.
func within(records []assay.Record, i int) bool {
	for _, outer := range records[i+1:] {
		if outer.Kind == records[i].Kind && strings.HasPrefix(records[i].Path, outer.Path+"/") {
			return true
		}
	}
	return false
}
