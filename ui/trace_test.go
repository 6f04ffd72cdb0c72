package ui

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/browsertest"
	"github.com/assay-rag/assay/review"
)

const tracedQuestion = "How many days of annual leave does every employee have?"

// answer asks a question as a user and returns its run.
func (x *site) answer(user, question string) string {
	x.t.Helper()
	a, err := x.session(user).Answer(x.t.Context(), engine.Request{Question: question, NoCache: true})
	if err != nil {
		x.t.Fatal(err)
	}
	return a.Run
}

// publish signs a checkpoint of the log of acme and returns its signed note and its key.
func (x *site) publish() audit.Signed {
	x.t.Helper()
	log, err := x.store.Tenant(x.t.Context(), "acme")
	if err != nil {
		x.t.Fatal(err)
	}
	defer closeTest(x.t, log)
	key, err := audit.NewKey()
	if err != nil {
		x.t.Fatal(err)
	}
	authority := audit.Authority{Audit: log.Audit(), Registry: log.Registry(), Actor: assay.Principal{User: "root"}, Key: key}
	signed, err := authority.Checkpoint(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	return signed
}

// alter changes the runs of acme behind the program's back.
func (x *site) alter(statement string) {
	x.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(x.store.Dir(), "tenants", "acme", "runs.db"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer closeTest(x.t, db)
	changed, err := db.ExecContext(x.t.Context(), statement)
	if err != nil {
		x.t.Fatal(err)
	}
	if n, err := changed.RowsAffected(); err != nil || n == 0 {
		x.t.Fatalf("%d rows changed, %v", n, err)
	}
}

// hasTexts checks that a body has texts.
func hasTexts(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	if t.Failed() {
		t.Logf("%.3000s", body)
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	body := x.page("ann", "/runs/"+id+"/trace")
	hasTexts(t, body, tracedQuestion, "Answered", `<meter`, "no limit", "Where the time went", `id="step-1"`, "28 days", "relevance", "Supported", "No checkpoint published", `download="trace-`+id+`.json"`)
	if r := x.get("ann", "/api/v1/runs/"+id+"/trace"); r.StatusCode != http.StatusOK || !json.Valid([]byte(r.body)) {
		t.Errorf("the JSON of the trace: status %d", r.StatusCode)
	}
	searches := x.page("ann", "/runs/"+id+"/trace?kind=search")
	if strings.Count(searches, `<details class="trace-step `) == 0 || strings.Count(searches, `<details class="trace-step `) >= strings.Count(body, `<details class="trace-step `) {
		t.Error("the filter by kind does not filter")
	}
	hasTexts(t, x.page("ann", "/runs/"+id+"/trace?show=failed"), "No step matches.")
	hasTexts(t, x.page("ann", "/runs/"+id+"/trace?open=2"), `id="step-2" open`)
	hasTexts(t, x.page("ann", "/runs/"+id+"/trace/1"), "Step 1", "As JSON")
	if part := x.page("ann", "/runs/"+id+"/trace/1?part=1"); strings.Contains(part, "<html") || !strings.Contains(part, "Input") {
		t.Errorf("a part of the page: %.200s", part)
	}
	for _, path := range []string{"/trace/0", "/trace/999", "/trace/x"} {
		if r := x.get("ann", "/runs/"+id+path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, r.StatusCode)
		}
	}
}

// TestTraceOfOthers checks that nobody else reaches the pages of a run.
func TestTraceOfOthers(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	other := x.answer("bob", tracedQuestion)
	for _, user := range []string{"bob", "rob", "root", "zed"} {
		for _, path := range []string{"/trace", "/trace/1", "/diff", "/diff/" + id, "/diff/" + other, "/fork", "/proof"} {
			if r := x.get(user, "/runs/"+id+path); r.StatusCode != http.StatusNotFound || strings.Contains(r.body, "annual leave") {
				t.Errorf("%s of %s: status %d", path, user, r.StatusCode)
			}
		}
		for _, path := range []string{"/replay", "/fork", "/trace/delete"} {
			if r := x.post(user, "/runs/"+id+path, url.Values{"reason": {"no"}, "step": {"1"}}); r.StatusCode != http.StatusNotFound {
				t.Errorf("POST %s of %s: status %d", path, user, r.StatusCode)
			}
		}
	}
	if r := x.get("ann", "/runs/"+id+"/diff/"+other); r.StatusCode != http.StatusNotFound {
		t.Errorf("a comparison with another's run: status %d", r.StatusCode)
	}
	if body := x.page("ann", "/runs/"+id+"/diff"); strings.Contains(body, other) {
		t.Error("another's run is offered for comparison")
	}
	if r := x.get("aud", "/runs/"+id+"/trace"); r.StatusCode != http.StatusForbidden {
		t.Errorf("an auditor: status %d, want 403", r.StatusCode)
	}
}

func TestReplayPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	if r := x.post("ann", "/runs/"+id+"/replay", nil); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	hasTexts(t, x.page("ann", "/runs/"+id+"/trace"), "reached the same answer")
	x.alter(`UPDATE runs SET answer = replace(answer, '28 days', '29 <b>days') WHERE id = '` + id + `'`)
	r := x.post("ann", "/runs/"+id+"/replay", nil)
	hasTexts(t, r.body, "does not reach the same answer", "the answer has another text", "<del>", "<ins>", "29 \\u003cb\\u003edays")
	if strings.Contains(r.body, "29 <b>days") {
		t.Error("the text of the answer became markup")
	}
	x.alter(`UPDATE records SET payload = replace(payload, 'sufficient', 'insufficient') WHERE path = 'grade'`)
	r = x.get("ann", "/runs/"+id+"/trace")
	if r.StatusCode == http.StatusOK {
		t.Error("an altered run is shown")
	}
	hasTexts(t, r.body, "This run was altered", "Altered")
}

func TestForkAndDiff(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	hasTexts(t, x.page("ann", "/runs/"+id+"/diff"), "No other run of yours has this question.")
	hasTexts(t, x.page("ann", "/runs/"+id+"/fork?step=2"), `name="step" inputmode="numeric" list="fork-steps" autocomplete="off" value="2"`, "as in this run")
	bad := x.post("ann", "/runs/"+id+"/fork", url.Values{"step": {"99"}, "strategy": {"auto"}, "tokens": {"-1"}, "grounding": {"2"}, "calls": {"1.5"}})
	if bad.StatusCode != http.StatusBadRequest {
		t.Errorf("wrong input: status %d", bad.StatusCode)
	}
	hasTexts(t, bad.body, `value="99"`, `value="-1"`, `id="tokens-error"`, `id="grounding-error"`, `id="calls-error"`, `id="step-error"`)
	for name, form := range map[string]url.Values{
		"same strategy":    {"step": {"1"}, "strategy": {"auto"}, "mode": {"thorough"}},
		"another strategy": {"step": {""}, "strategy": {"corrective"}},
	} {
		r := x.post("ann", "/runs/"+id+"/fork", form)
		fork := strings.TrimPrefix(r.Header.Get("Location"), "/runs/")
		if r.StatusCode != http.StatusSeeOther || fork == "" {
			t.Fatalf("%s: status %d: %s", name, r.StatusCode, r.body)
		}
		for range x.session("ann").Follow(t.Context(), fork, -1) {
		}
		hasTexts(t, x.page("ann", "/runs/"+id+"/diff"), fork)
		hasTexts(t, x.page("ann", "/runs/"+id+"/diff/"+fork), "request: "+map[bool]string{true: "strategy", false: "mode"}[name == "another strategy"])
		if name == "same strategy" {
			hasTexts(t, x.page("ann", "/runs/"+fork+"/trace"), "Forked from run", "/runs/"+id+"/diff/"+fork)
		}
	}
	again := x.answer("ann", tracedQuestion)
	hasTexts(t, x.page("ann", "/runs/"+id+"/diff/"+again), "The two runs do not differ")
	if r := x.get("ann", "/runs/"+id+"/diff?other="+again); r.StatusCode != http.StatusSeeOther {
		t.Errorf("a run by its ID: status %d", r.StatusCode)
	}
	hasTexts(t, x.get("ann", "/runs/"+id+"/diff?other=%3Cnone%3E").body, "There is no run of yours with this ID.", `value="&lt;none&gt;"`)
}

func TestDeleteRunPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	r := x.post("ann", "/runs/"+id+"/trace/delete", nil)
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("without a reason: status %d", r.StatusCode)
	}
	hasTexts(t, r.body, `id="reason-error"`)
	if r = x.post("ann", "/runs/"+id+"/trace/delete", url.Values{"reason": {"a test"}}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	if r = x.get("ann", "/runs/"+id+"/trace"); r.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted run: status %d", r.StatusCode)
	}
}

