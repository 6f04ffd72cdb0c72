package prompted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// queryReply is the reply requested from the model.
type queryReply struct {
	Reason string `json:"reason,omitempty"`
	Gap    string `json:"gap,omitempty"`
	Query  string `json:"query"`
}

var queryOutput = outputOf[queryReply]("next_query")

// shownBrought is the number of bytes shown of a query's results.
const shownBrought = 300

// Next implements role.Querier. It chooses the next query. It rejects a query that repeats an
// earlier one, by its words and the domain's synonyms.
func (q Rewriter) Next(ctx context.Context, c role.Caller, in role.QueryInput) (role.NextQuery, error) {
	return typed[queryReply, role.NextQuery]{
		job: job[queryReply]{
			Config: q.Config, task: role.QuerierTask, out: queryOutput(), maxTokens: 200,
			write: writeQuery(in),
			check: func(r *queryReply) []string {
				if strings.Contains(strings.TrimSpace(r.Query), "\n") {
					return []string{"the query has several lines; want one"}
				}
				if problems := tooLong(r.Query, maxQuery); problems != nil {
					return problems
				}
				for _, asked := range in.History {
					if q.Domain.rephrases(r.Query, asked.Query) {
						return []string{fmt.Sprintf("the query %q repeats or rephrases %q, which was searched already", shorten(query(r.Query), 120), shorten(line(asked.Query), 120))}
					}
				}
				return nil
			},
			salvage: func(r *queryReply) ([]string, bool) {
				r.Query, r.Gap = "", ""
				return []string{"the model found no query that was not searched already"}, true
			},
		},
		local: ifAny(q.Local != nil, func() (role.NextQuery, error) { return q.Local.Next(ctx, c, in) }),
		cautious: func(o role.Outcome) role.NextQuery {
			return role.NextQuery{Reason: "the querier failed: " + o.Failure, Outcome: o}
		},
		finish: func(reply queryReply, outcome role.Outcome) role.NextQuery {
			return role.NextQuery{
				Query: query(reply.Query), Gap: shorten(visible.Line(reply.Gap), maxPhrase), Reason: shorten(visible.Line(reply.Reason), maxPhrase), Outcome: outcome,
			}
		},
	}.do(ctx, c)
}

// writeQuery shows the question, the missing information and the search history: all queries, and
// their results as far as they fit, the latest first.
func writeQuery(in role.QueryInput) func(prompt, int) (string, []string, bool) {
	n := len(in.History)
	return fitting(n, "searches with what they brought", func(k int) any {
		history := make([]string, n)
		for i, a := range in.History {
			history[i] = "Query: " + line(a.Query)
			if i >= n-k {
				history[i] += "\nBrought: " + shorten(line(a.Brought), shownBrought)
			}
		}
		return map[string]any{"Question": in.Question, "History": history, "Gaps": strings.Join(in.Gaps, "\n")}
	})
}

// rephrases reports whether a query asks the same as an earlier one, by their content words and the
// domain's synonyms.
func (d *Domain) rephrases(query, earlier string) bool {
	return lexical.Rephrases(query, earlier, d.content)
}

// content returns the stems of a text's content words. It replaces the domain's synonyms by their
// term.
func (d *Domain) content(text string) map[string]bool {
	stems := contentStems(text)
	if d != nil {
		for _, t := range d.terms {
			for _, s := range t.synonyms {
				stems = replaced(stems, contentStems(s), contentStems(t.word))
			}
		}
	}
	set := map[string]bool{}
	for _, s := range stems {
		set[s] = true
	}
	return set
}

// contentStems returns the stems of a text's content words, in order.
func contentStems(text string) []string { return lexical.Content(line(text)) }

// replaced returns list with each occurrence of old replaced by with.
func replaced(list, old, with []string) []string {
	if len(old) == 0 {
		return list
	}
	var out []string
	for i := 0; i < len(list); i++ {
		if i+len(old) <= len(list) && slices.Equal(list[i:i+len(old)], old) {
			out = append(out, with...)
			i += len(old) - 1
			continue
		}
		out = append(out, list[i])
	}
	return out
}
