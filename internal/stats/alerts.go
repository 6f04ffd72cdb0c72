package stats

import "fmt"

// Limits are the bounds of alerts and objectives.
type Limits struct {
	Iterations float64 // mean per question; alert above
	CapHits    float64 // share; alert above
	LatencyMS  float64 // 95th percentile; alert above
	ToolErrors float64 // share; alert above

	LatencyObjectiveMS float64 // 95th percentile, at most
	CapHitsObjective   float64 // share, under
	CompleteObjective  float64 // share of traces, at least
}

// DefaultLimits returns the default bounds.
func DefaultLimits() Limits {
	return Limits{
		Iterations: 8, CapHits: 0.10, LatencyMS: 30_000, ToolErrors: 0.02,
		LatencyObjectiveMS: 20_000, CapHitsObjective: 0.05, CompleteObjective: 1,
	}
}

// An Alert is a signal of the recent runs that is out of bounds.
type Alert struct {
	Signal  string  `json:"signal"`
	Value   float64 `json:"value"`
	Limit   float64 `json:"limit"`
	Text    string  `json:"text"`
	Symptom string  `json:"symptom"` // see Symptoms
}

// alerts returns the signals that are out of bounds.
func alerts(s Signals, l Limits) []Alert {
	out := []Alert{}
	add := func(signal string, value, limit float64, text, symptom string) {
		if value > limit {
			out = append(out, Alert{signal, value, limit, text, symptom})
		}
	}
	add("iterations", s.Iterations.Mean, l.Iterations, fmt.Sprintf("%.1f iterations per question, more than %.0f", s.Iterations.Mean, l.Iterations), NothingFound)
	add("cap_hits", s.CapHits.Share, l.CapHits, fmt.Sprintf("a limit ended %s of the runs, more than %s", percent(s.CapHits.Share), percent(l.CapHits)), Slow)
	add("latency_ms", s.LatencyMS.P95, l.LatencyMS, fmt.Sprintf("p95 of the latency is %s, more than %s", seconds(s.LatencyMS.P95), seconds(l.LatencyMS)), Slow)
	add("tool_errors", s.ToolErrors.Share, l.ToolErrors, fmt.Sprintf("%s of the calls of tools fail, more than %s", percent(s.ToolErrors.Share), percent(l.ToolErrors)), ProviderErrors)
	return out
}

// An Objective is a goal for the runs, and whether they meet it.
type Objective struct {
	Signal string  `json:"signal"`
	Text   string  `json:"text"`
	Value  float64 `json:"value"`
	Goal   float64 `json:"goal"`
	Met    bool    `json:"met"` // false if nothing was measured, see Runs
	Runs   int     `json:"runs"`
}

func objectives(s Signals, l Limits) []Objective {
	met := func(ok bool, runs int) bool { return ok && runs > 0 }
	return []Objective{
		{"latency_ms", "p95 of the latency at most " + seconds(l.LatencyObjectiveMS), s.LatencyMS.P95, l.LatencyObjectiveMS, met(s.LatencyMS.P95 <= l.LatencyObjectiveMS, s.LatencyMS.Count), s.LatencyMS.Count},
		{"cap_hits", "runs ended by a limit under " + percent(l.CapHitsObjective), s.CapHits.Share, l.CapHitsObjective, met(s.CapHits.Share < l.CapHitsObjective, s.CapHits.Of), s.CapHits.Of},
		{"complete_traces", "traces complete " + percent(l.CompleteObjective), s.Complete.Share, l.CompleteObjective, met(s.Complete.Share >= l.CompleteObjective, s.Complete.Of), s.Complete.Of},
	}
}

func percent(share float64) string {
	if share > 0 && share < 0.01 || share > 0.99 && share < 1 {
		return fmt.Sprintf("%.1f%%", 100*share)
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

func seconds(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g s", ms/1000)
}
