package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// client has a connection for each question.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}

// ask asks a server, calls seen for each event, and returns how long the answer took in milliseconds.
func ask(ctx context.Context, url, question string, seen func(engine.Event)) (float64, error) {
	body, err := json.Marshal(engine.Request{Question: question, NoCache: true, Budget: assay.Budget{Wall: time.Hour}})
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/api/v1/ask", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, errors.New(resp.Status)
	}
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	name := ""
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0, fmt.Errorf("the stream broke off: %w", err)
		}
		if rest, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			name = strings.TrimSpace(string(rest))
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case !ok:
		case name == "answer":
			return milliseconds(time.Since(began)), nil
		case name == "error":
			return 0, fmt.Errorf("an error instead of an answer: %s", data)
		case seen != nil:
			var ev engine.Event
			if err := json.Unmarshal(data, &ev); err != nil {
				return 0, err
			}
			seen(ev)
		}
	}
}

// The kinds of what a recorded question does between its steps.
const (
	kindCreate = "create" // until the run is stored
	kindEngine = "engine" // between two steps
	kindCommit = "commit" // of a step to the journal
	kindEnd    = "end"    // from the last step to the answer, with its commit
)

// A recorder makes a trace of a question that is alone. It reads the clocks at each event.
type recorder struct {
	clocks clocks
	at     time.Time
	was    clock
	trace  Trace
	end    float64
}

// record asks a question and returns its trace. The time until the next question, in which the servers do what
// is left to do, is pause.
func (r *rig) record(ctx context.Context, p *process, question string, pause time.Duration) (Trace, error) {
	clocks, err := r.clocks(p)
	if err != nil {
		return Trace{}, err
	}
	rec := recorder{clocks: clocks}
	err = r.recorded.observed(clocks, func() error {
		rec.at, rec.was = time.Now(), clocks.read()
		_, err := ask(ctx, p.url, question, rec.event)
		rec.interval(kindEnd, 0)
		return err
	})
	if err != nil {
		return Trace{}, err
	}
	time.Sleep(pause)
	rec.trace.After = rec.clocks.read().minus(rec.was).CPU
	rec.trace.MS = rec.end
	return rec.trace, nil
}

// event ends an interval.
func (r *recorder) event(ev engine.Event) {
	switch ev.Kind {
	case engine.RunStarted:
		r.trace.Run = ev.Run
		r.interval(kindCreate, 0)
	case engine.StepStarted:
		r.interval(kindEngine, 0)
	case engine.StepEnded:
		r.interval(string(ev.Step.Kind), milliseconds(time.Since(ev.Step.Started.Add(ev.Step.Elapsed))))
	}
}

// interval adds the time since the last event to the trace: a step, and its commit in the last milliseconds.
func (r *recorder) interval(kind string, commit float64) {
	now, is := time.Now(), r.clocks.read()
	took, used := milliseconds(now.Sub(r.at)), is.minus(r.was)
	r.at, r.was = now, is
	commit = min(max(commit, 0), took)
	r.add(kind, took, used, 1-commit/took)
	r.add(kindCommit, took, used, commit/took)
}

// add adds a share of an interval as a step. While threads wait for a core that another program has, all others of
// the step are taken to wait too: had they been alone, each millisecond of processor time and of delay would
// have been one of processor time.
func (r *recorder) add(kind string, took float64, used clock, share float64) {
	took, used.CPU, used.Delay = took*share, used.CPU*share, used.Delay*share
	if took <= 0 {
		return
	}
	s := Step{Kind: kind, At: r.end, MS: took}
	if used.CPU > 0 {
		threads := (used.CPU + used.Delay) / took
		s.CPU, s.Threads = used.CPU, max(threads, 1)
		s.MS = took*max(0, 1-threads) + s.CPU/s.Threads
	}
	r.trace.Steps = append(r.trace.Steps, s)
	r.end = s.At + s.MS
}
