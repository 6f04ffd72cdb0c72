package engine

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
)

// A shareWorld is a host with the tenants acme and globex. acme has a document about leave that everyone
// sees, and one about its budget that the board sees.
type shareWorld struct {
	t    *testing.T
	host *Host
	now  time.Time
}

func openShareWorld(t *testing.T) *shareWorld {
	t.Helper()
	x := &shareWorld{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	x.host = openHost(t, HostConfig{
		Config: Config{Dir: t.TempDir(), NoBackground: true, Now: func() time.Time { return x.now }},
		Idle:   1000 * 24 * time.Hour,
		Recheck: func(_ context.Context, g identity.Grant) error {
			return map[bool]error{true: assay.ErrUnauthenticated}[g.Principal.Key == "revoked-key"]
		},
	}, "acme", "globex")
	for _, tenant := range []string{"acme", "globex"} {
		x.put(tenant, "leave.md", "# Leave\n\nFive days of leave may be carried over to the next year.", "")
		x.put(tenant, "budget.md", "# Budget\n\nThe budget of the garden is 9041 euros.", "board")
	}
	return x
}

// put stores a document that a group sees; empty: everyone.
func (x *shareWorld) put(tenant, name, text, group string) {
	x.t.Helper()
	s := mustSession(x.t, x.host, roleGrant(tenant, assay.Principal{User: "root", Groups: []string{"staff", "board", "owners"}}, identity.Admin))
	d := assay.Document{ID: assay.DocumentID("c", name), Collection: "c", URI: name, Version: assay.DocumentVersion(text, nil, "test"), Text: text, Title: name}
	chunk := assay.Chunk{ID: assay.ChunkID(d.ID, d.Version, 0), Document: d.ID, Version: d.Version, Kind: assay.ChunkProse, End: len(text), Tokens: len(text)}
	if group != "" {
		d.ACL = assay.ACL{Restricted: true, Allow: []string{"group:" + group}}
	}
	if err := s.Put(x.t.Context(), []store.Entry{{Document: d, Chunks: []assay.Chunk{chunk}}}); err != nil {
		x.t.Fatal(err)
	}
}

// as returns a session of a user of acme.
func (x *shareWorld) as(user string, role identity.Role, groups ...string) *Session {
	x.t.Helper()
	return mustSession(x.t, x.host, roleGrant("acme", assay.Principal{User: user, Groups: groups}, role))
}

const (
	leaveQuestion  = "How many days of leave may be carried over?"
	budgetQuestion = "What is the budget of the garden?"
)

// ask asks a question that is answered.
func (x *shareWorld) ask(s *Session, question string) string {
	x.t.Helper()
	a, err := s.Answer(x.t.Context(), Request{Question: question, NoCache: true})
	if err != nil || a.Status != assay.Answered {
		x.t.Fatalf("Answer(%s) = %s %q, %v", question, a.Status, a.Text, err)
	}
	return a.Run
}

// share shares a run and returns the link.
func (x *shareWorld) share(s *Session, run string) NewShare {
	x.t.Helper()
	share, err := s.Share(x.t.Context(), run, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	return share
}

func (x *shareWorld) want(what string, err, kind error) {
	x.t.Helper()
	if !errors.Is(err, kind) {
		x.t.Errorf("%s: %v, want %v", what, err, kind)
	}
	if err != nil && (strings.Contains(err.Error(), "9041") || strings.Contains(err.Error(), "garden")) {
		x.t.Errorf("%s: the error has a text: %v", what, err)
	}
}

// TestShareByACL checks that a link shows an answer to those who may see what it rests on, at each view.
func TestShareByACL(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann := x.as("ann", identity.Reader, "board")
	run := x.ask(ann, budgetQuestion)
	link := x.share(ann, run)
	if len(link.Token) < 26 || !link.Expires.Equal(x.now.Add(DefaultShareLife)) {
		t.Errorf("the link is %+v", link)
	}
	peer, outsider := x.as("pat", identity.Reader, "board"), x.as("rob", identity.Reader)
	shared, err := peer.SharedRun(ctx, link.Token)
	if err != nil || !strings.Contains(shared.Answer.Text, "9041") || shared.User != "ann" || len(shared.Answer.Citations) == 0 {
		t.Fatalf("a peer sees %s, %v", jsonOf(shared), err)
	}
	if a := shared.Answer; len(a.Searched)+len(a.Roles)+len(a.Notes) > 0 || a.Strategy != "" || a.Usage != (assay.Usage{}) {
		t.Errorf("the link shows how the answer came about: %s", jsonOf(a))
	}
	view := func(s *Session) error {
		got, err := s.SharedRun(ctx, link.Token)
		if err != nil && jsonOf(got) != jsonOf(SharedRun{}) {
			t.Errorf("with an error it returns %s", jsonOf(got))
		}
		return err
	}
	x.want("an outsider", view(outsider), assay.ErrForbidden)
	_, _, err = peer.Run(ctx, run)
	x.want("the run of another", err, assay.ErrNotFound)
	x.want("without the scope", view(x.as("aud", identity.Auditor, "board")), assay.ErrForbidden)
	narrow := grantOf("acme", assay.Principal{User: "nan", Groups: []string{"board"}}, identity.Right{Scope: identity.ScopeAsk, Collections: []string{"other"}})
	x.want("with the scope in another collection", view(mustSession(t, x.host, narrow)), assay.ErrForbidden)

	x.put("acme", "budget.md", "# Budget\n\nThe budget of the garden is 9041 euros.", "owners")
	x.want("a peer whose right was taken", view(peer), assay.ErrForbidden)
	x.want("the owner whose right was taken", view(ann), assay.ErrForbidden)
	x.want("one with the new right", view(x.as("olga", identity.Reader, "owners")), nil)
	x.put("acme", "budget.md", "# Budget\n\nIt is said elsewhere.", "")
	x.want("an outsider who sees the new version", view(outsider), nil)
	x.put("acme", "budget.md", "# Budget\n\nIt is said elsewhere.", "board")
	root := x.as("root", identity.Admin, "board")
	if err := root.DeleteDocuments(ctx, assay.DocumentID("c", "budget.md")); err != nil {
		t.Fatal(err)
	}
	x.want("a peer, of a deleted document", view(peer), nil)
	x.want("an outsider, of a deleted document", view(outsider), assay.ErrForbidden)
}

// TestShareFollows checks that an answer in a conversation needs sight of the documents of the turns
// before it.
func TestShareFollows(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann := x.as("ann", identity.Reader, "board")
	first := x.ask(ann, budgetQuestion)
	a, err := ann.Answer(ctx, Request{Question: leaveQuestion, Follows: first, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	link := x.share(ann, a.Run)
	_, err = x.as("rob", identity.Reader).SharedRun(ctx, link.Token)
	x.want("an outsider", err, assay.ErrForbidden)
	_, err = x.as("pat", identity.Reader, "board").SharedRun(ctx, link.Token)
	x.want("a peer", err, nil)
}

// TestShareOfAnother checks that only the owner of a run shares it, and sees and revokes its links.
func TestShareOfAnother(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann, bob, root := x.as("ann", identity.Reader), x.as("bob", identity.Reader), x.as("root", identity.Admin)
	run := x.ask(ann, leaveQuestion)
	link := x.share(ann, run)
	for _, s := range []*Session{bob, root} {
		_, err := s.Share(ctx, run, 0)
		x.want("Share of another's run", err, assay.ErrNotFound)
		_, err = s.Shares(ctx, run)
		x.want("Shares of another's run", err, assay.ErrNotFound)
		x.want("Unshare of another's run", s.Unshare(ctx, run, link.ID), assay.ErrNotFound)
	}
	all, err := ann.Shares(ctx, run)
	if err != nil || len(all) != 1 || all[0] != link.Share || strings.Contains(jsonOf(all), link.Token) {
		t.Errorf("Shares = %s, %v", jsonOf(all), err)
	}
	for _, life := range []time.Duration{-time.Hour, time.Second, MaxShareLife + time.Hour} {
		_, err := ann.Share(ctx, run, life)
		x.want("a life of "+life.String(), err, assay.ErrInvalid)
	}
	entries, err := root.AuditLog(ctx, 0, MaxAuditEntries)
	if err != nil || strings.Contains(jsonOf(entries), link.Token) || !strings.Contains(jsonOf(entries), "share.created") {
		t.Errorf("the log lacks the act, or has the token: %v", err)
	}
	if err := ann.Unshare(ctx, run, link.ID); err != nil {
		t.Fatal(err)
	}
	x.want("Unshare twice", ann.Unshare(ctx, run, link.ID), assay.ErrNotFound)
	_, err = bob.SharedRun(ctx, link.Token)
	x.want("a revoked link", err, assay.ErrNotFound)
}

// TestShareToken tries tokens, tenants and credentials that open nothing.
func TestShareToken(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann := x.as("ann", identity.Reader)
	run := x.ask(ann, leaveQuestion)
	link := x.share(ann, run)
	for _, token := range []string{"", run, link.ID, shareHash(link.Token), link.Token[1:], link.Token + "A", strings.ToLower(link.Token), strings.Repeat("A", 26), "%", "' OR 1=1 --"} {
		_, err := ann.SharedRun(ctx, token)
		x.want("the token "+token, err, assay.ErrNotFound)
	}
	zed := mustSession(t, x.host, roleGrant("globex", assay.Principal{User: "ann", Groups: []string{"staff", "board"}}, identity.Admin))
	_, err := zed.SharedRun(ctx, link.Token)
	x.want("another tenant", err, assay.ErrNotFound)
	revoked := roleGrant("acme", assay.Principal{User: "ann", Key: "revoked-key"}, identity.Reader)
	if s, err := x.host.Session(ctx, revoked); err == nil {
		_, err = s.SharedRun(ctx, link.Token)
		x.want("a revoked key", err, assay.ErrUnauthenticated)
	}
	if err := x.host.store.SuspendTenant(ctx, "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	_, err = ann.SharedRun(ctx, link.Token)
	x.want("a suspended tenant", err, assay.ErrStopped)
	if err := x.host.store.ResumeTenant(ctx, "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	x.now = link.Expires.Add(-time.Second)
	_, err = ann.SharedRun(ctx, link.Token)
	x.want("before it expires", err, nil)
	x.now = link.Expires
	_, err = ann.SharedRun(ctx, link.Token)
	x.want("an expired link", err, assay.ErrNotFound)
	all, err := ann.Shares(ctx, run)
	if err != nil || len(all) != 1 || !all[0].Expired {
		t.Errorf("Shares = %+v, %v", all, err)
	}
}

// TestShareOfNoAnswer checks that nothing is shown of answers that wait, were rejected, withheld, erased,
// deleted or pruned.
func TestShareOfNoAnswer(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann, rob, root := x.as("ann", identity.Reader, "staff"), x.as("rob", identity.Reader), x.as("root", identity.Admin)
	if err := root.SetPolicy(ctx, review.Policy{Name: "all", Groups: []string{"staff"}}, "a test"); err != nil {
		t.Fatal(err)
	}
	a, err := ann.Answer(ctx, Request{Question: leaveQuestion, NoCache: true})
	if err != nil || a.Status != assay.PendingReview {
		t.Fatal(a.Status, err)
	}
	_, err = ann.Share(ctx, a.Run, 0)
	x.want("Share of an answer that waits", err, assay.ErrSuspended)
	// A link that was made in another way does not open it either.
	plant := func(token, run string) {
		t.Helper()
		_, err := call(ctx, ann, "Share", func(c *sessionCall) (struct{}, error) {
			s := store.Share{Run: run, ID: token, Hash: shareHash(token), Created: x.now, Expires: x.now.Add(time.Hour)}
			return struct{}{}, c.engine.tenant.Shares().Create(ctx, s, ann.grant.Principal)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	plant("waits", a.Run)
	_, err = rob.SharedRun(ctx, "waits")
	x.want("an answer that waits", err, assay.ErrNotFound)
	if _, err := root.Claim(ctx, a.Run, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Reject(ctx, a.Run, "a test"); err != nil {
		t.Fatal(err)
	}
	_, err = rob.SharedRun(ctx, "waits")
	x.want("a rejected answer", err, assay.ErrNotFound)
	_, err = ann.Share(ctx, a.Run, 0)
	x.want("Share of a rejected answer", err, assay.ErrForbidden)
	_, err = ann.SetFeedback(ctx, RunRef{Run: a.Run}, NewFeedback{Verdict: FeedbackWrong})
	x.want("feedback on a rejected answer", err, assay.ErrForbidden)
	if err := root.RemovePolicy(ctx, "all", "a test"); err != nil {
		t.Fatal(err)
	}
	remove := map[string]func(run string) error{
		"deleted": func(run string) error { return ann.DeleteRun(ctx, run, "a test") },
		"erased": func(run string) error {
			_, err := ann.EraseRuns(ctx, []string{run}, "a test", false)
			return err
		},
		"pruned": func(run string) error {
			_, err := ann.PruneRuns(ctx, x.now.Add(time.Hour), "a test", false)
			return err
		},
	}
	for what, remove := range remove {
		run := x.ask(ann, leaveQuestion)
		link := x.share(ann, run)
		if _, err := rob.SetFeedback(ctx, RunRef{Share: link.Token}, NewFeedback{Verdict: FeedbackRight, Note: "a note"}); err != nil {
			t.Fatal(err)
		}
		if err := remove(run); err != nil {
			t.Fatal(what, err)
		}
		_, err := rob.SharedRun(ctx, link.Token)
		x.want("a run that was "+what, err, assay.ErrNotFound)
		all, _, err := root.FeedbackList(ctx, FeedbackFilter{})
		if err != nil || len(all) != 0 {
			t.Errorf("%s: the feedback is %s, %v", what, jsonOf(all), err)
		}
	}
}

// TestShareOfCanary checks that a link stops to show an answer with the text of a canary that is newer.
func TestShareOfCanary(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann, root := x.as("ann", identity.Reader), x.as("root", identity.Admin)
	link := x.share(ann, x.ask(ann, leaveQuestion))
	_, err := call(ctx, root, "AddCanary", func(c *sessionCall) (struct{}, error) {
		_, _, err := c.engine.AddCanary(ctx, c.acting, NewCanary{Text: "Five days of leave may be carried over to the next year."})
		return struct{}{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.as("rob", identity.Reader).SharedRun(ctx, link.Token)
	x.want("an answer with a canary", err, assay.ErrNotFound)
}

// amounts matches the numbers of the hidden document and of its correction, and not digits of a time.
var amounts = regexp.MustCompile(`\b904[12]\b`)

// TestFeedback checks who judges an answer and who reads it.
func TestFeedback(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann, pat, rob := x.as("ann", identity.Reader, "board"), x.as("pat", identity.Reader, "board"), x.as("rob", identity.Reader)
	aud, chair := x.as("aud", identity.Auditor), x.as("chair", identity.Auditor, "board")
	run := x.ask(ann, budgetQuestion)
	link := x.share(ann, run)
	own, shared := RunRef{Run: run}, RunRef{Share: link.Token}
	_, err := ann.Feedback(ctx, own)
	x.want("no feedback yet", err, assay.ErrNotFound)
	for what, f := range map[string]NewFeedback{
		"no verdict": {}, "an unknown verdict": {Verdict: "fine"}, "a right answer to one that is right": {Verdict: FeedbackRight, Answer: "x"},
		"a long note": {Verdict: FeedbackWrong, Note: strings.Repeat("x", MaxFeedbackNote+1)}, "a note that is not UTF-8": {Verdict: FeedbackWrong, Note: "\xff"},
		"no such document":                 {Verdict: FeedbackWrong, Place: &LabelPlace{Document: "none.md"}},
		"words that are not in a document": {Verdict: FeedbackWrong, Place: &LabelPlace{Document: "leave.md", Quote: "Ten days"}},
	} {
		_, err := ann.SetFeedback(ctx, own, f)
		x.want(what, err, assay.ErrInvalid)
	}
	f, err := ann.SetFeedback(ctx, own, NewFeedback{Verdict: FeedbackRight, Note: " as in the garden's plan "})
	if err != nil || f.Verdict != FeedbackRight || f.Note != "as in the garden's plan" || f.User != "ann" {
		t.Errorf("SetFeedback = %+v, %v", f, err)
	}
	if f, err = ann.SetFeedback(ctx, own, NewFeedback{Verdict: FeedbackWrong, Answer: "9042", Place: &LabelPlace{Document: "budget.md", Quote: "9041 euros"}}); err != nil {
		t.Fatal(err)
	}
	if f.Place == nil || f.Place.End-f.Place.Start != len("9041 euros") || f.Note != "" {
		t.Errorf("the changed feedback is %s", jsonOf(f))
	}
	if _, err := pat.SetFeedback(ctx, shared, NewFeedback{Verdict: FeedbackNotAsked}); err != nil {
		t.Fatal(err)
	}
	_, err = pat.SetFeedback(ctx, own, NewFeedback{Verdict: FeedbackNotAsked})
	x.want("feedback on another's run without a link", err, assay.ErrNotFound)
	_, err = rob.SetFeedback(ctx, shared, NewFeedback{Verdict: FeedbackWrong})
	x.want("feedback on an answer that may not be seen", err, assay.ErrForbidden)
	_, err = rob.Feedback(ctx, shared)
	x.want("feedback of an answer that may not be seen", err, assay.ErrForbidden)

	all, _, err := aud.FeedbackList(ctx, FeedbackFilter{})
	if text := jsonOf(all); err != nil || len(all) != 2 || all[0].Visible || amounts.MatchString(text) || strings.Contains(text, "garden") || strings.Contains(text, "budget") {
		t.Errorf("an auditor who may not see the document sees %s, %v", text, err)
	}
	all, _, err = chair.FeedbackList(ctx, FeedbackFilter{Verdict: FeedbackWrong})
	if err != nil || len(all) != 1 || !all[0].Visible || all[0].Question != budgetQuestion || all[0].Answer != "9042" || !strings.Contains(all[0].Text, "9041") {
		t.Errorf("an auditor who may see it sees %s, %v", jsonOf(all), err)
	}
	all, next, err := chair.FeedbackList(ctx, FeedbackFilter{Limit: 1})
	if err != nil || len(all) != 1 || next == nil {
		t.Fatalf("the first part is %s, %v, %v", jsonOf(all), next, err)
	}
	rest, next, err := chair.FeedbackList(ctx, FeedbackFilter{Limit: 1, After: *next})
	if err != nil || len(rest) != 1 || next != nil || rest[0].User == all[0].User {
		t.Errorf("the second part is %s, %v, %v", jsonOf(rest), next, err)
	}
	entries, err := x.as("root", identity.Admin).AuditLog(ctx, 0, MaxAuditEntries)
	if text := jsonOf(entries); err != nil || amounts.MatchString(text) || strings.Contains(text, "garden's plan") {
		t.Errorf("the log has a text of feedback: %v", err)
	}
	x.want("RemoveFeedback", ann.RemoveFeedback(ctx, own), nil)
	x.want("RemoveFeedback twice", ann.RemoveFeedback(ctx, own), assay.ErrNotFound)
}

// TestFeedbackConcurrent has users judge an answer at the same time.
func TestFeedbackConcurrent(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann := x.as("ann", identity.Reader)
	run := x.ask(ann, leaveQuestion)
	link := x.share(ann, run)
	var all sync.WaitGroup
	for _, user := range []string{"ann", "bob", "cid", "dan"} {
		s := x.as(user, identity.Reader)
		for range 3 {
			all.Go(func() {
				if _, err := s.SetFeedback(ctx, RunRef{Share: link.Token}, NewFeedback{Verdict: FeedbackRight}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	list, _, err := x.as("aud", identity.Auditor).FeedbackList(ctx, FeedbackFilter{})
	if err != nil || len(list) != 4 {
		t.Errorf("%d entries, %v; want one for each user", len(list), err)
	}
}

// TestLabelFeedback checks which labels a question gets, and who may make it.
func TestLabelFeedback(t *testing.T) {
	t.Parallel()
	x, ctx := openShareWorld(t), t.Context()
	ann, aud, chair := x.as("ann", identity.Reader, "board"), x.as("aud", identity.Auditor), x.as("chair", identity.Auditor, "board")
	judge := func(question string, f NewFeedback) string {
		t.Helper()
		a, err := ann.Answer(ctx, Request{Question: question, NoCache: true})
		if err == nil {
			_, err = ann.SetFeedback(ctx, RunRef{Run: a.Run}, f)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a.Run
	}
	right := judge(leaveQuestion, NewFeedback{Verdict: FeedbackRight})
	q, err := aud.LabelFeedback(ctx, right, "ann", "feedback", nil)
	if err != nil || len(q.Answers) != 1 || !strings.Contains(q.Answers[0], "Five days") || strings.Contains(q.Answers[0], "[1]") || len(q.Gold) == 0 || q.Gold[0].Document != "leave.md" || q.ID != right {
		t.Fatalf("a right answer becomes %s, %v", jsonOf(q), err)
	}
	_, err = aud.LabelFeedback(ctx, right, "ann", "feedback", nil)
	x.want("twice", err, assay.ErrInvalid)
	_, err = aud.LabelFeedback(ctx, right, "bob", "feedback", nil)
	x.want("feedback of nobody", err, assay.ErrNotFound)
	for _, set := range []string{"", " ", "a\nb", strings.Repeat("x", MaxNameBytes+1)} {
		_, err = aud.LabelFeedback(ctx, right, "ann", set, nil)
		x.want("the set "+set, err, assay.ErrInvalid)
	}

	refused := judge("Who painted the ceiling of the chapel?", NewFeedback{Verdict: FeedbackRight})
	if q, err = chair.LabelFeedback(ctx, refused, "ann", "feedback", nil); err != nil || !q.Unanswerable || len(q.Answers)+len(q.Gold) > 0 {
		t.Errorf("a right refusal becomes %s, %v", jsonOf(q), err)
	}
	wrong := judge(leaveQuestion, NewFeedback{Verdict: FeedbackWrong, Answer: "Six days"})
	if q, err = aud.LabelFeedback(ctx, wrong, "ann", "feedback", nil); err != nil || len(q.Answers) != 1 || q.Answers[0] != "Six days" || len(q.Gold) > 0 {
		t.Errorf("a corrected answer becomes %s, %v", jsonOf(q), err)
	}
	bare := judge(leaveQuestion, NewFeedback{Verdict: FeedbackNotAsked})
	_, err = aud.LabelFeedback(ctx, bare, "ann", "feedback", nil)
	x.want("feedback without a label", err, ErrNoLabel)
	for what, l := range map[string]Labels{
		"no labels": {}, "a contradiction": {Unanswerable: true, Answers: []string{"x"}}, "an empty answer": {Answers: []string{" "}},
		"a hidden document": {Places: []LabelPlace{{Document: "budget.md"}}},
	} {
		_, err = aud.LabelFeedback(ctx, bare, "ann", "feedback", &l)
		x.want(what, err, assay.ErrInvalid)
	}
	if q, err = aud.LabelFeedback(ctx, bare, "ann", "other", &Labels{Answers: []string{"Five"}, Places: []LabelPlace{{Document: "leave.md", Quote: "Five days"}}}); err != nil || q.Gold[0].Start == 0 {
		t.Errorf("a labelled one becomes %s, %v", jsonOf(q), err)
	}

	secret := judge(budgetQuestion, NewFeedback{Verdict: FeedbackRight})
	_, err = aud.LabelFeedback(ctx, secret, "ann", "feedback", nil)
	x.want("a run with a document that the labeller may not see", err, assay.ErrForbidden)
	if _, err := chair.LabelFeedback(ctx, secret, "ann", "feedback", nil); err != nil {
		t.Fatal(err)
	}
	sets, err := aud.QuestionSets(ctx)
	if err != nil || len(sets) != 2 || sets[0].Name != "feedback" || sets[0].Questions != 4 {
		t.Errorf("QuestionSets = %+v, %v", sets, err)
	}
	set, err := aud.QuestionSet(ctx, "feedback")
	if err != nil || len(set.Questions)+set.Hidden != 4 || set.Hidden == 0 || amounts.MatchString(jsonOf(set)) {
		t.Errorf("an auditor sees %s, %v", jsonOf(set), err)
	}
	if set, err = chair.QuestionSet(ctx, "feedback"); err != nil || len(set.Questions) != 4 || set.Hidden != 0 {
		t.Errorf("one of the board sees %s, %v", jsonOf(set), err)
	}
	x.want("RemoveQuestion of a hidden one", aud.RemoveQuestion(ctx, "feedback", secret), assay.ErrNotFound)
	_, err = aud.SetLabels(ctx, "feedback", secret, Labels{Unanswerable: true})
	x.want("SetLabels of a hidden one", err, assay.ErrNotFound)
	if q, err = chair.SetLabels(ctx, "feedback", right, Labels{Answers: []string{"5"}, Places: set.Questions[0].Gold}); err != nil || q.Answers[0] != "5" || len(q.Gold) == 0 {
		t.Errorf("SetLabels = %s, %v", jsonOf(q), err)
	}
	x.want("RemoveQuestion", chair.RemoveQuestion(ctx, "feedback", right), nil)
	zed := mustSession(t, x.host, roleGrant("globex", assay.Principal{User: "zed"}, identity.Admin))
	_, err = zed.QuestionSet(ctx, "feedback")
	x.want("a set of another tenant", err, assay.ErrNotFound)
	lines, err := set.Lines()
	if err != nil || len(lines) != 4 || !json.Valid(lines[0]) {
		t.Errorf("Lines = %s, %v", lines, err)
	}
	if _, err := ann.EraseRuns(ctx, []string{secret}, "a test", false); err != nil {
		t.Fatal(err)
	}
	if set, err = chair.QuestionSet(ctx, "feedback"); err != nil || amounts.MatchString(jsonOf(set)) {
		t.Errorf("after its run was erased, a question is left: %v", err)
	}
}
