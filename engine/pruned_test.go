package engine

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/sqlite"
)

// widerQuestion finds more documents of the handbook than its answer cites.
const widerQuestion = "Who approves travel to a customer by an employee?"

// TestRunOutlivesItsDocuments checks that a run stays visible to exactly those who may see the
// documents that it found, even after these are deleted and Prune has dropped their versions.
func TestRunOutlivesItsDocuments(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, acl string // acl is the sidecar of every document before its deletion; empty: none
		seen      bool
	}{
		{"for everybody", "", true},
		{"allowed by name", `{"acl": ["user:local"]}`, true},
		{"restricted to others", `{"acl": ["group:board"]}`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			docs, dir := copyHandbook(t), t.TempDir()
			e := openDir(t, dir)
			ingestPaths(t, e, docs)
			answer := ask(t, e, widerQuestion)
			paused := pause(t, e)
			removeHandbook(t, e, docs, test.acl)
			pruneLater(t, dir)
			wantPruned(t, e, answer)

			_, _, showErr := e.Run(t.Context(), assay.Local(), answer.Run)
			_, replayErr := e.Replay(t.Context(), assay.Local(), answer.Run)
			_, resumeErr := last(e.Resume(t.Context(), assay.Local(), paused))
			for name, err := range map[string]error{"show": showErr, "replay": replayErr, "resume": resumeErr} {
				switch {
				case test.seen && err != nil:
					t.Errorf("%s: %v", name, err)
				case !test.seen && (!errors.Is(err, assay.ErrNotFound) || !strings.Contains(err.Error(), "that you may no longer see")):
					t.Errorf("%s: %v, want ErrNotFound that says why", name, err)
				}
			}
		})
	}
}

// pause starts a run and cancels it after its first search.
func pause(t *testing.T, e *Engine) (id string) {
	t.Helper()
	for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: widerQuestion, NoCache: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == StepEnded && ev.Step.Kind == assay.StepSearch {
			return ev.Run
		}
	}
	t.Fatal("the run has no search")
	return ""
}

// removeHandbook writes the sidecar, if any, for every document of the handbook, and then removes
// all documents.
func removeHandbook(t *testing.T, e *Engine, docs, sidecar string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	rest := filepath.Join(docs, "rest.txt") // an empty folder is rejected
	if err := os.WriteFile(rest, []byte("Nothing else.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if sidecar == "" {
			break
		}
		if err := os.WriteFile(f+".metadata.json", []byte(sidecar), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ingestPaths(t, e, docs)
	for _, f := range files {
		if err := errors.Join(os.Remove(f), os.RemoveAll(f+".metadata.json")); err != nil {
			t.Fatal(err)
		}
	}
	ingestPaths(t, e, docs)
	for d := range e.Documents(t.Context(), assay.Principal{User: "local", Groups: []string{"board"}}) {
		if filepath.Base(d.URI) != filepath.Base(rest) {
			t.Fatalf("%s is left", d.URI)
		}
	}
}

// pruneLater prunes the data at a time when no version is kept for live runs any more.
func pruneLater(t *testing.T, dir string) {
	t.Helper()
	later := func() time.Time { return time.Now().Add(sqlite.KeepReplaced + time.Hour) }
	s, err := sqlite.Open(t.Context(), dir, sqlite.WithClock(later))
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, err := w.Prune(t.Context())
	if err := errors.Join(err, w.Close(), tenant.Close()); err != nil || n == 0 {
		t.Fatalf("Prune dropped %d versions, %v", n, err)
	}
}

// wantPruned checks that a document that the run found and did not cite is gone.
func wantPruned(t *testing.T, e *Engine, a assay.Answer) {
	t.Helper()
	records, err := e.runs.Records(t.Context(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if rec.Kind != assay.StepSearch {
			continue
		}
		for _, h := range read(rec).results.Hits {
			_, err := e.content.Version(t.Context(), h.Chunk.Document, h.Chunk.Version)
			if errors.Is(err, assay.ErrNotFound) {
				return
			}
		}
	}
	t.Fatal("every version that the run found is still there")
}

// TestPruneRuns checks that the principal's old runs are removed, and that live runs and those of
// other principals are kept.
func TestPruneRuns(t *testing.T) {
	t.Parallel()
	e := openDir(t, t.TempDir())
	ingestPaths(t, e, copyHandbook(t))
	answer := ask(t, e, widerQuestion)
	lease, err := e.runs.Acquire(t.Context(), pause(t, e))
	if err != nil {
		t.Fatal(err)
	}
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	prune := func(who assay.Principal, before time.Time, dry bool, want PrunedRuns) {
		t.Helper()
		got, err := e.PruneRuns(t.Context(), who, before, "too old", dry)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("PruneRuns = %+v, %v, want %+v", got, err, want)
		}
	}
	prune(assay.Principal{User: "stranger"}, future, false, PrunedRuns{})
	prune(assay.Local(), past, false, PrunedRuns{})
	prune(assay.Local(), future, true, PrunedRuns{Runs: 1, Live: 1})
	if _, _, err := e.Run(t.Context(), assay.Local(), answer.Run); err != nil {
		t.Errorf("after a dry run: %v", err)
	}
	w, err := e.tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prune(assay.Local(), future, false, PrunedRuns{Runs: 1, Live: 1, Writing: true})
	if _, _, err := e.Run(t.Context(), assay.Local(), answer.Run); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a pruned run: %v, want ErrNotFound", err)
	}
	if err := errors.Join(w.Close(), lease.Close()); err != nil {
		t.Fatal(err)
	}
	prune(assay.Local(), future, false, PrunedRuns{Runs: 1})
}
