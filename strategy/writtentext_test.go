package strategy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

func TestCitedUnits(t *testing.T) {
	t.Parallel()
	before := assay.Answer{Text: "Cats sleep. [4]", Claims: []assay.Claim{{Start: 0, End: 11, Citations: []int{4}}}}
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"Why?", ""},
		{"Dogs bark. [1] Cows moo.", "Dogs bark.[1]|Cows moo.[]"},
		{"Dogs bark [2][1]. Cows moo. [3]", "Dogs bark.[2 1]|Cows moo.[3]"},
		{"[9] Dogs bark.", "Dogs bark.[]"},
		{"Cats sleep. Dogs bark. [1][1]", "Cats sleep.[4]|Dogs bark.[1]"},
		{"Cats sleep. [5]", "Cats sleep.[5]"},
		{"The flag args[1] is read.", "The flag args[1] is read.[]"},
		{"- Dogs bark. [1]\n- Cows moo. [2]", "Dogs bark.[1]|Cows moo.[2]"},
	} {
		var got []string
		_, units := citedUnits(tt.text, before)
		for _, u := range units {
			got = append(got, strings.TrimLeft(u.Text, "- ")+fmt.Sprint(u.Evidence))
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("citedUnits(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestWriteChecked(t *testing.T) {
	t.Parallel()
	text := "Dogs bark. [1][2] Cows moo [7]. Why? The end.\n"
	text, units := citedUnits(text, assay.Answer{})
	claims := make([]checkedClaim, len(units))
	for i, u := range units {
		claims[i] = checkedClaim{Claim: u, Judgement: ground.Judgement{Verdict: assay.Unsupported}}
	}
	claims[0].Verdict, claims[0].cited = assay.Supported, []assay.Citation{{Number: 2}}
	got := writeChecked(text, "mara", claims)
	want := "Dogs bark. [2] Cows moo. (statement of the reviewer mara) Why? The end. (statement of the reviewer mara)\n"
	if got.Text != want || got.Unsupported != 2 || len(got.Citations) != 1 {
		t.Errorf("writeChecked = %+v, want %q", got, want)
	}
	for _, c := range got.Claims {
		if isOwn := c.Reviewer == "mara"; isOwn != (c.Verdict != assay.Supported) || isOwn != (len(c.Citations) == 0) {
			t.Errorf("claim %q: %+v", got.Text[c.Start:c.End], c)
		}
	}
}

// FuzzWrittenText checks that any text can be written again, and that every statement of it is there
// once, in order.
func FuzzWrittenText(f *testing.F) {
	for _, s := range []string{"Dogs bark. [1] Cows moo.", "| a [1] | b |\n|---|---|\n| c | d |", "[1][2]", "```\nx[1]\n```", "é[12] \n\n- ü [3]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		text, units := citedUnits(text, assay.Answer{})
		claims := make([]checkedClaim, len(units))
		for i, u := range units {
			claims[i] = checkedClaim{Claim: u, Judgement: ground.Judgement{Verdict: assay.Unsupported}}
		}
		got := writeChecked(text, "mara", claims)
		if len(got.Claims) != len(units) || !utf8.ValidString(got.Text) {
			t.Fatalf("%q: %d claims of %d statements, text %q", text, len(got.Claims), len(units), got.Text)
		}
		ends := []int{0}
		for i, c := range got.Claims {
			if got.Text[c.Start:c.End] != units[i].Text {
				t.Errorf("claim %d is %q, want %q", i, got.Text[c.Start:c.End], units[i].Text)
			}
			ends = append(ends, c.Start, c.End)
		}
		if !slices.IsSorted(ends) {
			t.Errorf("%q: the claims are not in order: %v", text, ends)
		}
	})
}
