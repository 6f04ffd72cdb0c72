// Package abstention measures how often whole runs answer questions whose answers were taken away.
package abstention

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
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/strategy"
)

// Options configures Abstention.
type Options struct {
	Strategies []string            // by name; empty: static
	Splits     int                 // 0: 2, which are complementary halves of the passages
	Questions  int                 // number drawn from the set, evenly spread; 0: all
	Encoders   engine.Encoders     // for dense vectors; nil: lexical search only
	Reader     llm.Reader          // nil: decide by the words that question and passages share
	Progress   func(eval.Progress) // called by one goroutine at a time; may be nil
}

// MostFalse is the share of unanswerable questions that may be answered at the operating point for
// which coverage is reported.
const MostFalse = 0.05

// An Report measures how often whole runs answer, and how often they abstain when the
// passages with the answer were removed.
type Report struct {
	Set       string `json:"set"`
	Encoder   string `json:"encoder,omitempty"` // empty: lexical search only
	Splits    int    `json:"splits"`
	Questions int    `json:"questions"` // number asked, over all splits
	Rows      []Row  `json:"rows"`

	// The fields below are computed from the probabilities that static reports when it answers
	// every question.
	AtMostFalse Point      `json:"at_most_false"` // the threshold that lets MostFalse pass, chosen on these same questions
	Curve       []Point    `json:"curve"`
	Bins        []stat.Bin `json:"calibration"`
	ECE         float64    `json:"ece"`
	AUC         float64    `json:"auc"`
}

// An Row holds the counts for one strategy.
type Row struct {
	Strategy string `json:"strategy"`

	Unanswerable int     `json:"unanswerable"`
	False        int     `json:"false_answers"` // unanswerable questions with a shown claim
	FalseShare   float64 `json:"false_share"`
	Answerable   int     `json:"answerable"`
	Answered     int     `json:"answered"` // answerable questions with a shown claim
	Right        int     `json:"right"`    // answerable questions that cite a relevant passage
	RightShare   float64 `json:"right_share"`
	InFull       int     `json:"in_full"` // right answers with status answered
	Known        int     `json:"known"`   // answerable questions with reference answers in the set
	Holds        int     `json:"holds"`   // of Known: the shown text contains a reference answer
	HoldShare    float64 `json:"hold_share"`

	Outcomes []Outcome `json:"outcomes"`
}

// An Outcome is the result of one question in one split.
type Outcome struct {
	Split         int          `json:"split"`
	ID            string       `json:"id"`
	Question      string       `json:"question"`
	Answerable    bool         `json:"answerable"`
	Status        assay.Status `json:"status"`
	Answerability *float64     `json:"held,omitempty"` // see assay.Answer.Answerability
	Cited         []string     `json:"cited"`          // passage IDs
	Right         bool         `json:"right"`          // Cited has a relevant passage
	Answers       []string     `json:"answers,omitempty"`
	Holds         bool         `json:"holds"` // Text contains one of the reference answers
	Why           string       `json:"why"`
	Text          string       `json:"text"`
}

// An Point is one threshold of the risk-coverage curve.
type Point struct {
	Threshold float64 `json:"threshold"`
	False     float64 `json:"false_share"` // share of unanswerable questions that are answered
	Right     float64 `json:"right_share"` // share of answerable questions that are answered and cite a relevant passage
}

