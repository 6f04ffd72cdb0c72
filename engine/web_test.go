package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/strategy"
)

// A searchEngine is a web search with given results.
type searchEngine struct {
	results []assay.WebResult
	err     error
	asked   []string
}

func (s *searchEngine) Name() string { return "finder" }

func (s *searchEngine) SearchWeb(_ context.Context, query string, n int) ([]assay.WebResult, error) {
	s.asked = append(s.asked, fmt.Sprintf("%d of %s", n, query))
	return s.results, s.err
}

// site serves pages on the loopback interface. It returns its address and a fetcher that can
// reach only this server on this machine.
func site(t *testing.T, pages map[string]string) (string, *webfetch.Fetcher, func()) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(s.Close)
	at := netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://"))
	return s.URL, webfetch.New(webfetch.Config{Guard: egress.New(egress.Config{Permit: func(a netip.AddrPort) bool { return a == at }})}), s.Close
}

// webEngine opens an engine on the handbook that can search the web.
func webEngine(t *testing.T, dir string, web assay.WebSearcher, pages *webfetch.Fetcher) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{Dir: dir, Web: web, Pages: pages})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

const (
	lunar       = "What is the orbital period of the moon Ganymede?"
	ganymede    = "<html><head><title>Ganymede</title></head><body><article><h1>Orbit</h1><p>Ganymede is a moon of Jupiter. The orbital period of the moon Ganymede is about seven days.</p></article></body></html>"
	notAllowed  = "the web was not searched: the question does not allow it"
	notAnEngine = "the web was not searched: no search of the web is configured"
)

// TestWeb follows a question that the documents do not answer: to a web search, a page, an answer
// that states its origin, and a replay that makes no requests.
func TestWeb(t *testing.T) {
	t.Parallel()
	at, pages, stop := site(t, map[string]string{"/ganymede": ganymede})
	finder := &searchEngine{results: []assay.WebResult{
		{URL: at + "/ganymede", Title: "Ganymede", Snippet: "A moon."},
		{URL: at + "/gone", Title: "Gone", Snippet: "The moon Ganymede has an orbital period of days."},
		{URL: "http://169.254.169.254/latest/", Title: "Metadata", Snippet: "The orbital period of the moon Ganymede is a secret."},
		{URL: "javascript:alert(1)", Title: "Script", Snippet: "The orbital period of the moon Ganymede is a script."},
	}}
	dir := t.TempDir()
	e := webEngine(t, dir, finder, pages)
	ingestPaths(t, e, "testdata/handbook")
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: lunar, Strategy: "crag", Web: true})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Answered || !strings.HasPrefix(a.Text, "Statements citing [1]") || !strings.Contains(a.Text, "are from the web, not from your documents.") || !strings.Contains(a.Text, "is about seven days. [1]") {
		t.Errorf("%s (%s): %q; %s", a.Status, a.Stop, a.Text, a.Justification)
	}
	for _, c := range a.Claims {
		if text := a.Text[c.Start:c.End]; strings.Contains(text, "Statements citing") || strings.Contains(text, "secret") || strings.Contains(text, "script") {
			t.Errorf("claim %q", text)
		}
	}
	if len(a.Citations) == 0 || a.Citations[0].Origin != assay.FromWeb || a.Citations[0].URI != at+"/ganymede" || a.Citations[0].Title != "Ganymede" {
		t.Errorf("citations %+v", a.Citations)
	}
	if diff := cmp.Diff([]string{"5 of " + lunar}, finder.asked); diff != "" {
		t.Errorf("the web was asked (-want +got):\n%s", diff)
	}
	last := a.Searched[len(a.Searched)-1]
	if last.Origin != assay.FromWeb || last.TopRelevance != 0.8 || last.Hits == 0 {
		t.Errorf("searched %+v", a.Searched)
	}
	notes := strings.Join(noteTexts(a.Notes), "\n")
	for _, want := range []string{"fewer than 2 passages of the documents scored 0.30 or more", "finder was asked to search the web", at + "/gone was not read: ", "169.254.169.254/latest/ was not read: ", "refused"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q, want %q in them", a.Notes, want)
		}
	}
	_, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []assay.StepKind
	for _, s := range steps {
		kinds = append(kinds, s.Kind)
		if s.Summary == "" || s.Kind == assay.StepWeb && s.Error == nil && !strings.Contains(s.Summary, "result") && !strings.Contains(s.Summary, "passage") {
			t.Errorf("step %s: %q", s.Path, s.Summary)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(kinds), func(k assay.StepKind) bool { return k != assay.StepWeb })); n != 5 {
		t.Errorf("%d steps of the web in %v, want a search and four pages", n, kinds)
	}

	stop()
	finder.err = errors.New("nobody may be asked")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]*Engine{"with the engine of then": webEngine(t, dir, finder, nil), "without any web": webEngine(t, dir, nil, nil)} {
		again, err := other.Replay(t.Context(), assay.Local(), a.Run)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(a, again); diff != "" {
			t.Errorf("%s: replay (-want +got):\n%s", name, diff)
		}
	}
	if len(finder.asked) != 1 {
		t.Errorf("the replay asked the web: %q", finder.asked)
	}
}

