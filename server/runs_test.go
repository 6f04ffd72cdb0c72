package server

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/testset"
)

const question = "How many days of leave may employees carry over?"

// TestAsk checks the ways to get an answer: at once, later, and as events.
func TestAsk(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	body := mustJSON(t, engine.Request{Question: question})
	r := w.do("rob", "POST", "/api/v1/ask", body)
	var answer assay.Answer
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.StatusCode != http.StatusOK || answer.Status != assay.Answered || !strings.Contains(answer.Text, "5 days") {
		t.Fatalf("ask: %d %v %s", r.StatusCode, err, r.body)
	}
	if got := r.Header.Get("Location"); got != "/api/v1/runs/"+answer.Run {
		t.Errorf("Location = %q of run %s", got, answer.Run)
	}
	for _, h := range []header{{"Prefer", "respond-async"}, {"Prefer", "respond-async, wait=0"}, {"Prefer", "handling=lenient,wait=0"}} {
		r := w.do("rob", "POST", "/api/v1/ask", body, h)
		var a Accepted
		if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.StatusCode != http.StatusAccepted || r.Header.Get("Location") != "/api/v1/runs/"+a.Run {
			t.Errorf("%v: %d %s, %v", h, r.StatusCode, r.body, r.Header)
		}
		checkEvents(t, w.events("rob", "GET", "/api/v1/runs/"+a.Run+"/events", ""), a.Run)
	}
	if a := want[Accepted](w, "rob", "POST", "/api/v1/ask?wait=0", body, http.StatusAccepted); a.Run == "" {
		t.Error("wait=0 named no run")
	}
	want[assay.Answer](w, "rob", "POST", "/api/v1/ask?wait=600", body, http.StatusOK)
	for _, wait := range []string{"-1", "3601", "x", ""} {
		w.wantProblem("rob", "POST", "/api/v1/ask?wait="+wait, body, "invalid")
	}
	checkEvents(t, w.events("rob", "POST", "/api/v1/ask", body, header{"Accept", typeEvents}), "")
	checkEvents(t, w.events("rob", "POST", "/api/v1/ask?stream", body), "")
	checkEvents(t, w.events("rob", "POST", "/api/v1/ask?stream=true", body, header{"Accept", "application/json"}), "")
}

// TestIdempotency checks that a request that is sent twice begins one run.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	key := header{"Idempotency-Key", "k-1"}
	body := mustJSON(t, engine.Request{Question: question})
	first := want[assay.Answer](w, "rob", "POST", "/api/v1/ask", body, http.StatusOK, key)
	if again := want[assay.Answer](w, "rob", "POST", "/api/v1/ask", body, http.StatusOK, key); again.Run != first.Run {
		t.Errorf("the second request began run %s, want %s", again.Run, first.Run)
	}
	if other := want[assay.Answer](w, "ann", "POST", "/api/v1/ask", body, http.StatusOK, key); other.Run == first.Run {
		t.Error("another user got the run")
	}
	w.wantProblem("rob", "POST", "/api/v1/ask", `{"question": "Who approves travel?"}`, "reused", key)
	w.wantProblem("rob", "POST", "/api/v1/ask", body, "invalid", header{"Idempotency-Key", strings.Repeat("k", 300)})
}

// An event is one server-sent event.
type event struct{ id, name, data string }

// events sends a request whose response must be a stream, and returns its events.
func (w *site) events(user, method, path, body string, headers ...header) []event {
	w.t.Helper()
	r := w.do(user, method, path, body, headers...)
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != typeEvents {
		w.t.Fatalf("%s %s: %d %s: %s", method, path, r.StatusCode, r.Header.Get("Content-Type"), r.body)
	}
	return parseEvents(w.t, strings.NewReader(r.body), func(event) bool { return true })
}

// parseEvents reads a stream until it ends or fn returns false.
func parseEvents(t testing.TB, r io.Reader, fn func(event) bool) (all []event) {
	t.Helper()
	var ev event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "" && ev.data != "":
			all = append(all, ev)
			if !fn(ev) {
				return all
			}
			ev = event{}
		case name == "id":
			ev.id = value
		case name == "event":
			ev.name = value
		case name == "data":
			ev.data = value
		case name == "retry", name == "", name == ":":
		default:
			t.Fatalf("the stream has the line %q", lines.Text())
		}
	}
	return all
}

