package local_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// rewritten is what becomes of a follow-up: the question in full, or its open words and
// what they can mean.
func rewritten(t *testing.T, question string, history []assay.Turn) string {
	t.Helper()
	out, err := local.Rewriter{}.Rewrite(context.Background(), nil, role.RewriteInput{Question: question, Technique: role.Resolve, History: history})
	if err != nil {
		t.Fatal(err)
	}
	if out.Open != "" {
		if len(out.Queries) > 0 || len(out.Means) == 1 {
			t.Errorf("%q: %+v", question, out)
		}
		return out.Open + " = " + strings.Join(out.Means, "|")
	}
	return strings.Join(out.Queries, "|")
}

func TestResolvePersons(t *testing.T) {
	manages := talk("Who manages the Malmö office?", "The Malmö office was opened in 2016 and is managed by Ingrid Sundberg. [1] The Hamburg office was opened in 2011 and is managed by Peter Voss. [1]")
	reports := append(slices.Clone(manages), assay.Turn{Asked: "To whom does she report?", Question: "To whom does Ingrid Sundberg report?", Answer: "Ingrid Sundberg reports to Paul Okafor, the chief operating officer. [1]"})
	deputy := talk("Who is the deputy of Marta Keller?", "The people team is led by Marta Keller. [1] Marta Keller was born in Rotterdam. [1] Her deputy is Jonas Lindqvist, who sits in the Malmö office. [1]")
	works := talk("Where does Marta Keller work?", "Marta Keller works in the Hamburg office. [1]")
	nobody := talk("Where does Marta Keller work?", "Not found in these documents.")
	for _, group := range []struct {
		history []assay.Turn
		asked   []struct{ question, want string }
	}{
		{manages, []struct{ question, want string }{
			{"To whom does she report?", "To whom does Ingrid Sundberg report?"},
			{"Who does it report to?", "Who does the Malmö office report to?"},
		}},
		{reports, []struct{ question, want string }{
			{"What is his role?", "What is Paul Okafor's role?"},
			{"And his salary?", "And Paul Okafor's salary?"},
			{"Where was she born?", "she = Paul Okafor|Ingrid Sundberg"},
		}},
		{append(slices.Clone(reports), assay.Turn{Asked: "What is his role?", Question: "What is Paul Okafor's role?", Answer: "Paul Okafor is the chief operating officer."}), []struct{ question, want string }{
			{"Where was she born?", "Where was Ingrid Sundberg born?"},
			{"Where was he born?", "Where was Paul Okafor born?"},
		}},
		{deputy, []struct{ question, want string }{
			{"Where does he work?", "Where does Jonas Lindqvist work?"},
			{"Who manages it?", "it = "},
			{"How many employees does it have?", "it = "},
			{"How old are they?", "they = "},
		}},
		{works, []struct{ question, want string }{
			{"Who manages it?", "Who manages the Hamburg office?"},
			{"Where was she born?", "Where was Marta Keller born?"},
		}},
		{nobody, []struct{ question, want string }{
			{"Who manages it?", "it = "},
			{"Is she on leave?", "Is Marta Keller on leave?"},
		}},
		{talk("Who founded Skyline Networks?", "Skyline Networks was founded by Amara Diallo and Lukas Brandt."), []struct{ question, want string }{
			{"Where was he born?", "he = Amara Diallo|Lukas Brandt"},
		}},
		{talk("Who founded Springfield?", "It was founded in 1796."), []struct{ question, want string }{
			{"Where was he born?", "he = "},
			{"How large is it?", "How large is Springfield?"},
		}},
	} {
		for _, a := range group.asked {
			if got := rewritten(t, a.question, group.history); got != a.want {
				t.Errorf("after %q: %q is %q, want %q", group.history[len(group.history)-1].Question, a.question, got, a.want)
			}
		}
	}
}

