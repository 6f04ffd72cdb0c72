package ui

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// runPageAs returns the page of a run that no store has, as a user sees it.
func (x *site) runPageAs(user string, r assay.Run, steps ...engine.Step) string {
	x.t.Helper()
	q := &request{pages: x.pages, w: httptest.NewRecorder(), session: x.session(user)}
	q.r = httptest.NewRequestWithContext(x.t.Context(), http.MethodGet, runPath(r.ID), nil)
	q.grant = engine.SessionGrant(q.session)
	text, err := q.text("run.html", "page", q.view("Ask", r.Question, q.runPageOf(r, steps)))
	if err != nil {
		x.t.Fatal(err)
	}
	return string(text)
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