// Measure removes the passages that answer half of a set's questions, asks all questions in
// whole runs, and counts the answers. Each split is a store of its own, into which the remaining
// passages are ingested. The passages to remove are drawn by their hash, so that splits 0 and 1 are
// complements of each other, as are 2 and 3, and so on. A question that loses only some of its
// relevant passages is left out.
//
// No language model is called.
func Measure(ctx context.Context, set testset.Set, opts Options) (Report, error) {
	opts.Splits = cmp.Or(opts.Splits, 2)
	if len(opts.Strategies) == 0 {
		opts.Strategies = []string{"static"}
	}
	report := Report{Set: set.Name, Splits: opts.Splits}
	for _, name := range opts.Strategies {
		if _, err := strategy.Lookup(name); err != nil {
			return Report{}, err
		}
		report.Rows = append(report.Rows, Row{Strategy: name})
	}
	if opts.Encoders != nil {
		report.Encoder = opts.Encoders.Default()
	}
	if opts.Questions > 0 {
		set.Queries = testset.Sample(set.Queries, opts.Questions)
	}
	var open []Outcome
	for k := range opts.Splits {
		s, err := openSplit(ctx, set, k, opts)
		if err != nil {
			return report, err
		}
		more, err := s.askAll(ctx, report.Rows, opts)
		open = append(open, more...)
		if err := errors.Join(err, s.Close()); err != nil {
			return report, err
		}
	}
	for i := range report.Rows {
		report.Rows[i].count()
	}
	report.curve(open)
	report.Questions = len(open)
	return report, nil
}

// askAll asks all questions with each strategy and adds the outcomes to the rows. It returns the
// outcomes of static with openGate as the threshold.
func (s *split) askAll(ctx context.Context, rows []Row, opts Options) (open []Outcome, err error) {
	for i := range rows {
		outcomes, err := s.ask(ctx, engine.Request{Strategy: rows[i].Strategy, NoCache: true}, opts)
		if err != nil {
			return nil, err
		}
		rows[i].Outcomes = append(rows[i].Outcomes, outcomes...)
	}
	return s.ask(ctx, engine.Request{Strategy: "static", NoCache: true, Limits: strategy.Limits{MinAnswerability: openGate}}, opts)
}

// openGate is an abstention threshold that every question passes. It shows how each question would
// have been answered.
const openGate = 1e-6

// A split is a store without the passages that answer half of the questions.
type split struct {
	number  int
	dir     string
	engine  *engine.Engine
	queries []testset.Query
	gone    map[string]bool
	place   map[string]string // file name → passage ID
}

// removed reports whether a passage is removed in split k.
func removed(passage string, k int) bool {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\n%s", k/2, passage)
	x := h.Sum64()
	x ^= x >> 33 // the low bits of FNV alone depend on the last byte only
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x&1 == uint64(k&1)
}

