package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/markdown"
	"github.com/assay-rag/assay/strategy"
)

// runRoutes show and continue the runs of the principal.
func runRoutes() []Route {
	return []Route{
		returning[RunPage](raw("GET", "/api/v1/runs", "runs.list", "ListRuns", "List runs, newest first", listRuns)),
		route("GET", "/api/v1/runs/{id}", "runs.show", "Run", "Show a run with its answer",
			func(ctx context.Context, s *engine.Session, in runIn) (assay.Run, error) {
				r, _, err := s.Run(ctx, in.ID)
				return r, err
			}),
		route("DELETE", "/api/v1/runs/{id}", "runs.delete", "DeleteRun", "Delete a run",
			func(ctx context.Context, s *engine.Session, in deleteRunIn) (none, error) {
				return none{}, s.DeleteRun(ctx, in.ID, in.Reason)
			}),
		route("GET", "/api/v1/runs/{id}/trace", "runs.trace", "Run", "Show a run with its steps, their inputs and outputs",
			func(ctx context.Context, s *engine.Session, in runIn) (RunTrace, error) {
				r, steps, err := s.Run(ctx, in.ID)
				if steps == nil {
					steps = []engine.Step{}
				}
				return RunTrace{r, steps}, err
			}),
		raw("GET", "/api/v1/runs/{id}/events", "runs.events", "Follow", "Follow a run", follow).with(func(r *Route) {
			r.Stream, r.Statuses = true, []int{http.StatusNoContent}
		}),
		route("POST", "/api/v1/runs/{id}/replay", "runs.replay", "Replay", "Repeat a run from its journal, and check that the answer is the same",
			func(ctx context.Context, s *engine.Session, in runIn) (assay.Answer, error) {
				return s.Replay(ctx, in.ID)
			}),
		begins(raw("POST", "/api/v1/runs/{id}/resume", "runs.resume", "BeginResume", "Continue a run that was interrupted", resume)),
		begins(raw("POST", "/api/v1/runs/{id}/fork", "runs.fork", "BeginFork", "Answer the question of a run again from one of its steps", fork)),
		route("POST", "/api/v1/runs/{id}/cancel", "runs.cancel", "Cancel", "Interrupt a run",
			func(ctx context.Context, s *engine.Session, in runIn) (none, error) {
				return none{}, s.Cancel(ctx, in.ID)
			}),
		route("GET", "/api/v1/runs/{id}/diff/{other}", "runs.diff", "Diff", "Compare two runs",
			func(ctx context.Context, s *engine.Session, in diffIn) (engine.RunDiff, error) {
				return s.Diff(ctx, in.ID, in.Other)
			}),
		returning[assay.Answer](raw("GET", "/api/v1/runs/{id}/export", "runs.export", "Run", "Download the answer of a run", exportRun)).with(func(r *Route) {
			r.Media = []string{typeMarkdown}
		}),
		raw("GET", "/api/v1/runs/{id}/proof", "runs.prove", "Prove", "Download the proof of a run from the audit log", proveRun).with(func(r *Route) {
			r.Media = []string{typeJSON}
		}),
	}
}

const typeMarkdown = "text/markdown"

type runIn struct {
	ID string `path:"id"`
}

type deleteRunIn struct {
	ID     string `path:"id"`
	Reason string `query:"reason"` // for the audit log
}

type diffIn struct {
	ID    string `path:"id"`
	Other string `path:"other"`
}

type listRunsIn struct {
	State  []string  `query:"state"`  // active, suspended, done, failed, erased
	Status []string  `query:"status"` // of the answer
	Since  time.Time `query:"since"`  // created then or later
	Until  time.Time `query:"until"`  // created before
	Cursor string    `query:"cursor"`
	Limit  int       `query:"limit"` // 1 to 500; default 50
}

// A RunPage is a part of a list of runs.
type RunPage struct {
	Runs []engine.RunSummary `json:"runs"`
	Next string              `json:"next,omitempty"` // cursor of the next part; empty: there is none
}

// A RunTrace is a run with its steps.
type RunTrace struct {
	Run   assay.Run     `json:"run"`
	Steps []engine.Step `json:"steps"`
}

func listRuns(x *exchange, in listRunsIn) (err error) {
	f := engine.RunFilter{Since: in.Since, Until: in.Until}
	if f.Limit, err = pageSize(in.Limit); err != nil {
		return err
	}
	for _, state := range in.State {
		f.States = append(f.States, assay.RunState(state))
	}
	for _, status := range in.Status {
		f.Statuses = append(f.Statuses, assay.Status(status))
	}
	if err := x.place(in.Cursor, &f.After); err != nil {
		return err
	}
	runs, next, err := x.session.ListRuns(x.r.Context(), f)
	if err != nil {
		return err
	}
	page := RunPage{Runs: runs}
	if next != nil {
		if page.Next, err = x.cursor(next); err != nil {
			return err
		}
		x.linkNext(page.Next)
	}
	return x.reply(page)
}

