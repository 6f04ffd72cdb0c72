package strategy

import (
	"context"
	"maps"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// An Env is what a strategy works with.
type Env struct {
	Request
	Tools
	Limits   Limits
	Settings Settings

	// Stream, if not nil, receives what models write while they write it, with the path of the
	// step. Nothing of it is verified. Calls of parallel branches mix.
	Stream func(path string, d llm.Delta)

	state
}

// A Request is a question, with what the caller may see and what was known when the run began.
type Request struct {
	Question     string
	History      []assay.Turn // the latest turns of the conversation before the question, oldest first
	EarlierTurns int          // turns before those
	Collections  []string     // empty: all
	Filter       assay.Filter // of the caller; narrowed, never widened
	Access       assay.Access

	// Sections are the headings that an answer may have. A statement under another one stands
	// under none.
	Sections []string

	// Outline is the plan for the question as asked, made by grammar before the run, so that
	// Auto takes no step for it. Nil: the planner is asked.
	Outline *role.Plan

	// NamedCollections are the collections that the question, or the conversation before it,
	// names, of those that the caller may see.
	NamedCollections []string

	// Began names the models of the roles when the run began, by role. A role that is not in
	// it was local. The path of the run depends on it.
	Began map[string]string

	// ReaderModel names the reader when the run began; empty: there was none.
	ReaderModel string
}

// Tools are what a run may use. Every use is a step of the run.
type Tools struct {
	Retriever assay.Retriever
	Content   Content
	Roles     Roles

	// Services names the encoder and the reranker that searches may call, if they are
	// services. It is for the record.
	Services string

	// Web searches the web. Nil: the question may not be searched for there, and NoWeb says
	// why, in words that follow "the web was not searched: ".
	Web   Web
	NoWeb string

	// Managed is a service that answers questions by itself; nil: there is none.
	Managed Managed

	// Earlier are runs whose answers may be the answer to the question. Cache, which is
	// required if there are any, has these answers.
	Earlier []Earlier
	Cache   Cache
}

// The state of a question within its run.
type state struct {
	asked     string // the question as the caller wrote it; empty: as Question is
	rewritten bool   // by a model, to be understood without the conversation
	whole     string // the question with the names of its collections; empty: as Question is

	span      []string // collections that are searched separately; empty: all together
	spanNamed bool     // the question names them
	placed    bool     // the question names the only collection that is searched

	first         *firstSearch // the hits of the search for the question itself; nil: not recorded
	untold        untold       // what a follow-up leaves open
	picked        string       // the name of the chosen meaning, which alone is read; empty: all are
	eachForItself bool         // the parts are the same question about different things, whose answers may differ
	versions      bool         // and these are versions of one document

	compares bool // the question compares things; evidence is needed for each of them
	steps    bool // the question takes several steps; the evidence of an earlier one need not hold the answer

	advice []string // for the generator: what the last draft lacked
}

// writer names the model that was the generator when the run began; empty: the local one was.
func (e Env) writer() string { return e.Began[role.GeneratorRole] }

// withoutWriter returns e for a generator that is no model.
func (e Env) withoutWriter() Env {
	e.Began = maps.Clone(e.Began)
	delete(e.Began, role.GeneratorRole)
	return e
}

func (e Env) withDefaults() Env {
	e.Limits, e.Settings = e.Limits.withDefaults(), e.Settings.withDefaults()
	return e
}

// Content reads the documents that hits are from.
type Content interface {
	// ACL returns the ACL of a document, the last one if it was deleted; assay.ErrNotFound if
	// none is known.
	ACL(ctx context.Context, id string) (assay.ACL, error)

	// Version returns one version, current or kept; else assay.ErrNotFound.
	Version(ctx context.Context, id, version string) (assay.Document, error)
}

// Roles do the jobs of a strategy. The first four are required, the others by the strategies
// that use them.
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
	AnswerGrader    role.AnswerGrader
	Extractor       role.Extractor
	Summariser      role.Summariser
	Comparer        role.Comparer
	Clarifier       role.Clarifier
	Actor           role.Actor

	// Reader reads the evidence for conflicts, and for replacements of refused statements. It
	// is required if ReaderModel names one, except in a replay.
	Reader llm.Reader

	// Small writes the first draft for a simple question, and Generator the second. Nil:
	// Generator writes all drafts.
	Small role.Generator

	// Quoter quotes the passages if a model wrote nothing that can be used, or the run was cut
	// short before; nil: then there is no answer. QuoteVerifier verifies the quotations
	// without a model; nil: Verifier does.
	Quoter        role.Generator
	QuoteVerifier role.Verifier

	// Models names the model of each role, by role; a role that is not in it is local. It is
	// for the record and decides nothing.
	Models map[string]string
}

// Limits bound a strategy. Zero fields mean the defaults.
type Limits struct {
	Iterations int `json:"iterations,omitempty" yaml:"iterations"` // searches per sub-question; 4
	Seconds    int `json:"seconds,omitempty" yaml:"seconds"`       // for the searches and grades of a sub-question; 12
	Candidates int `json:"candidates,omitempty" yaml:"candidates"` // hits per search; 20
	Keep       int `json:"keep,omitempty" yaml:"keep"`             // hits per sub-question that become evidence; 5

	// ContextTokens is how much evidence a generator is given to read, for all sub-questions
	// together; 6000.
	ContextTokens int `json:"context_tokens,omitempty" yaml:"context_tokens"`

	Parts int           `json:"parts,omitempty" yaml:"parts"` // sub-questions that are looked up; others are reported as missing; 6
	Floor float64       `json:"floor,omitempty" yaml:"floor"` // relevance under which a hit does not count; 0.5
	Held  float64       `json:"held,omitempty" yaml:"held"`   // least probability that the passages hold the answer, for graders that estimate it; local.DefaultHeld
	Wall  time.Duration `json:"wall_ns,omitempty" yaml:"-"`   // of the run; searching ends at three quarters of it; 12 s

	// Passages is the number of passages that the generator is given, if as many were found.
	// Strategies are compared with it. 0: no fixed number.
	Passages int `json:"passages,omitempty" yaml:"-"`

	// Alone is the relevance from which a model is given only one hit, clearly ahead of the
	// others, for a question that asks for one thing. 0, the default, is never: it costs more
	// evidence than it saves (docs/strategies.md).
	Alone float64 `json:"alone,omitempty" yaml:"alone"`

	// How searches order their hits, see assay.Query.
	VectorWeight float64 `json:"vector_weight,omitempty" yaml:"-"`
	Unranked     bool    `json:"unranked,omitempty" yaml:"-"`
}

// defaultLimits are the limits that zero fields stand for.
var defaultLimits = Limits{Iterations: 4, Seconds: 12, Candidates: 20, Keep: 5, ContextTokens: 6000, Parts: 6, Floor: 0.5, Held: local.DefaultHeld, Wall: 12 * time.Second}

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
	or(&l.Held, below.Held)
	or(&l.Wall, below.Wall)
	or(&l.Passages, below.Passages)
	or(&l.Alone, below.Alone)
	or(&l.VectorWeight, below.VectorWeight)
	l.Unranked = l.Unranked || below.Unranked
	return l
}
