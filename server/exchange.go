package server

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// An exchange is one request and its response.
type exchange struct {
	server  *Server
	route   Route
	w       http.ResponseWriter
	r       *http.Request
	session *engine.Session // nil if the route needs no credential
	media   string          // media type of the response, see Route.Produces
	scoped  bool            // the credential has the scope of the route
	sent    bool            // the header is written
	cancel  func()          // ends the context of r
}

// serve checks the credential and calls the route.
func (x *exchange) serve() error {
	var err error
	if x.route.Call != "" {
		if err = x.authorise(); err != nil {
			return err
		}
	}
	if x.media, err = negotiate(x.r.Header.Values("Accept"), x.route.Produces()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	x.r, x.cancel = x.r.WithContext(ctx), cancel
	x.r.Body = &requestBody{ReadCloser: http.MaxBytesReader(x.w, x.r.Body, x.route.BodyLimit())}
	return x.route.handle(x)
}

// authorise checks the credential and its right to call the route, before anything else is read.
func (x *exchange) authorise() error {
	grant, err := x.server.grant(x.r)
	if err != nil {
		return err
	}
	if x.session, err = x.server.config.Host.Session(x.r.Context(), grant); err != nil {
		return err
	}
	err = engine.Allows(grant, x.route.Call)
	x.scoped = err == nil
	return err
}

// A requestBody is a body whose errors, except those of limits, are the client's: assay.ErrInvalid.
type requestBody struct {
	io.ReadCloser
	ended bool // it was read to its end
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	if err == nil || err == io.EOF || isTooLarge(err) || isSlow(err) {
		return n, err
	}
	return n, fmt.Errorf("the body breaks off: %w: %w", assay.ErrInvalid, err)
}

// decode reads the request into a struct, see Route.In. A parameter, or a field of a JSON body, that
// the struct does not have is assay.ErrInvalid, and so is a body that the route does not take.
func (x *exchange) decode(in any) error {
	v := reflect.ValueOf(in).Elem()
	query, err := parameters(x.r)
	if err != nil {
		return err
	}
	var wrong fieldErrors
	body := -1
	for i := range v.NumField() {
		f := v.Type().Field(i)
		var err error
		name := ""
		switch {
		case f.Tag.Get("path") != "":
			name = f.Tag.Get("path")
			err = setText(v.Field(i), x.r.PathValue(name))
		case f.Tag.Get("query") != "":
			name = f.Tag.Get("query")
			err = setTexts(v.Field(i), query[name])
			delete(query, name)
		case f.Tag.Get("header") != "":
			name = f.Tag.Get("header")
			err = setTexts(v.Field(i), x.r.Header.Values(name))
		case f.Tag.Get("body") != "":
			body = i
		default:
			panic(fmt.Sprintf("server: %s: the field %s of its input has no tag", x.route.Name, f.Name))
		}
		if err != nil {
			wrong = append(wrong, FieldProblem{Parameter: name, Detail: err.Error()})
		}
	}
	for name := range query {
		wrong = append(wrong, FieldProblem{Parameter: name, Detail: "unknown parameter"})
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b FieldProblem) int { return strings.Compare(a.Parameter, b.Parameter) })
		return wrong
	}
	if body < 0 {
		return x.checkNoBody()
	}
	return x.decodeBody(v.Field(body), v.Type().Field(body).Tag)
}

// decodeBody reads the body into a field with the tag body.
func (x *exchange) decodeBody(v reflect.Value, tag reflect.StructTag) error {
	if encodings := x.r.Header.Values("Content-Encoding"); len(encodings) > 0 {
		return fmt.Errorf("the Content-Encoding %q: %w", strings.Join(encodings, ", "), errMediaType)
	}
	want := tag.Get("body")
	if want != typeJSON {
		if err := checkContentType(x.r.Header, want); err != nil {
			return err
		}
		v.Set(reflect.ValueOf(io.Reader(x.r.Body)))
		return x.readWhileWriting()
	}
	data, err := io.ReadAll(x.r.Body)
	if err != nil {
		return err
	}
	if len(data) == 0 && tag.Get("optional") == "true" {
		return nil
	}
	if err := checkContentType(x.r.Header, want); err != nil {
		return err
	}
	return decodeJSON(data, v.Addr().Interface())
}

// readWhileWriting allows the handler to send events before the body has arrived. Without it, package
// http throws away up to 256 KB of the body when the header of the response is written.
func (x *exchange) readWhileWriting() error {
	if x.media != typeEvents {
		return nil
	}
	err := http.NewResponseController(x.w).EnableFullDuplex()
	if errors.Is(err, http.ErrNotSupported) { // a recorder of tests, or HTTP/2, which always does it
		return nil
	}
	return err
}

// checkNoBody refuses a body, which the route would ignore.
func (x *exchange) checkNoBody() error {
	n, err := io.ReadFull(x.r.Body, make([]byte, 1))
	switch {
	case n > 0:
		return fmt.Errorf("%s %s takes no body: %w", x.r.Method, x.r.URL.Path, assay.ErrInvalid)
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// setTexts sets a field to the values of a parameter. Only a list may have several.
func setTexts(v reflect.Value, values []string) error {
	if list, ok := v.Addr().Interface().(*[]string); ok {
		*list = values
		return nil
	}
	switch len(values) {
	case 0:
		return nil
	case 1:
		return setText(v, values[0])
	}
	return fmt.Errorf("%d values, want one", len(values))
}

// setText sets a field to the value of a parameter.
func setText(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if err := setText(p.Elem(), text); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("%q is not a time as in 2006-01-02T15:04:05Z", text)
		}
		*p = t
		return nil
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not an integer", text)
		}
		v.SetInt(n)
	case reflect.Bool:
		b, ok := map[string]bool{"": true, "true": true, "1": true, "false": false, "0": false}[text]
		if !ok {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(b)
	default:
		panic(fmt.Sprintf("server: a parameter cannot be a %s", v.Type()))
	}
	return nil
}

