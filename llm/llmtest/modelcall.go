package llmtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay/llm"
)

// maxMessage is the largest length of an error's message, in bytes.
const maxMessage = 1000

// A suite is a Wire with one of the two ways to request replies.
type suite struct {
	Wire
	stream bool
}

func (s suite) lacks(f Feature) bool { return slices.Contains(s.Lacks, f) }

// An outcome is the result of a call.
type outcome struct {
	response llm.Response
	err      error
	told     []string // passed to the stream, piece by piece
}

// kind returns the kind of the error, or "".
func (o outcome) kind() llm.ErrorKind { return kindOf(o.err) }

func kindOf(err error) llm.ErrorKind {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Kind
	}
	return ""
}

func (o outcome) String() string {
	if o.err != nil {
		return fmt.Sprintf("error %q", o.err)
	}
	return fmt.Sprintf("%d bytes of text (%.60q), %d calls, finish %q, %+v", len(o.response.Text), o.response.Text, len(o.response.Calls), o.response.Finish, o.response.Usage)
}

// open opens the model against a host.
func (s suite) open(t testing.TB, h *host, setup Setup) llm.Model {
	setup.BaseURL, setup.HTTP, setup.Stream = h.url, h.client, s.stream
	return s.Open(t, setup)
}

// ask calls a model and checks the invariants of every outcome.
func ask(ctx context.Context, t testing.TB, m llm.Model, req llm.Request) outcome {
	t.Helper()
	var o outcome
	o.response, o.err = m.Generate(ctx, req, func(d llm.Delta) { o.told = append(o.told, d.Text) })
	checkOutcome(ctx, t, m, o)
	return o
}

// exchange opens a model and makes one call.
func (s suite) exchange(t testing.TB, answer answerer, req llm.Request) outcome {
	t.Helper()
	h := serve(t, answer)
	defer h.close()
	o := ask(bounded(t), t, s.open(t, h, Setup{}), req)
	h.checkOnce(t)
	return o
}

// quick opens a model against a canned transport and returns a function that makes one call.
func (s suite) quick(t *testing.T) func(testing.TB, func(*http.Request, []byte) Body, llm.Request) outcome {
	c := new(canned)
	setup, ctx := c.at(t), bounded(t)
	setup.Stream = s.stream
	m := s.Open(t, setup)
	return func(t testing.TB, reply func(*http.Request, []byte) Body, req llm.Request) outcome {
		t.Helper()
		c.reply = reply
		o := ask(ctx, t, m, req)
		c.checkCall(t)
		return o
	}
}

// checkOnce checks that the provider did not retry. Retries are up to its wrappers.
func (h *host) checkOnce(t testing.TB) {
	t.Helper()
	if requests, _ := h.seen(); len(requests) > 1 {
		t.Errorf("%d requests for one call", len(requests))
	}
}

// reply returns an answerer that sends a script in the way the request asks for.
func (s suite) reply(script Script) answerer {
	return always(func(r *http.Request, body []byte) Body { return s.Reply(script, s.Streams(r, body)) })
}

// question returns the smallest request.
func question() llm.Request {
	return llm.Request{Messages: []llm.Message{{Speaker: llm.User, Text: "What is said of leave?"}}, MaxTokens: 64, Attempts: 1}
}

// checkOutcome checks the invariants of every call, for any reply of a server.
func checkOutcome(ctx context.Context, t testing.TB, m llm.Model, o outcome) {
	t.Helper()
	if o.err != nil {
		checkError(ctx, t, m, o)
		return
	}
	CheckResponse(t, o.response, strings.Join(o.told, ""))
}