// checkEvents checks that the events of a run are complete and in order.
func checkEvents(t *testing.T, all []event, run string) {
	t.Helper()
	if len(all) < 3 || all[0].name != "run" || all[len(all)-1].name != "answer" || all[len(all)-1].id != lastEvent {
		t.Fatalf("events of run %s: %+v", run, all)
	}
	next := 0
	for _, ev := range all {
		var e engine.Event
		if err := json.Unmarshal([]byte(ev.data), &e); err != nil || run != "" && e.Run != run || string(e.Kind) != ev.name {
			t.Errorf("event %+v of run %s: %v", ev, run, err)
		}
		if ev.name == "step" {
			if ev.id != strconv.Itoa(next) {
				t.Errorf("step %q, want %d", ev.id, next)
			}
			next++
		}
	}
}

// TestReconnect checks that a client that reconnects at any event misses nothing and gets nothing
// twice.
func TestReconnect(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	run := w.ask("rob", question).Run
	path := "/api/v1/runs/" + run + "/events"
	all := stepsOf(w.events("rob", "GET", path, ""))
	if len(all) < 4 {
		t.Fatalf("%d events", len(all))
	}
	for i, ev := range all[:len(all)-1] {
		if ev.id == "" {
			continue
		}
		for _, got := range [][]event{
			w.events("rob", "GET", path, "", header{"Last-Event-ID", ev.id}),
			w.events("rob", "GET", path+"?after="+ev.id, ""),
			w.events("rob", "GET", path+"?after=0", "", header{"Last-Event-ID", ev.id}),
		} {
			if diff := cmp.Diff(all[i+1:], stepsOf(got), cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", ev.id, diff)
			}
		}
	}
	if r := w.do("rob", "GET", path, "", header{"Last-Event-ID", lastEvent}); r.StatusCode != http.StatusNoContent {
		t.Errorf("after the answer: %d %s", r.StatusCode, r.body)
	}
	for _, bad := range []string{"x", "-2", "1.5", "99999999999999999999"} {
		w.wantProblem("rob", "GET", path, "", "invalid", header{"Last-Event-ID", bad})
	}
	for _, user := range []string{"bob", "zed"} {
		w.wantProblem(user, "GET", path, "", "not_found")
		w.wantProblem(user, "GET", path, "", "not_found", header{"Last-Event-ID", lastEvent})
	}
	// A client that breaks off leaves the run alone.
	ctx, cancel := context.WithCancel(t.Context())
	res, err := w.send(ctx, "rob", "POST", "/api/v1/ask?stream", strings.NewReader(mustJSON(t, engine.Request{Question: question, NoCache: true})))
	if err != nil {
		t.Fatal(err)
	}
	begun := strings.TrimPrefix(res.Header.Get("Location"), "/api/v1/runs/")
	parseEvents(t, res.Body, func(event) bool { return false })
	cancel()
	res.Body.Close()
	checkEvents(t, w.events("rob", "GET", "/api/v1/runs/"+begun+"/events", ""), begun)
}

// stepsOf returns the events with an ID, which a reconnect repeats.
func stepsOf(all []event) (steps []event) {
	for _, ev := range all {
		if ev.id != "" {
			steps = append(steps, ev)
		}
	}
	return steps
}

// TestRunList checks the pages and filters of the list of runs.
func TestRunList(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	var runs []string
	for _, q := range []string{question, "Who approves travel?", "What is the capital of Peru?", "How many days of leave?", "Who is the manager of Falcon?"} {
		runs = append([]string{w.ask("rob", q).Run}, runs...)
	}
	w.ask("bob", question)
	list := func(query string) (ids []string) {
		t.Helper()
		path := "/api/v1/runs?" + query
		for range 10 {
			r := w.do("rob", "GET", path, "")
			var page RunPage
			if err := json.Unmarshal([]byte(r.body), &page); err != nil || page.Runs == nil {
				t.Fatalf("%s: %v %s", path, err, r.body)
			}
			for _, run := range page.Runs {
				ids = append(ids, run.ID)
			}
			link := r.Header.Get("Link")
			if page.Next == "" {
				if link != "" {
					t.Errorf("Link %q of the last page", link)
				}
				return ids
			}
			path = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		}
		t.Fatal("the list does not end")
		return nil
	}
	for _, limit := range []string{"", "limit=1", "limit=2", "limit=5", "limit=500"} {
		if diff := cmp.Diff(runs, list(limit)); diff != "" {
			t.Errorf("with %s (-want +got):\n%s", limit, diff)
		}
	}
	found := list("status=not_found&limit=1")
	if len(found) == 0 || len(found) == len(runs) || len(list("status=not_found&status=answered&status=incomplete&status=conflicting")) != len(runs) {
		t.Errorf("by status: %q", found)
	}
	if got := list("state=active"); got != nil {
		t.Errorf("active runs %q", got)
	}
	third := want[assay.Run](w, "rob", "GET", "/api/v1/runs/"+runs[2], "", http.StatusOK).Created.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
	if diff := cmp.Diff(runs[:3], list("since="+third)); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(runs[3:], list("until="+third)); diff != "" {
		t.Errorf("until (-want +got):\n%s", diff)
	}
	next := want[RunPage](w, "rob", "GET", "/api/v1/runs?limit=1", "", http.StatusOK).Next
	for _, query := range []string{
		"limit=0x1", "limit=-1", "limit=501", "cursor=x", "cursor=" + next[:len(next)-2], "cursor=" + next + "&state=done", "since=yesterday",
		"limit=1&limit=2", "unknown=1", "cursor=" + strings.Repeat("A", 4000),
	} {
		w.wantProblem("rob", "GET", "/api/v1/runs?"+query, "", "invalid")
	}
	w.wantProblem("rob", "GET", "/api/v1/documents?cursor="+next, "", "invalid")
	// A run that a cursor names may be deleted.
	want[none](w, "rob", "DELETE", "/api/v1/runs/"+runs[0], "", http.StatusNoContent)
	if page := want[RunPage](w, "rob", "GET", "/api/v1/runs?limit=1&cursor="+next, "", http.StatusOK); page.Runs[0].ID != runs[1] {
		t.Errorf("after a deleted run comes %s, want %s", page.Runs[0].ID, runs[1])
	}
}

