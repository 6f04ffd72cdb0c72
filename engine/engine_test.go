package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// open returns an engine on a new data directory with the handbook in it.
func open(t *testing.T) *Engine {
	t.Helper()
	e := openDir(t, t.TempDir())
	ingestPaths(t, e, "testdata/handbook")
	return e
}

func openDir(t *testing.T, dir string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func ingestPaths(t *testing.T, e *Engine, paths ...string) {
	t.Helper()
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: paths})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Skipped) > 0 {
		t.Fatalf("skipped: %v", report.Skipped)
	}
}

// someQuestion is a question that the handbook answers.
const someQuestion = "Who approves travel to a customer?"

func ask(t *testing.T, e *Engine, question string) assay.Answer {
	t.Helper()
	answer, err := e.Answer(t.Context(), assay.Local(), Request{Question: question})
	if err != nil {
		t.Fatalf("Answer(%q): %v", question, err)
	}
	return answer
}

// A spy counts searches and can delay them.
type spy struct {
	searches atomic.Int64
	before   func(ctx context.Context, q assay.Query) error // may be nil
}

// spied is a retriever under a spy.
type spied struct {
	assay.Retriever
	spy *spy
}

func (s spied) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	s.spy.searches.Add(1)
	if s.spy.before != nil {
		if err := s.spy.before(ctx, q); err != nil {
			return assay.Results{}, err
		}
	}
	return s.Retriever.Retrieve(ctx, access, q)
}

// spyOn puts a spy into e.
func spyOn(e *Engine, s *spy) {
	e.wrap = func(r assay.Retriever) (assay.Retriever, error) { return spied{r, s}, nil }
}

// watch puts a spy into e.
func watch(t *testing.T, e *Engine, before func(context.Context, assay.Query) error) *spy {
	t.Helper()
	if _, err := e.search(t.Context()); err != nil { // opens the index
		t.Fatal(err)
	}
	s := &spy{before: before}
	spyOn(e, s)
	return s
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	e := open(t)
	a := ask(t, e, someQuestion)
	if len(a.Citations) == 0 || !strings.Contains(a.Text, "approved by the head of the department") {
		t.Fatalf("answer = %+v, want the head of the department", a)
	}
	for _, c := range a.Citations {
		d, err := e.content.Version(t.Context(), c.Document, c.Version)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Text[c.Start:c.End]; got != c.Quote {
			t.Errorf("citation [%d]: text at [%d, %d) is %q, quote is %q", c.Number, c.Start, c.End, got, c.Quote)
		}
	}
	if a.Run == "" || a.Usage.Searches == 0 {
		t.Errorf("run = %q, usage = %+v, want both set", a.Run, a.Usage)
	}
	stored, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&a, stored.Answer); diff != "" {
		t.Errorf("stored answer (-returned +stored):\n%s", diff)
	}
	if stored.State != assay.RunDone || len(steps) == 0 || len(steps) != stored.Steps {
		t.Errorf("run is %s with %d steps of %d, want done with all", stored.State, len(steps), stored.Steps)
	}
}

func TestAnswerNotFound(t *testing.T) {
	t.Parallel()
	a := ask(t, open(t), "What is the boiling point of tungsten?")
	if a.Status != assay.NotFound || len(a.Claims)+len(a.Citations) > 0 || len(a.Searched) == 0 {
		t.Errorf("answer = %+v, want not_found, no claims, and what was searched", a)
	}
}

// TestAnswerListsAreNeverNull checks that no list in the JSON of an answer is null.
func TestAnswerListsAreNeverNull(t *testing.T) {
	t.Parallel()
	e := open(t)
	for _, a := range []assay.Answer{withLists(assay.Answer{}), ask(t, e, someQuestion), ask(t, e, "What is the boiling point of tungsten?")} {
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "null") {
			t.Errorf("answer has a null: %s", data)
		}
	}
}