// TestWebOff checks that a question is searched on the web only if the request allows it and a
// search is configured, and that the answer otherwise states the reason.
func TestWebOff(t *testing.T) {
	t.Parallel()
	finder := &searchEngine{}
	for _, test := range []struct {
		name string
		web  assay.WebSearcher
		req  Request
		note string
	}{
		{"not allowed", finder, Request{Question: lunar}, notAllowed},
		{"not configured", nil, Request{Question: lunar, Web: true}, notAnEngine},
	} {
		e := webEngine(t, t.TempDir(), test.web, nil)
		ingestPaths(t, e, "testdata/handbook")
		test.req.Strategy = "crag"
		a, err := e.Answer(t.Context(), assay.Local(), test.req)
		if err != nil || a.Status != assay.NotFound || !slices.Contains(noteTexts(a.Notes), test.note) || len(finder.asked) > 0 {
			t.Errorf("%s: %s, %q, %v; asked %q", test.name, a.Status, a.Notes, err, finder.asked)
		}
		if _, err := e.Replay(t.Context(), assay.Local(), a.Run); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestWebFails checks that a failed web search leads to neither an answer nor an error.
func TestWebFails(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		fmt.Errorf("finder: overloaded: %w", assay.ErrUnavailable), fmt.Errorf("finder: %w", assay.ErrInvalid),
	} {
		e := webEngine(t, t.TempDir(), &searchEngine{err: err}, nil)
		ingestPaths(t, e, "testdata/handbook")
		a, failed := e.Answer(t.Context(), assay.Local(), Request{Question: lunar, Strategy: "crag", Web: true})
		if failed != nil || a.Status != assay.NotFound || !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.HasPrefix(n, "the web could not be searched: finder") }) {
			t.Errorf("%s, %q, %v", a.Status, a.Notes, failed)
		}
		if _, err := e.Replay(t.Context(), assay.Local(), a.Run); err != nil {
			t.Error(err)
		}
	}
}

// A service is a managed service whose answer a test sets.
type service struct {
	answer strategy.ManagedAnswer
	err    error
	asked  []strategy.ManagedQuestion
	access []assay.Access
}

func (s *service) Name() string { return "cloud/base" }

func (s *service) Most(question string) assay.Usage { return strategy.MostOfManaged(question, 100) }

func (s *service) Ask(_ context.Context, access assay.Access, q strategy.ManagedQuestion) (strategy.ManagedAnswer, assay.Usage, error) {
	s.asked, s.access = append(s.asked, q), append(s.access, access)
	return s.answer, assay.Usage{Calls: 1, OutputTokens: 7}, s.err
}

// retrieved returns a passage in the form that a service returns it.
func retrieved(uri, text string) assay.Hit {
	id := assay.DocumentID("cloud", uri)
	version := assay.DocumentVersion(text, nil, "")
	return assay.Hit{
		Chunk: assay.Chunk{ID: assay.ChunkID(id, version, 0), Document: id, Version: version, Kind: assay.ChunkProse, End: len(text), Headings: []string{}},
		Text:  text, URI: uri, Title: uri, Collection: "cloud",
	}
}

