package strategy

import (
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// searchHistory lists the searches made for a question, oldest first, and the results of each. It
// is the querier's input.
type searchHistory []role.Asked

// searchNext makes one search for sq and appends it to the history. It returns the number of new
// hits.
//
// Later queries are searched as rewrites of sq's question, so that the relevance of a hit is its
// relevance to the question: how well a passage fits a query that was derived on the way does not
// show whether it helps. When such queries were searched by themselves, judge and reflect answered
// two more of the 36 foreign questions of eval/testdata than static does.
func (sq *subQuestion) searchNext(ctx context.Context, s run.Scope, env Env, query string, t *searchHistory) (fresh int, err error) {
	q := assay.Query{Text: query, Filter: sq.filter}
	if len(*t) > 0 {
		q.Text, q.Rewrites = sq.question, []string{query}
	}
	searched, known := len(sq.searched), map[string]bool{}
	for _, h := range sq.hits {
		known[h.Chunk.ID] = true
	}
	if fresh, err = sq.search(ctx, s, env, q); err != nil {
		return 0, err
	}
	for i := searched; i < len(sq.searched); i++ {
		sq.searched[i].Query = query
	}
	sq.searchKeys = append(sq.searchKeys, searchKeyOf(query, sq.filter))
	var brought, from []string
	for _, h := range sq.hits {
		if !known[h.Chunk.ID] && len(brought) < maxHistoryHits {
			brought, from = append(brought, bestSentence(env.Question, h)), appendNew(from, h.URI)
		}
	}
	if len(brought) == 0 {
		brought = append(brought, "nothing new")
	}
	*t = append(*t, role.Asked{Query: query, Brought: strings.Join(brought, "\n"), Sources: from})
	return fresh, nil
}

// lookOn makes one search, as searchNext does, and grades all hits found so far.
func (sq *subQuestion) lookOn(ctx context.Context, s run.Scope, env Env, query string, t *searchHistory) error {
	if _, err := sq.searchNext(ctx, s, env, query, t); err != nil {
		return err
	}
	return sq.gradeAboveFloor(ctx, s, env)
}

// noProgressCount is the number of searches in a row without progress.
type noProgressCount int

// minNewShare is the share of the hits of a search that must be new for progress.
const minNewShare = 0.1

// add records a search with the given numbers of new hits and of all hits.
func (d *noProgressCount) add(fresh, hits int) {
	if *d++; float64(fresh) > minNewShare*float64(hits) {
		*d = 0
	}
}

// stalled reports whether to stop searching because two searches in a row made no progress.
func (d noProgressCount) stalled() bool { return d >= 2 }

// maxHistoryHits is the number of hits per search that a querier sees, the best first.
const maxHistoryHits = 3

// bestSentence returns, on one line, a hit's title and its sentence that shares the most content
// words with the question.
func bestSentence(question string, h assay.Hit) string {
	const maxBytes = 240
	asked := map[string]bool{}
	for _, stem := range lexical.Content(question) {
		asked[stem] = true
	}
	best, most := "", -1
	for _, sp := range sentence.Spans(h.Text) {
		text, shared := h.Text[sp.Start:sp.End], map[string]bool{}
		for _, stem := range lexical.Content(text) {
			if asked[stem] {
				shared[stem] = true
			}
		}
		if n := len(shared); n > most {
			best, most = text, n
		}
	}
	line := visible.Line(h.Title + ": " + best)
	if len(line) > maxBytes {
		line = strings.ToValidUTF8(line[:maxBytes], "") + " …"
	}
	return line
}

// nextQuery asks the querier for the next query. If there is none, stop is the reason: the querier
// knows no better query, or it repeated one of the history.
func (e Env) nextQuery(ctx context.Context, s run.Scope, question string, sq *subQuestion, t searchHistory, gaps []string) (query string, stop assay.Stop, err error) {
	in := role.QueryInput{Question: question, History: t, Gaps: gaps}
	out, err := runRole(ctx, s, e, job[role.QueryInput, role.NextQuery]{
		task:     role.QuerierTask,
		do:       e.Roles.Rewriter.Next,
		cautious: role.NextQuery{Reason: "the querier failed"},
	}, in, &sq.notes)
	if err != nil {
		return "", "", err
	}
	query = sq.notes.bounded(role.QuerierTask, out.Query)
	switch repeats := slices.ContainsFunc(t, func(a role.Asked) bool { return sameWords(a.Query, query) }); {
	case query == "":
		return "", assay.StopNoProgress, nil
	case repeats:
		return "", assay.StopCircular, nil
	}
	return query, "", nil
}