type followIn struct {
	ID    string `path:"id"`
	Last  string `header:"Last-Event-ID"` // of the last message that was received; it replaces after
	After string `query:"after"`          // ordinal of the last step that was received
}

// follow sends the events of a run. A client that has received all gets no content, so that an
// EventSource does not connect again.
func follow(x *exchange, in followIn) error {
	name, text := "Last-Event-ID", in.Last
	if text == "" {
		name, text = "after", in.After
	}
	after, ended, err := lastEventOf(name, text)
	if err != nil {
		return err
	}
	if ended {
		if _, _, err := x.session.Run(x.r.Context(), in.ID); err != nil {
			return err
		}
		x.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return x.stream(sse(x.session.Follow(x.r.Context(), in.ID, after)))
}

// lastEventOf reads the ID of the last message that a client has received.
func lastEventOf(name, text string) (after int, ended bool, err error) {
	switch text {
	case "":
		return -1, false, nil
	case lastEvent:
		return -1, true, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 {
		return -1, false, fieldErrors{{Parameter: name, Detail: fmt.Sprintf("%q is not the ordinal of a step", text)}}
	}
	return n, false, nil
}

type resumeIn struct {
	ID     string   `path:"id"`
	Prefer []string `header:"Prefer"` // as for ask
	Wait   *int     `query:"wait"`
	Stream bool     `query:"stream"`
}

func resume(x *exchange, in resumeIn) error {
	how, err := x.delivery(in.Prefer, in.Wait, in.Stream)
	if err != nil {
		return err
	}
	if err := x.session.BeginResume(x.r.Context(), in.ID); err != nil {
		return err
	}
	return x.deliver(in.ID, how)
}

// A ForkRequest names a step of a run, and the changes from there on. The other fields of the run's
// request stay.
type ForkRequest struct {
	Step     string             `json:"step"` // its path, or its number in the journal from 1
	Mode     *strategy.Mode     `json:"mode,omitempty"`
	Local    *bool              `json:"local,omitempty"`
	Budget   *assay.Budget      `json:"budget,omitempty"`
	Settings *strategy.Settings `json:"settings,omitempty"`
	Limits   *strategy.Limits   `json:"limits,omitempty"`
	Review   *engine.ReviewMode `json:"review,omitempty"`
}

// change applies the changes to a request.
func (f ForkRequest) change(r *engine.Request) {
	set(&r.Mode, f.Mode)
	set(&r.Local, f.Local)
	set(&r.Budget, f.Budget)
	set(&r.Settings, f.Settings)
	set(&r.Limits, f.Limits)
	set(&r.Review, f.Review)
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

type forkIn struct {
	ID     string      `path:"id"`
	Prefer []string    `header:"Prefer"` // as for ask
	Wait   *int        `query:"wait"`
	Stream bool        `query:"stream"`
	Key    string      `header:"Idempotency-Key"`
	Body   ForkRequest `body:"application/json"`
}

func fork(x *exchange, in forkIn) error {
	how, err := x.delivery(in.Prefer, in.Wait, in.Stream)
	if err != nil {
		return err
	}
	id, err := x.session.BeginFork(x.r.Context(), in.ID, in.Body.Step, func(r *engine.Request) {
		in.Body.change(r)
		r.IdempotencyKey = in.Key
	})
	if err != nil {
		return err
	}
	return x.deliver(id, how)
}

type exportIn struct {
	ID     string `path:"id"`
	Format string `query:"format"` // json, markdown or set (a line for assay eval); empty: by Accept
}

func exportRun(x *exchange, in exportIn) error {
	r, _, err := x.session.Run(x.r.Context(), in.ID)
	if err != nil {
		return err
	}
	if r.Answer == nil {
		return fmt.Errorf("run %s has no answer: %w", in.ID, assay.ErrNotFound)
	}
	format := in.Format
	if format == "" {
		format = map[string]string{typeMarkdown: "markdown", typeJSON: "json"}[x.media]
	}
	switch format {
	case "json":
		x.attach("answer-" + r.ID + ".json")
		return x.reply(r.Answer)
	case "markdown":
		x.attach("answer-" + r.ID + ".md")
		return x.write(typeMarkdown+"; charset=utf-8", []byte(markdown.Answer(*r.Answer)))
	case "set":
		line, err := testset.Export(r)
		if err != nil {
			return err
		}
		x.attach("answer-" + r.ID + ".jsonl")
		return x.reply(line)
	}
	return fieldErrors{{Parameter: "format", Detail: fmt.Sprintf("%q is none of json, markdown and set", in.Format)}}
}

// proveRun sends the proof under the newest published checkpoint, byte for byte as assay audit prove
// writes it.
func proveRun(x *exchange, in runIn) error {
	proof, err := x.session.Prove(x.r.Context(), in.ID, audit.Signed{})
	if err != nil {
		return err
	}
	data, err := proof.Bytes()
	if err != nil {
		return err
	}
	x.attach("proof-" + in.ID + ".json")
	return x.write(typeJSON, data)
}
