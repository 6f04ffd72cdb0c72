package telemetry

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// serveOne sends one request with a header to a handler behind a mux.
func serveOne(h http.Handler, _, target string, header [2]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set(header[0], header[1])
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// scrape returns the text of the metrics.
func scrape(t *testing.T, tel *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestMiddleware checks spans and metrics of requests: by route, and without paths and queries. The log
// is that of the server, which has one line for a request.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	c := to.config()
	var logs bytes.Buffer
	var err error
	if c.Logger, err = NewLogger(&logs, "json"); err != nil {
		t.Fatal(err)
	}
	tel, end := newTelemetry(t, c)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
		_, _ = io.WriteString(w, "hello")
	})
	traced := ""
	mux.HandleFunc("POST /fail", func(w http.ResponseWriter, r *http.Request) {
		traced = TraceID(r.Context())
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("GET /named", func(_ http.ResponseWriter, r *http.Request) { SetRoute(r.Context(), "GET /mcp/tools") })
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	h := tel.Middleware(mux)
	for _, target := range []string{"GET /runs/zyxomma?q=zyxomma", "POST /fail", "GET /named", "GET /panic", "GET /zyxomma/unknown", "ZYXOMMA /runs/1"} {
		method, path, _ := strings.Cut(target, " ")
		r := httptest.NewRequest(method, path, strings.NewReader("zyxomma"))
		r.Header.Set("Authorization", "Bearer zyxomma")
		r.Header.Set("User-Agent", "zyxomma")
		func() {
			defer func() {
				if p := recover(); p != nil && !errors.Is(p.(error), http.ErrAbortHandler) {
					panic(p)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
	}
	metrics := scrape(t, tel)
	for _, want := range []string{
		`assay_http_requests_total{code="200",method="GET",route="/runs/{id}"} 1`,
		`assay_http_requests_total{code="503",method="POST",route="/fail"} 1`,
		`assay_http_requests_total{code="200",method="GET",route="/mcp/tools"} 1`,
		`assay_http_requests_total{code="500",method="GET",route="/panic"} 1`,
		`assay_http_requests_total{code="404",method="GET",route="other"} 1`,
		`assay_http_requests_total{code="405",method="other",route="other"} 1`,
		`assay_http_requests_active 0`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	all := metrics + logs.String()
	for _, s := range to.spans {
		all += s.String()
		if s.Kind != tracepb.Span_SPAN_KIND_SERVER {
			t.Errorf("%s is of kind %v", s.Name, s.Kind)
		}
	}
	if strings.Contains(strings.ToLower(all), "zyxomma") {
		t.Errorf("a path, a query, a header or a body was reported:\n%s", all)
	}
	if len(traced) != 32 || logs.Len() > 0 {
		t.Errorf("the trace is %q, the log is %q", traced, logs.String())
	}
}

// TestBounded checks that 10,000 random values make no new series.
func TestBounded(t *testing.T) {
	t.Parallel()
	tel, _ := newTelemetry(t, Config{})
	tel.Know(engine.Config{Models: engine.Models{Small: model{"openai/test-1"}}})
	h := tel.Middleware(http.NotFoundHandler())
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%x", random.Uint64()) }
	once := func() {
		ctx, o := tel.BeginRun(t.Context(), engine.ObservedRun{ID: word(), Strategy: word(), Question: word()})
		kind := assay.StepKind(word())
		if random.IntN(2) == 0 {
			kind = assay.StepModel
		}
		e := run.Event{
			Path: word(), Kind: kind, Model: word() + "/" + word(), Phase: run.StepStart, Started: time.Now(),
			Input: json.RawMessage(`{"role":"` + word() + `","tool":"` + word() + `"}`),
		}
		o.Step(e)
		e.Phase, e.Usage, e.Err = run.StepEnd, assay.Usage{InputTokens: 1, OutputTokens: 1, CostMicros: 1}, errors.New(word())
		o.Step(e)
		_, done := tel.BeginCall(ctx, engine.ObservedCall{Kind: engine.CallKind(word()), Model: word()})
		done(errors.New(word()))
		o.End(engine.RunOutcome{
			State:       assay.RunState(word()),
			Answer:      assay.Answer{Run: word(), Status: assay.Status(word()), Stop: assay.Stop(word()), Reason: assay.Reason(word())},
			Observation: engine.Observation{Strategy: word(), Graded: true, Searched: true, Iterations: 1, Claims: 2},
		})
		r := httptest.NewRequest(http.MethodGet, "/"+word()+"?"+word(), nil)
		r.Method = word()
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	for range 20 {
		once()
	}
	before := strings.Count(scrape(t, tel), "\n")
	for range 10_000 {
		once()
	}
	after := scrape(t, tel)
	if n := strings.Count(after, "\n"); n != before {
		t.Errorf("%d series and comments, %d before", n, before)
	}
	for line := range strings.SplitSeq(after, "\n") {
		if strings.HasPrefix(line, "assay_runs_total") && !strings.Contains(line, `strategy="other"`) {
			t.Errorf("a strategy is told apart: %s", line)
		}
	}
}

func TestModelNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"openai/gpt-4.1":                     {"openai", "gpt-4.1"},
		"openai/text-embedding-3-small/1536": {"openai", "text-embedding-3-small"},
		"gte-small/384":                      {"local", "gte-small"},
		"gte-small":                          {"local", "gte-small"},
		"bedrock/eu.anthropic.x/y":           {"aws.bedrock", "eu.anthropic.x/y"},
		"gemini/g":                           {"gcp.gemini", "g"},
		"":                                   {"local", ""},
	} {
		if provider, model := splitModel(encoderModel(name)); provider != want[0] || model != want[1] {
			t.Errorf("%q: %s, %s; want %v", name, provider, model, want)
		}
	}
}

func TestXRay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header, want string
		sampled      bool
	}{
		{"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1", "5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8", true},
		{" Sampled=0; Parent=53995c3f42cd8ad8 ;Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:1", "5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8", false},
		{"Root=1-5759e988-bd862e3fe1be46a994272793", "", false},
		{"Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8", "", false},
		{"Root=1-5759e988bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8", "", false},
		{"Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8", "", false},
		{"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=0000000000000000", "", false},
		{"Root=1-5759E988-BD862E3FE1BE46A994272793;Parent=53995c3f42cd8ad8", "", false},
		{strings.Repeat("a", 600), "", false},
		{"", "", false},
	} {
		sc, ok := parseXRay(c.header)
		got := ""
		if ok {
			got = sc.TraceID().String() + "-" + sc.SpanID().String()
		}
		if got != c.want || sc.IsSampled() != c.sampled && ok {
			t.Errorf("parseXRay(%q) = %q, sampled %t; want %q, %t", c.header, got, sc.IsSampled(), c.want, c.sampled)
		}
	}
}

func FuzzXRay(f *testing.F) {
	f.Add("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
	f.Add("Root=1--;Parent=;Sampled")
	f.Fuzz(func(t *testing.T, header string) {
		sc, ok := parseXRay(header)
		if !ok {
			return
		}
		again, ok := parseXRay(formatXRay(sc))
		if !ok || again.TraceID() != sc.TraceID() || again.SpanID() != sc.SpanID() || again.IsSampled() != sc.IsSampled() {
			t.Errorf("%q: %v, and again %v", header, sc, again)
		}
	})
}

func FuzzExtract(f *testing.F) {
	f.Add("00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01", "a=b", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8")
	f.Fuzz(func(t *testing.T, parent, state, xray string) {
		h := http.Header{"Traceparent": {parent}, "Tracestate": {state}, headerXRay: {xray}}
		sc := trace.SpanContextFromContext(extract(t.Context(), h))
		if sc.IsValid() && !sc.IsRemote() {
			t.Errorf("the trace of a header is not remote: %v", sc)
		}
	})
}
