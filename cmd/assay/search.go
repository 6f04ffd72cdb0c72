package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/retrieve"
)

// searchFlags are the flags of search.
type searchFlags struct {
	json    bool
	explain bool
	filter  string
	mode    string
	fusion  string
	query   assay.Query
}

func (a *app) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search [--docs PATH] \"QUERY\"",
		Short: "Find passages without answering, best first",
		Long: `Search lists the passages that match a query, best first. Near-duplicates are left
out and counted. Each hit shows the terms that it matched and its scores:

  relevance  probability that the passage helps to answer the query
  bm25       score of the words in common with the query, 0 or more
  vector     cosine similarity of the meaning, up to 1
  graph      share of a walk over the entities of the best hits and the query
  fused      combined score that orders the candidates
  rerank     score of the reranker, which orders the best candidates`,
		Example: `  assay search "travel" --filter 'type = "markdown"' --json
  assay search "ErrServerClosed" --mode text
  assay search "car insurance" --rewrite "motor vehicle cover" --diversity 0.3
  assay search "shutdown timeout" --explain`,
		Args: oneArgument(`"QUERY"`),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.query.Text = args[0]
			return a.search(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the results as one JSON object")
	flags.BoolVar(&f.explain, "explain", false, "explain the rank of each hit and the time of each stage")
	flags.IntVar(&f.query.Limit, "limit", 10, "number of passages")
	flags.StringArrayVar(&f.query.Collections, "collection", nil, "search only this `collection`; may be repeated")
	flags.StringVar(&f.filter, "filter", "", "search only documents whose metadata match this `filter`")
	flags.StringVar(&f.mode, "mode", "hybrid", "retrieval: text, vector or hybrid")
	flags.StringVar(&f.fusion, "fusion", "weighted", "fusion of rankings: weighted or rrf")
	flags.Float64Var(&f.query.Diversity, "diversity", 0, "penalty for similarity to a better hit, from 0 to 1")
	flags.BoolVar(&f.query.Feedback, "feedback", false, "also search for passages similar to the nearest ones")
	flags.StringArrayVar(&f.query.Rewrites, "rewrite", nil, "also search this `wording` of the query; may be repeated")
	return cmd
}

func (a *app) search(ctx context.Context, f searchFlags) error {
	var err error
	if f.query.Filter, err = parseFilter(f.filter); err != nil {
		return err
	}
	if f.query.Mode, err = named(f.mode, "--mode", map[string]assay.Mode{"hybrid": assay.ModeHybrid, "text": assay.ModeText, "vector": assay.ModeVector}); err != nil {
		return err
	}
	if f.query.Fusion, err = named(f.fusion, "--fusion", map[string]assay.Fusion{"weighted": assay.FusionWeighted, "rrf": assay.FusionRRF}); err != nil {
		return err
	}
	shown := a.progress()
	defer shown.clear()
	e, err := a.openToAsk(ctx, shown, searching, false)
	if err != nil {
		return err
	}
	defer e.Close()
	set, err := a.settings()
	if err != nil {
		return err
	}
	limits := set.Config().Limits
	f.query.VectorWeight, f.query.Unranked = limits.VectorWeight, limits.Unranked
	f.query.BM25 = limits.BM25
	shown.update("searching …")
	found, err := e.Explain(ctx, assay.Local(), f.query)
	if err != nil {
		return err
	}
	shown.clear()
	if f.json {
		err = writeJSON(a.stdout, engine.ReportOfSearch(found, f.explain))
	} else {
		err = writeHits(a.stdout, found, f.explain, a.width)
	}
	if err == nil && len(found.Results.Hits) == 0 {
		return end(exitNotFound)
	}
	return err
}

