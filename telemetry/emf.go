package telemetry

import (
	"cmp"
	"encoding/json"

	"github.com/assay-rag/assay/engine"
)

// emfNamespace is the namespace of the metrics in CloudWatch.
const emfNamespace = "assay"

// An emfMetric declares a metric of a line. Unit is one of CloudWatch's.
type emfMetric struct {
	Name string
	Unit string
}

type emfDirective struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []emfMetric
}

type emfMetadata struct {
	Timestamp         int64 // milliseconds since 1970
	CloudWatchMetrics []emfDirective
}

// writeEMF writes the metrics of a run as one line in CloudWatch's embedded metric format ("Embedded
// metric format specification", Amazon CloudWatch User Guide). Dimensions are bounded; the run is a
// property, which is searchable and makes no series. An error of the writer counts as a failed
// export.
func (t *Telemetry) writeEMF(o engine.RunOutcome) {
	if t.config.EMF == nil {
		return
	}
	a, seen := o.Answer, o.Observation
	line := map[string]any{
		"Service": cmp.Or(t.config.Service, "assay"), "Strategy": t.strategies.of(seen.Strategy), "Status": statuses.of(string(a.Status)), "State": states[o.State], "run": seen.Run,
	}
	var declared []emfMetric
	add := func(name, unit string, v float64) {
		declared = append(declared, emfMetric{name, unit})
		line[name] = v
	}
	add("Runs", "Count", 1)
	add("Duration", "Milliseconds", float64(seen.Latency.Milliseconds()))
	add("ModelCalls", "Count", float64(seen.ModelCalls))
	add("ModelErrors", "Count", float64(seen.ModelErrors))
	add("ToolCalls", "Count", float64(seen.ToolCalls))
	add("ToolErrors", "Count", float64(seen.ToolErrors))
	add("InputTokens", "Count", float64(a.Usage.InputTokens))
	add("OutputTokens", "Count", float64(a.Usage.OutputTokens))
	add("CostMicros", "Count", float64(seen.CostMicros))
	add("Interventions", "Count", float64(interventionsOf(o).total()))
	if seen.Graded {
		first := 0.0
		if seen.FirstTry {
			first = 1
		}
		add("SufficientFirstTry", "None", first)
	}
	if seen.Iterations > 0 {
		add("Iterations", "Count", float64(seen.Iterations))
	}
	if seen.Searched {
		add("TopRelevance", "None", seen.TopRelevance)
	}
	line["_aws"] = emfMetadata{
		Timestamp: t.config.Now().UnixMilli(),
		CloudWatchMetrics: []emfDirective{{
			Namespace: emfNamespace, Dimensions: [][]string{{"Service"}, {"Service", "Strategy"}, {"Service", "Strategy", "Status", "State"}}, Metrics: declared,
		}},
	}
	data, err := json.Marshal(line)
	if err != nil {
		t.exports.failed(err)
		return
	}
	t.emf.Lock()
	defer t.emf.Unlock()
	if _, err := t.config.EMF.Write(append(data, '\n')); err != nil {
		t.exports.failed(err)
	}
}
