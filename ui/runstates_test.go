package ui

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// runPageAs returns the page of a run that no store has, as a user sees it, without the actions that ask the
// store.
func (x *site) runPageAs(user string, r assay.Run, steps ...engine.Step) string {
	x.t.Helper()
	q := &request{pages: x.pages, w: httptest.NewRecorder(), session: x.session(user)}
	q.r = httptest.NewRequestWithContext(x.t.Context(), http.MethodGet, runPath(r.ID), nil)
	q.grant = engine.SessionGrant(q.session)
	templates, err := x.pages.parseTemplates()
	if err != nil {
		x.t.Fatal(err)
	}
	page, err := templates["run.html"].Parse(`{{define "run-actions"}}{{""}}{{end}}`)
	if err != nil {
		x.t.Fatal(err)
	}
	var text strings.Builder
	if err := page.ExecuteTemplate(&text, "page", q.view("Ask", r.Question, q.runPageOf(r, steps))); err != nil {
		x.t.Fatal(err)
	}
	return text.String()
}

// answered is a run with an answer.
func answered(a assay.Answer) assay.Run {
	a.Question, a.Run, a.Strategy, a.ElapsedMS = "How long is the guarantee?", "run1", "corrective", 1234
	r := assay.Run{ID: "run1", Question: a.Question, State: assay.RunDone, Answer: &a, Created: time.Now().Add(-time.Hour)}
	if a.Status == assay.PendingReview {
		r.State = assay.RunSuspended
	}
	r.Request = requestJSON(engine.Request{Question: a.Question, Collections: []string{"contracts"}})
	return r
}

func requestJSON(req engine.Request) json.RawMessage {
	data, err := json.Marshal(req)
	if err != nil {
		panic(err)
	}
	return data
}

const guarantee = "Die Garantie gilt 24 Monate. [1] Für gewerbliche Käufer gilt sie 12 Monate. [2]"

// guaranteeAnswer is an answer with two claims of two documents.
func guaranteeAnswer(s assay.Status, reason assay.Reason) assay.Answer {
	return assay.Answer{
		Status: s, Reason: reason, Stop: assay.StopSufficient, Text: guarantee, Iterations: 2,
		Claims: []assay.Claim{
			{Start: 0, End: 28, Verdict: assay.Supported, Score: .97, Citations: []int{1}},
			{Start: 33, End: 76, Verdict: assay.Supported, Score: .91, Citations: []int{2}, Repaired: true},
		},
		Citations: []assay.Citation{
			{Number: 1, Claim: 0, Document: "d1", Version: "v1aaaaaaaaaa", URI: "/contracts/agb-2024.pdf", Title: "AGB 2024", Heading: []string{"AGB 2024", "§ 7 Garantie"}, Page: 3, Line: 0, Start: 100, End: 128, Quote: "Die Garantie gilt 24 Monate.", Boxes: []assay.Rectangle{{Page: 3, X0: 1, Y0: 1, X1: 2, Y1: 2}}, Aliases: []string{"/alt/agb.pdf"}},
			{Number: 2, Claim: 1, Document: "d2", Version: "v2bbbbbbbbbb", URI: "https://example.com/agb", Title: "AGB 2025 (Entwurf)", Heading: []string{"§ 7"}, Line: 12, Start: 40, End: 80, Quote: "gewerbliche Käufer: 12 Monate", Provenance: assay.ProvenanceRecognized, Confidence: .83, Collection: "contracts"},
		},
		Searched: []assay.Searched{{Query: "Garantie Dauer", Hits: 8, TopRelevance: .91, Grade: assay.Sufficient}, {Query: "guarantee months", ByModel: true, Hits: 0, Grade: assay.Insufficient, Collections: []string{"contracts"}}},
		Roles:    []assay.RoleUse{{Role: "generator", Model: "local"}, {Role: "verifier", Model: "openai/gpt-4.1"}}, Justification: "Each claim is supported.",
		Notes: []assay.Note{{Kind: assay.NoteReranker, Text: "The reranker failed and the local one replaced it."}},
	}
}

