package governance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// Bounds of the figures.
const (
	iterationsAlert = 8
	capsObjective   = 0.05
	capsAlert       = 0.10
	timeObjective   = 20_000 // ms
	timeAlert       = 30_000 // ms
	toolErrorsAlert = 0.02
)

// compareText orders cells that are strings.
func compareText(x, y any) int {
	a, _ := x.(string)
	b, _ := y.(string)
	return strings.Compare(a, b)
}

// percentile returns the figure of a percentile in milliseconds.
func percentile(f Figure, s spread, rank float64) Figure {
	f.Unit, f.Value, f.Of = "ms", s.rank(rank), float64(len(s.values))
	f.Count = f.Of
	return f.judged()
}

// traceSection is about whether every session has its whole trace.
func (b *Builder) traceSection() ([]Figure, []Table) {
	for _, id := range b.options.LostRuns {
		b.gaps[id] = "its begin is in the audit log, and it is neither stored nor deleted"
	}
	all := b.traces + len(b.options.LostRuns)
	t := Table{Name: "traces", Title: "Traces that are not complete", Columns: []string{"run", "gap"},
		Definition: "Each ended run whose journal has a gap or does not match its hashes, and each run that the audit log knows and the store does not."}
	for _, id := range keysOf(b.gaps) {
		t.add(id, b.gaps[id])
	}
	return []Figure{share(Figure{
		Name: "complete_traces", Title: "Session traces complete", Objective: &Bound{"==", 1}, Alert: &Bound{"<", 1}, Runs: keysOf(b.gaps),
		Definition: "Ended runs with every step, each with its result, and hashes that match, of all ended runs, evaluations included. Runs: those that are not complete.",
	}, all-len(b.gaps), all), number(Figure{
		Name: "unfinished_runs", Title: "Runs that have not ended", Runs: b.unfinished,
		Definition: "Runs that are active, were interrupted, or wait for a person. Runs: those.",
	}, len(b.unfinished))}, []Table{t}
}

// iterationSection is about iterations and the limits that end runs.
func (b *Builder) iterationSection() ([]Figure, []Table) {
	type kind struct{ kind, strategy string }
	all, byKind, stops := spread{}, map[kind]*spread{}, map[string][]string{}
	var capped, limited, stopped []string
	answers := 0
	for _, o := range b.observed {
		if !o.Ended() || o.Status == "" || o.Cached {
			continue
		}
		answers++
		k := kind{o.kind, cmp.Or(o.Strategy, "(none)")}
		if byKind[k] == nil {
			byKind[k] = &spread{}
		}
		all.add(float64(o.Iterations), o.Run)
		byKind[k].add(float64(o.Iterations), o.Run)
		stops[string(o.Stop)] = append(stops[string(o.Stop)], o.Run)
		if o.CapHit() {
			capped = append(capped, o.Run)
		}
		switch o.Stop {
		case assay.StopQuota:
			limited = append(limited, o.Run)
		case assay.StopStopped:
			stopped = append(stopped, o.Run)
		}
	}
	mean := Figure{Name: "iterations_mean", Title: "Iterations a session", Unit: "count", Value: round(all.mean()), Count: all.sum(), Of: float64(answers),
		Alert: &Bound{">", iterationsAlert}, Runs: all.where(func(x float64) bool { return x > iterationsAlert }),
		Definition: "Iterations of all answers, divided by their number; repeated answers do not count. Runs: those with more than 8."}.judged()
	p99 := all.rank(0.99)
	high := Figure{Name: "iterations_p99", Title: "Iterations, 99th percentile", Unit: "count", Value: p99, Count: float64(answers), Of: float64(answers),
		Runs:       all.where(func(x float64) bool { return x >= p99 }),
		Definition: "The smallest number of iterations that 99% of the answers do not exceed. Runs: those with at least as many."}.judged()
	if answers == 0 {
		mean.State, high.State = NotMeasured, NotMeasured
	}
	caps := share(Figure{Name: "cap_hits", Title: "Runs ended by a limit", Objective: &Bound{"<", capsObjective}, Alert: &Bound{">", capsAlert}, Runs: capped,
		Definition: "Answers whose search ended at the limit of iterations (of more than one), of time, tokens, calls or money, of all answers. Runs: those."}, len(capped), answers)

	kinds := Table{Name: "iterations", Title: "Iterations by kind of question and strategy", Columns: []string{"kind", "strategy", "runs", "mean", "p50", "p99", "max"},
		Definition: "The kind is the shape of the question's plan: single, conjunction, comparison or chain; unplanned if there was no plan."}
	spreads := Table{Name: "iteration_distribution", Title: "Distribution of iterations", Columns: []string{"kind", "strategy", "iterations", "runs"},
		Definition: "How many answers took how many iterations."}
	order := make([]kind, 0, len(byKind))
	for k := range byKind {
		order = append(order, k)
	}
	slices.SortFunc(order, func(x, y kind) int {
		return cmp.Or(strings.Compare(x.kind, y.kind), strings.Compare(x.strategy, y.strategy))
	})
	for _, k := range order {
		s := byKind[k]
		kinds.add(k.kind, k.strategy, len(s.values), round(s.mean()), int(s.rank(0.5)), int(s.rank(0.99)), int(s.rank(1)))
		counts := map[int]int{}
		for _, x := range s.values {
			counts[int(x)]++
		}
		for _, n := range keysOf(counts) {
			spreads.add(k.kind, k.strategy, n, counts[n])
		}
	}
	ends := Table{Name: "stops", Title: "Why searches ended", Columns: []string{"stop", "runs", "ids"}, Definition: "Answers by the reason why their search ended."}
	for _, stop := range keysOf(stops) {
		ends.add(cmp.Or(stop, "(none)"), len(stops[stop]), sortedSet(stops[stop]))
	}
	limits := number(Figure{Name: "limits_hit", Title: "Runs ended by a limit of a user, key or tenant", Runs: limited,
		Definition: "Answers whose search ended with the stop quota. A question that is refused at a limit leaves no run. Runs: those."}, len(limited))
	stop := number(Figure{Name: "run_stops", Title: "Runs stopped by an administrator", Runs: stopped,
		Definition: "Answers whose search ended with the stop stopped. Runs: those."}, len(stopped))
	return []Figure{mean, high, caps, limits, stop}, []Table{kinds, spreads, ends}
}

