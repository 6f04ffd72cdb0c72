package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// secretWords are words of the answer to someQuestion.
const secretWords = "head of the department"

func reader() assay.Principal { return assay.Principal{User: "ann", Roles: []string{"reader"}} }

func reviewer(name string, groups ...string) assay.Principal {
	return assay.Principal{User: name, Groups: groups, Roles: []string{"reviewer"}}
}

func setPolicy(t *testing.T, e *Engine, p review.Policy) {
	t.Helper()
	if err := e.SetPolicy(t.Context(), assay.Local(), p, ""); err != nil {
		t.Fatal(err)
	}
}

// askPending asks someQuestion, whose answer must wait.
func askPending(t *testing.T, e *Engine) assay.Answer {
	t.Helper()
	a, err := e.Answer(t.Context(), reader(), Request{Question: someQuestion, Strategy: "static"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.PendingReview || a.Oversight == nil || a.Oversight.Decision != assay.DecisionPending {
		t.Fatalf("answer = %+v, want one that waits", a)
	}
	return a
}

// waiting returns an engine in which every answer waits, and the answer to someQuestion.
func waiting(t *testing.T, p review.Policy) (*Engine, assay.Answer) {
	t.Helper()
	e := open(t)
	p.Name, p.Always = "all", true
	setPolicy(t, e, p)
	return e, askPending(t, e)
}

// claimed claims and views a review.
func claimed(t *testing.T, e *Engine, by assay.Principal, id string) ReviewView {
	t.Helper()
	if _, err := e.Claim(t.Context(), by, id, 0); err != nil {
		t.Fatal(err)
	}
	view, err := e.Review(t.Context(), by, id)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func wantErr(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s = %v, want %v", what, err, kind)
	}
}

// wantReplay checks that a replay reaches the stored answer, and returns it.
func wantReplay(t *testing.T, e *Engine, id string) assay.Answer {
	t.Helper()
	a, err := e.Replay(t.Context(), reader(), id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPendingShowsNothing looks for the draft in everything that its asker can get at.
func TestPendingShowsNothing(t *testing.T) {
	t.Parallel()
	write := texts("fake/generator", func(req llm.Request) string {
		return jsonOf(map[string]any{"shape": "prose", "columns": []string{}, "conflicts": []any{}, "open": []string{}, "statements": []any{
			map[string]any{"text": "Travel to a customer is approved by the head of the department.", "sources": []int{1}, "item": false, "cells": []string{}, "section": ""},
		}})
	})
	for name, e := range map[string]*Engine{"local": open(t), "model": openModels(t, served(map[string]*scripted{role.GeneratorRole: write}))} {
		ctx := t.Context()
		setPolicy(t, e, review.Policy{Name: "all", Always: true})
		clean := func(what string, v any) {
			t.Helper()
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), secretWords) {
				t.Errorf("%s: %s shows the draft: %s", name, what, data)
			}
		}
		var id string
		for ev, err := range e.Ask(ctx, reader(), Request{Question: someQuestion}) {
			if err != nil {
				t.Fatal(err)
			}
			id = ev.Run
			clean("an event", ev)
			if ev.Kind == Draft {
				t.Errorf("%s: a draft was streamed", name)
			}
		}
		r, steps, err := e.Run(ctx, reader(), id)
		if err != nil {
			t.Fatal(err)
		}
		clean("Run", struct {
			R assay.Run
			S []Step
		}{r, steps})
		if p := proofOf(t, e, reader(), id); !p.Withheld {
			t.Errorf("%s: the proof has all payloads", name)
		} else {
			clean("Prove", p)
		}
		if err := e.checkErasable(ctx, []assay.Run{r}, []string{id}); !errors.Is(err, assay.ErrSuspended) {
			t.Errorf("%s: erasable: %v", name, err)
		}
		if r.State != assay.RunSuspended || len(steps) == 0 || steps[0].Summary != withheldText {
			t.Errorf("%s: run is %s, first step %+v", name, r.State, steps[0])
		}
		resumed, err := last(e.Resume(ctx, reader(), id))
		if err != nil || resumed.Status != assay.PendingReview {
			t.Errorf("%s: Resume = %+v, %v", name, resumed, err)
		}
		clean("Resume", resumed)
		diff, err := e.Diff(ctx, reader(), id, id)
		if err != nil {
			t.Fatal(err)
		}
		clean("Diff", diff)
		_, err = e.Replay(ctx, reader(), id)
		wantErr(t, "Replay", err, assay.ErrSuspended)
		_, err = last(e.Fork(ctx, reader(), id, "1", nil))
		wantErr(t, "Fork", err, assay.ErrSuspended)
		_, err = e.Answer(ctx, reader(), Request{Question: "And who else?", Follows: id})
		wantErr(t, "a follow-up", err, assay.ErrSuspended)
		wantErr(t, "DeleteRun", e.DeleteRun(ctx, reader(), id, ""), assay.ErrSuspended)
		pruned, err := e.PruneRuns(ctx, reader(), time.Now().Add(time.Hour), "", false)
		if err != nil || pruned.Waiting != 1 || pruned.Runs != 0 {
			t.Errorf("%s: PruneRuns = %+v, %v", name, pruned, err)
		}
		again := askPending(t, e) // neither the cache nor another run gives it away
		if again.Cached != nil {
			t.Errorf("%s: answered from the cache", name)
		}
		_, err = e.Review(ctx, reader(), id)
		wantErr(t, "Review by the asker", err, assay.ErrForbidden)
		_, err = e.Reviews(ctx, reader(), ReviewFilter{})
		wantErr(t, "Reviews by the asker", err, assay.ErrForbidden)
		wantActsWithout(t, e, secretWords, someQuestion)
	}
}

// wantActsWithout checks that no act on reviews has these words.
func wantActsWithout(t *testing.T, e *Engine, words ...string) {
	t.Helper()
	for kind, acts := range actsByKind(t, e) {
		for _, a := range acts {
			for _, w := range words {
				if strings.HasPrefix(kind, "review.") && strings.Contains(a, w) {
					t.Errorf("act %s: %s", kind, a)
				}
			}
		}
	}
}

// actsOf returns the payloads of the acts in the audit log by kind.
func actsByKind(t *testing.T, e *Engine) map[string][]string {
	t.Helper()
	size, err := e.tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	acts := map[string][]string{}
	for entry, err := range e.tenant.Audit().Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ Act string }
		if err := json.Unmarshal(entry.Header, &head); err != nil {
			t.Fatal(err)
		}
		if entry.Run == "" {
			acts[head.Act] = append(acts[head.Act], string(entry.Header)+string(entry.Payload))
		}
	}
	return acts
}

