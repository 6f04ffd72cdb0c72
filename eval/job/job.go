// Package job runs evaluations for clients of a server: it asks a labelled set of questions in the
// background, with the rights of a session, and measures the answers. Package answers does the
// measuring; sets on disk are evaluated by assay eval.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/strategy"
)

// Bounds of a Spec.
const (
	MaxQuestions  = 2000
	MaxStrategies = 5
)

// A Spec is the request for an evaluation.
type Spec struct {
	Name string `json:"name"` // of the set

	// Questions are objects in the form of a line of a set, as docs/formats.md describes it: a question
	// with labels such as answers, gold and answerable. At most MaxQuestions.
	Questions []json.RawMessage `json:"questions"`

	Strategies  []string `json:"strategies,omitempty"`  // the others are compared with the first; none: auto
	Collections []string `json:"collections,omitempty"` // to search; none: all

	// Models lets the evaluation call the configured language models, which may cost money. Limits hold
	// as for any question.
	Models bool `json:"models,omitempty"`
}

// A Result holds the measures of an evaluation.
type Result struct {
	answers.Report
	Questions []Question `json:"questions"` // in the order of the set
}

// A Question is the outcome of one question under one strategy.
type Question struct {
	ID       string             `json:"id"`
	Asked    string             `json:"asked,omitempty"` // hash of the question, so that evaluations are compared on equal questions
	Strategy string             `json:"strategy"`
	Run      string             `json:"run,omitempty"` // which its owner can see
	Status   assay.Status       `json:"status,omitempty"`
	Right    bool               `json:"right"`
	Lost     answers.Stage      `json:"lost,omitempty"` // the step at which it was lost, unless it is right
	Failed   bool               `json:"failed,omitempty"`
	Metrics  map[string]float64 `json:"metrics,omitempty"`
}

// read checks a spec.
func (s Spec) read() (testset.Dataset, []answers.Contender, error) {
	if len(s.Questions) < 1 || len(s.Questions) > MaxQuestions {
		return testset.Dataset{}, nil, fmt.Errorf("an evaluation has %d questions, want 1 to %d: %w", len(s.Questions), MaxQuestions, assay.ErrInvalid)
	}
	if len(s.Strategies) > MaxStrategies {
		return testset.Dataset{}, nil, fmt.Errorf("an evaluation has %d strategies, want at most %d: %w", len(s.Strategies), MaxStrategies, assay.ErrInvalid)
	}
	set, err := testset.ParseCases(s.Name, s.Questions)
	if err != nil {
		return set, nil, err
	}
	names := s.Strategies
	if len(names) == 0 {
		names = strategy.Names()[:1]
	}
	var contenders []answers.Contender
	for i, name := range names {
		if _, err := strategy.Lookup(name); err != nil {
			return set, nil, err
		}
		if slices.Contains(names[:i], name) {
			return set, nil, fmt.Errorf("strategy %s is named twice: %w", name, assay.ErrInvalid)
		}
		contenders = append(contenders, answers.Contender{Name: name, Request: engine.Request{Strategy: name, Local: !s.Models, Collections: s.Collections}})
	}
	return set, contenders, nil
}

// Start begins an evaluation. The verifier that works without a model judges the answers. The session
// must also have the right to ask and to search, and it must stay valid: an evaluation fails
// when its credential expires. The errors are those of engine.Session.StartEvaluation, and
// assay.ErrInvalid for a spec that cannot be used.
func Start(ctx context.Context, s *engine.Session, spec Spec) (engine.Evaluation, error) {
	set, contenders, err := spec.read()
	if err != nil {
		return engine.Evaluation{}, err
	}
	if _, err := s.Collections(ctx); err != nil { // the right to search
		return engine.Evaluation{}, err
	}
	if _, err := s.Runs(ctx, 1); err != nil { // the right to ask
		return engine.Evaluation{}, err
	}
	all := len(set.Cases) * len(contenders)
	return s.StartEvaluation(ctx, spec.Name, all, func(ctx context.Context, progress func(done, all int)) (json.RawMessage, error) {
		return run(ctx, &answerer{Session: s, runs: map[string]string{}}, set, contenders, progress)
	})
}

// run asks all questions and returns the Result. The outcomes, which quote documents, are kept in a
// folder that it removes.
func run(ctx context.Context, a *answerer, set testset.Dataset, contenders []answers.Contender, progress func(done, all int)) (_ json.RawMessage, err error) {
	dir, err := os.MkdirTemp("", "assay-evaluation-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	folder, err := answers.OpenFolder(ctx, dir, answers.Identity{Set: set.Name, Hash: set.Hash})
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	all, done := len(set.Cases)*len(contenders), 0
	opts := answers.Options{
		Contenders: contenders, Parallel: 1, // so that users do not wait
		Judge: judge.Local{Verifier: ground.Local{}, Called: "local verifier"},
		Progress: func(eval.Progress) {
			done++
			progress(done, all)
		},
	}
	if err := answers.AskAllOf(ctx, a, set, folder, opts); err != nil {
		return nil, err
	}
	return result(ctx, set, contenders, folder)
}

// result returns the measured figures without texts.
func result(ctx context.Context, set testset.Dataset, contenders []answers.Contender, folder *answers.Folder) (json.RawMessage, error) {
	var names []string
	for _, c := range contenders {
		names = append(names, c.Name)
	}
	var r Result
	var err error
	if r.Report, err = answers.Summarise(ctx, set, folder, answers.SummaryOptions{Systems: names}); err != nil {
		return nil, err
	}
	for i := range r.Systems {
		r.Systems[i].Worst = nil // it has the questions
	}
	for o, err := range folder.Outcomes(ctx) {
		if err != nil {
			return nil, err
		}
		r.Questions = append(r.Questions, Question{o.ID, hashOf(o.Question), o.System, o.Run, o.Answer.Status, o.Right, o.Lost, o.Error != "", o.Metrics})
	}
	return json.Marshal(r)
}

// An answerer is a session whose runs are found by the IDs that an evaluation has for them.
type answerer struct {
	*engine.Session
	mu   sync.Mutex
	runs map[string]string // the run's ID by that of the evaluation
}

// Answer implements answers.Answerer. A session chooses the IDs of runs.
func (a *answerer) Answer(ctx context.Context, req engine.Request) (assay.Answer, error) {
	id := req.ID
	req.ID = ""
	answer, err := a.Session.Answer(ctx, req)
	run := answer.Run
	if failed, ok := errors.AsType[*engine.RunError](err); ok {
		run = failed.Run
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if run != "" {
		a.runs[id] = run
	}
	return answer, err
}

// Run implements answers.Answerer.
func (a *answerer) Run(ctx context.Context, id string) (assay.Run, []engine.Step, error) {
	return a.Session.Run(ctx, a.id(id))
}

// Resume implements answers.Answerer.
func (a *answerer) Resume(ctx context.Context, id string) iter.Seq2[engine.Event, error] {
	return a.Session.Resume(ctx, a.id(id))
}

func (a *answerer) id(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if run, ok := a.runs[id]; ok {
		return run
	}
	return id
}
