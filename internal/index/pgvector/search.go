package pgvector

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/index"
)

// Search implements index.Index.
func (x *Index) Search(ctx context.Context, access assay.Access, q assay.Query) (index.Result, error) {
	if err := index.CheckQuery(q); err != nil {
		return index.Result{}, err
	}
	if err := x.use(); err != nil {
		return index.Result{}, fmt.Errorf("search: %w", err)
	}
	defer x.calls.Done()
	var result index.Result
	err := x.current(ctx, "", func(s *snapshot) (err error) {
		result, err = x.search(ctx, s, access, q)
		return err
	})
	if err != nil {
		return index.Result{}, fmt.Errorf("search: %w", err)
	}
	return result, nil
}

// search answers a text query from one snapshot.
func (x *Index) search(ctx context.Context, s *snapshot, access assay.Access, q assay.Query) (index.Result, error) {
	result := index.Result{Sequence: s.sequence}
	if access.IsZero() {
		return result, nil
	}
	seen, err := x.sight(ctx, s, access)
	if err != nil {
		return result, err
	}
	if err := seen.checkFilter(ctx, s.tx, q.Filter); err != nil {
		return result, err
	}
	t := textSearch{tx: s.tx, seen: seen, limit: q.Limit}
	if t.scope, err = seen.scope(ctx, s.tx, q); err != nil {
		return result, err
	}
	if err := t.lookUp(ctx, q.Text); err != nil {
		return result, err
	}
	result.Chunks = seen.chunks
	for _, term := range t.terms {
		shown := assay.Term{Text: term.text, Stem: term.forms[0], Chunks: term.chunks, Weight: index.TermWeight(seen.chunks, term.chunks)}
		if len(term.forms) > 1 {
			shown.Forms = term.forms[1:]
		}
		result.Terms = append(result.Terms, shown)
	}
	t.norm = index.NewNorm(seen.average(), q.BM25)
	if len(t.forms) > 0 && len(t.scope.classes) > 0 {
		result.Hits, result.Total, err = t.run(ctx)
	}
	return result, err
}

// A textSearch is a text query on one snapshot.
type textSearch struct {
	tx    pgx.Tx
	seen  *sight
	scope scope
	norm  index.Norm
	limit int
	terms []queryTerm
	forms []queryForm // of all terms
}

// A queryTerm is a word of the query.
type queryTerm struct {
	text   string
	forms  []string
	chunks int // visible chunks that have any form
}

// A queryForm is a form of a word that visible chunks have.
type queryForm struct {
	term     int // index in terms
	number   int64
	units    float64 // idf in score units
	eligible int     // chunks in the scope's classes that have it
}

// lookUp finds the query's terms and counts the chunks that have them.
func (t *textSearch) lookUp(ctx context.Context, text string) error {
	var forms []int64
	for _, term := range analysis.QueryTerms(text, t.seen.languages) {
		t.terms = append(t.terms, queryTerm{text: term.Text, forms: term.Forms})
		for _, form := range term.Forms {
			forms = append(forms, termOf(form))
		}
	}
	if len(forms) == 0 {
		return nil
	}
	visible, eligible, err := t.seen.holding(ctx, t.tx, forms, t.scope.classes)
	if err != nil {
		return err
	}
	for i := range t.terms {
		var held []int64
		for _, form := range t.terms[i].forms {
			if n := termOf(form); visible[n] > 0 {
				held = append(held, n)
			}
		}
		if len(held) > 1 {
			if t.terms[i].chunks, err = t.seen.holdingAny(ctx, t.tx, held); err != nil {
				return err
			}
		} else if len(held) == 1 {
			t.terms[i].chunks = visible[held[0]]
		}
		units := index.IDF(t.seen.chunks, t.terms[i].chunks) * index.ScoreUnit
		for _, n := range held {
			t.forms = append(t.forms, queryForm{term: i, number: n, units: units, eligible: eligible[n]})
		}
	}
	return nil
}

// run returns the best hits and the number of matches, at most index.MaxTotal.
func (t *textSearch) run(ctx context.Context) (hits []index.Hit, total int, err error) {
	// The planner overestimates what it costs to intersect many lists in the index, and would read small
	// tables from the front.
	if _, err := t.tx.Exec(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
		return nil, 0, err
	}
	var bounds []float64
	var holding []int
	for _, f := range t.forms {
		bounds, holding = append(bounds, float64(int64(f.units)+1)), append(holding, f.eligible)
	}
	c := combine(bounds, holding, t.seen.chunks)
	search := func(score float64) (int, float64, error) {
		var worst int64
		hits, worst, err = t.best(ctx, c.required(score))
		return len(hits), float64(worst), err
	}
	if t.scope.documents != nil && !t.scope.filter.IsZero() {
		// The filter keeps few documents, and it is not known how many of their chunks have a form.
		_, _, err = search(0)
	} else {
		err = c.best(t.limit, search)
	}
	if err != nil || len(hits) < t.limit {
		return hits, min(len(hits), index.MaxTotal), err
	}
	total, err = t.total(ctx)
	return hits, total, err
}

// numbers returns the numbers of forms.
func numbers(forms []queryForm) []int64 {
	list := make([]int64, len(forms))
	for i, f := range forms {
		list[i] = f.number
	}
	return list
}

