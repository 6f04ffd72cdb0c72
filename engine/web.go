package engine

import (
	"cmp"
	"context"
	"fmt"
	neturl "net/url"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/strategy"
)

// searcherName returns the name of the web search for a request; empty: none.
func (e *Engine) searcherName(req Request) string {
	if !req.Web || e.config.Web == nil {
		return ""
	}
	return e.config.Web.Name()
}

// webOf returns a run's access to the web, or the reason why it has none.
func (e *Engine) webOf(req storedRequest) (web strategy.Web, off string) {
	switch {
	case !req.Web:
		return nil, "the question does not allow it"
	case req.Searcher == "":
		return nil, "no search of the web is configured"
	}
	return recordedWeb{name: req.Searcher, searcher: e.config.Web, pages: e.pages, screen: e.screenCall}, ""
}

// recordedWeb is a run's access to the web, through the searcher that was configured when the run
// began. A replay does not call it.
type recordedWeb struct {
	name     string
	searcher assay.WebSearcher // the current one; nil: none
	pages    assay.PageFetcher
	screen   func(ctx context.Context, place string, texts ...string) error
}

// Name implements strategy.Web.
func (w recordedWeb) Name() string { return w.name }

// Price implements strategy.Web.
func (w recordedWeb) Price() int64 {
	micros, _ := priceOf(w.searcher)
	return micros
}

// priceOf returns the price of one web search and whether it is known. A searcher that is not an
// assay.PricedSearcher has the price 0, not known.
func priceOf(searcher assay.WebSearcher) (micros int64, known bool) {
	if p, ok := searcher.(assay.PricedSearcher); ok {
		return p.SearchPrice()
	}
	return 0, false
}

// checkWebPriced returns assay.ErrInvalid if the cost is limited and the run may use a web search
// of unknown price.
func (e *Engine) checkWebPriced(req Request) error {
	if !req.Web || e.config.Web == nil {
		return nil
	}
	if _, known := priceOf(e.config.Web); known {
		return nil
	}
	return fmt.Errorf("what a search of the web by %s costs is not known, so the cost of a run cannot be limited: configure its price (web: price), or ask without the web: %w", e.config.Web.Name(), assay.ErrInvalid)
}

// Search implements strategy.Web.
func (w recordedWeb) Search(ctx context.Context, query string, n int) ([]assay.WebResult, error) {
	if w.searcher == nil || w.searcher.Name() != w.name {
		return nil, fmt.Errorf("%s was configured when the run began, and no longer is: %w", w.name, assay.ErrUnavailable)
	}
	if err := w.screen(ctx, "web search", query); err != nil {
		return nil, err
	}
	ctx, cancel := withHalfTimeout(ctx)
	defer cancel()
	return w.searcher.SearchWeb(ctx, query, n)
}

// withHalfTimeout returns a context that ends after half of the time that ctx has left, so that one
// slow server cannot use all of it.
func withHalfTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Until(end)/2, errHalf)
}

// errHalf is the cause of a context that half created and that timed out.
var errHalf = fmt.Errorf("half of the time that was left is over: %w", assay.ErrUnavailable)

// Page implements strategy.Web.
func (w recordedWeb) Page(ctx context.Context, url string) (passages []assay.Passage, err error) {
	texts := []string{url}
	if plain, err := neturl.QueryUnescape(url); err == nil {
		texts = append(texts, plain)
	}
	if err := w.screen(ctx, "page", texts...); err != nil {
		return nil, err
	}
	limited, cancel := withHalfTimeout(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // a page that breaks the parser must not end the run
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

// passagesOf parses a page and splits it into passages like a document.
func passagesOf(ctx context.Context, page assay.WebPage) ([]assay.Passage, error) {
	doc, err := parse.Parse(ctx, parse.Input{Type: page.Type, Data: page.Data})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("read %s: %v: %w", page.URL, err, assay.ErrUnavailable)
	}
	id := assay.DocumentID("web", page.URL)
	version := assay.DocumentVersion(doc.Text, nil, parse.Version+"/"+chunk.Version)
	language := doc.Metadata[assay.MetaLanguage].String
	chunks, err := chunk.Split(ctx, doc, id, version, chunk.Options{})
	if err != nil {
		return nil, err
	}
	var passages []assay.Passage
	for _, c := range chunks {
		if c.Kind == assay.ChunkSection {
			continue // the passages in it are in the list themselves
		}
		passages = append(passages, assay.Passage{
			Chunk: c, Text: doc.Text[c.Start:c.End], URI: page.URL, Title: cmp.Or(doc.Title, page.URL), Language: language,
		})
	}
	return passages, nil
}

// A webStep is the decoded input of a web step: a search or a page.
type webStep struct {
	Query string `json:"query"`
	URL   string `json:"url"`
}

// webIntention describes the web step that is about to start.
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

// webSummary describes the result of a web step.
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
