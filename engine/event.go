package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// An EventKind is the kind of an Event.
type EventKind string

// The kinds of events. The first event of a run is RunStarted and the last is RunEnded. Steps
// start and end in between; those of parallel branches are interleaved. Before the first step the
// index is brought up to date, which belongs to no step and can take long.
const (
	RunStarted  EventKind = "run"
	StepStarted EventKind = "step_started"
	StepEnded   EventKind = "step"
	Draft       EventKind = "draft" // a piece of the answer that a model is writing, not verified
	RunEnded    EventKind = "answer"
)

// An Event is one thing that happened in a run.
type Event struct {
	Kind EventKind `json:"kind"`
	Run  string    `json:"run"`

	// Step is set when a step starts, then without its results, and when it ends.
	Step *Step `json:"step,omitempty"`

	// Draft is a piece of the text that the generator is writing, and Path the step that writes
	// it. The text is unverified, in the form that the model was asked for, and may be discarded
	// later. It is meant for displaying progress.
	Draft string `json:"draft,omitempty"`
	Path  string `json:"path,omitempty"`

	// The results of a step that ended, by its kind.
	Plan     *role.Plan         `json:"plan,omitempty"`
	Query    *assay.Query       `json:"query,omitempty"` // also set when a search starts
	Results  *assay.Results     `json:"results,omitempty"`
	Grade    *role.Grade        `json:"grade,omitempty"`
	Verdicts []ground.Judgement `json:"verdicts,omitempty"` // by claim

	Answer *assay.Answer `json:"answer,omitempty"`
}

// A Step is one step of a run in a form for display.
type Step struct {
	Ordinal  int                  `json:"ordinal"` // position in the journal; -1 if it has none yet
	Path     string               `json:"path"`
	Kind     assay.StepKind       `json:"kind"`
	Model    string               `json:"model,omitempty"`
	Summary  string               `json:"summary"` // description in words
	Error    *assay.RecordedError `json:"error,omitempty"`
	Usage    assay.Usage          `json:"usage"`
	Started  time.Time            `json:"started"`
	Elapsed  time.Duration        `json:"elapsed_ns"`
	Replayed bool                 `json:"replayed,omitempty"` // the result was read from the journal
	Input    json.RawMessage      `json:"input,omitempty"`
	Output   json.RawMessage      `json:"output,omitempty"`
}

// Event returns the event of a step that has ended, of the run with that ID, with the results that can be
// read from its Input and Output.
func (s Step) Event(run string) Event {
	rec := assay.Record{Path: s.Path, Kind: s.Kind, Input: s.Input, Output: s.Output}
	s.Input, s.Output = nil, nil
	return endOf(run, s, read(rec))
}

// stepOf returns the step for rec.
func stepOf(rec assay.Record) Step { return stepWith(rec, read(rec)) }

// stepWith is stepOf for a record whose payload is decoded.
func stepWith(rec assay.Record, p payload) Step {
	return Step{
		Ordinal: rec.Ordinal,
		Path:    rec.Path,
		Kind:    rec.Kind,
		Model:   rec.Model,
		Summary: summary(p, rec),
		Error:   rec.Error,
		Usage:   rec.Usage,
		Started: rec.Started,
		Elapsed: rec.Elapsed,
		Input:   rec.Input,
		Output:  rec.Output,
	}
}

// eventOf returns the event for a step that starts or has ended.
func eventOf(id string, ev run.Event) Event {
	rec := assay.Record{
		Run: id, Ordinal: -1, Path: ev.Path, Kind: ev.Kind, Model: ev.Model, Input: ev.Input, Output: ev.Output,
		Usage: ev.Usage, Started: ev.Started, Elapsed: ev.Elapsed, Active: ev.Active,
	}
	if ev.Phase == run.StepEnd {
		rec.Ordinal = ev.Ordinal
	}
	if ev.Err != nil {
		rec.Error = &assay.RecordedError{Message: ev.Err.Error()}
	}
	p := read(rec)
	step := stepWith(rec, p)
	step.Replayed = ev.Replayed
	step.Input, step.Output = nil, nil
	if ev.Phase == run.StepStart {
		step.Summary = intention(p, rec)
		return Event{Kind: StepStarted, Run: id, Step: &step, Query: p.query}
	}
	return endOf(id, step, p)
}

// endOf returns the event for a step that has ended.
func endOf(id string, step Step, p payload) Event {
	return Event{
		Kind: StepEnded, Run: id, Step: &step,
		Plan: p.plan, Query: p.query, Results: p.results, Grade: p.grade, Verdicts: p.verdicts,
	}
}

