package llmtest_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// A toy is a provider with a format of its own, which tests the suite itself. The suite must detect
// each of its flaws.
type toy struct {
	setup llmtest.Setup
	flaw  string
}

type toyRequest struct {
	Stream  bool        `json:"stream"`
	Request llm.Request `json:"request"`
}

type toyReply struct {
	Piece  string         `json:"piece,omitempty"`
	Calls  []llm.ToolCall `json:"calls,omitempty"`
	Finish llm.Finish     `json:"finish,omitempty"`
	In     int            `json:"in,omitempty"`
	Out    int            `json:"out,omitempty"`
	Cached int            `json:"cached,omitempty"`
	Served string         `json:"served,omitempty"`
	Error  *toyError      `json:"error,omitempty"`
}

type toyError struct {
	Kind    llm.ErrorKind `json:"kind"`
	Message string        `json:"message"`
}

func (toy) Model() string { return "toy/model" }

func (m toy) fail(kind llm.ErrorKind, status int, message string) *llm.Error {
	if m.flaw != "tells secrets" {
		message = strings.ReplaceAll(message, llmtest.Canary, "[secret]")
	}
	message = strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", " "), "?")), " ")
	if len(message) > 300 {
		message = strings.ToValidUTF8(message[:300], "")
	}
	return &llm.Error{Model: m.Model(), Kind: kind, Status: status, Message: message, Usage: assay.Usage{Calls: 1}}
}

var errSilent = errors.New("silent")

// clock returns a timer that fires after the idle timeout.
func (m toy) clock(f func()) *time.Timer {
	return time.AfterFunc(cmp.Or(m.setup.Idle, time.Hour), f)
}

func (m toy) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	if m.flaw == "drops the system text" {
		req.System = ""
	}
	reader := &toyReader{toy: m, stream: stream, out: llm.Response{Usage: assay.Usage{Calls: 1}}}
	err := m.post(ctx, toyRequest{Stream: m.setup.Stream, Request: req}, reader)
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed.Status == 500 && m.flaw == "asks again" {
		err = m.post(ctx, toyRequest{Stream: m.setup.Stream, Request: req}, reader)
	}
	if err != nil {
		return llm.Response{}, err
	}
	if m.flaw == "turns calls round" {
		slices.Reverse(reader.out.Calls)
	}
	return m.held(reader.out, req)
}

// exchange sends a document and decodes the reply into out.
func (m toy) exchange(ctx context.Context, idle *time.Timer, in, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.setup.BaseURL+"/toy", bytes.NewReader(toyJSON(in)))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+llmtest.Canary)
	if m.flaw == "key in the address" {
		r.URL.RawQuery = "key=" + llmtest.Canary
	}
	client := *m.setup.HTTP
	if m.flaw != "follows redirects" {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := client.Do(r)
	if err != nil {
		return m.fail(llm.Unreachable, 0, err.Error())
	}
	defer resp.Body.Close()
	limit := cmp.Or(m.setup.MaxBytes, 8<<20)
	if m.flaw == "reads everything" {
		limit = 1 << 40
	}
	body := &toyBody{r: resp.Body, left: limit, idle: idle, wait: m.setup.Idle}
	if resp.StatusCode != http.StatusOK {
		return m.refused(resp, body)
	}
	if reader, ok := out.(*toyReader); ok {
		return reader.read(body)
	}
	return m.take(body, out)
}

// A toyBody is a bounded body that resets the idle timer with each read.
type toyBody struct {
	r    io.Reader
	left int64
	idle *time.Timer
	wait time.Duration
}

var errLarge = errors.New("too large")

func (b *toyBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.wait > 0 {
		b.idle.Reset(b.wait)
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, errLarge
	}
	return n, err
}

func (m toy) refused(resp *http.Response, body io.Reader) error {
	data, _ := io.ReadAll(io.LimitReader(body, 1<<16))
	var reply struct{ Error toyError }
	kind := map[int]llm.ErrorKind{400: llm.BadRequest, 422: llm.BadRequest, 401: llm.BadKey, 403: llm.BadKey, 408: llm.TimedOut, 429: llm.RateLimited, 503: llm.Overloaded, 529: llm.Overloaded}[resp.StatusCode]
	if kind == "" {
		kind = llm.BadRequest
		if resp.StatusCode >= 500 {
			kind = llm.ServerError
		}
	}
	message := string(data)
	if json.Unmarshal(data, &reply) == nil && reply.Error.Kind != "" {
		kind, message = reply.Error.Kind, reply.Error.Message
	}
	e := m.fail(kind, resp.StatusCode, message)
	wait := resp.Header.Get("Retry-After")
	if s, err := strconv.ParseInt(wait, 10, 32); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	} else if at, err := http.ParseTime(wait); err == nil {
		e.RetryAfter = max(0, time.Until(at))
	}
	if m.flaw == "no wait" {
		e.RetryAfter = 0
	}
	return e
}

// A toyReader reads a reply, or the events of one.
type toyReader struct {
	toy
	stream func(llm.Delta)
	out    llm.Response
	late   []llm.Delta
}

func (r *toyReader) read(body io.Reader) error {
	err := r.each(body, r.add)
	for _, d := range r.late {
		r.stream(d)
	}
	switch failed, ok := errors.AsType[*llm.Error](err); {
	case errors.Is(err, errLarge):
		return r.fail(llm.TooLarge, 0, "")
	case r.flaw == "takes a part for all" && err != nil:
	case ok:
		return failed
	case err != nil || r.out.Finish == "":
		return r.fail(llm.BrokeOff, 0, "the reply has no end")
	}
	return nil
}

