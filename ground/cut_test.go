package ground_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/ground"
)

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name, statement string
		want            []string
	}{
		{"one sentence", "The warranty lasts two years.", []string{"The warranty lasts two years."}},
		{"a sentence stays whole", "The kiosk opens at nine and sells rolls.", []string{"The kiosk opens at nine and sells rolls."}},
		{"sentences", "It opens at 9 a.m. in summer. It closes late.", []string{"It opens at 9 a.m. in summer.", "It closes late."}},
		{"a question", "Who pays? The tenant pays.", []string{"The tenant pays."}},
		{"headings", "# Fees\n\nThe fee is 5 €.\n\n**Limits**\n\nThere are none.", []string{"The fee is 5 €.", "There are none."}},
		{"a list", "It needs:\n- a key,\n- a card.\n", []string{"- a key,", "- a card."}},
		{"a table", "| Plan | Price |\n| --- | --- |\n| Pro | 5 € |", []string{"| Plan | Price |", "| Pro | 5 € |"}},
		{"a table without marks", "Plan | Price\nPro | 5 €", []string{"Plan | Price", "Pro | 5 €"}},
		{"fenced code", "Run it:\n```\nx := 1. Y := 2\n\nprint(x)\n```\nThen wait.", []string{"```\nx := 1. Y := 2\n\nprint(x)\n```", "Then wait."}},
		{"code", "func f() {\n\treturn\n}", []string{"func f() {\n\treturn\n}"}},
		{"nothing", " \n…\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range ground.Cut(tt.statement, []int{1}) {
				got = append(got, c.Text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzCut(f *testing.F) {
	f.Add("A | b\n--- | ---\n1. c:\n- d\n\n```\ne")
	f.Add("# a\nIt is. Is it?\r\n\n\nx = {y}; z\n|")
	f.Fuzz(func(t *testing.T, statement string) {
		end := 0
		for _, c := range ground.Cut(statement, []int{3}) {
			if c.Start < end || c.Start >= c.End || c.End > len(statement) || statement[c.Start:c.End] != c.Text {
				t.Fatalf("the claim %q has the span [%d, %d) after %d", c.Text, c.Start, c.End, end)
			}
			if strings.TrimSpace(c.Text) != c.Text || !slices.Equal(c.Evidence, []int{3}) {
				t.Fatalf("%+v", c)
			}
			end = c.End
		}
	})
}

func TestLocate(t *testing.T) {
	const text = "The office is open. It is wrong that\nwater boils. Tenants pay\nthe rent in advance.\n\nPlan | Price\nPro | 5 €\nTeam | 9 €"
	for _, tt := range []struct{ claim, want string }{
		{"The office is open.", "The office is open."},
		{"water boils", "It is wrong that\nwater boils."},
		{"Tenants pay the rent in advance.", "Tenants pay\nthe rent in advance."},
		{"The rent is paid by tenants.", "Tenants pay\nthe rent in advance."},
		{"Team costs 9 €.", "Team | 9 €"},
		{"Pro | 5 €\nTeam | 9 €", "Pro | 5 €\nTeam | 9 €"},
		{"Cats sleep.", ""},
	} {
		start, end := ground.Locate(tt.claim, text)
		if got := text[start:end]; got != tt.want {
			t.Errorf("Locate(%q) = %q, want %q", tt.claim, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	const text = "He said “yes – or\n no” – to 40 €."
	for _, tt := range []struct{ part, want string }{
		{`"yes - or no"`, "“yes – or\n no”"}, {"40 €", "40 €"}, {" said ", "said"}, {"maybe", ""}, {" ", ""},
	} {
		start, end, ok := ground.Find(text, tt.part)
		if got := text[start:end]; got != tt.want || ok != (tt.want != "") {
			t.Errorf("Find(%q) = %q, %v, want %q", tt.part, got, ok, tt.want)
		}
	}
}

func TestStandalone(t *testing.T) {
	for _, tt := range []struct{ question, before, claim, want string }{
		{"How long is the notice period?", "", "Three months.", "How long is the notice period? Three months."},
		{"How long is it?", "", "The notice period is three months.", "The notice period is three months."},
		{"", "With the Pro plan you get a key.", "It costs 3 euros.", "Pro: It costs 3 euros."},
		{"What is in the Pro plan?", "", "It costs 3 euros.", "Pro: It costs 3 euros."},
		{"", "The plan is good.", "It costs 3 euros.", "It costs 3 euros."},
		{"", "With the Pro plan you get a key.", "Keys cost 3 euros.", "Keys cost 3 euros."},
	} {
		if got := ground.Standalone(tt.question, tt.before, tt.claim); got != tt.want {
			t.Errorf("Standalone(%q, %q, %q) = %q, want %q", tt.question, tt.before, tt.claim, got, tt.want)
		}
	}
}
