package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

var root = assay.Principal{User: "root", Roles: []string{"admin"}}

// modelsWaiting returns an engine with models in which the answer to someQuestion waits.
func modelsWaiting(t *testing.T, by map[string]*scripted) (*Engine, assay.Answer) {
	t.Helper()
	e := openModels(t, served(by))
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	return e, askPending(t, e)
}

// TestEditIsCounted checks that the calls of an edit's verification are in the ledger like others.
func TestEditIsCounted(t *testing.T) {
	t.Parallel()
	by := handbook.models()
	e, a := modelsWaiting(t, by)
	setLimits(t, e, limit.Users, limit.Limits{limit.CallsPerDay: 1000})
	claimed(t, e, reviewer("bob"), a.Run)
	before := by[role.VerifierRole].calls()
	if _, err := e.Edit(t.Context(), reviewer("bob"), a.Run, "The department head has to approve travel. [1]"); err != nil {
		t.Fatal(err)
	}
	if by[role.VerifierRole].calls() == before {
		t.Fatal("the verifier was not called")
	}
	made := 0
	for _, m := range by {
		made += m.calls()
	}
	if u := spent(t, e, limit.User("ann"), limit.CallsPerDay); u.Spent != int64(made) || u.Reserved != 0 || u.Other != 0 {
		t.Errorf("usage %+v after %d calls", u, made)
	}
	if got := wantReplay(t, e, a.Run); int(got.Usage.Calls) != made {
		t.Errorf("the answer says %+v after %d calls", got.Usage, made)
	}
}

// TestEditWithoutVerification checks that an edit whose verification a limit or a stop refuses changes
// nothing, also if the stop comes during the verifier's call.
func TestEditWithoutVerification(t *testing.T) {
	t.Parallel()
	const text = "The department head has to approve travel. [1]"
	for name, test := range map[string]struct {
		refuse, allow func(*testing.T, *Engine)
		during        bool
		want          error
	}{
		"quota": {
			refuse: func(t *testing.T, e *Engine) { setLimits(t, e, limit.User("ann"), limit.Limits{limit.CallsPerDay: 1}) },
			allow:  func(t *testing.T, e *Engine) { setLimits(t, e, limit.User("ann"), limit.Limits{limit.CallsPerDay: -1}) },
			want:   assay.ErrQuota,
		},
		"stop": {
			refuse: func(t *testing.T, e *Engine) { stopAll(t, e, false) },
			allow:  func(t *testing.T, e *Engine) { startAll(t, e, false) },
			want:   assay.ErrStopped,
		},
		"stop during the call": {
			refuse: func(t *testing.T, e *Engine) { stopAll(t, e, true) },
			allow:  func(t *testing.T, e *Engine) { startAll(t, e, true) },
			during: true, want: assay.ErrStopped,
		},
	} {
		by := handbook.models()
		e, a := modelsWaiting(t, by)
		claimed(t, e, reviewer("bob"), a.Run)
		if m := by[role.VerifierRole]; test.during {
			say, first := m.reply, true
			m.reply = func(ctx context.Context, n int, req llm.Request) (llm.Response, error) {
				if !first {
					return say(ctx, n, req)
				}
				first = false
				test.refuse(t, e)
				<-ctx.Done()
				return llm.Response{}, ctx.Err()
			}
		} else {
			test.refuse(t, e)
		}
		_, err := e.Edit(t.Context(), reviewer("bob"), a.Run, text)
		wantErr(t, name+": Edit", err, test.want)
		view, err := e.Review(t.Context(), reviewer("bob"), a.Run)
		if err != nil || view.Decision != assay.DecisionPending || view.Original != nil {
			t.Errorf("%s: after it: %+v, %v", name, view.ReviewSummary, err)
		}
		test.allow(t, e)
		if s, err := e.Edit(t.Context(), reviewer("bob"), a.Run, text); err != nil || s.Decision != assay.DecisionEdited {
			t.Errorf("%s: Edit afterwards = %+v, %v", name, s, err)
		}
		wantReplay(t, e, a.Run)
		if u := spent(t, e, limit.User("ann"), limit.CallsPerDay); u.Reserved != 0 {
			t.Errorf("%s: usage %+v", name, u)
		}
	}
}

// TestRulingsAndCanaries checks that neither an edit nor an approval shows the text of a canary.
func TestRulingsAndCanaries(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	view := claimed(t, e, reviewer("bob"), a.Run)
	c, _, err := e.AddCanary(t.Context(), assay.Local(), NewCanary{Text: canaryNote})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Edit(t.Context(), reviewer("bob"), a.Run, view.Draft.Text+" "+canaryNote)
	wantErr(t, "Edit with a canary", err, assay.ErrForbidden)
	if acts := actsOf(t, e.tenant.Audit(), "canary.alarm"); len(acts) != 1 || !strings.Contains(acts[0], a.Run) || !strings.Contains(acts[0], c.Name) {
		t.Errorf("alarms %q", acts)
	}
	// A canary with the words of the answer.
	if _, _, err := e.AddCanary(t.Context(), assay.Local(), NewCanary{Text: strings.ReplaceAll(view.Draft.Text, "[1]", "")}); err != nil {
		t.Skipf("the answer is no canary: %v", err)
	}
	_, err = e.Approve(t.Context(), reviewer("bob"), a.Run)
	wantErr(t, "Approve with a canary", err, assay.ErrForbidden)
	if s, err := e.Reject(t.Context(), reviewer("bob"), a.Run, "it must not be shown"); err != nil || s.Decision != assay.DecisionRejected {
		t.Errorf("Reject = %+v, %v", s, err)
	}
}

