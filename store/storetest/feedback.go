package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var feedbackTests = []contractTest{
	{"shares", testShares},
	{"shares of a run are bounded", testMaxShares},
	{"feedback", testFeedback},
	{"feedback in parts", testFeedbackParts},
	{"questions", testQuestions},
	{"a question is added once", testQuestionOnce},
	{"what goes with a run", testFeedbackGone},
}

// shareOf returns a share of a run.
func shareOf(run, id string) store.Share {
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return store.Share{Run: run, ID: id, Hash: "hash of " + id, Created: created, Expires: created.Add(time.Hour)}
}

func testShares(t *testing.T, h Harness) {
	tenant, other, ctx := openTenant(t, h, "acme"), openTenant(t, h, "globex"), t.Context()
	mustFinish(t, tenant, "run")
	mustFinish(t, tenant, "second")
	a, b := shareOf("run", "a"), shareOf("run", "b")
	for _, s := range []store.Share{a, b} {
		if err := tenant.Shares().Create(ctx, s, assay.Principal{User: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, "Create with an ID in use", tenant.Shares().Create(ctx, store.Share{Run: "run", ID: "a", Hash: "other"}, assay.Principal{}), assay.ErrInvalid)
	wantErr(t, "Create with a token in use", tenant.Shares().Create(ctx, store.Share{Run: "second", ID: "c", Hash: a.Hash}, assay.Principal{}), assay.ErrInvalid)
	wantErr(t, "Create for no run", tenant.Shares().Create(ctx, shareOf("none", "n"), assay.Principal{}), assay.ErrNotFound)
	all, err := openTenant(t, h, "acme").Shares().List(ctx, "run")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the shares", all, []store.Share{a, b})
	found, err := tenant.Shares().Find(ctx, b.Hash)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the share", found, b)
	_, err = other.Shares().Find(ctx, b.Hash)
	wantErr(t, "Find in another tenant", err, assay.ErrNotFound)
	wantErr(t, "Revoke of another run's share", tenant.Shares().Revoke(ctx, "second", "a", assay.Principal{}), assay.ErrNotFound)
	if err := tenant.Shares().Revoke(ctx, "run", "a", assay.Principal{User: "ann"}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Revoke twice", tenant.Shares().Revoke(ctx, "run", "a", assay.Principal{}), assay.ErrNotFound)
	_, err = tenant.Shares().Find(ctx, a.Hash)
	wantErr(t, "Find of a revoked share", err, assay.ErrNotFound)
	wantKinds(t, tenant, "run", store.KindShareCreated, store.KindShareCreated, store.KindShareRevoked)
	wantErr(t, "an act of the store by a caller", tenant.Audit().Append(ctx, store.Act{Kind: store.KindShareCreated, Subject: "run"}), assay.ErrInvalid)
}

// wantKinds checks that the log ends with acts of these kinds about a run.
func wantKinds(t *testing.T, tenant store.Tenant, run string, kinds ...string) {
	t.Helper()
	file, err := tenant.Audit().About(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range file.Entries {
		var head struct{ Act string }
		if err := json.Unmarshal(e.Header, &head); err != nil {
			t.Fatal(err)
		}
		got = append(got, head.Act)
	}
	wantSame(t, "the last acts about the run", got[max(0, len(got)-len(kinds)):], kinds)
}

func testMaxShares(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	mustFinish(t, tenant, "run")
	for i := range store.MaxShares + 1 {
		err := tenant.Shares().Create(t.Context(), shareOf("run", fmt.Sprint(i)), assay.Principal{})
		if i < store.MaxShares && err != nil {
			t.Fatal(err)
		}
		if i == store.MaxShares {
			wantErr(t, "one share too many", err, assay.ErrInvalid)
		}
	}
}

// mustFeedback stores feedback.
func mustFeedback(t *testing.T, tenant store.Tenant, run, user, verdict string) {
	t.Helper()
	f := store.Feedback{Run: run, User: user, Verdict: verdict, Body: json.RawMessage(`{"note":"` + user + `"}`)}
	if err := tenant.Feedbacks().Set(t.Context(), f, store.Act{Kind: "feedback.set"}); err != nil {
		t.Fatal(err)
	}
}

func testFeedback(t *testing.T, h Harness) {
	tenant, other, ctx := openTenant(t, h, "acme"), openTenant(t, h, "globex"), t.Context()
	mustFinish(t, tenant, "run")
	mustFeedback(t, tenant, "run", "ann", "right")
	mustFeedback(t, tenant, "run", "bob", "wrong")
	mustFeedback(t, tenant, "run", "ann", "wrong")
	f, err := openTenant(t, h, "acme").Feedbacks().Feedback(ctx, "run", "ann")
	if err != nil || f.Verdict != "wrong" || string(f.Body) != `{"note":"ann"}` || f.Updated.IsZero() || len(f.Sets) != 0 {
		t.Errorf("the feedback is %+v, %v", f, err)
	}
	_, err = other.Feedbacks().Feedback(ctx, "run", "ann")
	wantErr(t, "Feedback of another tenant", err, assay.ErrNotFound)
	set := func(f store.Feedback) error { return tenant.Feedbacks().Set(ctx, f, store.Act{Kind: "feedback.set"}) }
	wantErr(t, "Set for no run", set(store.Feedback{Run: "none", User: "ann", Verdict: "right", Body: json.RawMessage(`{}`)}), assay.ErrNotFound)
	wantErr(t, "Set without a user", set(store.Feedback{Run: "run", Verdict: "right", Body: json.RawMessage(`{}`)}), assay.ErrInvalid)
	wantErr(t, "Set of no JSON", set(store.Feedback{Run: "run", User: "ann", Verdict: "right", Body: json.RawMessage(`{`)}), assay.ErrInvalid)
	if err := tenant.Feedbacks().Remove(ctx, "run", "ann", store.Act{Kind: "feedback.removed"}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Remove twice", tenant.Feedbacks().Remove(ctx, "run", "ann", store.Act{Kind: "feedback.removed"}), assay.ErrNotFound)
	_, err = tenant.Feedbacks().Feedback(ctx, "run", "ann")
	wantErr(t, "removed Feedback", err, assay.ErrNotFound)
	wantKinds(t, tenant, "run", "feedback.set", "feedback.set", "feedback.set", "feedback.removed")
}

// testFeedbackParts lists feedback in parts of one, with each filter.
func testFeedbackParts(t *testing.T, h Harness) {
	tenant, ctx := openTenant(t, h, "acme"), t.Context()
	for _, run := range []string{"a", "b"} {
		mustFinish(t, tenant, run)
		for _, user := range []string{"ann", "bob"} {
			h.Advance(time.Second)
			mustFeedback(t, tenant, run, user, map[string]string{"ann": "right", "bob": "wrong"}[user])
		}
	}
	add := store.Question{Set: "s", Run: "a", Line: json.RawMessage(`{}`)}
	if err := tenant.Questions().Add(ctx, add, store.Act{Kind: "question.added"}); err != nil {
		t.Fatal(err)
	}
	list := func(f store.FeedbackFilter) (got []string) {
		t.Helper()
		f.Limit = 1
		for {
			part, err := tenant.Feedbacks().List(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			if len(part) == 0 {
				return got
			}
			last := part[len(part)-1]
			got = append(got, fmt.Sprint(last.Run, " ", last.User, " ", last.Sets))
			f.After = store.FeedbackPlace{Updated: last.Updated, Run: last.Run, User: last.User}
		}
	}
	wantSame(t, "all", list(store.FeedbackFilter{}), []string{"b bob []", "b ann []", "a bob [s]", "a ann [s]"})
	wantSame(t, "those that are wrong", list(store.FeedbackFilter{Verdict: "wrong"}), []string{"b bob []", "a bob [s]"})
	wantSame(t, "those without a question", list(store.FeedbackFilter{Unlabelled: true}), []string{"b bob []", "b ann []"})
}

func testQuestions(t *testing.T, h Harness) {
	tenant, other, ctx := openTenant(t, h, "acme"), openTenant(t, h, "globex"), t.Context()
	mustFinish(t, tenant, "run")
	act := store.Act{Kind: "question.added"}
	q := store.Question{Set: "feedback", Run: "run", Line: json.RawMessage(`{"question":"Why?"}`), Documents: []string{"d1", "d2"}}
	if err := tenant.Questions().Add(ctx, q, act); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Add twice", tenant.Questions().Add(ctx, q, act), assay.ErrInvalid)
	for what, bad := range map[string]store.Question{
		"Add without a set": {Run: "run", Line: q.Line}, "Add of no JSON": {Set: "s", Run: "run", Line: json.RawMessage(`{`)},
	} {
		wantErr(t, what, tenant.Questions().Add(ctx, bad, act), assay.ErrInvalid)
	}
	wantErr(t, "Add for no run", tenant.Questions().Add(ctx, store.Question{Set: "s", Run: "none", Line: q.Line}, act), assay.ErrNotFound)
	sets, err := tenant.Questions().Sets(ctx)
	if err != nil || len(sets) != 1 || sets[0].Name != "feedback" || sets[0].Questions != 1 || sets[0].Updated.IsZero() {
		t.Errorf("the sets are %+v, %v", sets, err)
	}
	q.Line, q.Documents = json.RawMessage(`{"question":"How?"}`), []string{"d1"}
	if err := tenant.Questions().Change(ctx, q, act); err != nil {
		t.Fatal(err)
	}
	all, err := openTenant(t, h, "acme").Questions().Set(ctx, "feedback")
	if err != nil || len(all) != 1 {
		t.Fatalf("the questions are %+v, %v", all, err)
	}
	q.Updated = all[0].Updated
	wantSame(t, "the question", all[0], q)
	_, err = other.Questions().Set(ctx, "feedback")
	wantErr(t, "Set of another tenant", err, assay.ErrNotFound)
	wantErr(t, "Change of no question", tenant.Questions().Change(ctx, store.Question{Set: "no", Run: "run", Line: q.Line}, act), assay.ErrNotFound)
	if err := tenant.Questions().Remove(ctx, "feedback", "run", act); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Remove twice", tenant.Questions().Remove(ctx, "feedback", "run", act), assay.ErrNotFound)
	_, err = tenant.Questions().Set(ctx, "feedback")
	wantErr(t, "an empty set", err, assay.ErrNotFound)
}

// testQuestionOnce adds the same question from several goroutines.
func testQuestionOnce(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	mustFinish(t, tenant, "run")
	var added atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			q := store.Question{Set: "s", Run: "run", Line: json.RawMessage(`{}`)}
			err := tenant.Questions().Add(t.Context(), q, store.Act{Kind: "question.added"})
			if err == nil {
				added.Add(1)
			} else if !errors.Is(err, assay.ErrInvalid) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if added.Load() != 1 {
		t.Errorf("the question was added %d times", added.Load())
	}
}

// testFeedbackGone checks what is removed when a run is erased, is deleted, and expires.
func testFeedbackGone(t *testing.T, h Harness) {
	for _, kind := range []string{store.KindRunErased, store.KindRunDeleted, store.KindRunExpired} {
		tenant, ctx := openTenant(t, h, "acme"), t.Context()
		mustFinish(t, tenant, kind)
		share := shareOf(kind, kind)
		if err := tenant.Shares().Create(ctx, share, assay.Principal{}); err != nil {
			t.Fatal(err)
		}
		mustFeedback(t, tenant, kind, "ann", "right")
		q := store.Question{Set: kind, Run: kind, Line: json.RawMessage(`{}`)}
		if err := tenant.Questions().Add(ctx, q, store.Act{Kind: "question.added"}); err != nil {
			t.Fatal(err)
		}
		remove := tenant.Runs().Delete
		if kind == store.KindRunErased {
			remove = tenant.Runs().Erase
		}
		if err := remove(ctx, kind, store.Act{Kind: kind}); err != nil {
			t.Fatal(err)
		}
		_, err := tenant.Shares().Find(ctx, share.Hash)
		wantErr(t, kind+": Find", err, assay.ErrNotFound)
		_, err = tenant.Feedbacks().Feedback(ctx, kind, "ann")
		wantErr(t, kind+": Feedback", err, assay.ErrNotFound)
		_, err = tenant.Questions().Set(ctx, kind)
		if kept := err == nil; kept != (kind == store.KindRunExpired) {
			t.Errorf("%s: the question is kept: %t, %v", kind, kept, err)
		}
		if kind != store.KindRunErased {
			continue
		}
		wantErr(t, "Create for an erased run", tenant.Shares().Create(ctx, share, assay.Principal{}), assay.ErrInvalid)
		wantErr(t, "Add from an erased run", tenant.Questions().Add(ctx, q, store.Act{Kind: "question.added"}), assay.ErrInvalid)
		f := store.Feedback{Run: kind, User: "ann", Verdict: "right", Body: json.RawMessage(`{}`)}
		wantErr(t, "Set for an erased run", tenant.Feedbacks().Set(ctx, f, store.Act{Kind: "feedback.set"}), assay.ErrInvalid)
	}
}
