package ui

import (
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/server"
)

// reviewRoutes are about answers that wait for a person.
func reviewRoutes() []Route {
	return []Route{
		page("/reviews", "reviews", "Reviews", showReviews),
		page("/reviews/{run}", "review", "Review", showReview),
		action("/reviews/{run}/claim", "review.claim", "Claim", claimReview),
		action("/reviews/{run}/release", "review.release", "Release", releaseReview),
		action("/reviews/{run}/approve", "review.approve", "Approve", approveReview),
		action("/reviews/{run}/reject", "review.reject", "Reject", rejectReview),
		page("/reviews/{run}/edit", "review.edit", "Edit", showEdit),
		action("/reviews/{run}/edit", "review.check", "CheckEdit", checkEdit),
		action("/reviews/{run}/save", "review.save", "Edit", saveEdit),
	}
}

// reviewsPerPage is how many reviews a page lists.
const reviewsPerPage = 50

// A reviewQueue is the data of the list of reviews.
type reviewQueue struct {
	Rows     []reviewRow
	Waiting  int // open reviews of all policies
	Decided  bool
	Policy   string
	Policies []string
	Pages    listPager
}

// A reviewRow is a review with its state in words.
type reviewRow struct {
	engine.ReviewSummary
	User    string // who looks at it
	Overdue bool
}

func newReviewRow(s engine.ReviewSummary, user string) reviewRow {
	passed := !s.Deadline.IsZero() && !now().Before(s.Deadline) || !s.Escalated.IsZero()
	return reviewRow{s, user, s.Decision == assay.DecisionPending && passed}
}

// Open reports whether the review waits for a decision.
func (r reviewRow) Open() bool { return r.Decision == assay.DecisionPending }

// Mine reports whether the user holds the claim.
func (r reviewRow) Mine() bool { return r.Open() && r.ClaimedBy != "" && r.ClaimedBy == r.User }

// Taken reports whether somebody else holds the claim.
func (r reviewRow) Taken() bool { return r.Open() && r.ClaimedBy != "" && r.ClaimedBy != r.User }

// Signed reports whether the user has approved the present text.
func (r reviewRow) Signed() bool { return slices.Contains(r.Approved, r.User) }

// Until is the time of the clock at which the claim ends.
func (r reviewRow) Until() string { return r.Expires.UTC().Format("15:04 UTC") }

// Missing is how many approvals are missing.
func (r reviewRow) Missing() int { return max(0, r.Needed-len(r.Approved)) }

// State returns how a badge shows the decision.
func (r reviewRow) State() statusWords { return decisionWords[r.Decision] }

// decisionWords are the words for the decisions of reviewers.
var decisionWords = map[assay.Decision]statusWords{
	assay.DecisionPending:  {"wait", "clock", "Waiting", "It waits for a decision."},
	assay.DecisionApproved: {"good", "check", "Approved", "The asker sees the draft."},
	assay.DecisionEdited:   {"good", "write", "Edited", "The asker sees the text of the reviewer."},
	assay.DecisionRejected: {"bad", "cross", "Rejected", "The asker sees the reason."},
	assay.DecisionExpired:  {"bad", "clock", "Expired", "The deadline passed without a decision, so the answer was rejected."},
}

func showReviews(q *request) error {
	data := reviewQueue{Decided: q.query("show") == "decided", Policy: q.query("policy")}
	all, err := q.session.Reviews(q.ctx(), engine.ReviewFilter{Decided: data.Decided})
	if err != nil {
		return err
	}
	for _, s := range all {
		open := s.Decision == assay.DecisionPending
		if open {
			data.Waiting++
		}
		for _, m := range s.Policies {
			if m.Policy != "" && !slices.Contains(data.Policies, m.Policy) {
				data.Policies = append(data.Policies, m.Policy)
			}
		}
		of := func(m review.Match) bool { return m.Policy == data.Policy }
		if open != data.Decided && (data.Policy == "" || slices.ContainsFunc(s.Policies, of)) {
			data.Rows = append(data.Rows, newReviewRow(s, q.grant.Principal.User))
		}
	}
	slices.Sort(data.Policies)
	if data.Decided {
		slices.SortStableFunc(data.Rows, func(a, b reviewRow) int { return b.Decided.Compare(a.Decided) })
	}
	query := url.Values{}
	if data.Decided {
		query.Set("show", "decided")
	}
	if data.Policy != "" {
		query.Set("policy", data.Policy)
	}
	data.Pages = newListPager("/reviews", query, q.query("page"), len(data.Rows), reviewsPerPage)
	data.Rows = data.Rows[data.Pages.From:data.Pages.To]
	title := "Reviews"
	if data.Waiting > 0 {
		title = fmt.Sprintf("Reviews (%d)", data.Waiting)
	}
	v := q.view("Reviews", title, data)
	v.Wide = true
	return q.render("reviews.html", v)
}

