package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/run"
)

// Web searches the open web. Queries leave the machine, so they contain only words of the question
// and none of a document. It is safe for concurrent use.
type Web interface {
	// Name returns the name of the search service, such as "searxng".
	Name() string

	// Price returns the maximum price of one search, in millionths of the configured currency. 0
	// means free or unknown.
	Price() int64

	// Search returns up to n results, best first. It returns assay.ErrUnavailable if the service
	// failed.
	Search(ctx context.Context, query string, n int) ([]assay.WebResult, error)

	// Page fetches a page and returns its text as passages, in order. It returns assay.ErrInvalid
	// for an address that must not be fetched, and assay.ErrUnavailable for a page that cannot be
	// read.
	Page(ctx context.Context, url string) ([]assay.Passage, error)
}

// pagePassages is the number of passages of one page that become hits.
const pagePassages = 2

// webInput is the recorded input of a web search.
type webInput struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

// pageAsked is the recorded input of the reading of a page: its address and the terms that select
// its passages.
type pageAsked struct {
	URL   string       `json:"url"`
	Terms []assay.Term `json:"terms"`
}

// searchWebFor makes one web search for a sub-question, reads the result pages and adds their
// passages to the sub-question, marked as from the web. If the web is off or not available, it adds
// a note and no hits.
//
// The run's filter and collections do not apply to the web. An error means that the run cannot go
// on.
func (e Env) searchWebFor(ctx context.Context, s run.Scope, sq *subQuestion) error {
	if e.Web == nil {
		sq.notes.say(assay.NoteElsewhere, "the web was not searched: "+cmp.Or(e.NoWeb, "it is off"))
		return nil
	}
	own, ok := e.publicWords(sq.question)
	if !ok {
		sq.notes.say(assay.NoteElsewhere, "the web was not searched: the question was rewritten with words that may come from a document; ask it in full")
		return nil
	}
	query, cut := webQuery(own)
	if query == "" {
		sq.notes.say(assay.NoteElsewhere, "the web was not searched: the question has no words to search for")
		return nil
	}
	if cut {
		sq.notes.say(assay.NoteElsewhere, fmt.Sprintf("the question is too long for a web search; searched for %q", query))
	}
	results, err := e.searchWeb(ctx, s, query)
	switch {
	case stopOf(err) != "":
		return err
	case isFailure(err):
		sq.notes.say(assay.NoteElsewhere, remarkLine("the web could not be searched: "+failureOf(err)))
		return nil
	case err != nil:
		return err
	}
	sq.notes.say(assay.NoteElsewhere, fmt.Sprintf("%s was asked to search the web for %q: %s", e.Web.Name(), query, count(len(results), "result", "results")))
	pages, err := e.readPages(ctx, s, results, sq)
	if err != nil {
		return err
	}
	sq.iterations++
	sq.searchKeys = append(sq.searchKeys, searchKeyOf("web: "+query, assay.Filter{}))
	hits := sq.webHits(results, pages, e.Settings.CRAG.WebScore)
	searched := assay.Searched{Query: query, Origin: assay.FromWeb, Hits: len(hits), Grade: assay.Insufficient}
	for _, h := range hits {
		searched.TopRelevance = max(searched.TopRelevance, h.Scores.Relevance)
	}
	sq.searched = append(sq.searched, searched)
	sq.terms = known(sq.terms, hits)
	sq.addHits(hits)
	return nil
}

// webRung searches the web for sub-questions that are still insufficient, if the question may be
// searched for there.
func (e Env) webRung(ctx context.Context, s run.Scope, found []subQuestion) error {
	for i := range found {
		sq := &found[i]
		if sq.sufficient() || sq.cutShort() {
			continue
		}
		if e.Web == nil {
			sq.ladder.skip(RungWeb, cmp.Or(e.NoWeb, "it is off"))
			continue
		}
		err := e.climbToWeb(ctx, s.Sub("web", i), sq)
		if stop := stopOf(err); stop != "" {
			sq.endSearch(stop, err)
		} else if err != nil {
			return err
		}
		if sq.sufficient() {
			sq.stop = assay.StopSufficient
		}
	}
	return nil
}

// climbToWeb searches the web for one sub-question, grades what was found and records the rung.
func (e Env) climbToWeb(ctx context.Context, s run.Scope, sq *subQuestion) error {
	why := sq.insufficientReason(search{rung: sq.ladder.top()})
	if below := sq.ladder.skippedReasons(RungReformulate, RungWiden, RungCollection); below != "" {
		why += "; " + below
	}
	hits, searches := len(sq.hits), len(sq.searched)
	if err := e.searchWebFor(ctx, s, sq); err != nil {
		return err
	}
	if len(sq.searched) == searches { // the notes say why
		sq.ladder.skip(RungWeb, "it could not be searched: "+sq.notes.last())
		return nil
	}
	sq.ladder.taken = append(sq.ladder.taken, RungWeb)
	made := &sq.searched[len(sq.searched)-1]
	made.Rung = string(RungWeb)
	c := RungInput{Rung: RungWeb, Query: made.Query, Why: why}
	if len(sq.hits) > hits {
		if err := sq.gradeAll(ctx, s, e); err != nil {
			return err
		}
	}
	return sq.recordRung(ctx, s, e, c, sq.searched[len(sq.searched)-1].Hits)
}

