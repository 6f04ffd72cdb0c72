package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// An AbstentionTraining is a model that was learned from sets, and what it reaches on each.
type AbstentionTraining struct {
	Model local.HeldModel       `json:"-"`
	Sets  []AbstentionJudgement `json:"sets"`
}

// An AbstentionJudgement is what is reached on a set, by the probabilities alone: a
// question counts as answered right where a right passage is among the best five.
type AbstentionJudgement struct {
	Set       string `json:"set"`
	By        string `json:"by"` // "words" or "words and vectors"
	Questions int    `json:"questions"`
	// Cross is by cross-validation: learned from the other sets and from four fifths of
	// this, the questions of one passage on one side. Left is learned from the others alone.
	Cross AbstentionFigures `json:"cross_validated"`
	Left  AbstentionFigures `json:"left_out"`
}

// AbstentionFigures are what probabilities are worth.
type AbstentionFigures struct {
	AUC         float64         `json:"auc"`
	ECE         float64         `json:"ece"`
	AtMostFalse AbstentionPoint `json:"at_most_false"` // chosen on these very questions
	AtDefault   AbstentionPoint `json:"at_default"`    // at the threshold that the program has
}

// heldRows are the questions of a set, in worlds with their answer and without.
type heldRows struct {
	set  string
	rows []heldRow
}

type heldRow struct {
	rated
	found    bool // a right passage is among the best
	group    string
	features []float64
}

const (
	heldQuestions = 1200 // of a set, at most, that are learned from
	heldFound     = 5    // hits among which a right passage is to be
	heldSplits    = 2
)

// TrainAbstention learns from two or more sets to tell whether passages hold the answer to
// a question: as Abstention does, from the questions of each with the answers of one half
// taken away, and of the other. Each set weighs as the square root of its questions. It is
// deterministic. Where parts have no embedder there is nothing to learn of vectors, which is
// assay.ErrInvalid.
func TrainAbstention(ctx context.Context, sets []Set, parts Parts) (AbstentionTraining, error) {
	var t AbstentionTraining
	encoder, ok := parts.Embedder.(ground.Encoder)
	if !ok || len(sets) < 2 {
		return t, fmt.Errorf("to learn abstention takes an encoder that gives vectors of tokens, and two sets or more: %w", assay.ErrInvalid)
	}
	t.Model = local.HeldModel{Learned: "assay eval train-abstention", Licences: licences}
	for _, vectors := range []bool{false, true} {
		own, e, by := parts, encoder, "words and vectors"
		if !vectors {
			own.Embedder, e, by = nil, nil, "words"
		}
		var all []heldRows
		for _, set := range sets {
			rows, err := rowsOfSet(ctx, set, own, e)
			if err != nil {
				return t, err
			}
			all = append(all, rows)
		}
		weights := learnHeld(all, vectors)
		if vectors {
			t.Model.Vectors = weights
		} else {
			t.Model.Words = weights
		}
		for i, rows := range all {
			// Probabilities are calibrated as those of the model are.
			t.Sets = append(t.Sets, AbstentionJudgement{
				Set: rows.set, By: by, Questions: len(rows.rows),
				Cross: figuresOf(crossed(all, i, vectors), weights), Left: figuresOf(leftOut(all, i, vectors), weights),
			})
		}
	}
	for _, set := range sets {
		t.Model.Sets = append(t.Model.Sets, set.Name)
	}
	return t, nil
}

