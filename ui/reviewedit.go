package ui

import (
	"errors"
	"net/http"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/server"
)

// An editPage is the data of the page on which a reviewer edits a draft.
type editPage struct {
	reviewPage
	Text    string // in the field
	Base    string // hash of the draft that the text was made from
	Bad     string // why the text is refused
	Checked *shownDraft
	Changes []review.Change // of words, from the draft to the checked text
	Claims  []checkedRow
	Stale   []review.Change // from the text in the field to the present draft, if that is another one now
	Most    int             // bytes
}

// A checkedRow is a claim of an edited text.
type checkedRow struct {
	draftClaim
	New bool // the draft does not have it
}

// reviewerMark matches the mark of a statement that a reviewer has added.
var reviewerMark = lazyregexp.New(` ?\(statement of the reviewer [^()]*\)`)

// editable returns the text of a draft for the field. Marks of reviewers are left out, because the
// verification sets them.
func editable(a assay.Answer) string {
	for _, c := range a.Claims {
		if c.Reviewer != "" {
			return reviewerMark.ReplaceAllString(a.Text, "")
		}
	}
	return a.Text
}

// editing loads the page for editing. ok is false if there is nothing to edit, and the page of the
// review has been shown then.
func (q *request) editing() (p editPage, ok bool, err error) {
	p.reviewPage, err = q.reviewPage(q.path("run"))
	if err != nil {
		return p, false, err
	}
	if p.Draft == nil || !p.Open() {
		if p.Run != "" && p.Refused == "" && !p.Open() {
			p.Problem = q.plainProblem(server.Problem{}, p.reviewRow)
		}
		return p, false, q.renderReview(http.StatusConflict, p.reviewPage)
	}
	p.Text, p.Base, p.Most = editable(p.Draft.Answer), p.Draft.Hash, engine.MaxReviewText
	return p, true, nil
}

func (q *request) renderEdit(status int, p editPage) error {
	v := q.view("Reviews", "Edit the draft", p)
	v.Wide = true
	return q.renderStatus(status, "reviewedit.html", v)
}

func showEdit(q *request) error {
	p, ok, err := q.editing()
	if err != nil || !ok {
		return err
	}
	if !p.Mine() {
		return q.failReview(notClaimed(p.reviewRow), nil)
	}
	return q.renderEdit(http.StatusOK, p)
}

// notClaimed is the error for editing a review that the user does not hold.
func notClaimed(r reviewRow) error {
	if r.Taken() {
		return errors.Join(errors.New("claimed by another reviewer"), assay.ErrLocked)
	}
	return errors.Join(errors.New("claim it first"), assay.ErrInvalid)
}

// sentEdit loads the page with the text that was sent. ok is false if it was shown with what is wrong.
func (q *request) sentEdit() (p editPage, ok bool, err error) {
	if err = q.parseForm(); err != nil {
		return p, false, err
	}
	text := strings.ReplaceAll(q.r.PostForm.Get("text"), "\r\n", "\n")
	base := q.r.PostForm.Get("base")
	p, ok, err = q.editing()
	if err != nil || !ok {
		return p, false, err
	}
	present := p.Text
	p.Text = text
	switch {
	case base != p.Base:
		p.Problem = "Another reviewer has changed the draft since you began. Your text is below; the draft is as marked."
		p.Stale = review.Words(text, present)
		return p, false, q.renderEdit(http.StatusConflict, p)
	case strings.TrimSpace(text) == "":
		p.Bad = "The text is empty. To show no answer, reject the draft."
	case len(text) > engine.MaxReviewText:
		p.Bad = "The text has " + size(int64(len(text))) + ", at most " + size(engine.MaxReviewText) + " are possible."
	}
	if p.Bad != "" {
		return p, false, q.renderEdit(http.StatusBadRequest, p)
	}
	if p.Mine() {
		return p, true, nil
	}
	s, err := q.session.Claim(q.ctx(), p.Run, 0) // the claim may have expired while the reviewer wrote
	if err != nil {
		return p, false, q.failEdit(err, p)
	}
	p.reviewRow = newReviewRow(s, p.User)
	return p, true, nil
}

// failEdit shows the page for editing with the reason why a text was not taken.
func (q *request) failEdit(err error, p editPage) error {
	problem := q.pages.config.Server.Problem(q.r, err)
	if problem.Status >= http.StatusInternalServerError || server.IsUnauthenticated(err) {
		return err
	}
	if problem.Status == http.StatusNotFound {
		return q.failReview(err, nil)
	}
	p.Problem = q.plainProblem(problem, p.reviewRow)
	return q.renderEdit(problem.Status, p)
}

// checkEdit verifies an edited text and shows what becomes of it.
func checkEdit(q *request) error {
	p, ok, err := q.sentEdit()
	if err != nil || !ok {
		return err
	}
	check, err := q.session.CheckEdit(q.ctx(), p.Run, p.Text)
	if err != nil {
		return q.failEdit(err, p)
	}
	p.showCheck(check)
	return q.renderEdit(http.StatusOK, p)
}

// showCheck adds the result of the verification.
func (p *editPage) showCheck(check engine.EditCheck) {
	checked := newShownDraft(check.Answer, p.evidence)
	p.Checked, p.Changes = &checked, check.Changes
	before := map[string]bool{}
	for _, c := range p.Draft.Shown {
		before[c.Text] = true
	}
	for _, c := range checked.Shown {
		p.Claims = append(p.Claims, checkedRow{c, !before[c.Text]})
	}
}

// saveEdit stores an edited text, which is then verified once more and counts as the reviewer's
// approval.
func saveEdit(q *request) error {
	p, ok, err := q.sentEdit()
	if err != nil || !ok {
		return err
	}
	s, err := q.session.Edit(q.ctx(), p.Run, p.Text)
	if err != nil {
		return q.failEdit(err, p)
	}
	return q.decided(s, "The edited answer is approved. Its asker sees it now.")
}
