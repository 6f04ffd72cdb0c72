package local_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// evidenceOf returns passages as evidence, each of a document of its own: "Title: text".
func evidenceOf(passages ...string) []assay.Evidence {
	var out []assay.Evidence
	for i, p := range passages {
		title, text, _ := strings.Cut(p, ": ")
		out = append(out, assay.Evidence{Number: i + 1, Hit: assay.Hit{
			Chunk: assay.Chunk{ID: title, Kind: assay.ChunkProse, End: len(text)},
			Title: title, Text: text, Language: "en", Scores: assay.Scores{Relevance: 0.9},
		}})
	}
	return out
}

// draftOf returns a draft of statements that each cite the evidence of their number.
func draftOf(question string, evidence []assay.Evidence, statements ...role.Statement) role.DraftInput {
	return role.DraftInput{Reading: role.Reading{Question: question, Evidence: evidence}, Draft: role.Draft{Statements: statements}}
}

var (
	leave    = evidenceOf("Leave: Parental leave lasts 14 months. The team lead approves it.", "Travel: Trips by train are paid for.")
	lasts    = role.Statement{Text: "Parental leave lasts 14 months.", Evidence: []int{1}}
	approves = role.Statement{Text: "The team lead approves it.", Evidence: []int{1}}
	trains   = role.Statement{Text: "Trips by train are paid for.", Evidence: []int{2}}
	invented = role.Statement{Text: "Parental leave lasts three years and is unpaid.", Evidence: []int{1}}
	wrong    = role.Statement{Text: "Parental leave lasts 15 months.", Evidence: []int{1}}
)

