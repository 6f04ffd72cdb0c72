package telemetry

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
)

// discard is a receiver in this process.
var discard = roundTrip(func(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, err
})

// BenchmarkRun measures a question without an observer, with metrics alone, and with traces to a
// receiver in this process.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name   string
		config *Config
	}{
		{"off", nil},
		{"metrics", &Config{}},
		{"traces", &Config{Traces: "http://c.test/v1/traces", Client: &http.Client{Transport: discard}}},
		{"texts", &Config{Traces: "http://c.test/v1/traces", Client: &http.Client{Transport: discard}, Texts: true, OpenInference: true}},
	} {
		for _, strategy := range []string{"static", "corrective"} {
			b.Run(strategy+"/"+c.name, func(b *testing.B) {
				var observer engine.Observer
				if c.config != nil {
					tel, _ := newTelemetry(b, *c.config)
					observer = tel
				}
				e := open(b, observer, nil)
				req := engine.Request{Question: question, Strategy: strategy}
				if _, err := e.Answer(b.Context(), assay.Local(), req); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.Answer(b.Context(), assay.Local(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// A recorder keeps the events of a run.
type recorder struct{ events []run.Event }

func (r *recorder) BeginRun(ctx context.Context, _ engine.ObservedRun) (context.Context, engine.RunObserver) {
	return ctx, r
}

func (r *recorder) BeginCall(ctx context.Context, _ engine.ObservedCall) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (r *recorder) Trace() string                                        { return "" }
func (r *recorder) Step(e run.Event)                                     { r.events = append(r.events, e) }
func (r *recorder) Within(ctx context.Context, _ string) context.Context { return ctx }
func (r *recorder) FirstText(string)                                     {}
func (r *recorder) End(engine.RunOutcome)                                {}

// BenchmarkObserver measures the telemetry of one run alone, on the events of a real one.
func BenchmarkObserver(b *testing.B) {
	events := &recorder{}
	e := open(b, events, nil)
	answer, err := e.Answer(b.Context(), assay.Local(), engine.Request{Question: question, Strategy: "corrective"})
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]Config{
		"metrics": {},
		"traces":  {Traces: "http://c.test/v1/traces", Client: &http.Client{Transport: discard}},
		"texts":   {Traces: "http://c.test/v1/traces", Client: &http.Client{Transport: discard}, Texts: true, OpenInference: true},
	} {
		b.Run(name, func(b *testing.B) {
			tel, _ := newTelemetry(b, c)
			b.ReportAllocs()
			for b.Loop() {
				ctx, o := tel.BeginRun(b.Context(), engine.ObservedRun{ID: "run", Strategy: "corrective", Question: question})
				for _, ev := range events.events {
					o.Step(ev)
					if ev.Phase == run.StepStart {
						o.Within(ctx, ev.Path)
					}
				}
				o.End(engine.RunOutcome{State: assay.RunDone, Answer: answer})
			}
			b.ReportMetric(float64(len(events.events)/2), "steps/op")
		})
	}
}