// TestProofPage goes through the states of a proof, and checks the one that is downloaded.
func TestProofPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	path := "/runs/" + id + "/proof"
	hasTexts(t, x.page("ann", path), "No checkpoint published", "assay audit key new audit.key --data DATA --tenant acme", "assay audit checkpoint --data DATA --tenant acme --key audit.key")
	signed := x.publish()
	word := fmt.Sprintf("Unaltered since checkpoint %d", signed.Size)
	hasTexts(t, x.page("ann", path), word, "assay audit check proof-"+id+".json --key audit.pub",
		"assay audit export log.jsonl --data DATA --tenant acme", "assay audit verify --export log.jsonl", "did not come from this server", signerOf(signed.Keys[0]).Hash)
	hasTexts(t, x.page("ann", "/runs/"+id+"/trace"), word)
	proof := []byte(x.page("ann", "/api/v1/runs/"+id+"/proof"))
	v, err := audit.NewVerifier(signed.Keys...)
	if err != nil {
		t.Fatal(err)
	}
	if account, err := audit.CheckProof(proof, v); err != nil || account.Run != id || account.Size != signed.Size {
		t.Errorf("the downloaded proof: %+v, %v", account.Checkpoint, err)
	}
	for at := 100; at < len(proof); at += len(proof) / 40 {
		flipped := slices.Clone(proof)
		flipped[at] ^= 1
		if _, err := audit.CheckProof(flipped, v); err == nil {
			t.Errorf("the proof holds with byte %d altered", at)
		}
	}
	later := x.answer("ann", "Who approves travel to a customer?")
	hasTexts(t, x.page("ann", "/runs/"+later+"/proof"), "Not yet covered by a checkpoint")
	x.alter(`UPDATE runs SET answer = replace(answer, '28 days', '29 days') WHERE id = '` + id + `'`)
	hasTexts(t, x.page("ann", path), "The proof fails", `role="alert"`, "Do not rely on it")
	hasTexts(t, x.page("ann", "/runs/"+id+"/trace"), "The proof fails")
}

