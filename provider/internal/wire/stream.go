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

// Done is what an event function returns when the reply has had its end.
const Done = end("the reply has had its end")

type end string

func (e end) Error() string { return string(e) }

// Whole is the name of the event that a reply is that is no stream. No event of a
// stream has it, since it holds the end of a line.
const Whole = "whole reply\n"

// drain is how long the end of a stream is waited for after the reply's end, so
// that its connection can be used again.
const drain = 50 * time.Millisecond

// maxDrain is how many bytes of a stream are read after the reply's end.
const maxDrain = 4 << 10

// Stream posts in as JSON and hands event the events of the reply as they arrive, by
// the goroutine that called; data is event's to read until it returns. A reply that
// is JSON instead of a stream is one event named Whole.
//
// Stream returns nil when event has returned Done, and when the stream has ended:
// whether the reply had its end, the adapter knows. Any other error of event ends
// the call and is returned as it is. A connection that breaks is an *llm.Error of
// the kind BrokeOff; others are as those of JSON.
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
		return c.Fail(llm.BadReply, "it answers with a web page: is the base URL right?")
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
		// What arrived before the call's end but was not asked for is not handed on.
		if ended := c.ended(r.ctx); ended != nil {
			return ended
		}
		if err := event(name, data); err != nil {
			return err
		}
	}
}

// A form is what a reply is made of.
type form int

const (
	stream form = iota // events
	whole              // JSON
	page               // HTML, of a server that is none of models
)

// formOf tells the form of a reply: by its type, or, of a server that calls it
// something else, by how it begins, since no field of an event begins so.
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

// A decoder reads server-sent events.
//
// Source: the HTML standard, section 9.2 "Server-sent events", parsing an event
// stream. The fields id and retry are of no use here and passed over. The reader
// bounds how much is read, and so how long a line and an event get.
type decoder struct {
	r     *bufio.Reader
	line  []byte
	begun bool // the byte order mark is behind
	cr    bool // the last line ended in CR: a LF now belongs to it
	data  []byte
}

// next returns the next event. At the end of the stream it is io.EOF: an event that
// no blank line has ended is none. data is valid until the next call.
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

// readLine reads a line without its end, which is CR, LF or both. A line that the
// end of the stream cuts off is none.
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
