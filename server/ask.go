package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// askRoutes ask questions.
func askRoutes() []Route {
	return []Route{
		begins(raw("POST", "/api/v1/ask", "ask", "Begin", "Ask a question", ask)),
	}
}

// begins returns a route that begins a run and delivers its answer.
func begins(r Route) Route {
	r.Stream = true
	return returning[assay.Answer](r, http.StatusAccepted)
}

// An Accepted names a run that was begun and whose answer is not waited for.
type Accepted struct {
	Run string `json:"run"`
}

type askIn struct {
	Prefer []string       `header:"Prefer"`          // respond-async, wait=SECONDS
	Wait   *int           `query:"wait"`             // seconds to wait for the answer; 0: none; absent: until it is there
	Stream bool           `query:"stream"`           // send events, as for Accept: text/event-stream
	Key    string         `header:"Idempotency-Key"` // begin one run, however often the request is sent
	Body   engine.Request `body:"application/json"`
}

// ask begins a run.
func ask(x *exchange, in askIn) error {
	how, err := x.delivery(in.Prefer, in.Wait, in.Stream)
	if err != nil {
		return err
	}
	in.Body.IdempotencyKey = in.Key
	id, err := x.session.Begin(x.r.Context(), in.Body)
	if err != nil {
		return err
	}
	return x.deliver(id, how)
}

// A delivery is how a client wants the answer of a run.
type delivery struct {
	stream bool
	wait   time.Duration // forever: until the answer is there
}

const forever time.Duration = -1

// maxWait is the longest time that a client may name, an hour.
const maxWait = 3600

// delivery returns how a client wants the answer, by its parameters and by the header Prefer (RFC
// 7240).
func (x *exchange) delivery(prefer []string, wait *int, stream bool) (delivery, error) {
	d := delivery{stream: stream || x.media == typeEvents, wait: forever}
	async := false
	for part := range strings.SplitSeq(strings.Join(prefer, ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(name) {
		case "respond-async":
			async = true
		case "wait":
			if n, err := strconv.Atoi(strings.Trim(value, `"`)); err == nil && wait == nil {
				wait = &n
			}
		}
	}
	if wait == nil && async {
		wait = new(int)
	}
	if wait == nil {
		return d, nil
	}
	if *wait < 0 || *wait > maxWait {
		return d, fieldErrors{{Parameter: "wait", Detail: fmt.Sprintf("%d is not from 0 to %d seconds", *wait, maxWait)}}
	}
	d.wait = time.Duration(*wait) * time.Second
	if async {
		x.w.Header().Set("Preference-Applied", "respond-async")
	}
	return d, nil
}

// deliver sends the events of a run, its answer, or that it was accepted.
func (x *exchange) deliver(id string, how delivery) error {
	NoteRun(x.r.Context(), id) // also if the client does not wait
	x.w.Header().Set("Location", runPath(id))
	switch {
	case how.stream:
		return x.stream(sse(x.session.Follow(x.r.Context(), id, -1)))
	case how.wait == 0:
		return x.accepted(id)
	}
	ctx, cancel := x.r.Context(), context.CancelFunc(func() {})
	if how.wait != forever {
		ctx, cancel = context.WithTimeout(ctx, how.wait)
	}
	defer cancel()
	answer, err := final(x.session.Follow(ctx, id, -1))
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && x.r.Context().Err() == nil {
		return x.accepted(id)
	}
	if err != nil {
		return err
	}
	return x.reply(answer)
}

// accepted answers that a run goes on.
func (x *exchange) accepted(id string) error {
	x.route.Status = http.StatusAccepted
	return x.reply(Accepted{Run: id})
}

func runPath(id string) string { return "/api/v1/runs/" + id }

// lastEvent is the ID of the message with the answer. A client that reconnects after it has seen
// everything.
const lastEvent = "end"

// sse returns the events of a run as messages. The ID of a message is the ordinal of its step, or
// lastEvent.
func sse(events iter.Seq2[engine.Event, error]) messages {
	return func(yield func(message, error) bool) {
		for ev, err := range events {
			m := message{id: messageID(ev), event: string(ev.Kind), data: ev}
			if !yield(m, err) {
				return
			}
		}
	}
}

// messageID returns the ID of the message with an event; empty: none.
func messageID(ev engine.Event) string {
	switch {
	case ev.Kind == engine.StepEnded && ev.Step.Ordinal >= 0:
		return strconv.Itoa(ev.Step.Ordinal)
	case ev.Kind == engine.RunEnded:
		return lastEvent
	}
	return ""
}

// final returns the answer at the end of events.
func final(events iter.Seq2[engine.Event, error]) (answer assay.Answer, err error) {
	for ev, err := range events {
		if err != nil {
			return assay.Answer{}, err
		}
		if ev.Answer != nil {
			answer = *ev.Answer
		}
	}
	return answer, nil
}
