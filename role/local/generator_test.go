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

func TestGenerate(t *testing.T) {
	evidence := []assay.Evidence{
		{Number: 1, Hit: hit("a", "1. Overview\n\nThe server opens\nport 80. Do you like ports? It then waits.\n\nfunc open() {\n\treturn port\n}", 0.9)},
		{Number: 2, Hit: hit("b", "Bananas are yellow.", 0.9)},
	}
	in := role.GenerateInput{
		Question: "Which port does the server open?",
		Parts: []role.Part{{
			Question: "Which port does the server open?",
			Evidence: []int{1, 2, 7, 0},
			Terms:    terms("port", "server", "open"),
		}},
		Evidence: evidence,
	}
	d, err := local.Generator{}.Generate(context.Background(), nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Statements) == 0 || d.Statements[0].Text != "The server opens port 80." || !slices.Equal(d.Statements[0].Evidence, []int{1}) {
		t.Errorf("Generate = %+v, want the sentence about port 80 first, citing 1", d)
	}
	for _, s := range d.Statements {
		if strings.Contains(s.Text, "Bananas") || strings.Contains(s.Text, "func") {
			t.Errorf("the draft says %q", s.Text)
		}
	}
	in.Parts[0].Terms = terms("zebra?")
	in.Parts[0].Question = "Where do zebras live?"
	if d, err := (local.Generator{}).Generate(context.Background(), nil, in); err != nil || len(d.Statements) != 0 {
		t.Errorf("Generate without a shared word = %+v, %v; want no statement", d, err)
	}
}

// What says neither a date nor a number answers no question for one, whatever words it
// shares with it.
func TestGenerateWhatIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		question, text string
		open           bool
	}{
		{"How many employees work in the office in Utrecht?", "The employees in Utrecht work in a new office.", true},
		{"How many employees work in the office in Utrecht?", "In the office in Utrecht work forty employees.", false},
		{"How many offices are in Utrecht?", "There are no offices in Utrecht, or none that is open.", false},
		{"When was the office in Utrecht opened?", "The office in Utrecht was opened by the mayor.", true},
		{"When was the office in Utrecht opened?", "The office in Utrecht was opened in 2011.", false},
		{"When is the office in Utrecht closed?", "The office in Utrecht is closed when nobody works.", false},
		{"Who opened the office in Utrecht?", "The office in Utrecht was opened.", false}, // names have too many forms
	} {
		in := role.GenerateInput{
			Question: tt.question,
			Parts:    []role.Part{{Question: tt.question, Evidence: []int{1}, Terms: terms("employees", "office", "utrecht", "opened")}},
			Evidence: []assay.Evidence{{Number: 1, Hit: hit("a", tt.text, 0.9)}},
		}
		d, err := local.Generator{}.Generate(t.Context(), nil, in)
		if err != nil || len(d.Statements) == 0 || len(d.Open) > 0 != tt.open {
			t.Errorf("%q from %q: %+v, %v", tt.question, tt.text, d, err)
		}
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add("Which port?", "The port is 80. \xff x", "Head ing")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, question, text, heading string) {
		h := hit("a", text, 0.9)
		h.Chunk.Headings = []string{heading}
		in := role.GenerateInput{
			Question: question,
			Parts:    []role.Part{{Question: question, Evidence: []int{1}}},
			Evidence: []assay.Evidence{{Number: 1, Hit: h}},
		}
		d, err := local.Generator{}.Generate(context.Background(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		fold := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		for _, s := range d.Statements {
			if !strings.Contains(fold(text), fold(s.Text)) {
				t.Errorf("%q is not in the evidence %q", s.Text, text)
			}
		}
	})
}

