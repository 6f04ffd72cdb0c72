// Package answers asks the questions of a set in whole runs and measures the answers. AskAll writes an
// Outcome for each question to a Folder, from which an interrupted evaluation is resumed. The journal
// of a run shows at which Stage a question was lost. Summarise computes a Report from the outcomes,
// which a Gate compares with a Baseline.
package answers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
)

// A Contender is a configuration that is measured and compared with others.
type Contender struct {
	Name string // the strategy's name, or another unique one

	// Request is the template of each request: strategy, settings, limits and budget. AskAll fills
	// in the question, its conversation, its filter and the ID of the run.
	Request engine.Request
}

// Options configures AskAll.
type Options struct {
	Contenders []Contender
	Limit      int // ask only the first cases of the set; 0: all
	Parallel   int // questions at a time; 0: one per processor
	Principal  assay.Principal
	Judge      judge.Judge // judges the answers; nil: judged measures are left out

	Progress func(eval.Progress) // called by one goroutine at a time; may be nil
}

// AskAll asks each question with each contender, several at a time, and writes the outcomes to the
// folder. It skips questions whose outcome the folder has. If the engine's store already has the
// run of a question, AskAll resumes an interrupted run and only measures a finished one. A run that
// ends in an error is an outcome. AskAll itself fails if ctx ends or if the folder or the store
// cannot be written; the outcomes so far are kept.
func AskAll(ctx context.Context, e *engine.Engine, d testset.Dataset, folder *Folder, opts Options) error {
	return AskAllOf(ctx, As(e, opts.Principal), d, folder, opts)
}

// AskAllOf is AskAll for an Answerer. It ignores opts.Principal.
func AskAllOf(ctx context.Context, a Answerer, d testset.Dataset, folder *Folder, opts Options) error {
	library, err := OpenLibrary(ctx, a)
	if err != nil {
		return err
	}
	asker := &asker{answerer: a, folder: folder, library: library, judge: opts.Judge}
	for _, contender := range opts.Contenders {
		if err := asker.askAll(ctx, d, contender, opts); err != nil {
			return err
		}
	}
	return nil
}

// An Answerer answers the questions of one principal. As makes one of an engine.
type Answerer interface {
	Answer(ctx context.Context, req engine.Request) (assay.Answer, error)
	Run(ctx context.Context, id string) (assay.Run, []engine.Step, error)
	Resume(ctx context.Context, id string) iter.Seq2[engine.Event, error]
	Documents(ctx context.Context, collections ...string) iter.Seq2[assay.Document, error]
	Document(ctx context.Context, id string) (assay.Document, error)
}

// As returns an engine as the Answerer of a principal.
func As(e *engine.Engine, principal assay.Principal) Answerer { return engineOf{e, principal} }

type engineOf struct {
	engine    *engine.Engine
	principal assay.Principal
}

func (e engineOf) Answer(ctx context.Context, req engine.Request) (assay.Answer, error) {
	return e.engine.Answer(ctx, e.principal, req)
}

func (e engineOf) Run(ctx context.Context, id string) (assay.Run, []engine.Step, error) {
	return e.engine.Run(ctx, e.principal, id)
}

func (e engineOf) Resume(ctx context.Context, id string) iter.Seq2[engine.Event, error] {
	return e.engine.Resume(ctx, e.principal, id)
}

func (e engineOf) Documents(ctx context.Context, collections ...string) iter.Seq2[assay.Document, error] {
	return e.engine.Documents(ctx, e.principal, collections...)
}

func (e engineOf) Document(ctx context.Context, id string) (assay.Document, error) {
	return e.engine.Document(ctx, e.principal, id)
}

// An asker asks questions and measures the answers.
type asker struct {
	answerer Answerer
	folder   *Folder
	library  *Library
	judge    judge.Judge
}