// TestTraceWithheld checks that the trace says why steps are not shown.
func TestTraceWithheld(t *testing.T) {
	t.Parallel()
	x, id := reviewSite(t, review.Policy{})
	body := x.page("ann", "/runs/"+id+"/trace")
	hasTexts(t, body, "not shown: the answer is subject to review")
	if strings.Contains(body, "head of the department") {
		t.Error("a withheld text is shown")
	}
	hasTexts(t, x.page("ann", "/runs/"+id+"/fork"), "cannot be forked")
	_ = x.page("ann", "/runs/"+id+"/proof")
}

// TestTraceEscapes asks a question made of markup.
func TestTraceEscapes(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	const attack = `<img src=x onerror=alert(1)>`
	id := x.answer("ann", attack+" How many days of annual leave are there?")
	other := x.answer("ann", attack+" How many days of annual leave are there?")
	for _, path := range []string{"/trace", "/trace/1", "/diff", "/diff/" + other, "/fork", "/proof"} {
		if body := x.page("ann", "/runs/"+id+path); strings.Contains(body, attack) {
			t.Errorf("%s has markup of the question", path)
		}
	}
}

// someSteps returns a long journal.
func someSteps(n int) []engine.Step {
	began := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	var steps []engine.Step
	for i := range n {
		kind := []assay.StepKind{assay.StepSearch, assay.StepGrade, assay.StepClock}[i%3]
		steps = append(steps, engine.Step{
			Ordinal: i, Path: fmt.Sprintf("sub[%d]/round[%d]/%s", i/500, i/3, kind), Kind: kind, Started: began.Add(time.Duration(i) * time.Millisecond),
			Elapsed: time.Millisecond, Input: json.RawMessage(`{}`), Output: json.RawMessage(`{}`),
		})
	}
	return steps
}

// TestLongTrace divides a long journal into pages and cuts long texts.
func TestLongTrace(t *testing.T) {
	t.Parallel()
	steps := someSteps(3000)
	listed := 0
	for n := 1; ; n++ {
		p := tracePage{runHead: runHead{Run: assay.Run{ID: "r"}}, Filter: traceFilter{Number: n}}
		p.list(steps, newTimeLine(steps))
		rows := 0
		for _, g := range p.Groups {
			rows += len(g.Rows)
		}
		if rows > tracePageSize || p.Listed != 2000 || p.Clocks != 1000 {
			t.Fatalf("%d rows of %d, %d readings of the clock", rows, p.Listed, p.Clocks)
		}
		if listed += rows; p.Older == "" {
			break
		}
	}
	if listed != 2000 {
		t.Errorf("the pages have %d steps, want 2,000", listed)
	}
	p := tracePage{Filter: traceFilter{Number: 1, Open: 2500}}
	p.list(steps, newTimeLine(steps))
	open := 0
	for _, g := range p.Groups {
		for _, r := range g.Rows {
			if r.Open {
				open = r.Number
			}
		}
	}
	if open != 2500 {
		t.Errorf("step %d is open, want 2500", open)
	}
	kinds := traceKinds(steps, newTimeLine(steps))
	if len(kinds) != 2 || kinds[0].Steps != 1000 || len(kinds[0].Bars) > maxKindBars {
		t.Errorf("%d kinds, the first with %d steps and %d bars", len(kinds), kinds[0].Steps, len(kinds[0].Bars))
	}
	reply, err := json.Marshal(map[string]string{"text": strings.Repeat("long ", 1<<20), "finish": "stop"})
	if err != nil {
		t.Fatal(err)
	}
	s := engine.Step{Kind: assay.StepModel, Path: "grade/call[0]/model", Input: json.RawMessage(`{"role":"grader","prompt":"grader@1","request":{"system":"Be <b>brief</b>.","messages":[{"Speaker":"user","text":"Which?"}]}}`), Output: reply}
	row := newStepRow(s, timeLine{}, inlineStep)
	if row.Whole || row.Depth == 0 || len(row.Input) != 3 || len(row.Output[0].Code) > inlineStep.text || row.Output[0].Cut == "" {
		t.Errorf("a long reply: %+v", row.Output)
	}
}

func TestDiffWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ a, b, want string }{
		{"", "", ""},
		{"the same", "the same", "the same"},
		{"28 days of leave", "30 days of leave", "[-28 ][+30 ]days of leave"},
		{"one two three", "one three", "one [-two ]three"},
		{"", "new", "[+new]"},
		{"gone", "", "[-gone]"},
	} {
		var got strings.Builder
		for _, s := range diffWords(test.a, test.b) {
			switch s.Only {
			case "a":
				got.WriteString("[-" + s.Text + "]")
			case "b":
				got.WriteString("[+" + s.Text + "]")
			default:
				got.WriteString(s.Text)
			}
		}
		if got.String() != test.want {
			t.Errorf("%q and %q: %q, want %q", test.a, test.b, got.String(), test.want)
		}
	}
	long := strings.Repeat("a b c ", 20_000)
	if spans := diffWords(long+"x "+long, long+"y "+long); len(spans) != 4 {
		t.Errorf("long texts: %d spans, want 4", len(spans))
	}
}

func TestTimeLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	steps := []engine.Step{
		{Kind: assay.StepSearch, Started: at, Elapsed: time.Second},
		{Kind: assay.StepGrade, Started: at.Add(time.Second), Elapsed: time.Second},
		{Kind: assay.StepHuman, Started: at.Add(time.Hour), Elapsed: 2 * time.Second},
	}
	l := newTimeLine(steps)
	if l.total != 4*time.Second || l.idle != time.Hour-2*time.Second {
		t.Errorf("the line has %s and leaves out %s", l.total, l.idle)
	}
	if got := l.bar(steps[2]); got.X != lineWidth/2 || got.Width != lineWidth/2 {
		t.Errorf("%+v", got)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"search":                        {"", "The question"},
		"grade/call[0]/model":           {"", "The question"},
		"sub[1]/round[0]/search":        {"sub[1]/round[0]", "Sub-question 2, round 1"},
		"finish[0]/verify":              {"finish[0]", "Answer"},
		"step[2]/critique[0]/actor":     {"step[2]/critique[0]", "Step 3, critique 1"},
		"sub[0]/generate/call[0]/model": {"sub[0]", "Sub-question 1"},
	} {
		if scope, _ := scopeOf(path); scope != want[0] || scopeWords(scope) != want[1] {
			t.Errorf("%s: %q, %q", path, scope, scopeWords(scope))
		}
	}
}

// TestChromiumTrace opens steps, forks a run and compares the two.
func TestChromiumTrace(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	x.publish()
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "ann", o)
		p.Go(x.url + "/runs/" + id + "/trace?open=1")
		p.Wait("#step-1[open]")
		p.WaitText(".proof", "Unaltered since checkpoint")
		if !o.NoScript {
			p.Press("j")
			p.Press("j")
			p.Press("Enter")
			p.Wait(".trace-step[open] ~ .trace-step[open]")
			p.Axe(t)
			p.Click("[data-open-all]")
			p.Axe(t)
		}
		p.Click(".trace-actions form button")
		p.WaitText(".notice.good", "reached the same answer")
		p.Go(x.url + "/runs/" + id + "/fork?step=1")
		if !o.NoScript {
			p.Axe(t)
		}
		p.Click("form.card button.main")
		p.WaitText(".notice.good", "The fork has begun")
		p.Go(x.url + "/runs/" + id + "/diff")
		p.Click("tbody th a")
		p.WaitText("h2", "Compared with run")
		if !o.NoScript {
			p.Axe(t)
			p.Go(x.url + "/runs/" + id + "/proof")
			p.Axe(t)
		}
	})
}
