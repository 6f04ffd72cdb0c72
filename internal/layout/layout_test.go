package layout

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

const leaveText = `Leave is granted by the team lead. You may take special leave for:

- Moving house (one day)
- Weddings
  - your own: two days
  - a child's: one day
- Blood donation (half a day)

Ask a week before.`

const stepsText = `To replace the filter:

1. Open the lid.

Take care not to spill oil.

2. Turn the filter to the left.
3. Close the lid.

The filter lasts a year.`

const optionsText = `OPTIONS

--depth <depth>

  Create a shallow clone with a history truncated to the
  specified number of commits. Implies --single-branch.

-q

--quiet

  Operate quietly. Progress is not reported.

EXAMPLES`

const htmlOptionsText = `--depth <depth>
  Create a shallow clone.
-q
  --quiet
  Operate quietly.`

const tableText = "Plan | Price\nSmall | 10 euros\nLarge | 40 euros"

const unmarkedText = `The prerm script may be called in the following ways:

prerm remove

old-prerm upgrade new-version

deconfigured's-prerm deconfigure in-favour package

The package whose prerm is being called will be installed.`

const classesText = `Each value has one of the following storage classes:

NULL. The value is a NULL value.

INTEGER. The value is a signed integer.

TEXT. The value is a text string.

A storage class is more general than a datatype. The INTEGER storage class, for example, includes 7 different integer datatypes of different lengths,
and this makes a difference on disk.`

const codeText = `Install the tool first. Then run the checks:

go build ./... && go vet ./...
go test ./...

All of them have to pass.`

func TestAround(t *testing.T) {
	tests := []struct {
		name, text, answer string
		whole              bool
		want               []string
	}{
		{"a sentence", leaveText, "the team lead", false, []string{"Leave is granted by the team lead."}},
		{"what announces a list", leaveText, "special leave", false, []string{
			"You may take special leave for:", "Moving house (one day)", "Weddings", "your own: two days", "a child's: one day", "Blood donation (half a day)"}},
		{"an item", leaveText, "half a day", false, []string{"You may take special leave for:", "Blood donation (half a day)"}},
		{"an item of an item", leaveText, "two days", false, []string{"You may take special leave for:", "Weddings", "your own: two days"}},
		{"an item with items", leaveText, "Weddings", false, []string{"You may take special leave for:", "Weddings", "your own: two days", "a child's: one day"}},
		{"items", leaveText, "Moving house (one day)", true, []string{
			"You may take special leave for:", "Moving house (one day)", "Weddings", "your own: two days", "a child's: one day", "Blood donation (half a day)"}},
		{"after a list", leaveText, "a week before", false, []string{"Ask a week before."}},
		{"steps with a paragraph between", stepsText, "replace the filter", false, []string{
			"To replace the filter:", "Open the lid.", "Take care not to spill oil.", "Turn the filter to the left.", "Close the lid."}},
		{"a step", stepsText, "to the left", false, []string{"To replace the filter:", "Turn the filter to the left."}},
		{"after the steps", stepsText, "a year", false, []string{"The filter lasts a year."}},
		{"a definition", optionsText, "truncated", false, []string{
			"--depth <depth> Create a shallow clone with a history truncated to the specified number of commits. Implies --single-branch."}},
		{"a term", optionsText, "--depth", false, []string{
			"--depth <depth> Create a shallow clone with a history truncated to the specified number of commits. Implies --single-branch."}},
		{"a definition of two terms", optionsText, "quietly", false, []string{"-q --quiet Operate quietly. Progress is not reported."}},
		{"a definition on the next line", htmlOptionsText, "shallow", false, []string{"--depth <depth> Create a shallow clone."}},
		{"two terms on the lines before", htmlOptionsText, "Operate", false, []string{"-q --quiet Operate quietly."}},
		{"a row", tableText, "40 euros", false, []string{"Large | 40 euros"}},
		{"the heads of a table", tableText, "Price", false, []string{"Small | 10 euros", "Large | 40 euros"}},
		{"a list without marks", unmarkedText, "following ways", false, []string{
			"The prerm script may be called in the following ways:", "prerm remove", "old-prerm upgrade new-version", "deconfigured's-prerm deconfigure in-favour package"}},
		{"an item without a mark", unmarkedText, "old-prerm upgrade", false, []string{
			"The prerm script may be called in the following ways:", "old-prerm upgrade new-version"}},
		{"a list of paragraphs", classesText, "storage classes", false, []string{
			"Each value has one of the following storage classes:", "NULL. The value is a NULL value.", "INTEGER. The value is a signed integer.", "TEXT. The value is a text string."}},
		{"what announces code", codeText, "run the checks", false, []string{"Then run the checks:", "go build ./... && go vet ./...\ngo test ./..."}},
		{"code", codeText, "go vet", false, []string{"Then run the checks:", "go build ./... && go vet ./...\ngo test ./..."}},
		{"a question", "Can I bring a dog? Yes, on Fridays. Ask first.", "bring a dog", false, []string{"Can I bring a dog? Yes, on Fridays."}},
		{"a question over its answer", "Can I bring a dog?\n\nYes, on Fridays. Ask first.", "a dog", false, []string{"Yes, on Fridays."}},
		{"a heading", "Dogs in the office\n\nYou may bring one on Fridays. Ask first.", "Dogs", false, []string{"You may bring one on Fridays."}},
		{"two sentences", "A is big. B is small. C is tall.", "big. B is", false, []string{"A is big. B is small."}},
		{"one word", "Yes", "Yes", false, []string{"Yes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kind := assay.ChunkProse
			if tt.text == tableText {
				kind = assay.ChunkTable
			}
			l := Of(tt.text, kind)
			at := strings.Index(tt.text, tt.answer)
			var got []string
			for _, q := range l.Around(at, at+len(tt.answer), tt.whole) {
				got = append(got, l.Shown(q))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("around %q (-want +got):\n%s", tt.answer, diff)
			}
		})
	}
}

