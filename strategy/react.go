package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// reactSpec describes React.
var reactSpec = Spec{
	Name:    "react",
	Summary: "makes a plan, decides step by step which read-only tool to use next, and criticises what came",
	Source: "Yao et al., \"ReAct: Synergizing Reasoning and Acting in Language Models\", 2022; the explicit plan that is revised, " +
		"the self-critique with fixed fields and the compressed scratchpad are those of the enterprise pattern EAAPL-RAG007, 2025",
	Func: React,
	Defaults: "8 steps (react.steps), compressed after 3 (react.compress); 3 malformed calls in a row end it in an error state " +
		"(react.invalid)",
	UsualCost: "a plan, and with each step an act, a critique, a call and what the call does more than static; three model calls " +
		"are reserved for grading, writing and verifying",
}

// React plans, and then alternates reasoning, acting, observing and self-critique. Before the first
// action the actor lists its sub-goals. It calls the read-only tools of package tool, several in
// parallel, and sees their results. After each turn that searched or read it judges what was found:
// whether it suffices, what is missing, what to search next, which goals are covered and whether the
// open ones are still the right ones. The search ends when the critique calls the results sufficient
// or all goals are covered, when no step is left, when two steps in a row bring hardly anything new
// or a call is repeated, or when the actor stops by itself.
//
// The results are the evidence, which is graded and answered from as in every other strategy. The
// actor's own text is not shown. Too many malformed calls in a row are an error state: what is
// verified then is shown as incomplete. So are replies that stay unreadable.
//
// After every third step the summariser compresses the steps before the last: its statements, each
// with the numbers of its results, and a list of the calls replace the observations.
func React(ctx context.Context, s run.Scope, env Env) (Result, error) {
	return env.withDefaults().act(ctx, s, "react", role.StepByStep)
}

// act answers the question with an actor of the given style. Only role.StepByStep has a plan and
// critiques as steps of their own.
func (e Env) act(ctx context.Context, s run.Scope, strategy string, style role.ActStyle) (Result, error) {
	a := actorLoop{env: e, style: style, made: map[string]bool{}}
	if e.Began[role.ActorRole] == "" {
		a.session.Results = e.Limits.Candidates // no model has to read them
	}
	a.found = subQuestion{question: e.Question, stop: assay.StopIterationLimit}
	err := a.search(ctx, s.Until(e.Limits.Wall*3/4)) // leaves time to answer from the hits
	if stop := stopOf(err); stop != "" {
		a.found.endSearch(stop, err)
	} else if err != nil {
		return Result{}, err
	}
	if err := a.gradeFound(ctx, s.Sub("weigh", 0)); err != nil {
		return Result{}, err
	}
	answer, _, err := e.finish(ctx, s.Sub("finish", 0), strategy, []subQuestion{a.found})
	return answer, err
}

const (
	maxCalls = 4 // calls made for one reply of an actor, in parallel up to sideBySide
	maxGoals = 8 // goals of a plan
)

// actorLoop is the state of an actor's work on a question.
type actorLoop struct {
	env     Env
	style   role.ActStyle
	session tool.Session
	found   subQuestion
	asked   bool         // an unrestricted search for the question was made
	terms   []assay.Term // of all searches, used if the question itself was not searched

	plan    []role.Goal // nil: the actor works without one
	planned []role.Goal // the plan before steps

	steps           []role.ActStep
	memo            []role.Statement
	summarised      []role.ToolUse  // calls of the steps that memo summarises
	made            map[string]bool // calls, by key
	mistakes        int             // malformed calls in a row
	tooManyMistakes bool            // there were too many of them
	fresh           int             // new hits of the last step above the floor
	noProgress      noProgressCount // counts steps without progress
	plain           bool            // the actor's model does not support tools
	done            bool            // the actor is done
}

// search plans and makes the actor's turns until one of the stops.
func (a *actorLoop) search(ctx context.Context, s run.Scope) error {
	if a.style == role.StepByStep {
		if err := a.outline(ctx, s.Sub("plan", 0)); err != nil {
			return err
		}
	}
	for i := range a.env.Settings.React.Steps {
		goes, err := a.step(ctx, s.Sub("step", i), i)
		if err != nil || !goes {
			return err
		}
	}
	return nil
}

