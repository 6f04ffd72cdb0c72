package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestCheck checks the simulation of two servers that answer six questions.
func TestCheck(t *testing.T) {
	if os.Getenv("ASSAY_TEST_POSTGRES") == "" || runtime.GOOS != "linux" {
		t.Skip("ASSAY_TEST_POSTGRES names no PostgreSQL server on this machine: run the test by scripts/postgres, on Linux")
	}
	if testing.Short() {
		t.Skip("it builds assay")
	}
	const questions = 6
	set := t.TempDir()
	var corpus, asked strings.Builder
	for i := range questions + warmUp {
		fmt.Fprintf(&corpus, `{"_id": "%d", "title": "Locker %d", "text": "Locker %d belongs to the team of floor %d."}`+"\n", i, i, i, i)
		fmt.Fprintf(&asked, `{"_id": "%d", "text": "Whose is locker %d?"}`+"\n", i, i)
	}
	for name, text := range map[string]string{"corpus.jsonl": corpus.String(), "queries.jsonl": asked.String()} {
		if err := os.WriteFile(filepath.Join(set, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir("../..")
	saved := filepath.Join(t.TempDir(), "runs.jsonl")
	var out strings.Builder
	args := []string{"check", "-set", set, "-servers", "2", "-questions", fmt.Sprint(questions), "-rates", "20,50", "-save", saved, "-json"}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rates) != 2 || r.Recorded <= 0 {
		t.Fatalf("%+v", r)
	}
	for _, x := range r.Rates {
		for name, f := range map[string]Figures{"measured": x.Measured, "simulated": x.Simulated} {
			if f.Throughput <= 0 || f.P50 <= 0 || f.P95 < f.P50 || f.CPU <= 0 || f.Busy <= 0 {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if x.Failed > 0 {
			t.Errorf("%d questions failed", x.Failed)
		}
	}
	traces, err := readTraces(saved)
	if err != nil || len(traces) != questions {
		t.Fatalf("%d traces, %v", len(traces), err)
	}
	for _, trace := range traces {
		kinds := map[string]bool{}
		for _, s := range trace.Steps {
			kinds[s.Kind] = true
		}
		for _, kind := range []string{kindCreate, kindEngine, "search", kindCommit, kindEnd} {
			if !kinds[kind] {
				t.Errorf("run %s has no %s: %v", trace.Run, kind, trace.Steps)
			}
		}
	}
}
