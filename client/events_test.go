package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func messagesOf(r io.Reader) (messages []Message, err error) {
	s := &Stream{r: bufio.NewReader(r), most: 1000}
	for {
		m, err := s.Next()
		if err != nil {
			return messages, err
		}
		messages = append(messages, m)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want []Message
	}{
		{"data: 1\n\n", []Message{{"", "message", []byte("1")}}},
		{"id: 4\nevent: step\ndata: a\ndata: b\n\ndata:c\n\n", []Message{{"4", "step", []byte("a\nb")}, {"4", "message", []byte("c")}}},
		{"id: 4\r\ndata: 1\r\n\r\n:comment\r\n\r\ndata: 2\r\n\r\n", []Message{{"4", "message", []byte("1")}, {"4", "message", []byte("2")}}},
		{"data: 1\r\rdata: 2\r\r", []Message{{"", "message", []byte("1")}, {"", "message", []byte("2")}}},
		{"retry: 1000\n\nevent: step\n\ndata\n\n", []Message{{"", "message", nil}}},
		{"id: 1\nid: 2\x00\ndata: 1\n\n", []Message{{"1", "message", []byte("1")}}},
		{"data: whole\n\ndata: cut off\n", []Message{{"", "message", []byte("whole")}}},
		{"", nil},
	} {
		got, err := messagesOf(strings.NewReader(test.in))
		if !errors.Is(err, io.EOF) {
			t.Errorf("%q: %v", test.in, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.in, diff)
		}
	}
}

// TestStreamLimit checks that an event without an end does not fill the memory.
func TestStreamLimit(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader("data: "), strings.NewReader(strings.Repeat("0", 1000)))
	if _, err := messagesOf(endless); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v, want an error about the size", err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("id: 4\nevent: step\ndata: a\n\n"))
	f.Add([]byte("data: 1\r\rdata\r\n\r\n: x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := messagesOf(bytes.NewReader(data))
		if len(data) > 900 {
			return // an event may be too large
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		// Small pieces give the same events.
		again, err := messagesOf(&oneByte{data})
		if diff := cmp.Diff(got, again); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%v (-whole +pieces):\n%s", err, diff)
		}
	})
}

type oneByte struct{ rest []byte }

func (r *oneByte) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:1], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// events returns a response with the steps from first to last, and the answer if it is whole. One
// that is not whole breaks off in the middle of an event.
func events(first, last int, whole bool) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Location", "/api/v1/runs/r1")
		fmt.Fprint(w, "event: run\ndata: {\"kind\":\"run\",\"run\":\"r1\"}\n\n")
		for i := first; i <= last; i++ {
			fmt.Fprintf(w, ": comment\nid: %d\nevent: step\ndata: {\"kind\":\"step\",\"run\":\"r1\",\"step\":{\"ordinal\":%[1]d}}\n\n", i)
		}
		if whole {
			fmt.Fprint(w, "event: answer\ndata: {\"kind\":\"answer\",\"run\":\"r1\",\"answer\":{\"text\":\"Five days. [1]\",\"run\":\"r1\"}}\n\n")
			return
		}
		fmt.Fprintf(w, "id: %d\nevent: step\ndata: {\"kind\"", last+1)
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
		panic(http.ErrAbortHandler)
	}
}

func TestAskEvents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		responses []func(http.ResponseWriter)
		steps     []int
		after     []string // Last-Event-ID of each request
		want      error
		answered  bool
	}{
		"whole":          {[]func(http.ResponseWriter){events(0, 2, true)}, []int{0, 1, 2}, []string{""}, nil, true},
		"broken twice":   {[]func(http.ResponseWriter){events(0, 1, false), events(2, 3, false), events(4, 4, true)}, []int{0, 1, 2, 3, 4}, []string{"", "1", "3"}, nil, true},
		"before a step":  {[]func(http.ResponseWriter){events(0, -1, false), events(0, 0, true)}, []int{0}, []string{"", ""}, nil, true},
		"busy meanwhile": {[]func(http.ResponseWriter){events(0, 0, false), respond(503, "", "Retry-After", "1"), events(1, 1, true)}, []int{0, 1}, []string{"", "0", "0"}, nil, true},
		"no progress":    {[]func(http.ResponseWriter){events(0, 0, false), events(1, 0, false)}, []int{0}, []string{"", "0", "0"}, assay.ErrUnavailable, false},
		"gone": {[]func(http.ResponseWriter){events(0, 0, false), respond(404, `{"type":"/problems/not_found"}`, "Content-Type", "application/problem+json")},
			[]int{0}, []string{"", "0"}, assay.ErrNotFound, false},
		"failed": {[]func(http.ResponseWriter){respond(200, "event: error\ndata: {\"type\":\"/problems/budget\",\"status\":422,\"run\":\"r1\"}\n\n", "Content-Type", "text/event-stream")},
			nil, []string{""}, assay.ErrBudget, false},
		"refused": {[]func(http.ResponseWriter){respond(400, `{"type":"/problems/invalid"}`, "Content-Type", "application/problem+json")},
			nil, []string{""}, assay.ErrInvalid, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &recorder{responses: test.responses}
			c, _ := newTestClient(t, h, Options{Retries: 2})
			var steps []int
			var failed error
			answered := false
			for ev, err := range c.AskEvents(t.Context(), Request{Question: "How many days?"}) {
				failed = err
				if ev.Step != nil {
					steps = append(steps, ev.Step.Ordinal)
				}
				answered = answered || ev.Answer != nil
			}
			if !errors.Is(failed, test.want) || (failed == nil) != (test.want == nil) || answered != test.answered {
				t.Errorf("answered %t, %v; want %t, %v", answered, failed, test.answered, test.want)
			}
			if diff := cmp.Diff(test.steps, steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			var after []string
			for _, r := range h.seen() {
				after = append(after, r.Header.Get("Last-Event-ID"))
			}
			if diff := cmp.Diff(test.after, after); diff != "" {
				t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAskEventsEnds checks that a loop can end early, and that the end of its context is an error.
func TestAskEventsEnds(t *testing.T) {
	t.Parallel()
	h := &recorder{responses: []func(http.ResponseWriter){events(0, 3, true)}}
	c, _ := newTestClient(t, h, Options{})
	for range c.AskEvents(t.Context(), Request{}) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for ev, err := range c.Follow(ctx, "r1", -1) {
		last = err
		if ev.Step != nil && ev.Step.Ordinal == 1 {
			cancel()
		}
	}
	if last != nil && !errors.Is(last, context.Canceled) { // events that have arrived are read
		t.Errorf("cancelled: %v", last)
	}
	if len(h.seen()) != 2 {
		t.Errorf("%d requests, want 2", len(h.seen()))
	}
}

// TestNoStream checks that a response of another form is an error.
func TestNoStream(t *testing.T) {
	t.Parallel()
	c, _ := newTestClient(t, &recorder{responses: []func(http.ResponseWriter){respond(200, "<html>", "Content-Type", "text/html")}}, Options{})
	if _, err := c.Answer(t.Context(), Request{}); err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Errorf("%v", err)
	}
}
