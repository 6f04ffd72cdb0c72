package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

const canaryNote = "Jonas Bradeikousten met Vera Molinak in Tresovand about the Klimousett allocation. The interim amount of 483920 for depot KQX-4821 was confirmed."

// canaryEngine returns an engine of a tenant of a store, and the alarms that it raises.
func canaryEngine(t *testing.T, dir, tenant string, change func(*Config)) (*Engine, *[]Alarm) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTenant(t.Context(), tenant, store.Act{}); err != nil && !errors.Is(err, assay.ErrInvalid) {
		t.Fatal(err)
	}
	raised := &[]Alarm{}
	c := Config{Store: s, Tenant: tenant, NoBackground: true, Alarm: func(_ context.Context, a Alarm) { *raised = append(*raised, a) }}
	if change != nil {
		change(&c)
	}
	e, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(); s.Close() })
	return e, raised
}

// putText ingests a text.
func putText(t *testing.T, e *Engine, name, text string) {
	t.Helper()
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{"-"}, Stdin: strings.NewReader(text), StdinName: name})
	if err != nil || report.Added != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
}

// actsOf returns the acts of a kind in a log, as text.
func actsOf(t *testing.T, log store.Audit, kind string) []string {
	t.Helper()
	size, err := log.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	for entry, err := range log.Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		if text := string(entry.Header) + string(entry.Payload); strings.Contains(text, kind) {
			acts = append(acts, text)
		}
	}
	return acts
}

// proofOf returns a proof of a run under a new checkpoint.
func proofOf(t *testing.T, e *Engine, by assay.Principal, id string) audit.Proof {
	t.Helper()
	key, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	authority := audit.Authority{Audit: e.tenant.Audit(), Registry: e.tenant.Registry(), Actor: assay.Local(), Key: key}
	signed, err := authority.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Prove(t.Context(), by, id, signed)
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.NewVerifier(signed.Keys...)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Bytes()
	if err == nil {
		_, err = audit.CheckProof(data, v)
	}
	if err != nil {
		t.Error(err)
	}
	return p
}

// TestCanaryInAnswer checks that a local answer with a canary's text is withheld everywhere, and
// that the marks do not contain the text.
func TestCanaryInAnswer(t *testing.T) {
	t.Parallel()
	e, raised := canaryEngine(t, t.TempDir(), "a", nil)
	putText(t, e, "garden.md", "# Garden\n\nThe garden is open from nine to five.")
	if a := ask(t, e, "When is the garden open?"); a.Status != assay.Answered || len(*raised) > 0 {
		t.Fatalf("without a canary: %s, %v", a.Status, *raised)
	}
	c, text, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote})
	if err != nil || text != canaryNote || c.Document == "" {
		t.Fatalf("%+v, %v", c, err)
	}
	if a := ask(t, e, "When is the garden open?"); a.Status != assay.Answered || len(*raised) > 0 {
		t.Errorf("an answer without it: %s, %v", a.Status, *raised)
	}
	a := ask(t, e, "What was the interim amount for depot KQX-4821 of the Klimousett allocation?")
	if a.Status != assay.Rejected || a.Reason != assay.ReasonWithheld || a.Text != "" || strings.Contains(jsonOf(a), "Bradeikousten") {
		t.Errorf("the answer is %s", jsonOf(a))
	}
	if len(*raised) != 1 || (*raised)[0].Kind != AlarmCanary || (*raised)[0].Subject != c.Name || (*raised)[0].Run != a.Run {
		t.Errorf("raised %+v", *raised)
	}
	if acts := actsOf(t, e.tenant.Audit(), "canary.alarm"); len(acts) != 1 || strings.Contains(acts[0], "Molinak") {
		t.Errorf("logged %q", acts)
	}
	r, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
	if err != nil || strings.Contains(jsonOf(r.Answer), "Bradeikousten") || strings.Contains(jsonOf(steps), "Bradeikousten") {
		t.Errorf("stored %s with %s, %v", jsonOf(r.Answer), jsonOf(steps), err)
	}
	if p := proofOf(t, e, assay.Local(), a.Run); !p.Withheld || strings.Contains(jsonOf(p), "Bradeikousten") {
		t.Errorf("the proof is withheld: %t: %s", p.Withheld, jsonOf(p))
	}
	if _, err := e.Replay(t.Context(), assay.Local(), a.Run); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("replay: %v", err)
	}
	items, err := e.tenant.Registry().Items(t.Context(), canaryKind)
	if err != nil || len(items) != 1 || strings.Contains(string(items[0].Value), "Molinak") {
		t.Errorf("the registry holds %v, %v", items, err)
	}
	found, err := e.Search(t.Context(), asker, assay.Query{Text: "Klimousett allocation", Limit: 3})
	if err != nil || len(found.Hits) == 0 || len(*raised) != 2 {
		t.Errorf("a search: %d hits, %d alarms, %v", len(found.Hits), len(*raised), err)
	}
	if err := e.RemoveCanary(t.Context(), asker, c.Name, "test"); err != nil {
		t.Fatal(err)
	}
	if all, err := e.Canaries(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left %v, %v", all, err)
	}
	if err := e.RemoveCanary(t.Context(), asker, c.Name, ""); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	for d, err := range e.Documents(t.Context(), asker) {
		if err != nil || d.ID == c.Document {
			t.Errorf("left %s, %v", d.URI, err)
		}
	}
}