// Halves returns the passages of the queries that are removed in split k, and the queries that keep
// all of their passages or none.
func Halves(queries []testset.Query, k int) (gone map[string]bool, kept []testset.Query) {
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

func openSplit(ctx context.Context, set testset.Set, k int, opts Options) (_ *split, err error) {
	s := &split{number: k, place: map[string]string{}}
	s.gone, s.queries = Halves(set.Queries, k)
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
	s.engine, err = engine.Open(ctx, engine.Config{Dir: filepath.Join(s.dir, "store"), Encoders: opts.Encoders, Reader: readerOf(opts.Reader), NoBackground: true, NoCache: true})
	if err != nil {
		return nil, err
	}
	_, err = s.engine.Ingest(ctx, engine.IngestRequest{Paths: []string{docs}, Wait: opts.Encoders != nil})
	return s, err
}

// readerOf wraps r for engine.Config. It returns nil if r is nil.
func readerOf(r llm.Reader) func() (llm.Reader, error) {
	if r == nil {
		return nil
	}
	return func() (llm.Reader, error) { return r, nil }
}

// Close closes the engine and removes the store.
func (s *split) Close() error {
	var err error
	if s.engine != nil {
		err = s.engine.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *split) answerable(q testset.Query) bool {
	for id := range q.Relevant {
		if s.gone[id] {
			return false
		}
	}
	return true
}

// ask asks the questions of the split, one at a time per processor.
func (s *split) ask(ctx context.Context, req engine.Request, opts Options) ([]Outcome, error) {
	queries := s.queries
	outcomes := make([]Outcome, len(queries))
	began := time.Now()
	step := eval.InTurn(len(queries), func(done, all int) {
		if opts.Progress != nil && done%20 == 0 {
			opts.Progress(eval.Progress{What: fmt.Sprintf("split %d, %s", s.number, req.Strategy), Done: done, All: all, Elapsed: time.Since(began)})
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
			req.Budget.Wall = time.Hour // the results must not depend on the speed of the machine
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

func (s *split) outcome(q testset.Query, a assay.Answer) Outcome {
	o := Outcome{
		Split: s.number, ID: q.ID, Question: q.Text, Answerable: s.answerable(q), Status: a.Status, Answerability: a.Answerability, Why: a.Justification, Text: a.Text, Cited: []string{}, Answers: q.Answers,
	}
	o.Holds = metric.Contains(metric.Said(a), q.Answers) > 0
	for _, c := range a.Citations {
		id := s.place[path.Base(filepath.ToSlash(c.URI))]
		if !slices.Contains(o.Cited, id) {
			o.Cited = append(o.Cited, id)
		}
		o.Right = o.Right || q.Relevant[id] > 0
	}
	return o
}

// given reports whether the answer shows any cited claim.
func (o Outcome) given() bool { return len(o.Cited) > 0 }

func (r *Row) count() {
	for _, o := range r.Outcomes {
		if !o.Answerable {
			r.Unanswerable++
			r.False += stat.One(o.given())
			continue
		}
		r.Answerable++
		r.Answered += stat.One(o.given())
		r.Right += stat.One(o.Right)
		r.InFull += stat.One(o.Right && o.Status == assay.Answered)
		r.Known += stat.One(len(o.Answers) > 0)
		r.Holds += stat.One(o.Holds)
	}
	r.FalseShare = stat.Share(r.False, r.Unanswerable)
	r.RightShare = stat.Share(r.Right, r.Answerable)
	r.HoldShare = stat.Share(r.Holds, r.Known)
}

// A Rated question has the probability that the passages answer it.
type Rated struct {
	Answerable, Right bool
	Probability       float64
}

// curve computes the curve, the calibration and the AUC from the probabilities.
func (r *Report) curve(open []Outcome) {
	var all []Rated
	var scores []float64
	var holds []bool
	for _, o := range open {
		x := Rated{Answerable: o.Answerable, Right: o.Right}
		if o.Answerability != nil {
			x.Probability = *o.Answerability
		}
		all, scores, holds = append(all, x), append(scores, x.Probability), append(holds, o.Answerable)
	}
	const bins = 10
	r.Bins = stat.Bins(scores, holds, bins)
	r.ECE = stat.ECE(r.Bins)
	r.AUC, _ = stat.AUC(scores, holds)
	r.AtMostFalse = AtMost(all, MostFalse)
	for i := 1; i < 20; i++ {
		r.Curve = append(r.Curve, PointAt(all, float64(i)/20))
	}
}

// PointAt returns the shares of false and right answers at a threshold.
func PointAt(all []Rated, threshold float64) Point {
	var answerable, unanswerable, wrong, right int
	for _, x := range all {
		if x.Answerable {
			answerable++
			right += stat.One(x.Probability >= threshold && x.Right)
		} else {
			unanswerable++
			wrong += stat.One(x.Probability >= threshold)
		}
	}
	return Point{threshold, stat.Share(wrong, unanswerable), stat.Share(right, answerable)}
}

// AtMost returns the point of the lowest threshold at which the share of unanswerable questions
// that pass is at most the given one.
func AtMost(all []Rated, most float64) Point {
	thresholds := []float64{0}
	for _, x := range all {
		thresholds = append(thresholds, x.Probability)
	}
	slices.Sort(thresholds)
	thresholds = slices.Compact(thresholds)
	low, high := 0, len(thresholds) // the share falls as the threshold rises
	for low < high {
		mid := (low + high) / 2
		if PointAt(all, thresholds[mid]).False <= most {
			high = mid
		} else {
			low = mid + 1
		}
	}
	if low == len(thresholds) {
		return Point{Threshold: 1}
	}
	return PointAt(all, thresholds[low])
}