// TestRun checks the operations on one run.
func TestRun(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	answer := w.ask("rob", question)
	path := "/api/v1/runs/" + answer.Run
	shown := want[assay.Run](w, "rob", "GET", path, "", http.StatusOK)
	if shown.ID != answer.Run || shown.Answer == nil || shown.Answer.Text != answer.Text || shown.Principal.User != "rob" {
		t.Errorf("show = %+v", shown)
	}
	trace := want[RunTrace](w, "rob", "GET", path+"/trace", "", http.StatusOK)
	if len(trace.Steps) != shown.Steps || len(trace.Steps) == 0 || trace.Steps[0].Input == nil || trace.Steps[0].Output == nil {
		t.Errorf("trace has %d steps of %d", len(trace.Steps), shown.Steps)
	}
	if got := want[assay.Answer](w, "rob", "POST", path+"/replay", "", http.StatusOK); got.Text != answer.Text {
		t.Errorf("replay = %q", got.Text)
	}
	forked := want[assay.Answer](w, "rob", "POST", path+"/fork", `{"step": "1", "mode": "thorough"}`, http.StatusOK)
	if forked.Run == answer.Run || forked.Run == "" {
		t.Errorf("fork = %+v", forked)
	}
	diff := want[engine.RunDiff](w, "rob", "GET", path+"/diff/"+forked.Run, "", http.StatusOK)
	if diff.A != answer.Run || diff.B != forked.Run || len(diff.Fields) == 0 {
		t.Errorf("diff = %+v", diff)
	}
	want[assay.Answer](w, "rob", "POST", path+"/fork?wait=60", `{"step": "search"}`, http.StatusOK)
	checkEvents(t, w.events("rob", "POST", path+"/fork", `{"step": "1"}`, header{"Accept", typeEvents}), "")
	for _, body := range []string{`{}`, `{"step": "no such step"}`, `{"step": "1", "question": "Another?"}`, `{"step": 1}`, ``} {
		w.wantProblem("rob", "POST", path+"/fork", body, "invalid", header{"Content-Type", typeJSON})
	}
	w.wantProblem("rob", "POST", path+"/cancel", "", "invalid")
	w.wantProblem("rob", "POST", path+"/resume", "", "invalid")
	w.wantProblem("rob", "GET", path+"/proof", "", "not_found") // no checkpoint was published

	if got := want[assay.Answer](w, "rob", "GET", path+"/export?format=json", "", http.StatusOK); got.Text != answer.Text {
		t.Errorf("export = %q", got.Text)
	}
	if got := want[testset.Exported](w, "rob", "GET", path+"/export?format=set", "", http.StatusOK); got.ID != answer.Run || got.Given.Answer == "" {
		t.Errorf("export as a set = %+v", got)
	}
	for _, r := range []reply{w.do("rob", "GET", path+"/export?format=markdown", ""), w.do("rob", "GET", path+"/export", "", header{"Accept", "text/markdown"})} {
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/markdown") ||
			!strings.HasPrefix(r.body, "# "+question+"\n") || !strings.Contains(r.body, "> Employees may carry over 5 days of leave.") ||
			r.Header.Get("Content-Disposition") != "attachment; filename=answer-"+answer.Run+".md" {
			t.Errorf("Markdown: %d %v\n%s", r.StatusCode, r.Header, r.body)
		}
	}
	w.wantProblem("rob", "GET", path+"/export?format=pdf", "", "invalid")

	want[none](w, "rob", "DELETE", path+"?reason=a+test", "", http.StatusNoContent)
	for _, route := range runRoutes() {
		if !strings.Contains(route.Path, "{id}") {
			continue
		}
		at := strings.NewReplacer("{id}", answer.Run, "{other}", forked.Run).Replace(route.Path)
		body := ""
		if strings.HasSuffix(at, "/fork") {
			body = `{"step": "1"}`
		}
		w.wantProblem("rob", route.Method, at, body, "not_found")
		w.wantProblem("rob", route.Method, strings.Replace(at, answer.Run, "no-such-run", 1), body, "not_found")
		for _, user := range []string{"bob", "root", "zed"} { // a run is its owner's
			at := strings.NewReplacer("{id}", forked.Run, "{other}", forked.Run).Replace(route.Path)
			w.wantProblem(user, route.Method, at, body, "not_found")
		}
	}
}

