package strategy

import (
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A trail is what was searched for a question, the oldest first, and what each search
// brought: what a querier goes by.
type trail []role.Asked

// findOn makes one search for f and takes it up in the trail. It returns how many of the
// hits are new.
//
// What follows on the first search is searched beside f's question, so that the relevance
// of what it brings is that to the question: how well a passage fits a query that was
// made up on the way says nothing of whether it helps. Searched by themselves, such queries
// had judge and reflect say something to two more of the 36 foreign questions of
// eval/testdata than static does.
func (f *finding) findOn(ctx context.Context, s run.Scope, env Env, query string, t *trail) (fresh int, err error) {
	q := assay.Query{Text: query, Filter: f.filter}
	if len(*t) > 0 {
		q.Text, q.Rewrites = f.question, []string{query}
	}
	searched, known := len(f.searched), map[string]bool{}
	for _, h := range f.hits {
		known[h.Chunk.ID] = true
	}
	if fresh, err = f.find(ctx, s, env, q); err != nil {
		return 0, err
	}
	for i := searched; i < len(f.searched); i++ {
		f.searched[i].Query = query
	}
	f.tries = append(f.tries, tryOf(query, f.filter))
	var brought []string
	for _, h := range f.hits {
		if !known[h.Chunk.ID] && len(brought) < maxBrought {
			brought = append(brought, telling(env.Question, h))
		}
	}
	if len(brought) == 0 {
		brought = append(brought, "nothing new")
	}
	*t = append(*t, role.Asked{Query: query, Brought: strings.Join(brought, "\n")})
	return fresh, nil
}

// A drought is the number of searches in a row without progress.
type drought int

// leastFresh is the share of the hits of a search that must be new for progress.
const leastFresh = 0.1

// after notes a search with so many hits, of which so many are new.
func (d *drought) after(fresh, hits int) {
	if *d++; float64(fresh) > leastFresh*float64(hits) {
		*d = 0
	}
}

// ends reports whether to stop searching: there was no progress twice in a row.
func (d drought) ends() bool { return d >= 2 }

// maxBrought is how many hits of a search a querier is told of, the best first.
const maxBrought = 3

// telling returns a hit's title and the sentence of it that shares most words of content
// with a question, on one line.
func telling(question string, h assay.Hit) string {
	const maxBytes = 240
	asked := map[string]bool{}
	for _, stem := range surface.Content(question) {
		asked[stem] = true
	}
	best, most := "", -1
	for _, sp := range sentence.Spans(h.Text) {
		text, shared := h.Text[sp.Start:sp.End], map[string]bool{}
		for _, stem := range surface.Content(text) {
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

// next asks the querier what to search next for a question. Where there is nothing, stop
// says why: nothing better is known, or it was searched for f already.
func (e Env) next(ctx context.Context, s run.Scope, question string, f *finding, t trail, gaps []string) (query string, stop assay.Stop, err error) {
	in := role.QueryInput{Question: question, History: t, Gaps: gaps}
	out, err := hand(ctx, s, e, job[role.QueryInput, role.NextQuery]{
		role:     role.QuerierRole,
		do:       e.Roles.Querier.Next,
		outcome:  func(n *role.NextQuery) *role.Outcome { return &n.Outcome },
		cautious: role.NextQuery{Reason: "the querier failed"},
	}, in, &f.notes)
	if err != nil {
		return "", "", err
	}
	query = f.notes.bounded(role.QuerierRole, out.Query)
	switch repeats := slices.ContainsFunc(t, func(a role.Asked) bool { return sameWords(a.Query, query) }); {
	case query == "":
		return "", assay.StopNoProgress, nil
	case repeats:
		return "", assay.StopCircular, nil
	}
	return query, "", nil
}