// searchWeb makes one web search.
func (e Env) searchWeb(ctx context.Context, s run.Scope, query string) ([]assay.WebResult, error) {
	price := assay.Usage{CostMicros: e.Web.Price()}
	step := run.Step{Name: "web", Kind: assay.StepWeb, Model: e.Web.Name(), Reserve: price}
	in := webInput{Query: query, Limit: e.Settings.CRAG.Web}
	return run.Do(ctx, s.Until(e.Limits.Wall*3/4), step, in, func(ctx context.Context, in webInput) ([]assay.WebResult, assay.Usage, error) {
		results, err := e.Web.Search(ctx, in.Query, in.Limit)
		return results[:min(len(results), in.Limit)], price.Add(assay.Usage{Searches: 1}), err
	})
}

// A webPage holds the passages of a page with the most weight of the terms.
type webPage struct {
	Hits    []assay.Hit `json:"hits"`
	failed  string      // why it was not read; empty: it was
	refused bool        // it must not be read, and its snippet does not count either
}

// readPages reads the pages of results in parallel. A page that cannot be read has no hits.
func (e Env) readPages(ctx context.Context, s run.Scope, results []assay.WebResult, sq *subQuestion) ([]webPage, error) {
	pages := make([]webPage, len(results))
	err := s.Parallel(ctx, "page", len(results), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		step := run.Step{Name: "page", Kind: assay.StepWeb}
		in := pageAsked{URL: results[i].URL, Terms: sq.terms}
		page, err := run.Do(ctx, s.Until(e.Limits.Wall*3/4), step, in, func(ctx context.Context, in pageAsked) (webPage, assay.Usage, error) {
			passages, err := e.Web.Page(ctx, in.URL)
			return webPage{Hits: best(passages, in.Terms)}, assay.Usage{}, err
		})
		if err != nil && stopOf(err) == "" && !isFailure(err) {
			return err
		}
		if pages[i] = page; err != nil {
			pages[i].failed, pages[i].refused = failureOf(err), errors.Is(err, assay.ErrInvalid)
		}
		return nil
	})
	return pages, err
}

// webHits returns the passages of the pages, and the snippets of pages that could not be read, each
// page's best first. All have the same score. Relevance on the web is not calibrated: a hit's
// relevance is that score times the share of the terms it contains, by weight.
func (sq *subQuestion) webHits(results []assay.WebResult, pages []webPage, score float64) []assay.Hit {
	var first, more []assay.Hit
	for i, page := range pages {
		hits := page.Hits
		if page.failed != "" {
			sq.notes.say(assay.NoteElsewhere, remarkLine(fmt.Sprintf("%s was not read: %s", results[i].URL, page.failed)))
			if hits = snippetOf(results[i]); page.refused {
				hits = nil
			} else if len(hits) > 0 {
				sq.notes.say(assay.NoteElsewhere, remarkLine(results[i].URL+" counts with its search snippet only"))
			}
		}
		for j, h := range hits[:min(len(hits), pagePassages)] {
			h.Origin, h.Collection, h.Scores = assay.FromWeb, "", assay.Scores{Score: &score, Relevance: score * share(h, sq.terms)}
			if j == 0 {
				first = append(first, h)
			} else {
				more = append(more, h)
			}
		}
	}
	return append(first, more...)
}

// snippetOf returns the snippet of a search result as a hit, or nil if it is empty.
func snippetOf(r assay.WebResult) []assay.Hit {
	text := visible.Line(r.Snippet)
	if text == "" {
		return nil
	}
	id := assay.DocumentID("web", r.URL)
	version := assay.DocumentVersion(text, nil, "snippet")
	return []assay.Hit{{
		Chunk: assay.Chunk{ID: assay.ChunkID(id, version, 0), Document: id, Version: version, Kind: assay.ChunkProse, End: len(text), Headings: []string{}},
		Text:  text, URI: r.URL, Title: cmp.Or(visible.Line(r.Title), r.URL),
	}}
}

