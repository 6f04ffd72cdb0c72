package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// AbstentionRows are the questions of sets, each with its answer and without, as what is
// learned from: features of the question and of what was found for it.
type AbstentionRows struct {
	Words   AbstentionTable `json:"words"`
	Vectors AbstentionTable `json:"vectors"`
}

// An AbstentionTable holds the rows of all sets, in the order of the sets.
type AbstentionTable struct {
	Features []string  `json:"features"`
	Sets     []heldSet `json:"sets"`
}

// A heldSet is the rows of one set.
type heldSet struct {
	Name string    `json:"name"`
	Rows []heldRow `json:"rows"`
}

// A heldRow is one question, in a world with its answer or without.
type heldRow struct {
	Article  string    `json:"article"` // whose questions are learned from together or not at all
	Held     bool      `json:"held"`    // its answer is there
	Found    bool      `json:"found"`   // and a right passage among the best
	Features []float64 `json:"x"`       // empty: nothing was found
}

const (
	heldQuestions = 400 // of a set, at most, that are learned from
	heldFound     = 5   // hits among which a right passage is to be
	heldSplits    = 2
)

// ReadAbstention searches for the questions of sets, as Abstention has it: with the answers
// of one half taken away, and of the other; by words alone, and by words and vectors. It
// is deterministic. Where parts have no embedder there is nothing to learn of vectors, which
// is assay.ErrInvalid.
func ReadAbstention(ctx context.Context, sets []Set, parts Parts) (AbstentionRows, error) {
	var out AbstentionRows
	encoder, ok := parts.Embedder.(ground.Encoder)
	if !ok {
		return out, fmt.Errorf("to learn abstention takes an encoder that gives vectors of tokens: %w", assay.ErrInvalid)
	}
	for _, vectors := range []bool{false, true} {
		own, e, table := parts, encoder, &out.Vectors
		if !vectors {
			own.Embedder, e, table = nil, nil, &out.Words
		}
		table.Features = local.HeldFeatureNames(vectors)
		for _, set := range sets {
			rows, err := rowsOfSet(ctx, set, own, e)
			if err != nil {
				return out, err
			}
			table.Sets = append(table.Sets, rows)
		}
	}
	return out, nil
}

