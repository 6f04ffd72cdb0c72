package markdown

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

// Answer returns an answer as a Markdown document: the question, the text with its citation numbers,
// what is missing, and each source with its place and the words that were quoted from it.
func Answer(a assay.Answer) string {
	var b strings.Builder
	b.WriteString("# " + inline(oneLine(a.Question)) + "\n")
	if a.Understood != "" {
		b.WriteString("\nUnderstood as: " + inline(oneLine(a.Understood)) + "\n")
	}
	for line := range strings.Lines(a.Text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString("\n" + paragraph(line) + "\n")
		}
	}
	if a.Status != assay.Answered {
		fmt.Fprintf(&b, "\n**%s**: %s\n", strings.ReplaceAll(string(a.Status), "_", " "), paragraph(oneLine(a.Justification)))
	}
	if len(a.Missing) > 0 {
		b.WriteString("\n## Missing\n\n")
		for _, m := range a.Missing {
			b.WriteString("- " + paragraph(oneLine(m.Text)) + "\n")
		}
	}
	if len(a.Citations) > 0 {
		b.WriteString("\n## Sources\n")
	}
	for _, source := range a.Sources() {
		first := source[0]
		title := strings.Join(append([]string{first.Title}, first.Heading...), " > ")
		fmt.Fprintf(&b, "\n\\[%d\\] %s\n", first.Number, inline(oneLine(title)))
		for _, c := range source {
			fmt.Fprintf(&b, "\n%s\n", inline(oneLine(placeOf(c))))
			b.WriteString("\n")
			for line := range strings.Lines(strings.TrimSpace(c.Quote)) {
				b.WriteString(strings.TrimRight("> "+paragraph(strings.TrimSpace(line)), " ") + "\n")
			}
		}
	}
	return b.String()
}

// placeOf names the place of a citation.
func placeOf(c assay.Citation) string {
	switch {
	case c.Page > 0:
		return fmt.Sprintf("%s, page %d", c.URI, c.Page)
	case c.Line > 0:
		return fmt.Sprintf("%s:%d", c.URI, c.Line)
	}
	return c.URI
}