func TestAskRefusesBadRequests(t *testing.T) {
	t.Parallel()
	e := open(t)
	filter, err := assay.ParseFilter(`nosuchkey = "x"`)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		req  Request
		want string // substring of the message
	}{
		{"no question", Request{}, "empty"},
		{"blank question", Request{Question: " \n\t "}, "empty"},
		{"a megabyte", Request{Question: strings.Repeat("why ", 1<<18)}, "longer than 8192 bytes"},
		{"not UTF-8", Request{Question: "caf\xe9?"}, "UTF-8"},
		{"unknown strategy", Request{Question: "x?", Strategy: "magic"}, `"magic"`},
		{"unknown collection", Request{Question: "x?", Collections: []string{"nowhere"}}, `"nowhere"`},
		{"unknown filter key", Request{Question: "travel?", Filter: filter}, "nosuchkey"},
		{"negative budget", Request{Question: "x?", Budget: assay.Budget{Wall: -1}}, "budget.wall_ns is negative (-1ns), want 0 to 168h0m0s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := e.Answer(t.Context(), assay.Local(), test.req)
			if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want ErrInvalid with %q", err, test.want)
			}
		})
	}
	runs, err := e.Runs(t.Context(), assay.Local(), 0)
	if err != nil || len(runs) > 0 {
		t.Errorf("runs = %v, %v: a request that was refused is stored", runs, err)
	}
}

func TestNobodySeesNothing(t *testing.T) {
	t.Parallel()
	e := open(t)
	a, err := e.Answer(t.Context(), assay.Principal{}, Request{Question: someQuestion})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.NotFound || len(a.Closest) > 0 {
		t.Errorf("nobody gets %+v", a)
	}
	for range e.Documents(t.Context(), assay.Principal{}) {
		t.Error("nobody sees a document")
	}
}

func TestAskEvents(t *testing.T) {
	t.Parallel()
	e := open(t)
	var kinds []EventKind
	open := map[string]bool{}
	for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: someQuestion}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Run == "" {
			t.Errorf("%s event without a run", ev.Kind)
		}
		kinds = append(kinds, ev.Kind)
		switch ev.Kind {
		case StepStarted:
			open[ev.Step.Path] = true
		case StepEnded:
			if !open[ev.Step.Path] {
				t.Errorf("%s ended before it started", ev.Step.Path)
			}
			delete(open, ev.Step.Path)
			checkDetails(t, ev)
		}
	}
	if len(open) > 0 {
		t.Errorf("steps that never ended: %v", open)
	}
	if kinds[0] != RunStarted || kinds[len(kinds)-1] != RunEnded || slices.Contains(kinds[:len(kinds)-1], RunEnded) {
		t.Errorf("kinds = %v, want the run first and the answer last", kinds)
	}
}

// checkDetails checks that the event of an ended step has its results.
func checkDetails(t *testing.T, ev Event) {
	t.Helper()
	set := map[assay.StepKind]bool{
		assay.StepPlan:   ev.Plan != nil,
		assay.StepSearch: ev.Query != nil && ev.Results != nil,
		assay.StepGrade:  ev.Grade != nil,
		assay.StepVerify: len(ev.Verdicts) > 0,
	}
	if ok, known := set[ev.Step.Kind]; known && !ok {
		t.Errorf("step %s of kind %s has no details", ev.Step.Path, ev.Step.Kind)
	}
	if ev.Step.Summary == "" {
		t.Errorf("step %s has no summary", ev.Step.Path)
	}
}

// TestAskBreakAndResume checks that breaking out of the loop cancels a run, and that Resume
// continues it.
func TestAskBreakAndResume(t *testing.T) {
	t.Parallel()
	e := open(t)
	want := ask(t, e, someQuestion)
	for n := 1; ; n++ {
		id, events := "", 0
		for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: someQuestion, NoCache: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if id = ev.Run; ev.Kind == RunEnded {
				return
			}
			if events++; events == n {
				break
			}
		}
		if err := compare(want, resumed(t, e, id)); err != nil {
			t.Errorf("resume after %d events: %v", n, err)
		}
	}
}

// last returns the answer or error of a stream.
func last(events iter.Seq2[Event, error]) (answer assay.Answer, err error) {
	for ev, e := range events {
		if err = e; ev.Kind == RunEnded {
			answer = *ev.Answer
		}
	}
	return answer, err
}

