package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// runRoutes show runs with their answers and evidence.
func runRoutes() []Route {
	return []Route{
		page("/runs", "runs", "ListRuns", showRuns),
		page("/runs/{id}", "run", "Run", showRun),
		live("/runs/{id}/live", "run.live", "Follow", followRun),
		page("/runs/{id}/export.md", "run.markdown", "Run", exportMarkdown),
		page("/runs/{id}/export.txt", "run.text", "Run", exportText),
		page("/runs/{id}/export.bib", "run.bibtex", "Run", exportBibTeX),
		action("/runs/{id}/cancel", "run.cancel", "Cancel", cancelRun),
		action("/runs/{id}/resume", "run.resume", "BeginResume", resumeRun),
		action("/runs/{id}/again", "run.again", "Begin", askAgain),
	}
}

// runPath returns the path of the page of a run.
func runPath(id string) string { return "/runs/" + url.PathEscape(id) }

// A runPhase is which of its pages a run has.
type runPhase string

const (
	phaseActive      runPhase = "active"      // it is driven, or waits for its turn
	phaseInterrupted runPhase = "interrupted" // no process drives it; it can be resumed
	phaseWaiting     runPhase = "waiting"     // for a person's decision
	phaseDone        runPhase = "done"
	phaseFailed      runPhase = "failed"
	phaseErased      runPhase = "erased"
	phaseNoQuestion  runPhase = "no_question" // it was done without a question, and has no answer
)

// phaseOf returns the phase of a run. A run that was just begun has a moment until it is driven.
func phaseOf(r assay.Run) runPhase {
	switch {
	case r.State == assay.RunErased:
		return phaseErased
	case r.State == assay.RunFailed:
		return phaseFailed
	case r.State == assay.RunSuspended:
		return phaseWaiting
	case r.State == assay.RunActive && !r.Live && now().Sub(r.Updated) > interruptedAfter:
		return phaseInterrupted
	case r.State == assay.RunActive:
		return phaseActive
	case r.Answer == nil:
		return phaseNoQuestion
	}
	return phaseDone
}

// interruptedAfter is how long a run may be without a process before its page offers to resume it.
const interruptedAfter = 5 * time.Second

// A runPage is the data of the page of a run.
type runPage struct {
	Run      assay.Run
	Phase    runPhase
	Request  engine.Request
	Earlier  []turn // of the conversation, the first one first
	Timeline timeline

	// The rest is set if the run has an answer.
	Text     answerText
	Verdicts []verdictCount
	Sources  []shownSource
	Closest  []closest
	Searched []searched
	State    answerState
	Sides    []side // of a conflict
}

// A turn is an earlier question of a conversation.
type turn struct{ Run, Question string }

// A searched is one search of an answer that was not found.
type searched struct {
	assay.Searched
	Facts, From, Class string
}

// A runActions is the data of the template run-actions.
type runActions struct {
	Run  assay.Run
	View view
}

// Actions returns the data of the template run-actions.
func (p runPage) Actions(v view) runActions { return runActions{p.Run, v} }

// Active reports whether the page follows the run.
func (p runPage) Active() bool { return p.Phase == phaseActive || p.Phase == phaseInterrupted }

// Answer returns the answer; nil: there is none yet.
func (p runPage) Answer() *assay.Answer { return p.Run.Answer }

// Empty reports whether there is no text of claims to show.
func (p runPage) Empty() bool {
	a := p.Run.Answer
	return a == nil || len(a.Claims) == 0
}

// Elapsed returns how long the run was active.
func (p runPage) Elapsed() time.Duration {
	return time.Duration(p.Run.Answer.ElapsedMS) * time.Millisecond
}

