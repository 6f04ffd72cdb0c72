package prompted_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

func TestRewrite(t *testing.T) {
	history := []assay.Turn{{Question: "Who runs Acme Housing?", Answer: "Ann Lee runs it since 2019."}}
	tests := []struct {
		name   string
		in     role.RewriteInput
		script []any
		want   []string
		calls  int
		says   string
	}{
		{"resolve", role.RewriteInput{Question: "And since when?", Technique: role.Resolve, History: history},
			[]any{`{"queries":["Since when does Ann Lee run Acme Housing?"]}`}, []string{"Since when does Ann Lee run Acme Housing?"}, 1, ""},
		{"resolve what needs it not", role.RewriteInput{Question: "Who is Ann Lee?", Technique: role.Resolve},
			[]any{`{"queries":["who is Ann Lee?"]}`}, []string{}, 1, ""},
		{"resolve with an invention", role.RewriteInput{Question: "And since when?", Technique: role.Resolve, History: history},
			[]any{`{"queries":["Since when does Bob Fox run Acme Housing?"]}`}, []string{}, 3, "that are not in the conversation"},
		{"resolve with an invented number, then right", role.RewriteInput{Question: "And in 2020?", Technique: role.Resolve, History: history},
			[]any{`{"queries":["Who ran Acme Housing in 2021?"]}`, `{"queries":["Who ran Acme Housing in 2020?"]}`}, []string{"Who ran Acme Housing in 2020?"}, 2, ""},
		{"expand", role.RewriteInput{Question: "notice for tenants", Technique: role.Expand},
			[]any{`{"queries":["\"termination period\"","Termination  Period","notice for tenants",""]}`, `{"queries":["termination period","lease end"]}`},
			[]string{"termination period", "lease end"}, 2, ""},
		{"expand too much", role.RewriteInput{Question: "q", Technique: role.Expand, Most: 2},
			[]any{`{"queries":["a","b","c"]}`}, []string{"a", "b"}, 3, "2 of 3"},
		{"hyde", role.RewriteInput{Question: "q", Technique: role.HyDE},
			[]any{`{"queries":["Tenants give notice\nthree months ahead."]}`}, []string{"Tenants give notice three months ahead."}, 1, ""},
		{"step back", role.RewriteInput{Question: "q", Technique: role.StepBack},
			[]any{`{"queries":["How do leases end?"]}`}, []string{"How do leases end?"}, 1, ""},
		{"nothing", role.RewriteInput{Question: "q", Technique: role.StepBack}, []any{`{"queries":[]}`}, []string{}, 3, "there are no texts"},
	}
	for _, tt := range tests {
		c := replies(t, tt.script...)
		got, err := prompted.Rewriter{Config: config()}.Rewrite(t.Context(), c, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		said := got.Failure + strings.Join(got.Notes, "\n")
		if diff := cmp.Diff(tt.want, got.Queries); diff != "" || len(c.calls) != tt.calls || tt.says == "" && said != "" || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %d calls, want %d; %q, want %q (-want +got):\n%s", tt.name, len(c.calls), tt.calls, said, tt.says, diff)
		}
	}
	if _, err := (prompted.Rewriter{Config: config()}).Rewrite(t.Context(), replies(t, ""), role.RewriteInput{Technique: "magic"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid", err)
	}
}

// TestRewriteWithDomain checks that the domain's synonyms come first, even without a model.
func TestRewriteWithDomain(t *testing.T) {
	cfg := prompted.Config{Model: model{}, Domain: domain(t, "legal.md")}
	in := role.RewriteInput{Question: "What is the notice period of a lessee?", Technique: role.Expand}
	want := []string{"What is the period of notice of a lessee?", "What is the termination period of a lessee?", "What is the notice period of a tenant?"}
	for _, reply := range []any{down, `{"queries":["what is the period of notice of a lessee?"]}`} {
		got, err := prompted.Rewriter{Config: cfg}.Rewrite(t.Context(), replies(t, reply), in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Queries); diff != "" {
			t.Errorf("queries (-want +got):\n%s", diff)
		}
	}
}

// TestRewriteLongConversation checks that a long conversation is shown from its end.
func TestRewriteLongConversation(t *testing.T) {
	in := role.RewriteInput{Question: "And then?", Technique: role.Resolve}
	for range 100 {
		in.History = append(in.History, assay.Turn{Question: "What is it?", Answer: strings.Repeat("Long. ", 100)})
	}
	in.History = append(in.History, assay.Turn{Question: "Who is Ann?", Answer: "A judge."})
	c := replies(t, `{"queries":["What did Ann do then?"]}`)
	got, err := prompted.Rewriter{Config: prompted.Config{Model: model{llm.Facts{Window: 2048}}}}.Rewrite(t.Context(), c, in)
	if err != nil || len(got.Queries) != 1 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "of 101 turns") || !strings.Contains(c.last(0), "Who is Ann?") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNextQuery(t *testing.T) {
	in := role.QueryInput{
		Question: "How long do tenants and lessors wait?",
		History: []role.Asked{
			{Query: "What is the notice period for tenants?", Brought: "three months"},
			{Query: "the landlord's duty to repair the heating in winter months quickly", Brought: "nothing"},
		},
		Gaps: []string{"landlords"},
	}
	tests := []struct {
		name   string
		script []any
		want   string
		calls  int
	}{
		{"new", []any{`{"gap":"landlords","query":"notice period landlords"}`}, "notice period landlords", 1},
		{"the same, then new", []any{`{"query":"what is the notice period for tenants"}`, `{"query":"landlord termination"}`}, "landlord termination", 2},
		{"other order and forms", []any{`{"query":"tenant notice periods"}`, `{"query":""}`}, "", 2},
		{"a part of it", []any{`{"query":"find information about notice"}`, `{"query":""}`}, "", 2},
		{"hardly a word changed", []any{`{"query":"landlord's duty to repair the broken heating in winter months quickly"}`, `{"query":"repair costs"}`}, "repair costs", 2},
		{"the domain's other word for it", []any{`{"query":"termination period for lessee"}`, `{"query":"deposit"}`}, "deposit", 2},
		{"another number is another query", []any{`{"query":"landlord's duty to repair the heating in winter months quickly 2024"}`}, "landlord's duty to repair the heating in winter months quickly 2024", 1},
		{"nothing better", []any{`{"query":""}`}, "", 1},
		{"several lines, then one", []any{"{\"query\":\"deposit\\nrent\"}", `{"query":"deposit"}`}, "deposit", 2},
		{"repeats to the end", []any{`{"query":"notice period tenants"}`}, "", 3},
	}
	for _, tt := range tests {
		c := replies(t, tt.script...)
		got, err := prompted.Rewriter{Config: prompted.Config{Model: model{}, Domain: domain(t, "legal.md")}}.Next(t.Context(), c, in)
		if err != nil || got.Query != tt.want || len(c.calls) != tt.calls || got.Failure != "" || (len(got.Notes) > 0) != (tt.calls == 3) {
			t.Errorf("%s: %+v, %v after %d calls; want %q after %d", tt.name, got, err, len(c.calls), tt.want, tt.calls)
		}
	}
}

func TestScores(t *testing.T) {
	three := hits("a", "b", "c")
	tests := []struct {
		reply string
		want  []float64
		calls int
	}{
		{`{"scores":[{"passage":3,"score":10},{"passage":1,"score":"0"},{"passage":2,"score":4}]}`, []float64{0, 0.4, 1}, 1},
		{`{"scores":[{"passage":1,"score":10}]}`, []float64{1, 0.5, 0.5}, 3},
		{`{"scores":[{"passage":1,"score":10},{"passage":1,"score":0},{"passage":2,"score":11},{"passage":7,"score":1},{"passage":3,"score":5}]}`, []float64{0.5, 0.5, 0.5}, 3},
	}
	for _, tt := range tests {
		c := replies(t, tt.reply)
		got, err := prompted.Judge{Config: config()}.Score(t.Context(), c, "q", three)
		if err != nil || len(c.calls) != tt.calls || (len(got.Notes) > 0) != (tt.calls == 3) {
			t.Errorf("%s: %+v, %v after %d calls", tt.reply, got, err, len(c.calls))
		}
		if diff := cmp.Diff(tt.want, got.Scores); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reply, diff)
		}
	}
	grades, err := prompted.Judge{Config: config()}.GradeRetrieval(t.Context(), replies(t, `{"grades":[{"passage":2,"grade":"not"},{"passage":9,"grade":"relevant"}]}`), "q", three)
	want := []role.Relevance{role.PartlyRelevant, role.NotRelevant, role.PartlyRelevant}
	if diff := cmp.Diff(want, grades.Grades); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	c := replies(t, "")
	if got, err := (prompted.Judge{Config: config()}).Score(t.Context(), c, "q", nil); err != nil || len(got.Scores) != 0 || len(c.calls) != 0 {
		t.Errorf("no hits: %+v, %v", got, err)
	}
}

