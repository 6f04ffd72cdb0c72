package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
)

// searchFlags are the flags of search.
type searchFlags struct {
	json   bool
	filter string
	query  assay.Query
}

func (a *app) searchCommand() *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search [--docs PATH] \"QUERY\"",
		Short: "Find passages, best first, without answering",
		Example: `  assay search "shutdown timeout" --limit 5
  assay search "travel" --filter 'type = "markdown"' --json`,
		Args: oneArgument(`"QUERY"`),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.query.Text = args[0]
			return a.search(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the results as one JSON object")
	flags.IntVar(&f.query.Limit, "limit", 10, "how many passages")
	flags.StringArrayVar(&f.query.Collections, "collection", nil, "search only this `collection`; may be repeated")
	flags.StringVar(&f.filter, "filter", "", "search only documents whose metadata match this `filter`, as in\n'team = \"legal\" and year >= 2022'")
	return cmd
}

func (a *app) search(ctx context.Context, f searchFlags) error {
	var err error
	if f.query.Filter, err = parseFilter(f.filter); err != nil {
		return err
	}
	shown := a.progress()
	defer shown.clear()
	e, err := a.openToAsk(ctx, shown, false)
	if err != nil {
		return err
	}
	defer e.Close()
	shown.update("searching …")
	results, err := e.Search(ctx, assay.Local(), f.query)
	if err != nil {
		return err
	}
	shown.clear()
	if f.json {
		err = writeJSON(a.stdout, results)
	} else {
		err = writeHits(a.stdout, results, a.width)
	}
	if err == nil && len(results.Hits) == 0 {
		return end(exitNotFound)
	}
	return err
}

// writeHits prints each hit with its scores, the words that it was found by,
// and where it is.
func writeHits(w io.Writer, r assay.Results, width int) error {
	var b strings.Builder
	for i, h := range r.Hits {
		fmt.Fprintf(&b, "%2d. %s\n", i+1, title(h.Title, h.Chunk.Headings))
		fmt.Fprintf(&b, "    %s\n", place(h.URI, h.Line, h.Page))
		fmt.Fprintf(&b, "    %s; matched %s\n", scores(h.Scores), strings.Join(matched(r.Terms, h), ", "))
		fmt.Fprintf(&b, "      %s\n", oneLine(h.Text, 2*width))
	}
	if len(r.Hits) == 0 {
		b.WriteString("Nothing found.\n")
	} else {
		fmt.Fprintf(&b, "%d of %s with a word of the query, of %d in the index\n", len(r.Hits), total(r), r.Chunks)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// total writes how many passages a search found, as far as it counted them.
func total(r assay.Results) string {
	if r.Total == assay.MaxTotal {
		return fmt.Sprintf("%d or more passages", max(r.Total, len(r.Hits)))
	}
	return count(r.Total, "passage", "passages")
}

// matched returns the words of the query that a hit holds; a word that only its
// compounds matched stands as it was found.
func matched(terms []assay.Term, h assay.Hit) []string {
	words := make([]string, len(h.Matched))
	for i, stem := range h.Matched {
		words[i] = stem
		for _, t := range terms {
			if t.Stem == stem {
				words[i] = t.Text
			}
		}
	}
	return words
}

// scores writes the scores that a hit has, each by its name.
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
