package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/prompted"
	"github.com/assay-rag/assay/strategy"
)

// MaxQuestionBytes is the length of the longest question. Whoever has more to
// say ingests it.
const MaxQuestionBytes = 8 << 10

// How long a run may be active, end to end: one that asks no models, and one that does.
const (
	defaultWall = 12 * time.Second
	modelWall   = 120 * time.Second
)

// A Request is one question. Zero fields mean what their comments say.
type Request struct {
	Question    string       `json:"question"`    // required; at most MaxQuestionBytes of UTF-8
	Strategy    string       `json:"strategy"`    // one of strategy.Names; empty: "auto"
	Collections []string     `json:"collections"` // where to search; empty: everywhere
	Filter      assay.Filter `json:"filter"`      // keeps documents by their metadata; zero: all

	// Budget bounds the run. Zero: 4 iterations per sub-question, 12 s of wall
	// time (120 s where models are asked), and no limit on calls, tokens and cost.
	// When something runs out the answer is what was verified until then; its Stop
	// says so. A limit on cost needs the prices of all models that are asked.
	Budget assay.Budget `json:"budget"`

	// Local has every role done locally, and hits ranked so, whatever models there
	// are. An encoder that is a service is asked for vectors all the same: those of the
	// documents are its own.
	Local bool `json:"local,omitempty"`

	// Settings are the thresholds of strategies, and Limits what bounds them beside the
	// Budget; zero fields: the engine's configuration, then the defaults of each, as Mode
	// scales them.
	Settings strategy.Settings `json:"settings,omitzero"`
	Limits   strategy.Limits   `json:"limits,omitzero"` // without Wall, which is the Budget's

	// Mode says how much work the question is worth. It scales what neither Budget nor
	// Settings nor Limits set.
	Mode strategy.Mode `json:"mode,omitempty"`

	// Follows is a run whose conversation the question goes on: it may say "it" and "the
	// other one". It has to be the principal's own, and to have an answer.
	Follows string `json:"follows,omitempty"`

	// History is the conversation before the question, the oldest turn first, where who
	// asks keeps it: not beside Follows. At most 1,000 turns and 1 MiB; the newest MaxTurns
	// of them, up to MaxHistoryBytes, are what a follow-up is understood from.
	History []assay.Turn `json:"history,omitempty"`

	// Web lets strategies that can look the question up on the web, where a search of the
	// web is configured: its words leave the machine then. What the answer has from there
	// is marked. Filter and Collections say nothing of the web.
	Web bool `json:"web,omitempty"`

	// NoCache has the question gone about anew, also where an earlier run has answered it.
	NoCache bool `json:"no_cache,omitempty"`

	// Measuring says that nobody waits for the answer: an evaluation asks. Such runs are
	// no part of how users fare, and their answers are given to none of them again.
	Measuring bool `json:"measuring,omitempty"`

	// ID names the run, for who has to find it again whatever happens; there must be no run
	// of that name yet. Empty: Config.NewID does.
	ID string `json:"-"`
}

// A stored is what a run keeps to be gone on with and replayed: its request, and what
// of the engine's configuration decides which way it takes.
type stored struct {
	Request

	Models        map[string]string `json:"models,omitempty"`         // by role, when the run began; those not in it are local
	ContextTokens int               `json:"context_tokens,omitempty"` // see strategy.Limits; 0: the strategy's own
	Keep          int               `json:"keep,omitempty"`           // see strategy.Limits; 0: the strategy's own
	Keys          []prompted.Key    `json:"keys,omitempty"`           // of the metadata, that a plan could use

	Reader string `json:"reader,omitempty"` // when the run began; empty: there was none

	// Of a conversation, whose newest turns are the request's History: how many turns were
	// before those, and the documents that the answers in it were made from. Who may not see
	// those may not see the run.
	EarlierTurns int      `json:"earlier_turns,omitempty"`
	Rests        []string `json:"rests,omitempty"`

	// NamedCollections are the collections that the question, or the conversation before
	// it, names, of those that who asks may see.
	NamedCollections []string `json:"catalogue,omitempty"`

	// Outline is the plan that the question's grammar gave when the run began, where auto
	// is asked and no model plans; nil: the run plans.
	Outline *role.Plan `json:"outline,omitempty"`

	// Who was configured when the run began to search the web, where the request allows it,
	// and to answer by itself, where the strategy asks that; empty: nobody.
	Searcher string `json:"searcher,omitempty"`
	Managed  string `json:"managed,omitempty"`

	// Of the cache of answers: the key under which the answer is looked for and offered,
	// and the runs under it whose questions are like this one.
	Key     string             `json:"key,omitempty"`
	Earlier []strategy.Earlier `json:"earlier,omitempty"`
}

// complete checks r and fills in what is left to the defaults; wall is that of the
// wall time.
func (r Request) complete(wall time.Duration) (Request, error) {
	r.Question = strings.TrimSpace(r.Question)
	switch {
	case r.Question == "":
		return r, fmt.Errorf("the question is empty: %w", assay.ErrInvalid)
	case len(r.Question) > MaxQuestionBytes:
		return r, fmt.Errorf("the question is longer than %d bytes; put long texts into a document: %w", MaxQuestionBytes, assay.ErrInvalid)
	case !utf8.ValidString(r.Question):
		return r, fmt.Errorf("the question is not valid UTF-8: %w", assay.ErrInvalid)
	}
	r.Question = strings.Map(func(c rune) rune { // a stray control character asks nothing
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, r.Question)
	if r.Question = strings.TrimSpace(r.Question); r.Question == "" {
		return r, fmt.Errorf("the question is empty: %w", assay.ErrInvalid)
	}
	r.Strategy = cmp.Or(r.Strategy, strategy.Names()[0])
	if _, err := strategy.Lookup(r.Strategy); err != nil {
		return r, err
	}
	if err := r.Mode.Check(); err != nil {
		return r, err
	}
	if err := r.checkHistory(); err != nil {
		return r, err
	}
	b := &r.Budget
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"iterations", int64(b.Iterations)}, {"calls", int64(b.Calls)}, {"tokens", int64(b.Tokens)}, {"cost", b.CostMicros}, {"wall time", int64(b.Wall)},
	} {
		if limit.value < 0 {
			return r, fmt.Errorf("the budget of %s is negative: %w", limit.name, assay.ErrInvalid)
		}
	}
	b.Wall = cmp.Or(b.Wall, r.Mode.Wall(wall))
	r.Limits.Wall = 0 // the budget's
	if r.Collections == nil {
		r.Collections = []string{}
	}
	return r, nil
}

// limits are what bounds the strategy of a request: of the same bound in several places
// the budget's counts first, then that of the request, then that of the models.
func (r stored) limits() strategy.Limits {
	return strategy.Limits{Iterations: r.Budget.Iterations, Wall: r.Budget.Wall}.Over(r.Limits).Over(strategy.Limits{ContextTokens: r.ContextTokens, Keep: r.Keep})
}
