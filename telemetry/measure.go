package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/run"
)

// callLabels returns the labels of a call to a model.
func (t *Telemetry) callLabels(operation, name string) []attribute.KeyValue {
	provider, model := other, other
	if t.models.of(name) == name {
		provider, model = splitModel(name)
	}
	return []attribute.KeyValue{label(attrOperation, operation), label(attrProvider, provider), label(attrRequestModel, model)}
}

// measure records a step that was performed.
func (t *Telemetry) measure(e run.Event, d details, firstText, started time.Time) {
	kind, outcome := kinds.of(string(e.Kind)), "ok"
	if e.Err != nil {
		outcome = "error"
	}
	t.meters.add(metricSteps, 1, label(labelKind, kind), label(labelOutcome, outcome))
	t.meters.record(metricStepTime, e.Elapsed.Seconds(), label(labelKind, kind))
	if e.Usage.CostMicros > 0 {
		t.meters.add(metricCost, float64(e.Usage.CostMicros)/1e6, label(labelKind, kind))
	}
	if e.Kind != assay.StepModel {
		return
	}
	labels := t.callLabels(opChat, e.Model)
	t.meters.record(metricCallTime, e.Elapsed.Seconds(), append(labels, label(attrErrorType, errorLabel(e.Err)))...)
	if !firstText.IsZero() {
		t.meters.record(metricFirstChunk, max(0, firstText.Sub(started).Seconds()), labels...)
	}
	for _, tokens := range []struct {
		kind string
		n    int
	}{{"input", e.Usage.InputTokens}, {"output", e.Usage.OutputTokens}} {
		if tokens.n == 0 {
			continue
		}
		t.meters.record(metricTokens, float64(tokens.n), append(labels, label(attrTokenType, tokens.kind))...)
		t.meters.add(metricRoleTokens, float64(tokens.n), label(labelRole, roles.of(d.call.Role)), label(labelType, tokens.kind))
	}
}

// interventions counts what the verifier changed of an answer, as the governance report does.
type interventions struct{ dropped, repaired, refused int }

func (i interventions) total() int { return i.dropped + i.repaired + i.refused }

// refusedReasons are the reasons of answers whose whole draft was refused.
var refusedReasons = map[assay.Reason]bool{
	assay.ReasonUnsupported: true, assay.ReasonUnverified: true, assay.ReasonNotAccepted: true, assay.ReasonOffTopic: true,
}

func interventionsOf(o engine.RunOutcome) interventions {
	i := interventions{dropped: o.Observation.Rejected}
	for _, c := range o.Answer.Claims {
		if c.Repaired {
			i.repaired++
		}
	}
	if refusedReasons[o.Answer.Reason] {
		i.refused = 1
	}
	return i
}

// countRun records a run, or a continuation of it, that has ended. Measurements are those of the
// whole run, so they are recorded once, when it has its answer.
func (t *Telemetry) countRun(o engine.RunOutcome) {
	a, seen := o.Answer, o.Observation
	name := t.strategies.of(seen.Strategy)
	t.meters.add(metricRuns, 1, label(labelStrategy, name), label(labelStatus, statuses.of(string(a.Status))),
		label(labelStop, stops.of(string(a.Stop))), label(labelState, states[o.State]))
	ended := o.State == assay.RunDone || o.State == assay.RunSuspended
	if !ended || seen.Measuring {
		return
	}
	strategy := label(labelStrategy, name)
	t.meters.record(metricRunTime, seen.Latency.Seconds(), strategy, label(labelStatus, statuses.of(string(a.Status))))
	if seen.Cached {
		return
	}
	if seen.Graded {
		first := "false"
		if seen.FirstTry {
			first = "true"
		}
		t.meters.add(metricGraded, 1, strategy, label(labelFirst, first))
	}
	if seen.CapHit() {
		t.meters.add(metricCapped, 1, strategy)
	} else {
		t.meters.add(metricCapped, 0, strategy) // so that the series exists before it rises
	}
	if seen.Iterations > 0 {
		t.meters.record(metricIterations, float64(seen.Iterations), strategy)
	}
	if seen.Searched {
		t.meters.record(metricRelevance, seen.TopRelevance, strategy)
	}
	t.meters.add(metricClaims, float64(seen.Claims-seen.Rejected), strategy, label(labelOutcome, "supported"))
	t.meters.add(metricClaims, float64(seen.Rejected), strategy, label(labelOutcome, "rejected"))
	i := interventionsOf(o)
	t.meters.add(metricInterventions, float64(i.dropped), strategy, label(labelAction, "dropped"))
	t.meters.add(metricInterventions, float64(i.repaired), strategy, label(labelAction, "repaired"))
	t.meters.add(metricInterventions, float64(i.refused), strategy, label(labelAction, "refused"))
}