// CheckResponse checks the invariants of every response of a provider, for any reply of its server.
// told is the text that its stream received.
func CheckResponse(t testing.TB, r llm.Response, told string) {
	t.Helper()
	if !utf8.ValidString(r.Text) {
		t.Errorf("the text is not UTF-8: %.80q", r.Text)
	}
	if told != r.Text {
		t.Errorf("the stream was told %.80q (%d bytes), the response has %.80q (%d bytes)", told, len(told), r.Text, len(r.Text))
	}
	ids := map[string]bool{}
	for i, c := range r.Calls {
		if c.ID == "" || ids[c.ID] {
			t.Errorf("call %d has the id %q, of %v", i, c.ID, r.Calls)
		}
		if ids[c.ID] = true; !utf8.ValidString(c.ID + c.Name + c.Arguments + c.Opaque) {
			t.Errorf("call %d is not UTF-8: %q", i, c)
		}
	}
	switch r.Finish {
	case llm.FinishStop, llm.FinishLength, llm.FinishTools, llm.FinishRefused, llm.FinishOther:
	default:
		t.Errorf("finish is %q", r.Finish)
	}
	if u := r.Usage; u.Calls != 1 || u.InputTokens < 0 || u.OutputTokens < 0 || u.CostMicros < 0 || u.Searches != 0 || r.Cached < 0 || r.Cached > u.InputTokens {
		t.Errorf("usage %+v with %d cached", u, r.Cached)
	}
	if len(r.Attempts) > 0 {
		t.Errorf("a provider makes one attempt, it tells of %v", r.Attempts)
	}
}

// checkError checks the invariants of every error.
func checkError(ctx context.Context, t testing.TB, m llm.Model, o outcome) {
	t.Helper()
	if r := o.response; r.Text != "" || r.Calls != nil || r.Finish != "" {
		t.Errorf("there is an error, %v, and a response, %+v", o.err, r)
	}
	checkKept(ctx, t, m.Model(), o.err)
}

// checkKept checks the invariants of every error of a call to a model, an embedder or a reranker.
func checkKept(ctx context.Context, t testing.TB, model string, err error) {
	t.Helper()
	checkSecret(t, err)
	failed, isError := errors.AsType[*llm.Error](err)
	switch {
	case ctx.Err() != nil:
		if !errors.Is(err, ctx.Err()) {
			t.Errorf("the context has ended (%v), the error is %v", ctx.Err(), err)
		}
		return
	case !isError:
		t.Errorf("the error is a %T, want an *llm.Error: %v", err, err)
		return
	case failed.Model != model:
		t.Errorf("the error is of the model %q, want %q", failed.Model, model)
	case len(failed.Message) > maxMessage || strings.ContainsAny(failed.Message, "\r\n\x00") || !utf8.ValidString(failed.Message):
		t.Errorf("the message has %d bytes, or more than a line, or no UTF-8: %.200q", len(failed.Message), failed.Message)
	case failed.RetryAfter < 0:
		t.Errorf("wait %v", failed.RetryAfter)
	case failed.Usage.Calls != 1 || failed.Usage.InputTokens < 0 || failed.Usage.OutputTokens < 0:
		t.Errorf("usage %+v, want that of one call", failed.Usage)
	case len(failed.Attempts) > 0:
		t.Errorf("a provider makes one attempt, it tells of %v", failed.Attempts)
	}
	if !slices.Contains(kinds, failed.Kind) {
		t.Errorf("kind %q", failed.Kind)
	}
}

// kinds lists the kinds of llm.Error.
var kinds = []llm.ErrorKind{
	llm.RateLimited, llm.Overloaded, llm.ServerError, llm.Unreachable, llm.TimedOut, llm.BrokeOff, llm.Open, llm.BadKey, llm.NoModel,
	llm.BadRequest, llm.TooLong, llm.NoQuota, llm.Filtered, llm.TooLarge, llm.BadReply,
}

// checkSecret checks that an error does not reveal the credential in any of its printed forms.
func checkSecret(t testing.TB, err error) {
	t.Helper()
	texts := []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)}
	for e := err; e != nil; e = errors.Unwrap(e) {
		data, _ := json.Marshal(e) // an error that is no JSON reveals nothing
		texts = append(texts, string(data), fmt.Sprintf("%#v", e))
	}
	for _, secret := range []string{Canary, url.QueryEscape(Canary), base64.StdEncoding.EncodeToString([]byte(Canary))} {
		for _, text := range texts {
			if strings.Contains(text, secret) {
				t.Errorf("an error gives the credential away: %.300q", text)
			}
		}
	}
}
