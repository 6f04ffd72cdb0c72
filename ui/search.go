package ui

import (
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
)

// searchRoutes find passages.
func searchRoutes() []Route {
	return []Route{page("/search", "search", "Explain", showSearch)}
}

// searchSizes are how many passages a page of results may have.
var searchSizes = []int{10, 25, 50, 100}

// A searchForm is the form of the search, with the messages about its fields.
type searchForm struct {
	Text        string
	Collections []string // that are searched; empty: all
	Filter      string
	Mode        assay.Mode
	Limit       int

	FilterError string
	Error       string // about the query
}

// A searchView is the data of the search page.
type searchView struct {
	Form        searchForm
	Collections []engine.CollectionSummary
	Asked       bool // a search was made
	Results     assay.Results
	Hits        []searchHit
	Stages      []searchStage
	Dropped     []engine.SearchDrop
	Explained   bool   // the scores are explained
	More        string // path of the page with more passages; empty: there are no more
}

// Chosen reports whether a collection is searched by its name.
func (v searchView) Chosen(name string) bool { return slices.Contains(v.Form.Collections, name) }

// Partial reports whether passages lack vectors.
func (v searchView) Partial() bool {
	return v.Results.Index.Model != "" && v.Results.Index.Coverage < 1
}

// Total is the number of passages with a word of the query.
func (v searchView) Total() string {
	if v.Results.Total >= assay.MaxTotal {
		return "At least " + grouped(int64(v.Results.Total))
	}
	return grouped(int64(v.Results.Total))
}

// A searchStage is a part of a search with its time.
type searchStage struct {
	Name string
	Time time.Duration
}

// A searchHit is a passage that was found.
type searchHit struct {
	assay.Hit
	Name     string // of its document
	Path     string // of the page that shows the passage in its document
	Under    []string
	Passage  []markedText
	Lines    bool // line breaks in the passage count
	Scores   []searchScore
	Why      []engine.SearchMatch
	Explains engine.Explained
}

// A markedText is a part of a text that matches the query, or does not.
type markedText struct {
	Text   string
	Marked bool
}

// A searchScore is one score of a passage. Each has a range of its own.
type searchScore struct {
	Name, Means string
	Value       float64
	Low, High   float64 // ends of the scale
	Scale       string  // the ends in words
	Rank        int     // among the passages that this search found; 0: not known
}

func showSearch(q *request) error {
	form, err := q.searchForm()
	if err != nil {
		return err
	}
	v := searchView{Form: form}
	if v.Collections, err = q.session.Collections(q.ctx()); err != nil {
		return err
	}
	filter, err := assay.ParseFilter(form.Filter)
	if err != nil {
		v.Form.FilterError = q.detail(err)
		return q.renderStatus(http.StatusBadRequest, "search.html", q.view("Documents", "Search", v))
	}
	if form.Text == "" {
		return q.render("search.html", q.view("Documents", "Search", v))
	}
	err = q.search(&v, assay.Query{Text: form.Text, Collections: form.Collections, Filter: filter, Mode: form.Mode, Limit: form.Limit})
	if errors.Is(err, assay.ErrInvalid) { // its key is in no document, or the query is too long
		if form.Filter != "" {
			v.Form.FilterError = q.detail(err)
		} else {
			v.Form.Error = q.detail(err)
		}
		return q.renderStatus(http.StatusBadRequest, "search.html", q.view("Documents", "Search", v))
	}
	if err != nil {
		return err
	}
	return q.render("search.html", q.view("Documents", form.Text, v))
}

// detail returns the text of an error beside a field: that of its problem details, without the words
// for its kind.
func (q *request) detail(err error) string {
	return withoutKind(q.pages.config.Server.Problem(q.r, err).Detail)
}

// withoutKind returns the text of an error without the words for its kind.
func withoutKind(text string) string { return strings.TrimSuffix(text, ": "+assay.ErrInvalid.Error()) }

// searchForm reads the parameters of the search.
func (q *request) searchForm() (searchForm, error) {
	values := q.r.URL.Query()
	f := searchForm{Text: strings.TrimSpace(values.Get("q")), Filter: strings.TrimSpace(values.Get("filter")), Mode: assay.Mode(values.Get("mode")), Limit: searchSizes[0]}
	for _, name := range values["collection"] {
		if name != "" {
			f.Collections = append(f.Collections, name)
		}
	}
	if !slices.Contains([]assay.Mode{assay.ModeHybrid, assay.ModeText, assay.ModeVector}, f.Mode) {
		return f, fmt.Errorf("the mode %q is not text or vector: %w", f.Mode, assay.ErrInvalid)
	}
	if text := values.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || !slices.Contains(searchSizes, n) {
			return f, fmt.Errorf("the limit %q is not one of %v: %w", text, searchSizes, assay.ErrInvalid)
		}
		f.Limit = n
	}
	return f, nil
}

