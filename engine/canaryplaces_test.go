package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// addNote adds the canary of these tests, and a document without its text.
func addNote(t *testing.T, e *Engine) {
	t.Helper()
	putText(t, e, "garden.md", "# Garden\n\nThe garden is open from nine to five.")
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
}

// TestCanaryInManaged checks questions to a managed service, its text and its notes.
func TestCanaryInManaged(t *testing.T) {
	t.Parallel()
	const garden = "The garden is open from nine to five."
	answer := func(text string, notes ...string) strategy.ManagedAnswer {
		hit := retrieved("s3://bucket/garden.txt", text)
		return strategy.ManagedAnswer{Text: text, Notes: notes, Parts: []strategy.ManagedPart{{End: len(text), Hits: []assay.Hit{hit}}}}
	}
	for name, test := range map[string]struct {
		question string
		answer   strategy.ManagedAnswer
		asked    int
		withheld bool
	}{
		"nothing":   {"When is the garden open?", answer(garden, "cloud: a note"), 1, false},
		"question":  {"Is this true: " + canaryNote, answer(garden), 0, true},
		"its text":  {"When is the garden open?", answer(canaryNote), 1, true},
		"its notes": {"When is the garden open?", answer(garden, canaryNote), 1, true},
	} {
		s := &service{answer: test.answer}
		e, raised := canaryEngine(t, t.TempDir(), "a", func(c *Config) { c.Managed = s })
		addNote(t, e)
		a, err := e.Answer(t.Context(), asker, Request{Question: test.question, Strategy: "managed"})
		if err != nil {
			t.Fatal(err)
		}
		a.Question = ""
		if withheld := a.Reason == assay.ReasonWithheld; withheld != test.withheld || strings.Contains(jsonOf(a), "Molinak") {
			t.Errorf("%s: %s", name, jsonOf(a))
		}
		if len(s.asked) != test.asked || (len(*raised) > 0) != test.withheld {
			t.Errorf("%s: the service was asked %d times, raised %v", name, len(s.asked), *raised)
		}
	}
}

// TestCanaryInWebQuery checks that a query with a canary's text is not sent to a search engine.
func TestCanaryInWebQuery(t *testing.T) {
	t.Parallel()
	s := &searchEngine{}
	e, raised := canaryEngine(t, t.TempDir(), "a", func(c *Config) { c.Web = s })
	addNote(t, e)
	web, off := e.webOf(storedRequest{Request: Request{Web: true}, Searcher: s.Name()})
	if off != "" {
		t.Fatal(off)
	}
	if _, err := web.Search(t.Context(), "news about "+canaryNote, 3); !errors.Is(err, assay.ErrForbidden) || len(s.asked) > 0 || len(*raised) != 1 {
		t.Errorf("%v, asked %q, raised %v", err, s.asked, *raised)
	}
	if _, err := web.Page(t.Context(), "https://pages.example/?q="+strings.ReplaceAll(canaryNote, " ", "+")); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("a page: %v", err)
	}
	if _, err := web.Page(t.Context(), "https://pages.example/?q="+strings.ReplaceAll(canaryNote, " ", "%20")); !errors.Is(err, assay.ErrForbidden) {
		t.Errorf("a page: %v", err)
	}
	if _, err := web.Search(t.Context(), "opening hours of gardens", 3); err != nil || len(s.asked) != 1 {
		t.Errorf("%v, asked %q", err, s.asked)
	}
}

// A listeningEncoder imitates a remote encoder and records its requests.
type listeningEncoder struct {
	*llmtest.Hashing
	sent map[llm.Purpose]string
}

func (l listeningEncoder) Facts() llm.Facts { return llm.Facts{} }

func (l listeningEncoder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	l.sent[p] += strings.Join(texts, "\n")
	return l.Hashing.Embed(ctx, p, texts)
}

