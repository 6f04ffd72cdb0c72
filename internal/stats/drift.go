package stats

import (
	"fmt"
	"math"
	"slices"
)

// least is the number of values that each side needs. With fewer, only a collapse could be
// distinguished from chance.
const least = 20

// significance bounds the probability that a report calls any signal drifting although nothing has
// changed. The p-values of the signals are adjusted for their number.
const significance = 0.01

// A Drift is the change of one signal against the days before.
type Drift struct {
	Signal   string  `json:"signal"`
	Before   float64 `json:"before"` // share, or median; if the medians are equal, mean
	Recent   float64 `json:"recent"`
	P        float64 `json:"p"` // two-sided, adjusted for the number of signals
	Test     string  `json:"test"`
	Drifting bool    `json:"drifting"` // P is under 0.01
	Worse    bool    `json:"worse"`    // drifting in the bad direction
	Runs     [2]int  `json:"runs"`     // that have the signal, before and recent
	Symptom  string  `json:"symptom"`
}

// A tested is a signal that is watched for drift: a share of the runs, or a number per run. Values
// that are correlated within a run, such as its claims, are reduced to one number per run. Counted
// one by one they would cause false alarms.
type tested struct {
	name    string
	symptom string
	higher  float64             // 1: a higher value is worse; -1: a lower one
	share   func(Signals) Share // of the runs, or, with number set, of their items
	number  number
}

var watched = []tested{
	{name: "sufficient_first_try", symptom: NothingFound, higher: -1, share: func(s Signals) Share { return s.FirstTry }},
	{name: "not_found", symptom: NothingFound, higher: 1, share: func(s Signals) Share { return s.NotFound }},
	{name: "top_relevance", symptom: NothingFound, higher: -1, number: topRelevance},
	{name: "iterations", symptom: NothingFound, higher: 1, number: iterations},
	{name: "claims_rejected", symptom: UnsupportedClaims, higher: 1, share: func(s Signals) Share { return s.Rejected }, number: rejected},
	{name: "incomplete", symptom: OverBlocked, higher: 1, share: func(s Signals) Share { return s.Incomplete }},
	{name: "cap_hits", symptom: Slow, higher: 1, share: func(s Signals) Share { return s.CapHits }},
	{name: "latency_ms", symptom: Slow, higher: 1, number: latency},
	{name: "cost_micros", symptom: Slow, higher: 1, number: money},
	{name: "output_tokens", symptom: Slow, higher: 1, number: outputTokens},
	{name: "tool_errors", symptom: ProviderErrors, higher: 1, share: func(s Signals) Share { return s.ToolErrors }, number: toolErrors},
	{name: "model_errors", symptom: ProviderErrors, higher: 1, share: func(s Signals) Share { return s.ModelErrors }, number: modelErrors},
}

// drift compares the recent runs with those before. It compares shares by Fisher's exact test and
// numbers by the test of Mann and Whitney, and adjusts the levels by the method of Holm, "A simple
// sequentially rejective multiple test procedure", 1979. If no signal has enough runs, tooFew is a
// message to that effect.
func drift(recent, before []Observation) (found []Drift, tooFew string) {
	now, then := signalsOf(recent), signalsOf(before)
	found = []Drift{}
	for _, w := range watched {
		d := Drift{Signal: w.name, Symptom: w.symptom}
		if w.number == nil {
			b, r := w.share(then), w.share(now)
			d.Before, d.Recent, d.Runs, d.Test = b.Share, r.Share, [2]int{b.Of, r.Of}, "Fisher's exact test"
			d.P = fisher(b.Count, b.Of, r.Count, r.Of)
		} else {
			b, r := w.number.values(before), w.number.values(recent)
			d.Before, d.Recent, d.Runs, d.Test = distribution(b).P50, distribution(r).P50, [2]int{len(b), len(r)}, "Mann-Whitney U test"
			d.P = mannWhitney(b, r)
			switch {
			case w.share != nil:
				d.Before, d.Recent = w.share(then).Share, w.share(now).Share
			case d.Before == d.Recent: // the medians are equal: report the means
				d.Before, d.Recent = distribution(b).Mean, distribution(r).Mean
			}
		}
		if min(d.Runs[0], d.Runs[1]) >= least {
			found = append(found, d)
		}
	}
	holm(found)
	for i, d := range found {
		found[i].Drifting = d.P < significance
		found[i].Worse = found[i].Drifting && directionOf(d.Signal)*(d.Recent-d.Before) > 0
	}
	if len(found) == 0 {
		tooFew = fmt.Sprintf("%d recent runs and %d before: drift cannot be told with fewer than %d of each", len(recent), len(before), least)
	}
	return found, tooFew
}

