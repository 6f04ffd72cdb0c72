package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// An openaiStream writes server-sent events as OpenAI's clients read them.
type openaiStream struct {
	x   *exchange
	out *eventWriter
}

// openOpenAI sends the header of a stream. Unlike beginStream it sends no event without data, which
// OpenAI's client for Python cannot read, and the stream does not end when the shutdown begins, because
// OpenAI's clients cannot continue it.
func (x *exchange) openOpenAI() openaiStream {
	h := x.w.Header()
	h.Set("Content-Type", typeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	x.sent = true
	x.w.WriteHeader(http.StatusOK)
	out := &eventWriter{w: x.w, c: http.NewResponseController(x.w), failed: x.cancel, release: func() bool { return true }}
	out.mu.Lock()
	out.timer = time.AfterFunc(idleTime, out.comment)
	out.mu.Unlock()
	return openaiStream{x, out}
}

// data writes an event without a name.
func (s openaiStream) data(v any) error { return s.event("", v) }

// event writes an event. An empty name is left out.
func (s openaiStream) event(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	text := "data: " + string(data) + "\n\n"
	if name != "" {
		text = "event: " + name + "\n" + text
	}
	return s.write(text)
}

// comment writes a comment, which clients skip.
func (s openaiStream) comment(text string) error { return s.write(": " + oneLine(text) + "\n\n") }

func (s openaiStream) write(text string) error { return s.out.write([]byte(text)) }

// follow calls fn with each event of a run and returns its answer.
func (s openaiStream) follow(id string, fn func(engine.Event) error) (assay.Answer, error) {
	for ev, err := range s.x.session.Follow(s.x.r.Context(), id, -1) {
		if err != nil {
			return assay.Answer{}, err
		}
		if ev.Answer != nil {
			return *ev.Answer, nil
		}
		if err := fn(ev); err != nil {
			return assay.Answer{}, err
		}
	}
	return assay.Answer{}, &engine.RunError{Run: id, Err: errors.New("it ended without an answer")}
}

// announced are the steps whose start is shown, with the words for those of a run that is subject to
// review. Others are short, or show their result.
var announced = map[assay.StepKind]string{
	assay.StepCache: "looking for an earlier answer", assay.StepSearch: "searching the documents", assay.StepWeb: "searching the web",
	assay.StepGenerate: "writing the answer", assay.StepVerify: "verifying the answer",
}

// progressOf describes an event of a run for a person who waits; empty: it is not shown. It has
// no text of a draft, and of documents only the summary of a search, plan or grade.
func progressOf(ev engine.Event) string {
	if ev.Step == nil {
		return ""
	}
	switch {
	case ev.Kind == engine.StepStarted:
		words := announced[ev.Step.Kind]
		if words != "" && ev.Step.Summary != string(ev.Step.Kind) {
			words = unmarked(ev.Step.Summary)
		}
		return words
	case ev.Kind != engine.StepEnded:
	case ev.Plan != nil, ev.Results != nil, ev.Grade != nil:
		return unmarked(ev.Step.Summary)
	case ev.Verdicts != nil: // the reasons quote the draft
		counts, _, _ := strings.Cut(ev.Step.Summary, ";")
		return counts
	}
	return ""
}

// begin begins a run for a request of OpenAI's interface.
func (x *exchange) begin(req engine.Request) (string, error) {
	id, err := x.session.Begin(x.r.Context(), req)
	if errors.Is(err, assay.ErrNotFound) && req.Follows == "" && len(req.Collections) > 0 {
		err = noModel(modelOf(req).String())
	}
	if err != nil {
		return "", err
	}
	NoteRun(x.r.Context(), id)
	x.w.Header().Set("X-Assay-Run", id)
	return id, nil
}

// abandon cancels a run whose client is gone, so that it spends nothing more. The runs of a server that
// shuts down go on when it starts again.
func (x *exchange) abandon(id string) {
	if x.r.Context().Err() == nil || x.server.draining() {
		return
	}
	ctx := context.WithoutCancel(x.r.Context())
	if err := x.session.Cancel(ctx, id); err != nil && !errors.Is(err, assay.ErrInvalid) { // it has ended
		x.server.config.Log.WarnContext(ctx, "cancel the run of a client that is gone", "run", id, "error", err)
	}
}

// reasoningEffort returns the effort for a name of OpenAI's.
func reasoningEffort(param, name string) (effort string, err error) {
	switch name {
	case "", "medium":
		return "", nil
	case "none", "minimal", "low":
		return "quick", nil
	case "high", "xhigh", "max":
		return "thorough", nil
	}
	return "", invalidParameter(param, "%s is %.20q, want none, minimal, low, medium, high, xhigh or max", param, name)
}
