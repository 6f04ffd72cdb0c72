package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// traceRoutes show the steps of runs, and repeat, compare, fork and prove runs.
func traceRoutes() []Route {
	return []Route{
		page("/runs/{id}/trace", "run.trace", "Run", showTrace),
		page("/runs/{id}/trace/{step}", "run.step", "Run", showStep),
		action("/runs/{id}/replay", "run.replay", "Replay", replayRun),
		page("/runs/{id}/diff", "run.diffs", "Diff", chooseDiff),
		page("/runs/{id}/diff/{other}", "run.diff", "Diff", showDiff),
		page("/runs/{id}/fork", "run.fork", "BeginFork", showFork),
		action("/runs/{id}/fork", "run.fork.begin", "BeginFork", beginFork),
		page("/runs/{id}/proof", "run.proof", "CheckProof", showProof),
		action("/runs/{id}/trace/delete", "run.trace.delete", "DeleteRun", deleteRun),
	}
}

// A tracedRequest is what the trace shows of the request of a run.
type tracedRequest struct {
	Strategy    string             `json:"strategy"`
	Collections []string           `json:"collections"`
	Budget      assay.Budget       `json:"budget"`
	Limits      strategy.Limits    `json:"limits"`
	Local       bool               `json:"local"`
	Mode        strategy.Mode      `json:"mode"`
	Models      map[string]string  `json:"models"`
	ForkedFrom  *engine.ForkedFrom `json:"forked_from"`
}

// tracedRequestOf reads the request of a run. One that was erased has no fields.
func tracedRequestOf(r assay.Run) (q tracedRequest, err error) {
	if len(r.Request) == 0 {
		return q, nil
	}
	if err = json.Unmarshal(r.Request, &q); err != nil {
		err = fmt.Errorf("the request of run %s cannot be read: %w: %w", r.ID, assay.ErrDamaged, err)
	}
	return q, err
}

// A runHead is what all pages about one run begin with.
type runHead struct {
	Run     assay.Run
	Request tracedRequest
	Status  assay.Status // empty: no answer
	Took    time.Duration
	Tab     string // "trace", "diff", "fork" or "proof"

	Interrupted bool // it can be continued
	Hidden      string
}

// headOf returns the head of a run with its steps.
func headOf(r assay.Run, steps []engine.Step, tab string) (runHead, error) {
	asked, err := tracedRequestOf(r)
	h := runHead{Run: r, Request: asked, Tab: tab, Interrupted: r.State == assay.RunActive && !r.Live}
	if r.Answer != nil {
		h.Status, h.Took = r.Answer.Status, time.Duration(r.Answer.ElapsedMS)*time.Millisecond
	}
	if i := slices.IndexFunc(steps, isHidden); i >= 0 {
		h.Hidden = steps[i].Summary
	}
	return h, err
}

// Forks reports whether the run is a fork.
func (h runHead) Forks() bool { return h.Request.ForkedFrom != nil }

// isHidden reports whether the engine left out what a step read and wrote.
func isHidden(s engine.Step) bool { return s.Input == nil && s.Output == nil }

// tracePageSize is how many steps are on one page.
const tracePageSize = 50

// A traceFilter selects steps.
type traceFilter struct {
	Kind   string // of steps; empty: all but readings of the clock
	Show   string // "slow" or "failed"; empty: all
	Number int    // of the page, from 1
	Open   int    // number of the step that is open; 0: none
}

func traceFilterOf(q *request) traceFilter {
	f := traceFilter{Kind: q.query("kind"), Show: q.query("show"), Number: 1}
	if n, err := strconv.Atoi(q.query("page")); err == nil && n > 0 {
		f.Number = n
	}
	f.Open, _ = strconv.Atoi(q.query("open")) // anything else opens none
	return f
}

// selects reports whether a step is listed. slow is the least time of a slow step.
func (f traceFilter) selects(s engine.Step, slow time.Duration) bool {
	switch {
	case f.Kind == "" && s.Kind == assay.StepClock, f.Kind != "" && f.Kind != string(s.Kind):
		return false
	case f.Show == "slow":
		return s.Elapsed >= slow
	case f.Show == "failed":
		return s.Error != nil
	}
	return true
}

// path returns the path of a page of the same list.
func (f traceFilter) path(id string, number int) string {
	v := url.Values{}
	for name, value := range map[string]string{"kind": f.Kind, "show": f.Show} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if number > 1 {
		v.Set("page", strconv.Itoa(number))
	}
	path := runPath(id) + "/trace"
	if len(v) > 0 {
		path += "?" + v.Encode()
	}
	return path + "#steps"
}

// A tracePage is the data of a trace.
type tracePage struct {
	runHead
	Proof   *proofBadge // nil: not checked yet
	Budget  []budgetBar
	Kinds   []traceKind
	Total   time.Duration // of the time line
	Idle    time.Duration // left out of the time line
	Filter  traceFilter
	Slow    time.Duration
	Groups  []stepGroup
	Listed  int // steps that the filter selects
	Clocks  int // readings of the clock
	First   int // of the listed steps on this page, from 1
	Last    int
	Newer   string // path of the page before; empty: none
	Older   string
	Related bool // there are runs to compare with
	Form    deleteForm
}

