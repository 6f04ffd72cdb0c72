package review

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

// aCase returns a case that needs n approvals and was asked by ann.
func aCase(n int) Case {
	p := Policy{Name: "p", Always: true, Approvals: n, Deadline: time.Hour, EscalateTo: "heads", Reviewers: "legal"}
	return NewCase(assay.Run{ID: "r", Question: "q", Principal: assay.Principal{User: "ann"}}, []Match{{Policy: "p"}}, []Policy{p}, "h0", start)
}

func user(name string, groups ...string) assay.Principal {
	return assay.Principal{User: name, Groups: groups, Roles: []string{"reviewer"}}
}

// take claims c for a reviewer.
func take(t *testing.T, c Case, by string, now time.Time) Case {
	t.Helper()
	c, err := c.Take(by, 0, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantKind(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s = %v, want %v", what, err, kind)
	}
}

func TestMay(t *testing.T) {
	t.Parallel()
	c := aCase(1)
	wantKind(t, "the asker", c.May(user("ann", "legal"), false), assay.ErrForbidden)
	wantKind(t, "the asker as an administrator with another key", c.May(assay.Principal{User: "ann", Key: "k2"}, true), assay.ErrForbidden)
	for _, name := range []string{"Ann", " ann", "ａｎｎ"} {
		wantKind(t, "the asker as "+name, c.May(assay.Principal{User: name}, true), assay.ErrForbidden)
	}
	wantKind(t, "no one", c.May(assay.Principal{}, true), assay.ErrForbidden)
	wantKind(t, "another group", c.May(user("bob", "heads"), false), assay.ErrForbidden)
	wantKind(t, "the group", c.May(user("bob", "legal"), false), nil)
	wantKind(t, "an administrator", c.May(user("bob"), true), nil)
	c, r := c.Escalate(start.Add(time.Hour))
	if r.Final || !c.Open() || c.Overdue(start.Add(2*time.Hour)) {
		t.Errorf("escalated: %+v, %+v", c, r)
	}
	wantKind(t, "the group after the deadline", c.May(user("bob", "heads"), false), nil)
}

func TestClaim(t *testing.T) {
	t.Parallel()
	c := take(t, aCase(1), "bob", start)
	_, err := c.Take("cid", 0, start.Add(time.Minute))
	wantKind(t, "a second claim", err, assay.ErrLocked)
	_, err = c.Release("cid", start)
	wantKind(t, "release by another", err, assay.ErrLocked)
	renewed := take(t, c, "bob", start.Add(10*time.Minute))
	if renewed.Claim.At != start || renewed.Claim.Expires != start.Add(10*time.Minute+DefaultLease) {
		t.Errorf("renewed claim = %+v", renewed.Claim)
	}
	late := start.Add(DefaultLease)
	_, _, err = c.Approve(user("bob"), "", late)
	wantKind(t, "approval with an expired claim", err, assay.ErrInvalid)
	if c.ClaimedBy(late) != "" || c.ClaimedBy(start) != "bob" {
		t.Error("the claim does not expire")
	}
	taken := take(t, c, "cid", late)
	_, _, err = taken.Approve(user("bob"), "", late)
	wantKind(t, "approval with the claim of another", err, assay.ErrLocked)
	_, err = c.Take("bob", MaxLease+1, start)
	wantKind(t, "a claim that is too long", err, assay.ErrInvalid)
	_, _, err = aCase(1).Approve(user("bob"), "", start)
	wantKind(t, "approval without a claim", err, assay.ErrInvalid)
}

func TestDecide(t *testing.T) {
	t.Parallel()
	c := take(t, aCase(1), "bob", start)
	c, _ = c.See("bob", start.Add(time.Second))
	_, _, err := c.Approve(user("bob"), "h1", start)
	wantKind(t, "approval of another text", err, assay.ErrLocked)
	approved, r, err := c.Approve(user("bob"), "h0", start.Add(3*time.Second))
	if err != nil || !r.Final || r.Dwell != 3*time.Second || r.Open != 2*time.Second || approved.Decision != assay.DecisionApproved {
		t.Errorf("Approve = %+v, %+v, %v", approved, r, err)
	}
	_, err = approved.Take("cid", 0, start)
	wantKind(t, "claim after the decision", err, assay.ErrInvalid)
	_, _, err = approved.Deny(user("bob"), "no", start)
	wantKind(t, "a second decision", err, assay.ErrInvalid)

	_, _, err = c.Deny(user("bob"), "", start)
	wantKind(t, "rejection without a reason", err, assay.ErrInvalid)
	denied, r, err := c.Deny(user("bob"), "wrong", start)
	if err != nil || !r.Final || denied.Decision != assay.DecisionRejected || r.Reason != "wrong" {
		t.Errorf("Deny = %+v, %+v, %v", denied, r, err)
	}
	unseen, r, err := take(t, aCase(1), "bob", start).Approve(user("bob"), "", start)
	if err != nil || r.Open >= 0 || unseen.Open() {
		t.Errorf("approval of unseen evidence: %+v, %v", r, err)
	}
}

// TestTwoReviewers checks that two different reviewers must approve the same text.
func TestTwoReviewers(t *testing.T) {
	t.Parallel()
	c, r, err := take(t, aCase(2), "bob", start).Approve(user("bob"), "", start)
	if err != nil || r.Final || !c.Open() {
		t.Fatalf("first approval: %+v, %v", r, err)
	}
	_, err = c.Take("bob", 0, start)
	wantKind(t, "a second claim of the same reviewer", err, assay.ErrForbidden)
	// An edit ends the first approval.
	c, r, err = take(t, c, "cid", start).Edit(user("cid"), "new", "h1", start)
	if err != nil || r.Final || !c.Open() || c.Text != "h1" {
		t.Fatalf("edit: %+v, %v", r, err)
	}
	_, err = c.Take("cid", 0, start)
	wantKind(t, "approval of the editor's own text", err, assay.ErrForbidden)
	c, r, err = take(t, c, "bob", start).Approve(user("bob"), "h1", start)
	if err != nil || !r.Final || c.Decision != assay.DecisionEdited || len(r.Reviewers) != 2 {
		t.Errorf("second approval: %+v, %+v, %v", c, r, err)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	c := aCase(1)
	if c.Overdue(start.Add(time.Hour-1)) || !c.Overdue(start.Add(time.Hour)) {
		t.Error("the deadline is not at one hour")
	}
	c.Reject = true
	c, r := c.Escalate(start.Add(time.Hour))
	if !r.Final || r.Kind != assay.DecisionExpired || c.Open() || c.Decision != assay.DecisionExpired {
		t.Errorf("Escalate = %+v, %+v", c, r)
	}
}

// FuzzCase checks that a stored case is read back, or refused, without a panic.
func FuzzCase(f *testing.F) {
	data, err := json.Marshal(aCase(2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{"decision":"pending","claim":{"by":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCase(data)
		if err != nil {
			return
		}
		c, _ = c.Take("bob", 0, start)
		c, _ = c.See("bob", start)
		if c, _, err = c.Approve(user("bob"), "", start); err == nil && c.Open() && len(c.Approvals) >= c.Needed {
			t.Errorf("approved and still open: %+v", c)
		}
		c.Escalate(start)
	})
}

// FuzzPolicy checks that a policy that is accepted can be evaluated.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(`{"name":"x","sample":2.5,"approvals":2,"collections":["a"],"tags":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy(data)
		if err != nil {
			return
		}
		facts := someFacts()
		if _, ok := p.Match(t.Context(), facts); ok && !p.Possible(facts.Run, facts.Asker, nil) {
			t.Errorf("%+v matches, but is not possible", p)
		}
	})
}

// TestSamePersonTwice checks that one person does not give both approvals under two spellings, and that
// times are not negative after the clock was set back.
func TestSamePersonTwice(t *testing.T) {
	t.Parallel()
	c := take(t, aCase(2), "Zoë", start)
	c, _ = c.See("Zoë", start)
	c, r, err := c.Approve(user("Zoë"), "", start.Add(-time.Minute))
	if err != nil || r.Dwell != 0 || r.Open != 0 {
		t.Fatalf("Approve = %+v, %v", r, err)
	}
	for _, name := range []string{"Zoë", "Zoe\u0308", "ZOË"} {
		_, err := c.Take(name, 0, start)
		wantKind(t, "a claim by "+name, err, assay.ErrForbidden)
	}
}