// best returns the passages of a page with the highest weight of contained terms, as hits. Ties
// keep the order of the page, and passages without any term are left out.
func best(passages []assay.Passage, terms []assay.Term) []assay.Hit {
	type weighed struct {
		assay.Passage
		weight float64
	}
	var list []weighed
	for _, p := range passages {
		if w := weightIn(p.Text, p.Language, terms); w > 0 {
			list = append(list, weighed{p, w})
		}
	}
	slices.SortStableFunc(list, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	hits := []assay.Hit{}
	for _, p := range list[:min(len(list), pagePassages)] {
		hits = append(hits, assay.Hit{
			Chunk: p.Chunk, Text: p.Text, URI: p.URI, Title: p.Title, Language: p.Language, Line: p.Line, Page: p.Page,
		})
	}
	return hits
}

// share returns the share of the weight of the content terms, in [0, 1], that a hit contains in its
// title, headings or text.
func share(h assay.Hit, terms []assay.Term) float64 {
	terms = slices.DeleteFunc(slices.Clone(terms), func(t assay.Term) bool { return lexical.Function(strings.ToLower(t.Text)) })
	all := 0.0
	for _, t := range terms {
		all += t.Weight
	}
	if all <= 0 {
		return 1
	}
	return min(1, weightIn(h.Title+"\n"+strings.Join(h.Chunk.Headings, "\n")+"\n"+h.Text, h.Language, terms)/all)
}

// weightIn returns the weight of the terms that a text contains.
func weightIn(text, language string, terms []assay.Term) float64 {
	held := stemsOf(language, text)
	sum := 0.0
	for _, t := range terms {
		if holds(held, t) {
			sum += t.Weight
		}
	}
	return sum
}

func holds(held map[string]bool, t assay.Term) bool {
	return held[t.Stem] || slices.ContainsFunc(t.Forms, func(form string) bool { return held[form] })
}

// known returns the terms with their counts increased by the hits from elsewhere, so that a word
// that no document has but these hits do is not unknown.
func known(terms []assay.Term, hits []assay.Hit) []assay.Term {
	terms = slices.Clone(terms)
	for _, h := range hits {
		held := stemsOf(h.Language, h.Title, strings.Join(h.Chunk.Headings, "\n"), h.Text)
		for i, t := range terms {
			if holds(held, t) {
				terms[i].Chunks++
			}
		}
	}
	return terms
}

// publicWords returns a web query for a sub-question: the sub-question, or else the whole question,
// if it has only words that the caller wrote. Words added by a role, also when a follow-up is
// rewritten, may be from a document, and document text must not leave the machine. Ok is false if
// neither qualifies.
func (e Env) publicWords(sub string) (query string, ok bool) {
	own := map[string]bool{}
	for _, w := range lexical.Words(strings.ToLower(cmp.Or(e.asked, e.Question))) {
		own[w] = true
	}
	for _, query := range []string{sub, e.Question} {
		foreign := func(w string) bool { return !own[w] && !lexical.Function(w) }
		if !slices.ContainsFunc(lexical.Words(strings.ToLower(query)), foreign) {
			return query, true
		}
	}
	return "", false
}

// Limits of a web query; services refuse longer ones.
//
// Source: Brave, "Web Search", q: at most 400 characters and 50 words.
const (
	maxWebWords = 50
	maxWebRunes = 400
)

// webQuery returns a question as a web query. If the question is too long, webQuery keeps only the
// first content words and reports cut.
func webQuery(question string) (query string, cut bool) {
	question = visible.Line(question)
	words := strings.Fields(question)
	if len(words) <= maxWebWords && utf8.RuneCountInString(question) <= maxWebRunes {
		return question, false
	}
	var kept []string
	size := 0
	for _, w := range words {
		n := utf8.RuneCountInString(w) + 1
		if lexical.Function(strings.ToLower(w)) || size+n > maxWebRunes || len(kept) == maxWebWords {
			continue
		}
		kept, size = append(kept, w), size+n
	}
	return strings.Join(kept, " "), true
}

// isFailure reports whether err is a failure of the service or page rather than of the run.
func isFailure(err error) bool {
	return errors.Is(err, assay.ErrUnavailable) || errors.Is(err, assay.ErrInvalid) || errors.Is(err, assay.ErrNotFound)
}

// failureOf returns the text of a step's error without the step and the kind.
func failureOf(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "step "); ok {
		if _, said, ok := strings.Cut(rest, ": "); ok {
			text = said
		}
	}
	for _, kind := range []error{assay.ErrUnavailable, assay.ErrInvalid, assay.ErrNotFound} {
		text = strings.TrimSuffix(text, ": "+kind.Error())
	}
	return text
}

// markExternal puts a notice before an answer's text that lists the citations which are not from
// the documents, and shifts the claims accordingly.
func markExternal(a *assay.Answer) {
	var notices []string
	for _, from := range []struct {
		origin assay.Origin
		words  string
	}{{assay.FromWeb, "from the web"}, {assay.FromService, "from a managed service"}} {
		var marks []string
		for _, c := range a.Citations {
			if mark := fmt.Sprintf("[%d]", c.Number); c.Origin == from.origin && !slices.Contains(marks, mark) {
				marks = append(marks, mark)
			}
		}
		if len(marks) > 0 {
			slices.SortFunc(marks, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
			notices = append(notices, "Statements citing "+strings.Join(marks, ", ")+" are "+from.words+", not from your documents.\n\n")
		}
	}
	notice := strings.Join(notices, "")
	a.Text = notice + a.Text
	for i := range a.Claims {
		a.Claims[i].Start += len(notice)
		a.Claims[i].End += len(notice)
	}
}