// TestCanaryInPrompt checks that a prompt with a canary's text is not sent, and that the run ends
// with its answer withheld.
func TestCanaryInPrompt(t *testing.T) {
	t.Parallel()
	by := clerks(func(_ string, _ seen, _ map[string]any, calls []llm.ToolCall) []llm.ToolCall { return calls })
	e, raised := canaryEngine(t, t.TempDir(), "a", func(c *Config) { c.Models = served(by) })
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	var a assay.Answer
	for ev, err := range e.Ask(t.Context(), asker, Request{Question: "What was confirmed about the Klimousett allocation in Tresovand?"}) {
		if err != nil {
			t.Fatal(err)
		}
		shown.WriteString(ev.Draft)
		if ev.Answer != nil {
			a = *ev.Answer
		}
	}
	if a.Status != assay.Rejected || a.Reason != assay.ReasonWithheld || strings.Contains(shown.String(), "Molinak") {
		t.Errorf("%s, shown %q", jsonOf(a), shown.String())
	}
	for name, m := range by {
		if strings.Contains(jsonOf(m.requests), "Bradeikousten") {
			t.Errorf("the %s was sent the text", name)
		}
	}
	if len(*raised) == 0 || !strings.Contains(string((*raised)[0].Detail), `"prompt"`) {
		t.Errorf("raised %+v", *raised)
	}
}

// TestCanaryOfAnotherTenant checks that one tenant's canary is found in another's answer, and that
// neither the answer nor the other tenant's log names its owner.
func TestCanaryOfAnotherTenant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner, _ := canaryEngine(t, dir, "owner", nil)
	if _, _, err := owner.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	other, raised := canaryEngine(t, dir, "other", nil)
	putText(t, other, "leak.md", "# Leaked\n\n"+canaryNote)
	a := ask(t, other, "What was the interim amount for depot KQX-4821 of the Klimousett allocation?")
	if a.Reason != assay.ReasonWithheld || len(*raised) != 1 || strings.Contains(jsonOf(*raised), "owner") {
		t.Errorf("%s, raised %s", jsonOf(a), jsonOf(*raised))
	}
	if acts := actsOf(t, other.tenant.Audit(), "canary.alarm"); len(acts) != 1 || strings.Contains(acts[0], "owner") {
		t.Errorf("the other tenant's log has %q", acts)
	}
	system, err := other.system(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if acts := actsOf(t, system.Audit(), "canary.alarm"); len(acts) != 1 || !strings.Contains(acts[0], "owner") {
		t.Errorf("the store's log has %q", acts)
	}
	if acts := actsOf(t, owner.tenant.Audit(), "canary.alarm"); len(acts) != 1 || !strings.Contains(acts[0], `"elsewhere":true`) || strings.Contains(acts[0], "other") || strings.Contains(acts[0], a.Run) {
		t.Errorf("the owner's log has %q", acts)
	}
	if all, err := other.Canaries(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the other tenant lists %v, %v", all, err)
	}
}

// A recordingReranker imitates a remote reranker and records its requests.
type recordingReranker struct{ sent []string }

func (r *recordingReranker) Model() string    { return "service/reranker" }
func (r *recordingReranker) Facts() llm.Facts { return llm.Facts{} }
func (r *recordingReranker) Rerank(_ context.Context, q string, texts []string) ([]float64, error) {
	r.sent = append(append(r.sent, q), texts...)
	return make([]float64, len(texts)), nil
}

// TestCanaryInRerank checks that passages with a canary's text are not sent to a reranker, and that
// the search continues without it.
func TestCanaryInRerank(t *testing.T) {
	t.Parallel()
	r := &recordingReranker{}
	e, raised := canaryEngine(t, t.TempDir(), "a", func(c *Config) { c.Models.Reranker = r })
	putText(t, e, "garden.md", "# Garden\n\nThe garden of the Klimousett house is open from nine to five.")
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	found, err := e.Search(t.Context(), asker, assay.Query{Text: "Klimousett", Limit: 5})
	if err != nil || len(found.Hits) < 2 || strings.Contains(strings.Join(r.sent, " "), "Molinak") || len(*raised) == 0 {
		t.Errorf("%d hits, sent %q, raised %v, %v", len(found.Hits), r.sent, *raised, err)
	}
}