func TestJudge(t *testing.T) {
	const howLong = "How long is parental leave?"
	tests := []struct {
		name string
		in   role.DraftInput
		want role.JudgeVerdict
		says string // in what to revise
	}{
		{"right", draftOf(howLong, leave, lasts), role.Accept, ""},
		{"nothing", draftOf(howLong, leave), role.Revise, "says nothing"},
		{"no evidence", draftOf(howLong, nil, lasts), role.Revise, "statement 1"},
		{"evidence that does not exist", draftOf(howLong, leave, role.Statement{Text: lasts.Text, Evidence: []int{7}}), role.Revise, "statement 1"},
		{"another's evidence", draftOf(howLong, leave, role.Statement{Text: lasts.Text, Evidence: []int{2}}), role.Revise, "statement 1"},
		{"unsupported", draftOf(howLong, leave, lasts, invented), role.Revise, "statement 2"},
		{"contradicted", draftOf(howLong, leave, wrong), role.Revise, "statement 1"},
		{"no number", draftOf(howLong, leave, approves), role.Revise, "a number"},
		{"off the point", draftOf(howLong, leave, trains), role.Revise, "parental"},
		{"another name", draftOf("How long is parental leave at Acme?", leave, lasts), role.Revise, "Acme"},
		{"no question", draftOf("", leave, lasts), role.Revise, ""},
	}
	for _, tt := range tests {
		got, err := local.Judge{}.Judge(context.Background(), nil, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != tt.want || got.Reason == "" && len(got.Revise) > 0 || (got.Verdict == role.Revise) != (len(got.Revise) > 0) || !strings.Contains(strings.Join(got.Revise, "; "), tt.says) {
			t.Errorf("%s: %s, revise %q (%s); want %s, revise %q", tt.name, got.Verdict, got.Revise, got.Reason, tt.want, tt.says)
		}
	}
}

func TestCritic(t *testing.T) {
	const question = "Who approves parental leave, and how long is it?"
	ratings := func(c role.Critique) string {
		return strings.Join([]string{string(c.Grounded), string(c.Complete), string(c.Relevant), string(c.Clear)}, " ")
	}
	tests := []struct {
		name  string
		in    role.DraftInput
		want  string // grounded, complete, relevant, clear
		flaws []role.Flaw
	}{
		{"right", draftOf(question, leave, lasts, approves), "good good good good", nil},
		{"nothing", draftOf(question, leave), "poor poor poor poor", []role.Flaw{role.FlawMissing}},
		{"half invented", draftOf(question, leave, lasts, invented), "fair fair good good", []role.Flaw{role.FlawUnsupported, role.FlawMissing}},
		{"contradicted", draftOf(question, leave, wrong), "poor fair good good", []role.Flaw{role.FlawContradicted, role.FlawMissing}},
		{"off the point", draftOf(question, leave, lasts, approves, trains), "good good fair good", []role.Flaw{role.FlawOffTopic}},
		{"goes on from nothing", draftOf("How is leave approved?", evidenceOf("Leave: It is approved by the team lead."), role.Statement{Text: "It is approved by the team lead.", Evidence: []int{1}}), "good good good poor", []role.Flaw{role.FlawUnclear}},
	}
	for _, tt := range tests {
		got, err := local.Critic{}.Criticise(context.Background(), nil, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		var flaws []role.Flaw
		for _, r := range got.Remarks {
			if !slices.Contains(flaws, r.Flaw) {
				flaws = append(flaws, r.Flaw)
			}
			if r.Advice == "" || r.Statement < -1 || r.Statement >= len(tt.in.Draft.Statements) {
				t.Errorf("%s: the remark %+v says nothing, or of no statement", tt.name, r)
			}
		}
		if ratings(got) != tt.want {
			t.Errorf("%s: %s, want %s (%+v)", tt.name, ratings(got), tt.want, got.Remarks)
		}
		if diff := cmp.Diff(tt.flaws, flaws); diff != "" {
			t.Errorf("%s: flaws (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestAnalyse(t *testing.T) {
	evidence := evidenceOf(
		"Leave: Parental leave lasts 14 months. It rains. Parental leave is approved by the team lead.",
		"Travel: Trips by train are paid for by the company.",
	)
	tests := []struct {
		question   string
		evidence   []assay.Evidence
		categories []string
		open       []string
	}{
		{"How long is parental leave?", evidence, []string{"Leave"}, []string{}},
		{"How long is parental leave and who pays trips by train?", evidence, []string{"How long is parental leave?", "who pays trips by train?"}, []string{"pays"}},
		{"How long is parental leave for bakers?", evidence, []string{"Leave"}, []string{"bakers"}},
		{"How long is parental leave?", nil, nil, []string{"How long is parental leave?"}},
		{"When was parental leave introduced?", evidence[:1], []string{"Leave"}, []string{"a date for: When was parental leave introduced?", "introduced"}},
	}
	for _, tt := range tests {
		got, err := local.Analyst{}.Analyse(context.Background(), nil, role.Reading{Question: tt.question, Evidence: tt.evidence})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, k := range got.Categories {
			names = append(names, k.Name)
			for _, st := range k.Statements {
				if len(st.Evidence) != 1 || !strings.Contains(tt.evidence[st.Evidence[0]-1].Hit.Text, st.Text) {
					t.Errorf("%q: %+v is not verbatim of its evidence", tt.question, st)
				}
			}
		}
		if diff := cmp.Diff(tt.categories, names); diff != "" {
			t.Errorf("%q: categories (-want +got):\n%s", tt.question, diff)
		}
		if diff := cmp.Diff(tt.open, got.Open); diff != "" {
			t.Errorf("%q: open (-want +got):\n%s", tt.question, diff)
		}
	}
}

func TestReflect(t *testing.T) {
	known := []string{"Leave: Parental leave lasts 14 months.", "The team lead approves parental leave."}
	tests := []struct {
		name string
		in   role.ReflectInput
		want role.ReflectionStatus
	}{
		{"all", role.ReflectInput{Question: "How long is parental leave?", Known: known}, role.CompletedStatus},
		{"nothing known", role.ReflectInput{Question: "How long is parental leave?"}, role.IncompleteStatus},
		{"a name is open", role.ReflectInput{Question: "How long is parental leave at Acme?", Known: known}, role.IncompleteStatus},
		{"no number", role.ReflectInput{Question: "How many managers approve parental leave?", Known: known[1:]}, role.IncompleteStatus},
		{"three of four words", role.ReflectInput{Question: "Who approves parental leave abroad?", Known: known}, role.IncompleteStatus},
		{"which is enough", role.ReflectInput{Question: "Who approves parental leave abroad?", Known: known, Threshold: 0.7}, role.CompletedStatus},
		{"no such threshold", role.ReflectInput{Question: "Who approves parental leave abroad?", Known: known, Threshold: 7}, role.IncompleteStatus},
		{"no question", role.ReflectInput{Known: known}, role.IncompleteStatus},
	}
	for _, tt := range tests {
		got, err := local.Reflector{}.Reflect(context.Background(), nil, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != tt.want || got.Justification == "" || got.Coverage < 0 || got.Coverage > 1 {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
		if got.Status == role.CompletedStatus && got.Coverage < got.Threshold {
			t.Errorf("%s: completed with %.2f of %.2f", tt.name, got.Coverage, got.Threshold)
		}
	}
}
