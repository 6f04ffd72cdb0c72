package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// A forkForm is the data of the form that forks a run. Its fields are what the user typed.
type forkForm struct {
	runHead
	Steps      []forkStep
	Strategies []string
	Values     map[string]string
	Errors     map[string]string // by field
	Error      string
}

// A forkStep is a step to fork from.
type forkStep struct {
	Number  int
	Scope   string
	Word    string
	Summary string
}

// maxForkSteps is the most steps in the list of the form. Others are named by their number.
const maxForkSteps = 500

// A forkNumber is a field that holds a number above 0.
type forkNumber struct {
	Name, Label string
	most        float64
	whole       bool
}

// forkBudget and forkSettings are the fields with numbers.
var (
	forkBudget = []forkNumber{
		{"iterations", "Iterations a sub-question", 1000, true}, {"calls", "Model calls", 1e6, true}, {"tokens", "Tokens", 1e9, true},
		{"cost", "Cost", 1e6, false}, {"seconds", "Seconds", 86_400, true},
	}
	forkSettings = []forkNumber{
		{"candidates", "Hits of each search", 1000, true}, {"keep", "Hits that become evidence", 1000, true},
		{"grounding", "Least score of a claim, up to 1", 1, false}, {"relevance", "Least relevance of the answer, up to 1", 1, false},
	}
)

// Budgets returns the fields of the budget.
func (f forkForm) Budgets() []forkNumber { return forkBudget }

// Settings returns the fields of the settings.
func (f forkForm) Settings() []forkNumber { return forkSettings }

func showFork(q *request) error {
	f, err := q.forkForm()
	if err != nil {
		return err
	}
	f.Values["step"] = q.query("step")
	f.Values["strategy"] = f.Request.Strategy
	f.Values["mode"] = string(f.Request.Mode)
	if f.Request.Local {
		f.Values["models"] = "local"
	}
	return q.render("fork.html", q.view("", "Fork", f))
}

// forkForm returns the form for the run of the request.
func (q *request) forkForm() (forkForm, error) {
	r, steps, err := q.session.Run(q.ctx(), q.path("id"))
	if err != nil {
		return forkForm{}, err
	}
	head, err := headOf(r, steps, "fork")
	if err != nil {
		return forkForm{}, err
	}
	f := forkForm{runHead: head, Values: map[string]string{}, Errors: map[string]string{}, Strategies: strategy.Names()}
	if !slices.Contains(f.Strategies, head.Request.Strategy) {
		f.Strategies = append(f.Strategies, head.Request.Strategy)
	}
	for _, s := range steps {
		if s.Kind == assay.StepClock || len(f.Steps) == maxForkSteps {
			continue
		}
		scope, _ := scopeOf(s.Path)
		f.Steps = append(f.Steps, forkStep{s.Ordinal + 1, scopeWords(scope), wordsOfKind(s.Kind).Word, cut(s.Summary, 80)})
	}
	return f, nil
}

// beginFork begins a fork, or asks the question again if another strategy was chosen, because a
// strategy takes over only its own steps.
func beginFork(q *request) error {
	if err := q.parseForm(); err != nil {
		return err
	}
	f, err := q.forkForm()
	if err != nil {
		return err
	}
	numbers := f.read(q.r.PostForm)
	if len(f.Errors) > 0 {
		return q.renderStatus(http.StatusBadRequest, "fork.html", q.view("", "Fork", f))
	}
	change := f.change(numbers)
	var id, notice string
	if f.Values["strategy"] == f.Request.Strategy {
		id, err = q.session.BeginFork(q.ctx(), f.Run.ID, f.Values["step"], change)
		notice = "The fork has begun. Compare it with the original when it is done."
	} else {
		id, err = q.askAgain(f, change)
		notice = "The question is asked again with the strategy " + f.Values["strategy"] + ". Compare it with the original when it is done."
	}
	if errors.Is(err, assay.ErrInvalid) {
		f.Error = q.pages.config.Server.Problem(q.r, err).Detail
		return q.renderStatus(http.StatusBadRequest, "fork.html", q.view("", "Fork", f))
	}
	if err != nil {
		return err
	}
	return q.redirect(runPath(id), notice)
}

// askAgain asks the question of a run from the start.
func (q *request) askAgain(f forkForm, change func(*engine.Request)) (string, error) {
	var asked engine.Request
	if err := json.Unmarshal(f.Run.Request, &asked); err != nil {
		return "", fmt.Errorf("the request of run %s cannot be read: %w: %w", f.Run.ID, assay.ErrDamaged, err)
	}
	again := engine.Request{
		Question: asked.Question, Collections: asked.Collections, Filter: asked.Filter, Follows: asked.Follows, Web: asked.Web,
		Strategy: f.Values["strategy"], NoCache: true,
	}
	if asked.Follows == "" {
		again.History = asked.History
	}
	change(&again)
	return q.session.Begin(q.ctx(), again)
}

// read takes the values of a form, and returns its numbers.
func (f *forkForm) read(form url.Values) map[string]float64 {
	for _, name := range []string{"step", "strategy", "mode", "models"} {
		f.Values[name] = strings.TrimSpace(form.Get(name))
	}
	n, err := strconv.Atoi(f.Values["step"])
	if again := f.Values["strategy"] != f.Request.Strategy; !again && (err != nil || n < 1 || n > f.Run.Steps) {
		f.Errors["step"] = fmt.Sprintf("Choose a step from 1 to %d.", f.Run.Steps)
	}
	if !slices.Contains(f.Strategies, f.Values["strategy"]) {
		f.Errors["strategy"] = "There is no such strategy."
	}
	if strategy.Mode(f.Values["mode"]).Check() != nil {
		f.Errors["mode"] = "Choose one of the efforts."
	}
	numbers := map[string]float64{}
	for _, field := range slices.Concat(forkBudget, forkSettings) {
		text := strings.TrimSpace(form.Get(field.Name))
		if f.Values[field.Name] = text; text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		whole := v == float64(int64(v))
		if err != nil || !(v > 0 && v <= field.most) || field.whole && !whole {
			f.Errors[field.Name] = fmt.Sprintf("Give a %snumber above 0, at most %s.", map[bool]string{true: "whole "}[field.whole], grouped(int64(field.most)))
			continue
		}
		numbers[field.Name] = v
	}
	return numbers
}

// change returns the change of the request that the form describes.
func (f *forkForm) change(numbers map[string]float64) func(*engine.Request) {
	return func(r *engine.Request) {
		r.Mode, r.Local = strategy.Mode(f.Values["mode"]), f.Values["models"] == "local"
		for name, v := range numbers {
			switch name {
			case "iterations":
				r.Budget.Iterations = int(v)
			case "calls":
				r.Budget.Calls = int(v)
			case "tokens":
				r.Budget.Tokens = int(v)
			case "seconds":
				r.Budget.Wall = time.Duration(v) * time.Second
			case "cost":
				r.Budget.CostMicros = int64(v * 1e6)
			case "candidates":
				r.Limits.Candidates = int(v)
			case "keep":
				r.Limits.Keep = int(v)
			case "grounding":
				r.Settings.Verify.Grounding = v
			case "relevance":
				r.Settings.Verify.Relevance = v
			}
		}
	}
}