// TestCanaryInQueryVector checks that an encoder that is a service is sent no query with a canary's
// text, but is sent the documents of the tenant.
func TestCanaryInQueryVector(t *testing.T) {
	t.Parallel()
	const name = "far/64"
	l := listeningEncoder{&llmtest.Hashing{Name: name, Dimensions: 64}, map[llm.Purpose]string{}}
	encoders := someEncoders(name)
	encoders.byName[name] = l
	e, raised := canaryEngine(t, t.TempDir(), "a", func(c *Config) { c.Encoders = encoders })
	addNote(t, e)
	if err := e.UseEncoder(t.Context(), name, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if passages := l.sent[llm.Passage]; !strings.Contains(passages, "Molinak") || len(*raised) > 0 {
		t.Errorf("the encoder was sent %q, raised %v", passages, *raised)
	}
	if _, err := e.Search(t.Context(), asker, assay.Query{Text: "opening hours", Limit: 1}); err != nil || l.sent[llm.Query] == "" {
		t.Errorf("no query was sent: %v", err)
	}
	_, err := e.Search(t.Context(), asker, assay.Query{Text: canaryNote, Limit: 1})
	if sent := l.sent[llm.Query]; strings.Contains(sent, "Molinak") || len(*raised) == 0 {
		t.Errorf("the encoder was sent %q, raised %v, %v", sent, *raised, err)
	}
}

// TestCanaryInFailures checks that neither the error of a strategy that quotes a document, nor the run
// that a panic leaves, shows a canary's text.
func TestCanaryInFailures(t *testing.T) {
	t.Parallel()
	quote := true
	own := []strategy.Spec{{Name: "own", Func: func(c context.Context, s run.Scope, env strategy.Env) (strategy.Result, error) {
		if _, err := strategy.Static(c, s, env); err != nil {
			return strategy.Result{}, err
		}
		if quote {
			return strategy.Result{}, fmt.Errorf("it cannot read %q", canaryNote)
		}
		panic(canaryNote)
	}}}
	e, raised := canaryEngine(t, t.TempDir(), "a", func(c *Config) { c.Strategies, c.Strategy = own, "own" })
	addNote(t, e)
	const question = "What was the interim amount for depot KQX-4821 of the Klimousett allocation?"
	a, err := e.Answer(t.Context(), asker, Request{Question: question})
	if err != nil || a.Reason != assay.ReasonWithheld || len(*raised) != 1 {
		t.Errorf("%s, %v, raised %v", jsonOf(a), err, *raised)
	}
	quote = false
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = e.Answer(t.Context(), asker, Request{ID: "panicked", Question: question})
	}()
	for _, id := range []string{a.Run, "panicked"} {
		r, steps, err := e.Run(t.Context(), asker, id)
		if text := jsonOf(r) + jsonOf(steps); err != nil || len(steps) == 0 || strings.Contains(text, "Molinak") {
			t.Errorf("%s, %v", text, err)
		}
	}
}

// TestCanaryInReview checks that neither an edit nor the reason of a rejection brings a canary's text
// into an answer, and that an answer is not approved with the text of a canary that is newer.
func TestCanaryInReview(t *testing.T) {
	t.Parallel()
	e, a := waiting(t, review.Policy{})
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	view := claimed(t, e, reviewer("bob"), a.Run)
	_, err := e.Edit(t.Context(), reviewer("bob"), a.Run, view.Draft.Text+" "+canaryNote)
	wantErr(t, "an edit", err, assay.ErrForbidden)
	_, err = e.Reject(t.Context(), reviewer("bob"), a.Run, "It should say: "+canaryNote)
	wantErr(t, "a rejection", err, assay.ErrForbidden)
	if acts := actsOf(t, e.tenant.Audit(), "canary.alarm"); len(acts) != 2 {
		t.Errorf("logged %q", acts)
	}
	if _, err := e.Approve(t.Context(), reviewer("bob"), a.Run); err != nil {
		t.Errorf("the answer is as it was: %v", err)
	}
	putText(t, e, "note.md", "# Note\n\nThe Tresovand depot keeps the form KQX-4821 for Jonas Bradeikousten in a green box by the door.")
	setPolicy(t, e, review.Policy{Name: "all", Always: true})
	late, err := e.Answer(t.Context(), reader(), Request{Question: "Where does the Tresovand depot keep the form KQX-4821?", Strategy: "static"})
	if err != nil || late.Status != assay.PendingReview {
		t.Fatalf("%s, %v", jsonOf(late), err)
	}
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: "The Tresovand depot keeps the form KQX-4821 for Jonas Bradeikousten in a green box by the door."}); err != nil {
		t.Fatal(err)
	}
	claimed(t, e, reviewer("bob"), late.Run)
	_, err = e.Approve(t.Context(), reviewer("bob"), late.Run)
	wantErr(t, "an approval", err, assay.ErrForbidden)
}

// TestCanaryAlarmForOwner checks that a webhook of the owner tells about an alarm that another tenant
// raised.
func TestCanaryAlarmForOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner, _ := canaryEngine(t, dir, "owner", nil)
	addNote(t, owner)
	other, _ := canaryEngine(t, dir, "other", nil)
	putText(t, other, "leak.md", "# Leaked\n\n"+canaryNote)
	ask(t, other, "What was the interim amount for depot KQX-4821 of the Klimousett allocation?")
	var acts []store.LoggedAct
	_, err := owner.tenant.Outbox().Make(t.Context(), 0, func(a store.LoggedAct) ([]store.Message, error) {
		if a.Kind == "canary.alarm" {
			acts = append(acts, a)
		}
		return nil, nil
	})
	if err != nil || len(acts) != 1 || strings.Contains(string(acts[0].Detail), "other") {
		t.Errorf("%s, %v", jsonOf(acts), err)
	}
}