// drafts returns a function that sends the generator's text to emit. It returns nil if emit is
// nil.
func drafts(id string, emit func(Event)) func(string, llm.Delta) {
	if emit == nil {
		return nil
	}
	return func(path string, d llm.Delta) {
		if job := jobOf(path); d.Text != "" && (job == "generate" || strings.HasSuffix(job, "/generate")) {
			emit(Event{Kind: Draft, Run: id, Path: path, Draft: d.Text})
		}
	}
}

// A payload holds the decoded input and output of a record, depending on its kind. Fields that
// cannot be decoded stay nil, because summaries are only for display and a journal may come from
// another version of a strategy.
type payload struct {
	plan     *role.Plan
	query    *assay.Query
	results  *assay.Results
	grade    *role.Grade
	draft    *role.Draft
	verdicts []ground.Judgement
	call     *modelCall    // with reply or error
	reply    *llm.Response // of call
	cached   *cacheStep
}

func read(rec assay.Record) payload {
	var p payload
	switch rec.Kind {
	case assay.StepPlan:
		p.plan = decode[role.Plan](rec.Output)
	case assay.StepSearch:
		if in := decode[struct {
			Query *assay.Query `json:"query"`
		}](rec.Input); in != nil {
			p.query = in.Query
		}
		p.results = decode[assay.Results](rec.Output)
	case assay.StepGrade:
		p.grade = decode[role.Grade](rec.Output)
	case assay.StepGenerate:
		p.draft = decode[role.Draft](rec.Output)
	case assay.StepVerify:
		if v := decode[[]ground.Judgement](rec.Output); v != nil {
			p.verdicts = *v
		}
	case assay.StepCache:
		p.cached = decode[cacheStep](rec.Output)
	case assay.StepModel:
		p.call = decode[modelCall](rec.Input)
		p.reply = decode[llm.Response](rec.Output)
	}
	return p
}

func decode[T any](data json.RawMessage) *T {
	var v T
	if len(data) == 0 || json.Unmarshal(data, &v) != nil {
		return nil
	}
	return &v
}

// intention describes in words the step that is about to start.
func intention(p payload, rec assay.Record) string {
	switch rec.Kind {
	case assay.StepPlan:
		return "planning"
	case assay.StepSearch:
		if p.query != nil {
			return "searching " + wordsOf(*p.query)
		}
		return "searching"
	case assay.StepGrade:
		return "grading what was found"
	case assay.StepGenerate:
		return "writing"
	case assay.StepRead:
		return "reading the cited words"
	case assay.StepVerify:
		return "verifying each claim"
	case assay.StepRole:
		return "asking for " + taskOutputs[rec.Path[strings.LastIndexByte(rec.Path, '/')+1:]]
	case assay.StepReader:
		return "reading: " + path.Base(rec.Path)
	case assay.StepTool:
		if c := decode[tool.Call](rec.Input); c != nil {
			return "calling " + c.Tool
		}
	case assay.StepCache:
		return "looking for an earlier answer"
	case assay.StepWeb:
		return webIntention(rec)
	case assay.StepRung:
		return "taking the rung " + path.Base(rec.Path)
	case assay.StepModel:
		if path.Base(rec.Path) == managedStep {
			return "asking " + rec.Model
		}
		return fmt.Sprintf("asking %s for %s", rec.Model, taskOutputs[callOf(rec.Input).template()])
	}
	return string(rec.Kind)
}

// summary describes in words the result of a step.
func summary(p payload, rec assay.Record) string {
	if rec.Error != nil {
		return "error: " + rec.Error.Message
	}
	switch {
	case p.plan != nil:
		return planSummary(*p.plan)
	case p.results != nil && p.query != nil:
		return searchSummary(*p.query, *p.results)
	case p.grade != nil:
		return gradeSummary(*p.grade)
	case p.draft != nil && p.draft.Failure != "":
		return "the generator failed: " + p.draft.Failure
	case p.draft != nil:
		return counted(len(p.draft.Statements), "statement") + " drafted, not verified yet"
	case p.cached != nil:
		return p.cached.String()
	case p.verdicts != nil:
		return verdictSummary(p.verdicts)
	case rec.Kind == assay.StepWeb:
		return webSummary(rec)
	case rec.Kind == assay.StepRung:
		return rungSummary(rec)
	case rec.Kind == assay.StepModel && path.Base(rec.Path) == managedStep:
		return managedSummary(rec)
	case rec.Kind == assay.StepModel && path.Base(rec.Path) == checkStep:
		return checkSummary(rec)
	case rec.Kind == assay.StepModel && p.reply != nil:
		return callSummary(rec, *p.reply)
	case rec.Kind == assay.StepRole:
		return roleSummary(rec)
	case rec.Kind == assay.StepReader:
		return rec.Model + ": " + path.Base(rec.Path)
	case rec.Kind == assay.StepTool:
		return toolSummary(rec)
	case pageOf(rec) != nil:
		return pageSummary(*pageOf(rec))
	case rec.Kind == assay.StepRead:
		if spans := decode[[]json.RawMessage](rec.Output); spans != nil {
			return counted(len(*spans), "passage") + " read from the stored documents"
		}
	}
	return string(rec.Kind)
}

