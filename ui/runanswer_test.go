package ui

import (
	"html"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// claimsOf returns claims at the words of a text.
func claimsOf(t testing.TB, text string, words ...string) []assay.Claim {
	t.Helper()
	var claims []assay.Claim
	at := 0
	for _, w := range words {
		i := strings.Index(text[at:], w)
		if i < 0 {
			t.Fatalf("%q is not in %q after %d", w, text, at)
		}
		claims = append(claims, assay.Claim{Start: at + i, End: at + i + len(w), Verdict: assay.Supported, Citations: []int{1}})
		at += i + len(w)
	}
	return claims
}

func TestCutAnswer(t *testing.T) {
	t.Parallel()
	text := "Zürich: “Straße” gilt. [1] ضمان [2] [3] [x] args[1]"
	claims := claimsOf(t, text, "“Straße” gilt.", "ضمان")
	var got []string
	for _, p := range cutAnswer(text, claims, map[int]bool{1: true, 2: true}) {
		got = append(got, text[p.Start:p.End])
	}
	want := []string{"Zürich: ", "“Straße” gilt.", " ", "[1]", " ", "ضمان", " ", "[2]", " [3] [x] args", "[1]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
}

// TestCutAnswerWrong checks that offsets that are no characters, overlap or are outside mark no words as
// checked, and lose no byte.
func TestCutAnswerWrong(t *testing.T) {
	t.Parallel()
	text := "Zürich gilt."
	for _, c := range []assay.Claim{{Start: 2, End: 5}, {Start: 0, End: 2}, {Start: -1, End: 4}, {Start: 3, End: 99}, {Start: 5, End: 5}, {Start: 6, End: 4}} {
		pieces := cutAnswer(text, []assay.Claim{c}, nil)
		if len(pieces) != 1 || pieces[0] != (piece{0, len(text), -1, 0}) {
			t.Errorf("claim %d to %d: %v", c.Start, c.End, pieces)
		}
	}
	pieces := cutAnswer(text, []assay.Claim{{Start: 0, End: 7}, {Start: 3, End: 9}}, nil)
	if len(pieces) != 2 || pieces[0].Claim != 0 || pieces[1].Claim != -1 {
		t.Errorf("claims that overlap: %v", pieces)
	}
}

// FuzzCutAnswer checks that the pieces of any text with any claims, escaped and read back, are the text,
// byte by byte, and that its blocks leave out nothing but the signs of their layout.
func FuzzCutAnswer(f *testing.F) {
	for _, s := range []string{
		"", guarantee, "- One. [1]\n- Two. [2]\n\nThree", "## Head\n\n| a | b | Sources |\n| --- | --- | --- |\n| ä | <b> | [1] |\n\nend",
		"if x {\n\n  y()\n}\nrest", "\n\n- \n## \n|\n| |\n", "| a |\n| --- |\nno row\n| b |", "\xff\xfe [1]", "ضمان\n- ü",
	} {
		f.Add(s, uint16(0), uint16(3), uint16(5), uint16(20))
	}
	f.Fuzz(func(t *testing.T, text string, a, b, c, d uint16) {
		if !utf8.ValidString(text) { // answers are
			return
		}
		claims := []assay.Claim{{Start: int(a), End: int(b), Verdict: assay.Supported}, {Start: int(c), End: int(d), Verdict: assay.Supported}}
		pieces := cutAnswer(text, claims, map[int]bool{1: true, 2: true})
		var escaped strings.Builder
		at := 0
		for _, p := range pieces {
			if p.Start != at || p.End <= p.Start {
				t.Fatalf("piece %v begins at %d, want %d", p, p.Start, at)
			}
			if at = p.End; p.Claim >= 0 && (p.Start != claims[p.Claim].Start || p.End != claims[p.Claim].End) {
				t.Fatalf("piece %v is not its claim %v", p, claims[p.Claim])
			}
			escaped.WriteString(html.EscapeString(text[p.Start:p.End]))
		}
		if at != len(text) || html.UnescapeString(escaped.String()) != html.UnescapeString(html.EscapeString(text)) {
			t.Fatalf("the pieces are not the text: %q", escaped.String())
		}
		checkBlocks(t, text, pieces)
	})
}

// checkBlocks checks that blocks are in order and leave out signs of layout only.
func checkBlocks(t *testing.T, text string, pieces []piece) {
	t.Helper()
	at := 0
	skip := func(to int) {
		if to < at {
			t.Fatalf("a part of a block begins at %d, before %d", to, at)
		}
		if left := strings.TrimFunc(text[at:to], func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("-|#", c) }); left != "" {
			t.Fatalf("%q is in no block of %q", left, text)
		}
	}
	for _, b := range blocksOf(text, pieces) {
		for _, s := range append(slices.Clone(b.Items), slices.Concat(b.Rows...)...) {
			skip(s.Start)
			at = max(at, s.End)
		}
	}
	skip(len(text))
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	text := "Intro is here: [1]\n\n- First item. [1]\n- Second item. [2]\n\n## Costs\n\n| What | Price | Sources |\n| --- | --- | --- |\n| Hotel | 140 | [1] |\n| Meal | 40 | [2] |\n\nCode:\n\nfor {\n\n\trun()\n} [1]\n\nEnd."
	claims := claimsOf(t, text, "First item.", "Second item.", "| Hotel | 140 |", "| Meal | 40 |", "for {\n\n\trun()\n}")
	got := answerTextOf(assay.Answer{Text: text, Claims: claims, Citations: []assay.Citation{{Number: 1}, {Number: 2}}})
	var kinds []blockKind
	for _, b := range got.Blocks {
		kinds = append(kinds, b.Kind)
	}
	want := []blockKind{paragraphBlock, listBlock, headingBlock, tableBlock, paragraphBlock, codeBlock, paragraphBlock}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Fatalf("blocks (-want +got):\n%s", diff)
	}
	if items := got.Blocks[1].Items; len(items) != 2 || items[1][0].Claim.Number != 2 || !items[1][0].First || items[1][2].Mark != 2 {
		t.Errorf("the list: %+v", items)
	}
	table := got.Blocks[3]
	if len(table.Head) != 3 || len(table.Rows) != 2 || table.Rows[0][0][0].Text != "Hotel" || table.Rows[0][1][0].First || table.Rows[1][2][0].Mark != 2 {
		t.Errorf("the table: %+v", table)
	}
	if code := got.Blocks[5].Items[0]; code[0].Text != "for {\n\n\trun()\n}" || code[0].Claim.Number != 5 {
		t.Errorf("the code: %+v", code)
	}
}

// TestVerdictWords checks that only a claim whose verdict is supported is called so.
func TestVerdictWords(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]assay.Claim{
		"supported":    {Verdict: assay.Supported},
		"repaired":     {Verdict: assay.Supported, Repaired: true},
		"quoted":       {Verdict: assay.Supported, Quoted: true},
		"unsupported":  {Verdict: assay.Unsupported, Quoted: true},
		"contradicted": {Verdict: assay.Contradicted, Repaired: true},
		"reviewer":     {Verdict: assay.Supported, Reviewer: "rae"},
	} {
		if got := shownClaimOf(0, c); got.Class != want || got.Says == "" {
			t.Errorf("%+v: %+v, want %s", c, got, want)
		}
	}
	if got := shownClaimOf(0, assay.Claim{Verdict: "new"}); got.Class != "unsupported" {
		t.Errorf("an unknown verdict is shown as %s", got.Class)
	}
}