// TestProofOfAWaitingRun checks that a proof shows nothing of an answer that is not released.
func TestProofOfAWaitingRun(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	key, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	prove := func(withheld bool) {
		t.Helper()
		authority := audit.Authority{Audit: e.tenant.Audit(), Registry: e.tenant.Registry(), Actor: root, Key: key}
		signed, err := authority.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []assay.Principal{reader(), root} {
			p, err := e.Prove(t.Context(), who, a.Run, signed)
			if err != nil {
				t.Fatal(err)
			}
			data, err := p.Bytes()
			if err != nil || p.Withheld != withheld || strings.Contains(string(data), secretWords) == withheld {
				t.Errorf("proof for %s: withheld %v, %v", who.User, p.Withheld, err)
			}
		}
	}
	prove(true)
	claimed(t, e, reviewer("bob"), a.Run)
	if _, err := e.Approve(t.Context(), reviewer("bob"), a.Run); err != nil {
		t.Fatal(err)
	}
	prove(false)
}

// TestEraseReviewed checks that a run is not erased while it waits, and that its draft goes with it
// afterwards.
func TestEraseReviewed(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	ctx := t.Context()
	_, err := e.EraseRuns(ctx, reader(), []string{a.Run}, "a request", false)
	wantErr(t, "EraseRuns of a run that waits", err, assay.ErrSuspended)
	wantErr(t, "Erase", e.runs.Erase(ctx, a.Run, store.Act{Kind: store.KindRunErased, Reason: "x"}), assay.ErrSuspended)
	claimed(t, e, reviewer("bob"), a.Run)
	if _, err := e.Approve(ctx, reviewer("bob"), a.Run); err != nil {
		t.Fatal(err)
	}
	if _, err := e.EraseRuns(ctx, reader(), []string{a.Run}, "a request", false); err != nil {
		t.Fatal(err)
	}
	_, err = e.tenant.Reviews().Review(ctx, a.Run)
	wantErr(t, "the draft of an erased run", err, assay.ErrNotFound)
	if all, err := e.Reviews(ctx, root, ReviewFilter{Decided: true}); err != nil || len(all) != 0 {
		t.Errorf("Reviews = %+v, %v", all, err)
	}
	limited, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	_, err = e.Await(limited, reader(), a.Run)
	wantErr(t, "Await of an erased run", err, assay.ErrNotFound)
}

// TestWithheldSteps checks that the steps of an answer that was withheld because of a canary are not
// shown either.
func TestWithheldSteps(t *testing.T) {
	t.Parallel()
	e := openConfigured(t, Config{Dir: t.TempDir()})
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	a := ask(t, e, "What was the interim amount for depot KQX-4821 of the Klimousett allocation?")
	_, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
	if a.Reason != assay.ReasonWithheld || err != nil || len(steps) == 0 || strings.Contains(jsonOf(steps), "Bradeikousten") {
		t.Errorf("%s: %s, %v", a.Reason, jsonOf(steps), err)
	}
	_, err = last(e.Fork(t.Context(), assay.Local(), a.Run, "1", nil))
	wantErr(t, "Fork", err, assay.ErrForbidden)
}

// TestCanaryAddedDuringARun checks that an answer is screened for canaries that were added after its
// run began.
func TestCanaryAddedDuringARun(t *testing.T) {
	t.Parallel()
	var e *Engine
	own := []strategy.Spec{{Name: "own", Func: func(ctx context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		if _, _, err := e.AddCanary(context.WithoutCancel(ctx), asker, NewCanary{Text: canaryNote}); err != nil {
			return strategy.Result{}, err
		}
		return strategy.Static(ctx, s, env)
	}}}
	e = openConfigured(t, Config{Dir: t.TempDir(), Strategies: own})
	putText(t, e, "note.md", "# Allocation\n\n"+canaryNote)
	a, err := e.Answer(t.Context(), asker, Request{Question: "What was the interim amount for depot KQX-4821 of the Klimousett allocation?", Strategy: "own"})
	if err != nil || a.Reason != assay.ReasonWithheld || strings.Contains(jsonOf(a), "483920") {
		t.Errorf("answer = %s, %v", jsonOf(a), err)
	}
}

// TestDivergenceShowsNothing checks that the error of a resumed run which left its journal does not
// quote the journal while a review is possible.
func TestDivergenceShowsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	draft := secretWords
	own := []strategy.Spec{{Name: "own", Func: func(c context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		_, err := run.Do(c, s, run.Step{Name: "draft", Kind: assay.StepGenerate}, draft, func(context.Context, string) (string, assay.Usage, error) {
			return draft, assay.Usage{}, nil
		})
		cancel()
		if err != nil {
			return strategy.Result{}, err
		}
		return strategy.Static(c, s, env)
	}}}
	e := openConfigured(t, Config{Dir: t.TempDir(), Strategies: own, Strategy: "own"})
	ingestPaths(t, e, "testdata/handbook")
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	_, err := e.Answer(ctx, reader(), Request{Question: someQuestion})
	var ended *RunError
	if !errors.As(err, &ended) || !ended.Resumable {
		t.Fatalf("an interrupted run: %v", err)
	}
	draft = "something else"
	_, err = last(e.Resume(t.Context(), reader(), ended.Run))
	wantErr(t, "Resume", err, assay.ErrDiverged)
	r, _, runErr := e.Run(t.Context(), reader(), ended.Run)
	if runErr != nil || err == nil || strings.Contains(err.Error()+r.Error, secretWords) {
		t.Errorf("Resume = %v; stored %q, %v", err, r.Error, runErr)
	}
}
