package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/server"
)

// A gate holds back the searches of runs until each is let through.
type gate struct {
	assay.Retriever
	arrived, open chan struct{}
}

// withGate returns an option that puts a gate before the searches of runs.
func withGate(g *gate) option {
	g.arrived, g.open = make(chan struct{}, 1000), make(chan struct{})
	return func(h *engine.HostConfig, _ *server.Config) {
		h.Retriever = func(builtin assay.Retriever) assay.Retriever { return &gate{builtin, g.arrived, g.open} }
	}
}

func (g *gate) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	g.arrived <- struct{}{}
	select {
	case <-g.open:
	case <-ctx.Done():
		return assay.Results{}, ctx.Err()
	}
	return g.Retriever.Retrieve(ctx, access, q)
}

// beginRun asks a question as a user and returns the path of its page.
func (x *site) beginRun(user, question string, more ...string) string {
	x.t.Helper()
	form := url.Values{"question": {question}}
	for i := 0; i < len(more); i += 2 {
		form.Add(more[i], more[i+1])
	}
	r := x.post(user, "/ask", form)
	path := r.Header.Get("Location")
	if r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(path, "/runs/") {
		x.t.Fatalf("ask %q as %s: status %d to %q: %s", question, user, r.StatusCode, path, r.body)
	}
	return path
}

// ask is beginRun that waits for the end of the run.
func (x *site) ask(user, question string, more ...string) string {
	x.t.Helper()
	path := x.beginRun(user, question, more...)
	for range x.session(user).Follow(x.t.Context(), strings.TrimPrefix(path, "/runs/"), -1) {
	}
	return path
}