// ParseAbstentionRows reads what was written as JSON. Rows whose features are not those of
// this program are assay.ErrInvalid.
func ParseAbstentionRows(r io.Reader) (AbstentionRows, error) {
	var out AbstentionRows
	if err := json.NewDecoder(r).Decode(&out); err != nil {
		return out, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	for _, vectors := range []bool{false, true} {
		table := out.table(vectors)
		if !slices.Equal(table.Features, local.HeldFeatureNames(vectors)) {
			return out, fmt.Errorf("the features are not those of this program, so the rows have to be made anew: %w", assay.ErrInvalid)
		}
		for _, set := range table.Sets {
			for _, row := range set.Rows {
				if n := len(row.Features); n != 0 && n != len(table.Features) {
					return out, fmt.Errorf("%s: a row has %d features of %d: %w", set.Name, n, len(table.Features), assay.ErrInvalid)
				}
			}
		}
	}
	return out, nil
}

func (r AbstentionRows) table(vectors bool) AbstentionTable {
	if vectors {
		return r.Vectors
	}
	return r.Words
}

// names are those of the sets.
func (r AbstentionRows) names() []string {
	var out []string
	for _, set := range r.Words.Sets {
		out = append(out, set.Name)
	}
	return out
}

// only returns the rows for which keep is true.
func (t AbstentionTable) only(keep func(set string, row heldRow) bool) AbstentionTable {
	out := AbstentionTable{Features: t.Features}
	for _, set := range t.Sets {
		of := heldSet{Name: set.Name}
		for _, row := range set.Rows {
			if keep(set.Name, row) {
				of.Rows = append(of.Rows, row)
			}
		}
		if len(of.Rows) > 0 {
			out.Sets = append(out.Sets, of)
		}
	}
	return out
}

// without are the rows of the sets that a set has nothing to do with.
func (r AbstentionRows) without(set string) AbstentionRows {
	keep := func(other string, _ heldRow) bool { return !related(other, set) }
	return AbstentionRows{Words: r.Words.only(keep), Vectors: r.Vectors.only(keep)}
}

// articleFolds is into how many parts the articles of a set are dealt.
const articleFolds = 5

// withoutFold are all rows but those of a set whose articles are in a fold.
func (r AbstentionRows) withoutFold(set string, fold int) AbstentionRows {
	keep := func(other string, row heldRow) bool {
		return other == set && foldOf(row.Article, articleFolds) != fold || !related(other, set)
	}
	return AbstentionRows{Words: r.Words.only(keep), Vectors: r.Vectors.only(keep)}
}

// articlesOf returns, by the ID of each passage, which article it is of: that of its title,
// or where it has none it is one itself.
func articlesOf(set Set) map[string]string {
	out := make(map[string]string, len(set.Passages))
	for _, p := range set.Passages {
		out[p.ID] = cmp.Or(p.Title, p.ID)
	}
	return out
}

// rowsOfSet searches a set, with one half of its answers taken away and then the other.
func rowsOfSet(ctx context.Context, set Set, parts Parts, encoder ground.Encoder) (heldSet, error) {
	out := heldSet{Name: set.Name}
	set.Queries = sample(set.Queries, heldQuestions)
	if encoder != nil {
		encoder = &encodedOnce{Encoder: encoder, known: map[string][]ground.Token{}}
	}
	articles := articlesOf(set)
	for k := range heldSplits {
		gone, queries := halves(set.Queries, k)
		part := set
		part.Passages = slices.DeleteFunc(slices.Clone(set.Passages), func(p Passage) bool { return gone[p.ID] })
		rows, err := rowsOfHalf(ctx, part, queries, gone, parts, encoder)
		if err != nil {
			return out, err
		}
		for i, q := range queries {
			rows[i].Article = articles[leastOf(q.Relevant)]
		}
		out.Rows = append(out.Rows, rows...)
	}
	return out, nil
}

func rowsOfHalf(ctx context.Context, set Set, queries []Query, gone map[string]bool, parts Parts, encoder ground.Encoder) (rows []heldRow, err error) {
	o, err := Open(ctx, set, parts)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	retriever := o.Retriever(Ranking{Graph: true, Rerank: true})
	report := o.stage("read")
	rows = make([]heldRow, len(queries))
	var done atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			const candidates = 20 // as strategies search
			found, err := retriever.Retrieve(gctx, assay.Local().Access(), assay.Query{Text: q.Text, Limit: candidates})
			if err != nil {
				return fmt.Errorf("%s: query %s: %w", set.Name, q.ID, err)
			}
			slices.SortStableFunc(found.Hits, func(a, b assay.Hit) int { return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance) })
			r := heldRow{Held: !gone[leastOf(q.Relevant)]}
			for _, h := range found.Hits[:min(len(found.Hits), heldFound)] {
				r.Found = r.Found || q.Relevant[h.URI] > 0
			}
			if len(found.Hits) > 0 {
				r.Features, err = local.HeldFeatures(gctx, encoder, role.GradeInput{Question: q.Text, Hits: found.Hits, Terms: found.Terms})
			}
			rows[i] = r
			if n := int(done.Add(1)); n%20 == 0 {
				report(n, len(queries))
			}
			return err
		})
	}
	return rows, errors.Join(g.Wait(), ctx.Err())
}

// encodedOnce keeps the tokens of texts: questions of one topic find the same passages.
type encodedOnce struct {
	ground.Encoder

	mu    sync.Mutex
	known map[string][]ground.Token
	held  int // tokens, of all
}

// mostTokens is how many are kept, at about 1.5 KB each; then all are forgotten.
const mostTokens = 400_000

// Encode implements ground.Encoder.
func (e *encodedOnce) Encode(ctx context.Context, texts []string) ([][]ground.Token, error) {
	out := make([][]ground.Token, len(texts))
	for i, text := range texts {
		e.mu.Lock()
		tokens, ok := e.known[text]
		e.mu.Unlock()
		if !ok {
			made, err := e.Encoder.Encode(ctx, texts[i:i+1])
			if err != nil {
				return nil, err
			}
			tokens = made[0]
			e.mu.Lock()
			if e.held += len(tokens); e.held > mostTokens {
				clear(e.known)
				e.held = len(tokens)
			}
			e.known[text] = tokens
			e.mu.Unlock()
		}
		out[i] = tokens
	}
	return out, nil
}
