package telemetry

import (
	"context"
	"log/slog"
	"path"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
)

var _ engine.Observer = (*Telemetry)(nil)

// BeginRun implements engine.Observer. The span of the run belongs to the trace of ctx, if it has
// one. That of a run that is resumed, or of a reviewer's decision, links to the span of the run when
// it began.
func (t *Telemetry) BeginRun(ctx context.Context, r engine.ObservedRun) (context.Context, engine.RunObserver) {
	operation := opWorkflow
	if r.Review {
		operation = opReview
	}
	name := t.strategies.of(r.Strategy)
	attrs := []attribute.KeyValue{
		attribute.String(attrOperation, operation), attribute.String(attrWorkflow, name), attribute.String(attrConversation, r.ID),
		attribute.Bool(attrResumed, r.Resumed), attribute.Bool(attrTexts, t.config.Texts),
	}
	if t.config.OpenInference {
		attrs = append(attrs, attribute.String(attrOIKind, "AGENT"), attribute.String(attrOISession, r.ID))
	}
	if t.config.Texts {
		attrs = append(attrs, t.texts(attrQuestion, attrOIInput, r.Question)...)
	}
	options := []trace.SpanStartOption{trace.WithAttributes(attrs...), trace.WithSpanKind(trace.SpanKindInternal)}
	if earlier := parseTrace(r.Trace); earlier.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: earlier}))
	}
	ctx, span := t.tracer.Start(ctx, operation+" "+name, options...)
	if !r.Review {
		t.meters.move(metricActive, 1)
	}
	return ctx, &runSpans{
		t: t, ctx: ctx, run: r, span: span, began: t.config.Now(),
		steps: map[string]stepSpan{}, scopes: map[string]scopeSpan{}, first: map[string]time.Time{},
	}
}

// runSpans are the spans of one run.
type runSpans struct {
	t     *Telemetry
	ctx   context.Context // with span
	run   engine.ObservedRun
	span  trace.Span
	began time.Time

	mu       sync.Mutex
	steps    map[string]stepSpan  // that have started and not ended, by path
	scopes   map[string]scopeSpan // by path
	first    map[string]time.Time // when the first text of a call arrived, by its path
	replayed int                  // steps that were taken from the journal
	live     int                  // steps that were performed
}

// A stepSpan is the span of a step in progress.
type stepSpan struct {
	ctx     context.Context
	span    trace.Span
	started time.Time
}

// A scopeSpan is the span of a scope of the run, such as "sub[1]", which is not a step. It lasts from
// its first step to its last one.
type scopeSpan struct {
	ctx  context.Context
	span trace.Span
	last time.Time
}

// Trace implements engine.RunObserver. It returns the span of the run in the form of traceparent.
func (s *runSpans) Trace() string {
	carrier := propagation.MapCarrier{}
	w3c.Inject(s.ctx, carrier)
	return carrier["traceparent"]
}

// parseTrace is the opposite of Trace.
func parseTrace(text string) trace.SpanContext {
	if text == "" {
		return trace.SpanContext{}
	}
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": text})
	return trace.SpanContextFromContext(ctx)
}

// Step implements engine.RunObserver. A step that is taken from the journal is only counted.
func (s *runSpans) Step(e run.Event) {
	switch {
	case e.Replayed && e.Phase == run.StepEnd:
		s.mu.Lock()
		s.replayed++
		s.mu.Unlock()
	case e.Replayed:
	case e.Phase == run.StepStart:
		s.start(e)
	default:
		s.end(e)
	}
}

func (s *runSpans) start(e run.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent := s.enclosing(e.Path, e.Started)
	name, kind := spanName(e)
	ctx, span := s.t.tracer.Start(parent, name, trace.WithTimestamp(e.Started), trace.WithSpanKind(kind))
	s.steps[e.Path] = stepSpan{ctx, span, e.Started}
}