// TestWhole checks that the items of a list belong together with the sentence that announces it,
// and are quoted as a whole.
func TestWhole(t *testing.T) {
	const manual = "These options exist.\n\n       -0, --null\n\t      Items end in a null character.\n\n\t      The quotes are not special.\n\n       -r\n\t      Do not run without\n\t      items.\n"
	for _, tt := range []struct {
		name, text, at string
		kind           assay.ChunkKind
		lead           []string
		members        []string
	}{
		{"of what announces it", leaveText, "special leave", assay.ChunkProse, []string{"You may take special leave for:"},
			[]string{"Moving house (one day)", "Weddings", "your own: two days", "a child's: one day", "Blood donation (half a day)"}},
		{"of an item", leaveText, "two days", assay.ChunkProse, []string{"You may take special leave for:"},
			[]string{"Moving house (one day)", "Weddings", "your own: two days", "a child's: one day", "Blood donation (half a day)"}},
		{"not of the sentence before", leaveText, "team lead", assay.ChunkProse, nil, nil},
		{"not of the paragraph after", leaveText, "Ask a week", assay.ChunkProse, nil, nil},
		{"of a row", tableText, "40 euros", assay.ChunkTable, nil, []string{"Small | 10 euros", "Large | 40 euros"}},
		{"of an entry", manual, "Items end", assay.ChunkProse, nil,
			[]string{"-0, --null Items end in a null character. The quotes are not special.", "-r Do not run without items."}},
		{"of a definition's second paragraph", manual, "quotes", assay.ChunkProse, nil,
			[]string{"-0, --null Items end in a null character. The quotes are not special.", "-r Do not run without items."}},
	} {
		l := Of(tt.text, tt.kind)
		shown := func(quotes []Quote) (out []string) {
			for _, q := range quotes {
				out = append(out, l.Shown(q))
			}
			return out
		}
		at := strings.Index(tt.text, tt.at)
		lead, members := l.Whole(at)
		if diff := cmp.Diff([2][]string{tt.lead, tt.members}, [2][]string{shown(lead), shown(members)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if len(members) > 0 && !l.Together(at, members[0].Start) || l.Together(at, 0) && tt.text == leaveText {
			t.Errorf("%s: together with the first member: %v, with the start: %v", tt.name, l.Together(at, members[0].Start), l.Together(at, 0))
		}
	}
}

func TestGist(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		words      int
		want       []string
	}{
		{"sentences", "A is big. B is small. C is tall.", 6, []string{"A is big. B is small."}},
		{"at least one", "A is big.", 1, []string{"A is big."}},
		{"paragraphs", "A is big.\n\nB is small.\n\nC is tall.", 6, []string{"A is big.", "B is small."}},
		{"a list", leaveText, 13, []string{"Leave is granted by the team lead. You may take special leave for:",
			"Moving house (one day)", "Weddings", "your own: two days", "a child's: one day", "Blood donation (half a day)"}},
		{"a list alone", "- a cat\n- a dog", 2, []string{"a cat", "a dog"}},
	} {
		l := Of(tt.text, assay.ChunkProse)
		var got []string
		for _, q := range l.Gist(tt.words) {
			got = append(got, l.Shown(q))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestParts checks that rows of a table are labelled with their heads and definitions with their
// terms, and that each byte maps to one of the passage.
func TestParts(t *testing.T) {
	text := "Prices:\n\n" + tableText + "\n\nAll with tax."
	l := Of(text, assay.ChunkProse)
	var got []string
	for _, r := range l.Parts() {
		got = append(got, r.Text)
		for _, words := range []string{"40 euros", "Small"} {
			if i := strings.Index(r.Text, words); i >= 0 && text[r.At[i]:r.At[i+len(words)-1]+1] != words {
				t.Errorf("%q comes from %q", words, text[r.At[i]:r.At[i+len(words)-1]+1])
			}
		}
	}
	if diff := cmp.Diff([]string{"Plan: Small; Price: 10 euros", "Plan: Large; Price: 40 euros"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text = "Treasurer\n:   collects the fees and\n    pays the bills.\n\n-q\n\n  Be quiet.\n"
	got = nil
	for _, p := range Of(text, assay.ChunkProse).Parts() {
		got = append(got, p.Text)
		if i := strings.Index(p.Text, "bills"); i >= 0 && text[p.At[i]:p.At[i+4]+1] != "bills" {
			t.Errorf("%q comes from %q", "bills", text[p.At[i]:p.At[i+4]+1])
		}
	}
	if diff := cmp.Diff([]string{"Treasurer: collects the fees and pays the bills.", "-q: Be quiet."}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, none := range []string{"Small | 10 euros\nLarge | 40 euros", leaveText} {
		if parts := Of(none, assay.ChunkProse).Parts(); len(parts) > 0 {
			t.Errorf("%q has parts: %+v", none, parts)
		}
	}
}

// TestLongList checks that a list too long to be quoted keeps the first sentence of each item.
func TestLongList(t *testing.T) {
	var text strings.Builder
	text.WriteString("These apply:\n\n")
	for range 20 {
		text.WriteString("- The rule holds. " + strings.Repeat("It is explained here at length. ", 10) + "\n")
	}
	l := Of(text.String(), assay.ChunkProse)
	quotes := l.Around(0, 5, false)
	if len(quotes) != 21 {
		t.Fatalf("%d quotes, want the lead and 20 items", len(quotes))
	}
	for _, q := range quotes[1:] {
		if got := l.Shown(q); got != "The rule holds." {
			t.Errorf("an item is %q", got)
		}
	}
}

// TestLongCode checks that of long code the lines that hold the answer are quoted.
func TestLongCode(t *testing.T) {
	text := strings.Repeat("x := f(1);\n", 20) + "answer := g(42);\n" + strings.Repeat("y := f(2);\n", 20)
	l := Of(text, assay.ChunkCode)
	at := strings.Index(text, "42")
	quotes := l.Around(at, at+2, false)
	if len(quotes) != 1 || l.Shown(quotes[0]) != "answer := g(42);" {
		t.Errorf("%+v", quotes)
	}
	if quotes := l.Around(len(text)-1, len(text), false); len(quotes) > 1 { // behind the last line
		t.Errorf("%+v", quotes)
	}
}

// FuzzAround checks that the blocks of any passage hold all of its text. Quotes must lie in the
// passage, in its order, and hold the requested words. Headings and questions are an exception: the
// text after them is quoted.
func FuzzAround(f *testing.F) {
	for _, text := range []string{leaveText, stepsText, optionsText, htmlOptionsText, tableText, unmarkedText, codeText, "a\n\n\n- b\n c\n\n1. x", "? ?\n:\n- \n", "\xff |\n\n|"} {
		f.Add(text, 3, 9, true, 0)
		f.Add(text, 20, 21, false, 1)
	}
	kinds := []assay.ChunkKind{assay.ChunkProse, assay.ChunkTable, assay.ChunkCode}
	f.Fuzz(func(t *testing.T, text string, start, end int, whole bool, kind int) {
		if start < 0 || end <= start || end > len(text) || len(text) > 5000 {
			return
		}
		l := Of(text, kinds[max(0, kind)%len(kinds)])
		for _, r := range l.Parts() {
			if len(r.At) != len(r.Text) || slices.ContainsFunc(r.At, func(i int) bool { return i < r.Start || i >= r.End }) {
				t.Fatalf("%q is read as %q, from %v", text, r.Text, r.At)
			}
		}
		covered := 0
		for _, b := range l.Blocks {
			if b.Start < covered || b.End <= b.Start || b.End > len(text) || strings.TrimSpace(text[covered:b.Start]) != "" {
				t.Fatalf("block %+v after byte %d of %q", b, covered, text)
			}
			covered = b.End
		}
		if strings.TrimSpace(text[covered:]) != "" {
			t.Fatalf("nothing holds %q", text[covered:])
		}
		last := -1
		for _, q := range l.Around(start, end, whole) {
			if q.Start < last || q.End <= q.Start || q.End > len(text) {
				t.Fatalf("quote %+v after byte %d of %q", q, last, text)
			}
			last = q.Start
			if q.Heads != nil && len(Cells(l.Shown(q))) != len(q.Heads) {
				t.Errorf("row %q has not the columns %q", l.Shown(q), q.Heads)
			}
			if !strings.Contains(oneLine(text), oneLine(l.Shown(q))) {
				t.Errorf("%q is not in %q", l.Shown(q), text)
			}
		}
		if question := strings.Contains(text, "?"); !question && strings.TrimSpace(text[start:end]) != "" && last < 0 {
			t.Errorf("nothing is quoted for %q of %q", text[start:end], text)
		}
	})
}

func TestHeadsOf(t *testing.T) {
	for rows, want := range map[string][]string{
		"Plan | Price\nSmall | 10":                       {"Plan", "Price"},
		"Plan | 10\nSmall | 20":                          nil,
		"Plan | Price\nSmall | free":                     nil,
		"Plan | Price\nSmall | free\nLarge | on request": {"Plan", "Price"},
		"Plan | Price\nSmall | Free\nLarge | on request": nil,
		"Plan |\nSmall | 10":                             nil,
		"Plan | Price":                                   nil,
		"a | b | c\n1 | 2 | 3\n4 | 5 | 6":                {"a", "b", "c"},
	} {
		if got := headsOf(strings.Split(rows, "\n")); !slices.Equal(got, want) {
			t.Errorf("headsOf(%q) = %q, want %q", rows, got, want)
		}
	}
}
