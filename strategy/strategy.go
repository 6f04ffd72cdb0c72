// Package strategy holds the ways of going about a question, one per file. A
// strategy is an ordinary function over a run: it plans, searches, grades and
// writes through the roles it is given, makes every effect a step of the run,
// and ends in the same finish, which cuts claims, verifies and cites them and
// sets the status.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A Func goes about one question. It reads no clock, random source or map order
// but through the run, so that a replay takes the same path. The answer lacks
// Run, Usage and ElapsedMS, which belong to the run.
//
// Bad luck is an answer with an honest status; an error means that the run
// could not go on (cancelled, journal not writable, invalid filter).
type Func func(ctx context.Context, s run.Scope, env Env) (assay.Answer, error)

// strategies are all of them, the default first.
var strategies = []struct {
	name string
	ask  Func
}{
	{"auto", Auto},
	{"static", Static},
	{"advanced", Advanced},
	{"corrective", Corrective},
	{"self", Self},
	{"crag", CRAG},
	{"adaptive", Adaptive},
	{"fusion", Fusion},
	{"judge", Judge},
	{"reflect", Reflect},
	{"react", React},
	{"multihop", Multihop},
	{"graph", Graph},
	{"agent", Agent},
	{"managed", AskManaged},
}

// Names lists the strategies, the default first.
func Names() []string {
	names := make([]string, len(strategies))
	for i, s := range strategies {
		names[i] = s.name
	}
	return names
}

// Lookup returns the strategy of that name; "" is auto. An unknown name is
// assay.ErrInvalid.
func Lookup(name string) (Func, error) {
	for _, s := range strategies {
		if s.name == name || name == "" {
			return s.ask, nil
		}
	}
	return nil, fmt.Errorf("unknown strategy %q, want one of %s: %w", name, strings.Join(Names(), ", "), assay.ErrInvalid)
}

// Env is what a strategy works with: the question, and what it may reach on
// behalf of whoever asks.
type Env struct {
	Question     string
	History      []assay.Turn // the newest of the conversation before the question, the oldest first
	EarlierTurns int          // of it, before those
	Earlier      []Earlier    // runs whose answers may be that to the question; Ask asks Cache for them
	Cache        Cache        // required where there are any
	Collections  []string     // empty: all
	Filter       assay.Filter // the caller's; narrowed, never widened
	Access       assay.Access
	Retriever    assay.Retriever
	Content      Content
	Roles        Roles
	Limits       Limits
	Settings     Settings

	// Services names the encoder and the reranker that searches may ask, where they are
	// services; for the record.
	Services string

	// Began says which model did a role when the run began, by the role's name: what the
	// run's way depends on. One that is not in it was done locally.
	Began map[string]string

	// Writer is the model that was the generator when the run began; empty: the local
	// one was.
	Writer string

	// SmallWriter is the model that was the small generator then; empty: there was none.
	SmallWriter string

	// Sections are the headings that an answer may have; a statement under another one
	// stands under none.
	Sections []string

	// Clarify has a question that can mean several things asked back, or answered for each
	// of them. Runs of versions that could not do so were begun without it.
	Clarify bool

	// Salvage has a run quote passages that had no calls, tokens, money or time left before
	// anything was written. Runs of versions that could not do so were begun without it.
	Salvage bool

	// FloorFirst has auto search before it plans, where the local planner does that, and
	// know questions that take several steps. Runs of versions that could not do so were
	// begun without it.
	FloorFirst bool

	// Catalogue are the collections that the question, or the conversation before it, names,
	// of those that the asker may see.
	Catalogue []string

	span      []string // collections that are searched each for itself; empty: all together
	spanNamed bool     // the question names them
	whole     string   // the question with their names; empty: it is the question

	first         *firstSearch // what the search for the question itself brought; nil: nobody wants to know
	untold        untold       // what a follow-up leaves open
	eachForItself bool         // the parts are the same question about different things: what they say may differ

	asked string // the question as whoever asks has written it; empty: as Question is

	// Web is the open web, where the question may be looked up there; nil: it may not, and
	// NoWeb says why, in words that follow "the web was not searched: ".
	Web   Web
	NoWeb string

	// Managed is a service that answers questions by itself; nil: there is none.
	Managed Managed

	advice []string // for the generator: what a draft before was found wanting in

	// Stream, when set, is given what models write while they write it, with the
	// path of the step. Nothing of it is verified. Calls of parallel branches mix.
	Stream func(path string, d llm.Delta)
}

func (e Env) withDefaults() Env {
	e.Limits, e.Settings = e.Limits.withDefaults(), e.Settings.withDefaults()
	return e
}

// Content reads the documents that hits point into; a store's content is one.
type Content interface {
	// ACL returns the ACL that decides now who may see a document, of one that
	// was deleted its last; assay.ErrNotFound if none is known.
	ACL(ctx context.Context, id string) (assay.ACL, error)

	// Version returns one version, current or kept; else assay.ErrNotFound.
	Version(ctx context.Context, id, version string) (assay.Document, error)
}

