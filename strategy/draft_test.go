package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// drafted answers a question from two documents with the given draft. Judge reports which claims
// are supported; nil means all.
func drafted(t *testing.T, d role.Draft, judge func(claim string) bool) (a assay.Answer, claims []string) {
	t.Helper()
	l := newLibrary("The kiosk opens at nine. A roll is one euro.", "The kiosk in town opens at ten. Coffee at the kiosk is two euros.")
	roles := localRoles()
	roles.Grader = grader(enough)
	roles.Generator = generator(func(role.GenerateInput) (role.Draft, error) { return d, nil })
	roles.Verifier = role.ByClaim(verifier(func(claim string, _ []ground.Passage) (ground.Judgement, error) {
		claims = append(claims, claim)
		if judge != nil && !judge(claim) {
			return ground.Judgement{Verdict: assay.Unsupported, Reason: "not said"}, nil
		}
		return ground.Judgement{Verdict: assay.Supported, Score: 0.9}, nil
	}))
	e := env(l, "When does the kiosk open?", roles)
	e.Sections = []string{"Hours", "Prices"}
	return ask(t, strategy.Static, e, assay.Budget{}), claims
}

func shownClaims(a assay.Answer) []string {
	var list []string
	for _, c := range a.Claims {
		list = append(list, a.Text[c.Start:c.End])
	}
	return list
}

