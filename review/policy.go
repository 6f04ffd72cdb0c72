// Package review decides which answers wait for a person, and what reviewers may do with them. It is
// pure logic: it reads no clock and no store.
//
// A [Policy] selects answers by their [Facts]. A [Case] is the state of one answer that waits.
// Reviewers claim it for a limited time, then approve, edit or reject it.
package review

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// Bounds of a policy.
const (
	MaxTopics    = 20
	MaxTopicText = 500 // bytes
	MaxApprovals = 2
)

// A Policy makes answers wait for a person. An answer waits if all conditions that are set hold. A
// policy without a condition, other than Always, is invalid.
type Policy struct {
	Name string `json:"name"`

	// Conditions. A list holds if one of its elements does.
	Always         bool              `json:"always,omitempty"`
	Collections    []string          `json:"collections,omitempty"`     // of a cited document
	Tags           map[string]string `json:"tags,omitempty"`            // metadata of a cited document; all of one document
	Strategies     []string          `json:"strategies,omitempty"`      // that produced the answer
	Statuses       []assay.Status    `json:"statuses,omitempty"`        // of the answer
	ScoreBelow     *float64          `json:"score_below,omitempty"`     // the lowest score of a claim is below
	RelevanceBelow *float64          `json:"relevance_below,omitempty"` // so is the answer's relevance, or it was not judged
	CostAbove      *int64            `json:"cost_above,omitempty"`      // the run cost more, in millionths of the currency
	Groups         []string          `json:"groups,omitempty"`          // of the asker
	Roles          []string          `json:"roles,omitempty"`           // of the asker
	Topics         []string          `json:"topics,omitempty"`          // descriptions; see TopicScore
	Sample         float64           `json:"sample,omitempty"`          // share of the runs in percent, (0, 100]

	// TopicThreshold is the least score of a topic that matches; 0: DefaultTopicThreshold.
	TopicThreshold float64 `json:"topic_threshold,omitempty"`

	// Mandatory policies also apply to a request that asks for no review.
	Mandatory bool `json:"mandatory,omitempty"`

	// Approvals is how many different reviewers must approve the same text; 0 means 1. Reviewers is
	// the group that may review; empty: every reviewer.
	Approvals int    `json:"approvals,omitempty"`
	Reviewers string `json:"reviewers,omitempty"`

	// Deadline is the time within which a decision is expected; 0: none. After it, the group EscalateTo
	// may also review, and if Reject is set, the answer is rejected. An answer is never approved by
	// the passing of time.
	Deadline   time.Duration `json:"deadline_ns,omitempty"`
	EscalateTo string        `json:"escalate_to,omitempty"`
	Reject     bool          `json:"reject,omitempty"`
}

// ParsePolicy reads a policy from JSON. An unknown field is assay.ErrInvalid, because it may be a
// condition of a newer version.
func ParsePolicy(data []byte) (Policy, error) {
	var p Policy
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return p, fmt.Errorf("review policy: %v: %w", err, assay.ErrInvalid)
	}
	return p, p.Check()
}

// Check returns assay.ErrInvalid if p is malformed.
func (p Policy) Check() error {
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{p.Name == "", "it has no name"},
		{!p.Always && !p.conditional(), "it has no condition; set always to make every answer wait"},
		{p.Always && p.conditional(), "always excludes other conditions"},
		{!share(p.ScoreBelow) || !share(p.RelevanceBelow), "a score or relevance is not in [0, 1]"},
		{p.CostAbove != nil && *p.CostAbove < 0, "the cost is negative"},
		{!(p.Sample >= 0 && p.Sample <= 100), "the sample is not a percentage"},
		{!(p.TopicThreshold >= 0 && p.TopicThreshold < 1), "the threshold of topics is not in [0, 1)"},
		{len(p.Topics) > MaxTopics, fmt.Sprintf("it has more than %d topics", MaxTopics)},
		{slices.ContainsFunc(p.Topics, badTopic), fmt.Sprintf("a topic is empty or longer than %d bytes", MaxTopicText)},
		{p.Approvals < 0 || p.Approvals > MaxApprovals, fmt.Sprintf("it needs %d approvals, at most %d are possible", p.Approvals, MaxApprovals)},
		{p.Deadline < 0, "the deadline is negative"},
		{p.Deadline == 0 && (p.EscalateTo != "" || p.Reject), "it says what follows a deadline, but has none"},
	} {
		if rule.broken {
			return fmt.Errorf("review policy %q: %s: %w", p.Name, rule.text, assay.ErrInvalid)
		}
	}
	for _, s := range p.Statuses {
		if !slices.Contains([]assay.Status{assay.Answered, assay.Incomplete, assay.Conflicting, assay.NotFound}, s) {
			return fmt.Errorf("review policy %q: %q is no status of an answer: %w", p.Name, s, assay.ErrInvalid)
		}
	}
	return nil
}

