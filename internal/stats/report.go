package stats

import (
	"cmp"
	"slices"
	"time"
)

// everywhere is the collection of runs that named none.
const everywhere = "(all)"

// Options configure a report.
type Options struct {
	Now    time.Time     // the current time; required
	Recent time.Duration // the span of the recent runs, which are compared with those before; 0: a day
	Window time.Duration // the span of the runs before; 0: a week
	Limits Limits        // zero: DefaultLimits
}

// A Report summarizes runs.
type Report struct {
	From        time.Time `json:"from"`      // of the first run; zero: no runs
	To          time.Time `json:"to"`        // of the last run
	Measuring   int       `json:"measuring"` // runs of evaluations, which are left out
	All         Signals   `json:"all"`
	Days        []Group   `json:"days"` // by UTC date, oldest first; days without runs are left out
	Strategies  []Group   `json:"strategies"`
	Collections []Group   `json:"collections"` // a run counts in each collection that it named

	Alerts     []Alert     `json:"alerts"`     // of the recent runs
	Objectives []Objective `json:"objectives"` // of all runs
	Drift      []Drift     `json:"drift"`      // of every signal with enough runs
	Alarms     []Alarm     `json:"alarms"`     // common causes of signals that got worse
	TooFew     string      `json:"too_few,omitempty"`
	Faults     []Fault     `json:"faults"` // runs with an incomplete trace
}

// A Group is the signals of some runs.
type Group struct {
	Name    string  `json:"name"`
	Signals Signals `json:"signals"`
}

// A Fault is a run with an incomplete trace.
type Fault struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// Of returns the report on observations, which may come in any order.
func Of(all []Observation, o Options) Report {
	o.Recent, o.Window = cmp.Or(o.Recent, 24*time.Hour), cmp.Or(o.Window, 7*24*time.Hour)
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	measuring := 0
	all = slices.DeleteFunc(slices.Clone(all), func(o Observation) bool {
		measuring += one(o.Measuring)
		return o.Measuring
	})
	slices.SortStableFunc(all, func(a, b Observation) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Run, b.Run))
	})
	r := Report{Measuring: measuring, All: signalsOf(all), Alerts: []Alert{}, Drift: []Drift{}, Alarms: []Alarm{}, Faults: []Fault{}}
	if len(all) > 0 {
		r.From, r.To = all[0].Created, all[len(all)-1].Created
	}
	r.Days = by(all, func(o Observation) []string { return []string{o.Created.UTC().Format(time.DateOnly)} })
	r.Strategies = by(all, func(o Observation) []string { return []string{cmp.Or(o.Strategy, "(none)")} })
	r.Collections = by(all, func(o Observation) []string {
		if len(o.Collections) == 0 {
			return []string{everywhere}
		}
		return o.Collections
	})
	for _, ob := range all {
		if ob.Fault != "" {
			r.Faults = append(r.Faults, Fault{ob.Run, ob.Fault})
		}
	}
	start := o.Now.Add(-o.Recent)
	recent := between(all, start, o.Now)
	before := between(all, start.Add(-o.Window), start)
	r.Alerts = alerts(signalsOf(recent), o.Limits)
	r.Objectives = objectives(r.All, o.Limits)
	r.Drift, r.TooFew = drift(recent, before)
	r.Alarms = alarms(r.Drift)
	return r
}

// between returns the observations that began after from, up to to.
func between(all []Observation, from, to time.Time) []Observation {
	var in []Observation
	for _, o := range all {
		if o.Created.After(from) && !o.Created.After(to) {
			in = append(in, o)
		}
	}
	return in
}

// by groups observations by name, sorted by name.
func by(all []Observation, names func(Observation) []string) []Group {
	groups := map[string][]Observation{}
	var order []string
	for _, o := range all {
		for _, n := range names(o) {
			if groups[n] == nil {
				order = append(order, n)
			}
			groups[n] = append(groups[n], o)
		}
	}
	slices.Sort(order)
	out := []Group{}
	for _, n := range order {
		out = append(out, Group{n, signalsOf(groups[n])})
	}
	return out
}
