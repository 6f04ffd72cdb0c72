package engine

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// TestReplayManyRuns checks that two hundred runs over Go's own documentation (forty with
// -short), with all strategies and all kinds of outcome, are replayed to the same answers.
func TestReplayManyRuns(t *testing.T) {
	t.Parallel()
	docs := filepath.Join(goRoot(t), "doc")
	if _, err := os.Stat(filepath.Join(docs, "go_spec.html")); err != nil {
		t.Logf("Go's documentation is not installed here (%v): with the handbook instead", err)
		docs = "testdata/handbook"
	}
	e := openDir(t, t.TempDir())
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{docs}}); err != nil {
		t.Fatal(err)
	}
	runs := 200
	if testing.Short() {
		runs = 40
	}
	statuses := map[assay.Status]int{}
	names := slices.DeleteFunc(strategy.Names(), func(name string) bool { return name == "managed" }) // it needs a service
	for i, question := range manyQuestions(t, e, runs) {
		req := Request{Question: question, Strategy: names[i%len(names)]}
		switch i % 10 {
		case 7:
			req.Budget.Iterations = 1
		case 8:
			req.Budget.Wall = time.Duration(i) * 50 * time.Microsecond
		}
		want, err := e.Answer(t.Context(), assay.Local(), req)
		if err != nil {
			t.Fatalf("Answer(%q): %v", question, err)
		}
		statuses[want.Status]++
		got, err := e.Replay(t.Context(), assay.Local(), want.Run)
		if err != nil {
			t.Errorf("Replay of %q: %v", question, err)
			continue
		}
		if err := compare(want, got); err != nil {
			t.Errorf("Replay of %q: %v", question, err)
		}
		if got.ElapsedMS != want.ElapsedMS || got.Usage != want.Usage {
			t.Errorf("Replay of %q took %d ms and %+v, the run %d ms and %+v", question, got.ElapsedMS, got.Usage, want.ElapsedMS, want.Usage)
		}
	}
	t.Logf("%d runs: %v", runs, statuses)
}

// manyQuestions makes n questions from the headings in e's documents. Some have an answer, some
// have several parts, and some have no answer.
func manyQuestions(t *testing.T, e *Engine, n int) []string {
	t.Helper()
	var headings []string
	for change, err := range e.content.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range change.Chunks {
			if len(c.Headings) > 0 {
				headings = append(headings, c.Headings[len(c.Headings)-1])
			}
		}
	}
	headings = slices.Compact(headings)
	questions := make([]string, n)
	for i := range questions {
		a, b := headings[i%len(headings)], headings[(7*i+3)%len(headings)]
		switch i % 5 {
		case 0:
			questions[i] = fmt.Sprintf("What is said of %s?", a)
		case 1:
			questions[i] = fmt.Sprintf("What are the rules for %s, and how are they different from %s?", a, b)
		case 2:
			questions[i] = fmt.Sprintf("How does %s work?", b)
		case 3:
			questions[i] = fmt.Sprintf("What is the difference between %s and %s?", a, b)
		case 4:
			questions[i] = fmt.Sprintf("What is the capital of country number %d?", i)
		}
	}
	return questions
}

// TestReplayNeedsNoIndex checks that Replay opens no index and makes no search.
func TestReplayNeedsNoIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := openDir(t, dir)
	ingestPaths(t, e, "testdata/handbook")
	id := ask(t, e, someQuestion).Run
	again := openDir(t, dir)
	if _, err := again.Replay(t.Context(), assay.Local(), id); err != nil {
		t.Fatal(err)
	}
	if again.index != nil || again.retriever != nil {
		t.Error("Replay opened the index")
	}
}