// TestQuotedDraft checks that items and rows that are in their source word for word are not judged
// without their lead, and that a row also cites its column heads. The yes or no of a deciding
// quotation is shown before it and is not part of the claim.
func TestQuotedDraft(t *testing.T) {
	l := newLibrary("It does not cover:\n\n- damage by liquids\n- worn faders\n", "Kiosk | Opens\nin town | 9:00\nat sea | 10:00")
	roles := localRoles()
	roles.Grader = grader(enough)
	roles.Generator = generator(func(role.GenerateInput) (role.Draft, error) {
		return role.Draft{Columns: []string{"Kiosk", "Opens"}, Statements: []role.Statement{
			{Text: "It does not cover:", Evidence: []int{1}, Decides: role.No},
			{Text: "damage by liquids", Evidence: []int{1}, Item: true},
			{Text: "damage by fire", Evidence: []int{1}, Item: true},
			{Text: "at sea | 10:00", Cells: []string{"at sea", "10:00"}, Evidence: []int{2}, Decides: "Perhaps"},
			{Text: "in town | 9:00", Cells: []string{"in town", "12:00"}, Evidence: []int{2}},
		}}, nil
	})
	var judged []string
	roles.Verifier = role.ByClaim(verifier(func(claim string, _ []ground.Passage) (ground.Judgement, error) {
		if judged = append(judged, claim); strings.HasSuffix(claim, ":") {
			return ground.Judgement{Verdict: assay.Supported, Score: 0.9}, nil
		}
		return ground.Judgement{Verdict: assay.Unsupported, Reason: "not said"}, nil
	}))
	a := ask(t, strategy.Static, env(l, "Does it cover damage at the kiosk?", roles), assay.Budget{})
	want := "No. It does not cover: [1]\n- damage by liquids [1]\n\n| Kiosk | Opens | Sources |\n| --- | --- | --- |\n| at sea | 10:00 | [2] |"
	if diff := cmp.Diff(want, a.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if want := []string{"It does not cover:", "damage by fire", "Kiosk: in town; Opens: 12:00"}; !slices.Equal(judged, want) {
		t.Errorf("judged %q, want %q", judged, want)
	}
	if got := shownClaims(a); got[0] != "It does not cover:" {
		t.Errorf("claims %q", got)
	}
	var quotes []string
	for _, c := range a.Citations {
		if c.Number == 2 {
			quotes = append(quotes, c.Quote)
		}
	}
	if want := []string{"Kiosk | Opens", "at sea | 10:00"}; !slices.Equal(quotes, want) {
		t.Errorf("the row cites %q, want %q", quotes, want)
	}
}

// TestTable checks that the verifier judges the cells of a row that are shown, not the generator's
// sentence for it.
func TestTable(t *testing.T) {
	d := role.Draft{
		Shape: role.Table, Columns: []string{"Place", "Opens | closes"},
		Statements: []role.Statement{
			{Text: "Both kiosks open in the morning.", Evidence: []int{1, 2}},
			{Text: "The kiosk opens at nine.", Cells: []string{"kiosk", "nine"}, Evidence: []int{1}},
			{Text: "The kiosk in town opens at ten.", Cells: []string{"kiosk in town", "mid|night\n[7]"}, Evidence: []int{2}},
			{Text: "Lies.", Cells: []string{"moon", "never"}, Evidence: []int{2}},
			{Text: "Too few.", Cells: []string{"moon"}, Evidence: []int{2}},
			{Text: "Nothing.", Cells: []string{"", ""}, Evidence: []int{2}},
			{Text: "That is all.", Evidence: []int{2}},
		},
	}
	a, judged := drafted(t, d, func(claim string) bool { return !strings.Contains(claim, "moon") })
	want := "Both kiosks open in the morning. [1][2]\n\n" +
		"| Place | Opens / closes | Sources |\n| --- | --- | --- |\n" +
		"| kiosk | nine | [1] |\n| kiosk in town | mid/night | [2] |\n\n" +
		"That is all. [2]"
	if diff := cmp.Diff(want, a.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if want := []string{
		"Both kiosks open in the morning.", "The kiosk opens at nine.", "Place: kiosk in town; Opens / closes: mid/night",
		"Place: moon; Opens / closes: never", "That is all.",
	}; !slices.Equal(judged, want) {
		t.Errorf("judged %q, want %q", judged, want)
	}
	if got := shownClaims(a); got[1] != "| kiosk | nine |" || len(got) != 4 {
		t.Errorf("claims %q", got)
	}
	notes := []string{
		"generator: a table's row that does not fit its columns was left out",
		"left out: 2 of 6 statements: 1 because its citation does not support it, 1 because it cannot be shown as it is",
	}
	if diff := cmp.Diff(notes, noteTexts(a.Notes)); a.Status != assay.Incomplete || diff != "" {
		t.Errorf("%s, notes (-want +got):\n%s", a.Status, diff)
	}
}

// TestColumnsAgree checks that a row is not shown if its cells are in other columns than those of
// the other rows.
func TestColumnsAgree(t *testing.T) {
	row := func(text string, cells ...string) role.Statement {
		return role.Statement{Text: text, Cells: cells, Evidence: []int{1}}
	}
	basic, pro := "The Basic plan costs 12 euros and includes 5 GB.", "The Pro plan costs 25 euros and includes 50 GB."
	tests := []struct {
		name string
		rows []role.Statement
		want []string
	}{
		{"as they are", []role.Statement{row(basic, "Basic", "12 euros", "5 GB"), row(pro, "Pro", "25 euros", "50 GB")}, []string{"| Basic | 12 euros | 5 GB |", "| Pro | 25 euros | 50 GB |"}},
		{"one is not", []role.Statement{row(basic, "Basic", "5 GB", "12 euros"), row(pro, "Pro", "25 euros", "50 GB"), row("Team costs 40 euros and includes 80 GB.", "Team", "40 euros", "80 GB")},
			[]string{"| Pro | 25 euros | 50 GB |", "| Team | 40 euros | 80 GB |"}},
		{"nobody knows which", []role.Statement{row(basic, "Basic", "5 GB", "12 euros"), row(pro, "Pro", "25 euros", "50 GB")}, nil},
		{"alone", []role.Statement{row(basic, "Basic", "5 GB", "12 euros")}, []string{"| Basic | 5 GB | 12 euros |"}},
		{"in other words", []role.Statement{row(basic, "Basic", "12 euros", "5 GB"), row(pro, "Pro", "25 EUR", "50 GB")}, []string{"| Basic | 12 euros | 5 GB |", "| Pro | 25 EUR | 50 GB |"}},
	}
	for _, tt := range tests {
		a, _ := drafted(t, role.Draft{Shape: role.Table, Columns: []string{"Plan", "Price", "Storage"}, Statements: tt.rows}, nil)
		if diff := cmp.Diff(tt.want, shownClaims(a)); diff != "" {
			t.Errorf("%s: rows (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestListAndSections(t *testing.T) {
	d := role.Draft{Shape: role.List, Statements: []role.Statement{
		{Text: "It opens at nine.", Evidence: []int{1}, Item: true},
		{Text: "In town it opens at ten.", Evidence: []int{2}, Item: true},
	}}
	if a, _ := drafted(t, d, nil); a.Text != "- It opens at nine. [1]\n- In town it opens at ten. [2]" {
		t.Errorf("list: %q", a.Text)
	}
	d = role.Draft{Statements: []role.Statement{
		{Text: "It depends.", Evidence: []int{1}},
		{Text: "It opens at nine.", Evidence: []int{1}, Section: "Hours"},
		{Text: "In town it opens at ten.", Evidence: []int{2}, Section: "Hours"},
		{Text: "A roll is one euro.", Evidence: []int{1}, Section: "Prices", Item: true},
		{Text: "Coffee is two euros.", Evidence: []int{2}, Section: "Prices", Item: true},
		{Text: "That is all.", Evidence: []int{2}, Section: "[Buy](https://evil.example)"},
	}}
	a, _ := drafted(t, d, nil)
	want := "It depends. [1] That is all. [2]\n\n## Hours\n\nIt opens at nine. [1] In town it opens at ten. [2]\n\n" +
		"## Prices\n\n- A roll is one euro. [1]\n- Coffee is two euros. [2]"
	if diff := cmp.Diff(want, a.Text); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
}

// TestDeclaredConflict checks that two sides are shown as a conflict only if both are supported,
// each by words of its own.
func TestDeclaredConflict(t *testing.T) {
	one, other := role.Statement{Text: "It opens at nine.", Evidence: []int{1}}, role.Statement{Text: "Its hours in town begin at ten.", Evidence: []int{2}}
	pair := [][2]int{{0, 1}}
	tests := []struct {
		name  string
		draft role.Draft
		judge func(string) bool
		want  assay.Status
	}{
		{"both sides", role.Draft{Statements: []role.Statement{one, other}, Conflicts: pair}, nil, assay.Conflicting},
		{"the other way round", role.Draft{Statements: []role.Statement{one, other}, Conflicts: [][2]int{{1, 0}}}, nil, assay.Conflicting},
		{"nobody says so", role.Draft{Statements: []role.Statement{one, other}}, nil, assay.Answered},
		{"one side is not supported", role.Draft{Statements: []role.Statement{one, other}, Conflicts: pair}, func(c string) bool { return c == one.Text }, assay.Incomplete},
		{"of one source", role.Draft{Statements: []role.Statement{one, {Text: "It opens at nine, they say.", Evidence: []int{1}}}, Conflicts: pair}, nil, assay.Answered},
		{"with itself and with nobody", role.Draft{Statements: []role.Statement{one, other}, Conflicts: [][2]int{{0, 0}, {0, 7}, {-1, 1}, {-1, -1}}}, nil, assay.Answered},
	}
	for _, tt := range tests {
		a, _ := drafted(t, tt.draft, tt.judge)
		if a.Status != tt.want {
			t.Errorf("%s: %s: %s", tt.name, a.Status, a.Justification)
		}
		if tt.want == assay.Conflicting && (len(a.Claims) != 2 || !strings.Contains(a.Justification, "statements 1 and 2")) {
			t.Errorf("%s: %d claims, %q", tt.name, len(a.Claims), a.Justification)
		}
	}
}

// TestLeftOut checks that unsupported statements are left out with a note, and that a list or table
// without them is incomplete.
func TestLeftOut(t *testing.T) {
	item := func(text string) role.Statement { return role.Statement{Text: text, Evidence: []int{1}, Item: true} }
	prose := func(text string) role.Statement { return role.Statement{Text: text, Evidence: []int{1}} }
	row := func(cells ...string) role.Statement {
		return role.Statement{Text: strings.Join(cells, " "), Evidence: []int{1}, Cells: cells}
	}
	table := []string{"Thing", "Price"}
	tests := []struct {
		name   string
		draft  role.Draft
		text   string
		status assay.Status
		note   string
	}{
		{"all stands", role.Draft{Shape: role.List, Statements: []role.Statement{item("One."), item("Two.")}}, "- One. [1]\n- Two. [1]", assay.Answered, ""},
		{"prose", role.Draft{Statements: []role.Statement{prose("One."), prose("A lie."), prose("Two.")}}, "One. [1] Two. [1]", assay.Answered,
			"left out: 1 of 3 statements, because its citation does not support it"},
		{"items", role.Draft{Shape: role.List, Statements: []role.Statement{item("A lie."), item("One."), item("Two lie.")}}, "- One. [1]", assay.Incomplete,
			"left out: 2 of 3 statements, because their citations do not support them"},
		{"the beginning of an item", role.Draft{Shape: role.List, Statements: []role.Statement{item("One."), item("A lie. And so it goes."), item("Two.")}},
			"- One. [1]\n- And so it goes. [1]\n- Two. [1]", assay.Incomplete, "left out: 1 of 4 statements, because its citation does not support it"},
		{"a row", role.Draft{Shape: role.Table, Columns: table, Statements: []role.Statement{row("roll", "one"), row("lie", "two")}},
			"| Thing | Price | Sources |\n| --- | --- | --- |\n| roll | one | [1] |", assay.Incomplete, "left out: 1 of 2 statements, because its citation does not support it"},
		{"a row with a link", role.Draft{Shape: role.Table, Columns: table, Statements: []role.Statement{row("roll", "one"), row("coffee", "[two](https://evil.example)")}},
			"| Thing | Price | Sources |\n| --- | --- | --- |\n| roll | one | [1] |", assay.Incomplete, "left out: 1 of 2 statements, because it cannot be shown as it is"},
		{"an item that the generator left out", role.Draft{Shape: role.List, Statements: []role.Statement{item("One.")}, Torn: true}, "- One. [1]", assay.Incomplete, ""},
		{"all", role.Draft{Statements: []role.Statement{prose("A lie.")}}, "Passages were found, but nothing that was written from them could be verified.", assay.Incomplete,
			"left out: 1 of 1 statement, because its citation does not support it"},
	}
	for _, tt := range tests {
		a, _ := drafted(t, tt.draft, func(c string) bool { return !strings.Contains(c, "lie") })
		if a.Text != tt.text || a.Status != tt.status || (tt.note == "") != (len(a.Notes) == 0) || tt.note != "" && !slices.Contains(noteTexts(a.Notes), tt.note) {
			t.Errorf("%s: %s %q, notes %q; want %s %q, %q", tt.name, a.Status, a.Text, a.Notes, tt.status, tt.text, tt.note)
		}
	}
}

// TestSomethingFell checks that a model is asked once more if a part of its draft is refused, and
// that the draft with more supported statements is used.
func TestSomethingFell(t *testing.T) {
	said := func(texts ...string) role.Draft {
		d := role.Draft{Shape: role.List}
		for _, text := range texts {
			d.Statements = append(d.Statements, role.Statement{Text: text, Evidence: []int{1}, Item: true})
		}
		return d
	}
	tests := []struct {
		name   string
		drafts []role.Draft
		want   string
		status assay.Status
		note   string
	}{
		{"all stands", []role.Draft{said("One.", "Two.")}, "- One. [1]\n- Two. [1]", assay.Answered, ""},
		{"it learns", []role.Draft{said("One.", "A lie."), said("One.", "Two.")}, "- One. [1]\n- Two. [1]", assay.Answered, ""},
		{"it does not", []role.Draft{said("One.", "A lie."), said("Three.", "A lie.", "Lies.")}, "- One. [1]", assay.Incomplete, "left out: 1 of 2 statements, because its citation does not support it"},
		{"it does worse", []role.Draft{said("One.", "Two.", "A lie."), said()}, "- One. [1]\n- Two. [1]", assay.Incomplete, "left out: 1 of 3 statements, because its citation does not support it"},
	}
	for _, tt := range tests {
		l := newLibrary("The kiosk opens at nine. A roll is one euro.")
		roles := localRoles()
		roles.Grader = grader(enough)
		var asked []role.GenerateInput
		roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
			asked = append(asked, in)
			return tt.drafts[len(asked)-1], nil
		})
		roles.Models = map[string]string{role.GeneratorRole: "far/writer"}
		roles.Verifier = role.ByClaim(verifier(func(claim string, _ []ground.Passage) (ground.Judgement, error) {
			if strings.Contains(strings.ToLower(claim), "lie") {
				return ground.Judgement{Verdict: assay.Unsupported, Reason: "not said"}, nil
			}
			return ground.Judgement{Verdict: assay.Supported, Score: 0.9}, nil
		}))
		e := env(l, "When does the kiosk open?", roles)
		e.Began = map[string]string{role.GeneratorRole: "far/writer"}
		a := ask(t, strategy.Static, e, assay.Budget{})
		if a.Text != tt.want || a.Status != tt.status || (tt.note == "") != (len(a.Notes) == 0) || tt.note != "" && !slices.Contains(noteTexts(a.Notes), tt.note) {
			t.Errorf("%s: %s %q, notes %q; want %s %q, %q", tt.name, a.Status, a.Text, a.Notes, tt.status, tt.want, tt.note)
		}
		if len(asked) != len(tt.drafts) {
			t.Errorf("%s: asked %d times, want %d", tt.name, len(asked), len(tt.drafts))
		}
		if want := []role.Rejected{{Text: "A lie.", Reason: "not said"}}; len(asked) == 2 && !slices.Equal(asked[1].Rejected, want) {
			t.Errorf("%s: told %v", tt.name, asked[1].Rejected)
		}
	}
}

// TestUndeclaredConflict checks that two statements of a model's draft conflict only if the model
// declares it, and that contradicting evidence which the model does not mention is always
// considered.
func TestUndeclaredConflict(t *testing.T) {
	nine, ten := role.Statement{Text: "The kiosk opens at 9.", Evidence: []int{1}}, role.Statement{Text: "The kiosk opens at 10.", Evidence: []int{2}}
	tests := []struct {
		name  string
		model string
		fails bool
		says  []role.Statement
		want  assay.Status
	}{
		{"quoted", "", false, []role.Statement{nine, ten}, assay.Conflicting},
		{"a model's own", "far/writer", false, []role.Statement{nine, ten}, assay.Answered},
		{"quoted for a model", "far/writer", true, []role.Statement{nine, ten}, assay.Conflicting},
		{"what a model does not mention", "far/writer", false, []role.Statement{nine}, assay.Conflicting},
	}
	for _, tt := range tests {
		l := newLibrary("The kiosk opens at 9.", "The kiosk opens at 10.")
		roles := localRoles()
		roles.Grader = grader(enough)
		roles.Generator = generator(func(role.GenerateInput) (role.Draft, error) {
			return role.Draft{Shape: role.List, Statements: tt.says, Outcome: role.Outcome{StoodIn: tt.fails}}, nil
		})
		if tt.model != "" {
			roles.Models = map[string]string{role.GeneratorRole: tt.model}
		}
		e := env(l, "When does the kiosk open?", roles)
		e.Began = map[string]string{role.GeneratorRole: tt.model}
		if a := ask(t, strategy.Static, e, assay.Budget{}); a.Status != tt.want {
			t.Errorf("%s: %s, want %s: %s", tt.name, a.Status, tt.want, a.Justification)
		}
	}
}

// TestOpen checks that the open points of a draft are missing, and that the answer is not complete.
func TestOpen(t *testing.T) {
	d := role.Draft{Statements: []role.Statement{{Text: "It opens at nine.", Evidence: []int{1}}}, Open: []string{"Sundays", "", "see https://evil.example"}}
	a, _ := drafted(t, d, nil)
	if a.Status != assay.Incomplete || !slices.Equal(gapTexts(a.Missing), []string{"Sundays", "see"}) {
		t.Errorf("%s, missing %q", a.Status, gapTexts(a.Missing))
	}
	a, _ = drafted(t, role.Draft{Open: []string{"Sundays"}}, nil)
	if a.Status == assay.Answered || !slices.Contains(gapTexts(a.Missing), "Sundays") {
		t.Errorf("nothing said: %s, missing %q", a.Status, gapTexts(a.Missing))
	}
}

// TestLinksAreDropped checks that no foreign link is shown, and that the verifier judges the text
// that is shown.
func TestLinksAreDropped(t *testing.T) {
	d := role.Draft{Statements: []role.Statement{
		{Text: "It opens at nine. See [this](doc1) [1] [99].", Evidence: []int{1, 1, 42}},
		{Text: "It opens at [ten](https://evil.example/?q=1).", Evidence: []int{1}},
		{Text: "A map: ![x](https://evil.example/x.png).", Evidence: []int{1}},
		{Text: "Write to https://evil.example/?q=secret for more.", Evidence: []int{1}},
	}}
	a, judged := drafted(t, d, nil)
	if want := "It opens at nine. [1] See [this](doc1). [1]"; a.Text != want || !slices.Equal(judged, []string{"It opens at nine.", "See [this](doc1)."}) {
		t.Errorf("text %q, want %q; judged %q", a.Text, want, judged)
	}
	want := []string{
		"generator: an unknown citation number was left out",
		"generator: a statement with a link, an image or markup that is not of the cited sources was left out",
		"left out: 3 of 5 statements, because they cannot be shown as they are",
	}
	if diff := cmp.Diff(want, noteTexts(a.Notes)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestOtherWords checks that a rephrased statement cites the nearest sentences, and one that shares
// no word with its evidence the whole passage.
func TestOtherWords(t *testing.T) {
	d := role.Draft{Statements: []role.Statement{
		{Text: "Rolls cost a euro each.", Evidence: []int{1}},
		{Text: "Morgens um zehn.", Evidence: []int{2}},
	}}
	a, _ := drafted(t, d, nil)
	want := []string{"A roll is one euro.", "The kiosk in town opens at ten. Coffee at the kiosk is two euros."}
	for i, c := range a.Citations {
		if c.Quote != want[i] {
			t.Errorf("citation %d quotes %q, want %q", i, c.Quote, want[i])
		}
	}
	if len(a.Citations) != 2 {
		t.Errorf("%d citations", len(a.Citations))
	}
}

// TestOutcomesAreNotes checks that the notes of the roles are in the answer, without duplicates, in
// the order of the run.
func TestOutcomesAreNotes(t *testing.T) {
	l := newLibrary("The kiosk opens at nine.")
	roles := localRoles()
	roles.Planner = planner(func(q string) (role.Plan, error) {
		return role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: q}}, Outcome: role.Outcome{Notes: []string{"planner: it was late"}}}, nil
	})
	n := 0
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		n++
		g, err := enough(in)
		g.Notes = []string{"grader: one passage did not fit"}
		if n == 1 {
			g.Verdict, g.Failure = assay.Insufficient, "its replies were no JSON"
		}
		return g, err
	})
	roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
		d, err := verbatim(in)
		d.Failure = "generator: it was cut short"
		return d, err
	})
	roles.Verifier = role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) {
		return ground.Judgement{Verdict: assay.Supported, Score: 1}, nil
	}))
	a := ask(t, strategy.Corrective, env(l, "When does the kiosk open?", roles), assay.Budget{})
	want := []string{
		"planner: it was late", "grader: one passage did not fit", "grader: its replies were no JSON", "generator: it was cut short",
	}
	if diff := cmp.Diff(want, noteTexts(a.Notes)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if a.Status != assay.Incomplete {
		t.Errorf("%s: %s; the generator says that it failed", a.Status, a.Justification)
	}
}