func TestRefine(t *testing.T) {
	three := []assay.Hit{
		{Title: "A", Text: "The port is 80. It is open. Bananas are yellow."},
		{Title: "B", Text: "Bananas are yellow."},
		{Title: "C", Text: "A port is a place. Ships land there."},
	}
	whole := [][]role.Span{{{Start: 0, End: len(three[0].Text)}}, {{Start: 0, End: len(three[1].Text)}}, {{Start: 0, End: len(three[2].Text)}}}
	tests := []struct {
		name, reply string
		want        [][]role.Span
		calls       int
	}{
		{
			"quotes", `{"passages":[{"passage":1,"quotes":["port is 80","It is open."]},{"passage":2,"quotes":[]},{"passage":3,"quotes":["Ships land there."]}]}`,
			[][]role.Span{{{Start: 0, End: 27}}, nil, {{Start: 19, End: 36}}}, 1,
		},
		{
			"a quote that is not there", `{"passages":[{"passage":1,"quotes":["The port is 90."]},{"passage":2,"quotes":[]},{"passage":3,"quotes":[]}]}`,
			[][]role.Span{whole[0], nil, nil}, 3,
		},
		{"a passage twice, one that does not exist", `{"passages":[{"passage":1,"quotes":[]},{"passage":1,"quotes":[]},{"passage":9,"quotes":[]},{"passage":2,"quotes":[]}]}`, [][]role.Span{whole[0], nil, whole[2]}, 3},
		{"no JSON", "the port is 80", whole, 3},
	}
	for _, tt := range tests {
		c := replies(t, tt.reply)
		got, err := prompted.Judge{Config: config()}.Refine(t.Context(), c, "Which port?", three)
		if err != nil || len(c.calls) != tt.calls {
			t.Errorf("%s: %+v, %v after %d calls", tt.name, got, err, len(c.calls))
		}
		if diff := cmp.Diff(tt.want, got.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	got, err := prompted.Judge{Config: config(), Local: local.Judge{}}.Refine(t.Context(), replies(t, down), "Which port?", three)
	if err != nil || !got.StoodIn || len(got.Parts[1]) != 0 || len(got.Parts[0]) != 1 {
		t.Errorf("provider down: %+v, %v", got, err)
	}
}
