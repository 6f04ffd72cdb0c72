package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// TestReceivers checks that runs succeed and end while the receiver is unreachable, never answers or
// answers with anything, and that the failure is reported, on one line and cut.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"unreachable": nil,
		"silent": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the end of the request is noticed only then
			<-r.Context().Done()
		},
		"error": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("no\nroom\x1b[31m ", 10_000), http.StatusBadRequest)
		},
		"busy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"nonsense": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte{0xff, 0xff, 0xff})
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := "http://127.0.0.1:1" // a port that no other test is given
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			if h != nil {
				s := httptest.NewUnstartedServer(h)
				s.Start()
				t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
				address = s.URL
			}
			tel, _ := newTelemetry(t, Config{Traces: address + "/v1/traces", Metrics: address + "/v1/metrics", Client: client, Headers: map[string]string{"Authorization": "Bearer hidden"}})
			e := open(t, tel, withModel)
			a, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: question, Strategy: "corrective"})
			if err != nil || a.Status == "" {
				t.Fatalf("the run: %v, %v", a.Status, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err = tel.Close(ctx)
			if !errors.Is(err, assay.ErrUnavailable) {
				t.Fatalf("Close: %v, want ErrUnavailable", err)
			}
			if text := err.Error(); len(text) > 500 || strings.ContainsAny(text, "\n\x1b") || strings.Contains(text, "hidden") {
				t.Errorf("Close: %q", text)
			}
		})
	}
}

// panicking is an observer that panics in one of its methods.
type panicking struct {
	engine.Observer
	at string
}

func (p panicking) BeginRun(ctx context.Context, r engine.ObservedRun) (context.Context, engine.RunObserver) {
	if p.at == "BeginRun" {
		panic(p.at)
	}
	ctx, run := p.Observer.BeginRun(ctx, r)
	return ctx, panickingRun{run, p.at}
}

type panickingRun struct {
	engine.RunObserver
	at string
}

func (p panickingRun) Trace() string {
	if p.at == "Trace" {
		panic(p.at)
	}
	return p.RunObserver.Trace()
}

func (p panickingRun) Within(ctx context.Context, path string) context.Context {
	if p.at == "Within" {
		panic(p.at)
	}
	return p.RunObserver.Within(ctx, path)
}

func (p panickingRun) End(o engine.RunOutcome) {
	if p.at == "End" {
		panic(p.at)
	}
	p.RunObserver.End(o)
}

// TestPanics checks that the panic of an observer changes nothing of a run.
func TestPanics(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"BeginRun", "Trace", "Within", "End"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			tel, _ := newTelemetry(t, Config{})
			e := open(t, panicking{tel, at}, nil)
			a, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: "Who approves travel to a customer?"})
			if err != nil || a.Status != assay.Answered {
				t.Fatalf("the run: %v, %v", a.Status, err)
			}
		})
	}
}
