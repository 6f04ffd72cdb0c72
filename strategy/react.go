package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// reactSpec describes React.
var reactSpec = Spec{
	Name:    "react",
	Summary: "decides step by step which read-only tool to use next",
	Source: "Yao et al., \"ReAct: Synergizing Reasoning and Acting in Language Models\", 2022; typed tools, repeated " +
		"calls as an end and the compressed scratchpad are assay's",
	Func:     React,
	Defaults: "8 steps (react.steps), compressed after 3 (react.compress); 3 malformed calls in a row end it (react.invalid)",
	UsualCost: "an act, a call and what the call does more than static with each step; three model calls are reserved " +
		"for grading, writing and verifying",
}

// React alternates reasoning, acting and observing. An actor calls the five read-only tools of
// package tool, several in parallel, and sees their results, until it is done or has no step left.
// The results are the evidence, which is graded and answered from as in every other strategy. The
// actor's own text is not shown.
//
// After every third step the summariser compresses the steps before the last: its statements, each
// with the numbers of its results, and a list of the calls replace the observations.
func React(ctx context.Context, s run.Scope, env Env) (Result, error) {
	return env.withDefaults().act(ctx, s, "react", role.StepByStep)
}

// act answers the question with an actor of the given style.
func (e Env) act(ctx context.Context, s run.Scope, strategy string, style role.ActStyle) (Result, error) {
	a := acting{env: e, style: style, session: tool.Session{Collections: e.Collections}, made: map[string]bool{}}
	a.found = finding{question: e.Question, stop: assay.StopIterationLimit}
	until := s.Until(e.Limits.Wall * 3 / 4) // leaves time to answer from the hits
	for i := range e.Settings.React.Steps {
		goes, err := a.step(ctx, until.Sub("step", i), i)
		if stop := stopOf(err); stop != "" {
			a.found.ends(stop, err)
			break
		}
		if err != nil {
			return Result{}, err
		}
		if !goes {
			break
		}
	}
	if err := a.weigh(ctx, s.Sub("weigh", 0)); err != nil {
		return Result{}, err
	}
	answer, _, err := e.finish(ctx, s.Sub("finish", 0), strategy, []finding{a.found})
	return answer, err
}

// maxCalls is the number of calls made for one reply of an actor, in parallel up to sideBySide.
const maxCalls = 4

// An acting is the state of an actor's work on a question.
type acting struct {
	env     Env
	style   role.ActStyle
	session tool.Session
	found   finding
	asked   bool         // an unrestricted search for the question was made
	terms   []assay.Term // of all searches, used if the question itself was not searched

	steps    []role.ActStep
	memo     []role.Statement
	before   []role.ToolUse  // calls of the steps that memo summarises
	made     map[string]bool // calls, by key
	mistakes int             // calls of unknown tools or with invalid arguments
	fresh    int             // new hits of the last step above the floor
	dry      drought         // counts steps without progress
	plain    bool            // the actor's model does not support tools
	done     bool            // the actor is done
}

// step makes the actor's turn i, from 0. It reports whether another follows.
func (a *acting) step(ctx context.Context, s run.Scope, i int) (goes bool, err error) {
	if stop := a.env.keepsForAnswer(s); stop != "" && len(a.found.hits) > 0 {
		a.found.stop, a.found.lacked = stop, "what is left is for grading, writing and verifying"
		return false, nil
	}
	if i > 0 && i%a.env.Settings.React.Compress == 0 {
		if err := a.compress(ctx, s); err != nil {
			return false, err
		}
	}
	action, err := a.decide(ctx, s, a.env.Settings.React.Steps-i)
	if err != nil {
		return false, err
	}
	a.plain = a.plain || action.Plain
	if action.Done || len(action.Calls) == 0 {
		a.done, a.found.stop = true, assay.StopNoProgress
		return false, nil
	}
	turn := role.ActStep{Thought: action.Thought}
	if asked := max(action.Asked, len(action.Calls)); asked > maxCalls {
		turn.Note = fmt.Sprintf("%d further calls of that reply were not made: at most %d are", asked-maxCalls, maxCalls)
		action.Calls = action.Calls[:min(len(action.Calls), maxCalls)]
	}
	var calls []use
	circular := false
	for i, c := range action.Calls {
		call, err := a.session.Parse(c.Name, c.Arguments)
		refused := "it was not made"
		switch {
		case err != nil:
			a.mistaken()
			refused = err.Error()
		case a.made[call.Key()]:
			circular, refused = true, "this call was made before"
		default:
			a.made[call.Key()] = true
			calls = append(calls, use{call, i})
		}
		turn.Uses = append(turn.Uses, useOf(c, tool.Refuse(refused)))
	}
	if err := a.perform(ctx, s, calls, &turn); err != nil {
		return false, err
	}
	a.steps = append(a.steps, turn)
	switch {
	case circular:
		a.found.stop = assay.StopCircular
	case a.dry.ends():
		a.found.stop = assay.StopNoProgress
	default:
		return !a.lost(), nil
	}
	return false, nil
}

