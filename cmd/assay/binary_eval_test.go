//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestKilledEvaluation kills an evaluation repeatedly at random moments. It checks that no question
// is lost or asked twice: the store has one ended run for each, and the model wrote an answer for
// each once, except for those in progress when the process was killed.
func TestKilledEvaluation(t *testing.T) {
	t.Parallel()
	const atOnce = 3
	questions := 90
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		questions = 500
	case testing.Short():
		questions = 70
	}
	server, err := newFakeModel("openai")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	asked := regexp.MustCompile(`customer number (\d+)\?`)
	var mu sync.Mutex
	written := map[string]int{} // number of answers written, by question
	server.heard = func(prompt string) {
		m := asked.FindStringSubmatch(prompt)
		if m == nil || !strings.Contains(prompt, "You answer a question from numbered passages") || strings.Contains(prompt, "The moon approves") {
			return // the second draft contains rejected claims of the first
		}
		mu.Lock()
		written[m[1]]++
		mu.Unlock()
	}
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	var set strings.Builder
	for i := range questions {
		fmt.Fprintf(&set, "{\"question\": \"Who approves travel to customer number %d?\", \"answers\": [\"the head of the department\"], \"gold\": [{\"document\": \"handbook/travel.md\"}]}\n", i)
	}
	s.write("set.jsonl", set.String())
	command := func() *exec.Cmd {
		cmd := s.command("eval", "set.jsonl", "--out", "out", "--strategy", "static", "--parallel", fmt.Sprint(atOnce), "--yes", "--json")
		cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+server.URL+"/v1", "ASSAY_MODEL=openai/gpt-6-luna")
		return cmd
	}
	outcomes := func() int { // number of complete outcomes
		data, _ := os.ReadFile(filepath.Join(s.dir, "out", "outcomes.jsonl"))
		return strings.Count(string(data), "\n")
	}
	random := rand.New(rand.NewPCG(9, 9))
	kills := 0
	for done := outcomes(); done < questions-20; done = outcomes() {
		cmd := command()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait := done + 1 + random.IntN(20) // then during one of the following questions
		s.await(func() bool { return outcomes() >= min(wait, questions) })
		time.Sleep(time.Duration(random.IntN(12)) * time.Millisecond)
		if kills++; kills%4 == 0 { // an interrupt also ends it at once
			_ = cmd.Process.Signal(os.Interrupt)
			if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); ok && exit.ExitCode() != exitInterrupted {
				t.Errorf("Ctrl-C ended it with %v", exit)
			}
			continue
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if kills%3 == 0 { // simulate a torn last line
			tear(t, filepath.Join(s.dir, "out", "outcomes.jsonl"))
		}
	}
	out, err := command().Output()
	if err != nil {
		t.Fatalf("the last one ended with %v", err)
	}
	var report struct {
		Systems []struct {
			Outcomes []struct {
				ID    string
				Run   string
				Right bool
				Lost  string
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Systems) != 1 {
		t.Fatalf("%v: %.300s", err, out)
	}
	byRun := map[string]bool{}
	for _, o := range report.Systems[0].Outcomes {
		byRun[o.Run] = true
		if !o.Right {
			t.Errorf("question %s is lost: %s", o.ID, o.Lost)
		}
	}
	if len(byRun) != questions || len(report.Systems[0].Outcomes) != questions {
		t.Errorf("%d outcomes of %d runs, want %d", len(report.Systems[0].Outcomes), len(byRun), questions)
	}
	listed, err := s.command("runs", "--json", "--limit", "0").Output()
	var runs []struct{ ID, Question, State string }
	if err == nil {
		err = json.Unmarshal(listed, &runs)
	}
	if err != nil || len(runs) != questions {
		t.Fatalf("the store has %d runs (%v), want %d", len(runs), err, questions)
	}
	seen := map[string]bool{}
	for _, r := range runs {
		if seen[r.Question] || !byRun[r.ID] || r.State != "done" {
			t.Errorf("run %s of %q is %s", r.ID, r.Question, r.State)
		}
		seen[r.Question] = true
	}
	again := 0
	for q, n := range written {
		if n > 1 {
			again += n - 1
		}
		if n > 3 {
			t.Errorf("the answer to question %s was written %d times", q, n)
		}
	}
	t.Logf("%d kills, %d of %d answers were being written", kills, again, questions)
	if kills < 4 || again > kills*atOnce || len(written) != questions {
		t.Errorf("%d kills, %d answers written again, %d of %d questions written for", kills, again, len(written), questions)
	}
	before := server.count()
	if out, err := command().CombinedOutput(); err != nil || server.count() != before {
		t.Errorf("a whole evaluation asked %d calls more (%v): %.200s", server.count()-before, err, out)
	}
}

// tear truncates the last line of a file.
func tear(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil && len(data) > 10 {
		err = os.WriteFile(file, data[:len(data)-7], 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