func share(x *float64) bool { return x == nil || *x >= 0 && *x <= 1 }

func badTopic(t string) bool { return strings.TrimSpace(t) == "" || len(t) > MaxTopicText }

// conditional reports whether p has a condition.
func (p Policy) conditional() bool {
	lists := len(p.Collections) + len(p.Tags) + len(p.Strategies) + len(p.Statuses) + len(p.Groups) + len(p.Roles) + len(p.Topics)
	return lists > 0 || p.ScoreBelow != nil || p.RelevanceBelow != nil || p.CostAbove != nil || p.Sample > 0
}

// Facts are what policies judge an answer by. Documents are the cited ones.
type Facts struct {
	Run       string
	Asker     assay.Principal
	Answer    assay.Answer
	Documents []Document
	Unread    string // why Documents may be incomplete; empty: they are complete
	Topics    TopicScorer
}

// A Document is what a policy judges a cited document by.
type Document struct {
	Collection string
	Metadata   assay.Metadata
}

// A Match is a policy that makes an answer wait, and why.
type Match struct {
	Policy string `json:"policy"`
	Why    string `json:"why"`
	Failed bool   `json:"failed,omitempty"` // it could not be evaluated, so the answer waits
}

// Match returns the reasons why p makes an answer wait. ok is false if it does not. A condition that
// cannot be evaluated counts as met, unless another condition is not met.
func (p Policy) Match(ctx context.Context, f Facts) (m Match, ok bool) {
	m = Match{Policy: p.Name}
	if err := p.Check(); err != nil {
		return Match{Policy: p.Name, Why: "the policy cannot be evaluated: " + err.Error(), Failed: true}, true
	}
	if p.Always {
		m.Why = "every answer waits"
		return m, true
	}
	var why []string
	for _, condition := range p.conditions() {
		c := condition(ctx, f)
		if !c.holds {
			return Match{}, false
		}
		why, m.Failed = append(why, c.why), m.Failed || c.failed
	}
	m.Why = strings.Join(why, "; ")
	return m, true
}

// A finding is the result of one condition.
type finding struct {
	holds, failed bool
	why           string
}

func unknown(why string) finding { return finding{holds: true, failed: true, why: why} }

// conditions returns the conditions that are set, the expensive one last.
func (p Policy) conditions() []func(context.Context, Facts) finding {
	var all []func(context.Context, Facts) finding
	add := func(set bool, c func(Facts) finding) {
		if set {
			all = append(all, func(_ context.Context, f Facts) finding { return c(f) })
		}
	}
	add(p.Sample > 0, p.inSample)
	add(len(p.Groups) > 0, func(f Facts) finding { return one("the asker is in the group", p.Groups, f.Asker.Groups...) })
	add(len(p.Roles) > 0, func(f Facts) finding { return one("the asker has the role", p.Roles, f.Asker.Roles...) })
	add(len(p.Strategies) > 0, func(f Facts) finding { return one("its strategy is", p.Strategies, f.Answer.Strategy) })
	add(len(p.Statuses) > 0, func(f Facts) finding { return one("its status is", p.Statuses, f.Answer.Status) })
	add(p.CostAbove != nil, p.costs)
	add(p.ScoreBelow != nil, p.scores)
	add(p.RelevanceBelow != nil, p.relevance)
	add(len(p.Collections) > 0, p.collections)
	add(len(p.Tags) > 0, p.tags)
	if len(p.Topics) > 0 {
		all = append(all, p.topics)
	}
	return all
}

func one[T ~string](words string, wanted []T, has ...T) finding {
	for _, h := range has {
		if slices.Contains(wanted, h) {
			return finding{holds: true, why: fmt.Sprintf("%s %q", words, string(h))}
		}
	}
	return finding{}
}