// outline asks the actor for its plan. If there is no room for one, or the actor fails, the question
// is the only goal.
func (a *actorLoop) outline(ctx context.Context, s run.Scope) error {
	a.plan = []role.Goal{{Text: a.env.Question}}
	a.planned = a.plan
	if a.env.reservedForAnswer(s, assay.Usage{Calls: 2}) != "" { // the plan and one turn
		a.found.notes.say(assay.NoteRole, "actor: no plan was made: the remaining budget is reserved for searching, grading, writing and verifying")
		return nil
	}
	whole := []role.SubQuestion{{Text: a.env.Question}}
	plan, err := runRole(ctx, s, a.env, job[string, role.Plan]{
		task: role.ActorRole,
		do: func(ctx context.Context, c role.Caller, question string) (role.Plan, error) {
			p, err := a.env.Roles.Actor.Plan(ctx, c, question)
			if err != nil {
				return role.Plan{}, err
			}
			if p.Failure == "" {
				p.Failure = unplanned(p)
			}
			if p.Failure != "" {
				p.Shape, p.SubQuestions = role.Single, whole
			}
			return p, nil
		},
		cautious: role.Plan{Shape: role.Single, SubQuestions: whole},
	}, a.env.Question, &a.found.notes)
	if err != nil {
		return err
	}
	for i := range plan.SubQuestions {
		plan.SubQuestions[i].Text = visible.Line(plan.SubQuestions[i].Text)
	}
	var goals []role.Goal
	for _, sub := range withoutRepeats(plan.SubQuestions) {
		if len(goals) < maxGoals {
			goals = append(goals, role.Goal{Text: sub.Text, Needs: sub.Needs})
		}
	}
	a.plan, a.planned = goals, goals
	return nil
}

// step makes the actor's turn i, from 0. It reports whether another follows.
func (a *actorLoop) step(ctx context.Context, s run.Scope, i int) (goes bool, err error) {
	if a.outOfBudget(s, assay.Usage{Calls: 1}) {
		return false, nil
	}
	if i > 0 && i%a.env.Settings.React.Compress == 0 {
		if err := a.compress(ctx, s); err != nil {
			return false, err
		}
	}
	left := a.env.Settings.React.Steps - i
	action, err := a.decide(ctx, s, left)
	if err != nil {
		return false, err
	}
	a.plain = a.plain || action.Plain
	if action.Unreadable { // the note of the role says why
		a.found.stop = assay.StopMalformed
		return false, nil
	}
	if action.Done || len(action.Calls) == 0 {
		a.done, a.found.stop = true, assay.StopNoProgress
		return false, nil
	}
	turn := role.ActStep{Thought: action.Thought}
	if asked := max(action.Asked, len(action.Calls)); asked > maxCalls {
		turn.Note = fmt.Sprintf("%d further calls of that reply were not made: at most %d are", asked-maxCalls, maxCalls)
		action.Calls = action.Calls[:min(len(action.Calls), maxCalls)]
	}
	t, err := a.readCalls(ctx, s, action.Calls, &turn)
	if err != nil {
		return false, err
	}
	retrieved, err := a.perform(ctx, s, t, &turn)
	if err != nil {
		return false, err
	}
	a.steps = append(a.steps, turn)
	switch {
	case a.tooManyMistakes:
		a.found.stop = assay.StopMalformed
		return false, nil
	case t.circular:
		a.found.stop = assay.StopCircular
		return false, nil
	}
	if retrieved && a.style == role.StepByStep {
		if goes, err := a.criticise(ctx, s.Sub("critique", 0), left-1); err != nil || !goes {
			return false, err
		}
	}
	if a.noProgress.stalled() {
		a.found.stop = assay.StopNoProgress
		return false, nil
	}
	return true, nil
}

