package llmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay/llm"
)

// A reading is a service that answers a request with a single document. Embedders, rerankers and
// web searches share its tests.
type reading struct {
	// open returns the service's name and a call that makes one request and returns the number of
	// results.
	open  func(t testing.TB, s Setup) (string, func(context.Context) (int, error))
	reply answerer
	fail  func(f Failure) (Body, bool)
	lacks []Feature
}

func (r reading) test(t *testing.T) {
	t.Run("failures", r.testFailures)
	t.Run("secrets", r.testSecrets)
	t.Run("ends", r.testEnds)
	t.Run("hostile", r.testHostile)
}

// ask makes a call and checks the invariants of every outcome.
func (r reading) ask(ctx context.Context, t testing.TB, answer answerer, setup Setup) (int, error) {
	t.Helper()
	h := serve(t, answer)
	defer h.close()
	setup.BaseURL, setup.HTTP = h.url, h.client
	model, call := r.open(t, setup)
	n, err := call(ctx)
	if err != nil {
		checkKept(ctx, t, model, err)
		if n > 0 {
			t.Errorf("%d results and an error: %v", n, err)
		}
	}
	h.checkOnce(t)
	requests, _ := h.seen()
	for _, req := range requests {
		if strings.Contains(req.RequestURI, Canary) {
			t.Errorf("the credential is in the address: %s", req.RequestURI)
		}
	}
	return n, err
}

// quick opens the service against a canned transport and returns a function that makes one call and
// checks the invariants of every outcome.
func (r reading) quick(t *testing.T) (*canned, func(func(*http.Request, []byte) Body) (int, error)) {
	c := new(canned)
	ctx := bounded(t)
	model, call := r.open(t, c.at(t))
	return c, func(reply func(*http.Request, []byte) Body) (int, error) {
		t.Helper()
		c.reply = reply
		n, err := call(ctx)
		if err != nil {
			checkKept(ctx, t, model, err)
			if n > 0 {
				t.Errorf("%d results and an error: %v", n, err)
			}
		}
		c.checkCall(t)
		return n, err
	}
}

func (r reading) testFailures(t *testing.T) {
	for _, kind := range kinds {
		for _, wait := range []time.Duration{0, 7 * time.Second} {
			body, has := r.fail(Failure{Kind: kind, Message: "the server's own words", RetryAfter: wait})
			if !has || wait > 0 && (slices.Contains(r.lacks, RetryAfter) || !kind.Temporary()) {
				continue
			}
			t.Run(fmt.Sprint(kind, wait), func(t *testing.T) {
				_, err := r.ask(bounded(t), t, always(fixed(body)), Setup{})
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Kind != kind || e.RetryAfter != wait || body.Status != 0 && e.Status != body.Status || !strings.Contains(e.Message, "the server's own words") {
					t.Errorf("%v with %+v, want the kind %q, the status %d, the wait %v and the server's words", err, e, kind, body.Status, wait)
				}
			})
		}
	}
	t.Run("hangs up", func(t *testing.T) {
		_, err := r.ask(bounded(t), t, func(http.ResponseWriter, *http.Request, []byte) { panic(http.ErrAbortHandler) }, Setup{})
		if !kindOf(err).Temporary() {
			t.Errorf("%v, want an error that is temporary", err)
		}
	})
	t.Run("redirect", func(t *testing.T) {
		var followed atomic.Bool
		elsewhere := serve(t, func(http.ResponseWriter, *http.Request, []byte) { followed.Store(true) })
		_, err := r.ask(bounded(t), t, func(w http.ResponseWriter, req *http.Request, _ []byte) {
			http.Redirect(w, req, elsewhere.url+req.URL.Path, http.StatusTemporaryRedirect)
		}, Setup{})
		if kindOf(err) == "" || followed.Load() {
			t.Errorf("%v, followed: %v; want an *llm.Error and nothing sent", err, followed.Load())
		}
	})
}

func (r reading) testSecrets(t *testing.T) {
	_, ask := r.quick(t)
	for _, kind := range kinds {
		_, err := ask(func(req *http.Request, _ []byte) Body {
			body, _ := r.fail(Failure{Kind: kind, Message: echo(req)})
			return body
		})
		if err == nil {
			t.Errorf("%s: no error", kind)
		}
	}
	for _, status := range []int{200, 401, 500} {
		for _, form := range errorForms {
			_, err := ask(func(req *http.Request, _ []byte) Body {
				return Body{Status: status, Type: "application/json", Parts: [][]byte{fmt.Appendf(nil, form, echo(req))}}
			})
			if err == nil {
				t.Errorf("%d %s: no error", status, form)
			}
		}
	}
	model, call := r.open(t, Setup{BaseURL: "http://127.0.0.1:1", HTTP: &http.Client{Transport: teller{}}})
	if _, err := call(bounded(t)); err == nil {
		t.Error("no error of a transport that fails")
	} else {
		checkKept(bounded(t), t, model, err)
	}
}