// Sampled reports whether a run is in the policy's sample. It depends only on the names of both.
func (p Policy) Sampled(run string) bool {
	sum := sha256.Sum256([]byte(p.Name + "\x00" + run))
	return float64(binary.BigEndian.Uint64(sum[:8]))/math.MaxUint64*100 < p.Sample
}

func (p Policy) inSample(f Facts) finding {
	return finding{holds: p.Sampled(f.Run), why: fmt.Sprintf("it is in the sample of %g %%", p.Sample)}
}

func (p Policy) costs(f Facts) finding {
	return finding{holds: f.Answer.Usage.CostMicros > *p.CostAbove, why: fmt.Sprintf("it cost %d, more than %d", f.Answer.Usage.CostMicros, *p.CostAbove)}
}

func (p Policy) scores(f Facts) finding {
	lowest := 1.0
	for _, c := range f.Answer.Claims {
		if math.IsNaN(c.Score) {
			return unknown("a claim has no score")
		}
		lowest = min(lowest, c.Score)
	}
	return finding{holds: lowest < *p.ScoreBelow, why: fmt.Sprintf("the lowest score of a claim is %.2f, below %.2f", lowest, *p.ScoreBelow)}
}

func (p Policy) relevance(f Facts) finding {
	switch r := f.Answer.Relevance; {
	case r == nil && len(f.Answer.Claims) == 0:
		return finding{} // there is no answer to judge
	case r == nil || math.IsNaN(*r):
		return unknown("its relevance was not judged")
	default:
		return finding{holds: *r < *p.RelevanceBelow, why: fmt.Sprintf("its relevance is %.2f, below %.2f", *r, *p.RelevanceBelow)}
	}
}

func (p Policy) collections(f Facts) finding {
	for _, d := range f.Documents {
		if slices.Contains(p.Collections, d.Collection) {
			return finding{holds: true, why: fmt.Sprintf("it cites the collection %q", d.Collection)}
		}
	}
	return f.unread()
}

func (p Policy) tags(f Facts) finding {
	for _, d := range f.Documents {
		if d.tagged(p.Tags) {
			return finding{holds: true, why: "it cites a document with the tags of the policy"}
		}
	}
	return f.unread()
}

// unread is the finding for documents of which none that could be read meets the condition.
func (f Facts) unread() finding {
	if f.Unread == "" {
		return finding{}
	}
	return unknown(f.Unread)
}

func (d Document) tagged(tags map[string]string) bool {
	for key, want := range tags {
		v, ok := d.Metadata[key]
		if !ok || v.Text() != want && !slices.Contains(v.List, want) {
			return false
		}
	}
	return true
}

func (p Policy) topics(ctx context.Context, f Facts) finding {
	if f.Topics == nil {
		return unknown("there is no reader to compare it with topics")
	}
	least := p.TopicThreshold
	if least == 0 {
		least = DefaultTopicThreshold
	}
	scores, err := f.Topics(ctx, p.Topics)
	if err == nil && len(scores) != len(p.Topics) {
		err = fmt.Errorf("%d scores for %d topics", len(scores), len(p.Topics))
	}
	if err != nil {
		return unknown("its topic could not be judged: " + err.Error())
	}
	for i, s := range scores {
		if !(s < least) { // NaN counts as a match
			return finding{holds: true, failed: math.IsNaN(s), why: fmt.Sprintf("topic %q: score %.2f, at least %.2f", p.Topics[i], s, least)}
		}
	}
	return finding{}
}

// Possible reports whether p may make the answer to a question wait, given what is known before the run
// begins. Collections are those of the request; empty: all.
func (p Policy) Possible(run string, asker assay.Principal, collections []string) bool {
	if p.Check() != nil {
		return true
	}
	if p.Sample > 0 && !p.Sampled(run) {
		return false
	}
	if len(p.Groups) > 0 && !one("", p.Groups, asker.Groups...).holds {
		return false
	}
	if len(p.Roles) > 0 && !one("", p.Roles, asker.Roles...).holds {
		return false
	}
	limited := len(p.Collections) > 0 && len(collections) > 0
	return !limited || one("", p.Collections, collections...).holds
}