// A use is a call to be made, with the index of its use in the turn.
type use struct {
	tool.Call
	at int
}

func useOf(c llm.ToolCall, obs tool.Observation) role.ToolUse {
	return role.ToolUse{Call: c, Brought: obs.Text, Short: obs.Brief, Failed: obs.Failed}
}

// mistaken counts an invalid call. Too many in a row end the search.
func (a *acting) mistaken() {
	if a.mistakes++; a.mistakes != a.env.Settings.React.Invalid {
		return
	}
	a.found.stop = assay.StopNoProgress
	a.found.notes.say(assay.NoteRole, fmt.Sprintf("actor: %d calls in a row were of tools that do not exist, or with arguments that they do not take; its search ended there", a.mistakes))
}

// lost reports whether the actor made too many invalid calls in a row.
func (a *acting) lost() bool { return a.mistakes >= a.env.Settings.React.Invalid }

// decide asks the actor for its next action.
func (a *acting) decide(ctx context.Context, s run.Scope, left int) (role.Action, error) {
	in := role.ActInput{
		Question: a.env.Question, Style: a.style, Tools: tool.Tools(), Most: maxCalls, Left: left,
		Memo: a.memo, Made: a.before, Steps: a.steps,
		Found: a.best(), Terms: a.found.terms, Floor: a.env.Limits.Floor, Fresh: a.fresh, Plain: a.plain,
	}
	return hand(ctx, s, a.env, job[role.ActInput, role.Action]{
		role:     role.ActorRole,
		do:       a.env.Roles.Actor.Act,
		outcome:  func(out *role.Action) *role.Outcome { return &out.Outcome },
		cautious: role.Action{Done: true},
	}, in, &a.found.notes)
}

// best returns the hits of all tools, best first, at most as many as one search returns.
func (a *acting) best() []assay.Evidence {
	found := a.session.Evidence()
	slices.SortStableFunc(found, func(a, b assay.Evidence) int { return byRelevance(a.Hit, b.Hit) })
	return found[:min(len(found), a.env.Limits.Candidates)]
}

// perform makes the calls of a turn in parallel and adds their results in order. If the budget runs
// out, the results so far count.
func (a *acting) perform(ctx context.Context, s run.Scope, calls []use, turn *role.ActStep) error {
	outs := make([]tool.Output, len(calls))
	done := make([]bool, len(calls))
	err := s.Parallel(ctx, "use", len(calls), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		step := run.Step{Name: calls[i].Tool, Kind: assay.StepTool}
		out, err := run.Group(ctx, s, step, calls[i].Call, func(ctx context.Context, s run.Scope, c tool.Call) (tool.Output, error) {
			return a.session.Do(ctx, newReach(a.env, s), c)
		})
		outs[i], done[i] = out, err == nil
		return err
	})
	if err != nil && stopOf(err) == "" {
		return err
	}
	before, known, brought, searches := a.overFloor(), len(a.found.hits), 0, a.found.iterations
	for i, c := range calls {
		if done[i] {
			a.saw(s.Sub("use", i).Path(), outs[i])
			turn.Uses[c.at] = useOf(turn.Uses[c.at].Call, a.observe(c.Call, outs[i]))
			if outs[i].Results != nil {
				brought += len(outs[i].Results.Hits)
			}
		}
	}
	if a.found.iterations > searches {
		a.dry.after(len(a.found.hits)-known, brought)
	}
	a.fresh = a.overFloor() - before
	return err
}

// saw records a search for the question itself. A replay does not execute the tool's own steps, so
// they do not record it.
func (a *acting) saw(path string, out tool.Output) {
	if a.env.first == nil || out.Results == nil || out.Query == nil {
		return
	}
	if out.Query.Filter.IsZero() && len(out.Query.Collections) == 0 {
		a.env.first.saw(path, *out.Results)
	}
}