// timeSection is about how long sessions take and how often tools fail.
func (b *Builder) timeSection() ([]Figure, []Table) {
	times := spread{}
	byMonth := map[string]*spread{}
	calls, failures := 0, 0
	var failed []string
	for _, o := range b.observed {
		calls, failures = calls+o.ToolCalls, failures+o.ToolErrors
		if o.ToolErrors > 0 {
			failed = append(failed, o.Run)
		}
		if !o.Ended() {
			continue
		}
		ms := float64(o.Latency.Milliseconds())
		times.add(ms, o.Run)
		m := month(o.Created)
		if byMonth[m] == nil {
			byMonth[m] = &spread{}
		}
		byMonth[m].add(ms, o.Run)
	}
	t := Table{Name: "session_times", Title: "Session times by month", Columns: []string{"month", "runs", "p50_ms", "p95_ms", "p99_ms"},
		Definition: "Time from the question to the answer while the run was active; waiting for a person does not count."}
	for _, m := range keysOf(byMonth) {
		s := byMonth[m]
		t.add(m, len(s.values), s.rank(0.5), s.rank(0.95), s.rank(0.99))
	}
	return []Figure{
		percentile(Figure{Name: "session_p95", Title: "Session time, 95th percentile", Objective: &Bound{"<=", timeObjective}, Alert: &Bound{">", timeAlert},
			Runs:       times.where(func(x float64) bool { return x > timeObjective }),
			Definition: "The smallest time that 95% of the ended runs do not exceed. Runs: those above 20 s."}, times, 0.95),
		share(Figure{Name: "tool_errors", Title: "Tool calls that fail", Alert: &Bound{">", toolErrorsAlert}, Runs: failed,
			Definition: "Calls of tools that failed, were refused or had invalid arguments, of all calls. Runs: those with one."}, failures, calls),
	}, []Table{t}
}

// costSection is about the cost of sessions and months beside the expectation.
func (b *Builder) costSection() ([]Figure, []Table) {
	type cost struct {
		runs   int
		micros int64
	}
	byMonth := map[string]cost{}
	all := spread{}
	for _, o := range b.observed {
		if !o.Ended() {
			continue
		}
		c := byMonth[month(o.Created)]
		byMonth[month(o.Created)] = cost{c.runs + 1, c.micros + o.CostMicros}
		all.add(float64(o.CostMicros), o.Run)
	}
	session := Figure{Name: "cost_per_session", Title: "Cost of a session", Unit: "micros", Value: round(all.mean()), Count: all.sum(), Of: float64(len(all.values)),
		Definition: "Cost of all ended runs, divided by their number, in millionths of the currency of the configured prices. Runs: those above the expectation, if there is one."}
	if want := float64(b.options.SessionMicros); want > 0 {
		session.Objective, session.Alert = &Bound{"<=", want}, &Bound{">", want}
		session.Runs = all.where(func(x float64) bool { return x > want })
	}
	t := Table{Name: "costs", Title: "Costs by month", Columns: []string{"month", "runs", "micros", "micros_per_session", "expected_micros", "expected_micros_per_session", "above"},
		Definition: "Cost of the runs that were begun in the month, beside what was expected; above: more than one of the expectations."}
	highest := Figure{Name: "cost_highest_month", Title: "Cost of the most expensive month", Unit: "micros", Of: float64(len(byMonth)), Definition: "The highest cost of a calendar month in UTC. Runs: none."}
	for _, m := range keysOf(byMonth) {
		c := byMonth[m]
		each := float64(c.micros) / float64(c.runs)
		above := b.options.MonthMicros > 0 && c.micros > b.options.MonthMicros || b.options.SessionMicros > 0 && each > float64(b.options.SessionMicros)
		t.add(m, c.runs, c.micros, round(each), orNil(b.options.MonthMicros), orNil(b.options.SessionMicros), above)
		highest.Value = max(highest.Value, float64(c.micros))
	}
	highest.Count = highest.Value
	if want := float64(b.options.MonthMicros); want > 0 {
		highest.Objective, highest.Alert = &Bound{"<=", want}, &Bound{">", want}
	}
	return []Figure{session.judged(), highest.judged()}, []Table{t}
}

