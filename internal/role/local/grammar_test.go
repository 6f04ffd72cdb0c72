package local_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/role"
)

func TestPlan(t *testing.T) {
	tests := []struct {
		question string
		shape    role.PlanShape
		want     []string
	}{
		{"Which port does the server open?", role.Single, []string{"Which port does the server open?"}},
		{"Which port does it open and which user does the server need?", role.Conjunction, []string{"Which port does it open?", "which user does the server need?"}},
		{"What is a goroutine? How do I stop it?", role.Conjunction, []string{"What is a goroutine?", "How do I stop it (goroutine)?"}},
		{"I have a server. How do I stop it?", role.Single, []string{"I have a server. How do I stop it?"}},
		{"How and why does it stop?", role.Single, []string{"How and why does it stop?"}},
		{"How do I delete a branch that was merged?", role.Single, []string{"How do I delete a branch that was merged?"}},
		{"What is the difference between a soft and a hard reset?", role.Comparison, []string{"soft reset", "hard reset"}},
		{"How does Alpha differ from Beta?", role.Comparison, []string{"Alpha", "Beta"}},
		{"Which battery is heavier, Alpha or Beta?", role.Comparison, []string{"Alpha: Which battery is heavier?", "Beta: Which battery is heavier?"}},
		{"Are Alpha and Beta both rivers?", role.Comparison, []string{"Is Alpha rivers?", "Is Beta rivers?"}},
		{"Who is the spouse of the director of Jump for Glory?", role.Chain, []string{"the director of Jump for Glory", "Who is the spouse of #1?"}},
		{"What is the population of the city where Ada Lovelace died?", role.Chain, []string{"the city where Ada Lovelace died", "What is the population of #1?"}},
		{"What is the length of the river that flows through the birthplace of the founder of the maker of the Zephyr?", role.Chain, []string{
			"the maker of the Zephyr", "the founder of #1", "the birthplace of #2", "the river that flows through #3", "What is the length of #4?",
		}},
		{"Who led the team that won the cup in the city where Ada Lovelace died?", role.Chain, []string{"the city where Ada Lovelace died", "the team that won the cup in #1", "Who led #2?"}},
		{"", role.Single, []string{""}},
	}
	for _, tt := range tests {
		p, err := local.Planner{}.Plan(t.Context(), nil, tt.question)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, sub := range p.SubQuestions {
			got = append(got, sub.Text)
			for _, n := range sub.Needs {
				if n >= i {
					t.Errorf("%q: part %d needs %d", tt.question, i, n)
				}
			}
		}
		if p.Shape != tt.shape || !slices.Equal(got, tt.want) {
			t.Errorf("%q is %s, %q; want %s, %q", tt.question, p.Shape, got, tt.shape, tt.want)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("What is a goroutine? How do I stop it? Compare a and b, or c of the D that E")
	f.Fuzz(func(t *testing.T, question string) {
		p, err := local.Planner{}.Plan(t.Context(), nil, question)
		if err != nil || len(p.SubQuestions) == 0 || (p.Shape == role.Single) != (len(p.SubQuestions) == 1) {
			t.Errorf("%q: %+v, %v", question, p, err)
		}
	})
}

func TestRoute(t *testing.T) {
	for question, want := range map[string]role.Complexity{
		"Which port does the server open?":                     role.Simple,
		"Which port does it open and which user does it need?": role.Complex,
		"What is the difference between make and new?":         role.Complex,
		"Who is the spouse of the director of Jump for Glory?": role.Complex,
		"Why?":                                   role.Moderate,
		"Which are all the ports of the server?": role.Moderate,
		"Which is the largest file?":             role.Moderate,
	} {
		r, err := local.Planner{}.Route(t.Context(), nil, question)
		if err != nil || r.Complexity != want || r.Reason == "" {
			t.Errorf("%q is %s (%s), want %s; %v", question, r.Complexity, r.Reason, want, err)
		}
	}
}

func TestNext(t *testing.T) {
	const spouse = "Who is the spouse of the director of Jump for Glory?"
	tests := []struct {
		name string
		in   role.QueryInput
		want string
	}{
		{"a name that was brought", role.QueryInput{Question: spouse, History: []role.Asked{{Query: spouse, Brought: "Jump for Glory is a film by the director Raoul Walsh.\n"}}}, "raoul walsh spouse"},
		{"what is missing", role.QueryInput{Question: spouse, History: []role.Asked{{Query: spouse}}, Gaps: []string{"the marriage"}}, "marriage Jump Glory"},
		{"its words", role.QueryInput{Question: "Where does the river end?"}, "river end"},
		{"nothing new", role.QueryInput{Question: "Where does the river end?", History: []role.Asked{{Query: "river end"}}}, ""},
	}
	for _, tt := range tests {
		got, err := local.Rewriter{}.Next(t.Context(), nil, tt.in)
		if err != nil || !strings.EqualFold(got.Query, tt.want) || got.Reason == "" {
			t.Errorf("%s: %+v, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// talk makes a conversation of questions and answers in turn.
func talk(said ...string) []assay.Turn {
	var turns []assay.Turn
	for i := 0; i < len(said); i += 2 {
		turns = append(turns, assay.Turn{Question: said[i], Answer: said[i+1]})
	}
	return turns
}

func TestResolve(t *testing.T) {
	retention := talk("What is the retention period for invoices?", "Invoices are kept for ten years. [1]")
	leave := talk("How long is parental leave in France?", "Parental leave lasts 16 weeks. [1]")
	goroutine := talk("What is a goroutine?", "A goroutine is a lightweight thread.")
	founder := talk("Who founded Springfield?", "Jebediah Springfield founded it in 1796. [1]")
	founders := talk("Who founded Skyline?", "Skyline was founded by Amara Diallo and Lukas Brandt.")
	back := talk("How do I configure it?", "What is meant: the gateway, the mail server or TLS?")
	pinned := talk("How long is the timeout?", "What is meant: ReadTimeout or WriteTimeout?")
	for _, tt := range []struct {
		name     string
		history  []assay.Turn
		question string
		want     string // empty: as it is
	}{
		{"no conversation", nil, "How do I configure it?", ""},
		{"stands alone", retention, "How do I configure TLS on the gateway?", ""},
		{"thanks", retention, "Thank you!", ""},
		{"it", retention, "Can I change it?", "Can I change the retention period for invoices?"},
		{"this", retention, "Who can change this?", "Who can change the retention period for invoices?"},
		{"it, of an indefinite", goroutine, "How do I stop it?", "How do I stop a goroutine?"},
		{"its", goroutine, "What is its stack size?", "What is a goroutine's stack size?"},
		{"a chain", append(slices.Clone(goroutine), talk("How do I start it?", "With go.")...), "Does it have an ID?", "Does start a goroutine have an ID?"},
		{"small talk between", append(slices.Clone(goroutine), talk("thanks", "You are welcome.")...), "How do I stop it?", "How do I stop a goroutine?"},
		{"a person", founder, "When was he born?", "When was Jebediah Springfield born?"},
		{"a person's", founder, "What were his children called?", "What were Jebediah Springfield's children called?"},
		{"one of two people", founders, "Where was he born?", "he = Amara Diallo|Lukas Brandt"},
		{"nobody", retention, "When was she born?", "she = "},
		{"it of its own clause", retention, "If the server crashes, does it restart?", ""},
		{"its of its own clause", retention, "Does the server keep its logs?", ""},
		{"it for nothing", retention, "Is it possible to run two servers side by side?", ""},
		{"it takes", retention, "How long does it take to renew a passport?", ""},
		{"this year", retention, "Which holidays are left this year?", ""},
		{"and in", leave, "And in Germany?", "How long is parental leave in Germany?"},
		{"what about a name", leave, "What about Germany?", "How long is parental leave in Germany?"},
		{"bare words", retention, "And for receipts?", "What is the retention period for receipts?"},
		{"words like no others", retention, "What about receipts?", "What is the retention period for invoices (receipts)?"},
		{"words that end alike", talk("How many days of annual leave does everybody have?", "28."), "What about parental leave?", "How many days of parental leave does everybody have?"},
		{"why", talk("Does Go have exceptions?", "No."), "Why not?", "Does Go have exceptions? Why not?"},
		{"asked back, a name", back, "The gateway", "How do I configure the gateway?"},
		{"asked back, a place", back, "the second one", "How do I configure the mail server?"},
		{"asked back, none of them", back, "Which licence does the proxy have?", ""},
		{"asked back, nothing to fill in", pinned, "WriteTimeout", "How long is the timeout (WriteTimeout)?"},
	} {
		out, err := local.Rewriter{}.Rewrite(t.Context(), nil, role.RewriteInput{Question: tt.question, Technique: role.Resolve, History: tt.history})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(out.Queries, "|")
		if out.Open != "" {
			got = out.Open + " = " + strings.Join(out.Means, "|")
		}
		if got != tt.want {
			t.Errorf("%s: %q is %q, want %q", tt.name, tt.question, got, tt.want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("And in Germany?", "How long is leave?", "What is meant: a or b?")
	f.Add("Is it his?", "Who is Ada Lovelace?", "She is. He was.")
	f.Fuzz(func(t *testing.T, question, before, answer string) {
		out, err := local.Rewriter{}.Rewrite(t.Context(), nil, role.RewriteInput{Question: question, Technique: role.Resolve, History: talk(before, answer, question, before)})
		if err != nil || len(out.Queries) > 1 || out.Open != "" && len(out.Queries) > 0 {
			t.Errorf("%q after %q: %+v, %v", question, before, out, err)
		}
	})
}

func TestRewrite(t *testing.T) {
	words := local.Rewriter{Words: func(text string, n int) []string { return []string{"leave of absence", text, "  ", "sabbatical"} }}
	for _, tt := range []struct {
		rewriter  local.Rewriter
		technique role.Technique
		question  string
		most      int
		want      []string
	}{
		{local.Rewriter{}, role.Expand, "What does ReadHeaderTimeout limit in http.Server?", 0, []string{"What does read header timeout limit in http server?", "ReadHeaderTimeout limit http.Server"}},
		{local.Rewriter{}, role.Expand, "invoices", 0, []string{}},
		{words, role.Expand, "How long is leave at most?", 2, []string{"leave of absence", "sabbatical"}},
		{local.Rewriter{}, role.HyDE, "How long is leave?", 0, []string{}},
		{local.Rewriter{}, role.StepBack, "How long is leave?", 0, []string{}},
	} {
		out, err := tt.rewriter.Rewrite(t.Context(), nil, role.RewriteInput{Question: tt.question, Technique: tt.technique, Most: tt.most})
		if diff := cmp.Diff(tt.want, out.Queries); diff != "" || err != nil {
			t.Errorf("%s of %q: %v (-want +got):\n%s", tt.technique, tt.question, err, diff)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := (local.Rewriter{}).Rewrite(ctx, nil, role.RewriteInput{Question: "x", Technique: "magic"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an unknown technique: %v, want ErrInvalid", err)
	}
	cancel()
	if _, err := (local.Rewriter{}).Rewrite(ctx, nil, role.RewriteInput{Question: "x", Technique: role.HyDE}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
