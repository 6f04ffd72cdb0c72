package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/role/local"
	"github.com/assay-rag/assay/strategy"
)

// AbstentionOptions say how abstention is measured.
type AbstentionOptions struct {
	Strategies []string        // by name; empty: static
	Splits     int             // 0: 2, one half of the passages and the other
	Questions  int             // of the set, evenly spread; 0: all
	Rows       *AbstentionRows // what weights are learned from that have not seen the set; nil: only those in the program are asked
	Encoders   engine.Encoders // that make vectors; nil: by words alone
	Progress   func(Progress)  // called by one goroutine at a time; nil: nobody looks
}

// MostFalse is the share of questions without an answer that may be answered: coverage is
// reported where so many are.
const MostFalse = 0.05

// An AbstentionReport says how whole runs answer questions, and abstain from those whose
// passages were removed.
type AbstentionReport struct {
	Set       string             `json:"set"`
	Encoder   string             `json:"encoder,omitempty"` // empty: by words alone
	Learned   bool               `json:"learned_from"`      // the program's weights were learned from this set, too: what they reach is no forecast
	Splits    int                `json:"splits"`
	Questions int                `json:"questions"` // asked, of all splits together
	Weights   []AbstentionResult `json:"weights"`   // the program's first
	Baseline  *AbstentionPoint   `json:"baseline"`  // logistic regression over features of BM25 alone, by cross-validation
}

// Whose weights say how likely passages hold an answer.
const (
	WeightsProgram = "program" // those in the program
	WeightsCrossed = "crossed" // learned from the other sets and from four fifths of the set's articles, which the question is not about
	WeightsWithout = "without" // learned from the other sets alone
)

// An AbstentionResult is what runs do with some weights.
type AbstentionResult struct {
	Weights string          `json:"weights"`
	Rows    []AbstentionRow `json:"rows"`
	// Of the probabilities that static's gate gives, with the gate open.
	AtMostFalse AbstentionPoint   `json:"at_most_false"` // the threshold that lets MostFalse pass, chosen on these very questions
	Curve       []AbstentionPoint `json:"curve"`
	Bins        []stat.Bin        `json:"calibration"`
	ECE         float64           `json:"ece"`
	AUC         float64           `json:"auc"`
}

// An AbstentionRow is what one strategy does.
type AbstentionRow struct {
	Strategy string `json:"strategy"`

	Unanswerable int     `json:"unanswerable"`
	False        int     `json:"false_answers"` // of these, with a claim that is shown
	FalseShare   float64 `json:"false_share"`
	Answerable   int     `json:"answerable"`
	Answered     int     `json:"answered"` // with a claim that is shown
	Right        int     `json:"right"`    // and one that cites a right passage
	RightShare   float64 `json:"right_share"`
	InFull       int     `json:"in_full"` // of the right ones: by the status, answered

	Outcomes []AbstentionOutcome `json:"outcomes"`
}

// An AbstentionOutcome is one question of one split.
type AbstentionOutcome struct {
	Split      int          `json:"split"`
	ID         string       `json:"id"`
	Question   string       `json:"question"`
	Answerable bool         `json:"answerable"`
	Status     assay.Status `json:"status"`
	Held       *float64     `json:"held,omitempty"` // see assay.Answer.Held
	Cited      []string     `json:"cited"`          // passage IDs
	Right      bool         `json:"right"`          // a right passage is among them
	Why        string       `json:"why"`
	Text       string       `json:"text"`
}

// An AbstentionPoint is one threshold of the curve of risk and coverage.
type AbstentionPoint struct {
	Threshold float64 `json:"threshold"`
	False     float64 `json:"false_share"` // of the questions without an answer, answered
	Right     float64 `json:"right_share"` // of those with one, answered and a right passage cited
}