// manyForms is the number of forms above which a statement reads them from an array. Otherwise it
// names each, which is faster.
const manyForms = 100

// best returns the best of the chunks that have a form of each list, and the score of the last hit in
// units.
func (t *textSearch) best(ctx context.Context, required [][]int) (hits []index.Hit, worst int64, err error) {
	var a arguments
	where := t.scope.where("c", &a)
	for _, list := range required {
		var forms []int64
		for _, i := range list {
			forms = append(forms, t.forms[i].number)
		}
		where += ` AND c.terms && ` + a.add(forms) + `::bigint[]`
	}
	score := t.scoreEach
	if len(t.forms) > manyForms {
		score = t.scoreArray
	}
	scored := score(where, &a)
	limit := a.add(t.limit)
	query := `SELECT b.id, d.id, d.version, b.score, ARRAY(SELECT f.number = ANY(c.terms) FROM unnest(` + a.add(numbers(t.forms)) + `::bigint[]) WITH ORDINALITY AS f(number, n) ORDER BY f.n)
		FROM (SELECT * FROM (` + scored + `) AS scored ORDER BY score DESC, id LIMIT ` + limit + `) AS b
		JOIN chunk c ON c.no = b.no JOIN document d ON d.no = c.document ORDER BY b.score DESC, b.id`
	rows, err := t.tx.Query(ctx, query, a...)
	if err != nil {
		return nil, 0, err
	}
	for rows.Next() {
		var chunk, document, version [16]byte
		var held []bool
		if err := rows.Scan(&chunk, &document, &version, &worst, &held); err != nil {
			return nil, 0, err
		}
		hits = append(hits, index.Hit{
			Chunk: index.FormatID(chunk), Document: index.FormatID(document), Version: index.FormatID(version),
			BM25: float64(worst) / index.ScoreUnit, Matched: t.matched(held),
		})
	}
	return hits, worst, rows.Err()
}

// scoreEach returns a query for the numbers, IDs and scores of chunks, with an expression for each
// form. OFFSET 0 keeps the planner from looking for each term several times.
func (t *textSearch) scoreEach(where string, a *arguments) string {
	var columns, score strings.Builder
	for i, f := range t.forms {
		number := a.add(f.number) + "::bigint"
		fmt.Fprintf(&columns, ", width_bucket(%s, c.terms) AS p%d", number, i)
		if i > 0 {
			score.WriteString(" + ")
		}
		fmt.Fprintf(&score, "CASE WHEN terms[p%d] = %s THEN %s ELSE 0 END", i, number, scoreSQL(a.add(f.units)+"::float8", fmt.Sprintf("frequencies[p%d]::float8", i)))
	}
	return `SELECT no, id, ` + score.String() + ` AS score FROM (SELECT c.no, c.id, c.terms, c.frequencies, ` + t.normSQL(a) + ` AS norm` + columns.String() + `
		FROM chunk c WHERE ` + where + ` OFFSET 0) AS c`
}

// scoreArray is like scoreEach for any number of forms.
func (t *textSearch) scoreArray(where string, a *arguments) string {
	var units []float64
	for _, f := range t.forms {
		units = append(units, f.units)
	}
	return `SELECT c.no, c.id, (SELECT sum(` + scoreSQL("f.units", "c.frequencies[p]::float8") + `)::bigint
		FROM unnest(` + a.add(numbers(t.forms)) + `::bigint[], ` + a.add(units) + `::float8[]) AS f(number, units), width_bucket(f.number, c.terms) AS p
		WHERE c.terms[p] = f.number) AS score
		FROM (SELECT c.no, c.id, c.terms, c.frequencies, ` + t.normSQL(a) + ` AS norm FROM chunk c WHERE ` + where + `) AS c`
}

// normSQL returns the length normalisation of chunk c, see index.Norm.
func (t *textSearch) normSQL(a *arguments) string {
	return `(` + a.add(t.norm.PerLength) + `::float8 * c.length::float8) + ` + a.add(t.norm.Fixed) + `::float8`
}

// scoreSQL returns the contribution of a form of the given frequency, see index.Norm.
func scoreSQL(units, frequency string) string {
	return `trunc((` + units + ` * ` + frequency + `) / (` + frequency + ` + norm))::bigint + 1`
}

// matched returns the stems of the terms of which a chunk has a form.
func (t *textSearch) matched(held []bool) []string {
	have := make([]bool, len(t.terms))
	for i, f := range t.forms {
		have[f.term] = have[f.term] || held[i]
	}
	var stems []string
	for i, term := range t.terms {
		if have[i] {
			stems = append(stems, term.forms[0])
		}
	}
	return stems
}

// total returns the number of matches, at most index.MaxTotal.
func (t *textSearch) total(ctx context.Context) (int, error) {
	for _, f := range t.forms {
		if t.scope.filter.IsZero() && f.eligible >= index.MaxTotal {
			return index.MaxTotal, nil
		}
	}
	var a arguments
	query := `SELECT count(*) FROM (SELECT FROM chunk c WHERE c.terms && ` + a.add(numbers(t.forms)) + `::bigint[] AND ` + t.scope.where("c", &a) + ` LIMIT ` + a.add(index.MaxTotal) + `) AS found`
	var n int
	err := t.tx.QueryRow(ctx, query, a...).Scan(&n)
	return n, err
}