// showRun shows a run. With part=run it sends only what changes when the run ends.
func showRun(q *request) error {
	r, steps, err := q.session.Run(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	p := q.runPageOf(r, steps)
	v := q.view("Ask", cut(cmp.Or(r.Question, "Run"), 80), p)
	v.Wide = true
	if q.query("part") == "run" {
		return q.fragment("run.html", "run", v)
	}
	return q.render("run.html", v)
}

// runPageOf returns the page of a run.
func (q *request) runPageOf(r assay.Run, steps []engine.Step) runPage {
	p := runPage{Run: r, Phase: phaseOf(r), Timeline: timelineOf(r, steps)}
	if p.Phase == phaseErased || json.Unmarshal(r.Request, &p.Request) != nil { // of another version: there is nothing to repeat
		p.Request = engine.Request{}
	}
	p.Earlier = q.earlierOf(p.Request.Follows)
	if r.Answer == nil {
		return p
	}
	a := *r.Answer
	found, open := q.passagesOf(a, steps), q.may("Document")
	p.Text, p.Sources, p.Closest = answerTextOf(a), sourcesOf(a, found, open), closestOf(a, found, open)
	p.Verdicts = verdictCounts(p.Text.Claims)
	for _, s := range a.Searched {
		p.Searched = append(p.Searched, searched{s, foundFacts(s.Hits, s.TopRelevance), fromOf(s.Origin), gradeClass(s.Grade)})
	}
	p.State = stateOf(a)
	if a.Status == assay.Conflicting {
		p.Sides = sidesOf(p)
	}
	return p
}

// passagesOf returns the passages that an answer's run, or the earlier run whose answer it is, has found.
func (q *request) passagesOf(a assay.Answer, steps []engine.Step) passages {
	if a.Cached != nil {
		if _, earlier, err := q.session.Run(q.ctx(), a.Cached.Run); err == nil { // without it, quotes are shown alone
			steps = earlier
		}
	}
	return passagesOf(steps)
}

// maxEarlier is the most earlier questions that a page shows.
const maxEarlier = 5

// earlierOf returns the questions before a run, as far as the user may still see their runs.
func (q *request) earlierOf(id string) []turn {
	var turns []turn
	for id != "" && len(turns) < maxEarlier {
		r, _, err := q.session.Run(q.ctx(), id)
		if err != nil { // it was deleted, or a document is closed: the conversation is shown from there on
			break
		}
		turns = append([]turn{{r.ID, r.Question}}, turns...)
		var before engine.Request
		if json.Unmarshal(r.Request, &before) != nil {
			break
		}
		id = before.Follows
	}
	return turns
}

// cancelRun ends a run.
func cancelRun(q *request) error {
	id := q.path("id")
	err := q.session.Cancel(q.ctx(), id)
	if errors.Is(err, assay.ErrInvalid) { // it has ended meanwhile
		return q.redirect(runPath(id), "The run had ended already.")
	}
	if err != nil {
		return err
	}
	return q.redirect(runPath(id), "")
}

// resumeRun continues a run that was interrupted.
func resumeRun(q *request) error {
	id := q.path("id")
	err := q.session.BeginResume(q.ctx(), id)
	if errors.Is(err, assay.ErrInvalid) { // it has ended meanwhile
		return q.redirect(runPath(id), "The run had ended already.")
	}
	if err != nil {
		return err
	}
	return q.redirect(runPath(id), "")
}

// askAgain asks the question of a run again, with the effort that the form names, and not from the
// cache.
func askAgain(q *request) error {
	mode, err := q.form("mode")
	if err != nil {
		return err
	}
	r, _, err := q.session.Run(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	var asked engine.Request
	if err := json.Unmarshal(r.Request, &asked); err != nil {
		return fmt.Errorf("run %s keeps no request: %w", r.ID, assay.ErrNotFound)
	}
	req := engine.Request{ // what the user chose; budget, limits and settings were completed for the first run
		Question: r.Question, Strategy: asked.Strategy, Collections: asked.Collections, Filter: asked.Filter, Local: asked.Local,
		Follows: asked.Follows, Web: asked.Web, Review: asked.Review, Mode: cmp.Or(strategy.Mode(mode), asked.Mode), NoCache: true,
	}
	if req.Follows == "" {
		req.History = asked.History
	}
	id, err := q.session.Begin(q.ctx(), req)
	if err != nil {
		return err
	}
	return q.redirect(runPath(id), "")
}

// GradeClass returns the class of a grade.
func (p runPage) GradeClass(v assay.GradeVerdict) string { return gradeClass(v) }