// TestAutoKeepsToThePlansFilter checks that the first search already has the plan's filter, and
// that there is no search for the whole question if its parts have different filters.
func TestAutoKeepsToThePlansFilter(t *testing.T) {
	year := func(n float64) assay.Filter {
		return assay.Filter{Op: assay.OpEquals, Key: "year", Value: assay.NumberValue(n)}
	}
	tests := []struct {
		name string
		plan role.Plan
		want []string // filters of the searches
	}{
		{"one part", role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: "kiosk opens", Filter: year(2025)}}}, []string{year(2025).String()}},
		{"two that agree", role.Plan{Shape: role.Chain, SubQuestions: []role.SubQuestion{{Text: "kiosk opens", Filter: year(2025)}, {Text: "kiosk closes", Filter: year(2025)}}},
			[]string{year(2025).String()}},
		{"two that differ", role.Plan{Shape: role.Comparison, SubQuestions: []role.SubQuestion{{Text: "kiosk opens", Filter: year(2024)}, {Text: "kiosk closes", Filter: year(2025)}}},
			[]string{year(2024).String(), year(2025).String()}},
	}
	for _, tt := range tests {
		l := newLibrary("The kiosk opens at nine.")
		roles := localRoles()
		roles.Planner = planner(func(string) (role.Plan, error) { return tt.plan, nil })
		roles.Grader, roles.Generator = grader(enough), generator(verbatim)
		a := ask(t, strategy.Auto, env(l, "When does the kiosk open?", roles), assay.Budget{})
		var got []string
		for _, s := range a.Searched {
			got = append(got, s.Filter.String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: filters (-want +got):\n%s", tt.name, diff)
		}
	}
}