// enclosing returns the context of the innermost step or scope around a path. It starts the spans of
// scopes that have none yet.
func (s *runSpans) enclosing(at string, started time.Time) context.Context {
	parent := s.ctx
	for i, c := range at {
		if c != '/' {
			continue
		}
		outer := at[:i]
		if step, ok := s.steps[outer]; ok {
			parent = step.ctx
			continue
		}
		name := path.Base(outer)
		if strings.HasPrefix(name, callScope) {
			continue
		}
		scope, ok := s.scopes[outer]
		if !ok {
			scope.ctx, scope.span = s.t.tracer.Start(parent, name, trace.WithTimestamp(started), trace.WithAttributes(s.scopeAttributes(outer)...))
			s.scopes[outer] = scope
		}
		parent = scope.ctx
	}
	return parent
}

// callScope is the beginning of the scopes of a job's model calls. Each holds one step, and gets no
// span.
const callScope = "call["

func (s *runSpans) scopeAttributes(at string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attribute.String(attrOperation, opScope), attribute.String(attrScope, at), attribute.String(attrConversation, s.run.ID),
	}
	if s.t.config.OpenInference {
		attrs = append(attrs, attribute.String(attrOIKind, "CHAIN"))
	}
	return attrs
}

func (s *runSpans) end(e run.Event) {
	ended := e.Started.Add(e.Elapsed)
	s.mu.Lock()
	step, ok := s.steps[e.Path]
	delete(s.steps, e.Path)
	s.live++
	for at, scope := range s.scopes {
		if strings.HasPrefix(e.Path, at+"/") && ended.After(scope.last) {
			scope.last = ended
			s.scopes[at] = scope
		}
	}
	firstText := s.first[e.Path]
	s.mu.Unlock()
	if !ok {
		return
	}
	d := s.t.details(e)
	s.t.measure(e, d, firstText, step.started)
	if !step.span.IsRecording() {
		return
	}
	step.span.SetAttributes(s.stepAttributes(e, d)...)
	s.t.evaluations(step.span, e, d, ended)
	if e.Err != nil {
		s.t.fail(step.span, e.Err)
	}
	step.span.End(trace.WithTimestamp(ended))
}

// fail marks a span as failed. The text of the error may quote documents.
func (t *Telemetry) fail(span trace.Span, err error) {
	span.SetAttributes(attribute.String(attrErrorType, errorType(err)))
	text := ""
	if t.config.Texts {
		text = cut(err.Error(), maxErrorText)
	}
	span.SetStatus(codes.Error, text)
}

// maxErrorText is the most characters of an error that a span has.
const maxErrorText = 300

// Within implements engine.RunObserver.
func (s *runSpans) Within(ctx context.Context, path string) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step, ok := s.steps[path]; ok {
		return trace.ContextWithSpan(ctx, step.span)
	}
	return ctx
}

// FirstText implements engine.RunObserver.
func (s *runSpans) FirstText(path string) {
	now := s.t.config.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first[path] = now
}

// End implements engine.RunObserver.
func (s *runSpans) End(o engine.RunOutcome) {
	s.endOpen()
	attrs := []attribute.KeyValue{attribute.String(attrState, states[o.State])}
	a := o.Answer
	if a.Run != "" {
		attrs = append(attrs,
			attribute.String(attrStatus, string(a.Status)), attribute.String(attrReason, string(a.Reason)), attribute.String(attrStop, string(a.Stop)),
			attribute.String(attrStrategy, s.t.strategies.of(a.Strategy)), attribute.Int(attrIterations, a.Iterations), attribute.Int(attrClaims, len(a.Claims)),
			attribute.Int(attrInterventions, interventionsOf(o).total()), attribute.Float64(attrTopRelevance, o.Observation.TopRelevance),
			attribute.Int64(attrCost, a.Usage.CostMicros), attribute.Int(attrInputTokens, a.Usage.InputTokens), attribute.Int(attrOutputTokens, a.Usage.OutputTokens),
		)
		if s.t.config.Texts {
			attrs = append(attrs, s.t.texts(attrAnswer, attrOIOutput, a.Text)...)
		}
	}
	s.span.SetAttributes(attrs...)
	if s.replayed > 0 {
		s.span.AddEvent(eventReplayed, trace.WithAttributes(attribute.Int(attrCount, s.replayed)))
	}
	switch {
	case o.Err != nil:
		s.t.fail(s.span, o.Err)
	case o.State == assay.RunDone:
		s.span.SetStatus(codes.Ok, "")
	}
	s.span.End()
	if !s.run.Review {
		s.t.meters.move(metricActive, -1)
		s.t.countRun(o)
		s.t.writeEMF(o)
	}
	s.log(o)
}