// callSummary describes the usage and the outcome of a model call.
func callSummary(rec assay.Record, r llm.Response) string {
	s := rec.Model
	if prompt := callOf(rec.Input).Prompt; prompt != "" {
		s += " (" + prompt + ")"
	}
	s += fmt.Sprintf(": %d tokens in, %d out", rec.Usage.InputTokens, rec.Usage.OutputTokens)
	if r.Cached > 0 {
		s += fmt.Sprintf(", %d of them cached", r.Cached)
	}
	if r.Estimated {
		s += " (estimated)"
	}
	if r.Finish != "" && r.Finish != llm.FinishStop {
		s += fmt.Sprintf("; ended by %q", r.Finish)
	}
	for _, a := range r.Attempts {
		s += fmt.Sprintf("; an attempt failed: %s: %s", a.Kind, a.Message)
	}
	return s
}

// checkStep is the name of a step that asks a verifier that is a service.
const checkStep = "check"

// checkSummary describes the scores of a verifier that is a service.
func checkSummary(rec assay.Record) string {
	j := decode[ground.Judgement](rec.Output)
	if j == nil {
		return rec.Model
	}
	s := fmt.Sprintf("%s: %s, score %.2f", rec.Model, j.Verdict, j.Score)
	if j.Relevance != nil {
		s += fmt.Sprintf(", relevance %.2f", *j.Relevance)
	}
	return said(s, j.Reason)
}

func planSummary(p role.Plan) string {
	if p.Failure != "" {
		return "one question, unchanged: the planner failed: " + p.Failure
	}
	if len(p.SubQuestions) == 1 {
		return "one question"
	}
	parts := make([]string, len(p.SubQuestions))
	for i, sub := range p.SubQuestions {
		parts[i] = fmt.Sprintf("%q", sub.Text)
	}
	return fmt.Sprintf("%s of %d: %s", p.Shape, len(parts), strings.Join(parts, ", "))
}

// wordsOf returns the text of a query and its rewrites.
func wordsOf(q assay.Query) string {
	s := fmt.Sprintf("%q", q.Text)
	if len(q.Rewrites) > 0 {
		s += fmt.Sprintf(" beside %q", q.Rewrites)
	}
	return s
}

func searchSummary(q assay.Query, r assay.Results) string {
	s := fmt.Sprintf("%s: %s", wordsOf(q), counted(len(r.Hits), "hit"))
	if len(r.Hits) > 0 {
		best := slices.MaxFunc(r.Hits, func(a, b assay.Hit) int {
			return cmp.Compare(a.Scores.Relevance, b.Scores.Relevance)
		})
		s += fmt.Sprintf(", best relevance %.2f; %s with a word of it", best.Scores.Relevance, total(r.Total))
	}
	return s
}

// total formats the number of chunks that a search found, which is counted only up to
// assay.MaxTotal.
func total(n int) string {
	if n == assay.MaxTotal {
		return fmt.Sprintf("%d or more", n)
	}
	return strconv.Itoa(n)
}

func gradeSummary(g role.Grade) string {
	s := fmt.Sprintf("%s, %s", g.Verdict, counted(len(g.Relevant), "relevant chunk"))
	if len(g.Missing) > 0 && g.Verdict != assay.Sufficient {
		s += "; missing: " + strings.Join(g.Missing, ", ")
	}
	return s
}

func verdictSummary(verdicts []ground.Judgement) string {
	supported := 0
	var reasons []string
	for i, v := range verdicts {
		if v.Verdict == assay.Supported {
			supported++
		} else {
			reasons = append(reasons, fmt.Sprintf("claim %d %s: %s", i+1, v.Verdict, v.Reason))
		}
	}
	s := fmt.Sprintf("%d of %s supported", supported, counted(len(verdicts), "claim"))
	if len(reasons) > 0 {
		s += "; " + strings.Join(reasons, "; ")
	}
	return s
}

// counted formats a number with its noun: "1 hit", "20 hits".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
