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
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/run"
)

// Web is the open web as a strategy reaches it. What is asked of it leaves the machine:
// it is the words of the question, and nothing of any document. It is safe for
// concurrent use.
type Web interface {
	// Name says who is asked: "searxng".
	Name() string

	// Price is what one search may cost at most, in millionths of the configured currency;
	// 0: nothing, or nobody knows.
	Price() int64

	// Search returns up to n results, best first. The error is assay.ErrUnavailable
	// where the service failed.
	Search(ctx context.Context, query string, n int) ([]assay.WebResult, error)

	// Page fetches a page and returns what it says, cut into passages, in their order.
	// An address that must not be asked is assay.ErrInvalid, a page that cannot be read
	// assay.ErrUnavailable.
	Page(ctx context.Context, url string) ([]assay.Passage, error)
}

// pagePassages is how many passages of one page become hits.
const pagePassages = 2

// webInput is what a search of the web records.
type webInput struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

// pageAsked is what the reading of a page records: which one, and what is looked for
// in it.
type pageAsked struct {
	URL   string       `json:"url"`
	Terms []assay.Term `json:"terms"`
}

// fromWeb looks a finding up on the web: one search, of which it reads the pages. What
// they say is added to the finding, marked as what it is. Where the web is off, or does
// not answer, the finding's notes say so, and nothing is added.
//
// The run's filter and collections say nothing of the web. The error is that the run
// cannot go on.
func (e Env) fromWeb(ctx context.Context, s run.Scope, f *finding) error {
	if e.Web == nil {
		f.notes.say(assay.NoteElsewhere, "the web was not searched: "+cmp.Or(e.NoWeb, "it is off"))
		return nil
	}
	own, ok := e.ownWords(f.question)
	if !ok {
		f.notes.say(assay.NoteElsewhere, "the web was not searched: the question, as it was understood, has words that it was not asked with, and these may be from a document; ask it in full")
		return nil
	}
	query, cut := webQuery(own)
	if query == "" {
		f.notes.say(assay.NoteElsewhere, "the web was not searched: the question has no words to search for")
		return nil
	}
	if cut {
		f.notes.say(assay.NoteElsewhere, fmt.Sprintf("the question is too long for a search of the web, which was made with %q", query))
	}
	results, err := e.searchWeb(ctx, s, query)
	switch {
	case stopOf(err) != "":
		return err
	case isFailure(err):
		f.notes.say(assay.NoteElsewhere, remark("the web could not be searched: "+failureOf(err)))
		return nil
	case err != nil:
		return err
	}
	f.notes.say(assay.NoteElsewhere, fmt.Sprintf("%s was asked to search the web for %q: %s", e.Web.Name(), query, count(len(results), "result", "results")))
	pages, err := e.readPages(ctx, s, results, f)
	if err != nil {
		return err
	}
	f.iterations++
	f.tries = append(f.tries, tryOf("web: "+query, assay.Filter{}))
	hits := f.webHits(results, pages, e.Settings.CRAG.WebScore)
	searched := assay.Searched{Query: query, Origin: assay.FromWeb, Hits: len(hits), Grade: assay.Insufficient}
	for _, h := range hits {
		searched.TopRelevance = max(searched.TopRelevance, h.Scores.Relevance)
	}
	f.searched = append(f.searched, searched)
	f.terms = known(f.terms, hits)
	f.merge(hits)
	return nil
}

// lastRung looks on the web for what the sub-questions lack after all else was tried,
// where the question may go there.
func (e Env) lastRung(ctx context.Context, s run.Scope, found []finding) error {
	if e.Web == nil {
		return nil
	}
	for i := range found {
		f := &found[i]
		if f.sufficient() || f.cutShort() {
			continue
		}
		scope, before := s.Sub("web", i), len(f.hits)
		err := e.fromWeb(ctx, scope, f)
		if err == nil && len(f.hits) > before {
			err = f.regrade(ctx, scope, e)
		}
		if stop := stopOf(err); stop != "" {
			f.ends(stop, err)
		} else if err != nil {
			return err
		}
		if f.sufficient() {
			f.stop = assay.StopSufficient
		}
	}
	return nil
}

// searchWeb makes one search of the web.
func (e Env) searchWeb(ctx context.Context, s run.Scope, query string) ([]assay.WebResult, error) {
	price := assay.Usage{CostMicros: e.Web.Price()}
	step := run.Step{Name: "web", Kind: assay.StepWeb, Model: e.Web.Name(), Reserve: price}
	in := webInput{Query: query, Limit: e.Settings.CRAG.Web}
	return run.Do(ctx, s.Until(e.Limits.Wall*3/4), step, in, func(ctx context.Context, in webInput) ([]assay.WebResult, assay.Usage, error) {
		results, err := e.Web.Search(ctx, in.Query, in.Limit)
		return results[:min(len(results), in.Limit)], price.Add(assay.Usage{Searches: 1}), err
	})
}