// Abstention removes, for half of a set's questions, the passages that answer them, asks
// all of them by whole runs, and counts the answers that are given. Each split is a store
// of its own, into which the passages that are left are ingested. The halves are drawn by
// passage, by their hash, so that splits 0 and 1 are each other's complement, and so on: a
// question of which only some right passages are removed is left out.
//
// Where there are rows to learn from, all of it is done with weights, too, that have not seen
// the question, nor any other about its article, and with weights that have not seen the set.
//
// No language model is asked.
func Abstention(ctx context.Context, set Set, opts AbstentionOptions) (AbstentionReport, error) {
	opts.Splits = cmp.Or(opts.Splits, 2)
	if len(opts.Strategies) == 0 {
		opts.Strategies = []string{floorStrategy}
	}
	for _, name := range opts.Strategies {
		if _, err := strategy.Lookup(name); err != nil {
			return AbstentionReport{}, err
		}
	}
	report := AbstentionReport{Set: set.Name, Splits: opts.Splits, Learned: slices.Contains(local.HeldSets(), set.Name)}
	if opts.Encoders != nil {
		report.Encoder = opts.Encoders.Default()
	}
	weighings := weighingsOf(set, opts.Rows)
	if opts.Questions > 0 {
		set.Queries = sample(set.Queries, opts.Questions)
	}
	open := make([][]AbstentionOutcome, len(weighings))
	for _, a := range weighings {
		of := AbstentionResult{Weights: a.weights, Rows: make([]AbstentionRow, len(opts.Strategies))}
		for i, name := range opts.Strategies {
			of.Rows[i].Strategy = name
		}
		report.Weights = append(report.Weights, of)
	}
	var plain []plainExample
	for k := range opts.Splits {
		s, err := openSplit(ctx, set, k, opts)
		if err != nil {
			return report, err
		}
		for i, a := range weighings {
			var more []AbstentionOutcome
			if more, err = s.askBy(ctx, a, report.Weights[i].Rows, opts); err != nil {
				break
			}
			open[i] = append(open[i], more...)
		}
		if err == nil {
			var more []plainExample
			more, err = s.plain(ctx)
			plain = append(plain, more...)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return report, err
		}
	}
	for i := range report.Weights {
		for j := range report.Weights[i].Rows {
			report.Weights[i].Rows[j].count()
		}
		report.Weights[i].curve(open[i])
	}
	report.Questions = len(open[0])
	report.Baseline = baseline(plain)
	return report, nil
}

// A weighing is whose weights questions are asked with, which may depend on their article.
type weighing struct {
	weights string
	folds   []*local.HeldModel // by the fold of the article; nil: the model in the program
	fold    func(Query) int
}

// weighingsOf returns with which weights the questions of a set are asked: those in the program, and where
// there are rows such as have not seen them.
func weighingsOf(set Set, rows *AbstentionRows) []weighing {
	alike := func(Query) int { return 0 }
	out := []weighing{{WeightsProgram, []*local.HeldModel{nil}, alike}}
	if rows == nil {
		return out
	}
	if slices.Contains(rows.names(), set.Name) {
		articles := articlesOf(set)
		crossed := weighing{weights: WeightsCrossed, fold: func(q Query) int { return foldOf(articles[leastOf(q.Relevant)], articleFolds) }}
		for fold := range articleFolds {
			m := rows.withoutFold(set.Name, fold).learn()
			crossed.folds = append(crossed.folds, &m)
		}
		out = append(out, crossed)
	}
	without := rows.without(set.Name).learn()
	return append(out, weighing{WeightsWithout, []*local.HeldModel{&without}, alike})
}

// askBy asks all questions by each strategy, and adds the outcomes to the rows; it returns
// those of static with the gate open.
func (s *split) askBy(ctx context.Context, a weighing, rows []AbstentionRow, opts AbstentionOptions) (open []AbstentionOutcome, err error) {
	for fold, model := range a.folds {
		var queries []Query
		for _, q := range s.queries {
			if a.fold(q) == fold {
				queries = append(queries, q)
			}
		}
		if err := s.openEngine(ctx, model, opts); err != nil {
			return nil, err
		}
		for i := range rows {
			outcomes, err := s.ask(ctx, queries, engine.Request{Strategy: rows[i].Strategy, NoCache: true}, a.weights, opts)
			if err != nil {
				return nil, err
			}
			rows[i].Outcomes = append(rows[i].Outcomes, outcomes...)
		}
		wide := engine.Request{Strategy: floorStrategy, NoCache: true, Limits: strategy.Limits{Held: openGate}}
		outcomes, err := s.ask(ctx, queries, wide, a.weights, opts)
		if err != nil {
			return nil, err
		}
		open = append(open, outcomes...)
	}
	return open, nil
}

// openGate is a threshold that lets everything pass, so that what each question would have
// been answered with is known.
const openGate = 1e-6

// A split is a store from which the passages are gone that answer half of the questions.
type split struct {
	number  int
	dir     string
	engine  *engine.Engine
	queries []Query
	gone    map[string]bool
	place   map[string]string // file name → passage ID
}

// removed reports whether a passage is gone in a split.
func removed(passage string, k int) bool {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\n%s", k/2, passage)
	x := h.Sum64()
	x ^= x >> 33 // the low bits of FNV alone are those of the last byte
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x&1 == uint64(k&1)
}

// halves returns which of the queries' passages are gone in a split, and the queries that
// keep all of theirs or none.
func halves(queries []Query, k int) (gone map[string]bool, kept []Query) {
	gone = map[string]bool{}
	for _, q := range queries {
		left := 0
		for id := range q.Relevant {
			if gone[id] = removed(id, k); !gone[id] {
				left++
			}
		}
		if left == 0 || left == len(q.Relevant) {
			kept = append(kept, q)
		}
	}
	return gone, kept
}

