package prompted_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// sent returns the text of a request in the order in which providers cache its prefix.
func sent(r llm.Request) string {
	text := r.System
	for _, m := range r.Messages {
		text += "\n" + string(m.Speaker) + "\n" + m.Text
	}
	return text
}

// shared returns the common prefix of two texts.
func shared(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// TestSystemIsSteady checks that a role's system text is the same for every question and does not
// depend on the documents.
func TestSystemIsSteady(t *testing.T) {
	for _, name := range prompted.Tasks() {
		r := everyRole[name]
		c := replies(t, r.good)
		if _, err := r.do(t.Context(), c, config()); err != nil {
			t.Fatal(err)
		}
		system := c.calls[0].Request.System
		if system == "" || strings.Contains(system, "Acme Housing") || regexp.MustCompile(`id="[0-9a-f]{12}"`).MatchString(system) {
			t.Errorf("%s: the system text has something of the question: %q", name, system)
		}
	}
}

// TestRequestsBeginAlike checks that similar requests of a role share as long a prefix as possible,
// for the provider's prompt cache.
func TestRequestsBeginAlike(t *testing.T) {
	const other = "Who pays the deposit back?"
	ev := reading.Evidence
	write := func(in role.GenerateInput) func(context.Context, role.Caller) error {
		return func(ctx context.Context, c role.Caller) error {
			_, err := prompted.Generator{Config: config()}.Generate(ctx, c, in)
			return err
		}
	}
	judge := func(in role.DraftInput) func(context.Context, role.Caller) error {
		return func(ctx context.Context, c role.Caller) error {
			_, err := prompted.Judge{Config: config()}.JudgeDraft(ctx, c, in)
			return err
		}
	}
	plan := func(question string) func(context.Context, role.Caller) error {
		return func(ctx context.Context, c role.Caller) error {
			_, err := prompted.Planner{Config: config(), Keys: []prompted.Key{{Name: "year", Kinds: []assay.ValueKind{assay.KindNumber}}}}.Plan(ctx, c, question)
			return err
		}
	}
	next := func(history ...role.Asked) func(context.Context, role.Caller) error {
		return func(ctx context.Context, c role.Caller) error {
			_, err := prompted.Rewriter{Config: config()}.Next(ctx, c, role.QueryInput{Question: asked, History: history, Gaps: []string{"tenants"}})
			return err
		}
	}
	redrafted := drafted
	redrafted.Draft.Statements = redrafted.Draft.Statements[:1]
	first := role.GenerateInput{Question: asked, Evidence: ev, Parts: []role.Part{{Question: asked, Evidence: []int{1, 2}}}}
	again := first
	again.Rejected = []role.Rejected{{Text: "Tenants need not give notice.", Reason: "nothing says so"}}
	for _, tt := range []struct {
		name       string
		one, other func(context.Context, role.Caller) error
		role, ends string // ends: the shared prefix contains at least this
	}{
		{"a second draft", write(first), write(again), role.GeneratorRole, asked + "\n</question"},
		{"a judge's second round", judge(drafted), judge(redrafted), role.JudgeRole, asked + "\n</question"},
		{"two plans", plan(asked), plan(other), role.PlannerRole, "year (number)\n</keys"},
		{"the next query", next(role.Asked{Query: "notice"}), next(role.Asked{Query: "notice"}, role.Asked{Query: "lease"}), role.QuerierTask, "Query: notice"},
	} {
		good := everyRole[tt.role].good
		a, b := replies(t, good, good, good), replies(t, good, good, good)
		_, _ = tt.one(t.Context(), a), tt.other(t.Context(), b) // the results do not matter
		if diff := cmp.Diff(a.calls[0].Request.Schema, b.calls[0].Request.Schema); diff != "" {
			t.Errorf("%s: the schemas differ:\n%s", tt.name, diff)
		}
		if both := shared(sent(a.calls[0].Request), sent(b.calls[0].Request)); !strings.Contains(both, tt.ends) {
			t.Errorf("%s: the requests are alike up to …%q, want them to be beyond %q", tt.name, both[max(0, len(both)-200):], tt.ends)
		}
	}
}