func (r reading) testEnds(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(bounded(t))
		_, err := r.ask(ctx, t, func(_ http.ResponseWriter, req *http.Request, _ []byte) {
			cancel()
			<-req.Context().Done()
		}, Setup{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(bounded(t), shortIdle)
		defer cancel()
		if _, err := r.ask(ctx, t, silent, Setup{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want context.DeadlineExceeded", err)
		}
	})
	t.Run("silence", func(t *testing.T) {
		if _, err := r.ask(bounded(t), t, silent, Setup{Idle: shortIdle}); kindOf(err) != llm.TimedOut {
			t.Errorf("%v, want an error of the kind %q", err, llm.TimedOut)
		}
	})
	t.Run("too large", func(t *testing.T) {
		_, err := r.ask(bounded(t), t, func(w http.ResponseWriter, req *http.Request, _ []byte) {
			for noise := []byte(strings.Repeat(" ", 1<<12)); send(w, noise); {
			}
		}, Setup{MaxBytes: 1 << 16})
		if kindOf(err) != llm.TooLarge {
			t.Errorf("%v, want an error of the kind %q", err, llm.TooLarge)
		}
	})
}

func (r reading) testHostile(t *testing.T) {
	_, ask := r.quick(t)
	for _, text := range []string{"", "null", "[]", "{}", "7", `"text"`, "no JSON", "<html></html>", "\x00\xff", strings.Repeat(`{"data":[`, 20_000), `{"data":null}`, `{"data":[null]}`, `{"data":[{}]}`, `{"results":null}`, `{"results":[null]}`, `{"results":[{}]}`, `{"embeddings":[null]}`, `{"embeddings":{"float":[[]]}}`} {
		n, err := ask(fixed(Body{Type: "application/json", Parts: [][]byte{[]byte(text)}}))
		if kindOf(err) == "" {
			t.Errorf("%.60q: %d results, %v; want an *llm.Error", text, n, err)
		}
	}
	recorded := httptest.NewRecorder()
	_, err := r.ask(bounded(t), t, func(w http.ResponseWriter, req *http.Request, body []byte) {
		r.reply(recorded, req, body)
		w.Header().Set("Content-Type", recorded.Header().Get("Content-Type"))
		send(w, recorded.Body.Bytes())
	}, Setup{})
	if err != nil {
		t.Fatal(err)
	}
	whole := Body{Type: recorded.Header().Get("Content-Type"), Parts: [][]byte{recorded.Body.Bytes()}}
	t.Run("cut", func(t *testing.T) { r.testCut(t, whole) })
	t.Run("mutated", func(t *testing.T) {
		_, ask := r.quick(t)
		for _, mutant := range mutants(whole.Bytes()) {
			if n, err := ask(fixed(whole.with(mutant))); err == nil && n == 0 || t.Failed() {
				t.Fatalf("%.300q: %d results, %v", mutant, n, err)
			}
		}
	})
}

// testCut cuts a short reply off at every byte, and a long one at many. A real server makes some of
// the cuts.
func (r reading) testCut(t *testing.T, whole Body) {
	all := whole.Bytes()
	check := func(at int, breaks bool, err error) {
		t.Helper()
		switch kind := kindOf(err); {
		case kind == llm.BrokeOff, kind == llm.Unreachable && at == 0, kind == llm.BadReply && !breaks:
		case err == nil && len(strings.TrimSpace(string(all[at:]))) == 0:
		default:
			t.Fatalf("cut after %d of %d bytes (broken: %v): %v", at, len(all), breaks, err)
		}
	}
	c, ask := r.quick(t)
	for breaks, end := range map[bool]error{true: io.ErrUnexpectedEOF, false: nil} {
		c.err = end
		for at := 0; at < len(all); at += sample(6) * (1 + len(all)/1000) {
			_, err := ask(fixed(whole.with(all[:at])))
			check(at, breaks, err)
		}
		for at := 0; at < len(all); at += 1 + len(all)/5 {
			_, err := r.ask(bounded(t), t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				whole.begin(w)
				send(w, all[:at])
				if breaks {
					panic(http.ErrAbortHandler)
				}
			}, Setup{})
			check(at, breaks, err)
		}
	}
}
