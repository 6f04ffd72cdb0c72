package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// MaxQuestionBytes is the maximum length of a question. Longer texts should be ingested.
const MaxQuestionBytes = 8 << 10

// Default wall times of a run without models and of one with models.
const (
	defaultWall = 12 * time.Second
	modelWall   = 120 * time.Second
)

// A Request is one question. Zero fields have the meaning that their comments state.
type Request struct {
	Question    string       `json:"question"`    // required; at most MaxQuestionBytes of UTF-8
	Strategy    string       `json:"strategy"`    // one of strategy.Names or Config.Strategies; empty: "auto"
	Collections []string     `json:"collections"` // collections to search; empty: all
	Filter      assay.Filter `json:"filter"`      // selects documents by their metadata; zero: all

	// Budget bounds the run. Zero: 4 iterations per sub-question, 12 s of wall time (120 s if
	// models are used), and no limit on calls, tokens or cost. When a limit is reached, the
	// answer holds the claims verified so far and its Stop names the limit. A cost limit requires
	// the prices of all models in use.
	Budget assay.Budget `json:"budget"`

	// Local makes every role and the ranking local, even if models are configured. An encoder
	// that is a service is still called, because the documents' vectors come from it.
	Local bool `json:"local,omitempty"`

	// Settings are the thresholds of strategies, and Limits their bounds besides Budget. Zero
	// fields take the engine's configuration, then the strategy's defaults, scaled by Mode.
	Settings strategy.Settings `json:"settings,omitzero"`
	Limits   strategy.Limits   `json:"limits,omitzero"` // except Wall, which belongs to Budget

	// Mode is the effort for the question. It scales the values that Budget, Settings and Limits
	// leave unset.
	Mode strategy.Mode `json:"mode,omitempty"`

	// Follows is the ID of a run whose conversation the question continues, so that the question
	// may say "it" or "the other one". The run must belong to the principal and have an answer.
	Follows string `json:"follows,omitempty"`

	// History is the conversation before the question, oldest turn first, if the caller keeps it.
	// It must not be combined with Follows. It may have at most 1,000 turns and 1 MiB; only the
	// newest MaxTurns turns, up to MaxHistoryBytes, are used to interpret a follow-up.
	History []assay.Turn `json:"history,omitempty"`

	// Web lets strategies that support it search the web, if a web search is configured. The
	// words of the question then leave the machine. Text from the web is marked in the answer.
	// Filter and Collections do not apply to the web.
	Web bool `json:"web,omitempty"`

	// NoCache answers the question again even if an earlier run has answered it.
	NoCache bool `json:"no_cache,omitempty"`

	// Measuring marks a run of an evaluation, for which no user waits. Such runs are excluded
	// from the statistics on users, and their answers are not reused for users.
	Measuring bool `json:"measuring,omitempty"`

	// Review says whether the answer may wait for a person; empty: see ReviewMode.
	Review ReviewMode `json:"review,omitempty"`

	// IdempotencyKey makes Session.Begin and Session.BeginFork begin one run only, however often they
	// are called: at most MaxNameBytes of UTF-8, unique among the requests of a user; empty: none. Other
	// methods ignore it.
	IdempotencyKey string `json:"-"`

	// ID is the ID of the new run, for callers that must be able to find it later in any case. No
	// run with that ID may exist. Empty: Config.NewID chooses it.
	ID string `json:"-"`
}