// named returns the value with a name.
func named[T any](value, flag string, values map[string]T) (T, error) {
	v, ok := values[value]
	if !ok {
		return v, usagef("%s is %q, want one of %s", flag, value, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	return v, nil
}

// writeHits prints each hit with its scores, the reason for it and its location.
func writeHits(w io.Writer, found retrieve.Explanation, explain bool, width int) error {
	r := found.Results
	var b strings.Builder
	for i, h := range r.Hits {
		x := found.Hits[i]
		fmt.Fprintf(&b, "%2d. %s\n", i+1, title(h.Title, h.Chunk.Headings))
		fmt.Fprintf(&b, "    %s\n", place(h.URI, h.Line, h.Page))
		fmt.Fprintf(&b, "    %s; %s\n", scores(h.Scores), why(x))
		if n := len(h.Children); n > 0 {
			fmt.Fprintf(&b, "    the whole section, of which %s were found\n", count(n, "passage", "passages"))
		}
		if explain {
			writeExplained(&b, x, r.Index.Model != "" && h.Scores.Vector == nil)
		}
		fmt.Fprintf(&b, "      %s\n", oneLine(obtained(h.Chunk.Provenance, h.Chunk.Confidence, h.Chunk.Model)+h.Text, 2*width))
	}
	switch {
	case len(r.Hits) == 0:
		b.WriteString("Nothing found.\n")
	case r.Index.Model != "" || len(r.Hits) > r.Total && r.Total < assay.MaxTotal:
		fmt.Fprintf(&b, "%s; %s with a word of the query, of %d in the index\n", count(len(r.Hits), "hit", "hits"), total(r), r.Chunks)
	default:
		fmt.Fprintf(&b, "%d of %s with a word of the query, of %d in the index\n", len(r.Hits), total(r), r.Chunks)
	}
	if explain {
		writeStages(&b, found)
	}
	appendNotes(&b, r.Notes, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// why describes the reason for a hit: the query's words with the fields that hold them, and the
// path of the graph walk.
func why(x retrieve.Explained) string {
	var words []string
	for _, m := range x.Why {
		words = append(words, fmt.Sprintf("%s (%s)", m.Term, strings.Join(m.Fields, ", ")))
	}
	text := "matched no word of the query"
	if len(words) > 0 {
		text = "matched " + strings.Join(words, ", ")
	}
	if len(x.Path) > 0 {
		text += "; reached by " + path(x.Path)
	}
	return text
}

// path formats the path from a hit back to the start of the graph walk.
func path(steps []retrieve.Step) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 {
			b.WriteString(", by ")
		}
		fmt.Fprintf(&b, "%q", s.Entity)
		switch {
		case s.Chunk == "":
			b.WriteString(" of the query")
		case s.Title != "":
			b.WriteString(" of " + strings.Join(strings.Fields(s.Title), " "))
		}
	}
	return b.String()
}

// writeExplained prints how a hit was ranked. Unknown is whether the hit has no vector although
// other passages have one.
func writeExplained(b *strings.Builder, x retrieve.Explained, unknown bool) {
	rank := func(n int) string {
		if n == 0 {
			return "none"
		}
		return fmt.Sprint(n)
	}
	fmt.Fprintf(b, "    ranks: bm25 %s, vector %s, graph %s, fused %s\n", rank(x.Ranks.BM25), rank(x.Ranks.Vector), rank(x.Ranks.Graph), rank(x.Ranks.Fused))
	fmt.Fprintf(b, "    fused: words %.3f, vector %.3f, graph %.3f", x.Fusion.Words, x.Fusion.Vector, x.Fusion.Graph)
	if x.Fusion.Place != nil {
		fmt.Fprintf(b, "; place by words and vector worth %.3f", *x.Fusion.Place)
	}
	b.WriteByte('\n')
	if len(x.Rerank) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(x.Rerank)) {
			parts = append(parts, fmt.Sprintf("%s %.3f", name, x.Rerank[name]))
		}
		fmt.Fprintf(b, "    rerank: %s\n", strings.Join(parts, ", "))
	}
	if unknown {
		b.WriteString("    no vector yet: ranked by its words alone\n")
	}
	var features []string
	for _, name := range retrieve.FeatureNames {
		if v, ok := x.Features[name]; ok {
			features = append(features, fmt.Sprintf("%s %.3g", name, v))
		}
	}
	if len(features) > 0 {
		fmt.Fprintf(b, "    features: %s\n", strings.Join(features, ", "))
	}
}

// writeStages prints the dropped hits and the time that each stage took.
func writeStages(b *strings.Builder, found retrieve.Explanation) {
	for _, d := range found.Dropped {
		fmt.Fprintf(b, "left out: %s is a near-duplicate of a better hit\n", place(d.URI, d.Line, 0))
	}
	var parts []string
	all := int64(0)
	for _, s := range found.Stages {
		parts = append(parts, fmt.Sprintf("%s %.1f", s.Name, float64(s.Micros)/1000))
		all += s.Micros
	}
	fmt.Fprintf(b, "milliseconds: %s; together %.1f\n", strings.Join(parts, ", "), float64(all)/1000)
}

// total formats the number of passages found, up to the limit of the count.
func total(r assay.Results) string {
	if r.Total == assay.MaxTotal {
		return fmt.Sprintf("%d or more passages", max(r.Total, len(r.Hits)))
	}
	return count(r.Total, "passage", "passages")
}

// scores formats the scores that a hit has, each with its name.
func scores(s assay.Scores) string {
	parts := []string{fmt.Sprintf("relevance %.2f", s.Relevance)}
	for _, x := range []struct {
		name  string
		value *float64
	}{{"bm25", s.BM25}, {"vector", s.Vector}, {"graph", s.Graph}, {"fused", s.Fused}, {"rerank", s.Rerank}} {
		if x.value != nil {
			parts = append(parts, fmt.Sprintf("%s %.2f", x.name, *x.value))
		}
	}
	return strings.Join(parts, ", ")
}