// TestWithheldRun checks that nothing of a run whose answer was withheld is given to its asker.
func TestWithheldRun(t *testing.T) {
	t.Parallel()
	e, _ := canaryEngine(t, t.TempDir(), "a", nil)
	putText(t, e, "garden.md", "# Garden\n\nThe garden is open from nine to five.")
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	const question = "What was the interim amount for depot KQX-4821 of the Klimousett allocation?"
	var shown []Event
	var id string
	for ev, err := range e.Ask(t.Context(), asker, Request{Question: question}) {
		if err != nil {
			t.Fatal(err)
		}
		shown, id = append(shown, ev), ev.Run
	}
	if text := jsonOf(shown); strings.Contains(text, "Bradeikousten") || strings.Contains(text, "Molinak") || !strings.Contains(text, withheldCanaryText) {
		t.Errorf("shown: %s", text)
	}
	r, steps, err := e.Run(t.Context(), asker, id)
	if err != nil || len(steps) == 0 || r.Answer.Reason != assay.ReasonWithheld {
		t.Fatalf("%v, %v", r.Answer, err)
	}
	for _, s := range steps {
		if s.Summary != withheldCanaryText || s.Input != nil || s.Output != nil {
			t.Errorf("step %s is %s", s.Path, jsonOf(s))
		}
	}
	diff, err := e.Diff(t.Context(), asker, id, id)
	if err != nil || strings.Contains(jsonOf(diff), "Molinak") {
		t.Errorf("%s, %v", jsonOf(diff), err)
	}
	for ev, err := range e.Fork(t.Context(), asker, id, steps[len(steps)-1].Path, nil) {
		if !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("a fork: %s, %v", jsonOf(ev), err)
		}
	}
	if _, err := e.Answer(t.Context(), asker, Request{Question: "And by whom?", Follows: id}); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "was withheld") {
		t.Errorf("a question that follows: %v", err)
	}
	if withhold, err := e.withholds(t.Context(), asker, id); err != nil || !withhold {
		t.Errorf("a proof: %t, %v", withhold, err)
	}
	if again := ask(t, e, question); again.Cached != nil || again.Reason != assay.ReasonWithheld {
		t.Errorf("asked again: %s", jsonOf(again))
	}
}

// TestCanaryAddedLater checks that a canary's text is not shown from runs that are older than the
// canary.
func TestCanaryAddedLater(t *testing.T) {
	t.Parallel()
	e, _ := canaryEngine(t, t.TempDir(), "a", nil)
	putText(t, e, "note.md", "# Note\n\n"+canaryNote)
	a := ask(t, e, "What was the interim amount for depot KQX-4821 of the Klimousett allocation?")
	if a.Status != assay.Answered {
		t.Fatalf("%s", jsonOf(a))
	}
	if _, _, err := e.AddCanary(t.Context(), asker, NewCanary{Text: canaryNote}); err != nil {
		t.Fatal(err)
	}
	r, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
	if text := jsonOf(r.Answer) + jsonOf(steps); err != nil || strings.Contains(text, "Molinak") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestCanariesUnreadable checks that nothing is shown while the canaries cannot be read, also in a
// store that can only be read, and that such a store without any is read.
func TestCanariesUnreadable(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"unreadable": assay.ErrReadOnly, "damaged": assay.ErrDamaged, "none": fmt.Errorf("%w: %w", assay.ErrNotFound, assay.ErrReadOnly)} {
		dir := t.TempDir()
		e, _ := canaryEngine(t, dir, "a", nil)
		putText(t, e, "garden.md", "# Garden\n\nThe garden is open from nine to five.")
		earlier := ask(t, e, "When is the garden open?")
		e.systemStore.mu.Lock()
		if e.systemStore.opened != nil {
			e.systemStore.opened.Close()
			e.systemStore.opened = nil
		}
		e.systemStore.store = failingSystem{e.systemStore.store, failure}
		e.systemStore.mu.Unlock()
		_, _, err := e.Run(t.Context(), assay.Local(), earlier.Run)
		_, asked := e.Answer(t.Context(), asker, Request{Question: "When is the garden open?", NoCache: true})
		_, searched := e.Search(t.Context(), asker, assay.Query{Text: "garden", Limit: 3})
		for what, err := range map[string]error{"show": err, "ask": asked, "search": searched} {
			if (err != nil) != (name != "none") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

// A failingSystem is a store whose System fails.
type failingSystem struct {
	store.Store
	err error
}

func (f failingSystem) System(context.Context) (store.System, error) { return nil, f.err }