func orNil(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// verifierSection is about what the verifier held back.
func (b *Builder) verifierSection() ([]Figure, []Table) {
	type counts struct{ answers, claims, dropped, repaired, refused int }
	byMonth := map[string]counts{}
	var sum counts
	var dropped, repaired, refused []string
	for _, o := range b.observed {
		if !o.Ended() || o.Status == "" || o.Cached {
			continue
		}
		one := counts{answers: 1, claims: o.Claims, dropped: o.Rejected, repaired: o.repaired}
		if o.refused {
			one.refused = 1
			refused = append(refused, o.Run)
		}
		if o.Rejected > 0 {
			dropped = append(dropped, o.Run)
		}
		if o.repaired > 0 {
			repaired = append(repaired, o.Run)
		}
		for _, c := range []struct {
			month string
			into  *counts
		}{{into: &sum}, {month: month(o.Created)}} {
			into := c.into
			if into == nil {
				m := byMonth[c.month]
				into = &m
			}
			into.answers, into.claims, into.dropped = into.answers+one.answers, into.claims+one.claims, into.dropped+one.dropped
			into.repaired, into.refused = into.repaired+one.repaired, into.refused+one.refused
			if c.into == nil {
				byMonth[c.month] = *into
			}
		}
	}
	t := Table{Name: "verifier", Title: "Interventions of the verifier by month", Columns: []string{"month", "answers", "claims", "dropped", "repaired", "drafts_refused"},
		Definition: "Claims that were drafted, those that were not supported in the end, those whose citations were corrected, and answers whose whole draft was refused."}
	for _, m := range keysOf(byMonth) {
		c := byMonth[m]
		t.add(m, c.answers, c.claims, c.dropped, c.repaired, c.refused)
	}
	return []Figure{
		share(Figure{Name: "claims_dropped", Title: "Claims that the verifier dropped", Runs: dropped,
			Definition: "Drafted claims that were not supported by their sources in the end, of all drafted claims. Runs: those with one."}, sum.dropped, sum.claims),
		share(Figure{Name: "claims_repaired", Title: "Claims that the verifier repaired", Runs: repaired,
			Definition: "Claims whose citations were replaced by ones that support them, of all drafted claims. Runs: those with one."}, sum.repaired, sum.claims),
		share(Figure{Name: "drafts_refused", Title: "Drafts that were refused", Runs: refused,
			Definition: "Answers whose whole draft was unsupported, not verified, not accepted or not about the question, of all answers. Runs: those."}, sum.refused, sum.answers),
	}, []Table{t}
}

// eventSection is about the alarms and administrative acts of the audit log.
func (b *Builder) eventSection() ([]Figure, []Table) {
	var figures []Figure
	months := Table{Name: "events", Title: "Alarms and administrative acts by month", Columns: []string{"event", "month", "acts"}, Definition: "Acts of the audit log, and those of the store's own log that are about this tenant or about all."}
	for _, g := range groups {
		sum := 0
		for _, m := range keysOf(b.events[g.name]) {
			sum += b.events[g.name][m]
			months.add(g.name, m, b.events[g.name][m])
		}
		var kinds []string
		for _, k := range g.kinds {
			if strings.HasSuffix(k, ".") {
				k += "*"
			}
			kinds = append(kinds, k)
		}
		f := Figure{Name: g.name, Title: g.title, Definition: "Acts " + strings.Join(kinds, ", ") + "." + g.note + " Runs: those that the acts name."}
		switch g.name {
		case "canary_alarms":
			f.Objective, f.Alert = &Bound{"==", 0}, &Bound{">", 0}
		case "checkpoints":
			f.Objective = &Bound{">=", 1}
		}
		for _, e := range b.happened {
			if run := runOf(e); e.group == g.name && run != "" {
				f.Runs = append(f.Runs, run)
			}
		}
		figures = append(figures, number(f, sum))
	}
	acts := Table{Name: "acts", Title: "Alarms and administrative acts", Columns: []string{"time", "log", "sequence", "event", "kind", "subject"},
		Definition: "The acts counted above, by the log that has them, the tenant's or the store's, and their sequence in it."}
	happened := slices.Clone(b.happened)
	slices.SortStableFunc(happened, func(x, y event) int { return x.Time.Compare(y.Time) })
	for _, e := range happened {
		acts.add(e.Time.UTC().Format(time.RFC3339), e.log, e.Sequence, e.group, e.Kind, e.Subject)
	}
	return figures, []Table{months, acts}
}

// runOf returns the run that an act names, or "".
func runOf(e event) string {
	if strings.HasPrefix(e.Kind, "run.") {
		return e.Subject
	}
	var d struct {
		Run string `json:"run"`
	}
	decode(e.Detail, &d)
	return d.Run
}