// What a table says is quoted by the row, or by the record.
func TestGenerateFromTables(t *testing.T) {
	tests := []struct {
		name string
		kind assay.ChunkKind
		text string
		want string
	}{
		{"rows", assay.ChunkTable, "name: Maria; phone: 12\nname: John; phone: 34", "name: John; phone: 34"},
		{"records", assay.ChunkTable, "name: Maria\nphone: 12\n\nname: John\nphone: 34", "name: John\nphone: 34"},
		{"rows within prose", assay.ChunkProse, "Call them.\n\nName | Phone\nMaria | 12\nJohn | 34", "John | 34"},
	}
	for _, tt := range tests {
		h := hit("a", tt.text, 0.9)
		h.Chunk.Kind = tt.kind
		in := role.GenerateInput{
			Question: "What is John's phone number?",
			Parts:    []role.Part{{Question: "What is John's phone number?", Evidence: []int{1}, Terms: terms("John", "phone", "number")}},
			Evidence: []assay.Evidence{{Number: 1, Hit: h}},
		}
		d, err := local.Generator{}.Generate(context.Background(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(d.Statements, func(s role.Statement) bool { return s.Text == tt.want }) {
			t.Errorf("%s: %+v, want %q among them", tt.name, d.Statements, tt.want)
		}
	}
}

// A sentence that ends in a colon brings its list along, and nothing after it.
func TestGenerateAnnounced(t *testing.T) {
	text := "To install the agent you need:\n\n- a license key\n- root access\n\nBananas are yellow."
	in := role.GenerateInput{
		Question: "What do I need to install the agent?",
		Parts:    []role.Part{{Question: "What do I need to install the agent?", Evidence: []int{1}, Terms: terms("install", "agent")}},
		Evidence: []assay.Evidence{{Number: 1, Hit: hit("a", text, 0.9)}},
	}
	d, err := local.Generator{}.Generate(context.Background(), nil, in)
	if err != nil {
		t.Fatal(err)
	}
	want := []role.Statement{
		{Text: "To install the agent you need:", Evidence: []int{1}},
		{Text: "a license key", Evidence: []int{1}, Item: true},
		{Text: "root access", Evidence: []int{1}, Item: true},
	}
	if len(d.Statements) < len(want) {
		t.Fatalf("Generate = %+v, want %+v first", d.Statements, want)
	}
	for i, w := range want {
		if got := d.Statements[i]; got.Text != w.Text || got.Item != w.Item || !slices.Equal(got.Evidence, w.Evidence) {
			t.Errorf("statement %d is %+v, want %+v", i, got, w)
		}
	}
	for _, s := range d.Statements {
		if strings.Contains(s.Text, "Bananas") {
			t.Errorf("the draft says %q", s.Text)
		}
	}
}

// A row is quoted with the heads of its table; where the question tells no row from the
// others, all of them are.
func TestGenerateRows(t *testing.T) {
	const text = "These are the plans.\n\nPlan | Price | Storage\nBasic | 5 euros | 10 GB\nPro | 12 euros | 100 GB\nTeam | 30 euros | 1 TB"
	tests := []struct {
		question string
		terms    []string
		text     string
		want     [][]string
	}{
		{"Which storage has the Team plan?", []string{"storage", "Team", "plan"}, text, [][]string{{"Team", "30 euros", "1 TB"}}},
		{"What price do plans have?", []string{"price", "plans"}, text, [][]string{{"Basic", "5 euros", "10 GB"}, {"Pro", "12 euros", "100 GB"}, {"Team", "30 euros", "1 TB"}}},
		{"What support has Pro?", []string{"support", "Pro"}, "Basic | e-mail\nPro | phone support", nil}, // which line has the heads is not known
	}
	for _, tt := range tests {
		in := role.GenerateInput{
			Question: tt.question, Parts: []role.Part{{Question: tt.question, Evidence: []int{1}, Terms: terms(tt.terms...)}},
			Evidence: []assay.Evidence{{Number: 1, Hit: hit("a", tt.text, 0.9)}},
		}
		d, err := local.Generator{}.Generate(context.Background(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, s := range d.Statements {
			if s.Cells != nil {
				got = append(got, s.Cells)
			}
			if strings.HasPrefix(s.Text, "Plan |") {
				t.Errorf("%s: the heads are a statement: %+v", tt.question, d.Statements)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || tt.want != nil && !slices.Equal(d.Columns, []string{"Plan", "Price", "Storage"}) {
			t.Errorf("%s: columns %q\n%s", tt.question, d.Columns, diff)
		}
	}
}

// A sentence that begins with a pronoun comes with the one before it that says whom it is
// about.
func TestGenerateNames(t *testing.T) {
	tests := []struct {
		name, text string
		terms      []string
		want       []string
	}{
		{"the sentence before", "Peter Voss moved to Boston. He sold his shares to Meier.", []string{"sold", "shares"}, []string{"Peter Voss moved to Boston.", "He sold his shares to Meier."}},
		{"two of them", "Peter Voss moved to Boston. He rested for a year. He sold his shares to Meier.", []string{"sold", "shares"}, []string{"Peter Voss moved to Boston.", "He rested for a year.", "He sold his shares to Meier."}},
		{"nothing before it", "He sold his shares to Meier.", []string{"sold", "shares"}, []string{"He sold his shares to Meier."}},
		{"a name", "Bananas are yellow. Peter sold his shares.", []string{"sold", "shares"}, []string{"Peter sold his shares."}},
	}
	for _, tt := range tests {
		in := role.GenerateInput{
			Question: "Who sold the shares?", Parts: []role.Part{{Question: "Who sold the shares?", Evidence: []int{1}, Terms: terms(tt.terms...)}},
			Evidence: []assay.Evidence{{Number: 1, Hit: hit("a", tt.text, 0.9)}},
		}
		d, err := local.Generator{}.Generate(context.Background(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range d.Statements {
			got = append(got, s.Text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}