// A deleteForm is the form that deletes a run.
type deleteForm struct{ Reason, Error string }

func showTrace(q *request) error {
	r, steps, err := q.session.Run(q.ctx(), q.path("id"))
	if errors.Is(err, assay.ErrDamaged) {
		return q.showDamaged(q.path("id"), err)
	}
	if err != nil {
		return err
	}
	return q.renderTrace(http.StatusOK, r, steps, deleteForm{})
}

// maxProofSteps is the most steps of a run whose proof is checked whenever its trace is shown.
const maxProofSteps = 300

func (q *request) renderTrace(status int, r assay.Run, steps []engine.Step, form deleteForm) error {
	head, err := headOf(r, steps, "trace")
	if err != nil {
		return err
	}
	p := tracePage{runHead: head, Filter: traceFilterOf(q), Form: form}
	if len(steps) <= maxProofSteps && q.may("CheckProof") {
		check, err := q.session.CheckProof(q.ctx(), r.ID)
		if err != nil {
			return err
		}
		badge := badgeOf(check)
		p.Proof = &badge
	}
	line := newTimeLine(steps)
	p.Total, p.Idle, p.Slow = line.total, line.idle, line.total/10
	p.Took = cmp.Or(p.Took, line.total)
	p.Budget = budgetOf(r, head.Request, steps, p.Took)
	p.Kinds = traceKinds(steps, line)
	p.list(steps, line)
	v := q.view("", "Trace: "+cut(r.Question, 80), p)
	v.Wide = true
	return q.renderStatus(status, "trace.html", v)
}

// list sets the groups of the page.
func (p *tracePage) list(steps []engine.Step, line timeLine) {
	var listed []engine.Step
	for _, s := range steps {
		if s.Kind == assay.StepClock {
			p.Clocks++
		}
		if p.Filter.selects(s, p.Slow) {
			listed = append(listed, s)
		}
	}
	listed = byGroup(listed)
	p.Listed = len(listed)
	if open := p.Filter.Open; open > 0 {
		if i := slices.IndexFunc(listed, func(s engine.Step) bool { return s.Ordinal == open-1 }); i >= 0 {
			p.Filter.Number = i/tracePageSize + 1
		}
	}
	p.Filter.Number = min(p.Filter.Number, max(1, (p.Listed+tracePageSize-1)/tracePageSize))
	from := (p.Filter.Number - 1) * tracePageSize
	to := min(from+tracePageSize, p.Listed)
	p.First, p.Last = min(from+1, to), to
	if from > 0 {
		p.Newer = p.Filter.path(p.Run.ID, p.Filter.Number-1)
	}
	if to < p.Listed {
		p.Older = p.Filter.path(p.Run.ID, p.Filter.Number+1)
	}
	began := time.Time{}
	if p.Forks() {
		began = p.Run.Created
	}
	p.Groups = groupsOf(listed[from:to], line, began, p.Filter.Open)
}

// showDamaged writes the page of a run whose stored steps do not match their hashes.
func (q *request) showDamaged(id string, err error) error {
	problem := q.pages.config.Server.Problem(q.r, err)
	badge := proofBadge{Class: "bad", Icon: "warning", Word: "Altered", Says: "What is stored of this run does not match its hashes. Do not rely on it."}
	data := struct {
		ID      string
		Proof   proofBadge
		Problem string
	}{id, badge, err.Error()}
	return q.renderStatus(problem.Status, "damaged.html", q.view("", "Altered run", data))
}

// A stepPage is the data of the page of one step.
type stepPage struct {
	runHead
	Row            stepRow
	Earlier, Later int // numbers of the steps before and after; 0: none
}