// TestReplayOfWhatWasChanged checks that manual changes to the databases are detected.
func TestReplayOfWhatWasChanged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change string // SQL on runs.db
		kind   error
		want   string // substring of the message
	}{
		{"a result", `UPDATE records SET payload = replace(payload, 'sufficient', 'insufficient') WHERE path = 'grade'`, assay.ErrDamaged, "grade"},
		{"a header", `UPDATE log SET header = replace(header, '"grade"', '"great"') WHERE sequence = (SELECT sequence FROM records WHERE path = 'grade')`, assay.ErrDamaged, "grade"},
		{"a record is gone", `DELETE FROM records WHERE path = 'search'`, assay.ErrDamaged, ""},
		{"a text", `UPDATE records SET payload = replace(payload, 'head of the department', 'head of the kitchen') WHERE path = 'search'`, assay.ErrDamaged, "search"},
		{"the answer", `UPDATE runs SET answer = replace(answer, 'head of the department', 'head of the kitchen')`, assay.ErrDiverged, "text"},
		{"the answer's run", `UPDATE runs SET answer = json_set(answer, '$.run', 'other')`, assay.ErrDiverged, "run"},
		{"the answer's time", `UPDATE runs SET answer = json_set(answer, '$.elapsed_ms', 77777)`, assay.ErrDiverged, "elapsed_ms"},
		{"what was searched", `UPDATE runs SET answer = json_set(answer, '$.index.coverage', 0.5)`, assay.ErrDiverged, "index"},
		{"the notes", `UPDATE runs SET answer = json_set(answer, '$.notes', json_array(json_object('kind', 'search', 'text', 'all is well')))`, assay.ErrDiverged, "notes"},
		{"an empty answer", `UPDATE runs SET answer = '{}'`, assay.ErrDiverged, "status"},
		{"no answer", `UPDATE runs SET answer = NULL`, assay.ErrDamaged, "no answer"},
		{"the state", `UPDATE progress SET state = 'active'`, assay.ErrDamaged, "active"},
		{"the question", `UPDATE runs SET question = 'Who forbids?'`, assay.ErrDamaged, "question"},
		{"the request", `UPDATE runs SET request = replace(request, 'Who approves', 'Who forbids')`, assay.ErrDiverged, "forbids"},
		{"the strategy", `UPDATE runs SET request = replace(request, '"auto"', '"multihop"')`, assay.ErrDiverged, "plan"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			e := openDir(t, dir)
			ingestPaths(t, e, "testdata/handbook")
			id := ask(t, e, someQuestion).Run
			db, err := sql.Open("sqlite", filepath.Join(e.config.Dir, "tenants", DefaultTenant, "runs.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			changed, err := db.ExecContext(t.Context(), test.change)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := changed.RowsAffected(); err != nil || n == 0 {
				t.Fatalf("%d rows changed, %v", n, err)
			}
			_, err = openDir(t, dir).Replay(t.Context(), assay.Local(), id)
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Replay: %v, want %v with %q", err, test.kind, test.want)
			}
			checkInputs(t, err)
		})
	}
}

// checkInputs checks that a divergence error holds both inputs.
func checkInputs(t *testing.T, err error) {
	t.Helper()
	var step *run.DivergenceError
	if errors.As(err, &step) && (step.Path == "" || step.Recorded == nil && step.Given == nil) {
		t.Errorf("divergence %+v has no inputs", step)
	}
	var answer *ReplayError
	if errors.As(err, &answer) && (len(answer.Stored) == 0 || len(answer.Replayed) == 0) {
		t.Errorf("divergence %+v has not both answers", answer)
	}
}

// TestCompareHeld checks that a replay compares the field Held of an answer.
func TestCompareHeld(t *testing.T) {
	t.Parallel()
	one, other := 0.5, 0.6
	if err := compare(assay.Answer{Answerability: &one}, assay.Answer{Answerability: &other}); err == nil {
		t.Error("another probability that the answer is held is no difference")
	}
	if err := compare(assay.Answer{Answerability: &one}, assay.Answer{Answerability: &one}); err != nil {
		t.Error(err)
	}
}
