package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/markdown"
)

// exportMarkdown sends an answer with its sources as Markdown.
func exportMarkdown(q *request) error {
	return q.export("md", "text/markdown", markdown.Answer)
}

// exportText sends the text of an answer.
func exportText(q *request) error {
	return q.export("txt", "text/plain", func(a assay.Answer) string { return a.Text + "\n" })
}

// exportBibTeX sends the sources of an answer as BibTeX.
func exportBibTeX(q *request) error { return q.export("bib", "application/x-bibtex", bibTeX) }

// export sends the answer of a run as a file.
func (q *request) export(extension, media string, form func(assay.Answer) string) error {
	r, _, err := q.session.Run(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	if r.Answer == nil {
		return fmt.Errorf("run %s has no answer: %w", r.ID, assay.ErrNotFound)
	}
	h := q.w.Header()
	h.Set("Content-Type", media+"; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="answer-%s.%s"`, url.PathEscape(r.ID), extension))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	q.w.WriteHeader(http.StatusOK)
	_, _ = q.w.Write([]byte(form(*r.Answer))) // the client may be gone
	return nil
}

// bibTeX returns the sources of an answer as entries of BibTeX, one for each number.
func bibTeX(a assay.Answer) string {
	var b strings.Builder
	for _, cited := range a.Sources() {
		first := cited[0]
		fmt.Fprintf(&b, "@misc{assay-%s-%d,\n", bibKey(a.Run), first.Number)
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "  %s = {%s},\n", name, value)
			}
		}
		field("title", "{"+bibText(titleOf(first.Title, first.URI))+"}")
		if address := webAddress(first.URI, first.Page); address != "" {
			field("url", bibAddress(address))
		} else {
			field("howpublished", bibText(first.URI))
		}
		field("note", bibText(bibNote(cited)))
		b.WriteString("}\n\n")
	}
	return b.String()
}

// bibNote returns the places and the quotes of a source.
func bibNote(cited []assay.Citation) string {
	parts := []string{}
	if heading := headingOf(cited[0].Title, cited[0].Heading); heading != "" {
		parts = append(parts, heading)
	}
	for _, c := range cited {
		quote := "“" + strings.Join(strings.Fields(c.Quote), " ") + "”"
		if place := placeOf(c.Page, c.Line); place != "" {
			quote = place + ": " + quote
		}
		parts = append(parts, quote)
	}
	return strings.Join(parts, "; ")
}

// bibKey returns the characters of a text that a key may have.
func bibKey(text string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' {
			return c
		}
		return -1
	}, text)
}

// bibEscapes are the characters that TeX reads as commands.
var bibEscapes = strings.NewReplacer(
	`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `%`, `\%`, `#`, `\#`, `_`, `\_`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`,
	"\n", " ", "\r", " ", "\t", " ",
)

// bibText escapes a text for a field. Braces stay balanced for BibTeX, which counts escaped ones too.
func bibText(text string) string {
	if strings.Count(text, "{") != strings.Count(text, "}") || !balanced(text) {
		text = strings.NewReplacer("{", "(", "}", ")").Replace(text)
	}
	return bibEscapes.Replace(text)
}

// balanced reports whether each closing brace of a text has an opening one before it.
func balanced(text string) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0
}

// bibAddress escapes an address for a field that is read verbatim.
func bibAddress(address string) string {
	return strings.NewReplacer("{", "%7B", "}", "%7D", `\`, "%5C", " ", "%20", `"`, "%22", "\n", "", "\r", "").Replace(address)
}