func openSplit(ctx context.Context, set Set, k int, opts AbstentionOptions) (_ *split, err error) {
	s := &split{number: k, place: map[string]string{}}
	s.gone, s.queries = halves(set.Queries, k)
	if s.dir, err = os.MkdirTemp("", "assay-eval-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s, split %d: %w", set.Name, k, err), s.Close())
		}
	}()
	docs := filepath.Join(s.dir, "documents")
	if err := os.Mkdir(docs, 0o777); err != nil {
		return nil, err
	}
	for i, p := range set.Passages {
		if s.gone[p.ID] {
			continue
		}
		name := fmt.Sprintf("%06d.md", i)
		s.place[name] = p.ID
		text := p.Text + "\n"
		if p.Title != "" {
			text = "# " + strings.ReplaceAll(p.Title, "_", " ") + "\n\n" + text
		}
		if err := os.WriteFile(filepath.Join(docs, name), []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	if err = s.openEngine(ctx, nil, opts); err != nil {
		return nil, err
	}
	_, err = s.engine.Ingest(ctx, engine.IngestRequest{Paths: []string{docs}, Wait: opts.Encoders != nil})
	return s, err
}

// openEngine opens the store so that grades go by a model; nil: by that in the program.
func (s *split) openEngine(ctx context.Context, model *local.HeldModel, opts AbstentionOptions) error {
	if opened := s.engine; opened != nil {
		s.engine = nil
		if err := opened.Close(); err != nil {
			return err
		}
	}
	var err error
	s.engine, err = engine.Open(ctx, engine.Config{
		Dir: filepath.Join(s.dir, "store"), Encoders: opts.Encoders, NoBackground: true, NoCache: true, Models: engine.Models{Held: model},
	})
	return err
}

// Close removes the store.
func (s *split) Close() error {
	var err error
	if s.engine != nil {
		err = s.engine.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *split) answerable(q Query) bool {
	for id := range q.Relevant {
		if s.gone[id] {
			return false
		}
	}
	return true
}

// ask asks questions, one on each processor.
func (s *split) ask(ctx context.Context, queries []Query, req engine.Request, weights string, opts AbstentionOptions) ([]AbstentionOutcome, error) {
	outcomes := make([]AbstentionOutcome, len(queries))
	began := time.Now()
	step := inTurn(len(queries), func(done, all int) {
		if opts.Progress != nil && done%20 == 0 {
			opts.Progress(Progress{What: fmt.Sprintf("split %d, weights %s, %s", s.number, weights, req.Strategy), Done: done, All: all, Elapsed: time.Since(began)})
		}
	})
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			req := req
			req.Question = q.Text
			req.Budget.Wall = time.Hour // what is found does not depend on how fast the machine is
			a, err := s.engine.Answer(gctx, assay.Local(), req)
			if err != nil {
				return fmt.Errorf("ask %q: %w", q.Text, err)
			}
			outcomes[i] = s.outcome(q, a)
			step()
			return nil
		})
	}
	return outcomes, errors.Join(g.Wait(), ctx.Err())
}

func (s *split) outcome(q Query, a assay.Answer) AbstentionOutcome {
	o := AbstentionOutcome{
		Split: s.number, ID: q.ID, Question: q.Text, Answerable: s.answerable(q), Status: a.Status, Held: a.Held, Why: a.Justification, Text: a.Text, Cited: []string{},
	}
	for _, c := range a.Citations {
		id := s.place[path.Base(filepath.ToSlash(c.URI))]
		if !slices.Contains(o.Cited, id) {
			o.Cited = append(o.Cited, id)
		}
		o.Right = o.Right || q.Relevant[id] > 0
	}
	return o
}

// given reports whether anything is shown.
func (o AbstentionOutcome) given() bool { return len(o.Cited) > 0 }

func (r *AbstentionRow) count() {
	for _, o := range r.Outcomes {
		if !o.Answerable {
			r.Unanswerable++
			r.False += one(o.given())
			continue
		}
		r.Answerable++
		r.Answered += one(o.given())
		r.Right += one(o.Right)
		r.InFull += one(o.Right && o.Status == assay.Answered)
	}
	r.FalseShare = share(r.False, r.Unanswerable)
	r.RightShare = share(r.Right, r.Answerable)
}

func share(n, all int) float64 { return float64(n) / float64(max(all, 1)) }

// A rated question is one with the probability that its answer is held.
type rated struct {
	answerable, right bool
	p                 float64
}