// A listPager is the part of a list that a page shows.
type listPager struct {
	From, To, All  int
	Before, Behind string // paths of the pages beside it; empty: none
}

// newListPager returns the part of a list of n entries for a number of a page, from 1.
func newListPager(path string, query url.Values, number string, n, per int) listPager {
	at, err := strconv.Atoi(number)
	last := max(1, (n+per-1)/per)
	if err != nil || at < 1 {
		at = 1
	}
	at = min(at, last)
	to := func(page int) string {
		if page < 1 || page > last {
			return ""
		}
		query.Set("page", strconv.Itoa(page))
		return path + "?" + query.Encode()
	}
	return listPager{From: (at - 1) * per, To: min(at*per, n), All: n, Before: to(at - 1), Behind: to(at + 1)}
}

// A reviewPage is the data of the page of one review.
type reviewPage struct {
	reviewRow
	Hidden    int // documents that the user may not see
	Draft     *shownDraft
	Edited    []review.Change // of words, from the original text; nil: it was not edited
	Rulings   []rulingRow
	Steps     []engine.Step
	Strategy  string
	Refused   string // why the user may not take part; empty: they may
	Gone      bool   // there is no such review
	Problem   string // why a form failed
	Reason    string // of a rejection that failed
	ReasonBad string
	Leases    []lease

	evidence []assay.Evidence
}

// A rulingRow is a decision of a reviewer in the past.
type rulingRow struct {
	review.Ruling
	State statusWords
}

// A lease is a time for which a review can be claimed.
type lease struct {
	Minutes int
	Words   string
}

var leases = []lease{{15, "15 minutes"}, {60, "1 hour"}, {240, "4 hours"}, {480, "8 hours"}}

func showReview(q *request) error {
	p, err := q.reviewPage(q.path("run"))
	if err != nil {
		return err
	}
	return q.renderReview(http.StatusOK, p)
}

// reviewPage loads a review. One in which the user may not take part, or that is gone, has Refused set.
func (q *request) reviewPage(id string) (reviewPage, error) {
	view, err := q.session.Review(q.ctx(), id)
	if errors.Is(err, assay.ErrForbidden) {
		problem := q.pages.config.Server.Problem(q.r, err)
		return reviewPage{reviewRow: reviewRow{ReviewSummary: engine.ReviewSummary{Run: id}}, Refused: plainRefusal(problem)}, nil
	}
	if errors.Is(err, assay.ErrNotFound) {
		return reviewPage{Gone: true, Refused: "Its run may have been erased or deleted, or it rests on documents that you may not see."}, nil
	}
	if err != nil {
		return reviewPage{}, err
	}
	p := reviewPage{
		reviewRow: newReviewRow(view.ReviewSummary, q.grant.Principal.User), Hidden: view.Hidden, Steps: view.Steps, Leases: leases, evidence: view.Evidence,
	}
	if view.Draft != nil {
		p.Strategy = view.Draft.Strategy
		draft := newShownDraft(*view.Draft, view.Evidence)
		p.Draft = &draft
	}
	if view.Original != nil && view.Draft != nil {
		p.Edited = review.Words(view.Original.Text, view.Draft.Text)
	}
	for _, r := range view.Rulings {
		p.Rulings = append(p.Rulings, rulingRow{r, decisionWords[r.Kind]})
	}
	return p, nil
}

// plainRefusal returns why a user may not review an answer, without the ID of the run.
func plainRefusal(p server.Problem) string {
	switch {
	case strings.Contains(p.Detail, "asked the question"):
		return "You asked this question. Another person reviews its answer."
	case strings.Contains(p.Detail, "reviewers are in the group"):
		return "Only members of a certain group review this answer: " + afterColon(p.Detail) + "."
	}
	return "You may not review this answer."
}

// afterColon returns the middle of "run x: why: kind of error".
func afterColon(detail string) string {
	parts := strings.Split(detail, ": ")
	if len(parts) < 3 {
		return detail
	}
	return strings.Join(parts[1:len(parts)-1], ": ")
}

func (q *request) renderReview(status int, p reviewPage) error {
	v := q.view("Reviews", "Review", p)
	v.Wide = true
	switch {
	case p.Gone:
		status = http.StatusNotFound
	case p.Refused != "":
		status = http.StatusForbidden
	}
	return q.renderStatus(status, "review.html", v)
}