// outOfBudget reports whether no more of the budget is left than the answer needs and own, what the
// actor does next. The search then stops. It goes on as long as nothing was found.
func (a *actorLoop) outOfBudget(s run.Scope, own assay.Usage) bool {
	stop := a.env.reservedForAnswer(s, own)
	if stop == "" || len(a.found.hits) == 0 {
		return false
	}
	a.found.stop, a.found.shortfall = stop, "the remaining budget is reserved for grading, writing and verifying"
	return true
}

// turnCalls is the calls of one turn, of which only some are made.
type turnCalls struct {
	uses      []plannedCall
	malformed []bool // by call of the reply
	circular  bool   // a call was made before
}

// plannedCall is a call to be made, with the index of its use in the turn.
type plannedCall struct {
	tool.Call
	at int
}

// readCalls reads the calls of a reply. A call that is refused is a step too, so that the journal
// has it.
func (a *actorLoop) readCalls(ctx context.Context, s run.Scope, calls []llm.ToolCall, turn *role.ActStep) (turnCalls, error) {
	t := turnCalls{malformed: make([]bool, len(calls))}
	for i, c := range calls {
		call, err := a.session.Parse(c.Name, c.Arguments)
		refused := ""
		switch {
		case err != nil:
			t.malformed[i], refused = true, err.Error()
		case a.made[call.Key()]:
			t.circular, refused = true, "this call was made before"
		default:
			a.made[call.Key()] = true
			t.uses = append(t.uses, plannedCall{call, i})
			turn.Uses = append(turn.Uses, useOf(c, tool.Refuse("it was not made")))
			continue
		}
		out, err := refuse(ctx, s.Sub("refused", i), tool.RefusedCall(c.Name, c.Arguments), tool.Output{Refused: refused, Invalid: t.malformed[i]})
		if err != nil {
			return turnCalls{}, err
		}
		turn.Uses = append(turn.Uses, useOf(c, tool.Refuse(out.Refused)))
	}
	return t, nil
}

// refuse records a call that is not made.
func refuse(ctx context.Context, s run.Scope, call tool.Refused, out tool.Output) (tool.Output, error) {
	step := run.Step{Name: "refused", Kind: assay.StepTool}
	return run.Do(ctx, s, step, call, func(context.Context, tool.Refused) (tool.Output, assay.Usage, error) {
		return out, assay.Usage{}, nil
	})
}

func useOf(c llm.ToolCall, obs tool.Observation) role.ToolUse {
	return role.ToolUse{Call: c, Brought: obs.Text, Short: obs.Brief, Failed: obs.Failed}
}

// count counts the malformed calls of a turn. Too many in a row end the search.
func (a *actorLoop) count(malformed []bool) {
	for _, wrong := range malformed {
		if !wrong {
			a.mistakes = 0
			continue
		}
		if a.mistakes++; a.mistakes == a.env.Settings.React.Invalid && !a.tooManyMistakes {
			a.tooManyMistakes = true
			a.found.notes.say(assay.NoteRole, fmt.Sprintf("actor: %d calls in a row named unknown tools or had invalid arguments; its search ended there", a.mistakes))
		}
	}
}

// input returns the actor's input.
func (a *actorLoop) input(left int) role.ActInput {
	return role.ActInput{
		Question: a.env.Question, Style: a.style, Left: left, Plan: a.planned,
		Memo: a.memo, Made: a.summarised, Steps: a.steps,
		Found: a.best(), Terms: a.found.terms, Floor: a.env.Limits.Floor, Fresh: a.fresh, Plain: a.plain,
	}
}

// decide asks the actor for its next action.
func (a *actorLoop) decide(ctx context.Context, s run.Scope, left int) (role.Action, error) {
	in := a.input(left)
	in.Tools, in.Most = tool.Tools(), maxCalls
	return runRole(ctx, s, a.env, job[role.ActInput, role.Action]{
		task:     role.ActorRole,
		do:       a.env.Roles.Actor.Act,
		cautious: role.Action{Done: true},
	}, in, &a.found.notes)
}