func (a *asker) askAll(ctx context.Context, d testset.Dataset, contender Contender, opts Options) error {
	cases := d.First(opts.Limit)
	began := time.Now()
	var mu sync.Mutex
	done, before := 0, 0
	for _, c := range cases {
		before += stat.One(a.folder.Has(contender.Name, c.ID))
	}
	progress := func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; opts.Progress != nil {
			opts.Progress(eval.Progress{Set: d.Name, What: contender.Name, Done: before + done, All: len(cases), Elapsed: time.Since(began), Before: before})
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	parallel := opts.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	g.SetLimit(parallel)
	for _, c := range cases {
		if gctx.Err() != nil {
			break
		}
		if a.folder.Has(contender.Name, c.ID) {
			continue
		}
		g.Go(func() error {
			o, err := a.ask(gctx, c, contender)
			if err == nil {
				err = a.folder.Add(o)
			}
			if err != nil {
				return fmt.Errorf("question %s: %w", c.ID, err)
			}
			progress()
			return nil
		})
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// ask asks one question, or resumes its run.
func (a *asker) ask(ctx context.Context, c testset.Case, contender Contender) (Outcome, error) {
	o := Outcome{Case: c, System: contender.Name, Run: a.folder.runID(contender.Name, c.ID)}
	stored, err := a.run(ctx, o.Run, c, contender)
	if err != nil {
		if !ends(ctx, err) {
			o.Error, o.Began = err.Error(), time.Now().UTC() // the request is invalid, or its run cannot be resumed
			if _, _, missing := a.answerer.Run(ctx, o.Run); missing != nil {
				o.Run = ""
			}
			q := inquiry{outcome: &o}
			q.measure(q.input(), judge.Judgement{})
			err = nil
		}
		return o, err
	}
	o.Run = stored.ID // an Answerer may choose it
	return o, a.take(ctx, &o, stored)
}

// ends reports whether an error would also stop every other question.
func ends(ctx context.Context, err error) bool {
	failed, ran := errors.AsType[*engine.RunError](err)
	return ctx.Err() != nil || ran && failed.Resumable || !ran && !errors.Is(err, assay.ErrInvalid)
}

// run starts or resumes the run of a question and returns it when it has ended.
func (a *asker) run(ctx context.Context, id string, c testset.Case, contender Contender) (assay.Run, error) {
	stored, _, err := a.answerer.Run(ctx, id)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		req := contender.Request
		req.ID, req.Question, req.History, req.NoCache, req.Measuring = id, c.Question, c.History, true, true
		req.Filter = assay.And(req.Filter, c.Filter)
		if len(c.Collections) > 0 {
			req.Collections = c.Collections
		}
		_, err = a.answerer.Answer(ctx, req)
	case err != nil:
		return assay.Run{}, err
	case stored.State == assay.RunDone || stored.State == assay.RunFailed:
		return stored, nil
	default:
		for _, err = range a.answerer.Resume(ctx, id) {
			if err != nil {
				break
			}
		}
	}
	if e, ran := errors.AsType[*engine.RunError](err); err != nil && (!ran || e.Resumable) {
		return assay.Run{}, err
	}
	failed := err
	stored, _, err = a.answerer.Run(ctx, id)
	if err == nil && stored.State != assay.RunDone && stored.State != assay.RunFailed {
		err = errors.Join(fmt.Errorf("run %s is %s, but should have ended: %w", id, stored.State, assay.ErrDamaged), failed)
	}
	return stored, err
}

// take fills in an outcome from a run that has ended.
func (a *asker) take(ctx context.Context, o *Outcome, r assay.Run) error {
	_, steps, err := a.answerer.Run(ctx, r.ID)
	if err != nil {
		return err
	}
	o.Began, o.Error = r.Created, r.Error
	if r.Answer != nil {
		o.Answer = *r.Answer
	}
	q := inquiry{outcome: o, steps: len(steps), elapsed: time.Duration(o.Answer.ElapsedMS) * time.Millisecond}
	if q.places, err = a.library.places(ctx, o.Case); err != nil {
		return err
	}
	o.Mistake = mistakes(q.places)
	if q.trail, err = trailOf(steps); err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	q.fill()
	in := q.input()
	var judged judge.Judgement
	if a.judge != nil && !in.Failed {
		if judged, err = a.judge.Judge(ctx, q.judged(in)); err != nil {
			return fmt.Errorf("judge run %s: %w", r.ID, err)
		}
		judged.Fill(&in)
	}
	q.measure(in, judged)
	return nil
}
