package parse

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// nestedList returns a list whose items are nested to a depth.
func nestedList(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat("  ", i) + "- item\n")
	}
	return b.String()
}

// TestNested checks that deep nesting is parsed without loss: as Markdown up to a depth, as plain
// text beyond it.
func TestNested(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		words      int
	}{
		{nestedList(90), "markdown", 90},
		{nestedList(2000), "text", 2000},
		{strings.Repeat("> ", 90) + "item", "markdown", 1},
		{strings.Repeat("> ", 5000) + "item", "text", 1},
		{strings.Repeat("- ", 5000) + "item", "text", 1},
		{strings.Repeat("[item ", 30000), "text", 30000},
	} {
		doc, err := Parse(t.Context(), Input{Name: "a.md", Data: []byte(tt.text)})
		if err != nil || doc.Type != tt.want || strings.Count(doc.Text, "item") != tt.words {
			t.Errorf("%.20q…: %s with %d words, %v; want %s with %d", tt.text, doc.Type, strings.Count(doc.Text, "item"), err, tt.want, tt.words)
		}
	}
}

// countdown is a context that ends after n questions for its error.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestPieces checks that large Markdown is parsed in pieces with the same result as in one.
func TestPieces(t *testing.T) {
	sections := []string{
		"# Heading\n\nSome *words* with a [link][ref] and `code`.\n\n",
		"- item\n- item\n  - nested\n\n  more of it\n\n",
		"```\ncode\n\n# not a heading\n```\n\n",
		"| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |\n\n",
		"<!-- a comment\n\n# in it\n-->\n\n> quoted\n> text\n\n",
		"1. one\n2. two\n\n    code\n\nLast\nlines\n\n",
	}
	text := strings.Repeat(strings.Join(sections, ""), 4000) + "[ref]: http://example.com\n"
	whole := strings.Repeat(strings.Join(sections, ""), 10) + "[ref]: http://example.com\n"
	large, err := Parse(t.Context(), Input{Name: "a.md", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	small, err := Parse(t.Context(), Input{Name: "a.md", Data: []byte(whole)})
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSuffix(strings.Repeat(small.Text+"\n\n", 400), "\n\n"); large.Text != want {
		i := 0
		for large.Text[i] == want[i] {
			i++
		}
		t.Errorf("the texts differ at %d: %q, want %q", i, large.Text[max(0, i-50):i+50], want[max(0, i-50):i+50])
	}
	if len(large.Blocks) != 400*len(small.Blocks) {
		t.Errorf("%d blocks, want %d", len(large.Blocks), 400*len(small.Blocks))
	}
	checkDocument(t, large, text)
	_, err = Parse(&countdown{Context: t.Context(), n: 3}, Input{Name: "a.md", Data: []byte(text)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled Parse: %v", err)
	}
}

// TestHardPieces checks pieces that end inside blocks.
func TestHardPieces(t *testing.T) {
	for _, tt := range []struct {
		name, head, unit string
		kind             BlockKind
		word             string
	}{
		{"table", "| a | b |\n| - | - |\n", "| cell | 2 |\n", TableRow, "cell"},
		{"code", "```go\n", "cell # x\n", Code, "cell"},
		{"list", "", "- cell\n", ListItem, "cell"},
		{"paragraph", "", "cell and words\n", Paragraph, "cell"},
		{"long line", "", "cell ", Paragraph, "cell"},
	} {
		const n = 60_000
		text := "# T\n\n" + tt.head + strings.Repeat(tt.unit, n)
		doc, err := Parse(t.Context(), Input{Name: "a.md", Data: []byte(text)})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		checkDocument(t, doc, text)
		if got := strings.Count(doc.Text, tt.word); got != n || strings.Contains(doc.Text, "```") || strings.Count(doc.Text, "a | b") > 1 {
			t.Errorf("%s: %d words, want %d", tt.name, got, n)
		}
		for _, b := range doc.Blocks[1:] {
			if b.Kind != tt.kind && b.Kind != TableHead {
				t.Errorf("%s: a block of kind %s", tt.name, b.Kind)
				break
			}
		}
	}
}
