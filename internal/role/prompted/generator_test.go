package prompted_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/role"
)

func generateInput() role.GenerateInput {
	return role.GenerateInput{
		Question: asked, Evidence: evidence(append(sources, "The notice period is four weeks.")...),
		Parts: []role.Part{{Question: asked, Evidence: []int{1, 3, 2}}},
	}
}

func TestGenerate(t *testing.T) {
	three := role.Statement{Text: "Tenants give notice three months ahead.", Evidence: []int{1}}
	tests := []struct {
		name   string
		script []any
		want   role.Draft
		calls  int
		says   string
	}{
		{"prose with marks of its own", []any{`{"shape":"prose","statements":[{"text":"Tenants give notice three months ahead [1][2, 3].","sources":[1,1]}]}`},
			role.Draft{Shape: role.Prose, Statements: []role.Statement{three}}, 1, ""},
		{"a list", []any{`{"shape":"list","statements":[{"text":"a b c","sources":[2,1],"item":true}],"open":["the deposit"]}`},
			role.Draft{Shape: role.List, Statements: []role.Statement{{Text: "a b c", Evidence: []int{1, 2}, Item: true}}, Open: []string{"the deposit"}}, 1, ""},
		{"a table", []any{`{"shape":"table","columns":["Who","Notice"],"statements":[
			{"text":"Tenants give notice three months ahead.","sources":[1],"cells":["Tenants","three months"]},{"text":"Landlords give notice six months ahead.","sources":[2],"cells":["Landlords","six\nmonths [2]"]}]}`},
			role.Draft{Shape: role.Table, Columns: []string{"Who", "Notice"}, Statements: []role.Statement{
				{Text: three.Text, Evidence: []int{1}, Cells: []string{"Tenants", "three months"}},
				{Text: "Landlords give notice six months ahead.", Evidence: []int{2}, Cells: []string{"Landlords", "six months"}},
			}}, 1, ""},
		{"a conflict", []any{`{"statements":[{"text":"Tenants give notice three months ahead.","sources":[1]},{"text":"The notice period is four weeks.","sources":[3]}],"conflicts":[{"one":1,"other":2}]}`},
			role.Draft{Statements: []role.Statement{three, {Text: "The notice period is four weeks.", Evidence: []int{3}}}, Conflicts: [][2]int{{0, 1}}}, 1, ""},
		{"the same twice, with a conflict", []any{`{"statements":[{"text":"Tenants give notice three months ahead.","sources":[1]},{"text":"tenants give notice three months ahead. [2]","sources":[2]},
			{"text":"The notice period is four weeks.","sources":[3]}],"conflicts":[{"one":2,"other":3},{"one":1,"other":2}]}`},
			role.Draft{Statements: []role.Statement{{Text: three.Text, Evidence: []int{1, 2}}, {Text: "The notice period is four weeks.", Evidence: []int{3}}}, Conflicts: [][2]int{{0, 1}}}, 1, ""},
		{"an invented number, then right", []any{
			`{"statements":[{"text":"x","sources":[4]}]}`, `{"statements":[{"text":"Tenants give notice three months ahead.","sources":["1"]}]}`,
		}, role.Draft{Statements: []role.Statement{three}}, 2, ""},
		{"another language, then right", []any{
			`{"statements":[{"text":"Die Mieter müssen drei Monate vorher kündigen, wenn sie nicht schon in der ersten Woche ausziehen, wie es in dem Vertrag steht.","sources":[1]}]}`,
			`{"statements":[{"text":"Tenants give notice three months ahead.","sources":[1]}]}`,
		}, role.Draft{Statements: []role.Statement{three}}, 2, ""},
		{"wrong to the end", []any{`{"shape":"table","columns":["one"],"statements":[
			{"text":"no source","sources":[]},{"text":"Tenants give notice three months ahead.","sources":[1,99],"cells":["a","b"]},{"text":" ","sources":[1]}],
			"conflicts":[{"one":2,"other":3},{"one":0,"other":9}]}`},
			role.Draft{Shape: role.List, Statements: []role.Statement{{Text: three.Text, Evidence: []int{1}, Item: true}}, Torn: true}, 3, "is shown as a list"},
		{"an item of no source to the end", []any{`{"shape":"list","statements":[{"text":"Tenants give notice three months ahead.","sources":[1],"item":true},{"text":"So does the landlord.","sources":[99],"item":true}]}`},
			role.Draft{Shape: role.List, Statements: []role.Statement{{Text: three.Text, Evidence: []int{1}, Item: true}}, Torn: true}, 3, "dropped a statement"},
		{"an invented number to the end", []any{`{"statements":[{"text":"Tenants give notice three months ahead.","sources":[1,99]}]}`},
			role.Draft{Statements: []role.Statement{three}}, 3, "dropped an unknown passage"},
		{"nothing to say", []any{`{"statements":[],"open":["all of it"]}`}, role.Draft{Statements: []role.Statement{}, Open: []string{"all of it"}}, 1, ""},
		{"a section that nobody asked for", []any{`{"statements":[{"text":"Tenants give notice three months ahead.","sources":[1],"section":"Advice"}]}`},
			role.Draft{Statements: []role.Statement{three}}, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := replies(t, tt.script...)
			got, err := prompted.Generator{Config: config(), Local: local.Generator{}}.Generate(t.Context(), c, generateInput())
			if err != nil {
				t.Fatal(err)
			}
			said := got.Failure + strings.Join(got.Notes, "\n")
			if len(c.calls) != tt.calls || tt.says == "" && said != "" || !strings.Contains(said, tt.says) {
				t.Errorf("%d calls, want %d; failure %q, notes %q, want %q", len(c.calls), tt.calls, got.Failure, got.Notes, tt.says)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(role.Draft{}, "Outcome")); diff != "" {
				t.Errorf("draft (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGenerateReadsContext checks that the prompt shows the excerpts of the context, in its order.
func TestGenerateReadsContext(t *testing.T) {
	in := generateInput()
	in.Context = []role.Excerpt{
		{Evidence: 3, Spans: []role.Span{{Start: 0, End: 10}, {Start: 21, End: 31}}},
		{Evidence: 9, Spans: []role.Span{{Start: 0, End: 1}}},
		{Evidence: 1, Spans: []role.Span{{Start: 0, End: len(sources[0])}}},
	}
	c := replies(t, `{"statements":[]}`)
	if _, err := (prompted.Generator{Config: config()}).Generate(t.Context(), c, in); err != nil {
		t.Fatal(err)
	}
	p := c.last(0)
	if !strings.Contains(p, "The notice … four weeks") || strings.Contains(p, "Landlords") || strings.Index(p, `number="3"`) > strings.Index(p, `number="1"`) {
		t.Errorf("prompt:\n%s", p)
	}
}

// TestGenerateAgain checks that the prompt lists the rejected statements with the reason.
func TestGenerateAgain(t *testing.T) {
	in := generateInput()
	ask := func() string {
		c := replies(t, `{"statements":[]}`)
		if _, err := (prompted.Generator{Config: config()}).Generate(t.Context(), c, in); err != nil {
			t.Fatal(err)
		}
		return c.last(0)
	}
	if strings.Contains(ask(), "rejected") {
		t.Error("the first prompt speaks of what was rejected")
	}
	for range 14 {
		in.Rejected = append(in.Rejected, role.Rejected{Text: "Tenants wait\nlong.", Reason: "60% of its words are in the source"})
	}
	if p := ask(); !strings.Contains(p, "- Tenants wait long. (60% of its words are in the source)\n") || !strings.Contains(p, "- and 2 more") || !strings.Contains(p, "Write none of them again") {
		t.Errorf("prompt:\n%s", p)
	}
}

func TestAnswerLanguage(t *testing.T) {
	for question, want := range map[string]string{
		"Wie lange ist die Kündigungsfrist für Mieter?":      `language with the code "de"`,
		"Quelle est la durée du préavis pour le locataire ?": `language with the code "fr"`,
		"How long is the notice period?":                     `language with the code "en"`,
		"Xyzzy plugh?":                                       "from the passages.",
	} {
		in := generateInput()
		in.Question = question
		c := replies(t, `{"statements":[]}`)
		if _, err := (prompted.Generator{Config: config()}).Generate(t.Context(), c, in); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(c.last(0), want) {
			t.Errorf("%q: the prompt does not ask for %s", question, want)
		}
	}
}

func TestGenerateStandIn(t *testing.T) {
	in := generateInput()
	in.Parts[0].Terms = []assay.Term{{Text: "notice", Stem: "notic", Chunks: 3, Weight: 0.5}, {Text: "tenants", Stem: "tenant", Chunks: 1, Weight: 0.9}}
	got, err := prompted.Generator{Config: config(), Local: local.Generator{}}.Generate(t.Context(), replies(t, down), in)
	if err != nil || len(got.Statements) == 0 || len(got.Notes) != 1 || got.Failure != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSections checks that only the sections of the domain are kept.
func TestSections(t *testing.T) {
	c := replies(t, `{"statements":[{"text":"Tenants give notice three months ahead.","sources":[1],"section":"Rule"},{"text":"It is so.","sources":[1],"section":"rule of mine"}]}`)
	got, err := prompted.Generator{Config: prompted.Config{Model: model{}, Domain: domain(t, "legal.md")}}.Generate(t.Context(), c, generateInput())
	if err != nil || len(got.Statements) != 2 || got.Statements[0].Section != "Rule" || got.Statements[1].Section != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if s := c.calls[0].Request.System; !strings.Contains(s, "Answer sections, in this order:\n- Rule: what the clause") || !strings.Contains(s, "force majeure = act of God") {
		t.Errorf("system:\n%s", s)
	}
}

// TestGenerateFromSubAnswers checks that the model sees the answers to the sub-questions with the
// passages that they cite.
func TestGenerateFromSubAnswers(t *testing.T) {
	in := role.GenerateInput{Question: reading.Question, Evidence: reading.Evidence, SubAnswers: []role.SubAnswer{
		{Question: "How long is the notice?", Statements: []role.Statement{{Text: "It is three months.", Evidence: []int{1, 2}}, {Text: "It is given in writing.", Evidence: []int{1}}}},
	}}
	c := replies(t, `{"statements":[]}`)
	if _, err := (prompted.Generator{Config: config()}).Generate(t.Context(), c, in); err != nil {
		t.Fatal(err)
	}
	const want = "Question: How long is the notice?\nAnswer: It is three months. (passages 1, 2) It is given in writing. (passages 1)"
	if shown := c.last(0); !strings.Contains(shown, want) || !strings.Contains(shown, "<sub_answer") {
		t.Errorf("the prompt lacks %q:\n%s", want, shown)
	}
}