func TestResolveThings(t *testing.T) {
	beta := talk("What does Alpha cost?", "Alpha weighs 48 kg and costs 2,900 euros. [1]", "And Beta?", "Beta weighs 89 kg and costs 4,700 euros. [1]")
	logs := talk("Where does Heron write its logs?", "Heron writes its logs to the system journal. [1]")
	either := talk("Which battery is heavier, Alpha or Beta?", "Beta weighs 89 kg and costs 4,700 euros. [1]")
	back := talk("How do I configure it?", `What is meant by "it": Falcon gateway or Heron gateway?`)
	unclear := talk("What is his role?", `What is meant by "his": Paul Okafor or Peter Voss?`)
	none := talk("How long is it?", `What is meant by "it"? The question does not say.`)
	alike := talk("How do I configure it?", `What is meant by "it": Getting started (vega) or Getting started (lyra)?`)
	leave := talk("How long is parental leave?", "Parental leave lasts up to 26 weeks. [1]")
	failed := talk("Which contracts does Ingrid Sundberg sign?", "Not found in these documents.")
	for _, test := range []struct {
		history        []assay.Turn
		question, want string
	}{
		{beta, "how heavy is it?", "how heavy is Beta?"},
		{beta, "Is it cheaper?", "Is Beta cheaper?"},
		{beta, "what about the other one?", "What does Alpha cost?"},
		{beta, "and the first one?", "What does Alpha cost?"},
		{beta, "How heavy is the other one?", "How heavy is Alpha?"},
		{beta, "How heavy is the second one?", "How heavy is Beta?"},
		{append(slices.Clone(beta), talk("How heavy is Beta?", "89 kg.")...), "and the other one?", "How heavy is Alpha?"},
		{append(slices.Clone(beta), talk("What does Gamma cost?", "9 euros.")...), "and the other one?", "the other one = Alpha|Beta|Gamma"},
		{append(slices.Clone(leave), talk("How long is sick leave?", "Six weeks.")...), "Who approves the other one?", "Who approves parental leave?"},
		{either, "What does the second one cost?", "What does Beta cost?"},
		{either, "What does the first one cost?", "What does Alpha cost?"},
		{either, "What does the other one cost?", "the other one = Alpha|Beta"},
		{talk("How much memory do Falcon and Heron need?", "4 and 8 GB."), "where does the second one write its logs?", "where does Heron write its logs?"},
		{back, "both", "How do I configure Falcon gateway and Heron gateway?"},
		{back, "Both of them, please", "How do I configure Falcon gateway and Heron gateway?"},
		{append(slices.Clone(back), talk("How do I configure Heron gateway?", "In the web console.")...), "And the other one?", "How do I configure Falcon gateway?"},
		{unclear, "Peter Voss", "What is Peter Voss' role?"},
		{none, "Parental leave", "How long is Parental leave?"},
		{none, "Who approves travel?", ""},
		{logs, "How long are they kept?", "How long are Heron's logs kept?"},
		{talk("What is the notice period?", "Four weeks."), "How long are they kept?", "they = "},
		{talk("Does Okta support SAML 2.0?", "Yes."), "Is that longer than for the other one?", "the other one = "},
		{leave, "Is that longer than for the other one?", "the other one = "},
		{append(slices.Clone(leave), talk("Is that longer than for the other one?", `What is meant by "the other one"? The question does not say.`)...), "And sick leave?", "How long is sick leave?"},
		{failed, "and the Hamburg office?", "and the Hamburg office = "},
		{failed, "And Peter Voss?", "Which contracts does Peter Voss sign?"},
		{failed, "Why?", "Why = "},
		{alike, "I mean lyra", "How do I configure Getting started (lyra)?"},
		{alike, "the one in vega", "How do I configure Getting started (vega)?"},
		{append(slices.Clone(alike), talk("vega", "In b.toml.")...), "When are backups made?", "When are backups made (Getting started (vega))?"},
		{append(slices.Clone(alike), talk("vega", "In b.toml.", "When are backups made?", "At two.")...), "and in lyra?", "When are backups made (Getting started (lyra))?"},
		{append(slices.Clone(alike), talk("vega", "In b.toml.")...), "and the other one?", "How do I configure Getting started (lyra)?"},
		{talk("Does Falcon support IPv6?", "Yes, it does."), "and what does it weigh?", "and what does Falcon weigh?"},
		{append(slices.Clone(back), talk("How do I configure Heron gateway?", "In the web console.")...), "and Falcon?", "How do I configure Falcon gateway?"},
		{append(slices.Clone(back), talk("How do I configure Heron gateway?", "In the web console.")...), "And for Falcon?", "How do I configure Falcon gateway?"},
	} {
		if got := rewritten(t, test.question, test.history); got != test.want {
			t.Errorf("after %q: %q is %q, want %q", test.history[len(test.history)-1].Question, test.question, got, test.want)
		}
	}
}