// TestConditional checks entity tags of a run, and that they hold for a compressed body as well.
func TestConditional(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	path := "/api/v1/runs/" + w.ask("rob", question).Run
	first := w.do("rob", "GET", path, "")
	tag := first.Header.Get("ETag")
	if tag == "" || first.Header.Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("ETag %q, Cache-Control %q", tag, first.Header.Get("Cache-Control"))
	}
	packed := w.do("rob", "GET", path, "", header{"Accept-Encoding", "gzip"})
	if packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("ETag") == tag || len(packed.body) >= len(first.body) {
		t.Errorf("gzip: %v, %d of %d bytes", packed.Header, len(packed.body), len(first.body))
	}
	if got := unzip(t, packed.body); got != first.body {
		t.Errorf("the compressed body is %s", got)
	}
	for _, match := range []string{tag, packed.Header.Get("ETag"), "W/" + tag, `"other", ` + tag, "*"} {
		r := w.do("rob", "GET", path, "", header{"If-None-Match", match})
		if r.StatusCode != http.StatusNotModified || r.body != "" || r.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %d %q %v", match, r.StatusCode, r.body, r.Header)
		}
	}
	for _, match := range []string{`"other"`, "", strings.Trim(tag, `"`)} {
		if r := w.do("rob", "GET", path, "", header{"If-None-Match", match}); r.StatusCode != http.StatusOK {
			t.Errorf("If-None-Match %s: %d", match, r.StatusCode)
		}
	}
	if r := w.do("rob", "HEAD", path, ""); r.StatusCode != http.StatusOK || r.body != "" || r.Header.Get("Content-Length") != strconv.Itoa(len(first.body)) || r.Header.Get("ETag") != tag {
		t.Errorf("HEAD: %d %q %v", r.StatusCode, r.body, r.Header)
	}
	if r := w.do("rob", "HEAD", path+"/events", ""); r.StatusCode != http.StatusOK || r.body != "" || r.Header.Get("Content-Type") != typeEvents {
		t.Errorf("HEAD of a stream: %d %q %v", r.StatusCode, r.body, r.Header)
	}
	if r := w.do("rob", "HEAD", "/api/v1/runs/none/events", ""); r.StatusCode != http.StatusNotFound {
		t.Errorf("HEAD of no stream: %d", r.StatusCode)
	}
}

// TestProof checks that the owner of a run gets its proof, which holds.
func TestProof(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	run := w.ask("rob", question).Run
	key, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := w.store.Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	authority := audit.Authority{Audit: tenant.Audit(), Registry: tenant.Registry(), Actor: assay.Local(), Key: key}
	signed, err := authority.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := w.do("rob", "GET", "/api/v1/runs/"+run+"/proof", "")
	if r.StatusCode != http.StatusOK {
		t.Fatalf("proof: %d %s", r.StatusCode, r.body)
	}
	v, err := audit.NewVerifier(key.Public(signed.Origin))
	if err != nil {
		t.Fatal(err)
	}
	if account, err := audit.CheckProof([]byte(r.body), v); err != nil || account.Run != run {
		t.Errorf("the proof is of run %s, %v", account.Run, err)
	}
	w.wantProblem("bob", "GET", "/api/v1/runs/"+run+"/proof", "", "not_found")
}

func unzip(t *testing.T, data string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFollowFar checks that a follower after the last possible step gets no step.
func TestFollowFar(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.put("ann", "hr", "leave.md", leaveText, http.StatusCreated)
	run := w.ask("rob", question).Run
	for _, last := range []string{"1000", "2147483647", "9223372036854775806", "9223372036854775807"} {
		r := w.do("rob", "GET", "/api/v1/runs/"+run+"/events?after="+last, "")
		if r.StatusCode != http.StatusOK || strings.Contains(r.body, "event: step") || !strings.Contains(r.body, "event: answer") {
			t.Errorf("after %s: %d %s", last, r.StatusCode, r.body)
		}
	}
}
