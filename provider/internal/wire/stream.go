package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/assay-rag/assay/llm"
)

// Done is returned by an event function when the reply is complete.
const Done = end("the reply has had its end")

type end string

func (e end) Error() string { return string(e) }

// Whole is the event name for a reply that is not a stream. No event of a stream has this name,
// since it contains a newline.
const Whole = "whole reply\n"

// drain is how long to wait for the end of a stream after the end of the reply, so that its
// connection can be reused.
const drain = 50 * time.Millisecond

// maxDrain is the number of bytes of a stream read after the end of the reply.
const maxDrain = 4 << 10

// Stream posts in as JSON and calls event with the events of the reply as they arrive, on the
// calling goroutine. data is valid until event returns. A reply that is JSON instead of a stream is
// a single event named Whole.
//
// Stream returns nil if event has returned Done, and also at the end of the stream: only the
// adapter knows whether the reply was complete. Any other error of event ends the call and is
// returned unchanged. A broken connection is an *llm.Error of kind BrokeOff; other errors are as
// for JSON.
func (c *Client) Stream(ctx context.Context, url string, in any, event func(name string, data []byte) error) error {
	return c.call(ctx, http.MethodPost, url, in, "text/event-stream, application/json", func(r *reply) error {
		err := c.events(r, event)
		if !errors.Is(err, Done) {
			return err
		}
		r.timer.Reset(drain)
		_, _ = io.CopyN(io.Discard, r.body, maxDrain)
		return nil
	})
}

func (c *Client) events(r *reply, event func(name string, data []byte) error) error {
	b := bufio.NewReader(r)
	switch formOf(r.header, b) {
	case page:
		return c.Fail(llm.BadReply, "it replied with a web page; check the base URL")
	case whole:
		body, err := io.ReadAll(b)
		if err != nil {
			return c.broken(r.ctx, err)
		}
		return event(Whole, body)
	}
	d := decoder{r: b}
	for {
		name, data, err := d.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return c.broken(r.ctx, err)
		}
		// An event that arrived after the context ended is not passed on.
		if ended := c.ended(r.ctx); ended != nil {
			return ended
		}
		if err := event(name, data); err != nil {
			return err
		}
	}
}

// A form is the format of a reply.
type form int

const (
	stream form = iota // events
	whole              // JSON
	page               // HTML, from a server without this API
)

// formOf returns the format of a reply, by its content type or, if that is something else, by its
// first non-blank byte. No field of an event begins with any of the bytes that it looks for.
func formOf(h http.Header, b *bufio.Reader) form {
	switch kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind {
	case "application/json":
		return whole
	case "text/event-stream":
		return stream
	}
	for n := 1; n <= b.Size(); n++ {
		begin, err := b.Peek(n)
		if err != nil {
			break
		}
		switch begin[n-1] {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', '[':
			return whole
		case '<':
			return page
		}
		return stream
	}
	return stream
}

// A decoder parses server-sent events.
//
// Source: the HTML standard, section 9.2 "Server-sent events", parsing an event stream. The fields
// id and retry are ignored. The underlying reader limits the bytes, and thereby the length of a
// line and an event.
type decoder struct {
	r     *bufio.Reader
	line  []byte
	begun bool // the byte order mark has been skipped
	cr    bool // the last line ended in CR, so a following LF belongs to it
	data  []byte
}

// next returns the next event, and io.EOF at the end of the stream. It ignores an event that is not
// ended by a blank line. data is valid until the next call.
func (d *decoder) next() (name string, data []byte, err error) {
	d.data = d.data[:0]
	seen := false
	for {
		if err := d.readLine(); err != nil {
			return "", nil, err
		}
		if len(d.line) == 0 {
			if seen {
				return name, d.data[:len(d.data)-1], nil
			}
			name = ""
			continue
		}
		field, value, _ := bytes.Cut(d.line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			d.data = append(append(d.data, value...), '\n')
			seen = true
		}
	}
}

// readLine reads a line without its end, which is CR, LF or both. It ignores a line that is cut off
// by the end of the stream.
func (d *decoder) readLine() error {
	d.line = d.line[:0]
	if !d.begun {
		d.begun = true
		if mark, _ := d.r.Peek(3); string(mark) == "\uFEFF" {
			_, _ = d.r.Discard(3)
		}
	}
	for {
		b, err := d.r.ReadByte()
		if err != nil {
			return err
		}
		skip := d.cr && b == '\n'
		d.cr = b == '\r'
		switch {
		case skip:
		case b == '\n' || b == '\r':
			return nil
		default:
			d.line = append(d.line, b)
		}
	}
}