// search finds passages. Those of a retriever that cannot explain its results have scores alone.
func (q *request) search(v *searchView, query assay.Query) error {
	found, err := q.session.Explain(q.ctx(), query)
	v.Explained = err == nil
	if errors.Is(err, assay.ErrInvalid) {
		found = engine.Explanation{}
		found.Results, err = q.session.Search(q.ctx(), query)
	}
	if err != nil {
		return err
	}
	v.Asked, v.Results, v.Dropped = true, found.Results, found.Dropped
	for _, s := range found.Stages {
		v.Stages = append(v.Stages, searchStage{s.Name, time.Duration(s.Micros) * time.Microsecond})
	}
	report := engine.ReportOfSearch(found, v.Explained)
	for _, h := range report.Hits {
		v.Hits = append(v.Hits, hitOf(h, found.Results))
	}
	if i := slices.Index(searchSizes, query.Limit); len(v.Hits) == query.Limit && i+1 < len(searchSizes) {
		v.More = v.Form.path(searchSizes[i+1])
	}
	return nil
}

// AskPath is the path of the page that asks the same as a question.
func (f searchForm) AskPath() string {
	values := url.Values{"q": {f.Text}}
	if len(f.Collections) > 0 {
		values["collection"] = f.Collections
	}
	return "/?" + values.Encode()
}

// path is the path of the search with another number of passages.
func (f searchForm) path(limit int) string {
	values := url.Values{"q": {f.Text}, "limit": {strconv.Itoa(limit)}}
	if len(f.Collections) > 0 {
		values["collection"] = f.Collections
	}
	for name, value := range map[string]string{"filter": f.Filter, "mode": string(f.Mode)} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/search?" + values.Encode()
}

func hitOf(h engine.ReportedHit, r assay.Results) searchHit {
	hit := searchHit{Hit: h.Hit, Name: documentName(h.URI), Path: passagePath(h.Hit), Why: h.Why, Under: h.Chunk.Headings}
	if h.Explained != nil {
		hit.Explains = *h.Explained
	}
	hit.Lines = !isProse(h.Text)
	hit.Passage = marked(h.Text, engine.MarksOfSearch(r.Terms, h.Hit))
	hit.Scores = scoresOf(h.Hit, hit.Explains, r.Hits)
	return hit
}

// passagePath returns the path of the page that shows a passage in its document; empty: it is of no
// stored document.
func passagePath(h assay.Hit) string {
	c := h.Chunk
	if h.Origin != assay.FromDocuments || c.Document == "" {
		return ""
	}
	return documentPath(c.Document, c.Version, c.Start, c.End)
}

// marked cuts a text at its marks.
func marked(text string, marks []engine.SearchMark) []markedText {
	var parts []markedText
	at := 0
	for _, m := range marks {
		if m.Start > at {
			parts = append(parts, markedText{text[at:m.Start], false})
		}
		parts = append(parts, markedText{text[m.Start:m.End], true})
		at = m.End
	}
	if at < len(text) {
		parts = append(parts, markedText{text[at:], false})
	}
	return parts
}

// scoresOf returns the scores of a passage with their scales. all are the passages of the result.
func scoresOf(h assay.Hit, x engine.Explained, all []assay.Hit) []searchScore {
	s := h.Scores
	relevance := searchScore{Name: "Relevance", Means: "probability that the passage helps", Value: s.Relevance, High: 1, Scale: "0 to 1"}
	scores := []searchScore{relevance}
	add := func(v *float64, score searchScore, of func(assay.Scores) *float64) {
		if v == nil {
			return
		}
		score.Value = *v
		if score.Scale == "" { // its own scale, which the passages of this result show
			score.Low, score.High = rangeOf(all, of)
			score.Scale = "within this result " + fixed(score.Low) + " to " + fixed(score.High)
		}
		scores = append(scores, score)
	}
	add(s.Rerank, searchScore{Name: "Rerank", Means: "by the reranker, on its own scale"}, func(s assay.Scores) *float64 { return s.Rerank })
	add(s.Fused, searchScore{Name: "Fused", Means: "the searches taken together", Rank: x.Ranks.Fused}, func(s assay.Scores) *float64 { return s.Fused })
	add(s.BM25, searchScore{Name: "BM25", Means: "words in common", Rank: x.Ranks.BM25}, func(s assay.Scores) *float64 { return s.BM25 })
	add(s.Vector, searchScore{Name: "Vector", Means: "similar meaning, by cosine", Low: -1, High: 1, Scale: "−1 to 1", Rank: x.Ranks.Vector}, nil)
	add(s.Graph, searchScore{Name: "Graph", Means: "share of the walk over names", High: 1, Scale: "0 to 1", Rank: x.Ranks.Graph}, nil)
	add(s.Managed, searchScore{Name: "Managed", Means: "by the managed service, on its own scale"}, func(s assay.Scores) *float64 { return s.Managed })
	add(s.Score, searchScore{Name: "Score", Means: "by the scorer, not calibrated", High: 1, Scale: "0 to 1"}, nil)
	return scores
}

// rangeOf returns the least and the greatest of a score, and 0 if it is between them or below.
func rangeOf(all []assay.Hit, of func(assay.Scores) *float64) (low, high float64) {
	for _, h := range all {
		if v := of(h.Scores); v != nil {
			low, high = min(low, *v), max(high, *v)
		}
	}
	if low == high {
		high = low + 1
	}
	return low, high
}