// overFloor returns the number of hits at or above the relevance floor.
func (a *acting) overFloor() int {
	n := 0
	for _, h := range a.found.hits {
		if h.Scores.Relevance >= a.env.Limits.Floor {
			n++
		}
	}
	return n
}

// observe adds the result of a call.
func (a *acting) observe(c tool.Call, out tool.Output) tool.Observation {
	obs := a.session.Show(c, out)
	f := &a.found
	if !out.Invalid && !a.lost() {
		a.mistakes = 0
	}
	switch {
	case out.Invalid:
		a.mistaken()
	case out.Results != nil:
		a.take(*out.Query, *out.Results)
	case out.Page != nil:
		f.merge(obs.Hits)
	case out.Summary != nil:
		f.notes.outcome(role.SummariserRole, out.Summary.Outcome)
	case out.Contrast != nil:
		f.notes.outcome(role.ComparerRole, out.Contrast.Outcome)
	case out.Extraction != nil:
		f.notes.outcome(role.ExtractorRole, out.Extraction.Outcome)
	}
	return obs
}

// take adds the results of a search. The terms of the question come only from searches without a
// filter and collections; each search includes the question.
func (a *acting) take(q assay.Query, found assay.Results) {
	f := &a.found
	terms := f.terms
	f.take(a.env, q, found)
	f.iterations++
	if f.terms = terms; q.Filter.IsZero() && len(q.Collections) == 0 {
		f.terms, a.asked = found.Terms, true
	}
	for _, t := range found.Terms {
		if !slices.ContainsFunc(a.terms, func(o assay.Term) bool { return o.Stem == t.Stem }) {
			a.terms = append(a.terms, t)
		}
	}
}

// compress replaces the steps before the last by a summary.
func (a *acting) compress(ctx context.Context, s run.Scope) error {
	last := len(a.steps) - 1
	if evidence := a.best(); len(evidence) > 0 {
		summary, err := a.env.summarise(ctx, s, role.Reading{Question: a.env.Question, Evidence: evidence}, &a.found.notes)
		if err != nil {
			return err
		}
		a.memo = summary.Statements
	}
	for _, step := range a.steps[:last] {
		for _, u := range step.Uses {
			u.Brought, u.Call.Opaque = "", ""
			a.before = append(a.before, u)
		}
	}
	a.steps = slices.Clone(a.steps[last:])
	return nil
}

// weigh grades the hits of all tools. If the actor never searched for the question without
// restrictions, weigh does so first, so that the grade considers all documents.
func (a *acting) weigh(ctx context.Context, s run.Scope) error {
	f := &a.found
	if !a.asked {
		stop, lacked := f.stop, f.lacked
		_, err := f.find(ctx, s, a.env, assay.Query{Text: a.env.Question})
		if err != nil && stopOf(err) == "" {
			return err
		}
		if f.stop, f.lacked = stop, lacked; f.terms == nil {
			f.terms = a.terms
		}
	}
	if len(f.hits) == 0 && f.cutShort() {
		return nil
	}
	err := f.regrade(ctx, s, a.env)
	if stop := stopOf(err); stop != "" {
		f.ends(stop, err)
		return nil
	}
	if err == nil && a.done && f.sufficient() {
		f.stop = assay.StopSufficient
	}
	return err
}

// keepsForAnswer returns the budget of which no more is left than grading, writing and verifying
// need, or "". If the actor used it up, its hits could not be used.
func (e Env) keepsForAnswer(s run.Scope) assay.Stop {
	var calls, tokens assay.Usage
	for _, name := range []string{role.GraderRole, role.GeneratorRole, role.VerifierRole} {
		if e.Began[name] != "" {
			calls.Calls++
			tokens.InputTokens += e.Limits.ContextTokens/2 + 1000
		}
	}
	if e.Began[role.ActorRole] != "" && calls.Calls > 0 {
		calls.Calls++
	}
	// The cost of a call is estimated from the calls made so far.
	spent := s.Spent()
	money := assay.Usage{CostMicros: spent.CostMicros / int64(max(spent.Calls, 1)) * int64(calls.Calls)}
	switch {
	case s.Affords(calls) == 0:
		return assay.StopCallBudget
	case s.Affords(tokens) == 0:
		return assay.StopTokenBudget
	case s.Affords(money) == 0:
		return assay.StopMoneyBudget
	}
	return ""
}