// has reports the texts that a page lacks, and those that it has and never should.
func has(t *testing.T, body string, want []string, never ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(body, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
	for _, n := range never {
		if strings.Contains(body, n) {
			t.Errorf("the page has %q", n)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

const annualLeave = "How many days of annual leave does every employee have?"

func TestAnswered(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	path := x.ask("ann", annualLeave)
	body := x.page("ann", path)
	has(t, body, []string{
		`class="badge good"`, `Every employee has 28 days of annual leave.</a>`, `supported claim, Source 1: `, `href="#source-1"`, `id="source-1"`,
		`<mark data-claims="1">Every employee has 28 days of annual leave.</mark><span class="around"> Up to five days of unused leave`, `1 search, 1 claim checked`,
	}, `http-equiv`)
	if part := x.page("ann", path+"?part=run"); strings.Contains(part, "<html") || !strings.Contains(part, `data-phase="done"`) {
		t.Errorf("the part of the page: %s", part)
	}
	for _, user := range []string{"bob", "root", "zed"} {
		for _, p := range []string{path, path + "?part=run", path + "/live"} {
			r := x.get(user, p)
			refused := r.StatusCode == http.StatusNotFound
			if p == path+"/live" { // a slow machine has sent the header of the stream when it finds that there is no run
				refused = refused || strings.HasPrefix(r.body, "retry: 1000\n\nevent: error\n") && strings.Contains(r.body, `"/problems/not_found"`)
			}
			if !refused || strings.Contains(r.body, "28 days") {
				t.Errorf("%s as %s: status %d: %s", p, user, r.StatusCode, r.body)
			}
		}
		for _, p := range []string{"/cancel", "/resume", "/again"} {
			if r := x.post(user, path+p, nil); r.StatusCode != http.StatusNotFound {
				t.Errorf("%s as %s: status %d", p, user, r.StatusCode)
			}
		}
	}
}

// TestNotFound checks that a run without an answer shows what was searched.
func TestNotFound(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	body := x.page("ann", x.ask("ann", "What is the capital of Mongolia?"))
	has(t, body, []string{"Not found in these documents", "What you can do", "Ask in other words"}, `class="answer"`, `id="sources"`)
}

// TestAskRefused checks that the form comes back with what was typed and the reason.
func TestAskRefused(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for name, c := range map[string]struct {
		form   url.Values
		status int
		want   []string
	}{
		"empty":            {url.Values{"question": {"  "}, "mode": {"quick"}, "no_cache": {"1"}}, http.StatusBadRequest, []string{"the question is empty<", `value="quick" checked`, `value="1" checked`}},
		"too long":         {url.Values{"question": {strings.Repeat("why <b> ", 1200)}}, http.StatusBadRequest, []string{"longer than 8192 bytes", "why &lt;b&gt; why"}},
		"unknown strategy": {url.Values{"question": {"Why?"}, "strategy": {"guess"}}, http.StatusBadRequest, []string{"unknown strategy", ">Why?</textarea>"}},
		"collection":       {url.Values{"question": {"Why?"}, "collection": {"secret"}}, http.StatusNotFound, []string{">Why?</textarea>"}},
		"review":           {url.Values{"question": {"Why?"}, "review": {"never"}}, http.StatusForbidden, []string{"only administrators", ">Why?</textarea>"}},
		"follows":          {url.Values{"question": {"And then?"}, "follows": {"nothing"}}, http.StatusNotFound, []string{">And then?</textarea>"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := x.post("ann", "/ask", c.form)
			if r.StatusCode != c.status {
				t.Errorf("status %d, want %d", r.StatusCode, c.status)
			}
			has(t, r.body, append(c.want, `role="alert"`, `aria-invalid="true"`, `aria-describedby="question-error disclosure"`))
		})
	}
	if err := x.session("root").Stop(t.Context(), "maintenance"); err != nil {
		t.Fatal(err)
	}
	r := x.post("ann", "/ask", url.Values{"question": {"Keep me?"}})
	if r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("while work is stopped: status %d", r.StatusCode)
	}
	has(t, r.body, []string{"stopped", ">Keep me?</textarea>"})
}

// TestAskPage checks what each user finds on the page that asks.
func TestAskPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	board := engine.Upload{Collection: "board", Name: "board.md", Body: strings.NewReader("# Board\n\n## Who is to be dismissed?\n\nIt is secret.\n"), Sidecar: []byte(`{"acl": ["group:board"]}`)}
	if _, err := x.session("bob").Upload(t.Context(), board); err != nil {
		t.Fatal(err)
	}
	x.ask("ann", annualLeave)
	has(t, x.page("bob", "/"), []string{"Who is to be dismissed?", `value="board"`, `value="handbook"`}, annualLeave)
	has(t, x.page("ann", "/"), []string{"Annual leave", annualLeave, "Answers here are produced by an AI system"}, "dismissed", `value="board"`, "Only mandatory rules", `name="web"`)
	has(t, x.page("root", "/"), []string{"Only mandatory rules", "Who is to be dismissed?"}, annualLeave)
	has(t, x.page("zed", "/"), []string{"There is no document that you may see yet.", `href="/documents"`}, "leave", "dismissed", "handbook")
	has(t, x.page("ann", "/?q=What+is+%3Cb%3E&collection=handbook"), []string{`>What is &lt;b&gt;</textarea>`}, "What is <b>", "From your documents")
}

func TestRunList(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	has(t, x.page("ann", "/runs"), []string{"You have not asked anything yet."})
	for i := range runsPerPage + 2 {
		x.ask("ann", fmt.Sprintf("What is the capital number %d of Mongolia?", i))
	}
	x.ask("ann", annualLeave)
	first := x.page("ann", "/runs")
	has(t, first, []string{annualLeave, "Older"}, "Newest", "capital number 0 ")
	next := regexp.MustCompile(`href="(/runs\?after=[^"]*)" rel="next"`).FindStringSubmatch(first)
	if next == nil {
		t.Fatal("there is no next page")
	}
	has(t, x.page("ann", strings.ReplaceAll(next[1], "&amp;", "&")), []string{"capital number 0 ", "Newest"}, annualLeave, "Older")
	has(t, x.page("ann", "/runs?status=answered"), []string{annualLeave}, "Mongolia")
	has(t, x.page("ann", "/runs?status=failed"), []string{"None of your questions has this status."})
	has(t, x.page("bob", "/runs"), []string{"You have not asked anything yet."}, annualLeave)
	for _, bad := range []string{"/runs?status=lost", "/runs?after=%25", "/runs?after=e30x"} {
		if r := x.get("ann", bad); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", bad, r.StatusCode)
		}
	}
}

// TestConversation checks that a follow-up shows the question before it, and that asking again keeps the
// question and brings a run of its own.
func TestConversation(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	first := x.ask("ann", annualLeave)
	second := x.ask("ann", "And how long is parental leave?", "follows", strings.TrimPrefix(first, "/runs/"), "collection", "handbook")
	has(t, x.page("ann", second), []string{`href="` + first + `"`, annualLeave, "in <bdi>handbook</bdi>"})
	r := x.post("ann", second+"/again", url.Values{"mode": {"thorough"}})
	again := r.Header.Get("Location")
	if r.StatusCode != http.StatusSeeOther || again == second {
		t.Fatalf("ask again: status %d to %q: %s", r.StatusCode, again, r.body)
	}
	has(t, x.page("ann", again), []string{"And how long is parental leave?", `href="` + first + `"`, "effort thorough"})
	cached := x.ask("ann", annualLeave)
	has(t, x.page("ann", cached), []string{`<span class="around"> Up to five days of unused leave`, "the verified answer of <a href=\"" + first, "Answer anew"})
}

// TestReviewed checks the page of a run before and after a reviewer's decision.
func TestReviewed(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	path := x.ask("ann", annualLeave, "review", "always")
	has(t, x.page("ann", path), []string{"A person reads this answer first", `data-phase="waiting"`}, "28 days")
	if r := x.get("ann", path+"/export.md"); strings.Contains(r.body, "28 days") {
		t.Errorf("the export has the draft: %s", r.body)
	}
	id := strings.TrimPrefix(path, "/runs/")
	if _, err := x.session("rae").Claim(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := x.session("rae").Reject(t.Context(), id, "It is <b>old</b>."); err != nil {
		t.Fatal(err)
	}
	has(t, x.page("ann", path), []string{"This answer is not shown", "It is &lt;b&gt;old&lt;/b&gt;.", "<bdi>rae</bdi>"}, "28 days")
}

// A sent is a server-sent event.
type sent struct{ id, event, data string }

// events reads the events of a page until n have come or the stream ends.
func (x *site) events(user, path, last string, n int) (got []sent, status int) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(x.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, x.url+path, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := x.client(user).Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	var one sent
	for lines := bufio.NewScanner(res.Body); len(got) < n && lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			one.id = value
		case "event":
			one.event = value
		case "data":
			one.data = value
		case "":
			if one.event != "" {
				got = append(got, one)
			}
			one = sent{}
		}
	}
	return got, res.StatusCode
}

