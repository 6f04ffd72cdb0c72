package governance

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// decode reads JSON of a form that may be another. v then keeps what could be read.
func decode(data json.RawMessage, v any) {
	if data != nil {
		_ = json.Unmarshal(data, v) // the caller treats missing fields as absent
	}
}

// A toolAudit counts the calls of tools by tool and week.
type toolAudit map[string]map[string]*toolWeek

// A toolWeek is the calls of one tool in one week.
type toolWeek struct {
	start                           time.Time // Monday, UTC
	calls, refused, invalid, failed int
	runs, refusedRuns               []string
	keys                            map[string][]string // runs by argument
	collections                     map[string][]string // runs by collection
	lengths                         map[string]*lengths // of text arguments
}

// lengths are the lengths of one argument in runes.
type lengths struct {
	n       int
	sum, sq float64
	longest int
	run     string // with the longest
}

func (l *lengths) add(n int, run string) {
	l.n, l.sum, l.sq = l.n+1, l.sum+float64(n), l.sq+float64(n)*float64(n)
	if n > l.longest {
		l.longest, l.run = n, run
	}
}

// merge adds the lengths of another week.
func (l *lengths) merge(o *lengths) {
	l.n, l.sum, l.sq, l.longest = l.n+o.n, l.sum+o.sum, l.sq+o.sq, max(l.longest, o.longest)
}

// limit returns the length above which one is out of pattern: three standard deviations over the mean,
// and longer than any before. ok is false with fewer than leastCalls values.
func (l *lengths) limit() (limit float64, ok bool) {
	if l.n < leastCalls {
		return 0, false
	}
	mean := l.sum / float64(l.n)
	sd := math.Sqrt(max(0, l.sq/float64(l.n)-mean*mean))
	return max(mean+deviations*sd, float64(l.longest)), true
}

// The limits of what counts as out of pattern.
const (
	leastCalls = 20 // values before, to compare a length with
	leastWeeks = 4  // weeks before, to compare a count with
	deviations = 3
)

// plainName matches names that are shown. A model may invent others, which could hold any text.
var plainName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

func shownName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return "(not a name)"
}

// add adds a call.
func (a toolAudit) add(r assay.Run, collections []string, rec assay.Record) {
	var in struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	decode(rec.Input, &in)
	name := shownName(in.Tool)
	if a[name] == nil {
		a[name] = map[string]*toolWeek{}
	}
	w := a[name][week(rec.Started)]
	if w == nil {
		w = &toolWeek{start: monday(rec.Started), keys: map[string][]string{}, collections: map[string][]string{}, lengths: map[string]*lengths{}}
		a[name][week(rec.Started)] = w
	}
	w.calls++
	w.runs = append(w.runs, r.ID)
	var out struct {
		Refused string `json:"refused"`
		Invalid bool   `json:"invalid"`
	}
	decode(rec.Output, &out)
	switch {
	case rec.Error != nil:
		w.failed++
	case out.Invalid:
		w.invalid++
		w.refusedRuns = append(w.refusedRuns, r.ID)
	case out.Refused != "":
		w.refused++
		w.refusedRuns = append(w.refusedRuns, r.ID)
	}
	if len(collections) == 0 {
		collections = []string{"(all)"}
	}
	for _, c := range collections {
		w.collections[c] = append(w.collections[c], r.ID)
	}
	w.arguments(r.ID, in.Arguments)
}

// arguments adds the arguments of a call. Those of a refused call are text, which may be no JSON.
func (w *toolWeek) arguments(run string, raw json.RawMessage) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	for key, v := range members {
		key = shownName(key)
		w.keys[key] = append(w.keys[key], run)
		if s, ok := v.(string); ok {
			if w.lengths[key] == nil {
				w.lengths[key] = &lengths{}
			}
			w.lengths[key].add(len([]rune(s)), run)
		}
	}
}

// monday returns the begin of the week of a time in UTC.
func monday(t time.Time) time.Time {
	t = t.UTC().Truncate(24 * time.Hour)
	return t.AddDate(0, 0, -(int(t.Weekday())+6)%7)
}

// An anomaly is something about the calls of a tool in one week that no earlier week shows.
type anomaly struct {
	week, tool, what, detail string
	calls                    int
	runs                     []string
}

// baseline is what the earlier weeks of one tool show.
type baseline struct {
	first       time.Time // Monday of the first week with a call
	counts      map[time.Time]int
	keys        map[string]bool
	collections map[string]bool
	lengths     map[string]*lengths
}

