package answers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/testset"
)

// A Baseline is the stored result of an evaluation, with which later ones are compared.
type Baseline struct {
	Format  int              `json:"format"`
	Set     string           `json:"set"`
	Version string           `json:"version"` // of the program that wrote it
	Systems []BaselineSystem `json:"systems"`
}

// A BaselineSystem is the stored result of one system.
type BaselineSystem struct {
	Name    string             `json:"name"`
	Figures map[string]float64 `json:"figures"`        // over all cases
	Less    []string           `json:"less,omitempty"` // custom measures for which lower is better
	Cases   []BaselineCase     `json:"cases"`
}

// A BaselineCase is the stored result of one question.
type BaselineCase struct {
	ID       string             `json:"id"`
	Question string             `json:"question"`
	Right    bool               `json:"right"`
	Metrics  map[string]float64 `json:"metrics"`
}

// baselineFormat is the version of the file format.
const baselineFormat = 1

// BaselineOf returns the baseline of a report. The report must have its outcomes. Values are
// rounded to six digits. If gate is not nil, only the measures that it names are kept, which keeps
// the file small. Otherwise all measures are kept except times, which depend on the machine.
func BaselineOf(r Report, gate *Gate) Baseline {
	b := Baseline{Format: baselineFormat, Set: r.Set, Version: r.Version}
	keep := func(name string) bool {
		m, known := metric.Lookup(name)
		if gate != nil {
			return gate.names(name)
		}
		return !known || m.Unit != "ms"
	}
	for _, s := range r.Systems {
		bs := BaselineSystem{Name: s.Name, Figures: map[string]float64{}, Cases: []BaselineCase{}}
		for _, f := range s.Figures {
			if keep(f.Name) {
				bs.Figures[f.Name] = rounded(f.Mean)
				if _, known := metric.Lookup(f.Name); f.Less && !known {
					bs.Less = append(bs.Less, f.Name)
				}
			}
		}
		for _, o := range s.Outcomes {
			c := BaselineCase{ID: o.ID, Question: o.Question, Right: o.Right, Metrics: map[string]float64{}}
			for name, x := range o.Metrics {
				if keep(name) {
					c.Metrics[name] = rounded(x)
				}
			}
			bs.Cases = append(bs.Cases, c)
		}
		b.Systems = append(b.Systems, bs)
	}
	return b
}

func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// Write writes the baseline to a file atomically. Each question has a line of its own, so that
// diffs are readable.
func (b Baseline) Write(file string) error {
	return writeLines(file, b)
}

// writeLines writes a baseline with one line for each question.
func writeLines(file string, b Baseline) error {
	var out []byte
	add := func(format string, args ...any) { out = fmt.Appendf(out, format, args...) }
	var failed error
	line := func(v any) string {
		data, err := json.Marshal(v)
		failed = cmp.Or(failed, err)
		return string(data)
	}
	add("{\"format\": %d, \"set\": %s, \"version\": %s, \"systems\": [", b.Format, line(b.Set), line(b.Version))
	for i, s := range b.Systems {
		if i > 0 {
			add(",")
		}
		add("\n {\"name\": %s,\n  \"figures\": %s,", line(s.Name), line(s.Figures))
		if len(s.Less) > 0 {
			add("\n  \"less\": %s,", line(s.Less))
		}
		add("\n  \"cases\": [")
		for j, c := range s.Cases {
			if j > 0 {
				add(",")
			}
			add("\n   %s", line(c))
		}
		add("\n  ]}")
	}
	add("\n]}\n")
	if failed != nil {
		return failed
	}
	return writeFile(file, out, 0o644) // readable by all, because the file is kept in the repository
}

// ReadBaseline reads a baseline. A missing or malformed file is assay.ErrInvalid, and a newer
// format is assay.ErrNewer.
func ReadBaseline(file string) (Baseline, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Baseline{}, fmt.Errorf("read the baseline: %w: %w", err, assay.ErrInvalid)
	}
	if err != nil {
		return Baseline{}, err
	}
	var b Baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("read the baseline %s: %w: %w", file, err, assay.ErrInvalid)
	}
	switch {
	case b.Format > baselineFormat:
		return b, fmt.Errorf("the baseline %s has format %d; this program supports up to %d: %w", file, b.Format, baselineFormat, assay.ErrNewer)
	case b.Format < 1 || len(b.Systems) == 0:
		return b, fmt.Errorf("%s is not a baseline: %w", file, assay.ErrInvalid)
	}
	return b, nil
}

// system returns the baseline of the named system. A baseline with only one system applies to all
// systems.
func (b Baseline) system(name string) (BaselineSystem, bool) {
	for _, s := range b.Systems {
		if s.Name == name || len(b.Systems) == 1 {
			return s, true
		}
	}
	return BaselineSystem{}, false
}

// againstBaseline compares a tally with a baseline on the questions that both have.
func (t *tally) againstBaseline(b Baseline) []Paired {
	s, ok := b.system(t.name)
	if !ok {
		return nil
	}
	at := map[string]int{}
	for i, c := range t.cases {
		at[c.ID] = i
	}
	values := map[string][]float64{}
	for _, c := range s.Cases {
		i, known := at[c.ID]
		if !known || t.cases[i].Question != c.Question {
			continue
		}
		for name, x := range c.Metrics {
			if values[name] == nil {
				values[name] = slices.Repeat([]float64{math.NaN()}, len(t.cases))
			}
			values[name][i] = x
		}
	}
	return t.against("baseline", values)
}

// Differences compares the outcomes of a report with a baseline on the questions that both have, measure
// by measure, as Summarise does with SummaryOptions.Baseline. The result has the name of the system in
// the baseline; ok is false if the baseline lacks the system.
func Differences(s System, b Baseline) (all []Paired, ok bool) {
	base, ok := b.system(s.Name)
	if !ok {
		return nil, false
	}
	cases := make([]testset.Case, len(s.Outcomes))
	for i, o := range s.Outcomes {
		cases[i] = o.Case
	}
	t := newTally(s.Name, cases)
	for i, o := range s.Outcomes {
		t.add(i, o, false)
	}
	all = t.againstBaseline(b)
	for i := range all {
		all[i].Other = base.Name
	}
	return all, true
}
