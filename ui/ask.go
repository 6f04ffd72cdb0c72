package ui

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/strategy"
)

// askRoutes are about asking questions.
func askRoutes() []Route {
	return []Route{
		page("/{$}", "ask", "Begin", showAsk),
		action("/ask", "ask.begin", "Begin", ask),
	}
}

// An askForm is the data of the page that asks a question.
type askForm struct {
	Asked  engine.Request // as typed and chosen
	Error  string
	Fields string // IDs of the texts that describe the question's field

	Collections []collectionChoice
	Options     engine.AskOptions
	Suggestions []engine.Suggestion
	Recent      []engine.RunSummary
	MoreRecent  bool
	Documents   int // that the user may see
	Disclosure  string
}

// A collectionChoice is a collection that a question may be limited to.
type collectionChoice struct {
	engine.CollectionSummary
	Chosen bool
}

// Chosen reports whether expert options differ from their defaults, so that they are shown open.
func (f askForm) Chosen() bool {
	return f.Asked.Strategy != "" || f.Asked.Review != "" || f.Asked.NoCache || f.Asked.Web
}

// Narrowed returns how many collections are chosen.
func (f askForm) Narrowed() (n int) {
	for _, c := range f.Collections {
		if c.Chosen {
			n++
		}
	}
	return n
}

// Numbers of entries on the page that asks.
const (
	maxRecent      = 6
	maxSuggestions = 4
)

func showAsk(q *request) error {
	asked := engine.Request{Question: cut(q.query("q"), engine.MaxQuestionBytes), Collections: q.r.URL.Query()["collection"]}
	return q.renderAsk(http.StatusOK, askForm{Asked: asked})
}

// renderAsk writes the page that asks, with what was typed.
func (q *request) renderAsk(status int, f askForm) error {
	ctx := q.ctx()
	if q.may("Collections") {
		all, err := q.session.Collections(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			f.Documents += c.Documents
			f.Collections = append(f.Collections, collectionChoice{c, slices.Contains(f.Asked.Collections, c.Name)})
		}
	}
	var err error
	if f.Options, err = q.session.AskOptions(ctx); err != nil {
		return err
	}
	if q.may("Suggestions") && f.Asked.Question == "" {
		if f.Suggestions, err = q.session.Suggestions(ctx, nil, maxSuggestions); err != nil {
			return err
		}
	}
	recent, more, err := q.session.ListRuns(ctx, engine.RunFilter{Limit: maxRecent})
	if err != nil {
		return err
	}
	f.Recent, f.MoreRecent, f.Disclosure = recent, more != nil, governance.Disclosure
	return q.renderStatus(status, "ask.html", q.view("Ask", "Ask", f))
}

// ask begins a run for the question of a form and leads to its page.
func ask(q *request) error {
	if err := q.parseForm(); err != nil {
		return err
	}
	f := q.r.PostForm
	req := engine.Request{
		Question: f.Get("question"), Collections: f["collection"], Mode: strategy.Mode(f.Get("mode")), Strategy: f.Get("strategy"),
		Review: engine.ReviewMode(f.Get("review")), NoCache: f.Get("no_cache") != "", Web: f.Get("web") != "", Follows: f.Get("follows"),
	}
	id, err := q.session.Begin(q.ctx(), req)
	if err != nil {
		return q.askFailed(req, err)
	}
	return q.redirect(runPath(id), "")
}

// askFailed shows the form again with the reason.
func (q *request) askFailed(req engine.Request, err error) error {
	p := q.pages.config.Server.Problem(q.r, err)
	form := askForm{Asked: req, Error: q.detail(err)}
	switch {
	case form.Error == "" || p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden && q.session == nil:
		return err
	case p.RetryAfter > 0:
		q.w.Header().Set("Retry-After", fmt.Sprint(p.RetryAfter))
		form.Error = fmt.Sprintf("%s. Try again in %s.", p.Title, count(p.RetryAfter, "second"))
	case errors.Is(err, assay.ErrStopped):
		form.Error = "An administrator has stopped all work here. Ask again later; what you typed is kept below."
	}
	return q.renderAsk(p.Status, form)
}

// A runList is the data of the page that lists runs.
type runList struct {
	Runs     []engine.RunSummary
	Filters  []runFilter
	Filtered bool
	Next     string // query of the next part; empty: there is none
	First    bool
}

// A runFilter is an entry of the filters of the list.
type runFilter struct {
	Name, Path string
	Current    bool
}

// A namedFilter is a filter of the list by its name in the URL.
type namedFilter struct {
	name, word string
	filter     engine.RunFilter
}

// runFilters are the filters of the list.
var runFilters = []namedFilter{
	{"", "All", engine.RunFilter{}},
	{"active", "Running", engine.RunFilter{States: []assay.RunState{assay.RunActive}}},
	{"answered", "Answered", engine.RunFilter{Statuses: []assay.Status{assay.Answered}}},
	{"incomplete", "Incomplete", engine.RunFilter{Statuses: []assay.Status{assay.Incomplete}}},
	{"conflicting", "Conflicting", engine.RunFilter{Statuses: []assay.Status{assay.Conflicting}}},
	{"not_found", "Not found", engine.RunFilter{Statuses: []assay.Status{assay.NotFound}}},
	{"pending_review", "Waiting", engine.RunFilter{States: []assay.RunState{assay.RunSuspended}}},
	{"rejected", "Rejected", engine.RunFilter{Statuses: []assay.Status{assay.Rejected}}},
	{"failed", "Failed", engine.RunFilter{States: []assay.RunState{assay.RunFailed}}},
}

// runsPerPage is the number of runs on a page of the list.
const runsPerPage = 25

// showRuns lists the runs of the user.
func showRuns(q *request) error {
	chosen := q.query("status")
	at := slices.IndexFunc(runFilters, func(f namedFilter) bool { return f.name == chosen })
	if at < 0 {
		return fmt.Errorf("%q is not a status of runs: %w", chosen, assay.ErrInvalid)
	}
	filter := runFilters[at].filter
	filter.Limit = runsPerPage
	if after := q.query("after"); after != "" {
		text, err := base64.RawURLEncoding.DecodeString(after)
		if err == nil {
			err = json.Unmarshal(text, &filter.After)
		}
		if err != nil {
			return fmt.Errorf("%q is not a place in the list: %w", after, assay.ErrInvalid)
		}
	}
	list := runList{Filtered: chosen != "", First: q.query("after") == ""}
	var next *engine.RunPlace
	var err error
	if list.Runs, next, err = q.session.ListRuns(q.ctx(), filter); err != nil {
		return err
	}
	for i, f := range runFilters {
		list.Filters = append(list.Filters, runFilter{f.word, "/runs?" + url.Values{"status": {f.name}}.Encode(), i == at})
	}
	if next != nil {
		text, err := json.Marshal(next)
		if err != nil {
			return err
		}
		list.Next = "/runs?" + url.Values{"status": {chosen}, "after": {base64.RawURLEncoding.EncodeToString(text)}}.Encode()
	}
	return q.render("runs.html", q.view("Ask", "Your questions", list))
}