// criticise asks the actor for its critique of the last step and revises the plan. It reports
// whether the search goes on.
func (a *actorLoop) criticise(ctx context.Context, s run.Scope, left int) (goes bool, err error) {
	if a.outOfBudget(s, assay.Usage{Calls: 1, InputTokens: a.env.Limits.ContextTokens / 2}) {
		return false, nil
	}
	out, err := runRole(ctx, s, a.env, job[role.ActInput, role.SelfCritique]{
		task:     role.ActorRole,
		do:       a.env.Roles.Actor.Critique,
		cautious: role.SelfCritique{Missing: []string{a.env.Question}, NextSearches: []string{}, Covered: []int{}},
	}, a.input(left), &a.found.notes)
	if err != nil {
		return false, err
	}
	if out.Failure != "" {
		out.Sufficient, out.Covered, out.Revised = false, nil, nil
	}
	a.plan = revised(a.plan, out)
	last := &a.steps[len(a.steps)-1]
	last.Critique, last.Plan = &out, a.plan
	covered := !slices.ContainsFunc(a.plan, func(g role.Goal) bool { return !g.Done })
	if len(a.found.hits) > 0 && (out.Sufficient || covered) {
		a.found.stop = assay.StopSufficient
		return false, nil
	}
	return true, nil
}

// revised returns a plan after a critique. Revised goals replace the open ones, unless none of them
// is new. The needs of a revised plan are unknown.
func revised(plan []role.Goal, k role.SelfCritique) []role.Goal {
	plan = slices.Clone(plan)
	for _, n := range k.Covered {
		if n >= 0 && n < len(plan) {
			plan[n].Done = true
		}
	}
	var kept []role.Goal
	for _, g := range plan {
		if g.Done {
			kept = append(kept, role.Goal{Text: g.Text, Done: true})
		}
	}
	closed := len(kept)
	for _, text := range k.Revised {
		text = visible.Line(text)
		known := slices.ContainsFunc(kept, func(g role.Goal) bool { return sameWords(g.Text, text) })
		if text != "" && len(text) <= maxQuery && !known && len(kept)-closed < maxGoals {
			kept = append(kept, role.Goal{Text: text})
		}
	}
	if len(kept) == closed {
		return plan
	}
	return kept
}

// best returns the hits of all tools, best first, at most as many as one search returns.
func (a *actorLoop) best() []assay.Evidence {
	found := a.session.Evidence()
	slices.SortStableFunc(found, func(a, b assay.Evidence) int { return byRelevance(a.Hit, b.Hit) })
	return found[:min(len(found), a.env.Limits.Candidates)]
}

// perform makes the calls of a turn in parallel and adds their results in order. It reports whether
// one of them searched or read. If the budget runs out, the results so far count.
func (a *actorLoop) perform(ctx context.Context, s run.Scope, t turnCalls, turn *role.ActStep) (retrieved bool, err error) {
	outs := make([]tool.Output, len(t.uses))
	done := make([]bool, len(t.uses))
	err = s.Parallel(ctx, "use", len(t.uses), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		step := run.Step{Name: t.uses[i].Tool, Kind: assay.StepTool}
		out, err := run.Group(ctx, s, step, t.uses[i].Call, func(ctx context.Context, s run.Scope, c tool.Call) (tool.Output, error) {
			return a.session.Do(ctx, newToolBackend(a.env, s), c)
		})
		outs[i], done[i] = out, err == nil
		return err
	})
	if err != nil && stopOf(err) == "" {
		return false, err
	}
	before, known, brought, searches := a.countAboveFloor(), len(a.found.hits), 0, a.found.iterations
	for i, c := range t.uses {
		if !done[i] {
			continue
		}
		out := outs[i]
		a.recordSearch(s.Sub("use", i).Path(), out)
		turn.Uses[c.at] = useOf(turn.Uses[c.at].Call, a.observe(c.Call, out))
		t.malformed[c.at] = out.Invalid
		if out.Results != nil {
			brought += len(out.Results.Hits)
		}
		retrieved = retrieved || out.Refused == "" && (out.Results != nil || out.Page != nil)
	}
	a.count(t.malformed)
	if a.found.iterations > searches {
		a.noProgress.add(len(a.found.hits)-known, brought)
	}
	a.fresh = a.countAboveFloor() - before
	return retrieved, err
}

