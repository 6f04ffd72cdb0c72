package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/role"
)

// Next implements role.Querier. It chooses the first of these queries that was not searched yet:
// a name from a sentence of the last results that has words of the question, with the words that
// it lacks; the words of a known gap; the question's words. It returns an error only when ctx
// has ended.
func (Rewriter) Next(ctx context.Context, _ role.Caller, in role.QueryInput) (role.NextQuery, error) {
	if err := ctx.Err(); err != nil {
		return role.NextQuery{}, err
	}
	q := read(in.Question, nil)
	names := strings.Join(lexical.Names(lexical.Quiet(in.Question)), " ")
	queries := bridges(q, in.History)
	for _, gap := range in.Gaps {
		queries = append(queries, role.NextQuery{Query: strings.Join(contentWords(gap), " ") + " " + names, Gap: gap, Reason: "the grader reports it missing"})
	}
	queries = append(queries, role.NextQuery{Query: strings.Join(contentWords(in.Question), " "), Gap: in.Question, Reason: "only the question's words"})
	for _, next := range queries {
		next.Query = strings.Join(distinct(strings.Fields(next.Query)), " ")
		repeats := func(a role.Asked) bool { return lexical.Rephrases(next.Query, a.Query, contentOf) }
		if next.Query != "" && !slices.ContainsFunc(in.History, repeats) {
			return next, nil
		}
	}
	return role.NextQuery{Reason: "every query from the question's words was searched"}, nil
}

// contentOf returns the stems of the content words of a text.
func contentOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, stem := range lexical.Content(text) {
		set[stem] = true
	}
	return set
}

// maxBridges is the number of names of a search that are worth a query.
const maxBridges = 8

// bridges returns queries for names in the results that no query had: those of the last search
// first, ordered by the share of the question that their sentence holds.
func bridges(q question, history []role.Asked) []role.NextQuery {
	asked := contentOf(q.text)
	for _, a := range history {
		for stem := range contentOf(a.Query) {
			asked[stem] = true
		}
	}
	var finder entity.Finder
	var out []role.NextQuery
	for _, a := range slices.Backward(history) {
		type bridge struct {
			name  string
			share float64
			open  []string
		}
		var found []bridge
		for line := range strings.Lines(a.Brought) {
			held := stems("", line)
			share, open := q.coverage(held), q.missing(held)
			if share == 0 || len(open) == 0 {
				continue
			}
			for _, name := range finder.Question(line, "") {
				if !within(asked, contentOf(name)) {
					found = append(found, bridge{name, share, open})
				}
			}
		}
		slices.SortStableFunc(found, func(a, b bridge) int { return cmp.Compare(b.share, a.share) })
		for _, b := range found[:min(len(found), maxBridges)] {
			gap := strings.Join(b.open, " ")
			out = append(out, role.NextQuery{Query: b.name + " " + gap, Gap: gap, Reason: fmt.Sprintf("%s is named near other words of the question", b.name)})
		}
	}
	return out
}

// within reports whether all contains some.
func within(all, some map[string]bool) bool {
	for stem := range some {
		if !all[stem] {
			return false
		}
	}
	return true
}
