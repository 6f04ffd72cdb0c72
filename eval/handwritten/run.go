package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/llm"
)

// Options configures Sets.Measure.
type Options struct {
	Sets     []string                   // by name, see Names; empty: all
	Limit    int                        // number of rows of each set, evenly spread; 0: all
	Data     string                     // folder with data/retrieval and data/corpora; empty: skip the sets that need it
	Encoders engine.Encoders            // for dense vectors; nil: lexical search only
	Reader   func() (llm.Reader, error) // for local roles; may be nil
	Progress func(eval.Progress)        // called by one goroutine at a time; may be nil
}

// A Report holds the figures of the hand-written sets.
type Report struct {
	Encoder  string    `json:"encoder,omitempty"` // empty: lexical search only
	Figures  []Figure  `json:"figures"`
	LeftOut  []string  `json:"left_out,omitempty"` // sets that were skipped because Data is empty
	Outcomes []Outcome `json:"-"`
}

// A Figure counts the rows of a set for which something holds.
type Figure struct {
	Set  string             `json:"set"`
	Name string             `json:"figure"`
	Goal string             `json:"goal"` // "high" or "low"
	By   map[string]Portion `json:"by,omitempty"`
	Portion
}

// Kinds lists the kinds of rows in alphabetical order.
func (f Figure) Kinds() []string { return slices.Sorted(maps.Keys(f.By)) }

// A Portion is a number of rows out of all.
type Portion struct {
	Count int     `json:"count"`
	Of    int     `json:"of"`
	Share float64 `json:"share"`
}

func (s *Portion) add(count, of int) {
	s.Count, s.Of = s.Count+count, s.Of+of
	s.Share = float64(s.Count) / float64(max(s.Of, 1))
}

// A Outcome is the result for one row of a set.
type Outcome struct {
	Set    string             `json:"set"`
	Row    int                `json:"row"` // line in the file, from 1
	Kind   string             `json:"kind"`
	Asked  string             `json:"asked"` // question or statement
	Got    string             `json:"got"`   // status or verdict, or an error
	Answer string             `json:"answer,omitempty"`
	Why    string             `json:"why,omitempty"` // the justification of the answer
	Marks  map[string]Portion `json:"marks"`         // contributions of the row to figures, by name
}

// mark counts the row in a figure, as a success if holds is true.
func (o *Outcome) mark(figure string, holds bool) { o.markSome(figure, stat.One(holds), 1) }

func (o *Outcome) markSome(figure string, count, of int) {
	if o.Marks == nil {
		o.Marks = map[string]Portion{}
	}
	s := o.Marks[figure]
	s.add(count, of)
	o.Marks[figure] = s
}

// The names of figures. Those in lowMarks should be low, the others high.
const (
	markCaught    = "false statements caught"
	markRefused   = "fair statements refused"
	markRight     = "right"
	markFalse     = "falsely answered"
	markConflict  = "conflicts found"
	markAlarm     = "false alarms"
	markHolds     = "holds the answer"
	markClean     = "holds it in 60 words"
	markOther     = "holds it, other words"
	markComplete  = "lists complete"
	markWhole     = "answers shown whole"
	markSentences = "sentences shown"
)

var lowMarks = []string{markRefused, markFalse, markAlarm}

// A measuredSet is a set that can be measured.
type measuredSet struct {
	name    string
	rows    int
	data    bool // needs Options.Data
	measure func(ctx context.Context, m *meter, rows []int) error
}

// measured lists the sets in the order of the report.
func (w Sets) measured() []measuredSet {
	return []measuredSet{
		{"statements", len(w.Statements), false, w.measureStatements},
		{"nearmiss", len(w.NearMisses), true, w.measureNearMisses},
		{"conflicts", len(w.Conflicts), false, w.measureConflicts},
		{"everyday", len(w.Everyday), true, w.measureEveryday},
		{"handbook", len(w.Handbook), false, w.measureHandbook},
		{"paraphrased", len(w.Paraphrased), false, w.measureParaphrased},
	}
}

// Names lists the sets by name.
func Names() []string {
	var names []string
	for _, s := range (Sets{}).measured() {
		names = append(names, s.name)
	}
	return names
}

// Measure measures the sets. It calls no language model; the replies of models that write or verify
// are scripted.
func (w Sets) Measure(ctx context.Context, opts Options) (Report, error) {
	for _, name := range opts.Sets {
		if !slices.Contains(Names(), name) {
			return Report{}, fmt.Errorf("unknown set %q, want one of %v: %w", name, Names(), assay.ErrInvalid)
		}
	}
	m := &meter{opts: opts}
	if opts.Encoders != nil {
		m.report.Encoder = opts.Encoders.Default()
	}
	for _, set := range w.measured() {
		if len(opts.Sets) > 0 && !slices.Contains(opts.Sets, set.name) {
			continue
		}
		if set.data && opts.Data == "" {
			m.report.LeftOut = append(m.report.LeftOut, set.name)
			continue
		}
		if err := set.measure(ctx, m, evenly(set.rows, opts.Limit)); err != nil {
			return m.report, fmt.Errorf("%s: %w", set.name, err)
		}
	}
	m.report.Figures = figuresOf(m.report.Outcomes)
	return m.report, nil
}

// evenly returns n of the numbers below all, evenly spread. If n is 0, it returns all of them.
func evenly(all, n int) []int {
	if n == 0 || n > all {
		n = all
	}
	places := make([]int, n)
	for i := range places {
		places[i] = i * all / n
	}
	return places
}

