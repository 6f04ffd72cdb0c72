package engine

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// kinds returns the kinds of a run's steps.
func kinds(t *testing.T, e *Engine, id string) []assay.StepKind {
	t.Helper()
	_, steps, err := e.Run(t.Context(), assay.Local(), id)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []assay.StepKind
	for _, s := range steps {
		kinds = append(kinds, s.Kind)
	}
	return kinds
}

// TestAnswerIsGivenAgain checks that a cached answer is reused and marked as such, and that a run
// that reuses it can be shown, replayed and resumed.
func TestAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	e := open(t)
	first := ask(t, e, someQuestion)
	if first.Cached != nil || slices.Contains(kinds(t, e, first.Run), assay.StepCache) {
		t.Fatalf("the first answer is %+v, of steps %v", first.Cached, kinds(t, e, first.Run))
	}
	for _, question := range []string{someQuestion, "  who approves travel   to a customer", someQuestion} {
		again := ask(t, e, question)
		if diff := cmp.Diff(&assay.Cached{Run: first.Run, Question: someQuestion}, again.Cached); diff != "" {
			t.Fatalf("%q: cached (-want +got):\n%s", question, diff)
		}
		if again.Usage != (assay.Usage{}) || again.Run == first.Run || len(again.Notes) == 0 || !strings.Contains(again.Notes[0].Text, first.Run) {
			t.Errorf("%q: run %s spent %+v, notes %q", question, again.Run, again.Usage, again.Notes)
		}
		if again.Question != strings.TrimSpace(question) {
			t.Errorf("the answer is to %q, asked was %q", again.Question, question)
		}
		if diff := cmp.Diff([]assay.StepKind{assay.StepCache}, kinds(t, e, again.Run)); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		same := func(a assay.Answer) assay.Answer {
			a.Question, a.Cached, a.Notes, a.Run, a.Usage, a.ElapsedMS = "", nil, nil, "", assay.Usage{}, 0
			return a
		}
		if diff := cmp.Diff(same(first), same(again)); diff != "" {
			t.Errorf("the answers differ (-first +again):\n%s", diff)
		}
		replays(t, e, again.Run)
	}
	if fresh, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion, NoCache: true}); err != nil || fresh.Cached != nil || fresh.Usage.Searches == 0 {
		t.Errorf("fresh: %v, %+v", err, fresh.Cached)
	}
	e.config.NoCache = true
	if anew := ask(t, e, someQuestion); anew.Cached != nil {
		t.Errorf("without a cache: %+v", anew.Cached)
	}
}

// TestOtherQuestion checks that a differently worded question does not get a cached answer.
func TestOtherQuestion(t *testing.T) {
	t.Parallel()
	e := open(t)
	ask(t, e, someQuestion)
	for _, question := range []string{
		"Please tell me who approves the travel to a customer.", "Who approves travel to an employee?", "Who does not approve travel to a customer?", "Who approves Travel to a CUSTOMER?",
	} {
		if again := ask(t, e, question); again.Cached != nil {
			t.Errorf("%q is answered as %q", question, someQuestion)
		}
	}
}

