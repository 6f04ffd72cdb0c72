package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/job"
	"github.com/assay-rag/assay/internal/plot"
)

// handbookSet are questions about the handbook.
const handbookSet = `{"id": "days", "question": "Who approves travel to a customer?", "answers": ["head of the department"], "gold": [{"document": "travel.md"}]}

{"id": "moon <b>", "question": "Who was the first person on <i>the moon</i>? من كان؟", "answerable": false}
{"id": "hotel", "question": "How much may a hotel cost?", "answers": ["9999 dollars"], "gold": [{"document": "travel.md"}]}
`

// evaluated waits for an evaluation, which must be done.
func (x *site) evaluated(user, id string) engine.Evaluation {
	x.t.Helper()
	s := x.session(user)
	for {
		e, err := s.Evaluation(x.t.Context(), id)
		if err != nil {
			x.t.Fatal(err)
		}
		if e.State != engine.EvaluationRunning {
			if e.State != engine.EvaluationDone {
				x.t.Fatalf("the evaluation is %+v", e)
			}
			return e
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// start starts an evaluation with a form and returns its ID when it is done.
func (x *site) start(form url.Values) string {
	x.t.Helper()
	r := x.post("root", "/evaluations", form)
	if r.StatusCode != http.StatusSeeOther {
		x.t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	id := strings.TrimPrefix(r.Header.Get("Location"), "/evaluations/")
	x.evaluated("root", id)
	return id
}

// TestEvaluation starts an evaluation and reads its result.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.get("root", "/evaluations").must(t, http.StatusOK, "There is no evaluation yet", "Start an evaluation", "may cost money", "handbook", `value="static"`)
	x.get("rob", "/evaluations").must(t, http.StatusForbidden)
	x.get("aud", "/evaluations").must(t, http.StatusOK, "you also need the right to ask").lacks(t, "<textarea")
	id := x.start(url.Values{"name": {`set <script>alert(1)</script>`}, "questions": {handbookSet}, "strategy": {"static", "corrective"}, "collection": {"handbook"}})
	x.get("root", "/evaluations").must(t, http.StatusOK, "/evaluations/"+id, "Done", "67 %", "&lt;script&gt;").lacks(t, "<script>alert")
	page := x.get("root", "/evaluations/"+id).must(t, http.StatusOK,
		`<svg class="plot" role="img"`, "aria-label=\"Figures of static", "Outcomes", "Not found", "Answered", "Where questions were lost",
		"moon &lt;b&gt;", "Who was the first person on &lt;i&gt;the moon&lt;/i&gt;? من كان؟", `href="/runs/`, "Differences on the same questions", `download="evaluation-`)
	page.lacks(t, "<i>the moon", "moon <b>", "style=")
	wrong := x.get("root", "/evaluations/"+id+"?only=wrong&strategy=static").must(t, http.StatusOK, "hotel", "How much may a hotel cost?")
	wrong.lacks(t, "moon", "Who approves travel")
	x.get("aud", "/evaluations/"+id).must(t, http.StatusNotFound)
	x.get("zed", "/evaluations/"+id).must(t, http.StatusNotFound)
	x.get("zed", "/evaluations").must(t, http.StatusOK).lacks(t, id)
	var e engine.Evaluation
	if err := json.Unmarshal([]byte(x.page("root", "/api/v1/evaluations/"+id)), &e); err != nil || e.ID != id || len(e.Result) == 0 {
		t.Errorf("the result as JSON: %+v, %v", e.ID, err)
	}
	x.get("root", "/evaluations/"+id+"/progress").must(t, http.StatusOK, `data-evaluation="done"`).lacks(t, "<html")
}

// TestEvaluationForm checks that wrong input is explained and kept.
func TestEvaluationForm(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for name, c := range map[string]struct {
		form url.Values
		want []string
	}{
		"no name":      {url.Values{"questions": {handbookSet}}, []string{"Give the evaluation a name.", "head of the department", `id="name" name="name" class="name" value="" dir="auto" maxlength="200" aria-invalid="true"`}},
		"no questions": {url.Values{"name": {"my set"}}, []string{"Paste questions or choose a file", `value="my set"`, "aria-invalid"}},
		"no JSON":      {url.Values{"name": {"my set"}, "questions": {"\n\nWho?"}, "strategy": {"static"}, "models": {"yes"}}, []string{"Line 3 is not a JSON object.", "Who?</textarea>", `value="static" checked`, `value="yes" checked`}},
		"a field":      {url.Values{"name": {"my set"}, "questions": {`{"question": "Who?", "gelod": 1}`}}, []string{"question 1", "gelod"}},
		"a strategy":   {url.Values{"name": {"my set"}, "questions": {handbookSet}, "strategy": {"none"}}, []string{"unknown strategy"}},
		"many":         {url.Values{"name": {"my set"}, "questions": {strings.Repeat(`{"question": "Who?"}`+"\n", job.MaxQuestions+1)}}, []string{"The set has 2,001 questions, at most 2000 are possible."}},
		"control":      {url.Values{"name": {"my\x01set"}, "questions": {handbookSet}}, []string{"control character", `aria-invalid="true"`}},
	} {
		r := x.post("root", "/evaluations", c.form)
		r.must(t, http.StatusBadRequest, append(c.want, `role="alert"`)...)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestEvaluationFile uploads a set.
func TestEvaluationFile(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	f, err := w.CreateFormFile("file", "handbook.jsonl")
	if err == nil {
		_, err = f.Write([]byte(handbookSet))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := x.do("root", http.MethodPost, "/evaluations", &body, w.FormDataContentType())
	id := strings.TrimPrefix(r.must(t, http.StatusSeeOther).Header.Get("Location"), "/evaluations/")
	x.evaluated("root", id)
	x.get("root", "/evaluations/"+id).must(t, http.StatusOK, `<h1 dir="auto">handbook</h1>`, "Figures of auto")
}

// TestEvaluationStoredSet evaluates a set of labelled feedback.
func TestEvaluationStoredSet(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.get("root", "/evaluations").must(t, http.StatusOK, `href="/labels"`).lacks(t, "Or a stored set")
	a, err := x.session("ann").Answer(t.Context(), engine.Request{Question: "Who approves travel to a customer?"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.session("ann").SetFeedback(t.Context(), engine.RunRef{Run: a.Run}, engine.NewFeedback{Verdict: engine.FeedbackRight}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.session("root").LabelFeedback(t.Context(), a.Run, "ann", "from people", nil); err != nil {
		t.Fatal(err)
	}
	x.get("root", "/evaluations").must(t, http.StatusOK, "Or a stored set", "from people, 1 question")
	x.get("zed", "/evaluations").must(t, http.StatusOK).lacks(t, "from people")
	both := url.Values{"set": {"from people"}, "questions": {handbookSet}}
	x.post("root", "/evaluations", both).must(t, http.StatusBadRequest, "not both", `value="from people" selected`, "head of the department")
	x.post("zed", "/evaluations", url.Values{"set": {"from people"}}).must(t, http.StatusBadRequest, "There is no such set.")
	id := x.start(url.Values{"set": {"from people"}})
	x.get("root", "/evaluations/"+id).must(t, http.StatusOK, `<h1 dir="auto">from people</h1>`, "Who approves travel to a customer?", "right")
}

// TestEvaluationRunning checks the page of an evaluation that runs, and cancels it.
func TestEvaluationRunning(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	e, err := x.session("root").StartEvaluation(t.Context(), "slow", 9, func(ctx context.Context, progress func(done, all int)) (json.RawMessage, error) {
		progress(4, 9)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	path := "/evaluations/" + e.ID
	for !strings.Contains(x.page("root", path+"/progress"), `value="4" max="9"`) {
		time.Sleep(time.Millisecond)
	}
	x.get("root", path).must(t, http.StatusOK, "Running", "4 of 9 questions", "Reload", "Cancel this evaluation", `data-progress="`+path+`/progress"`)
	x.get("root", path+"/compare").must(t, http.StatusBadRequest)
	x.post("root", "/evaluations", url.Values{"name": {"second"}, "questions": {handbookSet}}).must(t, http.StatusConflict, "Another evaluation runs.", "head of the department")
	x.post("zed", path+"/cancel", nil).must(t, http.StatusNotFound)
	x.post("aud", path+"/cancel", nil).must(t, http.StatusNotFound)
	x.post("root", path+"/cancel", nil).must(t, http.StatusSeeOther)
	for strings.Contains(x.page("root", path+"/progress"), `data-evaluation="running"`) {
		time.Sleep(time.Millisecond)
	}
	x.get("root", path).must(t, http.StatusOK, "Cancelled").lacks(t, "Cancel this evaluation")
	x.post("root", path+"/cancel", nil).must(t, http.StatusSeeOther)
}

// TestEvaluationForeign checks the page of a result of another kind.
func TestEvaluationForeign(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for i, result := range []string{`{"set": "x"}`, `[]`, `"<script>"`} {
		e, err := x.session("root").StartEvaluation(t.Context(), fmt.Sprint("set", i), 1, func(context.Context, func(done, all int)) (json.RawMessage, error) {
			return json.RawMessage(result), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		x.evaluated("root", e.ID)
		x.get("root", "/evaluations/"+e.ID).must(t, http.StatusOK, "result of another kind")
	}
	x.get("root", "/evaluations").must(t, http.StatusOK, "set2")
}

// TestCompareWithoutGold compares two evaluations whose questions name no passages, so that recall cannot be
// measured: the proposed gate passes if nothing has changed.
func TestCompareWithoutGold(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	form := url.Values{"name": {"labels"}, "questions": {`{"question": "Who approves travel to a customer?", "answers": ["the head of the department"]}`}}
	was, is := x.start(form), x.start(form)
	x.get("root", "/evaluations/"+is+"/compare?with="+was).must(t, http.StatusOK, "Gate passed", "right: {tolerance: 0.04}").lacks(t, "recall@10")
}

// TestCompareEvaluations compares two evaluations in which a question turned, and holds them to a gate.
func TestCompareEvaluations(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	good := strings.Replace(handbookSet, "9999 dollars", "140 euros", 1)
	was := x.start(url.Values{"name": {"before"}, "questions": {good}, "strategy": {"static"}})
	x.get("root", "/evaluations/"+was+"/compare").must(t, http.StatusOK, "There is no other evaluation")
	is := x.start(url.Values{"name": {"now <b>"}, "questions": {handbookSet}, "strategy": {"static"}})
	path := "/evaluations/" + is + "/compare"
	x.get("root", path).must(t, http.StatusOK, "before", "Compare", "Gate").lacks(t, "Gate passed", "Gate failed")
	page := x.get("root", path+"?with="+was).must(t, http.StatusOK, "Gate failed", "it fell by 0.3333, more than 0.04", "Regressions", "hotel", "How much may a hotel cost?",
		"No question that was wrong is right now.", "now &lt;b&gt;", `<svg class="plot" role="img"`, "may be chance")
	page.lacks(t, "now <b>", "style=")
	x.get("root", "/evaluations/"+was+"/compare?with="+is).must(t, http.StatusOK, "Gate passed", "Improvements", "No question that was right is wrong now.")
	for gate, c := range map[string]struct {
		status int
		want   string
	}{
		"metrics:\n  right: {tolerance: 0.5}\n": {http.StatusOK, "Gate passed"},
		"metrics:\n  right: {min: 0.9}\n":       {http.StatusOK, "it is below 0.9"},
		"metrics:\n  wright: {min: 0.9}\n":      {http.StatusBadRequest, "there is no measure wright"},
		"metrics: [":                            {http.StatusBadRequest, "gate-bad"},
	} {
		x.get("root", path+"?"+url.Values{"with": {was}, "gate": {gate}}.Encode()).must(t, c.status, c.want)
	}
	x.get("root", path+"?with=none").must(t, http.StatusNotFound)
	x.get("zed", path+"?with="+was).must(t, http.StatusNotFound)
	other := x.start(url.Values{"name": {"other"}, "questions": {`{"id": "days", "question": "Another question?", "answers": ["x"]}`}, "strategy": {"static"}})
	x.get("root", path+"?with="+other).must(t, http.StatusOK, "no question in common", "Gate failed")
}

// TestPlotStyles checks that the style sheet has a rule for each class of a plot.
func TestPlotStyles(t *testing.T) {
	t.Parallel()
	a, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	style := string(a.files["style.css"].plain)
	for _, m := range regexp.MustCompile(`\.plot( text| \.[a-z]+)?\{`).FindAllStringSubmatch(plot.CSS, -1) {
		if !strings.Contains(style, ".plot"+m[1]+" {") {
			t.Errorf("no rule for .plot%s", m[1])
		}
	}
}
