package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay"
)

// Format is the version of the stored form of a Case and of the draft beside it.
const Format = 1

// DefaultLease is how long a claim lasts, and MaxLease the longest.
const (
	DefaultLease = 15 * time.Minute
	MaxLease     = 8 * time.Hour
)

// A Case is the state of one answer that waits for a person, or was decided.
type Case struct {
	Format   int             `json:"format"`
	Run      string          `json:"run"`
	Question string          `json:"question"`
	Asker    assay.Principal `json:"asker"`
	Matches  []Match         `json:"policies"`

	// Groups are those that a reviewer must be in, one for each policy that names one. EscalateTo are
	// those whose members may also review once Escalated is set.
	Groups     []string `json:"groups,omitempty"`
	EscalateTo []string `json:"escalate_to,omitempty"`
	Reject     bool     `json:"reject,omitempty"` // when the deadline has passed

	Needed    int       `json:"approvals_needed"`
	Created   time.Time `json:"created"`
	Deadline  time.Time `json:"deadline,omitzero"`
	Escalated time.Time `json:"escalated,omitzero"`

	Text      string     `json:"text"`             // hash of the draft's text at present
	Rounds    int        `json:"rounds"`           // decisions in the run's journal
	Edited    string     `json:"edited,omitempty"` // the last reviewer who edited the text
	Approvals []Approval `json:"approvals,omitempty"`
	Claim     *Claim     `json:"claim,omitempty"`

	// Opened is when each reviewer first saw the evidence.
	Opened map[string]time.Time `json:"opened,omitempty"`

	Decision assay.Decision `json:"decision"`
	Decided  time.Time      `json:"decided,omitzero"`
	By       []string       `json:"by,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// A Claim is a reviewer's right to decide for a limited time.
type Claim struct {
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
}

// An Approval is one reviewer's approval of the present text.
type Approval struct {
	By    string        `json:"by"`
	At    time.Time     `json:"at"`
	Dwell time.Duration `json:"dwell_ns"`
	Open  time.Duration `json:"open_ns"`
}

// A Ruling is what one reviewer decided. It is recorded in the run's journal.
type Ruling struct {
	Kind   assay.Decision `json:"kind"` // approved, edited, rejected or expired
	By     string         `json:"by"`   // user; empty: the deadline
	Key    string         `json:"key,omitempty"`
	At     time.Time      `json:"at"`
	Reason string         `json:"reason,omitempty"`
	Text   string         `json:"text,omitempty"` // the new text, if edited

	// Dwell is the time from the claim to the decision, and Open the time since the reviewer first saw
	// the evidence; negative: they never did.
	Dwell time.Duration `json:"dwell_ns"`
	Open  time.Duration `json:"open_ns"`

	// Final is set if the ruling decides the answer, and Reviewers are then all who took part.
	Final     bool     `json:"final"`
	Reviewers []string `json:"reviewers,omitempty"`
}

// NewCase returns the case of an answer that the policies match. Matches without a policy of that
// name, as of a request that asked for a review, have the defaults.
func NewCase(r assay.Run, matches []Match, policies []Policy, text string, now time.Time) Case {
	c := Case{
		Format: Format, Run: r.ID, Question: r.Question, Asker: r.Principal, Matches: matches,
		Needed: 1, Created: now, Text: text, Decision: assay.DecisionPending,
	}
	for _, m := range matches {
		i := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == m.Policy })
		if i < 0 {
			continue
		}
		p := policies[i]
		c.Needed = max(c.Needed, p.Approvals)
		if p.Reviewers != "" && !slices.Contains(c.Groups, p.Reviewers) {
			c.Groups = append(c.Groups, p.Reviewers)
		}
		if p.Deadline == 0 {
			continue
		}
		due := now.Add(p.Deadline)
		if c.Deadline.IsZero() || due.Before(c.Deadline) {
			c.Deadline = due
		}
		c.Reject = c.Reject || p.Reject
		if p.EscalateTo != "" {
			c.EscalateTo = append(c.EscalateTo, p.EscalateTo)
		}
	}
	return c
}

// ParseCase reads a stored case. A case of a newer program is assay.ErrNewer.
func ParseCase(data []byte) (Case, error) {
	var c Case
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("the state of a review: %v: %w", err, assay.ErrDamaged)
	}
	if c.Format > Format {
		return c, fmt.Errorf("the review of run %s has format %d: %w", c.Run, c.Format, assay.ErrNewer)
	}
	return c, nil
}

// clone returns a copy of c that shares nothing that a transition changes.
func (c Case) clone() Case {
	c.Approvals, c.Opened = slices.Clone(c.Approvals), maps.Clone(c.Opened)
	return c
}

// Open reports whether c waits for a decision.
func (c Case) Open() bool { return c.Decision == assay.DecisionPending }

// May returns the reason why a reviewer may not take part in c, or nil. privileged reviewers
// (administrators) need not be in a group. No one reviews their own question.
func (c Case) May(reviewer assay.Principal, privileged bool) error {
	if reviewer.User == "" || samePerson(reviewer.User, c.Asker.User) {
		return fmt.Errorf("run %s: %s asked the question and may not review its answer: %w", c.Run, reviewer.User, assay.ErrForbidden)
	}
	if privileged {
		return nil
	}
	in := func(group string) bool { return slices.Contains(reviewer.Groups, group) }
	if !c.Escalated.IsZero() && slices.ContainsFunc(c.EscalateTo, in) {
		return nil
	}
	for _, g := range c.Groups {
		if !in(g) {
			return fmt.Errorf("run %s: its reviewers are in the group %q: %w", c.Run, g, assay.ErrForbidden)
		}
	}
	return nil
}

// holder returns the claim that is valid now, or nil.
func (c Case) holder(now time.Time) *Claim {
	if c.Claim == nil || !now.Before(c.Claim.Expires) {
		return nil
	}
	return c.Claim
}

// ClaimedBy returns the user who holds the claim, or "".
func (c Case) ClaimedBy(now time.Time) string {
	if held := c.holder(now); held != nil {
		return held.By
	}
	return ""
}

// Take claims c for a reviewer, or renews the reviewer's claim.
func (c Case) Take(reviewer string, lease time.Duration, now time.Time) (Case, error) {
	lease = cmp.Or(lease, DefaultLease)
	switch held := c.holder(now); {
	case !c.Open():
		return c, c.decided()
	case lease < 0 || lease > MaxLease:
		return c, fmt.Errorf("a claim lasts at most %s: %w", MaxLease, assay.ErrInvalid)
	case c.approvedBy(reviewer):
		return c, fmt.Errorf("run %s: %s has approved it, and another reviewer must: %w", c.Run, reviewer, assay.ErrForbidden)
	case held != nil && held.By != reviewer:
		return c, fmt.Errorf("run %s is claimed by %s until %s: %w", c.Run, held.By, held.Expires.Format(time.RFC3339), assay.ErrLocked)
	case held != nil:
		c.Claim = &Claim{By: reviewer, At: held.At, Expires: now.Add(lease)}
	default:
		c.Claim = &Claim{By: reviewer, At: now, Expires: now.Add(lease)}
	}
	return c, nil
}

// Release ends a reviewer's claim.
func (c Case) Release(reviewer string, now time.Time) (Case, error) {
	if err := c.mustHold(reviewer, now); err != nil {
		return c, err
	}
	c.Claim = nil
	return c, nil
}

// See records that a reviewer has seen the evidence. changed is false if that was known.
func (c Case) See(reviewer string, now time.Time) (_ Case, changed bool) {
	if _, seen := c.Opened[reviewer]; seen || !c.Open() {
		return c, false
	}
	c = c.clone()
	if c.Opened == nil {
		c.Opened = map[string]time.Time{}
	}
	c.Opened[reviewer] = now
	return c, true
}

// Approve records an approval of the text with this hash; empty: the present text. With enough
// approvals the ruling is final.
func (c Case) Approve(reviewer assay.Principal, text string, now time.Time) (Case, Ruling, error) {
	if err := c.mustHold(reviewer.User, now); err != nil {
		return c, Ruling{}, err
	}
	if text != "" && text != c.Text {
		return c, Ruling{}, fmt.Errorf("run %s: its text has changed since you saw it: %w", c.Run, assay.ErrLocked)
	}
	return c.approve(c.ruling(assay.DecisionApproved, reviewer, now), now)
}

// Edit records a new text with this hash. It ends the approvals so far and is the editor's own.
func (c Case) Edit(reviewer assay.Principal, text, hash string, now time.Time) (Case, Ruling, error) {
	if err := c.mustHold(reviewer.User, now); err != nil {
		return c, Ruling{}, err
	}
	r := c.ruling(assay.DecisionEdited, reviewer, now)
	r.Text = text
	c.Approvals, c.Text, c.Edited = nil, hash, reviewer.User
	c.Opened = nil // the new text has not been seen
	return c.approve(r, now)
}

// approve adds the approval of a ruling.
func (c Case) approve(r Ruling, now time.Time) (Case, Ruling, error) {
	c = c.clone()
	c.Approvals = append(c.Approvals, Approval{By: r.By, At: now, Dwell: r.Dwell, Open: r.Open})
	c.Claim = nil
	c.Rounds++
	if len(c.Approvals) < c.Needed {
		return c, r, nil
	}
	r.Final = true
	for _, a := range c.Approvals {
		r.Reviewers = append(r.Reviewers, a.By)
	}
	c.Decision, c.Decided, c.By = assay.DecisionApproved, now, r.Reviewers
	if c.Edited != "" {
		c.Decision = assay.DecisionEdited
	}
	return c, r, nil
}

// Deny records that a reviewer rejects the answer. The reason is required, and shown to the asker.
func (c Case) Deny(reviewer assay.Principal, reason string, now time.Time) (Case, Ruling, error) {
	if err := c.mustHold(reviewer.User, now); err != nil {
		return c, Ruling{}, err
	}
	if reason == "" {
		return c, Ruling{}, fmt.Errorf("run %s: a rejection needs a reason: %w", c.Run, assay.ErrInvalid)
	}
	r := c.ruling(assay.DecisionRejected, reviewer, now)
	r.Reason, r.Final, r.Reviewers = reason, true, []string{reviewer.User}
	c.Decision, c.Decided, c.By, c.Reason = assay.DecisionRejected, now, r.Reviewers, reason
	c.Claim = nil
	c.Rounds++
	return c, r, nil
}

// Overdue reports whether the deadline has passed and what follows it has not been done.
func (c Case) Overdue(now time.Time) bool {
	return c.Open() && c.Escalated.IsZero() && !c.Deadline.IsZero() && !now.Before(c.Deadline)
}

// Escalate does what follows the deadline: it opens the case to further groups, or rejects the answer.
// The ruling is final in the latter case.
func (c Case) Escalate(now time.Time) (Case, Ruling) {
	c.Escalated = now
	if !c.Reject {
		return c, Ruling{}
	}
	const reason = "no reviewer decided before the deadline"
	c.Decision, c.Decided, c.Reason, c.Claim = assay.DecisionExpired, now, reason, nil
	c.Rounds++
	return c, Ruling{Kind: assay.DecisionExpired, At: now, Reason: reason, Final: true, Open: -1}
}

func (c Case) ruling(kind assay.Decision, reviewer assay.Principal, now time.Time) Ruling {
	r := Ruling{Kind: kind, By: reviewer.User, Key: reviewer.Key, At: now, Dwell: max(0, now.Sub(c.Claim.At)), Open: -1}
	if seen, ok := c.Opened[reviewer.User]; ok {
		r.Open = max(0, now.Sub(seen)) // the clock may have been set back
	}
	return r
}

func (c Case) approvedBy(user string) bool {
	return slices.ContainsFunc(c.Approvals, func(a Approval) bool { return samePerson(a.By, user) })
}

// samePerson reports whether two names of users may stand for one person. Names that differ only in case
// or in the Unicode form of their characters do.
func samePerson(a, b string) bool {
	form := func(name string) string {
		return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(strings.TrimSpace(name))))
	}
	return form(a) == form(b)
}

// mustHold returns an error unless the reviewer holds the claim of an open case.
func (c Case) mustHold(reviewer string, now time.Time) error {
	switch held := c.holder(now); {
	case !c.Open():
		return c.decided()
	case held == nil && c.Claim != nil && c.Claim.By == reviewer:
		return fmt.Errorf("run %s: your claim expired at %s; claim it again: %w", c.Run, c.Claim.Expires.Format(time.RFC3339), assay.ErrInvalid)
	case held == nil:
		return fmt.Errorf("run %s: claim it first: %w", c.Run, assay.ErrInvalid)
	case held.By != reviewer:
		return fmt.Errorf("run %s is claimed by %s until %s: %w", c.Run, held.By, held.Expires.Format(time.RFC3339), assay.ErrLocked)
	}
	return nil
}

func (c Case) decided() error {
	return fmt.Errorf("run %s was decided (%s): %w", c.Run, c.Decision, assay.ErrInvalid)
}
