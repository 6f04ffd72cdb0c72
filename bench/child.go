package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// A childTask is a task for a separate process, so that its memory and its start can be measured
// alone. It is passed as JSON in the second argument, and its result is JSON on standard output.
type childTask struct {
	Do         string // "build" or "first"
	Corpus     string // path
	Chunks     int    // number of chunks of the corpus; see prefix
	Vectors    string // path; "": none
	Dimensions int
	Dir        string // of the index
	Query      string // of "first"
	Started    int64  // start time by the parent; Unix time in nanoseconds
}

// A buildResult holds the cost of a build.
type buildResult struct {
	ReadCPU  time.Duration // reading the source alone, included in the others
	Flush    time.Duration // until all was durable and searchable; wall
	Settle   time.Duration // from then until all merges were done; wall
	CPU      time.Duration // of both
	Size     int64         // bytes on disk
	PeakAnon int64         // bytes of anonymous memory, without mapped files; 0: not known
	PeakHeap int64         // bytes of Go objects
}

// A firstResult holds the time that a fresh process takes to answer.
type firstResult struct {
	SinceStart time.Duration // of the process, to the answer
	Open       time.Duration // opening the index
	Search     time.Duration // the first search
	Next       time.Duration // repeating the first search
	Hits       int
}

// childCommand is the first argument of a child process.
const childCommand = "child"

// runChild runs the task in a separate process and decodes its result.
func runChild(ctx context.Context, t childTask, result any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	t.Started = time.Now().UnixNano()
	task, err := json.Marshal(t)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, childCommand, string(task))
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s in a process of its own: %w", t.Do, err)
	}
	return json.Unmarshal(out.Bytes(), result)
}

// beChild runs a task in this process and writes its result.
func beChild(ctx context.Context, task string) error {
	var t childTask
	if err := json.Unmarshal([]byte(task), &t); err != nil {
		return err
	}
	whole, err := mapCorpus(t.Corpus)
	if err != nil {
		return err
	}
	var vectors *vectorSet
	if t.Vectors != "" {
		if vectors, err = openVectors(t.Vectors, t.Dimensions); err != nil {
			return err
		}
	}
	s := newSource(whole.prefix(t.Chunks), vectors)
	var result any
	switch t.Do {
	case "build":
		result, err = t.build(ctx, s)
	case "first":
		result, err = t.first(ctx, s)
	default:
		err = fmt.Errorf("there is no task %q", t.Do)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func (t childTask) build(ctx context.Context, s *source) (r buildResult, err error) {
	before := cpuTime()
	for _, err := range s.Changes(ctx, 0) {
		if err != nil {
			return r, err
		}
	}
	r.ReadCPU = cpuTime() - before
	e, err := openAssay(ctx, t.Dir, s)
	if err != nil {
		return r, err
	}
	memory := watchMemory()
	before = cpuTime()
	began := time.Now()
	if err := e.Flush(ctx); err != nil {
		return r, err
	}
	r.Flush = time.Since(began)
	if err := e.Settle(ctx); err != nil {
		return r, err
	}
	r.Settle = time.Since(began) - r.Flush
	r.CPU = cpuTime() - before
	memory.end()
	r.PeakAnon, r.PeakHeap = memory.anonymous, memory.heap
	if err := e.Close(); err != nil {
		return r, err
	}
	r.Size, err = folderSize(t.Dir)
	return r, err
}

func (t childTask) first(ctx context.Context, s *source) (r firstResult, err error) {
	began := time.Now()
	searcher, err := index.Open(ctx, t.Dir, s)
	if err != nil {
		return r, err
	}
	r.Open = time.Since(began)
	for _, took := range []*time.Duration{&r.Search, &r.Next} {
		began = time.Now()
		found, err := searcher.Search(ctx, assay.Local().Access(), assay.Query{Text: t.Query, Limit: 50})
		if err != nil {
			return r, err
		}
		*took = time.Since(began)
		r.Hits = len(found.Hits)
		if r.SinceStart == 0 {
			r.SinceStart = time.Since(time.Unix(0, t.Started))
		}
	}
	return r, searcher.Close()
}