// Roles are who does the jobs. The first four are required, the others by the
// strategies that hand them out.
type Roles struct {
	Planner   role.Planner
	Grader    role.Grader
	Generator role.Generator
	Verifier  role.Verifier

	Rewriter        role.Rewriter
	Router          role.Router
	Querier         role.Querier
	Scorer          role.Scorer
	RetrievalGrader role.RetrievalGrader
	SupportGrader   role.SupportGrader
	Analyst         role.Analyst
	Reflector       role.Reflector
	Judge           role.Judge
	Critic          role.Critic
	Extractor       role.Extractor
	Summariser      role.Summariser
	Comparer        role.Comparer
	Clarifier       role.Clarifier
	Actor           role.Actor

	// Small writes the first draft for a simple question, and Generator the second; nil:
	// Generator writes all.
	Small role.Generator

	// Quoter writes when nothing that a model has written stands; nil: then there is no
	// answer.
	Quoter role.Generator

	// Models says which model does a role, by the role's name; one that is not here is
	// done locally. It is for the record: it decides nothing.
	Models map[string]string
}

// Limits bound a strategy. Zero fields mean the defaults.
type Limits struct {
	Iterations int `json:"iterations,omitempty" yaml:"iterations"` // searches per sub-question; 4
	Candidates int `json:"candidates,omitempty" yaml:"candidates"` // hits per search; 20
	Keep       int `json:"keep,omitempty" yaml:"keep"`             // hits per sub-question that become evidence; 5

	// ContextTokens is how much of the evidence a generator is given to read, for
	// all sub-questions together; 6000.
	ContextTokens int `json:"context_tokens,omitempty" yaml:"context_tokens"`

	Parts int           `json:"parts,omitempty" yaml:"parts"` // sub-questions that are looked up; the others are reported as missing; 6
	Floor float64       `json:"floor,omitempty" yaml:"floor"` // relevance under which a hit does not count for a grader that goes by it; 0.5
	Wall  time.Duration `json:"wall_ns,omitempty" yaml:"-"`   // of the run; searching ends at three quarters of it; 12 s

	// Passages is how many passages the generator is handed, no more, and no fewer while
	// as many were found: so strategies are compared. 0: there is no such rule.
	Passages int `json:"passages,omitempty" yaml:"-"`

	// Alone is the relevance from which one hit, clearly ahead of the others, is all that a
	// model is handed of a question that asks for one thing. 0: never, which is the default,
	// for it costs more evidence than it is worth: see docs/strategies.md.
	Alone float64 `json:"alone,omitempty" yaml:"alone"`
}

// defaultLimits are the limits that zero fields stand for.
var defaultLimits = Limits{Iterations: 4, Candidates: 20, Keep: 5, ContextTokens: 6000, Parts: 6, Floor: 0.5, Wall: 12 * time.Second}

func (l Limits) withDefaults() Limits { return l.Over(defaultLimits) }

// Over returns l with the fields that are not set as below has them.
func (l Limits) Over(below Limits) Limits {
	or(&l.Iterations, below.Iterations)
	or(&l.Candidates, below.Candidates)
	or(&l.Keep, below.Keep)
	or(&l.ContextTokens, below.ContextTokens)
	or(&l.Parts, below.Parts)
	or(&l.Floor, below.Floor)
	or(&l.Wall, below.Wall)
	or(&l.Passages, below.Passages)
	or(&l.Alone, below.Alone)
	return l
}

// plan asks the planner. A planner that fails leaves the question whole, and the
// plan says so, as do the notes.
func (e Env) plan(ctx context.Context, s run.Scope) (role.Plan, notes, error) {
	step := run.Step{Name: "plan", Kind: assay.StepPlan, Model: e.Roles.Models[role.PlannerRole]}
	p, err := run.Group(ctx, s, step, e.Question, func(ctx context.Context, s run.Scope, question string) (role.Plan, error) {
		p, err := e.Roles.Planner.Plan(ctx, e.caller(s, searchShare), question)
		if role.Ends(ctx, err) {
			return role.Plan{}, err
		}
		switch {
		case err != nil:
			p.Failure = err.Error()
		case p.Failure == "":
			p.Failure = unplanned(p)
		}
		if p.Failure != "" {
			p.Shape, p.SubQuestions = role.Single, []role.SubQuestion{{Text: question}}
		}
		return p, nil
	})
	var said notes
	said.outcome(role.PlannerRole, p.Outcome)
	for i := range p.SubQuestions {
		p.SubQuestions[i].Text = visible.Line(p.SubQuestions[i].Text)
	}
	return p, said, err
}

// unplanned says why a plan is none; empty: it is one.
func unplanned(p role.Plan) string {
	if len(p.SubQuestions) == 0 {
		return "it planned nothing"
	}
	for i, sub := range p.SubQuestions {
		if visible.Line(sub.Text) == "" {
			return fmt.Sprintf("its sub-question %d asks nothing", i+1)
		}
		if len(sub.Text) > maxQuery {
			return fmt.Sprintf("its sub-question %d has %d bytes, more than a question may have", i+1, len(sub.Text))
		}
	}
	return ""
}

