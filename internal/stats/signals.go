package stats

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

// Signals are the statistics of a group of runs. Repeated answers count only towards Runs, Cached,
// NotFound and Latency.
type Signals struct {
	Runs   int `json:"runs"`
	Ended  int `json:"ended"`
	Failed int `json:"failed"`
	Cached int `json:"cached"`

	FirstTry     Share        `json:"sufficient_first_try"` // of the graded runs
	Iterations   Distribution `json:"iterations"`
	TopRelevance Distribution `json:"top_relevance"`
	Rejected     Share        `json:"claims_rejected"` // of the claims
	NotFound     Share        `json:"not_found"`       // of the runs with an answer
	Incomplete   Share        `json:"incomplete"`
	CapHits      Share        `json:"cap_hits"`     // of the runs with an answer
	ToolErrors   Share        `json:"tool_errors"`  // of the calls of tools
	ModelErrors  Share        `json:"model_errors"` // of the attempts to call a model
	Complete     Share        `json:"complete_traces"`
	Stale        Share        `json:"stale_citations"` // of the citations; their document was replaced or removed since

	Stops        map[string]int `json:"stops"`    // runs by stop reason
	Finishes     map[string]int `json:"finishes"` // model replies by finish reason
	OutputTokens Distribution   `json:"output_tokens"`
	LatencyMS    Distribution   `json:"latency_ms"`
	CostMicros   Distribution   `json:"cost_micros"`
	Stages       []StageSignals `json:"stages"` // by median, slowest first
}

// StageSignals are the times and costs of the steps of one kind, over the runs that had any. Stages
// overlap: a verdict includes the call of the model that gave it.
type StageSignals struct {
	Stage      assay.StepKind `json:"stage"`
	ElapsedMS  Distribution   `json:"elapsed_ms"`
	CostMicros Distribution   `json:"cost_micros"`
}

// A Share is a fraction with its counts.
type Share struct {
	Count int `json:"count"`
	Of    int `json:"of"`
	// Share is Count / Of, in [0, 1]; 0 if Of is 0.
	Share float64 `json:"share"`
}

func (s *Share) add(count, of int) {
	s.Count, s.Of = s.Count+count, s.Of+of
	if s.Of > 0 {
		s.Share = float64(s.Count) / float64(s.Of)
	}
}

// A Distribution summarizes a list of numbers. Percentiles are by nearest rank: the smallest number
// that is not under the share of all. It is zero for an empty list.
type Distribution struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

func distribution(xs []float64) Distribution {
	if len(xs) == 0 {
		return Distribution{}
	}
	xs = slices.Sorted(slices.Values(xs))
	rank := func(share float64) float64 { return xs[max(0, int(math.Ceil(share*float64(len(xs))))-1)] }
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return Distribution{len(xs), sum / float64(len(xs)), rank(0.5), rank(0.95), rank(0.99), xs[len(xs)-1]}
}

// signalsOf summarizes observations.
func signalsOf(all []Observation) Signals {
	s := Signals{Stops: map[string]int{}, Finishes: map[string]int{}, Stages: []StageSignals{}}
	elapsed, cost := map[assay.StepKind][]float64{}, map[assay.StepKind][]float64{}
	for _, o := range all {
		s.Runs++
		s.Ended += one(o.Ended())
		s.Failed += one(o.State == assay.RunFailed)
		s.Cached += one(o.Cached)
		if o.Ended() {
			s.Complete.add(one(o.Fault == ""), 1)
		}
		s.NotFound.add(one(o.Status == assay.NotFound), one(o.Status != ""))
		if o.Cached {
			continue
		}
		s.Incomplete.add(one(o.Status == assay.Incomplete), one(o.Status != ""))
		s.FirstTry.add(one(o.FirstTry), one(o.Graded))
		s.Stale.add(o.Stale, o.Citations)
		s.Rejected.add(o.Rejected, o.Claims)
		s.CapHits.add(one(o.CapHit()), one(o.Status != ""))
		s.ToolErrors.add(o.ToolErrors, o.ToolCalls)
		s.ModelErrors.add(o.ModelErrors, o.ModelCalls)
		if o.Stop != "" {
			s.Stops[string(o.Stop)]++
		}
		for finish, n := range o.Finishes {
			s.Finishes[finish] += n
		}
		for kind, stage := range o.Stages {
			elapsed[kind] = append(elapsed[kind], milliseconds(stage.Elapsed))
			cost[kind] = append(cost[kind], float64(stage.CostMicros))
		}
	}
	s.Iterations = distribution(iterations.values(all))
	s.TopRelevance = distribution(topRelevance.values(all))
	s.OutputTokens = distribution(outputTokens.values(all))
	s.LatencyMS = distribution(latency.values(all))
	s.CostMicros = distribution(money.values(all))
	for _, kind := range slices.Sorted(maps.Keys(elapsed)) {
		s.Stages = append(s.Stages, StageSignals{kind, distribution(elapsed[kind]), distribution(cost[kind])})
	}
	slices.SortStableFunc(s.Stages, func(a, b StageSignals) int { return int(sign(b.ElapsedMS.P50 - a.ElapsedMS.P50)) })
	return s
}

// A number returns a run's value of one signal, if it has one.
type number func(Observation) (x float64, ok bool)

// The numeric signals of a run.
var (
	iterations   number = func(o Observation) (float64, bool) { return float64(o.Iterations), !o.Cached && o.Status != "" }
	topRelevance number = func(o Observation) (float64, bool) { return o.TopRelevance, !o.Cached && o.Searched }
	outputTokens number = func(o Observation) (float64, bool) { return float64(o.OutputTokens), !o.Cached && o.ModelCalls > 0 }
	latency      number = func(o Observation) (float64, bool) { return milliseconds(o.Latency), o.Ended() }
	money        number = func(o Observation) (float64, bool) { return float64(o.CostMicros), !o.Cached && o.Ended() }
)

// The shares within a run.
var (
	rejected    number = func(o Observation) (float64, bool) { return ratio(o.Rejected, o.Claims) }
	toolErrors  number = func(o Observation) (float64, bool) { return ratio(o.ToolErrors, o.ToolCalls) }
	modelErrors number = func(o Observation) (float64, bool) { return ratio(o.ModelErrors, o.ModelCalls) }
)

func ratio(count, of int) (float64, bool) {
	if of == 0 {
		return 0, false
	}
	return float64(count) / float64(of), true
}

func (n number) values(all []Observation) []float64 {
	var xs []float64
	for _, o := range all {
		if x, ok := n(o); ok {
			xs = append(xs, x)
		}
	}
	return xs
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