// storedRequest is what a run needs to resume or replay: its request, and the parts of the engine's
// configuration that decide its course.
type storedRequest struct {
	Request

	Models        map[string]string `json:"models,omitempty"`         // by role, when the run began; roles not listed are local
	ContextTokens int               `json:"context_tokens,omitempty"` // see strategy.Limits; 0: the strategy's default
	Keep          int               `json:"keep,omitempty"`           // see strategy.Limits; 0: the strategy's default
	Keys          []prompted.Key    `json:"keys,omitempty"`           // metadata keys that a plan could use

	Reader string `json:"reader,omitempty"` // model of the reader when the run began; empty: none

	// EarlierTurns and Rests describe a conversation whose newest turns are the request's
	// History: how many turns came before, and the IDs of the documents that its answers were
	// made from. A principal that may not see all of these may not see the run.
	EarlierTurns int      `json:"earlier_turns,omitempty"`
	Rests        []string `json:"rests,omitempty"`

	// NamedCollections are the collections named by the question or its conversation, among those
	// that the principal may see.
	NamedCollections []string `json:"catalogue,omitempty"`

	// Outline is the plan derived from the question's grammar when the run began, for the
	// strategy auto without a planner model. nil: the run plans itself.
	Outline *role.Plan `json:"outline,omitempty"`

	// Searcher and Managed name the web search and the managed service that were configured when
	// the run began, if the request uses them; empty: none.
	Searcher string `json:"searcher,omitempty"`
	Managed  string `json:"managed,omitempty"`

	// ForkedFrom is the run whose first steps the run took over; nil: none.
	ForkedFrom *ForkedFrom `json:"forked_from,omitempty"`

	// Guarded is set if a review was possible when the run began. The steps of a run that has not
	// ended are then not shown.
	Guarded bool `json:"guarded,omitempty"`

	// Trace identifies the run for Config.Observer, so that a continuation can refer to it; empty:
	// the run was not observed when it began.
	Trace string `json:"trace,omitempty"`

	// Key is the key under which the answer is looked up in the cache and offered. Earlier are
	// the runs under that key with the same question.
	Key     string             `json:"key,omitempty"`
	Earlier []strategy.Earlier `json:"earlier,omitempty"`

	// Nodes is a hash of the request of a run that is driven node by node; empty: the run is driven
	// as a whole.
	Nodes string `json:"nodes,omitempty"`

	until *nodeEnd // where this process stops driving the run; nil: at its end
}

// complete validates r and fills in the defaults. wall is the default wall time before scaling by
// Mode, and added are the strategies besides those of package strategy.
func (r Request) complete(wall time.Duration, added []strategy.Spec) (Request, error) {
	r.Question = strings.TrimSpace(r.Question)
	switch {
	case r.Question == "":
		return r, fmt.Errorf("the question is empty: %w", assay.ErrInvalid)
	case len(r.Question) > MaxQuestionBytes:
		return r, fmt.Errorf("the question is longer than %d bytes; put long texts into a document: %w", MaxQuestionBytes, assay.ErrInvalid)
	case !utf8.ValidString(r.Question):
		return r, fmt.Errorf("the question is not valid UTF-8: %w", assay.ErrInvalid)
	}
	r.Question = strings.Map(func(c rune) rune { // stray control characters have no meaning in a question
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, r.Question)
	if r.Question = strings.TrimSpace(r.Question); r.Question == "" {
		return r, fmt.Errorf("the question is empty: %w", assay.ErrInvalid)
	}
	if err := r.checkRanges(); err != nil {
		return r, err
	}
	r.Strategy = cmp.Or(r.Strategy, strategy.Names()[0])
	if _, err := strategy.Lookup(r.Strategy, added...); err != nil {
		return r, err
	}
	if err := r.Mode.Check(); err != nil {
		return r, err
	}
	if err := r.checkHistory(); err != nil {
		return r, err
	}
	b := &r.Budget
	b.Wall = cmp.Or(b.Wall, r.Mode.Wall(wall))
	r.Limits.Wall = 0 // Budget.Wall applies
	if r.Collections == nil {
		r.Collections = []string{}
	}
	return r, nil
}

// limits returns the bounds for the strategy. If several places set the same bound, the budget
// comes first, then the request, then the models.
func (r storedRequest) limits() strategy.Limits {
	return strategy.Limits{Iterations: r.Budget.Iterations, Wall: r.Budget.Wall}.Over(r.Limits).Over(strategy.Limits{ContextTokens: r.ContextTokens, Keep: r.Keep})
}