// curve fills in what follows from the probabilities.
func (r *AbstentionResult) curve(open []AbstentionOutcome) {
	var all []rated
	var scores []float64
	var holds []bool
	for _, o := range open {
		x := rated{answerable: o.Answerable, right: o.Right}
		if o.Held != nil {
			x.p = *o.Held
		}
		all, scores, holds = append(all, x), append(scores, x.p), append(holds, o.Answerable)
	}
	const bins = 10
	r.Bins = stat.Bins(scores, holds, bins)
	r.ECE, r.AUC = stat.ECE(r.Bins), auc(all)
	r.AtMostFalse = atMost(all, MostFalse)
	for i := 1; i < 20; i++ {
		r.Curve = append(r.Curve, pointAt(all, float64(i)/20))
	}
}

// pointAt is what a threshold does.
func pointAt(all []rated, threshold float64) AbstentionPoint {
	var answerable, unanswerable, wrong, right int
	for _, x := range all {
		if x.answerable {
			answerable++
			right += one(x.p >= threshold && x.right)
		} else {
			unanswerable++
			wrong += one(x.p >= threshold)
		}
	}
	return AbstentionPoint{threshold, share(wrong, unanswerable), share(right, answerable)}
}

// atMost is what the lowest threshold does that lets no greater share of the questions
// without an answer pass.
func atMost(all []rated, most float64) AbstentionPoint {
	thresholds := []float64{0}
	for _, x := range all {
		thresholds = append(thresholds, x.p)
	}
	slices.Sort(thresholds)
	thresholds = slices.Compact(thresholds)
	low, high := 0, len(thresholds) // the share falls with the threshold
	for low < high {
		mid := (low + high) / 2
		if pointAt(all, thresholds[mid]).False <= most {
			high = mid
		} else {
			low = mid + 1
		}
	}
	if low == len(thresholds) {
		return AbstentionPoint{Threshold: 1}
	}
	return pointAt(all, thresholds[low])
}

// auc is the share of pairs, of a question with an answer and one without, of which that
// with it has the greater probability; ties count half.
func auc(all []rated) float64 {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b rated) int { return cmp.Compare(a.p, b.p) })
	var with, without, ranks float64
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].p == all[i].p {
			j++
		}
		for _, x := range all[i:j] {
			if x.answerable {
				with++
				ranks += float64(i+j+1) / 2
			} else {
				without++
			}
		}
		i = j
	}
	if with == 0 || without == 0 {
		return 0
	}
	return (ranks - with*(with+1)/2) / (with * without)
}

// A plainExample is what BM25 alone says of a question.
type plainExample struct {
	rated
	group    string
	features []float64
}

// plain searches for the questions by words, for the baseline: what is cited is the best
// by BM25.
func (s *split) plain(ctx context.Context) ([]plainExample, error) {
	var out []plainExample
	for _, q := range s.queries {
		found, err := s.engine.Search(ctx, assay.Local(), assay.Query{Text: q.Text, Mode: assay.ModeText, Limit: 10})
		if err != nil {
			return nil, fmt.Errorf("search %q: %w", q.Text, err)
		}
		sortByBM25(found.Hits)
		x := plainExample{group: leastOf(q.Relevant)}
		x.answerable = s.answerable(q)
		weight, terms := 0.0, 0.0
		for _, t := range found.Terms {
			weight, terms = weight+t.Weight, terms+1
		}
		var scores [3]float64
		for i, h := range found.Hits[:min(len(found.Hits), len(scores))] {
			if h.Scores.BM25 != nil {
				scores[i] = *h.Scores.BM25
			}
		}
		if len(found.Hits) > 0 {
			x.right = q.Relevant[s.place[path.Base(filepath.ToSlash(found.Hits[0].URI))]] > 0
		}
		x.features = []float64{scores[0], scores[0] / max(weight, 0.1), scores[0] - scores[1], scores[0] - scores[2], scores[1] / max(scores[0], 0.1), weight, terms}
		out = append(out, x)
	}
	return out, nil
}

func leastOf(ids map[string]int) string {
	least := ""
	for id := range ids {
		if least == "" || id < least {
			least = id
		}
	}
	return least
}

// baseline fits BM25's features by cross-validation, the questions of one passage in one
// fold, and returns what the threshold does that lets MostFalse pass.
func baseline(examples []plainExample) *AbstentionPoint {
	const folds, ridge = 5, 1e-3
	var all []rated
	for f := range folds {
		var rows []learn.Row
		for _, x := range examples {
			if foldOf(x.group, folds) != f {
				rows = append(rows, learn.Row{Features: x.features, Positive: x.answerable, Weight: 1})
			}
		}
		m := learn.Logistic(rows, ridge)
		for _, x := range examples {
			if foldOf(x.group, folds) == f && len(rows) > 0 {
				x.p = learn.Sigmoid(m.LogOdds(x.features))
				all = append(all, x.rated)
			}
		}
	}
	p := atMost(all, MostFalse)
	return &p
}

// foldOf is the fold, of n, of what has this key.
func foldOf(key string, n uint64) int {
	h := fnv.New64a()
	h.Write([]byte(key))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return int(x % n)
}