// TestReviewAcrossRestart lets a run wait while the engine is closed, and another program version opens
// the data.
func TestReviewAcrossRestart(t *testing.T) {
	t.Parallel()
	dir, now := filepath.Join(t.TempDir(), "data"), time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	opened := func() *Engine {
		e, err := Open(t.Context(), Config{Dir: dir, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := opened()
	ingestPaths(t, e, "testdata/handbook")
	direct, err := e.Answer(t.Context(), reader(), Request{Question: someQuestion, Strategy: "static"})
	if err != nil {
		t.Fatal(err)
	}
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	a, err := e.Answer(t.Context(), reader(), Request{Question: someQuestion, Strategy: "static", NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(6 * 7 * 24 * time.Hour)
	e = opened()
	// The strategy that made the answer is not asked again: its steps are of another program now.
	if r, err := e.runs.Run(t.Context(), a.Run); err != nil || r.State != assay.RunSuspended || r.Live {
		t.Fatalf("after the restart: %+v, %v", r, err)
	}
	view := claimed(t, e, reviewer("bob"), a.Run)
	if diff := cmp.Diff(direct.Text, view.Draft.Text); diff != "" {
		t.Errorf("the draft after the restart (-want +got):\n%s", diff)
	}
	if len(view.Evidence) == 0 || len(view.Steps) == 0 || view.Steps[0].Output == nil || len(view.Draft.Claims) == 0 {
		t.Errorf("the view lacks evidence, steps or claims: %+v", view)
	}
	now = now.Add(2 * time.Second)
	s, err := e.Approve(t.Context(), reviewer("bob"), a.Run)
	if err != nil || s.Decision != assay.DecisionApproved {
		t.Fatalf("Approve = %+v, %v", s, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = opened()
	defer e.Close()
	got, err := e.Await(t.Context(), reader(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != assay.Answered || got.Text != direct.Text || got.Oversight.By[0] != "bob" || got.Oversight.Decision != assay.DecisionApproved {
		t.Errorf("the answer that was approved: %+v", got)
	}
	if _, steps, err := e.Run(t.Context(), reader(), a.Run); err != nil || steps[0].Summary == withheldText || steps[len(steps)-1].Kind != assay.StepHuman {
		t.Errorf("the steps after the approval: %+v, %v", steps, err)
	}
	replayed := wantReplay(t, e, a.Run)
	if diff := cmp.Diff(got, replayed); diff != "" {
		t.Errorf("replay (-stored +replayed):\n%s", diff)
	}
	decided := actsByKind(t, e)["review.decided"]
	if len(decided) != 1 || !strings.Contains(decided[0], `"dwell_ms":2000`) {
		t.Errorf("acts = %v, want one with the time from the claim", decided)
	}
}

// TestDraftFormat checks that a draft or a case of a newer program is refused, not misread.
func TestDraftFormat(t *testing.T) {
	t.Parallel()
	_, err := parseDraft(fmt.Appendf(nil, `{"format":%d}`, review.Format+1))
	wantErr(t, "parseDraft of a newer format", err, assay.ErrNewer)
	_, err = parseDraft([]byte(`{"format":"x"}`))
	wantErr(t, "parseDraft of nonsense", err, assay.ErrDamaged)
	h, err := parseDraft([]byte(`{"format":1,"answer":{"text":"a","field_of_later":1},"evidence":[]}`))
	if err != nil || h.present().Text != "a" {
		t.Errorf("parseDraft = %+v, %v", h, err)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	view := claimed(t, e, reviewer("bob"), a.Run)
	const own = "Ask early in December"
	text := view.Draft.Text + " " + own + "."
	s, err := e.Edit(t.Context(), reviewer("bob"), a.Run, text)
	if err != nil || s.Decision != assay.DecisionEdited {
		t.Fatalf("Edit = %+v, %v", s, err)
	}
	got, err := e.Await(t.Context(), reader(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != assay.Incomplete || got.Reason != assay.ReasonReviewerStatement || got.Oversight.Decision != assay.DecisionEdited {
		t.Errorf("answer = %+v", got)
	}
	if want := view.Draft.Text + " " + own + ". (statement of the reviewer bob)"; got.Text != want {
		t.Errorf("text = %q, want %q", got.Text, want)
	}
	for i, c := range got.Claims {
		of := got.Text[c.Start:c.End]
		if isOwn := strings.HasPrefix(of, own); isOwn != (c.Reviewer == "bob") || isOwn != (c.Verdict != assay.Supported) || isOwn != (len(c.Citations) == 0) {
			t.Errorf("claim %d: %q, %+v", i, of, c)
		}
	}
	for _, c := range got.Citations {
		if !strings.Contains(c.Quote, "department") || c.Document == "" {
			t.Errorf("citation = %+v", c)
		}
	}
	if diff := cmp.Diff(got, wantReplay(t, e, a.Run)); diff != "" {
		t.Errorf("replay (-stored +replayed):\n%s", diff)
	}
	after, err := e.Review(t.Context(), reviewer("bob"), a.Run)
	if err != nil || after.Original == nil || after.Original.Text != view.Draft.Text || after.Draft.Text != got.Text || len(after.Changes) < 2 || len(after.Rulings) != 1 {
		t.Errorf("view after the edit: %+v, %v", after, err)
	}
	_, steps, err := e.Run(t.Context(), reader(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[assay.StepKind]bool{}
	for _, st := range steps {
		if st.Output != nil {
			t.Errorf("step %s of an edited answer is shown to its asker", st.Path)
		}
		if strings.HasPrefix(st.Path, rulingScope) {
			kinds[st.Kind] = true
		}
	}
	if !kinds[assay.StepHuman] || !kinds[assay.StepVerify] {
		t.Errorf("steps of the ruling: %v, want a human's and a verifier's", kinds)
	}
}

// TestEditRefused checks that a text which contradicts the documents is not supported, whatever it cites.
func TestEditRefused(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	claimed(t, e, reviewer("bob"), a.Run)
	for _, text := range []string{"", "  ", "Why?", strings.Repeat("x", MaxReviewText+1)} {
		_, err := e.Edit(t.Context(), reviewer("bob"), a.Run, text)
		wantErr(t, fmt.Sprintf("Edit to %.10q", text), err, assay.ErrInvalid)
	}
	if _, err := e.Edit(t.Context(), reviewer("bob"), a.Run, "Travel to a customer is approved by the receptionist. [1][99]"); err != nil {
		t.Fatal(err)
	}
	got, err := e.Await(t.Context(), reader(), a.Run)
	if err != nil || got.Claims[0].Verdict == assay.Supported || got.Claims[0].Reviewer != "bob" || len(got.Citations) != 0 || strings.Contains(got.Text, "[") {
		t.Errorf("answer = %+v, %v", got, err)
	}
}

func TestReject(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	claimed(t, e, reviewer("bob"), a.Run)
	_, err := e.Reject(t.Context(), reviewer("bob"), a.Run, " ")
	wantErr(t, "Reject without a reason", err, assay.ErrInvalid)
	if _, err := e.Reject(t.Context(), reviewer("bob"), a.Run, "out of date"); err != nil {
		t.Fatal(err)
	}
	got, err := last(e.Resume(t.Context(), reader(), a.Run))
	if err != nil || got.Status != assay.Rejected || got.Oversight.Reason != "out of date" || strings.Contains(got.Text, secretWords) || len(got.Claims)+len(got.Citations) > 0 {
		t.Errorf("answer = %+v, %v", got, err)
	}
	if diff := cmp.Diff(got, wantReplay(t, e, a.Run)); diff != "" {
		t.Errorf("replay (-stored +replayed):\n%s", diff)
	}
	_, err = e.Answer(t.Context(), reader(), Request{Question: "And who else?", Follows: a.Run})
	wantErr(t, "a follow-up", err, assay.ErrInvalid)
	_, err = last(e.Fork(t.Context(), reader(), a.Run, "1", nil))
	wantErr(t, "Fork", err, assay.ErrForbidden)
	if p := proofOf(t, e, reader(), a.Run); !p.Withheld || strings.Contains(jsonOf(p), secretWords) {
		t.Errorf("the proof of a rejected answer is withheld: %t: %s", p.Withheld, jsonOf(p))
	}
	_, err = e.Approve(t.Context(), reviewer("bob"), a.Run)
	wantErr(t, "Approve after the decision", err, assay.ErrInvalid)
	wantActsWithout(t, e, "out of date")
	if err := e.DeleteRun(t.Context(), reader(), a.Run, ""); err != nil {
		t.Error(err)
	}
}

// TestWhoMayReview checks roles, one's own question under another key, groups and hidden documents.
func TestWhoMayReview(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{Reviewers: "legal"})
	ctx := t.Context()
	for name, p := range map[string]assay.Principal{
		"no one":                  {},
		"a reader":                {User: "bob", Roles: []string{"reader"}},
		"the asker":               {User: "ann", Roles: []string{"reviewer"}, Groups: []string{"legal"}, Key: "other"},
		"the asker as admin":      {User: "ann", Roles: []string{"admin"}},
		"a user named local":      {User: "local", Key: "k"},
		"a reviewer of no group":  reviewer("bob"),
		"a reviewer of sales":     reviewer("bob", "sales"),
		"an editor of that group": {User: "bob", Roles: []string{"editor"}, Groups: []string{"legal"}},
	} {
		_, err := e.Claim(ctx, p, a.Run, 0)
		wantErr(t, "Claim by "+name, err, assay.ErrForbidden)
		_, err = e.Review(ctx, p, a.Run)
		wantErr(t, "Review by "+name, err, assay.ErrForbidden)
		_, err = e.Approve(ctx, p, a.Run)
		wantErr(t, "Approve by "+name, err, assay.ErrForbidden)
	}
	list, err := e.Reviews(ctx, reviewer("bob"), ReviewFilter{})
	if err != nil || len(list) != 0 {
		t.Errorf("Reviews of another group = %v, %v", list, err)
	}
	if _, err := e.Claim(ctx, reviewer("bob", "legal"), a.Run, 0); err != nil {
		t.Error(err)
	}
	_, err = e.Claim(ctx, reviewer("cid", "legal"), "none", 0)
	wantErr(t, "Claim of no run", err, assay.ErrNotFound)
	// A reviewer who has not seen the answer cannot approve it.
	_, err = e.Approve(ctx, reviewer("bob", "legal"), a.Run)
	wantErr(t, "Approve without a look", err, assay.ErrInvalid)
}

// TestHiddenFromReviewer checks that a reviewer who may not see a document that the run read sees
// nothing of the answer, and cannot claim it.
func TestHiddenFromReviewer(t *testing.T) {
	t.Parallel()
	e := openDir(t, t.TempDir())
	acl, err := assay.RestrictTo("user:ann", "group:legal")
	if err != nil {
		t.Fatal(err)
	}
	ingestPaths(t, e, "testdata/handbook")
	var entries []store.Entry
	for d, err := range e.content.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d.ACL = acl
		entries = append(entries, store.Entry{Document: d})
	}
	if err := e.Put(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	a := askPending(t, e)
	view, err := e.Review(t.Context(), reviewer("bob"), a.Run)
	data, _ := json.Marshal(view)
	if err != nil || view.Hidden == 0 || view.Draft != nil || strings.Contains(string(data), secretWords) || strings.Contains(string(data), "travel.md") {
		t.Errorf("view = %s, %v", data, err)
	}
	_, err = e.Claim(t.Context(), reviewer("bob"), a.Run, 0)
	wantErr(t, "Claim", err, assay.ErrForbidden)
	if view := claimed(t, e, reviewer("cid", "legal"), a.Run); view.Hidden != 0 || view.Draft == nil {
		t.Errorf("view of the group: %+v", view)
	}
	for i := range entries { // an ACL that changes after the claim
		entries[i].Document.ACL, err = assay.RestrictTo("user:ann")
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Put(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	_, err = e.Approve(t.Context(), reviewer("cid", "legal"), a.Run)
	wantErr(t, "Approve after a document was hidden", err, assay.ErrForbidden)
}

func TestTwoPairsOfEyes(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{Approvals: 2})
	view := claimed(t, e, reviewer("bob"), a.Run)
	if s, err := e.Approve(t.Context(), reviewer("bob"), a.Run); err != nil || s.Decision != assay.DecisionPending || len(s.Approved) != 1 {
		t.Fatalf("first approval = %+v, %v", s, err)
	}
	_, err := e.Claim(t.Context(), reviewer("bob"), a.Run, 0)
	wantErr(t, "a second claim", err, assay.ErrForbidden)
	claimed(t, e, reviewer("cid"), a.Run)
	if s, err := e.Edit(t.Context(), reviewer("cid"), a.Run, view.Draft.Text); err != nil || s.Decision != assay.DecisionPending || s.Approved[0] != "cid" {
		t.Fatalf("edit = %+v, %v", s, err)
	}
	if r, err := e.runs.Run(t.Context(), a.Run); err != nil || r.State != assay.RunSuspended || r.Answer.Text == view.Draft.Text {
		t.Errorf("after the edit: %+v, %v", r, err)
	}
	claimed(t, e, reviewer("bob"), a.Run)
	s, err := e.Approve(t.Context(), reviewer("bob"), a.Run)
	if err != nil || s.Decision != assay.DecisionEdited {
		t.Fatalf("second approval = %+v, %v", s, err)
	}
	got := wantReplay(t, e, a.Run)
	if diff := cmp.Diff([]string{"cid", "bob"}, got.Oversight.By); diff != "" || got.Status != assay.Answered || got.Text != view.Draft.Text {
		t.Errorf("answer = %+v", got)
	}
}

func TestReviewModes(t *testing.T) {
	t.Parallel()
	e := open(t)
	req := Request{Question: someQuestion, Strategy: "static", Review: ReviewAlways, NoCache: true}
	asked := func(p assay.Principal) assay.Status {
		t.Helper()
		a, err := e.Answer(t.Context(), p, req)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status
	}
	if s := asked(reader()); s != assay.PendingReview {
		t.Errorf("always: %s", s)
	}
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	req.Review = ReviewNever
	_, err := e.Answer(t.Context(), reader(), req)
	wantErr(t, "never, by a reader", err, assay.ErrForbidden)
	if s := asked(assay.Local()); s != assay.Answered {
		t.Errorf("never, on the command line: %s", s)
	}
	if s := asked(assay.Principal{User: "eve", Roles: []string{"admin"}}); s != assay.Answered {
		t.Errorf("never, by an administrator: %s", s)
	}
	setPolicy(t, e, review.Policy{Name: "strict", Statuses: []assay.Status{assay.Answered}, Mandatory: true})
	if s := asked(assay.Local()); s != assay.PendingReview {
		t.Errorf("never, with a mandatory policy: %s", s)
	}
	req.Review = "perhaps"
	_, err = e.Answer(t.Context(), assay.Local(), req)
	wantErr(t, "another mode", err, assay.ErrInvalid)
	wantErr(t, "SetPolicy by a reader", e.SetPolicy(t.Context(), reader(), review.Policy{Name: "x", Always: true}, ""), assay.ErrForbidden)
	wantErr(t, "RemovePolicy by a reader", e.RemovePolicy(t.Context(), reader(), "all", ""), assay.ErrForbidden)
	wantErr(t, "RemovePolicy of none", e.RemovePolicy(t.Context(), assay.Local(), "none", ""), assay.ErrNotFound)
}

// TestBrokenPolicy checks that a policy that cannot be read or evaluated makes answers wait.
func TestBrokenPolicy(t *testing.T) {
	t.Parallel()
	e := open(t)
	topic := review.Policy{Name: "topic", Topics: []string{"travel"}} // this engine has no reader
	setPolicy(t, e, topic)
	a := askPending(t, e)
	list, err := e.Reviews(t.Context(), reviewer("bob"), ReviewFilter{Policy: "topic"})
	if err != nil || len(list) != 1 || list[0].Run != a.Run || !list[0].Policies[0].Failed {
		t.Errorf("Reviews = %+v, %v", list, err)
	}
	if err := e.RemovePolicy(t.Context(), assay.Local(), "topic", ""); err != nil {
		t.Fatal(err)
	}
	item := store.RegistryItem{Kind: policyKind, Name: "later", Value: json.RawMessage(`{"name":"later","condition_of_later":true}`)}
	if err := e.tenant.Registry().Set(t.Context(), item, store.Act{Kind: "policy.set", Subject: "later"}); err != nil {
		t.Fatal(err)
	}
	askPending(t, e)
	_, err = e.Policies(t.Context())
	wantErr(t, "Policies", err, assay.ErrDamaged)
}

// TestSampledStream checks that only runs in a sample are withheld while they run.
func TestSampledStream(t *testing.T) {
	t.Parallel()
	e := open(t)
	p := review.Policy{Name: "sample", Sample: 50}
	setPolicy(t, e, p)
	both := map[bool]bool{}
	for i := range 40 {
		id := fmt.Sprint("run", i)
		open := false
		var status assay.Status
		for ev, err := range e.Ask(t.Context(), reader(), Request{ID: id, Question: someQuestion, Strategy: "static", NoCache: true}) {
			if err != nil {
				t.Fatal(err)
			}
			open = open || ev.Results != nil
			if ev.Answer != nil {
				status = ev.Answer.Status
			}
		}
		in := p.Sampled(id)
		both[in] = true
		if in != (status == assay.PendingReview) || in == open {
			t.Errorf("%s: in the sample %t, answer %s, results shown %t", id, in, status, open)
		}
		if len(both) == 2 {
			return
		}
	}
	t.Error("the sample has all runs, or none")
}

func TestEscalation(t *testing.T) {
	t.Parallel()
	for _, reject := range []bool{false, true} {
		now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		e, err := Open(t.Context(), Config{Dir: t.TempDir(), Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		ingestPaths(t, e, "testdata/handbook")
		setPolicy(t, e, review.Policy{Name: "all", Always: true, Reviewers: "legal", Deadline: time.Hour, EscalateTo: "heads", Reject: reject})
		a := askPending(t, e)
		if want := now.Add(time.Hour); !a.Oversight.Deadline.Equal(want) {
			t.Errorf("deadline = %v, want %v", a.Oversight.Deadline, want)
		}
		now = now.Add(time.Hour)
		if n, err := e.EscalateReviews(t.Context()); n != 1 || err != nil {
			t.Errorf("EscalateReviews = %d, %v", n, err)
		}
		if n, err := e.EscalateReviews(t.Context()); n != 0 || err != nil {
			t.Errorf("EscalateReviews again = %d, %v", n, err)
		}
		acts := actsByKind(t, e)
		if len(acts["review.escalated"]) != 1 {
			t.Errorf("acts = %v", acts["review.escalated"])
		}
		got, err := last(e.Resume(t.Context(), reader(), a.Run))
		if err != nil {
			t.Fatal(err)
		}
		if reject {
			if got.Status != assay.Rejected || got.Reason != assay.ReasonExpired || len(acts["review.decided"]) != 1 {
				t.Errorf("after the deadline: %+v", got)
			}
			wantReplay(t, e, a.Run)
		} else {
			if got.Status != assay.PendingReview {
				t.Errorf("after the deadline: %s", got.Status)
			}
			claimed(t, e, reviewer("dan", "heads"), a.Run)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConcurrentReviewers lets reviewers decide the same answer at the same time.
func TestConcurrentReviewers(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	var decided atomic.Int32
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			by := reviewer(fmt.Sprint("r", i))
			if _, err := e.Claim(t.Context(), by, a.Run, 0); err != nil {
				if !errors.Is(err, assay.ErrLocked) && !errors.Is(err, assay.ErrInvalid) {
					t.Error(err)
				}
				return
			}
			if _, err := e.Review(t.Context(), by, a.Run); err != nil {
				t.Error(err)
			}
			if _, err := e.Approve(t.Context(), by, a.Run); err != nil {
				t.Error(err)
				return
			}
			decided.Add(1)
		})
	}
	all.Wait()
	if n := len(actsByKind(t, e)["review.decided"]); decided.Load() != 1 || n != 1 {
		t.Errorf("%d decisions, %d acts, want 1", decided.Load(), n)
	}
	wantReplay(t, e, a.Run)
}

// TestAwait checks that a caller who waits gets the decided answer.
func TestAwait(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	got := make(chan assay.Answer, 1)
	go func() {
		answer, err := e.Await(t.Context(), reader(), a.Run)
		if err != nil {
			t.Error(err)
		}
		got <- answer
	}()
	claimed(t, e, reviewer("bob"), a.Run)
	if _, err := e.Approve(t.Context(), reviewer("bob"), a.Run); err != nil {
		t.Fatal(err)
	}
	if answer := <-got; answer.Status != assay.Answered {
		t.Errorf("Await = %+v", answer)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	e2, b := waiting(t, review.Policy{})
	_, err := e2.Await(ended, reader(), b.Run)
	wantErr(t, "Await with an ended context", err, context.Canceled)
	_, err = e2.Await(t.Context(), reviewer("eve"), b.Run)
	wantErr(t, "Await of another's run", err, assay.ErrNotFound)
}

// TestTamperedRuling checks that a replay finds a ruling that is not about the draft.
func TestTamperedRuling(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	claimed(t, e, reviewer("bob"), a.Run)
	if _, err := e.Reject(t.Context(), reviewer("bob"), a.Run, "wrong"); err != nil {
		t.Fatal(err)
	}
	r, records, err := e.journal(t.Context(), reader(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	req, err := questionOf(r)
	if err != nil {
		t.Fatal(err)
	}
	records[len(records)-1].Input = json.RawMessage(`{"text":"00"}`)
	_, err = e.replay(t.Context(), r, req, records)
	if _, ok := errors.AsType[*run.DivergenceError](err); !ok {
		t.Errorf("replay = %v, want a divergence", err)
	}
	if text := e.replayError(t.Context(), r, err).Error(); strings.Contains(text, "00") {
		t.Errorf("the error shows a withheld step: %s", text)
	}
	_, err = e.replay(t.Context(), r, req, records[:len(records)-1])
	if err != nil {
		t.Error(err) // the draft itself; Replay then finds that it is not the stored answer
	}
}

// TestReviewByAnotherProgram decides answers of a strategy that the program which decides does not
// have. The draft is stored whole, so the strategy is not needed.
func TestReviewByAnotherProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, err := Open(t.Context(), Config{Dir: dir, Strategies: []strategy.Spec{{Name: "own", Func: strategy.Static}}})
	if err != nil {
		t.Fatal(err)
	}
	ingestPaths(t, before, "testdata/handbook")
	setPolicy(t, before, review.Policy{Name: "all", Always: true})
	var runs []string
	for range 3 {
		a, err := before.Answer(t.Context(), reader(), Request{Question: someQuestion, Strategy: "own"})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, a.Run)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	e := openDir(t, dir)
	for i, want := range []assay.Decision{assay.DecisionApproved, assay.DecisionEdited, assay.DecisionRejected} {
		view := claimed(t, e, reviewer("bob"), runs[i])
		switch want {
		case assay.DecisionApproved:
			_, err = e.Approve(t.Context(), reviewer("bob"), runs[i])
		case assay.DecisionEdited:
			_, err = e.Edit(t.Context(), reviewer("bob"), runs[i], "Travel to a customer is approved by the head of the department. [1]")
		default:
			_, err = e.Reject(t.Context(), reviewer("bob"), runs[i], "wrong")
		}
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		got, err := e.Await(t.Context(), reader(), runs[i])
		if err != nil || got.Oversight.Decision != want {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
		if want == assay.DecisionApproved && got.Text != view.Draft.Text || want == assay.DecisionEdited && got.Status != assay.Answered {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// TestCheckEdit checks that a check says what an edit would make of a text, and changes nothing.
func TestCheckEdit(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	const text = "The head of the department approves travel to a customer. [1] Ask early."
	_, err := e.CheckEdit(t.Context(), reviewer("bob"), a.Run, text)
	wantErr(t, "CheckEdit without a claim", err, assay.ErrInvalid)
	view := claimed(t, e, reviewer("bob"), a.Run)
	for what, call := range map[string]struct {
		by   assay.Principal
		text string
		want error
	}{
		"another reviewer": {reviewer("cid"), text, assay.ErrLocked},
		"a reader":         {reader(), text, assay.ErrForbidden},
		"no text":          {reviewer("bob"), " ", assay.ErrInvalid},
		"a long text":      {reviewer("bob"), strings.Repeat("a", MaxReviewText+1), assay.ErrInvalid},
	} {
		_, err := e.CheckEdit(t.Context(), call.by, a.Run, call.text)
		wantErr(t, what, err, call.want)
	}
	check, err := e.CheckEdit(t.Context(), reviewer("bob"), a.Run, text)
	if err != nil {
		t.Fatal(err)
	}
	if check.Answer.Status != assay.Incomplete || len(check.Answer.Claims) != 2 || check.Answer.Claims[1].Reviewer != "bob" || check.Answer.Oversight != nil || len(check.Changes) < 2 {
		t.Errorf("check = %+v", check)
	}
	again, err := e.Review(t.Context(), reviewer("bob"), a.Run)
	if err != nil || again.Draft.Text != view.Draft.Text || again.Original != nil || len(again.Rulings) > 0 || again.ClaimedBy != "bob" {
		t.Errorf("the review after a check: %+v, %v", again, err)
	}
	if acts := actsByKind(t, e); len(acts["review.edited"])+len(acts["review.decided"]) > 0 {
		t.Error("a check is in the audit log as an edit")
	}
	if _, err := e.Edit(t.Context(), reviewer("bob"), a.Run, text); err != nil {
		t.Fatal(err)
	}
	if got := wantReplay(t, e, a.Run); got.Text != check.Answer.Text || got.Status != check.Answer.Status {
		t.Errorf("the edit made %q, the check said %q", got.Text, check.Answer.Text)
	}
}
