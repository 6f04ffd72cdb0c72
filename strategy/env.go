package strategy

import (
	"context"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

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

	// ReaderModel names the reader when the run began; empty: there was none.
	ReaderModel string

	// Outline is the plan for the question as it was asked that follows from it alone, made
	// by grammar before the run: Auto takes no step for it. Nil: the planner is asked.
	Outline *role.Plan

	// NamedCollections are the collections that the question, or the conversation before
	// it, names, of those that the asker may see.
	NamedCollections []string

	span      []string // collections that are searched each for itself; empty: all together
	spanNamed bool     // the question names them
	placed    bool     // the question names the only one that is searched
	whole     string   // the question with their names; empty: it is the question

	first         *firstSearch // what the search for the question itself brought; nil: nobody wants to know
	untold        untold       // what a follow-up leaves open
	picked        string       // the name of what was chosen and alone is read; empty: all is
	eachForItself bool         // the parts are the same question about different things: what they say may differ
	versions      bool         // and these are versions of one document

	compares bool // the question compares things: of all of them something has to be found
	steps    bool // the question takes several steps: what leads to another one need not hold its answer

	asked     string // the question as whoever asks has written it; empty: as Question is
	rewritten bool   // by a model, to understand it without the conversation

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
	AnswerGrader    role.AnswerGrader
	Extractor       role.Extractor
	Summariser      role.Summariser
	Comparer        role.Comparer
	Clarifier       role.Clarifier
	Actor           role.Actor

	// Reader reads the evidence for conflicts and for what may stand in the place of a
	// refused statement. It is required where ReaderModel names one, but by a replay.
	Reader llm.Reader

	// Small writes the first draft for a simple question, and Generator the second; nil:
	// Generator writes all.
	Small role.Generator

	// Quoter quotes the passages where a model wrote nothing that can be used, or the run
	// was cut short before; nil: then there is no answer. QuoteVerifier verifies what it
	// quotes, and asks no model; nil: Verifier does.
	Quoter        role.Generator
	QuoteVerifier role.Verifier

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
	Held  float64       `json:"held,omitempty" yaml:"held"`   // how likely passages have to hold the answer for one to be given, by a grader that can tell; local.DefaultHeld
	Wall  time.Duration `json:"wall_ns,omitempty" yaml:"-"`   // of the run; searching ends at three quarters of it; 12 s

	// Passages is how many passages the generator is handed, no more, and no fewer while
	// as many were found: so strategies are compared. 0: there is no such rule.
	Passages int `json:"passages,omitempty" yaml:"-"`

	// Alone is the relevance from which one hit, clearly ahead of the others, is all that a
	// model is handed of a question that asks for one thing. 0: never, which is the default,
	// for it costs more evidence than it is worth: see docs/strategies.md.
	Alone float64 `json:"alone,omitempty" yaml:"alone"`

	// How searches order what they find, see assay.Query.
	VectorWeight float64 `json:"vector_weight,omitempty" yaml:"-"`
	Unranked     bool    `json:"unranked,omitempty" yaml:"-"`
}

// defaultLimits are the limits that zero fields stand for.
var defaultLimits = Limits{Iterations: 4, Candidates: 20, Keep: 5, ContextTokens: 6000, Parts: 6, Floor: 0.5, Held: local.DefaultHeld, Wall: 12 * time.Second}

func (l Limits) withDefaults() Limits { return l.Over(defaultLimits) }

// Over returns l with the fields that are not set as below has them.
func (l Limits) Over(below Limits) Limits {
	or(&l.Iterations, below.Iterations)
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