// A webPage is what was read of one: the passages that say most of what is looked for.
type webPage struct {
	Hits    []assay.Hit `json:"hits"`
	failed  string      // why it was not read; empty: it was
	refused bool        // it must not be read, nor counts what a search shows of it
}

// readPages reads the pages of results, side by side. One that cannot be read stands
// for none.
func (e Env) readPages(ctx context.Context, s run.Scope, results []assay.WebResult, f *finding) ([]webPage, error) {
	pages := make([]webPage, len(results))
	err := s.Parallel(ctx, "page", len(results), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		step := run.Step{Name: "page", Kind: assay.StepWeb}
		in := pageAsked{URL: results[i].URL, Terms: f.terms}
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

// webHits returns what the pages say, and what the search shows of those that could not
// be read, each page's best passage first. All have the same score. Nobody has calibrated
// what the web brings: the relevance of a hit is that score for one that has all that is
// looked for, and less for one that has less, by weight.
func (f *finding) webHits(results []assay.WebResult, pages []webPage, score float64) []assay.Hit {
	var first, more []assay.Hit
	for i, page := range pages {
		hits := page.Hits
		if page.failed != "" {
			f.notes.say(assay.NoteElsewhere, remark(fmt.Sprintf("%s was not read: %s", results[i].URL, page.failed)))
			if hits = snippetOf(results[i]); page.refused {
				hits = nil
			} else if len(hits) > 0 {
				f.notes.say(assay.NoteElsewhere, remark(results[i].URL+" counts with what the search shows of it alone"))
			}
		}
		for j, h := range hits[:min(len(hits), pagePassages)] {
			h.Origin, h.Collection, h.Scores = assay.FromWeb, "", assay.Scores{Score: &score, Relevance: score * share(h, f.terms)}
			if j == 0 {
				first = append(first, h)
			} else {
				more = append(more, h)
			}
		}
	}
	return append(first, more...)
}

// snippetOf returns what a search shows of a page, as a hit; none where it shows nothing.
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

// best returns the passages of a page that say most of what is looked for, as hits: by
// the weight of the terms that they hold, then as they stand. Those that hold none are
// left out.
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

// share is how much of the terms that mean something, by weight, a hit has, in its title
// and headings as well, in [0, 1].
func share(h assay.Hit, terms []assay.Term) float64 {
	terms = slices.DeleteFunc(slices.Clone(terms), func(t assay.Term) bool { return surface.Function(strings.ToLower(t.Text)) })
	all := 0.0
	for _, t := range terms {
		all += t.Weight
	}
	if all <= 0 {
		return 1
	}
	return min(1, weightIn(h.Title+"\n"+strings.Join(h.Chunk.Headings, "\n")+"\n"+h.Text, h.Language, terms)/all)
}

// weightIn is the weight of the terms that a text in a language holds.
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

// known returns the terms of a search of the documents with what hits from elsewhere
// hold: a word that no document has, and these do, is not unknown.
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

// ownWords returns what may be asked of the web for a sub-question: that, or else the
// question that it is of, made of words that whoever asks has written. What a role has put
// in, also to make one question of a conversation, may be from a document, and documents
// do not leave. ok is false where neither is.
func (e Env) ownWords(sub string) (query string, ok bool) {
	own := map[string]bool{}
	for _, w := range surface.Words(strings.ToLower(cmp.Or(e.asked, e.Question))) {
		own[w] = true
	}
	for _, query := range []string{sub, e.Question} {
		foreign := func(w string) bool { return !own[w] && !surface.Function(w) }
		if !slices.ContainsFunc(surface.Words(strings.ToLower(query)), foreign) {
			return query, true
		}
	}
	return "", false
}

// What a search of the web takes: services refuse longer queries.
//
// Source: Brave, "Web Search", q: at most 400 characters and 50 words.
const (
	maxWebWords = 50
	maxWebRunes = 400
)

// webQuery returns a question as the web is asked it. Of one that is too long only the
// first words that mean something are left.
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
		if surface.Function(strings.ToLower(w)) || size+n > maxWebRunes || len(kept) == maxWebWords {
			continue
		}
		kept, size = append(kept, w), size+n
	}
	return strings.Join(kept, " "), true
}

// isFailure reports whether err is of what was asked, and not of the run.
func isFailure(err error) bool {
	return errors.Is(err, assay.ErrUnavailable) || errors.Is(err, assay.ErrInvalid) || errors.Is(err, assay.ErrNotFound)
}

// failureOf is the text of a step's error, without the step and the kind.
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

// elsewhere says which of an answer's citations are not from the documents, before its
// text, where nobody can miss it. The claims move along.
func elsewhere(a *assay.Answer) {
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
			notices = append(notices, "What cites "+strings.Join(marks, ", ")+" is "+from.words+", not from your documents.\n\n")
		}
	}
	notice := strings.Join(notices, "")
	a.Text = notice + a.Text
	for i := range a.Claims {
		a.Claims[i].Start += len(notice)
		a.Claims[i].End += len(notice)
	}
}