func (r *toyReader) add(data []byte) error {
	var reply toyReply
	if err := json.Unmarshal(data, &reply); err != nil {
		return r.fail(llm.BadReply, 0, err.Error()+": "+string(data))
	}
	if e := reply.Error; e != nil {
		return r.fail(cmp.Or(e.Kind, llm.BadReply), 0, e.Message)
	}
	out, d := &r.out, llm.Delta{Text: strings.ToValidUTF8(reply.Piece, "\ufffd")}
	out.Text += d.Text
	out.Calls = append(out.Calls, reply.Calls...)
	switch {
	case d.Text == "" || r.stream == nil:
	case r.flaw == "keeps the stream":
		r.late = append(r.late, d)
	default:
		r.stream(d)
	}
	if reply.Finish != "" {
		out.Finish, out.Served, out.Cached, out.Usage.InputTokens, out.Usage.OutputTokens = reply.Finish, reply.Served, reply.Cached, reply.In, reply.Out
	}
	return nil
}

// held checks and completes a response according to the contract.
func (m toy) held(out llm.Response, req llm.Request) (llm.Response, error) {
	ids := map[string]bool{}
	for _, c := range out.Calls {
		if ids[c.ID] || c.ID == "" {
			return llm.Response{}, m.fail(llm.BadReply, 0, "ids twice")
		}
		ids[c.ID] = true
	}
	switch out.Finish {
	case llm.FinishStop, llm.FinishLength, llm.FinishTools, llm.FinishRefused:
	default:
		out.Finish = llm.FinishOther
	}
	if u := &out.Usage; u.InputTokens <= 0 || u.OutputTokens <= 0 || out.Cached < 0 || out.Cached > u.InputTokens {
		if m.flaw == "no estimate" {
			return out, nil
		}
		u.InputTokens, u.OutputTokens, out.Cached, out.Estimated = req.InputTokens(), llm.EstimateTokens(out.Text)+5, 0, true
	}
	return out, nil
}

// each calls take with each document of a body.
func (m toy) each(body io.Reader, take func([]byte) error) error {
	if !m.setup.Stream {
		data, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(data)) == 0 {
			return io.ErrUnexpectedEOF
		}
		return take(data)
	}
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if !ok {
			if m.flaw == "trips over comments" && len(line) > 1 {
				return m.fail(llm.BadReply, 0, "what is this")
			}
			continue
		}
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			return nil
		}
		if err := take(data); err != nil {
			return err
		}
	}
}

// toyWire returns the server side of the toy's format.
func toyWire(flaw string) llmtest.Wire {
	status := map[llm.ErrorKind]int{llm.RateLimited: 429, llm.ServerError: 500, llm.BadKey: 401, llm.BadRequest: 400, llm.NoModel: 404}
	event := func(r toyReply) []byte {
		return append(append([]byte("data: "), toyJSON(r)...), "\n\n"...)
	}
	return llmtest.Wire{
		Lacks: []llmtest.Feature{llmtest.Images}, // their JSON leaves out the data
		Open:  func(_ testing.TB, s llmtest.Setup) llm.Model { return toy{s, flaw} },
		Streams: func(_ *http.Request, body []byte) bool {
			var r toyRequest
			return json.Unmarshal(body, &r) == nil && r.Stream
		},
		Request: func(t testing.TB, _ *http.Request, body []byte) llm.Request {
			var r toyRequest
			if err := json.Unmarshal(body, &r); err != nil {
				t.Error(err)
			}
			return r.Request
		},
		Reply: func(s llmtest.Script, stream bool) llmtest.Body {
			end := toyReply{Calls: s.Calls, Finish: s.Finish, In: s.Usage.InputTokens, Out: s.Usage.OutputTokens, Cached: s.Cached, Served: s.Served}
			if !stream {
				end.Piece = strings.Join(s.Pieces, "")
				return llmtest.Body{Type: "application/json", Parts: [][]byte{toyJSON(end)}}
			}
			b := llmtest.Body{Type: "text/event-stream"}
			for _, p := range s.Pieces {
				b.Parts = append(b.Parts, event(toyReply{Piece: p}))
			}
			b.Parts = append(b.Parts, event(end), []byte("data: [DONE]\n\n"))
			return b
		},
		Fail: func(f llmtest.Failure) (llmtest.Body, bool) {
			if status[f.Kind] == 0 {
				return llmtest.Body{}, false
			}
			b := llmtest.Body{Status: status[f.Kind], Type: "application/json", Parts: [][]byte{toyJSON(toyReply{Error: &toyError{f.Kind, f.Message}})}}
			if f.RetryAfter > 0 {
				b.Header = http.Header{"Retry-After": {strconv.Itoa(int(f.RetryAfter / time.Second))}}
			}
			return b, true
		},
		FailLate: func(s llmtest.Script, f llmtest.Failure) (llmtest.Body, bool) {
			return llmtest.Body{Type: "text/event-stream", Parts: [][]byte{event(toyReply{Piece: s.Pieces[0]}), event(toyReply{Error: &toyError{f.Kind, f.Message}})}}, true
		},
		Noise: [][]byte{[]byte("event: ping\n\n")},
	}
}

// toyJSON returns the JSON of v. It panics if there is none or it is not UTF-8.
func toyJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil || !utf8.Valid(data) {
		panic(fmt.Sprint(v, err))
	}
	return data
}
