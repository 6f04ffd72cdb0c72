package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/sqlite"
)

// A Trace is what one run did. A file has one per line, in JSON.
type Trace struct {
	Run   string  `json:"run,omitempty"`
	MS    float64 `json:"ms"`              // from its start to the end of its last step
	After float64 `json:"after,omitempty"` // processor time after its answer
	Bytes int64   `json:"bytes,omitempty"`
	Steps []Step  `json:"steps"`
}

// A Step is a step of a run. Steps that overlap ran at once.
type Step struct {
	Kind  string  `json:"kind"`            // of assay.StepKind
	At    float64 `json:"at"`              // milliseconds after the start of the run
	MS    float64 `json:"ms"`              // how long it took
	Model string  `json:"model,omitempty"` // that it called
	Bytes int64   `json:"bytes,omitempty"` // of its record in the journal, without long values

	// CPU is the processor time of the step in milliseconds, and Threads how many cores it uses at once while
	// it computes and has them alone. The rest of MS it waits for something else. 0: it computes all the time, on one.
	CPU     float64 `json:"cpu,omitempty"`
	Threads float64 `json:"threads,omitempty"`
}

// work returns what the step asks of a resource.
func (s Step) work(server int) work {
	if s.CPU == 0 || s.Threads == 0 {
		return timed(s.MS, server)
	}
	return work{s.MS, s.CPU, s.Threads, server}
}

// record writes the traces of the finished runs of a tenant.
func record(ctx context.Context, dir, tenant string, limit int, out io.Writer) (err error) {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("-data: %w", err)
	}
	s, err := sqlite.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t, err := s.Tenant(ctx, tenant)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	runs, err := t.Runs().List(ctx, limit)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	for _, r := range runs {
		if r.State != assay.RunDone {
			continue
		}
		records, err := t.Runs().Records(ctx, r.ID)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(w).Encode(traceOf(r.ID, records)); err != nil {
			return err
		}
	}
	return w.Flush()
}

// traceOf returns the trace of a journal.
func traceOf(id string, records []assay.Record) Trace {
	t := Trace{Run: id, Steps: []Step{}}
	var begin time.Time
	for _, r := range records {
		if begin.IsZero() || r.Started.Before(begin) {
			begin = r.Started
		}
	}
	for _, r := range records {
		s := Step{
			Kind: string(r.Kind), At: milliseconds(r.Started.Sub(begin)), MS: milliseconds(r.Elapsed), Model: r.Model,
			Bytes: int64(len(r.Bytes) + len(r.Input) + len(r.Output)),
		}
		t.MS = max(t.MS, s.At+s.MS)
		t.Bytes += s.Bytes
		t.Steps = append(t.Steps, s)
	}
	return t
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// readTraces reads a file of traces.
func readTraces(path string) ([]Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("-trace: %w", err)
	}
	defer f.Close()
	return parseTraces(f)
}

func parseTraces(r io.Reader) ([]Trace, error) {
	var all []Trace
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	for {
		var t Trace
		err := d.Decode(&t)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("trace %d: %w", len(all)+1, err)
		}
		for _, s := range t.Steps {
			if !(s.At >= 0) || !(s.MS >= 0) || !(s.CPU >= 0) || !(s.Threads >= 0) || s.Kind == "" {
				return nil, fmt.Errorf("trace %d: a step of kind %q at %v for %v ms", len(all)+1, s.Kind, s.At, s.MS)
			}
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no trace in the file")
	}
	return all, nil
}

// A stage is a part of a run whose steps run at once, after a time in which only the server works.
type stage struct {
	before float64 // milliseconds
	steps  []Step
}

// stages divides a run. What is not in a step is time of the server.
func (t Trace) stages() (all []stage, after float64) {
	steps := slices.Clone(t.Steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	end := 0.0
	for _, s := range steps {
		if n := len(all); n == 0 || s.At >= end {
			all = append(all, stage{before: s.At - end})
		}
		last := &all[len(all)-1]
		last.steps = append(last.steps, s)
		end = max(end, s.At+s.MS)
	}
	return all, max(t.MS-end, 0)
}