// maxQuery is the length of the longest query, in bytes, that a role can have
// searched.
const maxQuery = 8 << 10

// searchInput is what a search step records: the query and whose eyes it is
// searched with.
type searchInput struct {
	Query  assay.Query  `json:"query"`
	Access assay.Access `json:"access"`
}

// search makes one search, or where the question spans several collections one in each,
// whose results it merges. Its filter narrows the caller's own, and so do its
// collections, where it names some; a limit of 0 is that of the candidates.
//
// Searching ends at three quarters of the run's wall time, so that what was
// found by then can still be written and verified: a search that starts or is
// still going on later is assay.ErrDeadline.
func (e Env) search(ctx context.Context, s run.Scope, q assay.Query) (found assay.Results, err error) {
	itself := q.Text == e.Question && q.Filter.IsZero() && len(q.Collections) == 0
	if each := e.spans(q); len(each) > 1 {
		found, err = e.searchEach(ctx, s, q, each)
	} else {
		found, err = e.searchOne(ctx, s, q)
	}
	if itself && err == nil && e.first != nil {
		e.first.saw(s.Path(), found)
	}
	return found, err
}

// searchOne makes one search as one step.
func (e Env) searchOne(ctx context.Context, s run.Scope, q assay.Query) (assay.Results, error) {
	q.Filter = assay.And(e.Filter, q.Filter)
	if q.Collections = e.within(q.Collections); q.Limit == 0 {
		q.Limit = e.Limits.Candidates
	}
	q.Limit = max(q.Limit, e.Limits.Passages) // else a search for few would hand on fewer than are asked for
	in := searchInput{Query: q, Access: e.Access}
	step := run.Step{Name: "search", Kind: assay.StepSearch, Model: e.Services}
	left := leftFor(s)
	return run.Do(ctx, s.Until(e.Limits.Wall*3/4), step, in, func(ctx context.Context, in searchInput) (assay.Results, assay.Usage, error) {
		meter := llm.NewMeter(left)
		found, err := e.Retriever.Retrieve(llm.WithMeter(ctx, meter), e.Access, in.Query)
		usage := meter.Spent()
		usage.Searches = 1
		return found, usage, err
	})
}

// within returns the collections to search of those named: they narrow the caller's,
// and where none of them is one of those it is the caller's that are searched.
func (e Env) within(named []string) []string {
	if len(e.Collections) == 0 {
		return named
	}
	both := slices.DeleteFunc(slices.Clone(named), func(c string) bool { return !slices.Contains(e.Collections, c) })
	if len(both) == 0 {
		return e.Collections
	}
	return both
}

// leftFor returns what a search in s may spend on encoders and rerankers that are
// services: what is left. It can do without them.
func leftFor(s run.Scope) assay.Usage {
	of := func(one assay.Usage) int {
		switch n := s.Affords(one); n {
		case 0:
			return -1 // nothing
		case math.MaxInt:
			return 0 // no limit
		default:
			return n
		}
	}
	return assay.Usage{
		Calls: of(assay.Usage{Calls: 1}), InputTokens: of(assay.Usage{InputTokens: 1}), CostMicros: int64(of(assay.Usage{CostMicros: 1})),
	}
}

// grade asks the grader. A grader that fails has not found the evidence
// sufficient.
func (e Env) grade(ctx context.Context, s run.Scope, f finding) (role.Grade, error) {
	in := role.GradeInput{
		Question: f.question,
		Hits:     f.hits[:min(len(f.hits), e.Limits.Candidates)],
		Terms:    f.terms,
		Tried:    f.tried(),
		Floor:    e.Limits.Floor,
	}
	step := run.Step{Name: "grade", Kind: assay.StepGrade, Model: e.Roles.Models[role.GraderRole]}
	return run.Group(ctx, s, step, in, func(ctx context.Context, s run.Scope, in role.GradeInput) (role.Grade, error) {
		g, err := e.Roles.Grader.Grade(ctx, e.caller(s, searchShare), in)
		if role.Ends(ctx, err) {
			return role.Grade{}, err
		}
		if err != nil {
			reason := "the grader failed: " + err.Error()
			g = role.Grade{Verdict: assay.Insufficient, Missing: []string{in.Question}, Reason: reason, Outcome: role.Outcome{Failure: err.Error()}}
		}
		return g, nil
	})
}

// caller returns the caller for one role's job, which is the group whose scope is s and
// which may take that share of the time that the run has left.
func (e Env) caller(s run.Scope, share float64) role.Caller {
	return &caller{scope: s, stream: e.Stream, share: share}
}

// stopOf returns why the run has to stop searching, when err says that it ran
// out of something, else "".
func stopOf(err error) assay.Stop {
	if stop, ok := run.StopReason(err); ok {
		return stop
	}
	if errors.Is(err, assay.ErrBudget) { // a role's own, which does not say of what
		return assay.StopCallBudget
	}
	return ""
}
