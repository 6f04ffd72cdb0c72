package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
)

// A Message is one server-sent event.
type Message struct {
	ID   string // of the last event that had one; empty: none so far
	Kind string // "message" if the server named none
	Data []byte // JSON
}

// A Stream is a response of server-sent events.
type Stream struct {
	Run string // the run that the response began or follows; empty: none

	body io.ReadCloser
	r    *bufio.Reader
	id   string
	most int // bytes of one event
}

// maxEvent is the most bytes of one event.
const maxEvent = 64 << 20

// stream sends a call whose response is a stream, which the caller closes.
func (c *Client) stream(ctx context.Context, q *call) (*Stream, error) {
	q.header.Set("Accept", "text/event-stream")
	resp, err := c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if resp.StatusCode == http.StatusNoContent { // there are no more events
		media = "text/event-stream"
	}
	if media != "text/event-stream" {
		return nil, errors.Join(q.fail(fmt.Errorf("the response is %q and no stream of events", media)), resp.Body.Close())
	}
	location := resp.Header.Get("Location")
	return &Stream{Run: location[strings.LastIndexByte(location, '/')+1:], body: resp.Body, r: bufio.NewReader(resp.Body), most: maxEvent}, nil
}

// Close ends the stream. The run goes on.
func (s *Stream) Close() error { return s.body.Close() }

// Next returns the next message. At the end of the stream the error is io.EOF.
func (s *Stream) Next() (Message, error) {
	m := Message{Kind: "message"}
	var data [][]byte
	size := 0
	for {
		line, err := s.line(s.most - size)
		if err != nil {
			return Message{}, err // an event without its empty line is not complete
		}
		size += len(line)
		if len(line) == 0 {
			if data == nil {
				m.Kind = "message"
				continue
			}
			m.ID, m.Data = s.id, bytes.Join(data, []byte("\n"))
			return m, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			if !bytes.ContainsRune(value, 0) {
				s.id = string(value)
			}
		case "event":
			m.Kind = string(value)
		case "data":
			data = append(data, value)
		}
	}
}

// line returns the next line without its end, which is LF, CR LF or CR.
func (s *Stream) line(most int) ([]byte, error) {
	var line []byte
	for {
		b, err := s.r.ReadByte()
		switch {
		case err != nil:
			return nil, err
		case b == '\r':
			if next, err := s.r.Peek(1); err == nil && next[0] == '\n' {
				_, _ = s.r.Discard(1) // it was peeked
			}
			return line, nil
		case b == '\n':
			return line, nil
		case len(line) >= most:
			return nil, fmt.Errorf("an event has more than %d bytes", s.most)
		}
		line = append(line, b)
	}
}

// Answer asks a question and returns its answer. It waits for as long as the run takes.
func (c *Client) Answer(ctx context.Context, req Request) (answer assay.Answer, err error) {
	for ev, err := range c.AskEvents(ctx, req) {
		if err != nil {
			return assay.Answer{}, err
		}
		if ev.Answer != nil {
			answer = *ev.Answer
		}
	}
	return answer, nil
}

// AskEvents asks a question and yields the events of its run. The last has the answer, or is an error.
// If the connection breaks, it goes on after the last step that it has seen; drafts and the starts of
// steps may come again. The run goes on if the loop ends early, or ctx does.
func (c *Client) AskEvents(ctx context.Context, req Request) iter.Seq2[Event, error] {
	q := newCall("POST", "/api/v1/ask")
	q.json(req)
	q.repeatable = true // by its idempotency key
	return func(yield func(Event, error) bool) {
		f := &follower{client: c, after: -1, yield: yield}
		f.run(ctx, q)
	}
}

// Follow yields the events of a run after the step with an ordinal (-1: all), like AskEvents.
func (c *Client) Follow(ctx context.Context, run string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{client: c, id: run, after: after, yield: yield}
		f.run(ctx, f.next())
	}
}

// A follower follows one run.
type follower struct {
	client *Client
	id     string // of the run; empty: not known yet
	after  int    // ordinal of the last step seen
	yield  func(Event, error) bool
	done   bool
	moved  bool // a step ended since the last broken connection
}

// next returns the call that goes on after the last step seen.
func (f *follower) next() *call {
	q := newCall("GET", "/api/v1/runs/{id}/events", f.id)
	if f.after >= 0 {
		q.header.Set("Last-Event-ID", strconv.Itoa(f.after))
	}
	return q
}

// run sends the call q, and then further ones while connections break.
func (f *follower) run(ctx context.Context, q *call) {
	for failures := 0; ; failures++ {
		err := f.follow(ctx, q)
		if f.done {
			return
		}
		if f.moved {
			failures, f.moved = 0, false
		}
		gone := ctx.Err() != nil || !errors.Is(err, errBroken) || f.id == ""
		if gone || failures >= f.client.retries || f.client.wait(ctx, backoff(failures)) != nil {
			f.yield(Event{}, err)
			return
		}
		q = f.next()
	}
}

// follow yields the events of one response. It returns why it ended before the last event.
func (f *follower) follow(ctx context.Context, q *call) error {
	s, err := f.client.stream(ctx, q)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.id == "" {
		f.id = s.Run
	}
	for {
		m, err := s.Next()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return q.broken(ctx, err)
		}
		if err := f.take(q, m); err != nil || f.done {
			return err
		}
	}
}

// take yields the event of a message.
func (f *follower) take(q *call, m Message) error {
	if m.Kind == "error" {
		var p Problem
		if err := json.Unmarshal(m.Data, &p); err != nil {
			return q.fail(fmt.Errorf("decode problem details: %w", err))
		}
		return q.problem(p, p.Status, f.client.credential)
	}
	var ev Event
	if err := json.Unmarshal(m.Data, &ev); err != nil {
		return q.fail(fmt.Errorf("decode an event: %w", err))
	}
	if n, err := strconv.Atoi(m.ID); err == nil && n > f.after {
		f.after, f.moved = n, true
	}
	if f.id == "" {
		f.id = ev.Run
	}
	f.done = !f.yield(ev, nil) || ev.Answer != nil
	return nil
}