// endOpen ends the spans of scopes, and of steps that never ended.
func (s *runSpans) endOpen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.steps {
		step.span.End()
	}
	for _, scope := range s.scopes {
		if scope.last.IsZero() {
			scope.span.End()
		} else {
			scope.span.End(trace.WithTimestamp(scope.last))
		}
	}
	clear(s.steps)
	clear(s.scopes)
}

// log writes the record of a run. It has identifiers, words of a fixed set and numbers.
func (s *runSpans) log(o engine.RunOutcome) {
	if s.t.config.Logger == nil {
		return
	}
	message, level := "run", slog.LevelInfo
	if s.run.Review {
		message = "review"
	}
	attrs := []slog.Attr{
		slog.String("run", s.run.ID), slog.String("state", states[o.State]), slog.String("strategy", s.t.strategies.of(s.run.Strategy)),
		slog.Bool("resumed", s.run.Resumed), slog.Int64("duration_ms", s.t.config.Now().Sub(s.began).Milliseconds()),
		slog.Int("steps", s.live), slog.Int("replayed", s.replayed),
	}
	if a := o.Answer; a.Run != "" {
		attrs = append(attrs, slog.String("status", statuses.of(string(a.Status))), slog.String("stop", stops.of(string(a.Stop))),
			slog.Int("input_tokens", a.Usage.InputTokens), slog.Int("output_tokens", a.Usage.OutputTokens), slog.Int64("cost_micros", a.Usage.CostMicros))
	}
	if o.Err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", errorType(o.Err)))
	}
	if sc := s.span.SpanContext(); sc.IsValid() {
		attrs = append(attrs, slog.String("trace", sc.TraceID().String()))
	}
	s.t.config.Logger.LogAttrs(s.ctx, level, message, attrs...)
}

// BeginCall implements engine.Observer. Calls outside of a run, as those of an ingest, are measured
// and have no span.
func (t *Telemetry) BeginCall(ctx context.Context, c engine.ObservedCall) (context.Context, func(error)) {
	operation, kind := opEmbed, "EMBEDDING"
	if c.Kind == engine.CallRerank {
		operation, kind = opRerank, "RERANKER"
	}
	if c.Kind == engine.CallEmbed {
		c.Model = encoderModel(c.Model)
	}
	provider, model := splitModel(c.Model)
	began := t.config.Now()
	span := trace.SpanFromContext(context.Background())
	if trace.SpanContextFromContext(ctx).IsValid() {
		attrs := []attribute.KeyValue{
			attribute.String(attrOperation, operation), attribute.String(attrProvider, provider), attribute.String(attrRequestModel, model),
			attribute.Int(attrCount, c.Texts),
		}
		if t.config.OpenInference {
			attrs = append(attrs, attribute.String(attrOIKind, kind), attribute.String(map[string]string{opEmbed: attrOIEmbed, opRerank: attrOIReranker}[operation], model))
		}
		ctx, span = t.tracer.Start(ctx, operation+" "+model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	}
	return ctx, func(err error) {
		if err != nil {
			t.fail(span, err)
		}
		span.End()
		labels := append(t.callLabels(operation, c.Model), label(attrErrorType, errorLabel(err)))
		t.meters.record(metricCallTime, t.config.Now().Sub(began).Seconds(), labels...)
	}
}