// reply writes a response whose body is JSON, or none if the route has none. A response to GET has an
// entity tag.
func (x *exchange) reply(out any) error {
	if x.route.Out == nil {
		x.sent = true
		x.w.WriteHeader(x.route.Status)
		return nil
	}
	data, err := encode(out)
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	return x.write(typeJSON, append(data, '\n'))
}

// write writes a whole body. The response to a GET has an entity tag, and is 304 if the client has
// it already.
func (x *exchange) write(media string, body []byte) error {
	h := x.w.Header()
	h.Set("Content-Type", media)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept, Accept-Encoding")
	compressed := len(body) >= minCompressed && acceptsGzip(x.r.Header)
	read := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	if read && x.route.Status == http.StatusOK {
		h.Set("Cache-Control", "private, no-cache")
		if h.Get("ETag") == "" {
			h.Set("ETag", tagOf(body))
		}
		tag := h.Get("ETag")
		if compressed {
			h.Set("ETag", compressedTag(tag))
		}
		if matches(x.r.Header.Values("If-None-Match"), tag) {
			h.Del("Content-Type")
			x.sent = true
			x.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	if compressed {
		body = compress(body)
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.sent = true
	x.w.WriteHeader(x.route.Status)
	_, err := x.w.Write(body)
	return err
}

// An eventWriter writes server-sent events, and a comment whenever nothing was written for a while,
// so that proxies keep the connection.
type eventWriter struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	c     *http.ResponseController
	timer *time.Timer
	err   error // the first

	failed  func()      // called at the first error
	release func() bool // see Server.endOnDrain
}

// Times of a stream of events.
const (
	writeTimeout = 30 * time.Second // for one event to a slow client
	idleTime     = 15 * time.Second // after which a comment is sent
)

// firstTime is how long a stream waits for its first message before it sends the header, so that an
// error that comes at once has a response of its own.
const firstTime = 200 * time.Millisecond

// stream writes server-sent events until they end, the client is gone or a write takes longer than
// writeTimeout. An error that comes at once is returned, and a later one is sent as an event "error"
// with problem details.
func (x *exchange) stream(events messages) error {
	next, stop := iter.Pull2(events)
	defer stop()
	type pulled struct {
		m   message
		err error
		ok  bool
	}
	pull := func() (p pulled) {
		p.m, p.err, p.ok = next()
		return p
	}
	first := make(chan pulled, 1)
	go func() { first <- pull() }()
	wait := x.server.firstTime
	if x.r.Method == http.MethodHead { // nothing else is read
		wait = writeTimeout
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case p := <-first:
		if p.err != nil {
			return p.err
		}
		first <- p
	case <-timer.C:
	}
	out, err := x.beginStream()
	defer out.stop()
	if x.r.Method == http.MethodHead {
		x.cancel()
		<-first
		return err
	}
	for p := <-first; p.ok && err == nil; p = pull() {
		switch {
		case errors.Is(context.Cause(x.r.Context()), errRestart):
			return out.write(restartMessage)
		case x.r.Context().Err() != nil: // the client is gone
			err = x.r.Context().Err()
		case p.err != nil:
			err = out.send(message{event: "error", data: x.problem(p.err)})
		default:
			err = out.send(p.m)
		}
	}
	return err
}

// beginStream sends the header of a stream.
func (x *exchange) beginStream() (*eventWriter, error) {
	h := x.w.Header()
	h.Set("Content-Type", typeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	x.sent = true
	x.w.WriteHeader(http.StatusOK)
	out := &eventWriter{w: x.w, c: http.NewResponseController(x.w), failed: x.cancel, release: x.server.endOnDrain(x.r.Context())}
	out.mu.Lock()
	out.timer = time.AfterFunc(idleTime, out.comment)
	out.mu.Unlock()
	return out, out.write([]byte("retry: 1000\n\n"))
}

// text returns the message in its wire form.
func (m message) text() ([]byte, error) {
	data, err := encode(m.data)
	if err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	var text []byte
	if m.id != "" {
		text = fmt.Appendf(text, "id: %s\n", m.id)
	}
	if m.event != "" {
		text = fmt.Appendf(text, "event: %s\n", m.event)
	}
	return fmt.Appendf(text, "data: %s\n\n", data), nil
}

func (o *eventWriter) send(m message) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	return o.write(text)
}

func (o *eventWriter) write(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	o.timer.Reset(idleTime)
	if err := o.c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		o.err = err
		o.failed()
		return err
	}
	if _, o.err = o.w.Write(text); o.err == nil {
		o.err = o.c.Flush()
	}
	if o.err != nil {
		o.failed()
	}
	return o.err
}

// comment writes a comment, which clients ignore.
func (o *eventWriter) comment() { _ = o.write([]byte(":\n\n")) } // write keeps the error

// stop ends the comments.
func (o *eventWriter) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer.Stop()
	o.release()
	o.err = io.ErrClosedPipe
}

// attach has clients keep the body as a file.
func (x *exchange) attach(name string) {
	x.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
}
