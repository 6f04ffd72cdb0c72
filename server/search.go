package server

import (
	"cmp"
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// searchRoutes search passages.
func searchRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/search", "search.get", "Search", "Find passages, best first", searchGet),
		route("POST", "/api/v1/search", "search", "Search", "Find passages, best first",
			func(ctx context.Context, s *engine.Session, in queryIn) (engine.SearchReport, error) {
				return search(ctx, s, in.Body)
			}),
		route("POST", "/api/v1/explain", "explain", "Explain", "Find passages, and explain the rank of each",
			func(ctx context.Context, s *engine.Session, in queryIn) (engine.SearchReport, error) {
				in.Body.Limit = cmp.Or(in.Body.Limit, defaultHits)
				found, err := s.Explain(ctx, in.Body)
				return engine.ReportOfSearch(found, true), err
			}),
	}
}

// defaultHits is the number of hits of a query without a limit.
const defaultHits = 10

type queryIn struct {
	Body assay.Query `body:"application/json"`
}

type searchIn struct {
	Text       string   `query:"q"`
	Collection []string `query:"collection"`
	Filter     string   `query:"filter"` // such as team = "legal" and year >= 2022
	Limit      int      `query:"limit"`
	Mode       string   `query:"mode"` // text, vector or, by default, both
}

func searchGet(ctx context.Context, s *engine.Session, in searchIn) (engine.SearchReport, error) {
	q := assay.Query{Text: in.Text, Collections: in.Collection, Limit: in.Limit, Mode: assay.Mode(in.Mode)}
	if in.Filter != "" {
		var err error
		if q.Filter, err = assay.ParseFilter(in.Filter); err != nil {
			return engine.SearchReport{}, fieldErrors{{Parameter: "filter", Detail: plainJSON(err)}}
		}
	}
	return search(ctx, s, q)
}

func search(ctx context.Context, s *engine.Session, q assay.Query) (engine.SearchReport, error) {
	q.Limit = cmp.Or(q.Limit, defaultHits)
	found, err := s.Search(ctx, q)
	return engine.ReportOfSearch(engine.Explanation{Results: found}, false), err
}
