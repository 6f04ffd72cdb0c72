package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
)

// A RunDiff lists how two runs differ.
type RunDiff struct {
	A      string      `json:"a"` // run ID
	B      string      `json:"b"`
	Fields []FieldDiff `json:"fields"` // first those of the requests, then those of the answers
	Steps  []StepDiff  `json:"steps"`  // in the order of A, then those of B alone
	Same   int         `json:"same_steps"`
}

// A FieldDiff is a field that two runs have with different values; one that a run does not have
// is nil.
type FieldDiff struct {
	Of   string          `json:"of"` // "request" or "answer"
	Name string          `json:"name"`
	A    json.RawMessage `json:"a,omitempty"`
	B    json.RawMessage `json:"b,omitempty"`
}

// A StepDiff is a step that differs, or that only one of the runs has: the other's is nil.
type StepDiff struct {
	Path    string   `json:"path"`
	A       *Step    `json:"a,omitempty"`
	B       *Step    `json:"b,omitempty"`
	Differs []string `json:"differs,omitempty"` // of "kind", "model", "input", "output", "error"
}

// Fields that two runs of the same question may differ in without being different.
var (
	ownOfRequest = []string{"id", "key", "earlier", "keys", "forked_from"}
	ownOfAnswer  = []string{"run", "usage", "elapsed_ms", "cached", "index"}
)

// Diff compares two runs of principal: their requests, their answers and their steps, by path.
// Readings of the clock are left out. The errors are those of Run.
func (e *Engine) Diff(ctx context.Context, principal assay.Principal, a, b string) (RunDiff, error) {
	out := RunDiff{A: a, B: b, Fields: []FieldDiff{}, Steps: []StepDiff{}}
	runA, stepsA, err := e.Run(ctx, principal, a)
	if err != nil {
		return out, err
	}
	runB, stepsB, err := e.Run(ctx, principal, b)
	if err != nil {
		return out, err
	}
	if err := out.addFields("request", runA.Request, runB.Request, ownOfRequest); err != nil {
		return out, err
	}
	answers := [2]json.RawMessage{json.RawMessage("{}"), json.RawMessage("{}")}
	for i, answer := range []*assay.Answer{runA.Answer, runB.Answer} {
		if answer == nil {
			continue
		}
		if answers[i], err = json.Marshal(answer); err != nil {
			return out, fmt.Errorf("write an answer: %w", err)
		}
	}
	if err := out.addFields("answer", answers[0], answers[1], ownOfAnswer); err != nil {
		return out, err
	}
	out.addSteps(stepsA, stepsB)
	return out, nil
}

// addFields adds the fields of two JSON objects that differ, in alphabetical order, except own.
func (d *RunDiff) addFields(of string, a, b json.RawMessage, own []string) error {
	var fields [2]map[string]json.RawMessage
	for i, data := range []json.RawMessage{a, b} {
		if err := json.Unmarshal(data, &fields[i]); err != nil {
			return fmt.Errorf("the %s of a run cannot be read: %w: %w", of, assay.ErrDamaged, err)
		}
	}
	var names []string
	for _, f := range fields {
		for name := range f {
			if !slices.Contains(own, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		x, y := fields[0][name], fields[1][name]
		if !bytes.Equal(compacted(x), compacted(y)) {
			d.Fields = append(d.Fields, FieldDiff{Of: of, Name: name, A: x, B: y})
		}
	}
	return nil
}

// compacted returns JSON without insignificant white space. Data that is no JSON is returned unchanged.
func compacted(data json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}

// addSteps adds the steps that differ.
func (d *RunDiff) addSteps(a, b []Step) {
	isClock := func(s Step) bool { return s.Kind == assay.StepClock }
	a, b = slices.DeleteFunc(slices.Clone(a), isClock), slices.DeleteFunc(slices.Clone(b), isClock)
	atB := map[string]int{}
	for i, s := range b {
		atB[s.Path] = i
	}
	inA := map[string]bool{}
	for i := range a {
		inA[a[i].Path] = true
		j, ok := atB[a[i].Path]
		if !ok {
			d.Steps = append(d.Steps, StepDiff{Path: a[i].Path, A: &a[i]})
			continue
		}
		if differs := differing(a[i], b[j]); len(differs) > 0 {
			d.Steps = append(d.Steps, StepDiff{Path: a[i].Path, A: &a[i], B: &b[j], Differs: differs})
		} else {
			d.Same++
		}
	}
	for i := range b {
		if !inA[b[i].Path] {
			d.Steps = append(d.Steps, StepDiff{Path: b[i].Path, B: &b[i]})
		}
	}
}

// differing names what two steps at the same path differ in.
func differing(a, b Step) []string {
	errorOf := func(s Step) string {
		if s.Error == nil {
			return ""
		}
		return s.Error.Kind + ": " + s.Error.Message
	}
	var out []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"kind", a.Kind == b.Kind}, {"model", a.Model == b.Model}, {"input", bytes.Equal(a.Input, b.Input)},
		{"output", bytes.Equal(a.Output, b.Output)}, {"error", errorOf(a) == errorOf(b)},
	} {
		if !part.same {
			out = append(out, part.name)
		}
	}
	return out
}
