package telemetry

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// stopping interrupts a run at a search.
type stopping struct {
	assay.Retriever
	searches *atomic.Int64
	at       int64
	stop     func()
}

func (s stopping) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	if s.searches.Add(1) == s.at {
		s.stop()
		return assay.Results{}, ctx.Err()
	}
	return s.Retriever.Retrieve(ctx, access, q)
}

// TestResume checks that the continuation of a run links to the trace of the run, and that a step
// that is taken from the journal has one span in both together.
func TestResume(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	tel, end := newTelemetry(t, to.config())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var searches atomic.Int64
	e := open(t, tel, func(c *engine.Config) {
		withModel(c)
		c.Retriever = func(r assay.Retriever) assay.Retriever { return stopping{r, &searches, 2, cancel} }
	})
	_, err := e.Answer(ctx, assay.Local(), engine.Request{Question: question, Strategy: "corrective"})
	stopped, ok := errors.AsType[*engine.RunError](err)
	if !ok || !stopped.Resumable {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	var answer assay.Answer
	for ev, err := range e.Resume(t.Context(), assay.Local(), stopped.Run) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == engine.RunEnded {
			answer = *ev.Answer
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	var roots []*tracepb.Span
	byPath := map[string]int{}
	for _, s := range to.spans {
		if at := text(s, attrStepPath); at != "" && s.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
			byPath[at]++
		}
		if len(s.ParentSpanId) == 0 {
			roots = append(roots, s)
		}
	}
	if len(roots) != 2 {
		t.Fatalf("%d spans of runs, want 2", len(roots))
	}
	first, second := roots[0], roots[1]
	if text(first, attrState) != "interrupted" || text(second, attrState) != "done" || !attributesOf(second)[attrResumed].GetBoolValue() {
		t.Errorf("states %q, %q; resumed %v", text(first, attrState), text(second, attrState), attributesOf(second)[attrResumed])
	}
	if len(second.Links) != 1 || !bytes.Equal(second.Links[0].TraceId, first.TraceId) || !bytes.Equal(second.Links[0].SpanId, first.SpanId) {
		t.Errorf("the continuation links to %v, want the run", second.Links)
	}
	if len(first.Links) != 0 || bytes.Equal(first.TraceId, second.TraceId) {
		t.Error("the run that begins has a link, or both are of one trace")
	}
	if len(second.Events) != 1 || second.Events[0].Name != eventReplayed {
		t.Errorf("events of the continuation: %v, want %s", second.Events, eventReplayed)
	}
	_, steps, err := e.Run(t.Context(), assay.Local(), answer.Run)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if n := byPath[step.Path]; n != 1 && step.Error == nil {
			t.Errorf("the step %s has %d spans that succeeded, want 1", step.Path, n)
		}
	}
}

// TestReview checks that a reviewer's decision is a span that links to the run.
func TestReview(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	tel, end := newTelemetry(t, to.config())
	e := open(t, tel, nil)
	a, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: "Who approves travel to a customer?", Review: engine.ReviewAlways})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.PendingReview {
		t.Fatalf("status %s", a.Status)
	}
	reviewer := assay.Principal{User: "rita", Roles: []string{"admin"}}
	if _, err := e.Claim(t.Context(), reviewer, a.Run, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Review(t.Context(), reviewer, a.Run); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Reject(t.Context(), reviewer, a.Run, "no"); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	var run, review, decided *tracepb.Span
	for _, s := range to.spans {
		switch text(s, attrOperation) {
		case opWorkflow:
			run = s
		case opReview:
			review = s
		case opHuman:
			decided = s
		}
	}
	if run == nil || review == nil || decided == nil {
		t.Fatalf("spans: run %v, review %v, decision %v", run != nil, review != nil, decided != nil)
	}
	if text(run, attrState) != "suspended" {
		t.Errorf("the run is %s", text(run, attrState))
	}
	if len(review.Links) != 1 || !bytes.Equal(review.Links[0].SpanId, run.SpanId) {
		t.Errorf("the review links to %v", review.Links)
	}
	if !bytes.Equal(decided.TraceId, review.TraceId) {
		t.Error("the decision is of another trace than the review")
	}
}

// TestCaller checks that a run belongs to the trace of its caller, whichever header carries it, and
// that requests to a provider carry the span of the call.
func TestCaller(t *testing.T) {
	t.Parallel()
	for name, header := range map[string][2]string{
		"w3c":  {"traceparent", "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"},
		"xray": {headerXRay, "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := newCollector(t)
			tel, end := newTelemetry(t, to.config())
			var sent http.Header
			client := http.Client{Transport: tel.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
				sent = r.Header
				return nil, errors.New("no network")
			}))}
			e := open(t, tel, func(c *engine.Config) {
				c.Retriever = func(r assay.Retriever) assay.Retriever { return calling{r, &client} }
			})
			var server *tracepb.Span
			h := tel.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ctx := context.WithoutCancel(r.Context())
				if _, err := e.Answer(ctx, assay.Local(), engine.Request{Question: question, Strategy: "static"}); err != nil {
					t.Error(err)
				}
			}))
			serveOne(h, "GET /ask", "/ask?q=secret", header)
			if err := end(); err != nil {
				t.Fatal(err)
			}
			spans := map[string]*tracepb.Span{}
			for _, s := range to.spans {
				spans[text(s, attrOperation)] = s
				if s.Kind == tracepb.Span_SPAN_KIND_SERVER {
					server = s
				}
			}
			const traceID, parent = "5759e988bd862e3fe1be46a994272793", "53995c3f42cd8ad8"
			if server == nil || hexOf(server.TraceId) != traceID || hexOf(server.ParentSpanId) != parent {
				t.Fatalf("the span of the request is %v", server)
			}
			if run := spans[opWorkflow]; !bytes.Equal(run.ParentSpanId, server.SpanId) || !bytes.Equal(run.TraceId, server.TraceId) {
				t.Errorf("the run is not within the request")
			}
			search := hexOf(spans[opRetrieval].SpanId)
			if got := sent.Get("traceparent"); got != "00-"+traceID+"-"+search+"-01" {
				t.Errorf("traceparent of the request to a provider = %q, want the span of the search, %s", got, search)
			}
			if got := sent.Get(headerXRay); got != "Root=1-5759e988-bd862e3fe1be46a994272793;Parent="+search+";Sampled=1" {
				t.Errorf("%s = %q", headerXRay, got)
			}
		})
	}
}

// calling makes a request to a provider before each search.
type calling struct {
	assay.Retriever
	client *http.Client
}

func (c calling) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.test/", nil)
	if err != nil {
		return assay.Results{}, err
	}
	res, err := c.client.Do(req)
	if err == nil {
		res.Body.Close()
	}
	return c.Retriever.Retrieve(ctx, access, q)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