// rowsOfSet searches a set, with one half of its answers taken away and then the other.
func rowsOfSet(ctx context.Context, set Set, parts Parts, encoder ground.Encoder) (heldRows, error) {
	out := heldRows{set: set.Name}
	set.Queries = sample(set.Queries, heldQuestions)
	if encoder != nil {
		encoder = &encodedOnce{Encoder: encoder, known: map[string][]ground.Token{}}
	}
	for k := range heldSplits {
		gone, queries := halves(set.Queries, k)
		part := set
		part.Passages = slices.DeleteFunc(slices.Clone(set.Passages), func(p Passage) bool { return gone[p.ID] })
		rows, err := rowsOfHalf(ctx, part, queries, gone, parts, encoder)
		if err != nil {
			return out, err
		}
		out.rows = append(out.rows, rows...)
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
			r := heldRow{group: leastOf(q.Relevant)}
			r.answerable = !gone[r.group]
			for _, h := range found.Hits[:min(len(found.Hits), heldFound)] {
				r.found = r.found || q.Relevant[h.URI] > 0
			}
			r.right = r.found
			if len(found.Hits) > 0 {
				r.features, err = local.HeldFeatures(gctx, encoder, role.GradeInput{Question: q.Text, Hits: found.Hits, Terms: found.Terms})
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

// heldTrees is how trees are grown: few and small, for there are but some thousand rows.
var heldTrees = learn.BoostConfig{Rounds: 150, Depth: 3, Rate: 0.08, Ridge: 5, Least: 12, Rows: 0.7, Columns: 0.5, Seed: 7}

const heldRidge = 3e-3

// learnHeld learns from all rows. Its slope and offset are fitted to log odds that rows have
// by cross-validation: a model is surer of what it has seen.
func learnHeld(all []heldRows, vectors bool) local.HeldWeights {
	w := fitHeld(all, vectors)
	var rows []learn.Row
	for i := range all {
		for _, r := range crossed(all, i, vectors) {
			if r.features != nil {
				rows = append(rows, learn.Row{Features: []float64{r.p}, Positive: r.answerable, Weight: 1})
			}
		}
	}
	w.Slope, w.Offset = scaleOf(rows)
	return w
}

// scaleOf returns the slope and the offset that make probabilities of log odds.
//
// Source: Platt, "Probabilistic Outputs for Support Vector Machines", 1999.
func scaleOf(rows []learn.Row) (slope, offset float64) {
	l := learn.Logistic(rows, 1e-6)
	if len(l.Weights) == 0 {
		return 1, 0
	}
	slope = l.Weights[0] * l.Scale[0]
	return fourDigits(slope), fourDigits(l.Bias - slope*l.Mean[0])
}

func fourDigits(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// fitHeld is learnHeld before its probabilities are calibrated.
func fitHeld(all []heldRows, vectors bool) local.HeldWeights {
	w := local.HeldWeights{Features: local.HeldFeatureNames(vectors), Slope: 1}
	var rows []learn.Row
	for _, of := range all {
		for _, r := range of.rows {
			if r.features == nil || r.answerable && !r.found {
				continue // nothing was found, or not what answers it: there is nothing to see
			}
			rows = append(rows, learn.Row{Features: r.features, Positive: r.answerable, Weight: 1 / math.Sqrt(float64(len(of.rows)))})
		}
	}
	w.Questions = len(rows)
	w.Line, w.Trees = learn.Logistic(rows, heldRidge), learn.Boost(rows, heldTrees)
	return w
}

// crossed returns the rows of a set with log odds by cross-validation, and leftOut those by
// a model that was learned from the other sets; both in the place of probabilities.
func crossed(all []heldRows, set int, vectors bool) []heldRow {
	const folds = 5
	out := slices.Clone(all[set].rows)
	for f := range folds {
		others := slices.Clone(all)
		others[set] = heldRows{set: all[set].set}
		for _, r := range all[set].rows {
			if foldOf(r.group, folds) != f {
				others[set].rows = append(others[set].rows, r)
			}
		}
		w := fitHeld(others, vectors)
		for i, r := range out {
			if foldOf(r.group, folds) == f {
				out[i].p = logOddsOf(w, r)
			}
		}
	}
	return out
}

func leftOut(all []heldRows, set int, vectors bool) []heldRow {
	var others []heldRows
	for i, rows := range all {
		if i != set && !related(rows.set, all[set].set) {
			others = append(others, rows)
		}
	}
	w := fitHeld(others, vectors)
	out := slices.Clone(all[set].rows)
	for i, r := range out {
		out[i].p = logOddsOf(w, r)
	}
	return out
}

// nothing are the log odds of a question for which nothing was found.
const nothing = -20

func logOddsOf(w local.HeldWeights, r heldRow) float64 {
	if r.features == nil {
		return nothing
	}
	return w.LogOdds(r.features)
}

// figuresOf says what rows reach whose p are log odds, calibrated as those of a model.
func figuresOf(rows []heldRow, as local.HeldWeights) AbstentionFigures {
	var all []rated
	var scores []float64
	var holds []bool
	for _, r := range rows {
		x := r.rated
		x.p = learn.Sigmoid(as.Slope*x.p + as.Offset)
		all, scores, holds = append(all, x), append(scores, x.p), append(holds, x.answerable)
	}
	const bins = 10
	return AbstentionFigures{AUC: auc(all), ECE: stat.ECE(stat.Bins(scores, holds, bins)), AtMostFalse: atMost(all, MostFalse), AtDefault: pointAt(all, local.DefaultHeld)}
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
