package governance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Format is the version of the form of reports. It changes when a figure, a table or a column is
// renamed, removed or redefined; new ones do not change it.
const Format = 1

// A Report is what happened in a period.
type Report struct {
	Format int        `json:"format"`
	Tenant string     `json:"tenant,omitempty"`
	From   *time.Time `json:"from"` // of runs and acts, inclusive; nil: from the first
	To     *time.Time `json:"to"`   // exclusive; nil: to the last

	Runs      int `json:"runs"`      // questions of the period
	Measuring int `json:"measuring"` // runs of evaluations and forks, and descriptions of images; they count for traces only
	Acts      int `json:"acts"`      // acts of the period

	Figures []Figure `json:"figures"`
	Tables  []Table  `json:"tables"`
}

// A State is how a figure stands to its objective and its alert.
type State string

// The states of a figure.
const (
	Alert       State = "alert"        // beyond the alert
	Missed      State = "missed"       // beyond the objective
	Met         State = "met"          // within both
	Open        State = "open"         // it has neither
	NotMeasured State = "not_measured" // there is nothing to count
)

// A Bound is what a figure is compared with.
type Bound struct {
	Op    string  `json:"op"` // "<", "<=", ">", ">=" or "=="
	Value float64 `json:"value"`
}

func (b Bound) holds(x float64) bool {
	switch b.Op {
	case "<":
		return x < b.Value
	case "<=":
		return x <= b.Value
	case ">":
		return x > b.Value
	case ">=":
		return x >= b.Value
	}
	return x == b.Value
}

// A Figure is one number of a report.
type Figure struct {
	Name       string  `json:"name"` // stable
	Title      string  `json:"title"`
	Definition string  `json:"definition"`
	Unit       string  `json:"unit"`        // share, count, ms or micros (millionths of the currency of prices)
	Value      float64 `json:"value"`       // 0 if not measured
	Count      float64 `json:"numerator"`   // of a share or mean
	Of         float64 `json:"denominator"` // of a share or mean; of a percentile, how many values; 0: not measured

	Objective *Bound `json:"objective"` // the goal; nil: none
	Alert     *Bound `json:"alert"`     // look into it if this holds; nil: never
	State     State  `json:"state"`

	// Runs are the IDs of the runs behind the figure: those that its definition names, sorted.
	Runs []string `json:"runs"`
}

// judged returns f with its state.
func (f Figure) judged() Figure {
	switch {
	case f.Of == 0 && f.Unit != "count":
		f.State = NotMeasured
	case f.Alert != nil && f.Alert.holds(f.Value):
		f.State = Alert
	case f.Objective != nil && !f.Objective.holds(f.Value):
		f.State = Missed
	case f.Objective != nil || f.Alert != nil:
		f.State = Met
	default:
		f.State = Open
	}
	f.Runs = sortedSet(f.Runs)
	return f
}

// A Table has the rows behind some figures.
type Table struct {
	Name       string   `json:"name"` // stable
	Title      string   `json:"title"`
	Definition string   `json:"definition"`
	Columns    []string `json:"columns"` // stable
	Rows       [][]any  `json:"rows"`    // string, int, float64, bool, or []string for run IDs; nil: not known
}

func (t *Table) add(cells ...any) {
	if len(cells) != len(t.Columns) {
		panic(fmt.Sprintf("governance: table %s: %d cells in %d columns", t.Name, len(cells), len(t.Columns)))
	}
	t.Rows = append(t.Rows, cells)
}

// Table returns the table of that name, or an empty one.
func (r Report) Table(name string) Table {
	for _, t := range r.Tables {
		if t.Name == name {
			return t
		}
	}
	return Table{}
}

// Figure returns the figure of that name, or an empty one.
func (r Report) Figure(name string) Figure {
	for _, f := range r.Figures {
		if f.Name == name {
			return f
		}
	}
	return Figure{}
}

// Alerts returns the figures that are beyond their alert.
func (r Report) Alerts() []Figure {
	return slices.DeleteFunc(slices.Clone(r.Figures), func(f Figure) bool { return f.State != Alert })
}

// sortedSet returns the distinct texts in order. It is never nil.
func sortedSet(texts []string) []string {
	out := append([]string{}, texts...)
	slices.Sort(out)
	return slices.Compact(out)
}

// A spread is a list of numbers with the runs that they are of.
type spread struct {
	values []float64
	runs   []string
}

func (s *spread) add(x float64, run string) {
	s.values, s.runs = append(s.values, x), append(s.runs, run)
}

func (s spread) sum() (sum float64) {
	for _, x := range s.values {
		sum += x
	}
	return sum
}

// mean returns 0 for no values.
func (s spread) mean() float64 {
	if len(s.values) == 0 {
		return 0
	}
	return s.sum() / float64(len(s.values))
}

// rank returns a percentile by nearest rank: the smallest value that is not under the share of all. It
// is 0 for no values.
func (s spread) rank(share float64) float64 {
	if len(s.values) == 0 {
		return 0
	}
	xs := slices.Sorted(slices.Values(s.values))
	return xs[max(0, int(math.Ceil(share*float64(len(xs))))-1)]
}

// above returns the runs with a value that passes.
func (s spread) where(pass func(float64) bool) []string {
	var runs []string
	for i, x := range s.values {
		if pass(x) {
			runs = append(runs, s.runs[i])
		}
	}
	return runs
}

// share returns a share's figure. Value is Count / Of.
func share(f Figure, count, of int) Figure {
	f.Unit, f.Count, f.Of = "share", float64(count), float64(of)
	if of > 0 {
		f.Value = f.Count / f.Of
	}
	return f.judged()
}

// number returns the figure of a count.
func number(f Figure, count int) Figure {
	f.Unit, f.Value, f.Count = "count", float64(count), float64(count)
	return f.judged()
}

// round removes the noise of floating point from a number that is shown.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// month and week name the periods of tables. Weeks are those of ISO 8601. Both are in UTC.
func month(t time.Time) string { return t.UTC().Format("2006-01") }

func week(t time.Time) string {
	year, n := t.UTC().ISOWeek()
	return fmt.Sprintf("%04d-W%02d", year, n)
}

// keysOf returns the keys of a map in order.
func keysOf[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
