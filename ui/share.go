package ui

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// shareRoutes are about links to answers.
func shareRoutes() []Route {
	return []Route{
		page("/runs/{id}/share", "run.share", "Shares", showActions),
		action("/runs/{id}/shares", "run.shares.add", "Share", addShare),
		action("/runs/{id}/shares/{share}/revoke", "run.shares.revoke", "Unshare", revokeShare),
		page("/shared/{token}", "shared", "SharedRun", showShared),
	}
}

// An actions is the part of a page by which a user judges and shares an answer.
type actions struct {
	Base      string // path of the run, or of the link by which it is read
	Run       string
	Judgeable bool
	Feedback  *engine.Feedback // nil: none yet
	Shares    []engine.Share
	Sharing   bool   // the user may share it
	Link      string // of a share that was made now
	Tenant    string
	Done      string // the change that was made, for screen readers
	Open      string // the part that is open: "details" or "share"
	Problem   problem
	Input     engine.NewFeedback // as it was typed
}

// A problem is what is wrong with a form.
type problem struct {
	Field string // empty: the form
	Text  string
}

// RunActions returns what the user can do with the answer of an own run.
func (v view) RunActions(r assay.Run) (actions, error) { return v.request.actions(r.ID) }

// actions returns what the user can do with the answer of an own run. It is empty while nothing is shown
// of the answer.
func (q *request) actions(run string) (actions, error) {
	a := actions{Base: runPath(run), Run: run, Tenant: q.grant.Tenant}
	if err := q.judgement(&a, engine.RunRef{Run: run}); err != nil {
		return actions{}, err
	}
	if !q.may("Share") || !a.Judgeable {
		return a, nil
	}
	var err error
	a.Sharing = true
	a.Shares, err = q.session.Shares(q.ctx(), run)
	if errors.Is(err, assay.ErrNotFound) { // the run was deleted meanwhile
		return actions{}, nil
	}
	return a, err
}

// judgement reads the user's feedback.
func (q *request) judgement(a *actions, ref engine.RunRef) error {
	if !q.may("Feedback") {
		return nil
	}
	f, err := q.session.Feedback(q.ctx(), ref)
	switch {
	case err == nil:
		a.Judgeable, a.Feedback, a.Input = true, &f, f.NewFeedback
	case errors.Is(err, assay.ErrSuspended), errors.Is(err, assay.ErrForbidden), errors.Is(err, assay.ErrInvalid):
		return nil // nothing is shown of the answer
	case errors.Is(err, assay.ErrNotFound):
		a.Judgeable = true
		return nil
	}
	return err
}

// showActions shows what the user can do with a run, on a page of its own.
func showActions(q *request) error {
	a, err := q.actions(q.path("id"))
	if err != nil {
		return err
	}
	if !a.Judgeable {
		return fmt.Errorf("run %q has no answer that is shown: %w", a.Run, assay.ErrNotFound)
	}
	a.Open = "share"
	return q.renderActions(http.StatusOK, a)
}

// renderActions writes the part of a page alone if a script asks for it, else a page with it.
func (q *request) renderActions(status int, a actions) error {
	v := q.view("Ask", "Feedback and links", a)
	if q.isPart() {
		return q.execute(status, "actions.html", "actions", a)
	}
	return q.renderStatus(status, "actions.html", v)
}

// isPart reports whether a script asks for a part of a page.
func (q *request) isPart() bool { return q.r.Header.Get("Assay-Part") != "" }

// shareDays are the lives of links that the page offers.
var shareDays = []int{1, 7, 30, 90, 365}

// ShareDays returns the lives of links that the page offers, in days.
func (actions) ShareDays() []int { return shareDays }

func addShare(q *request) error {
	text, err := q.form("days")
	if err != nil {
		return err
	}
	days, err := strconv.Atoi(cmp.Or(text, "30"))
	if err != nil || !slices.Contains(shareDays, days) {
		return fmt.Errorf("a link lives %.10q days: %w", text, assay.ErrInvalid)
	}
	share, err := q.session.Share(q.ctx(), q.path("id"), time.Duration(days)*24*time.Hour)
	if err != nil {
		return err
	}
	a, err := q.actions(q.path("id"))
	if err != nil {
		return err
	}
	a.Link, a.Open, a.Done = q.origin()+"/shared/"+share.Token, "share", "The link is made."
	return q.renderActions(http.StatusOK, a)
}

// origin returns the scheme and the host under which the browser has reached the server.
func (q *request) origin() string {
	scheme := "http"
	if q.encrypted() {
		scheme = "https"
	}
	return scheme + "://" + q.r.Host
}

func revokeShare(q *request) error {
	run := q.path("id")
	if err := q.session.Unshare(q.ctx(), run, q.path("share")); err != nil {
		return err
	}
	const done = "The link is revoked. Nobody can open it any more."
	if !q.isPart() {
		return q.redirect(runPath(run)+"/share", done)
	}
	a, err := q.actions(run)
	if err != nil {
		return err
	}
	a.Open, a.Done = "share", done
	return q.renderActions(http.StatusOK, a)
}

// A sharedPage is the data of the page of a link.
type sharedPage struct {
	Hidden  bool // the user may not see a document that the answer rests on
	Run     engine.SharedRun
	Text    answerText
	Sources []sharedSource
	Actions actions
}

// A sharedSource is a source with the words that the answer cites.
type sharedSource struct {
	Number    int
	Title     string
	URL       string // empty: it is no page of the web
	Place     string
	Citations []assay.Citation
}

// showShared shows the answer that a link opens, if the user may see what it rests on.
func showShared(q *request) error {
	token := q.path("token")
	run, err := q.session.SharedRun(q.ctx(), token)
	if errors.Is(err, assay.ErrForbidden) {
		return q.renderStatus(http.StatusForbidden, "shared.html", q.view("", "Shared answer", sharedPage{Hidden: true}))
	}
	if err != nil {
		return err
	}
	p := sharedPage{Run: run, Text: answerTextOf(run.Answer), Sources: sharedSources(run.Answer)}
	if p.Actions, err = q.sharedActions(token); err != nil {
		return err
	}
	return q.render("shared.html", q.view("", run.Answer.Question, p))
}

// sharedActions returns what a reader of a link can do.
func (q *request) sharedActions(token string) (actions, error) {
	a := actions{Base: "/shared/" + url.PathEscape(token)}
	err := q.judgement(&a, engine.RunRef{Share: token})
	return a, err
}

// sharedSources returns the sources of an answer.
func sharedSources(a assay.Answer) []sharedSource {
	var all []sharedSource
	for _, citations := range a.Sources() {
		first := citations[0]
		all = append(all, sharedSource{
			Number: first.Number, Title: titleOf(first.Title, first.URI), URL: webAddress(first.URI, first.Page),
			Place: placeOf(first.Page, first.Line), Citations: citations,
		})
	}
	return all
}
