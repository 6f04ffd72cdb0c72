//go:build unix

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// A report is the result.
type report struct {
	Index       string             `json:"index"`
	Strategy    string             `json:"strategy"`
	Seed        uint64             `json:"seed"`
	Seconds     float64            `json:"seconds"`
	LoadSeconds float64            `json:"load_seconds"` // until all documents and questions were acknowledged and ended
	StoreSecs   float64            `json:"store_seconds"`
	Kills       map[string]int     `json:"kills"`            // by kind
	Recovery    map[string]seconds `json:"recovery_seconds"` // the same, until it was replaced

	Documents int            `json:"documents"` // acknowledged
	Replaced  int            `json:"replaced"`  // of them, in a second version
	Questions int            `json:"questions"` // accepted
	Statuses  map[string]int `json:"statuses"`  // of their runs
	Reasons   map[string]int `json:"reasons"`   // of those that failed
	Upload    quantiles      `json:"upload_ms"` // until it was acknowledged, repeated calls included
	Answer    quantiles      `json:"answer_ms"`

	Lost      int            `json:"lost"`
	Doubled   int            `json:"doubled"`
	Old       int            `json:"old"` // documents that are not stored in their last version
	Leaks     int            `json:"leaks"`
	Responses int            `json:"responses"` // that were searched for words of the other tenant
	Searches  int            `json:"searches"`  // for single documents
	Logs      map[string]int `json:"logs"`      // entries of audit logs that were verified
	Roots     int            `json:"roots"`     // of logs before a primary was killed, which the last logs continue
	Ledgers   int            `json:"ledgers"`   // that equal their journals
	Repeated  map[string]int `json:"repeated"`  // calls, by why
	Ended     []string       `json:"ended"`     // processes that ended by themselves

	Failures []string `json:"failures"`
}

// seconds are the shortest, the median and the longest time.
type seconds struct {
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
	all    []time.Duration
}

// quantiles are in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	Max float64 `json:"max"`
}

func newReport(o options) *report {
	return &report{
		Index: o.index, Strategy: o.strategy, Seed: o.seed, Kills: map[string]int{}, Recovery: map[string]seconds{}, Statuses: map[string]int{},
		Reasons: map[string]int{}, Logs: map[string]int{}, Repeated: map[string]int{}, Ended: []string{}, Failures: []string{},
	}
}

// maxFailures bounds the failures that are listed.
const maxFailures = 50

// fail adds a failure.
func (r *report) fail(format string, args ...any) {
	if len(r.Failures) < maxFailures {
		r.Failures = append(r.Failures, fmt.Sprintf(format, args...))
	}
}

// recovered adds the time that the replacement of a process took.
func (r *report) recovered(kind string, took time.Duration) {
	s := r.Recovery[kind]
	s.all = append(s.all, took)
	slices.Sort(s.all)
	s.Median, s.Most = s.all[len(s.all)/2].Seconds(), s.all[len(s.all)-1].Seconds()
	r.Recovery[kind] = s
}

func quantilesOf(all []time.Duration) quantiles {
	if len(all) == 0 {
		return quantiles{}
	}
	slices.Sort(all)
	ms := func(q float64) float64 {
		return float64(all[min(int(q*float64(len(all))), len(all)-1)].Microseconds()) / 1000
	}
	return quantiles{P50: ms(0.5), P95: ms(0.95), Max: ms(1)}
}

// counts writes a map as "3 a, 1 b", the most first.
func counts(m map[string]int) string {
	var words []string
	for _, key := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], cmp.Compare(a, b)) }) {
		words = append(words, fmt.Sprintf("%d %s", m[key], key))
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

// write writes the report for people.
func (r *report) write(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("index %s, strategy %s, seed %d, %.0f s in all, %.0f s of load, %.0f s until everything was stored", r.Index, r.Strategy, r.Seed, r.Seconds, r.LoadSeconds, r.StoreSecs)
	line("kills: %s", counts(r.Kills))
	for _, kind := range slices.Sorted(maps.Keys(r.Recovery)) {
		line("  %s replaced after %.1f s (median), %.1f s (at most)", kind, r.Recovery[kind].Median, r.Recovery[kind].Most)
	}
	line("documents: %d acknowledged, %d of them in a second version: %d lost, %d doubled, %d not in the last version", r.Documents, r.Replaced, r.Lost, r.Doubled, r.Old)
	line("  acknowledged after %.0f ms (p50), %.0f ms (p95), %.0f ms (max)", r.Upload.P50, r.Upload.P95, r.Upload.Max)
	line("questions: %d accepted: %s", r.Questions, counts(r.Statuses))
	line("  ended after %.0f ms (p50), %.0f ms (p95), %.0f ms (max); failed: %s", r.Answer.P50, r.Answer.P95, r.Answer.Max, counts(r.Reasons))
	line("tenants: %d leaks in %d responses; %d searches for single documents", r.Leaks, r.Responses, r.Searches)
	line("audit: %s; %d earlier roots are continued; %d ledgers equal their journals", counts(r.Logs), r.Roots, r.Ledgers)
	line("calls repeated: %s", counts(r.Repeated))
	for _, end := range r.Ended {
		line("ended by itself: %s", end)
	}
	for _, failure := range r.Failures {
		line("FAILED: %s", failure)
	}
	if len(r.Failures) == 0 {
		line("everything holds")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