// TestNothingLeaks checks that a cached answer is not reused if anything it depends on differs.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	asker := assay.Principal{User: "ann", Groups: []string{"legal"}}
	base := Request{Question: someQuestion}
	with := func(change func(*Request)) Request {
		req := base
		change(&req)
		return req
	}
	e := open(t)
	first, err := e.Answer(t.Context(), asker, base)
	if err != nil || first.Status != assay.Answered {
		t.Fatalf("%s, %v", first.Status, err)
	}
	for _, tt := range []struct {
		name  string
		asker assay.Principal
		req   Request
	}{
		{"another user of the same groups", assay.Principal{User: "bob", Groups: []string{"legal"}}, base},
		{"another user without groups", assay.Local(), base},
		{"the same user without a group", assay.Principal{User: "ann"}, base},
		{"the same user with one more", assay.Principal{User: "ann", Groups: []string{"legal", "board"}}, base},
		{"a user named like a group", assay.Principal{User: "ann\x00legal"}, base},
		{"a user with groups in its name", assay.Principal{User: "ann9:group:legal"}, base},
		{"another collection", asker, with(func(r *Request) { r.Collections = []string{"default"} })},
		{"a filter", asker, with(func(r *Request) {
			var err error
			if r.Filter, err = assay.ParseFilter(`title != "x"`); err != nil {
				t.Fatal(err)
			}
		})},
		{"another strategy", asker, with(func(r *Request) { r.Strategy = "corrective" })},
		{"settings", asker, with(func(r *Request) { r.Settings.Self.Iterations = 1 })},
		{"limits", asker, with(func(r *Request) { r.Limits.Keep = 1 })},
		{"parameters of BM25", asker, with(func(r *Request) { r.Limits.BM25.K1 = 1.2 })},
		{"where auto goes on", asker, with(func(r *Request) { r.Settings.Auto.Escalate = "static" })},
		{"fewer iterations", asker, with(func(r *Request) { r.Budget.Iterations = 1 })},
		{"less time", asker, with(func(r *Request) { r.Budget.Wall = time.Second })},
		{"a mode", asker, with(func(r *Request) { r.Mode = "thorough" })},
		{"a conversation", asker, with(func(r *Request) { r.History = []assay.Turn{{Question: "Who travels?", Answer: "Ann."}} })},
		{"a run to follow", asker, with(func(r *Request) { r.Follows = first.Run })},
	} {
		a, err := e.Answer(t.Context(), tt.asker, tt.req)
		if err != nil && !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, assay.ErrNotFound) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if a.Cached != nil && a.Cached.Run == first.Run {
			t.Errorf("%s: the answer of ann's run is given", tt.name)
		}
	}
	if again, err := e.Answer(t.Context(), assay.Principal{User: "ann", Groups: []string{"legal", "", "legal"}}, base); err != nil || again.Cached == nil {
		t.Errorf("ann herself is not given it: %v", err)
	}
	e.config.Models = served(handbook.models())
	if a, err := e.Answer(t.Context(), asker, base); err != nil || a.Cached != nil {
		t.Errorf("with models: %v, %+v", err, a.Cached)
	}
	if a, err := e.Answer(t.Context(), asker, with(func(r *Request) { r.Local = true })); err != nil || a.Cached != nil {
		t.Errorf("without the models that there are: %v, %+v", err, a.Cached)
	}
}

// TestNothingStale checks that a cached answer is not reused after a document or its ACL has
// changed or the run was deleted.
func TestNothingStale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, e *Engine, docs string, a assay.Answer)
		given  bool
	}{
		{"nothing changes", func(t *testing.T, e *Engine, docs string, _ assay.Answer) { ingestPaths(t, e, docs) }, true},
		{"another document changes", func(t *testing.T, e *Engine, docs string, _ assay.Answer) {
			appendTo(t, filepath.Join(docs, "leave.md"), "\nMore.\n")
			ingestPaths(t, e, docs)
		}, false},
		{"an ACL changes", func(t *testing.T, e *Engine, docs string, _ assay.Answer) {
			appendTo(t, filepath.Join(docs, "travel.md.metadata.json"), `{"acl": ["user:local"]}`)
			ingestPaths(t, e, docs)
		}, false},
		{"a document is gone", func(t *testing.T, e *Engine, docs string, _ assay.Answer) {
			if err := os.Remove(filepath.Join(docs, "travel.md")); err != nil {
				t.Fatal(err)
			}
			ingestPaths(t, e, docs)
		}, false},
		{"the run is gone", func(t *testing.T, e *Engine, _ string, a assay.Answer) {
			if err := e.DeleteRun(t.Context(), assay.Local(), a.Run, ""); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs := copyHandbook(t)
			e := openDir(t, t.TempDir())
			ingestPaths(t, e, docs)
			first := ask(t, e, someQuestion)
			tt.change(t, e, docs, first)
			again := ask(t, e, someQuestion)
			if given := again.Cached != nil; given != tt.given {
				t.Errorf("given again: %v, want %v", given, tt.given)
			}
		})
	}
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestStaleWhenResumed checks that documents that change between the start of a run and its cache
// lookup prevent reuse. The run is interrupted and the documents change before it is resumed.
func TestStaleWhenResumed(t *testing.T) {
	t.Parallel()
	for _, after := range []EventKind{RunStarted, StepEnded} {
		docs := copyHandbook(t)
		e := openDir(t, t.TempDir())
		ingestPaths(t, e, docs)
		first := ask(t, e, someQuestion)
		id := ""
		for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: someQuestion}) {
			if err != nil {
				t.Fatal(err)
			}
			if id = ev.Run; ev.Kind == after {
				break
			}
		}
		appendTo(t, filepath.Join(docs, "leave.md"), "\nMore.\n")
		ingestPaths(t, e, docs)
		again := resumed(t, e, id)
		// A lookup made before the change is in the journal and stays valid for the run.
		if got, want := again.Cached != nil, after == StepEnded; got != want {
			t.Errorf("interrupted after %s: given again %v, want %v", after, got, want)
		}
		if again.Text != first.Text {
			t.Errorf("interrupted after %s: %q, want %q", after, again.Text, first.Text)
		}
		replays(t, e, again.Run)
	}
}