// resumed resumes a run unless it has finished, and returns its answer. It checks that no step in
// the journal is repeated.
func resumed(t *testing.T, e *Engine, id string) assay.Answer {
	t.Helper()
	r, steps, err := e.Run(t.Context(), assay.Local(), id)
	if err != nil {
		t.Fatal(err)
	}
	if r.Answer != nil {
		return *r.Answer
	}
	finished := map[string]bool{}
	for _, s := range steps {
		finished[s.Path] = true
	}
	for ev, err := range e.Resume(t.Context(), assay.Local(), id) {
		switch {
		case err != nil:
			t.Fatalf("resume after %d steps: %v", len(steps), err)
		case ev.Kind == RunEnded:
			return *ev.Answer
		case ev.Step != nil && finished[ev.Step.Path] && !ev.Step.Replayed:
			t.Errorf("step %s was finished and is done again", ev.Step.Path)
		}
	}
	t.Fatal("resume ended without an answer")
	return assay.Answer{}
}

func TestAskCancelled(t *testing.T) {
	t.Parallel()
	e := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	spy := watch(t, e, func(context.Context, assay.Query) error { cancel(); return nil })
	_, err := e.Answer(ctx, assay.Local(), Request{Question: someQuestion})
	var stopped *RunError
	if !errors.As(err, &stopped) || !stopped.Resumable || !errors.Is(err, context.Canceled) {
		t.Fatalf("error = %v, want a resumable RunError of context.Canceled", err)
	}
	r, _, err := e.Run(t.Context(), assay.Local(), stopped.Run)
	if err != nil || r.State != assay.RunActive || r.Live {
		t.Errorf("run = %+v, %v, want it active and not live", r, err)
	}
	spy.before = nil
	if _, err := last(e.Resume(t.Context(), assay.Local(), stopped.Run)); err != nil {
		t.Errorf("resume: %v", err)
	}
	if _, err := last(e.Resume(t.Context(), assay.Local(), stopped.Run)); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("resume of a run that is done: %v, want ErrInvalid", err)
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	e := open(t)
	watch(t, e, func(context.Context, assay.Query) error { return errors.New("the index is on fire") })
	_, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
	var failed *RunError
	if !errors.As(err, &failed) || failed.Resumable {
		t.Fatalf("error = %v, want a RunError that is not resumable", err)
	}
	r, steps, err := e.Run(t.Context(), assay.Local(), failed.Run)
	if err != nil || r.State != assay.RunFailed || !strings.Contains(r.Error, "on fire") || r.Answer != nil {
		t.Errorf("run = %+v, %v, want it failed with the error", r, err)
	}
	if n := len(steps); n == 0 || steps[n-1].Error == nil || !strings.Contains(steps[n-1].Summary, "on fire") {
		t.Errorf("steps = %+v, want the last with the error", steps)
	}
	if _, err := e.Replay(t.Context(), assay.Local(), failed.Run); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("replay: %v, want ErrInvalid", err)
	}
}

// TestResumeLiveRun checks that no other process can drive a live run.
func TestResumeLiveRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, other := openDir(t, dir), openDir(t, dir)
	ingestPaths(t, e, "testdata/handbook")
	searching, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	watch(t, e, func(context.Context, assay.Query) error {
		once.Do(func() { close(searching) })
		<-goOn
		return nil
	})
	ended := make(chan error, 1)
	go func() {
		_, err := e.Answer(context.Background(), assay.Local(), Request{Question: someQuestion})
		ended <- err
	}()
	<-searching
	runs, err := other.Runs(t.Context(), assay.Local(), 1)
	if err != nil || len(runs) != 1 || !runs[0].Live {
		t.Fatalf("runs = %+v, %v, want one that is live", runs, err)
	}
	if _, err := last(other.Resume(t.Context(), assay.Local(), runs[0].ID)); !errors.Is(err, assay.ErrLeased) {
		t.Errorf("resume of a live run: %v, want ErrLeased", err)
	}
	if err := other.DeleteRun(t.Context(), assay.Local(), runs[0].ID, ""); !errors.Is(err, assay.ErrLeased) {
		t.Errorf("delete of a live run: %v, want ErrLeased", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Errorf("the live run: %v", err)
	}
}