func showStep(q *request) error {
	r, steps, err := q.session.Run(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(q.path("step"))
	if err != nil || n < 1 || n > len(steps) {
		return fmt.Errorf("run %s has no step %q: %w", r.ID, q.path("step"), assay.ErrNotFound)
	}
	head, err := headOf(r, steps, "trace")
	if err != nil {
		return err
	}
	p := stepPage{runHead: head, Row: newStepRow(steps[n-1], newTimeLine(steps), wholeStep)}
	p.Earlier = n - 1
	if n < len(steps) {
		p.Later = n + 1
	}
	v := q.view("", fmt.Sprintf("Step %d", n), p)
	if q.query("part") != "" {
		return q.fragment("step.html", "step-content", v)
	}
	return q.render("step.html", v)
}

// A replayed is the result of a replay that went wrong.
type replayed struct {
	runHead
	Says     string
	Step     string // path of the step that differs; empty: the answer
	Number   int    // of the step; 0: it is not recorded
	Reason   string
	Diff     string
	Recorded block
	Given    block
	Lines    []diffSpan // of both
	Altered  bool
}

func replayRun(q *request) error {
	id := q.path("id")
	_, err := q.session.Replay(q.ctx(), id)
	if err == nil {
		return q.redirect(runPath(id)+"/trace", "The replay took the same steps and reached the same answer.")
	}
	if !errors.Is(err, assay.ErrDiverged) && !errors.Is(err, assay.ErrDamaged) {
		return err
	}
	r, steps, runErr := q.session.Run(q.ctx(), id)
	if errors.Is(runErr, assay.ErrDamaged) {
		return q.showDamaged(id, runErr)
	}
	if runErr != nil {
		return runErr
	}
	head, headErr := headOf(r, steps, "trace")
	if headErr != nil {
		return headErr
	}
	p := replayedOf(err, steps)
	p.runHead = head
	return q.render("replay.html", q.view("", "Replay", p))
}

// replayedOf returns how a replay went wrong.
func replayedOf(err error, steps []engine.Step) replayed {
	p := replayed{Says: err.Error(), Altered: errors.Is(err, assay.ErrDamaged)}
	if d, ok := errors.AsType[*run.DivergenceError](err); ok {
		p.Step, p.Reason, p.Diff = d.Path, string(d.Reason), d.Diff
		p.compare(d.Recorded, d.Given)
		if i := slices.IndexFunc(steps, func(s engine.Step) bool { return s.Path == d.Path }); i >= 0 {
			p.Number = steps[i].Ordinal + 1
		}
	}
	if d, ok := errors.AsType[*engine.ReplayError](err); ok {
		p.Reason = "the answer has another " + fieldWords(d.Field)
		p.compare(d.Stored, d.Replayed)
	}
	return p
}

func (p *replayed) compare(recorded, given json.RawMessage) {
	p.Recorded, p.Given = jsonBlock("Recorded", recorded, inlineStep), jsonBlock("Now", given, inlineStep)
	p.Lines = diffJSON(recorded, given)
}

// fieldWords returns the name of a field of JSON in words.
func fieldWords(name string) string { return strings.ReplaceAll(name, "_", " ") }

func deleteRun(q *request) error {
	id := q.path("id")
	reason, err := q.form("reason")
	if err != nil {
		return err
	}
	if reason == "" {
		r, steps, err := q.session.Run(q.ctx(), id)
		if err != nil {
			return err
		}
		return q.renderTrace(http.StatusBadRequest, r, steps, deleteForm{Error: "Say why. The reason stays in the audit log."})
	}
	if err := q.session.DeleteRun(q.ctx(), id, reason); err != nil {
		return err
	}
	return q.redirect("/", "The run is deleted. The audit log keeps that it was there, and your reason.")
}

// A budgetBar shows how much of a limit a run has used.
type budgetBar struct {
	Name, Used, Allowed string
	Value, Max          float64 // of the meter; Max 0: no limit
	Reached             bool
}

// budgetOf returns the bars of a run's limits.
func budgetOf(r assay.Run, asked tracedRequest, steps []engine.Step, took time.Duration) []budgetBar {
	used, iterations := usageOf(steps), 0
	if r.Answer != nil {
		used, iterations = r.Answer.Usage, r.Answer.Iterations
	}
	b := asked.Budget
	tokens := used.InputTokens + used.OutputTokens
	limits := strategy.Limits{Iterations: b.Iterations}.Over(asked.Mode.Limits(asked.Limits)).Over(strategy.DefaultLimits())
	parts := max(1, subQuestions(steps))
	allowed := strconv.Itoa(limits.Iterations)
	if parts > 1 {
		allowed += fmt.Sprintf(" for each of %d sub-questions", parts)
	}
	bars := []budgetBar{
		{"Iterations", strconv.Itoa(iterations), allowed, float64(iterations), float64(parts * limits.Iterations), false},
		{"Model calls", grouped(int64(used.Calls)), grouped(int64(b.Calls)), float64(used.Calls), float64(b.Calls), false},
		{"Tokens", grouped(int64(tokens)), grouped(int64(b.Tokens)), float64(tokens), float64(b.Tokens), false},
		{"Cost", cost(used.CostMicros), cost(b.CostMicros), float64(used.CostMicros), float64(b.CostMicros), false},
		{"Time", duration(took), duration(b.Wall), took.Seconds(), b.Wall.Seconds(), false},
	}
	for i := range bars {
		bars[i].Reached = bars[i].Max > 0 && bars[i].Value >= bars[i].Max
	}
	return bars
}

// usageOf adds up what steps used. A step that consists of steps used nothing itself.
func usageOf(steps []engine.Step) (sum assay.Usage) {
	for _, s := range steps {
		sum = sum.Add(s.Usage)
	}
	return sum
}

// subQuestions returns how many sub-questions were searched.
func subQuestions(steps []engine.Step) int {
	seen := map[string]bool{}
	for _, s := range steps {
		if first, _, _ := strings.Cut(s.Path, "/"); strings.HasPrefix(first, "sub[") {
			seen[first] = true
		}
	}
	return len(seen)
}