// TestGivenAnswerIsRefusedLater checks that a run that reused an answer is hidden once the
// principal may no longer see the documents of that answer.
func TestGivenAnswerIsRefusedLater(t *testing.T) {
	t.Parallel()
	docs := copyHandbook(t)
	e := openDir(t, t.TempDir())
	ingestPaths(t, e, docs)
	ask(t, e, someQuestion)
	again := ask(t, e, someQuestion)
	appendTo(t, filepath.Join(docs, "travel.md.metadata.json"), `{"acl": ["group:board"]}`)
	ingestPaths(t, e, docs)
	if _, _, err := e.Run(t.Context(), assay.Local(), again.Run); again.Cached == nil || !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("given %v, shown: %v", again.Cached, err)
	}
}

// TestWhatIsNotKept checks that answers that could improve later, or that are incomplete, are not
// cached.
func TestWhatIsNotKept(t *testing.T) {
	t.Parallel()
	good := assay.Answer{
		Status: assay.Answered, Stop: assay.StopSufficient, Claims: []assay.Claim{{Verdict: assay.Supported}},
		Citations: []assay.Citation{{Document: "d"}}, Searched: []assay.Searched{{}}, Index: assay.IndexVersion{Model: "m", Coverage: 1},
	}
	if !cacheable(good) || usedFallback(good, nil) {
		t.Fatal("a good answer is not kept")
	}
	for name, change := range map[string]func(*assay.Answer){
		"not found":     func(a *assay.Answer) { a.Status = assay.NotFound },
		"incomplete":    func(a *assay.Answer) { a.Status = assay.Incomplete },
		"conflicting":   func(a *assay.Answer) { a.Status = assay.Conflicting },
		"stopped":       func(a *assay.Answer) { a.Stop = assay.StopDeadline },
		"without claim": func(a *assay.Answer) { a.Claims = nil },
		"unsupported":   func(a *assay.Answer) { a.Claims = []assay.Claim{{Verdict: assay.Unsupported}} },
		"of the web":    func(a *assay.Answer) { a.Citations = []assay.Citation{{Origin: assay.FromWeb}} },
		"searched web":  func(a *assay.Answer) { a.Searched = []assay.Searched{{Origin: assay.FromWeb}} },
		"vectors lack":  func(a *assay.Answer) { a.Index.Coverage = 0.99 },
		"asks back":     func(a *assay.Answer) { a.AskBack = "Which?" },
		"given again":   func(a *assay.Answer) { a.Cached = &assay.Cached{Run: "r"} },
	} {
		a := good
		if change(&a); cacheable(a) {
			t.Errorf("an answer is kept that is %s", name)
		}
	}
	fell := good
	fell.Roles = []assay.RoleUse{{Role: "generator", Model: assay.LocalModel}}
	resumed := good
	resumed.Roles = []assay.RoleUse{{Role: "grader", Model: "far/new"}}
	if usedFallback(resumed, map[string]string{"grader": "far/new"}) || !usedFallback(resumed, map[string]string{"grader": "far/old"}) || !usedFallback(resumed, nil) {
		t.Error("who did what in a run that went on is not told")
	}
	if usedFallback(fell, nil) || !usedFallback(fell, map[string]string{"generator": "far/large"}) {
		t.Error("who stood in is not told")
	}
}

// TestManyAskTheSame checks concurrent identical questions to two engines on one directory.
func TestManyAskTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	engines := []*Engine{openDir(t, dir), openDir(t, dir)}
	ingestPaths(t, engines[0], "testdata/handbook")
	want := ask(t, engines[0], someQuestion)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			a, err := engines[i%2].Answer(t.Context(), assay.Local(), Request{Question: someQuestion, NoCache: i%4 == 0})
			if err != nil || a.Text != want.Text || (a.Cached == nil) != (i%4 == 0) {
				t.Errorf("%v, %q, cached %v", err, a.Text, a.Cached)
			}
		})
	}
	wg.Wait()
}