// anomalies compares a week with the weeks before.
func (b *baseline) anomalies(name, tool string, w *toolWeek, firstWeek bool) []anomaly {
	var found []anomaly
	say := func(what, detail string, calls int, runs []string) {
		found = append(found, anomaly{name, tool, what, detail, calls, sortedSet(runs)})
	}
	if n := w.refused + w.invalid; n > 0 {
		say("refused_calls", fmt.Sprintf("%d refused, %d with invalid arguments", w.refused, w.invalid), n, w.refusedRuns)
	}
	if b.counts == nil {
		if !firstWeek {
			say("new_tool", "no call in an earlier week", w.calls, w.runs)
		}
		return found
	}
	for _, key := range keysOf(w.keys) {
		if !b.keys[key] {
			say("new_argument", key, len(w.keys[key]), w.keys[key])
		}
	}
	for _, c := range keysOf(w.collections) {
		if !b.collections[c] {
			say("new_collection", c, len(w.collections[c]), w.collections[c])
		}
	}
	for _, key := range keysOf(w.lengths) {
		before := b.lengths[key]
		if before == nil {
			continue
		}
		if limit, ok := before.limit(); ok && float64(w.lengths[key].longest) > limit {
			say("argument_length", fmt.Sprintf("%s: %d characters, earlier at most %d", key, w.lengths[key].longest, before.longest), 1, []string{w.lengths[key].run})
		}
	}
	if z, ok := b.deviation(w); ok && math.Abs(z) > deviations {
		say("count", fmt.Sprintf("z = %.1f", z), w.calls, w.runs)
	}
	return found
}

// deviation returns how many standard deviations the number of calls of a week is from the mean of the
// weeks before. Weeks without a call count as 0. The deviation of a count is taken as at least the
// root of its mean, as that of a Poisson distribution, and at least 1. ok is false with fewer than
// leastWeeks weeks.
func (b *baseline) deviation(w *toolWeek) (z float64, ok bool) {
	if b.counts == nil {
		return 0, false
	}
	var n, sum, sq float64
	for at := b.first; at.Before(w.start); at = at.AddDate(0, 0, 7) {
		x := float64(b.counts[at])
		n, sum, sq = n+1, sum+x, sq+x*x
	}
	if n < leastWeeks {
		return 0, false
	}
	mean := sum / n
	sd := max(math.Sqrt(max(0, sq/n-mean*mean)), math.Sqrt(mean), 1)
	return (float64(w.calls) - mean) / sd, true
}

// learn adds a week to what earlier weeks show.
func (b *baseline) learn(w *toolWeek) {
	if b.counts == nil {
		*b = baseline{first: w.start, counts: map[time.Time]int{}, keys: map[string]bool{}, collections: map[string]bool{}, lengths: map[string]*lengths{}}
	}
	b.counts[w.start] += w.calls
	for key := range w.keys {
		b.keys[key] = true
	}
	for c := range w.collections {
		b.collections[c] = true
	}
	for key, l := range w.lengths {
		if b.lengths[key] == nil {
			b.lengths[key] = &lengths{}
		}
		b.lengths[key].merge(l)
	}
}

// toolSection is the audit of tool calls by week.
func (b *Builder) toolSection() ([]Figure, []Table) {
	weeks := Table{Name: "tools", Title: "Tool calls by week", Columns: []string{"week", "tool", "calls", "refused", "invalid", "failed", "runs", "z"},
		Definition: "Calls by week (ISO 8601, UTC). Refused calls were not made; invalid ones name no tool or have other arguments. z: standard deviations from the mean of the weeks before, with four of them or more."}
	odd := Table{Name: "tool_anomalies", Title: "Anomalies in tool calls", Columns: []string{"week", "tool", "anomaly", "detail", "calls", "runs"},
		Definition: "What no earlier week shows: a new tool, a new argument or collection of a tool, an argument longer than any before and three standard deviations over the mean, three standard deviations more or fewer calls; and refused calls."}
	calls := 0
	var anomalous []string
	first := ""
	for _, byWeek := range b.tools {
		for name := range byWeek {
			if first == "" || name < first {
				first = name
			}
		}
	}
	for _, tool := range keysOf(b.tools) {
		var before baseline
		for _, name := range keysOf(b.tools[tool]) {
			w := b.tools[tool][name]
			if shown := b.options.From.IsZero() || w.start.AddDate(0, 0, 7).After(b.options.From); shown {
				calls += w.calls
				var z any
				if x, ok := before.deviation(w); ok {
					z = round(x)
				}
				weeks.add(name, tool, w.calls, w.refused, w.invalid, w.failed, len(sortedSet(w.runs)), z)
				for _, x := range before.anomalies(name, tool, w, name == first) {
					odd.add(x.week, x.tool, x.what, x.detail, x.calls, x.runs)
					anomalous = append(anomalous, x.runs...)
				}
			}
			before.learn(w)
		}
	}
	byWeek := func(x, y []any) int {
		if c := compareText(x[0], y[0]); c != 0 {
			return c
		}
		return compareText(x[1], y[1])
	}
	slices.SortStableFunc(weeks.Rows, byWeek)
	slices.SortStableFunc(odd.Rows, byWeek)
	return []Figure{
		number(Figure{Name: "tool_calls", Title: "Tool calls", Definition: "Calls of tools, made or refused, in the weeks of the period. Runs: none."}, calls),
		number(Figure{Name: "tool_anomalies", Title: "Anomalies in tool calls", Runs: anomalous,
			Definition: "Rows of the table of that name. Runs: those behind them."}, len(odd.Rows)),
	}, []Table{weeks, odd}
}