// recordSearch records a search for the question itself. A replay does not execute the tool's own
// steps, so they do not record it.
func (a *actorLoop) recordSearch(path string, out tool.Output) {
	if a.env.first == nil || out.Results == nil || out.Query == nil {
		return
	}
	if out.Query.Filter.IsZero() && len(out.Query.Collections) == 0 && out.Query.Walk == assay.WalkNear {
		a.env.first.record(path, *out.Results)
	}
}

// countAboveFloor returns the number of hits at or above the relevance floor.
func (a *actorLoop) countAboveFloor() int {
	n := 0
	for _, h := range a.found.hits {
		if h.Scores.Relevance >= a.env.Limits.Floor {
			n++
		}
	}
	return n
}

// observe adds the result of a call.
func (a *actorLoop) observe(c tool.Call, out tool.Output) tool.Observation {
	obs := a.session.Show(c, out)
	sq := &a.found
	switch {
	case out.Refused != "":
	case out.Results != nil:
		a.searched(*out.Query, *out.Results)
	case out.Page != nil:
		sq.addHits(obs.Hits)
	case out.Summary != nil:
		sq.notes.outcome(role.SummariserTask, out.Summary.Outcome)
	case out.Contrast != nil:
		sq.notes.outcome(role.ComparerTask, out.Contrast.Outcome)
	case out.Extraction != nil:
		sq.notes.outcome(role.ExtractorTask, out.Extraction.Outcome)
	}
	return obs
}

// searched adds the results of a search or a walk. The terms of the question come only from searches
// without a filter; each search includes the question.
func (a *actorLoop) searched(q assay.Query, found assay.Results) {
	sq := &a.found
	terms := sq.terms
	sq.addResults(a.env, q, found)
	sq.iterations++
	if sq.terms = terms; q.Filter.IsZero() && q.Walk == assay.WalkNear {
		sq.terms, a.asked = found.Terms, true
	}
	for _, t := range found.Terms {
		if !slices.ContainsFunc(a.terms, func(o assay.Term) bool { return o.Stem == t.Stem }) {
			a.terms = append(a.terms, t)
		}
	}
}

// compress replaces the steps before the last by a summary.
func (a *actorLoop) compress(ctx context.Context, s run.Scope) error {
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
			a.summarised = append(a.summarised, u)
		}
	}
	a.steps = slices.Clone(a.steps[last:])
	a.planned = a.plan
	return nil
}

// gradeFound grades the hits of all tools. If the actor never searched for the question without
// restrictions, weigh does so first, so that the grade considers all documents.
func (a *actorLoop) gradeFound(ctx context.Context, s run.Scope) error {
	sq := &a.found
	if !a.asked {
		stop, lacked := sq.stop, sq.shortfall
		_, err := sq.search(ctx, s, a.env, assay.Query{Text: a.env.Question})
		if err != nil && stopOf(err) == "" {
			return err
		}
		if sq.stop, sq.shortfall = stop, lacked; sq.terms == nil {
			sq.terms = a.terms
		}
	}
	if len(sq.hits) == 0 && sq.cutShort() {
		return nil
	}
	err := sq.gradeAll(ctx, s, a.env)
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		return nil
	}
	if err == nil && a.done && sq.sufficient() {
		sq.stop = assay.StopSufficient
	}
	return err
}

// reservedForAnswer returns the budget of which no more is left than grading, writing and verifying
// need after own, the actor's next calls, or "". If the actor used it up, its hits could not be
// used.
func (e Env) reservedForAnswer(s run.Scope, own assay.Usage) assay.Stop {
	var calls, tokens assay.Usage
	for _, name := range []string{role.GraderRole, role.GeneratorRole, role.VerifierRole} {
		if e.Began[name] != "" {
			calls.Calls++
			tokens.InputTokens += e.Limits.ContextTokens/2 + 1000
		}
	}
	if e.Began[role.ActorRole] != "" && calls.Calls > 0 {
		calls.Calls += own.Calls
		tokens.InputTokens += own.InputTokens
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