func TestRunsBelongToTheirPrincipal(t *testing.T) {
	t.Parallel()
	e := open(t)
	id := ask(t, e, someQuestion).Run
	for _, stranger := range []assay.Principal{{}, {User: "eve"}, {User: "eve", Groups: []string{"local"}}} {
		if runs, err := e.Runs(t.Context(), stranger, 0); err != nil || len(runs) > 0 {
			t.Errorf("Runs(%+v) = %v, %v, want none", stranger, runs, err)
		}
		_, _, showErr := e.Run(t.Context(), stranger, id)
		_, replayErr := e.Replay(t.Context(), stranger, id)
		_, resumeErr := last(e.Resume(t.Context(), stranger, id))
		deleteErr := e.DeleteRun(t.Context(), stranger, id, "")
		_, _, noneErr := e.Run(t.Context(), stranger, "nosuchrun")
		for name, err := range map[string]error{"show": showErr, "replay": replayErr, "resume": resumeErr, "delete": deleteErr} {
			if !errors.Is(err, assay.ErrNotFound) {
				t.Errorf("%s by %+v: %v, want ErrNotFound", name, stranger, err)
			}
			if got, want := fmt.Sprint(err), strings.ReplaceAll(fmt.Sprint(noneErr), "nosuchrun", id); got != want {
				t.Errorf("%s by %+v says %q; of a run that does not exist %q", name, stranger, got, want)
			}
		}
	}
	if err := e.DeleteRun(t.Context(), assay.Local(), id, ""); err != nil {
		t.Errorf("delete by its owner: %v", err)
	}
	if _, _, err := e.Run(t.Context(), assay.Local(), id); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a deleted run: %v, want ErrNotFound", err)
	}
}

// copyHandbook copies the handbook to a temporary folder that the test may change.
func copyHandbook(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "handbook")
	if err := os.CopyFS(dir, os.DirFS("testdata/handbook")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // one that has just changed gets another fingerprint than one that has not
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAccessIsCheckedAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(docs string) error
		seen   bool // whether the run is visible afterwards
	}{
		{"nothing", func(string) error { return nil }, true},
		{"another version", func(docs string) error {
			return os.WriteFile(filepath.Join(docs, "travel.md"), []byte("# Travel\n\nNobody travels.\n"), 0o600)
		}, true},
		{"deleted, last version kept", func(docs string) error {
			return os.Remove(filepath.Join(docs, "travel.md"))
		}, true},
		{"allowed by name", func(docs string) error {
			return os.WriteFile(filepath.Join(docs, "travel.md.metadata.json"), []byte(`{"acl": ["user:local"]}`), 0o600)
		}, true},
		{"restricted to others", func(docs string) error {
			return os.WriteFile(filepath.Join(docs, "travel.md.metadata.json"), []byte(`{"acl": ["group:board"]}`), 0o600)
		}, false},
		{"a new version, restricted to others", func(docs string) error {
			return errors.Join(
				os.WriteFile(filepath.Join(docs, "travel.md"), []byte("# Travel\n\nNobody travels.\n"), 0o600),
				os.WriteFile(filepath.Join(docs, "travel.md.metadata.json"), []byte(`{"acl": ["group:board"]}`), 0o600))
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			docs := copyHandbook(t)
			e := openDir(t, t.TempDir())
			ingestPaths(t, e, docs)
			id := ask(t, e, someQuestion).Run
			if err := test.change(docs); err != nil {
				t.Fatal(err)
			}
			ingestPaths(t, e, docs)
			_, _, showErr := e.Run(t.Context(), assay.Local(), id)
			_, replayErr := e.Replay(t.Context(), assay.Local(), id)
			for name, err := range map[string]error{"show": showErr, "replay": replayErr} {
				switch {
				case test.seen && err != nil:
					t.Errorf("%s: %v", name, err)
				case !test.seen && (!errors.Is(err, assay.ErrNotFound) || !strings.Contains(err.Error(), "that you may no longer see")):
					t.Errorf("%s: %v, want ErrNotFound that says why", name, err)
				case !test.seen && strings.Contains(err.Error(), "travel"):
					t.Errorf("%s: %v tells of the document", name, err)
				}
			}
		})
	}
}