// failReview shows a review with the reason why a form about it failed. change may add what was typed.
func (q *request) failReview(err error, change func(*reviewPage)) error {
	problem := q.pages.config.Server.Problem(q.r, err)
	if problem.Status >= http.StatusInternalServerError || server.IsUnauthenticated(err) {
		return err
	}
	p, loadErr := q.reviewPage(q.path("run"))
	if loadErr != nil {
		return loadErr
	}
	p.Problem = q.plainProblem(problem, p.reviewRow)
	if change != nil {
		change(&p)
	}
	return q.renderReview(problem.Status, p)
}

// plainProblem says why a review could not be changed.
func (q *request) plainProblem(problem server.Problem, now reviewRow) string {
	switch {
	case now.Run != "" && !now.Open() && now.Decision != "":
		return fmt.Sprintf("The review was decided meanwhile: %s.", strings.ToLower(now.State().Word))
	case now.Taken():
		return fmt.Sprintf("%s holds this review until %s.", now.ClaimedBy, now.Until())
	case strings.Contains(problem.Detail, "your claim expired"):
		return "Your claim has expired. Claim the review again."
	case strings.Contains(problem.Detail, "claim it first"):
		return "Claim the review first."
	}
	return afterColon(problem.Detail)
}

func (q *request) reviewPath() string { return "/reviews/" + url.PathEscape(q.path("run")) }

func claimReview(q *request) error {
	text, err := q.form("minutes")
	if err != nil {
		return err
	}
	minutes, err := strconv.Atoi(text)
	if text != "" && (err != nil || minutes < 0 || time.Duration(minutes)*time.Minute > review.MaxLease) {
		return fmt.Errorf("a claim lasts at most %s: %w", review.MaxLease, assay.ErrInvalid)
	}
	s, err := q.session.Claim(q.ctx(), q.path("run"), time.Duration(minutes)*time.Minute)
	if err != nil {
		return q.failReview(err, nil)
	}
	return q.redirect(q.reviewPath(), "The review is yours until "+newReviewRow(s, "").Until()+".")
}

func releaseReview(q *request) error {
	if _, err := q.session.Release(q.ctx(), q.path("run")); err != nil {
		return q.failReview(err, nil)
	}
	return q.redirect(q.reviewPath(), "You have given the review back.")
}

// errChanged is the error for a form about a text that is not the present one.
var errChanged = fmt.Errorf("the text has changed since you saw it: %w", assay.ErrLocked)

func approveReview(q *request) error {
	seen, err := q.form("text")
	if err != nil {
		return err
	}
	id := q.path("run")
	p, err := q.reviewPage(id)
	if err != nil {
		return err
	}
	if p.Refused != "" {
		return q.renderReview(http.StatusForbidden, p)
	}
	if p.Draft != nil && p.Open() && seen != p.Draft.Hash {
		return q.failReview(errChanged, func(p *reviewPage) {
			p.Problem = "The text has changed since you saw it. Read it again before you approve it."
		})
	}
	s, err := q.session.Approve(q.ctx(), id)
	if err != nil {
		return q.failReview(err, nil)
	}
	return q.decided(s, "The answer is approved. Its asker sees it now.")
}

// decided goes on after a decision: to the queue, with a notice.
func (q *request) decided(s engine.ReviewSummary, notice string) error {
	if s.Decision == assay.DecisionPending {
		return q.redirect(q.reviewPath(), fmt.Sprintf("Your approval counts. %s more must follow, by other reviewers.", count(s.Needed-len(s.Approved), "approval")))
	}
	return q.redirect("/reviews", notice)
}

func rejectReview(q *request) error {
	reason, err := q.form("reason")
	if err != nil {
		return err
	}
	bad := ""
	switch {
	case reason == "":
		bad = "Write why. The asker sees it."
	case len(reason) > engine.MaxReviewReason:
		bad = fmt.Sprintf("The reason has more than %s.", size(engine.MaxReviewReason))
	}
	again := func(p *reviewPage) { p.Reason, p.ReasonBad = reason, bad }
	if bad != "" {
		return q.failReview(fmt.Errorf("reject: the answer is not rejected: %w", assay.ErrInvalid), func(p *reviewPage) {
			again(p)
			p.Problem = "The answer is not rejected yet: " + bad
		})
	}
	if _, err := q.session.Reject(q.ctx(), q.path("run"), reason); err != nil {
		return q.failReview(err, again)
	}
	return q.redirect("/reviews", "The answer is rejected. Its asker sees your reason.")
}

// hashText identifies a text in a form.
func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
