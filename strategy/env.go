package strategy

import (
	"context"
	"maps"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// An Env holds the input, tools and state of a strategy.
type Env struct {
	Request
	Tools
	Limits   Limits
	Settings Settings

	// Stream, if not nil, receives the output of models while they write it, with the path of the
	// step. The output is unverified. Calls of parallel branches mix.
	Stream func(path string, d llm.Delta)

	// After, if not nil, is called by Reflect after each node except the finaliser. An error ends the
	// strategy with that error.
	After func(ctx context.Context, p Progress) error

	state
}

// A Request is a question, the caller's rights, and the facts known when the run began.
type Request struct {
	Question     string
	History      []assay.Turn // the latest turns of the conversation before the question, oldest first
	EarlierTurns int          // turns before those
	Collections  []string     // empty: all
	Filter       assay.Filter // the caller's; it is narrowed, never widened
	Access       assay.Access

	// Sections are the headings that an answer may have. A statement with another heading gets
	// none.
	Sections []string

	// Outline is a plan for the question as asked, made by grammar before the run so that Auto
	// needs no step for it. If it is nil, the planner is asked.
	Outline *role.Plan

	// NamedCollections are those of the caller's collections that the question, or the conversation
	// before it, names.
	NamedCollections []string

	// Began names the model of each role when the run began. A role that is missing was local. The
	// path of the run depends on it.
	Began map[string]string

	// ReaderModel names the reader when the run began, or is empty if there was none.
	ReaderModel string
}

// Tools are the services that a run may use. Every use is a step of the run.
type Tools struct {
	Retriever assay.Retriever
	Content   Content
	Roles     Roles

	// Services names the remote encoder and reranker that searches may call. It is only recorded.
	Services string

	// Web searches the web. If it is nil, the question may not be searched for there, and NoWeb is
	// the reason, worded to follow "the web was not searched: ".
	Web   Web
	NoWeb string

	// Catalogue lists the collections that the caller may search. It is called only if Collections
	// is empty and the evidence does not suffice. It may be nil.
	Catalogue func(context.Context) ([]string, error)

	// Managed is a service that answers questions by itself. It may be nil.
	Managed Managed

	// Strategies are strategies besides those of this package, for Ask.
	Strategies []Spec

	// Earlier lists runs whose answers may be reused. Cache holds these answers and is required if
	// Earlier is not empty.
	Earlier []Earlier
	Cache   Cache
}

// state is the state of a question within its run.
type state struct {
	asked     string // the question as the caller wrote it; empty: same as Question
	rewritten bool   // a model rewrote it to be understood without the conversation

	understood string // the whole question, as asked or, of a follow-up, as it was understood; empty: same as Question

	fullQuestion string // the question with the names of its collections; empty: same as Question

	splitCollections []string // collections that are searched separately; empty: all together
	splitNamed       bool     // the question names them
	oneCollection    bool     // the question names the only collection that is searched

	searches      *searches            // of the run
	first         *firstSearch         // hits of the search for the question itself; nil: not recorded
	unresolved    unresolvedReferences // unresolved words of a follow-up
	chosenMeaning string               // name of the chosen meaning, whose passages alone are read; empty: all are
	mayDiffer     bool                 // the parts ask the same of different things, so their answers may differ
	versions      bool                 // the parts are versions of one document

	compares bool // the question compares things, each of which needs evidence
	revises  bool // the planner may revise the plan after each hop
	steps    bool // the question takes several steps; evidence for an earlier one need not contain the answer

	advice []string         // for the generator: shortcomings of the last draft
	inLoop bool             // another search may follow the draft
	subs   []role.SubAnswer // for the generator: verified answers to the sub-questions
}

// writer names the model that was the generator when the run began, or "" for the local one.
func (e Env) writer() string { return e.Began[role.GeneratorRole] }

// withoutWriter returns e with a generator that is not a model.
func (e Env) withoutWriter() Env { return e.withoutModel(role.GeneratorRole) }

// withLocalGrader returns e with the local grader.
func (e Env) withLocalGrader() Env {
	e.Roles.Grader = local.Grader{Reader: e.Roles.Reader}
	return e.withoutModel(role.GraderRole)
}

// judgingLocally returns e with the local judge.
func (e Env) judgingLocally() Env {
	e.Roles.Judge = local.Judge{Reader: e.Roles.Reader}
	return e.withoutModel(role.JudgeRole)
}

// withoutModel returns e for a role that no model does.
func (e Env) withoutModel(name string) Env {
	e.Began, e.Roles.Models = maps.Clone(e.Began), maps.Clone(e.Roles.Models)
	delete(e.Began, name)
	delete(e.Roles.Models, name)
	return e
}

func (e Env) withDefaults() Env {
	e.Limits, e.Settings = e.Limits.withDefaults(), e.Settings.withDefaults()
	if e.searches == nil {
		e.searches = &searches{}
	}
	return e
}

// Content reads the documents of hits.
type Content interface {
	// ACL returns the ACL of a document, the last one if the document was deleted. It returns
	// assay.ErrNotFound if none is known.
	ACL(ctx context.Context, id string) (assay.ACL, error)

	// Version returns one version, current or retained, or assay.ErrNotFound.
	Version(ctx context.Context, id, version string) (assay.Document, error)
}

// Roles do the tasks of a strategy. All seven are required.
type Roles struct {
	Planner   role.Planner
	Rewriter  role.Rewriter
	Grader    role.Grader
	Generator role.Generator
	Verifier  role.Verifier
	Judge     role.Judge
	Actor     role.Actor

	// Reader reads the evidence for conflicts and for replacements of refused statements. It is
	// required if ReaderModel names one, except in a replay.
	Reader llm.Reader

	// Small writes the first draft for a simple question, and Generator the second. If Small is
	// nil, Generator writes all drafts.
	Small role.Generator

	// Quoter quotes the passages if a model wrote nothing usable, or the run was cut short before.
	// If it is nil, there is no answer then. QuoteVerifier verifies the quotations without a model;
	// nil means Verifier.
	Quoter        role.Generator
	QuoteVerifier role.Verifier

	// Relevance grades the whole answer at the end. Without it no answer is complete.
	Relevance role.AnswerGrader

	// Models names the model of each role. A role that is missing is local. It is only recorded and
	// decides nothing.
	Models map[string]string
}

// Limits bound a strategy. Zero fields mean their defaults.
type Limits struct {
	Iterations int `json:"iterations,omitempty" yaml:"iterations"` // searches per sub-question; 4
	Seconds    int `json:"seconds,omitempty" yaml:"seconds"`       // for the searches and grades of a sub-question; 12
	Candidates int `json:"candidates,omitempty" yaml:"candidates"` // hits per search; 20
	Keep       int `json:"keep,omitempty" yaml:"keep"`             // hits per sub-question that become evidence; 5

	// ContextTokens is the size of the evidence that a generator reads, for all sub-questions
	// together; 6000.
	ContextTokens int `json:"context_tokens,omitempty" yaml:"context_tokens"`

	Parts            int           `json:"parts,omitempty" yaml:"parts"` // sub-questions that are searched for; others are reported as missing; 6
	Floor            float64       `json:"floor,omitempty" yaml:"floor"` // relevance below which a hit does not count; 0.5
	MinAnswerability float64       `json:"held,omitempty" yaml:"held"`   // least probability that the passages hold the answer, for graders that estimate it; local.DefaultMinAnswerability
	Wall             time.Duration `json:"wall_ns,omitempty" yaml:"-"`   // of the run; searching ends at three quarters of it; 12 s

	// Passages is the fixed number of passages given to the generator, if as many were found. It
	// serves to compare strategies. 0 means no fixed number.
	Passages int `json:"passages,omitempty" yaml:"-"`

	// Alone is the relevance from which a model is given only one hit, clearly ahead of the others,
	// for a question that asks for one thing. 0, the default, disables this: it costs more evidence
	// than it saves (docs/strategies.md).
	Alone float64 `json:"alone,omitempty" yaml:"alone"`

	// Ordering of hits, see assay.Query.
	VectorWeight float64 `json:"vector_weight,omitempty" yaml:"-"`
	Unranked     bool    `json:"unranked,omitempty" yaml:"-"`

	BM25 assay.BM25 `json:"bm25,omitzero" yaml:"-"` // parameters of the score by words
}

// defaultLimits replace zero fields of Limits.
var defaultLimits = Limits{Iterations: 4, Seconds: 12, Candidates: 20, Keep: 5, ContextTokens: 6000, Parts: 6, Floor: 0.5, MinAnswerability: local.DefaultMinAnswerability, Wall: 12 * time.Second}

func (l Limits) withDefaults() Limits { return l.Over(defaultLimits) }

// Over returns l with unset fields taken from below.
func (l Limits) Over(below Limits) Limits {
	or(&l.Iterations, below.Iterations)
	or(&l.Seconds, below.Seconds)
	or(&l.Candidates, below.Candidates)
	or(&l.Keep, below.Keep)
	or(&l.ContextTokens, below.ContextTokens)
	or(&l.Parts, below.Parts)
	or(&l.Floor, below.Floor)
	or(&l.MinAnswerability, below.MinAnswerability)
	or(&l.Wall, below.Wall)
	or(&l.Passages, below.Passages)
	or(&l.Alone, below.Alone)
	or(&l.VectorWeight, below.VectorWeight)
	l.Unranked = l.Unranked || below.Unranked
	l.BM25 = l.BM25.Over(below.BM25)
	return l
}