// figuresOf aggregates outcomes, in the order of the sets and of the marks.
func figuresOf(outcomes []Outcome) []Figure {
	order := []string{markCaught, markRefused, markRight, markFalse, markConflict, markAlarm, markHolds, markClean, markOther, markComplete, markWhole, markSentences}
	var figures []Figure
	for _, set := range setsOf(outcomes) {
		for _, name := range order {
			f := Figure{Set: set, Name: name, Goal: "high", By: map[string]Portion{}}
			if slices.Contains(lowMarks, name) {
				f.Goal = "low"
			}
			for _, o := range outcomes {
				if m, counts := o.Marks[name]; counts && o.Set == set {
					f.add(m.Count, m.Of)
					kind := f.By[o.Kind]
					kind.add(m.Count, m.Of)
					f.By[o.Kind] = kind
				}
			}
			if f.Of > 0 {
				figures = append(figures, f)
			}
		}
	}
	return figures
}

func setsOf(outcomes []Outcome) []string {
	var sets []string
	for _, o := range outcomes {
		if !slices.Contains(sets, o.Set) {
			sets = append(sets, o.Set)
		}
	}
	return sets
}

// A meter measures sets one after the other.
type meter struct {
	opts   Options
	report Report
}

// each calls measure for each row of a set concurrently and keeps the outcomes in the order of the
// rows.
func (m *meter) each(ctx context.Context, set string, rows []int, measure func(ctx context.Context, row int) (Outcome, error)) error {
	outcomes := make([]Outcome, len(rows))
	var mu sync.Mutex
	done, began := 0, time.Now()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, row := range rows {
		g.Go(func() error {
			if gctx.Err() != nil {
				return gctx.Err()
			}
			o, err := measure(gctx, row)
			if err != nil {
				return fmt.Errorf("row %d: %w", row+1, err)
			}
			o.Set, o.Row = set, row+1
			outcomes[i] = o
			mu.Lock()
			defer mu.Unlock()
			if done++; m.opts.Progress != nil {
				m.opts.Progress(eval.Progress{Set: set, What: "rows", Done: done, All: len(rows), Elapsed: time.Since(began)})
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	m.report.Outcomes = append(m.report.Outcomes, outcomes...)
	return nil
}

// wall limits the time of a run. It is far above the need of a run, so that the figures do
// not depend on the load of the machine.
const wall = 10 * time.Minute

// ask asks a question over a collection, or over all documents if collection is empty. It returns
// the outcome without marks. A failed run is an outcome without claims.
func ask(ctx context.Context, e *engine.Engine, strategy, collection, question string) (assay.Answer, Outcome, error) {
	req := engine.Request{Question: question, Strategy: strategy, NoCache: true, Measuring: true, Budget: assay.Budget{Wall: wall}}
	if collection != "" {
		req.Collections = []string{collection}
	}
	answer, err := e.Answer(ctx, assay.Local(), req)
	o := Outcome{Asked: question, Got: string(answer.Status), Answer: answer.Text, Why: answer.Justification}
	if err != nil {
		if _, failed := errors.AsType[*engine.RunError](err); !failed || ctx.Err() != nil {
			return answer, o, err
		}
		return assay.Answer{}, Outcome{Asked: question, Got: err.Error()}, nil
	}
	return answer, o, nil
}

// A file is a document to ingest.
type file struct {
	collection, name, text string
}

// A dataDir is a temporary data directory.
type dataDir struct {
	m   *meter
	dir string
}

// store ingests files into a new data directory and embeds them if there are encoders.
func (m *meter) store(ctx context.Context, files []file) (_ *dataDir, err error) {
	dir, err := os.MkdirTemp("", "assay-eval-")
	if err != nil {
		return nil, err
	}
	s := &dataDir{m, dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	paths := map[string][]string{}
	var collections []string
	for _, f := range files {
		path := filepath.Join(dir, "files", f.collection, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(f.text), 0o600); err != nil {
			return nil, err
		}
		if paths[f.collection] == nil {
			collections = append(collections, f.collection)
		}
		paths[f.collection] = append(paths[f.collection], path)
	}
	e, err := s.open(ctx, engine.Models{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, c := range collections {
		report, err := e.Ingest(ctx, engine.IngestRequest{Paths: paths[c], Collection: c})
		if err != nil {
			return nil, err
		}
		if len(report.Skipped) > 0 {
			return nil, fmt.Errorf("%s was not ingested: %s", report.Skipped[0].URI, report.Skipped[0].Reason)
		}
	}
	if m.opts.Encoders == nil {
		return s, nil
	}
	_, err = e.Embed(ctx, nil)
	return s, err
}

// open opens the store with models.
func (s *dataDir) open(ctx context.Context, models engine.Models) (*engine.Engine, error) {
	return engine.Open(ctx, engine.Config{
		Dir: filepath.Join(s.dir, "data"), Encoders: s.m.opts.Encoders, Models: models, Reader: s.m.opts.Reader, NoBackground: true, NoCache: true,
	})
}

func (s *dataDir) close() error { return os.RemoveAll(s.dir) }

// with calls do with an engine over files, with the given models for roles.
func (m *meter) with(ctx context.Context, files []file, models engine.Models, do func(*engine.Engine) error) (err error) {
	s, err := m.store(ctx, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	e, err := s.open(ctx, models)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return do(e)
}