func directionOf(signal string) float64 {
	return watched[slices.IndexFunc(watched, func(w tested) bool { return w.name == signal })].higher
}

// holm adjusts the p-values for their number.
func holm(all []Drift) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(sign(all[a].P - all[b].P)) })
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, all[i].P*float64(len(all)-rank)))
		all[i].P = highest
	}
}

// fisher returns the two-sided p-value of a of n against b of m by Fisher's exact test: the
// probability of a table that is no more likely than this one, given the margins. It is 1 if n or m
// is 0.
//
// Source: Fisher, "The Logic of Inductive Inference", Journal of the Royal Statistical Society,
// 1935.
func fisher(a, n, b, m int) float64 {
	if n == 0 || m == 0 {
		return 1
	}
	hits := a + b
	chance := func(x int) float64 { return math.Exp(choose(n, x) + choose(m, hits-x) - choose(n+m, hits)) }
	own := chance(a) * (1 + 1e-7) // equally likely tables differ by rounding
	p := 0.0
	for x := max(0, hits-m); x <= min(n, hits); x++ {
		if c := chance(x); c <= own {
			p += c
		}
	}
	return min(1, p)
}

// choose returns the logarithm of the binomial coefficient of n and k.
func choose(n, k int) float64 {
	log := func(x int) float64 {
		l, _ := math.Lgamma(float64(x) + 1)
		return l
	}
	return log(n) - log(k) - log(n-k)
}

// mannWhitney returns the two-sided p-value for two samples of one distribution, by the normal
// approximation with corrections for ties and for continuity. It is 1 if one sample is empty or all
// values are equal.
//
// Source: Mann and Whitney, "On a Test of Whether one of Two Random Variables is Stochastically
// Larger than the Other", Annals of Mathematical Statistics, 1947.
func mannWhitney(a, b []float64) float64 {
	n, m := float64(len(a)), float64(len(b))
	if n == 0 || m == 0 {
		return 1
	}
	type value struct {
		x   float64
		ofA bool
	}
	var all []value
	for _, x := range a {
		all = append(all, value{x: x, ofA: true})
	}
	for _, x := range b {
		all = append(all, value{x: x})
	}
	slices.SortStableFunc(all, func(u, v value) int { return int(sign(u.x - v.x)) })
	rankSum, ties := 0.0, 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].x == all[i].x {
			j++
		}
		same := float64(j - i)
		ties += same*same*same - same
		for k := i; k < j; k++ {
			if all[k].ofA {
				rankSum += float64(i+j+1) / 2
			}
		}
		i = j
	}
	u := rankSum - n*(n+1)/2
	total := n + m
	variance := n * m / 12 * (total + 1 - ties/(total*(total-1)))
	if variance <= 0 {
		return 1
	}
	z := max(0, math.Abs(u-n*m/2)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// An Alarm is a likely cause that several worsening signals have in common.
type Alarm struct {
	Name    string   `json:"name"`
	Signals []string `json:"signals"` // that got worse
	Text    string   `json:"text"`
	Symptom string   `json:"symptom"`
}

// composites are the alarms, each with its signals and how many of those are needed.
var composites = []struct {
	name, text, symptom string
	signals             []string
	needed              int
}{
	{"retrieval", "the documents or their index have changed, or other questions are asked: less of what is looked for is found", NothingFound,
		[]string{"sufficient_first_try", "not_found", "top_relevance", "iterations"}, 2},
	{"grounding", "what is written holds less often", UnsupportedClaims, []string{"claims_rejected", "incomplete", "not_found"}, 2},
	{"services", "a model's or tool's provider is slow or failing", ProviderErrors, []string{"latency_ms", "tool_errors", "model_errors", "cap_hits"}, 2},
	{"everything", "signals of several kinds get worse together: look at what was changed last", ConfidentlyWrong, nil, 5},
}

// alarms returns the alarms that the drifts raise together.
func alarms(all []Drift) []Alarm {
	out := []Alarm{}
	for _, c := range composites {
		var worse []string
		for _, d := range all {
			if d.Worse && (c.signals == nil || slices.Contains(c.signals, d.Signal)) {
				worse = append(worse, d.Signal)
			}
		}
		if len(worse) >= c.needed {
			out = append(out, Alarm{c.name, worse, c.text, c.symptom})
		}
	}
	return out
}