// TestManaged checks that only those parts of a service's text are shown that its passages
// support, and that a replay does not call the service.
func TestManaged(t *testing.T) {
	t.Parallel()
	text := "Sure! The orbital period of the moon Ganymede is about seven days. Ganymede is made of cheese."
	first, second := strings.Index(text, "The orbital"), strings.Index(text, "Ganymede is made")
	source := retrieved("s3://bucket/ganymede.txt", "The orbital period of the moon Ganymede is about seven days. It is large.")
	s := &service{answer: strategy.ManagedAnswer{Text: text, Notes: []string{"cloud: a note"}, Parts: []strategy.ManagedPart{
		{Start: first, End: second - 1, Hits: []assay.Hit{source}},
		{Start: second, End: len(text), Hits: []assay.Hit{source}},
	}}}
	dir := t.TempDir()
	e, err := Open(t.Context(), Config{Dir: dir, Managed: s})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a, err := e.Answer(t.Context(), assay.Local(), Request{Question: lunar, Strategy: "managed"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Incomplete || !strings.HasPrefix(a.Text, "Statements citing [1] are from a managed service, not from your documents.") ||
		!strings.Contains(a.Text, "about seven days. [1]") || strings.Contains(a.Text, "cheese") || strings.Contains(a.Text, "Sure") || a.Strategy != "managed" {
		t.Errorf("%s: %q; %s", a.Status, a.Text, a.Justification)
	}
	if len(a.Citations) != 1 || a.Citations[0].Origin != assay.FromService || a.Citations[0].Quote != "The orbital period of the moon Ganymede is about seven days." {
		t.Errorf("citations %+v", a.Citations)
	}
	if a.Usage.Calls != 1 || a.Usage.OutputTokens != 7 || !slices.Contains(noteTexts(a.Notes), "cloud: a note") {
		t.Errorf("usage %+v, notes %q", a.Usage, a.Notes)
	}
	if !slices.ContainsFunc(a.Roles, func(u assay.RoleUse) bool { return u.Role == assay.ManagedRole && u.Model == "cloud/base" }) {
		t.Errorf("roles %+v", a.Roles)
	}
	if len(s.asked) != 1 || s.asked[0].Text != lunar || s.access[0].Key() != assay.Local().Access().Key() {
		t.Errorf("asked %+v as %+v", s.asked, s.access)
	}
	for _, other := range []strategy.Managed{s, nil} {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = Open(t.Context(), Config{Dir: dir, Managed: other}); err != nil {
			t.Fatal(err)
		}
		again, err := e.Replay(t.Context(), assay.Local(), a.Run)
		if diff := cmp.Diff(a, again); err != nil || diff != "" || len(s.asked) != 1 {
			t.Errorf("replay: %v, asked %d times (-want +got):\n%s", err, len(s.asked), diff)
		}
	}
}

// TestManagedRefused checks which questions are rejected for a managed service before anything is
// stored.
func TestManagedRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		managed strategy.Managed
		req     Request
	}{
		"not configured": {nil, Request{Question: lunar}},
		"local":          {&service{}, Request{Question: lunar, Local: true}},
		"a cost":         {&service{}, Request{Question: lunar, Budget: assay.Budget{CostMicros: 1}}},
	} {
		e, err := Open(t.Context(), Config{Dir: t.TempDir(), Managed: test.managed})
		if err != nil {
			t.Fatal(err)
		}
		test.req.Strategy = "managed"
		if _, err := e.Answer(t.Context(), assay.Local(), test.req); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if runs, err := e.Runs(t.Context(), assay.Local(), 10); err != nil || len(runs) > 0 {
			t.Errorf("%s: %d runs are stored, %v", name, len(runs), err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A stopper is a web search that stops the program when it is called.
type stopper struct {
	searchEngine
	stop context.CancelFunc
}

func (s *stopper) SearchWeb(ctx context.Context, query string, n int) ([]assay.WebResult, error) {
	s.stop()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestWebResumed checks that a run interrupted during a web search is resumed with the searcher
// configured when it began, and that no other searcher is called.
func TestWebResumed(t *testing.T) {
	t.Parallel()
	at, pages, _ := site(t, map[string]string{"/ganymede": ganymede})
	results := []assay.WebResult{{URL: at + "/ganymede", Title: "Ganymede", Snippet: "A moon."}}
	for name, test := range map[string]struct {
		web    assay.WebSearcher
		status assay.Status
		note   string
	}{
		"by the same": {&searchEngine{results: results}, assay.Answered, "finder was asked to search the web"},
		"by nobody":   {nil, assay.NotFound, "the web could not be searched: finder was configured when the run began, and no longer is"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		dir := t.TempDir()
		e := webEngine(t, dir, &stopper{stop: cancel}, pages)
		ingestPaths(t, e, "testdata/handbook")
		_, err := e.Answer(ctx, assay.Local(), Request{Question: lunar, Strategy: "crag", Web: true})
		stopped, ok := errors.AsType[*RunError](err)
		if !ok || !stopped.Resumable {
			t.Fatalf("%s: %v", name, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = webEngine(t, dir, test.web, pages)
		var a assay.Answer
		for ev, err := range e.Resume(t.Context(), assay.Local(), stopped.Run) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if ev.Answer != nil {
				a = *ev.Answer
			}
		}
		if a.Status != test.status || !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.HasPrefix(n, test.note) }) {
			t.Errorf("%s: %s, notes %q", name, a.Status, a.Notes)
		}
		if _, err := e.Replay(t.Context(), assay.Local(), stopped.Run); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A paid is a searcher with a price.
type paid struct {
	searchEngine
	known bool
}

func (p *paid) SearchPrice() (int64, bool) { return 5000, p.known }

// TestWebPriced checks that a cost limit requires the price of a search if the question may be
// searched on the web.
func TestWebPriced(t *testing.T) {
	t.Parallel()
	limited := assay.Budget{CostMicros: 10_000}
	for _, test := range []struct {
		name  string
		web   assay.WebSearcher
		req   Request
		wrong bool
	}{
		{"no price", &searchEngine{}, Request{Web: true, Budget: limited}, true},
		{"a price that is not known", &paid{}, Request{Web: true, Budget: limited}, true},
		{"a price", &paid{known: true}, Request{Web: true, Budget: limited}, false},
		{"no web for the question", &searchEngine{}, Request{Budget: limited}, false},
		{"no web at all", nil, Request{Web: true, Budget: limited}, false},
		{"no limit", &searchEngine{}, Request{Web: true}, false},
	} {
		e := webEngine(t, t.TempDir(), test.web, nil)
		ingestPaths(t, e, "testdata/handbook")
		test.req.Question, test.req.Strategy = lunar, "crag"
		a, err := e.Answer(t.Context(), assay.Local(), test.req)
		if wrong := errors.Is(err, assay.ErrInvalid); wrong != test.wrong || err != nil && !wrong {
			t.Errorf("%s: %v", test.name, err)
		}
		if test.name == "a price" && a.Usage.CostMicros != 5000 {
			t.Errorf("%s: it cost %+v", test.name, a.Usage)
		}
	}
}

// TestFollowUpsStay checks that words from a conversation, which may come from documents, are not
// sent to the web.
func TestFollowUpsStay(t *testing.T) {
	t.Parallel()
	for question, goes := range map[string]bool{
		"And who runs it?": false,
		"And what is the orbital period of the moon Ganymede there?": true, // sent as it was asked
	} {
		finder := &searchEngine{}
		e := webEngine(t, t.TempDir(), finder, nil)
		ingestPaths(t, e, "testdata/handbook")
		a, err := e.Answer(t.Context(), assay.Local(), Request{
			Question: question, Strategy: "crag", Web: true,
			History: []assay.Turn{{Question: "Which project is the largest?", Answer: "The Hunter2 project is the largest. [1]"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		noted := slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool {
			return strings.HasPrefix(n, "the web was not searched: the question was rewritten")
		})
		if went := len(finder.asked) > 0; went != goes || noted == goes || strings.Contains(strings.Join(finder.asked, " "), "largest") {
			t.Errorf("%q, understood as %q: asked %q, notes %q", question, a.Understood, finder.asked, a.Notes)
		}
	}
}
