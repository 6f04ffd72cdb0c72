package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/chunk"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/strategy"
)

// searcherName names who searches the web for a question; empty: nobody does.
func (e *Engine) searcherName(req Request) string {
	if !req.Web || e.config.Web == nil {
		return ""
	}
	return e.config.Web.Name()
}

// webOf returns the web as a run may reach it, or why it may not.
func (e *Engine) webOf(req stored) (web strategy.Web, off string) {
	switch {
	case !req.Web:
		return nil, "the question does not allow it (--web does)"
	case req.Searcher == "":
		return nil, "no search of the web is configured"
	}
	return openWeb{name: req.Searcher, searcher: e.config.Web, pages: e.pages}, ""
}

// An openWeb is the web as runs reach it: by the searcher that was configured when they
// began. In a replay nobody is asked.
type openWeb struct {
	name     string
	searcher assay.WebSearcher // of today; nil: none
	pages    *webfetch.Fetcher
}

// Name implements strategy.Web.
func (w openWeb) Name() string { return w.name }

// Price implements strategy.Web.
func (w openWeb) Price() int64 {
	micros, _ := priceOf(w.searcher)
	return micros
}

// priceOf returns what one search of the web may cost. One that says nothing of it is
// taken to cost nothing that is known.
func priceOf(searcher assay.WebSearcher) (micros int64, known bool) {
	if p, ok := searcher.(assay.PricedSearcher); ok {
		return p.SearchPrice()
	}
	return 0, false
}

// checkWebPriced refuses, as assay.ErrInvalid, a limit of what a run may cost where it may
// search the web for a price that nobody knows.
func (e *Engine) checkWebPriced(req Request) error {
	if !req.Web || e.config.Web == nil || req.Budget.CostMicros == 0 {
		return nil
	}
	if _, known := priceOf(e.config.Web); known {
		return nil
	}
	return fmt.Errorf("what a search of the web by %s costs is not known, so the cost of a run cannot be limited: configure its price (web: price), or ask without the web: %w", e.config.Web.Name(), assay.ErrInvalid)
}

// Search implements strategy.Web.
func (w openWeb) Search(ctx context.Context, query string, n int) ([]assay.WebResult, error) {
	if w.searcher == nil || w.searcher.Name() != w.name {
		return nil, fmt.Errorf("%s was configured when the run began, and is not any more: %w", w.name, assay.ErrUnavailable)
	}
	ctx, cancel := half(ctx)
	defer cancel()
	return w.searcher.SearchWeb(ctx, query, n)
}

// half returns a context that ends when half of the time is over that ctx has left: one
// server that is slow must not have all of it.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Until(end)/2, errHalf)
}

// errHalf is the cause of a context that half has ended.
var errHalf = fmt.Errorf("half of the time that was left is over: %w", assay.ErrUnavailable)

// pageNames are names of files by media type: a hint for the parser.
var pageNames = map[string]string{"text/html": "page.html", "application/xhtml+xml": "page.html", "text/plain": "page.txt", "text/markdown": "page.md"}

// Page implements strategy.Web.
func (w openWeb) Page(ctx context.Context, url string) (passages []assay.Passage, err error) {
	limited, cancel := half(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // a page that a parser stumbles over is no reason to end the run
			passages, err = nil, fmt.Errorf("read %s: it cannot be parsed: %w", url, assay.ErrUnavailable)
		}
	}()
	page, err := w.pages.Fetch(limited, url)
	if err == nil {
		passages, err = passagesOf(limited, page)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("read %s: %w", url, errHalf)
	}
	return passages, err
}

// passagesOf reads a page as a document is read, and cuts it as one.
func passagesOf(ctx context.Context, page webfetch.Page) ([]assay.Passage, error) {
	doc, err := parse.Parse(ctx, parse.Input{Name: pageNames[page.Type], Data: page.Data})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("read %s: %v: %w", page.URL, err, assay.ErrUnavailable)
	}
	id := assay.DocumentID("web", page.URL)
	version := assay.DocumentVersion(doc.Text, nil, parse.Version+"/"+chunk.Version)
	language := doc.Metadata[assay.MetaLanguage].String
	var passages []assay.Passage
	for _, c := range chunk.Split(doc, id, version, chunk.Options{}) {
		if c.Kind == assay.ChunkSection {
			continue // it holds passages that are here themselves
		}
		passages = append(passages, assay.Passage{
			Chunk: c, Text: doc.Text[c.Start:c.End], URI: page.URL, Title: cmp.Or(doc.Title, page.URL), Language: language,
		})
	}
	return passages, nil
}

// A webStep is what is read of a step of the web: a search, or a page.
type webStep struct {
	Query string `json:"query"`
	URL   string `json:"url"`
}

// webIntention says what a step of the web is about to do.
func webIntention(rec assay.Record) string {
	in := decode[webStep](rec.Input)
	switch {
	case in == nil:
		return "asking the web"
	case in.URL != "":
		return "reading " + in.URL
	}
	return fmt.Sprintf("searching the web for %q", in.Query)
}

// webSummary says what a step of the web brought.
func webSummary(rec assay.Record) string {
	in := decode[webStep](rec.Input)
	if in == nil {
		return string(rec.Kind)
	}
	if in.URL != "" {
		page := decode[struct {
			Hits []assay.Hit `json:"hits"`
		}](rec.Output)
		if page == nil {
			return "read " + in.URL
		}
		return fmt.Sprintf("read %s: %s of the question", in.URL, counted(len(page.Hits), "passage"))
	}
	results := decode[[]assay.WebResult](rec.Output)
	if results == nil {
		return fmt.Sprintf("%s, %q", rec.Model, in.Query)
	}
	return fmt.Sprintf("%s, %q: %s", rec.Model, in.Query, counted(len(*results), "result"))
}