// TestRunStates checks what each state of a run says, and what it lets the user do next.
func TestRunStates(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	incomplete := guaranteeAnswer(assay.Incomplete, assay.ReasonPartsOpen)
	incomplete.Stop, incomplete.Missing = assay.StopDeadline, []assay.Gap{{Text: "Who pays the shipping?"}, {Text: "Since when?", ByModel: true}}
	mixed := guaranteeAnswer(assay.Incomplete, assay.ReasonReviewerStatement)
	mixed.Claims[0].Verdict, mixed.Claims[1].Reviewer = assay.Contradicted, "rae"
	quota := guaranteeAnswer(assay.Incomplete, assay.ReasonCutShort)
	quota.Stop = assay.StopQuota
	cancelled := guaranteeAnswer(assay.Incomplete, assay.ReasonCutShort)
	cancelled.Stop = assay.StopCancelled
	cached := guaranteeAnswer(assay.Answered, assay.ReasonSupported)
	cached.Cached = &assay.Cached{Run: "run0", Question: "How long does the guarantee last?"}
	approved := guaranteeAnswer(assay.Answered, assay.ReasonSupported)
	approved.Oversight = &assay.Oversight{Decision: assay.DecisionEdited, By: []string{"rae"}, At: time.Now()}
	pending := assay.Answer{Status: assay.PendingReview, Reason: assay.ReasonReview, Oversight: &assay.Oversight{Decision: assay.DecisionPending, Deadline: time.Now().Add(20*time.Hour + time.Minute)}}
	rejected := assay.Answer{Status: assay.Rejected, Reason: assay.ReasonReviewer, Oversight: &assay.Oversight{Decision: assay.DecisionRejected, By: []string{"rae"}, Reason: "It cites <b>a draft</b>."}}
	expired := assay.Answer{Status: assay.Rejected, Reason: assay.ReasonExpired, Oversight: &assay.Oversight{Decision: assay.DecisionExpired}}
	asked := assay.Answer{Status: assay.Incomplete, Reason: assay.ReasonAmbiguous, Stop: assay.StopAmbiguous, AskBack: "Which guarantee?", Readings: []string{"The one for <private> customers", "The one for companies"}}
	missing := assay.Answer{Status: assay.NotFound, Reason: assay.ReasonNoAnswer, Stop: assay.StopNoProgress, Searched: incomplete.Searched, Closest: []assay.Closest{{URI: "/a/terms.md", Title: "Terms", Line: 12, Relevance: .31, Quote: "Wear is not covered."}}}
	failed, active, interrupted, erased := answered(assay.Answer{}), answered(assay.Answer{}), answered(assay.Answer{}), answered(assay.Answer{})
	failed.Answer, failed.State, failed.Error = nil, assay.RunFailed, "the model <gpt> did not answer"
	active.Answer, active.State, active.Live = nil, assay.RunActive, true
	interrupted.Answer, interrupted.State, interrupted.Updated = nil, assay.RunActive, time.Now().Add(-time.Hour)
	erased.Answer, erased.State, erased.Question, erased.Request = nil, assay.RunErased, "", nil
	for name, c := range map[string]struct {
		run         assay.Run
		want, never []string
	}{
		"answered": {answered(guaranteeAnswer(assay.Answered, assay.ReasonSupported)), []string{
			"Answered", `class="claim supported"`, `supported claim, Source 1: </bdi>Die Garantie gilt 24 Monate.</a>`, `class="claim repaired"`, `page 3`, `line 12`,
			`src="/documents/d1/versions/v1aaaaaaaaaa/pages/3?boxes=100-128"`, `alt="Page 3 of AGB 2024 with the quoted passage marked"`, "§ 7 Garantie", "Recognised in an image, confidence 83 %",
			`href="https://example.com/agb" rel="noopener noreferrer"`, "/alt/agb.pdf", `href="/documents/d1?end=128&amp;start=100&amp;version=v1aaaaaaaaaa#span"`, "Ask a follow-up", "openai/gpt-4.1",
			"2 searches, 2 rounds, 2 claims checked, 1.2 s", "The reranker failed", "/runs/run1/trace",
		}, []string{`class="state`, `http-equiv="refresh"`}},
		"incomplete":  {answered(incomplete), []string{"Incomplete", "This is not the whole answer", "The time for this question was spent.", "Who pays the shipping?", "a model’s words", `value="thorough"`}, []string{"Not found"}},
		"mixed":       {answered(mixed), []string{`class="claim contradicted"`, "contradicted claim, ", `class="claim reviewer"`, "statement of a reviewer", "A reviewer added a statement"}, []string{`class="claim supported"`}},
		"quota":       {answered(quota), []string{"A limit of your account, your API key or your tenant was reached."}, []string{`value="thorough"`}},
		"cancelled":   {answered(cancelled), []string{"It was cancelled."}, nil},
		"conflicting": {answered(guaranteeAnswer(assay.Conflicting, assay.ReasonVersions)), []string{"The documents disagree", "Versions of one document contradict", "The sides of the conflict", `version <code>v1aaaaaa</code>`, "AGB 2025 (Entwurf)"}, nil},
		"not found": {answered(missing), []string{
			"Not found in these documents", "Garantie Dauer", "8 passages, best relevance 0.91", "no passage", "(a model’s words)", "Wear is not covered.", "relevance 0.31", "Ask in all collections", "Ask in other words",
		}, []string{`class="answer"`, "It may refer to this answer."}},
		"ambiguous":   {answered(asked), []string{"Which one do you mean?", "Which guarantee?", `value="The one for &lt;private&gt; customers"`, `name="follows" value="run1"`}, []string{"<private>", "This is not the whole answer"}},
		"pending":     {answered(pending), []string{"Waiting for review", "someone other than you", "in 20 h", "/runs?status=pending_review"}, []string{"Ask a follow-up", `href="/reviews/`}},
		"rejected":    {answered(rejected), []string{"This answer is not shown", "A reviewer rejected it.", "It cites &lt;b&gt;a draft&lt;/b&gt;.", "<bdi>rae</bdi>"}, []string{"<b>a draft", "Ask a follow-up"}},
		"expired":     {answered(expired), []string{"No reviewer decided before the deadline.", "/runs/run1/again"}, nil},
		"withheld":    {answered(assay.Answer{Status: assay.Rejected, Reason: assay.ReasonWithheld}), []string{"text that must not leave its document", "Talk to an administrator"}, nil},
		"cached":      {answered(cached), []string{`href="/runs/run0"`, "How long does the guarantee last?", "Answer anew"}, nil},
		"approved":    {answered(approved), []string{"Edited and approved by <bdi>rae</bdi>"}, nil},
		"failed":      {failed, []string{"No answer: the run failed", "the model &lt;gpt&gt; did not answer", "/runs/run1/again"}, []string{"<gpt>"}},
		"active":      {active, []string{"Looking for an answer", `action="/runs/run1/cancel"`, `<noscript><meta http-equiv="refresh" content="2"></noscript>`, `data-live="/runs/run1/live?after=-1"`}, []string{"/resume"}},
		"interrupted": {interrupted, []string{"No process works on this question now", `action="/runs/run1/resume"`, `action="/runs/run1/cancel"`}, []string{"Looking for an answer"}},
		"erased":      {erased, []string{"Erased", "The audit log keeps"}, []string{"How long is the guarantee?"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := x.runPageAs("ann", c.run)
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			for _, never := range c.never {
				if strings.Contains(body, never) {
					t.Errorf("the page has %q", never)
				}
			}
			if t.Failed() {
				t.Log(body[strings.Index(body, "<main"):])
			}
		})
	}
}

// TestRunWithoutRights checks that a page has no buttons and links that its user may not use.
func TestRunWithoutRights(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	body := x.runPageAs("aud", answered(guaranteeAnswer(assay.Incomplete, assay.ReasonPartsOpen)))
	for _, never := range []string{`action="/ask"`, "/again", "/resume", `href="/documents/d1`, `src="/documents/`} {
		if strings.Contains(body, never) {
			t.Errorf("the page of an auditor has %q", never)
		}
	}
}