// TestLive checks the stream of an active run, that a reconnect brings what was missed and nothing twice,
// and its end.
func TestLive(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	path := x.beginRun("ann", annualLeave)
	<-g.arrived
	has(t, x.page("ann", path), []string{`data-phase="active"`, "Looking for an answer"}, "28 days")
	if got, _ := x.events("ann", path+"/live", "", 1); len(got) != 1 || got[0].event != "step_started" || !strings.Contains(got[0].data, "Searching") {
		t.Fatalf("the first event: %+v", got)
	}
	close(g.open)
	all, _ := x.events("ann", path+"/live", "", 1000)
	steps := map[string]int{}
	last, ordinals := "", []int{}
	for _, e := range all {
		var m liveMessage
		if err := json.Unmarshal([]byte(e.data), &m); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.event == "answer":
			if !m.Done || m.HTML != "" || e.id != "end" {
				t.Errorf("the end: %+v", e)
			}
		case m.Ordinal >= 0:
			steps[m.ID]++
			ordinals, last = append(ordinals, m.Ordinal), e.id
		}
		if e.event != "step" && e.event != "step_started" && e.event != "answer" {
			t.Errorf("event %q", e.event)
		}
		if strings.Contains(e.data, "28 days") {
			t.Errorf("an event has text of the answer: %s", e.data)
		}
	}
	for id, n := range steps {
		if n != 1 {
			t.Errorf("step %s came %d times", id, n)
		}
	}
	if !slices.IsSorted(ordinals) || len(ordinals) < 3 || all[len(all)-1].event != "answer" {
		t.Fatalf("ordinals %v, events %+v", ordinals, all)
	}
	middle := fmt.Sprint(ordinals[0])
	for name, rest := range map[string][]sent{"header": first(x.events("ann", path+"/live", middle, 1000)), "query": first(x.events("ann", path+"/live?after="+middle, "", 1000))} {
		if len(rest) != len(ordinals) || rest[0].id != fmt.Sprint(ordinals[1]) { // the other steps, and the end
			t.Errorf("after a reconnect by %s: %d events, want %d", name, len(rest), len(ordinals))
		}
	}
	if rest, _ := x.events("ann", path+"/live", last, 1000); len(rest) != 1 || rest[0].event != "answer" {
		t.Errorf("after the last step: %+v", rest)
	}
	if _, status := x.events("ann", path+"/live", "end", 1); status != http.StatusNoContent {
		t.Errorf("after the end: status %d", status)
	}
	for _, bad := range []string{"x", "-7"} {
		if _, status := x.events("ann", path+"/live?after="+bad, "", 1); status != http.StatusBadRequest {
			t.Errorf("after=%s: status %d", bad, status)
		}
	}
	page := x.page("ann", path)
	for id := range steps {
		if !strings.Contains(page, id) {
			t.Errorf("the page lacks the step %s of the stream", id)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestCancel checks that a run can be cancelled from its page, and says so.
func TestCancel(t *testing.T) {
	t.Parallel()
	g := &gate{}
	x := newSite(t, withGate(g))
	path := x.beginRun("ann", "Compare parental leave with sick leave")
	<-g.arrived
	if r := x.post("ann", path+"/cancel", nil); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != path {
		t.Fatalf("cancel: status %d: %s", r.StatusCode, r.body)
	}
	for range x.session("ann").Follow(t.Context(), strings.TrimPrefix(path, "/runs/"), -1) {
	}
	has(t, x.page("ann", path), []string{"It was cancelled."}, `class="answer"`)
	if r := x.post("ann", path+"/cancel", nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("cancel again: status %d", r.StatusCode)
	}
	has(t, x.page("ann", path), []string{"had ended already"})
	if r := x.post("ann", path+"/resume", nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("resume: status %d", r.StatusCode)
	}
	has(t, x.page("ann", path), []string{"had ended already"})
}