// TestHiddenCollection checks that a collection without visible documents is not revealed.
func TestHiddenCollection(t *testing.T) {
	t.Parallel()
	docs := copyHandbook(t)
	if err := os.WriteFile(filepath.Join(docs, "travel.md.metadata.json"), []byte(`{"acl": ["group:board"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	e := openDir(t, t.TempDir())
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{filepath.Join(docs, "travel.md")}, Collection: "board"}); err != nil {
		t.Fatal(err)
	}
	member := assay.Principal{User: "ann", Groups: []string{"board"}}
	q := assay.Query{Text: "travel", Collections: []string{"board"}, Limit: 1}
	if found, err := e.Search(t.Context(), member, q); err != nil || len(found.Hits) != 1 {
		t.Errorf("a member finds %d hits, %v", len(found.Hits), err)
	}
	_, hidden := e.Search(t.Context(), assay.Local(), q)
	q.Collections = []string{"nowhere"}
	_, none := e.Search(t.Context(), assay.Local(), q)
	if !errors.Is(hidden, assay.ErrInvalid) || strings.ReplaceAll(hidden.Error(), "board", "nowhere") != none.Error() {
		t.Errorf("a hidden collection: %v; one that is not there: %v", hidden, none)
	}
}

// TestAccessFailsClosed checks that a run is hidden if the results of one of its searches cannot
// be decoded.
func TestAccessFailsClosed(t *testing.T) {
	t.Parallel()
	e := open(t)
	records := []assay.Record{{Kind: assay.StepSearch, Path: "search", Output: []byte(`{"hits": 3}`)}}
	err := e.checkAccess(t.Context(), assay.Local().Access(), assay.Run{}, records)
	if !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("checkAccess = %v, want ErrDamaged", err)
	}
}

// TestAskConsumerPanics checks that a panicking consumer leaves no goroutine running.
func TestAskConsumerPanics(t *testing.T) {
	t.Parallel()
	e := open(t)
	id := ""
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		for ev := range e.Ask(t.Context(), assay.Local(), Request{Question: someQuestion}) {
			id = ev.Run
			panic("consumer")
		}
	}()
	if a, err := last(e.Resume(t.Context(), assay.Local(), id)); err != nil || a.Status != assay.Answered {
		t.Errorf("resume = %+v, %v; want the answer", a, err)
	}
}

// TestResumeWithOtherGroups checks that Resume fails if the principal's groups have changed,
// because the principal may no longer see what the run read.
func TestResumeWithOtherGroups(t *testing.T) {
	t.Parallel()
	e := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	watch(t, e, func(context.Context, assay.Query) error { cancel(); return nil })
	before := assay.Principal{User: "ann", Groups: []string{"board"}}
	_, err := e.Answer(ctx, before, Request{Question: someQuestion})
	var stopped *RunError
	if !errors.As(err, &stopped) {
		t.Fatal(err)
	}
	_, err = last(e.Resume(t.Context(), assay.Principal{User: "ann"}, stopped.Run))
	if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("resume: %v, want ErrInvalid", err)
	}
}

// TestAskWhileIngesting checks that concurrent questions are answered during an ingest.
func TestAskWhileIngesting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, writer := openDir(t, dir), openDir(t, dir)
	docs := copyHandbook(t)
	ingestPaths(t, e, docs)
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for range 5 {
				if _, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion}); err != nil {
					t.Errorf("Answer: %v", err)
				}
			}
		})
	}
	for i := range 10 {
		name := filepath.Join(docs, fmt.Sprintf("note%d.md", i))
		if err := os.WriteFile(name, fmt.Appendf(nil, "# Note %d\n\nTravel note number %d.\n", i, i), 0o600); err != nil {
			t.Error(err)
		}
		if _, err := writer.Ingest(t.Context(), IngestRequest{Paths: []string{docs}}); err != nil {
			t.Errorf("Ingest: %v", err)
		}
	}
	askers.Wait()
}

func TestIngestLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, other := openDir(t, dir), openDir(t, dir)
	w, err := e.tenant.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Ingest(t.Context(), IngestRequest{Paths: []string{"testdata/handbook"}}); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("ingest beside another writer: %v, want ErrLocked", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ingestPaths(t, other, "testdata/handbook")
}

func TestIngestRequiresACL(t *testing.T) {
	t.Parallel()
	e := openDir(t, t.TempDir())
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{"testdata/handbook"}, Collection: "secret", RequireACL: true})
	if err != nil {
		t.Fatal(err)
	}
	if report.Added != 0 || len(report.Skipped) != 3 {
		t.Errorf("report = %+v, want all three documents skipped", report)
	}
	open := assay.Document{ID: assay.DocumentID("secret", "a"), Collection: "secret", URI: "a", Text: "Tulips flower."}
	mine := assay.Document{ID: assay.DocumentID("secret", "b"), Collection: "secret", URI: "b", Text: "Roses, too.", ACL: assay.ACL{Restricted: true}}
	for i := range 2 {
		d := []*assay.Document{&open, &mine}[i]
		d.Version = assay.DocumentVersion(d.Text, d.Metadata, "test")
	}
	if err := e.Put(t.Context(), []store.Entry{{Document: mine}, {Document: open}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a document without an ACL is put: %v, want ErrInvalid", err)
	}
	if held, err := e.HoldsDocuments(t.Context()); err != nil || held {
		t.Errorf("some of it is stored: %v, %v", held, err)
	}
	if err := e.Put(t.Context(), []store.Entry{{Document: mine}}); err != nil {
		t.Error(err)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	e := open(t)
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: "What is the boiling point of tungsten?", Budget: assay.Budget{Iterations: 1}})
	if err != nil || a.Iterations != 1 || len(a.Searched) != 1 {
		t.Errorf("with one iteration: %+v, %v", a, err)
	}
	a, err = e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, Budget: assay.Budget{Wall: time.Nanosecond}})
	if err != nil || a.Stop != assay.StopDeadline || a.Status == assay.Answered {
		t.Errorf("without time: %+v, %v", a, err)
	}
	if _, err := e.Replay(t.Context(), assay.Local(), a.Run); err != nil {
		t.Errorf("replay of a run that ran out of time: %v", err)
	}
}

// TestAskCatchesUpFirst checks that a lost index is rebuilt before the run's first step and that
// this does not count against the run's wall time.
func TestAskCatchesUpFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ingestPaths(t, openDir(t, dir), "testdata/handbook")
	e := openDir(t, dir)
	if err := os.RemoveAll(e.indexDir.path); err != nil {
		t.Fatal(err)
	}
	want, err := e.content.Sequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	started := false
	for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: someQuestion}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != StepStarted || started {
			continue
		}
		started = true
		if got := e.index.Sequence(); got != want {
			t.Errorf("step %s began with an index of sequence %d, want %d", ev.Step.Path, got, want)
		}
	}
	if !started {
		t.Error("no step")
	}
}

// TestAskCancelledBeforeTheFirstStep checks that a run cancelled before its first step can be
// resumed.
func TestAskCancelledBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	e := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stopped *RunError
	for ev, err := range e.Ask(ctx, assay.Local(), Request{Question: someQuestion}) {
		if ev.Kind == RunStarted {
			cancel()
		}
		if err != nil && !errors.As(err, &stopped) {
			t.Fatal(err)
		}
	}
	if stopped == nil || !stopped.Resumable || !errors.Is(stopped, context.Canceled) {
		t.Fatalf("err = %v, want a resumable run that was cancelled", stopped)
	}
	for _, err := range e.Resume(t.Context(), assay.Local(), stopped.Run) {
		if err != nil {
			t.Error(err)
		}
	}
}