// TestKeyHasEverything checks that the cache key depends on every field of a stored request
// except the question and the other exempt fields.
func TestKeyHasEverything(t *testing.T) {
	t.Parallel()
	e := open(t)
	key := func(req storedRequest) string { return e.cacheKey(t.Context(), assay.Local(), req) }
	base := storedRequest{Request: Request{Question: "a", Strategy: "auto"}}
	for name, change := range map[string]func(*storedRequest){
		"question": func(s *storedRequest) { s.Question = "b" },
		"earlier":  func(s *storedRequest) { s.Earlier = []strategy.Earlier{{Run: "r"}} },
		"no cache": func(s *storedRequest) { s.NoCache = true },
	} {
		if other := base; true {
			if change(&other); key(other) != key(base) {
				t.Errorf("the %s is in the key", name)
			}
		}
	}
	besides := []string{ // fields that the answer does not depend on, or that disable caching
		"Question", "ID", "IdempotencyKey", "Outline", "Key", "Earlier", "NoCache", "NamedCollections", "Local", "History", "Follows", "Web", "Review", "Guarded", "Nodes",
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[storedRequest]()) {
		if f.Anonymous || !f.IsExported() || slices.Contains(besides, f.Name) {
			continue
		}
		changed := base
		if field := reflect.ValueOf(&changed).Elem().FieldByIndex(f.Index); f.Name == "Filter" {
			filter, err := assay.ParseFilter(`title = "x"`)
			if err != nil {
				t.Fatal(err)
			}
			field.Set(reflect.ValueOf(filter))
		} else if !vary(field) {
			t.Fatalf("%s cannot be varied", f.Name)
		}
		if k := key(changed); k == "" || k == key(base) {
			t.Errorf("%s is not in the key", f.Name)
		}
	}
	for name, change := range map[string]func(*Models){
		"roles":    func(m *Models) { delete(m.Roles, role.PlannerRole) },
		"small":    func(m *Models) { m.Small = texts("fake/small", handbook.write) },
		"verifier": func(m *Models) { delete(m.Roles, role.VerifierRole); m.Verifier = ground.Local{} },
		"default":  func(m *Models) { delete(m.Roles, role.VerifierRole) },
		"local":    func(m *Models) { delete(m.Roles, role.VerifierRole); m.LocalVerifier = true },
	} {
		e.config.Models = served(handbook.models())
		before := key(storedRequest{Request: base.Request, Models: e.config.Models.named()})
		if change(&e.config.Models); key(storedRequest{Request: base.Request, Models: e.config.Models.named()}) == before {
			t.Errorf("the %s of the models is not in the key", name)
		}
	}
	e.config.Models = Models{}
	keys := map[string]bool{key(base): true}
	for _, name := range []string{"reader@1", "reader@2"} {
		e.reader = func() (llm.Reader, error) { return &llmtest.Reader{Name: name}, nil }
		keys[key(base)] = true
	}
	if len(keys) != 3 {
		t.Error("the reader is not in the key")
	}
	if e.reader = func() (llm.Reader, error) { return nil, assay.ErrDamaged }; key(base) != "" {
		t.Error("there is a key without the reader")
	}
	e.reader = func() (llm.Reader, error) { return nil, nil }
	one, other := base, base
	one.Collections, other.Collections = []string{"a", "b"}, []string{"b", "a", "b"}
	if key(one) != key(other) {
		t.Error("the order of collections is in the key")
	}
	named := base
	if named.NamedCollections = []string{"handbook"}; key(named) != key(base) {
		t.Error("the collections that a question names are in the key beside the question")
	}
	if named.NamedCollections, named.Local = nil, true; key(named) != key(base) {
		t.Error("without models there is a difference to --local")
	}
	if managed := (storedRequest{Request: Request{Strategy: "managed"}}); key(managed) != "" {
		t.Error("what a service answers is kept")
	}
	if web := (storedRequest{Request: Request{Strategy: "auto", Web: true}}); key(web) != "" {
		t.Error("what may come from the web is kept")
	}
	if nobody := e.cacheKey(t.Context(), assay.Principal{}, base); nobody != "" {
		t.Error("nobody has a key")
	}
}

// vary changes v and reports whether it could.
func vary(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		vary(v.Index(0))
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		vary(element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), element)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		vary(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && vary(v.Field(i)) {
				return true
			}
		}
		return false
	default:
		return false
	}
	return true
}
