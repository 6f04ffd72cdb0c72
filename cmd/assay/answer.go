package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// writeJSON prints v as an indented JSON document.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeAnswer prints an answer for people: the text and its sources with the quoted words. For
// an answer without claims it prints the searches and the closest passages.
func writeAnswer(w io.Writer, a assay.Answer, width int) error {
	var b strings.Builder
	if a.Understood != "" {
		b.WriteString(wrap("Understood as: "+a.Understood+byModel(a.UnderstoodByModel), "", width) + "\n")
	}
	if a.Status == assay.NotFound {
		b.WriteString("Not found in these documents.\n")
		writeSearched(&b, a.Searched, width)
		writeClosest(&b, a.Closest, width)
	} else {
		b.WriteString(wrap(a.Text, "", width))
		if len(a.Readings) > 0 && a.AskBack == "" {
			b.WriteString("\n" + wrap("The question has several meanings; answered for each: "+strings.Join(a.Readings, "; ")+".", "", width))
		}
		writeStatus(&b, a, width)
		writeSources(&b, a, width)
		if len(a.Claims) == 0 { // nothing is shown: list the closest passages instead
			writeClosest(&b, a.Closest, width)
		}
	}
	appendNotes(&b, slices.DeleteFunc(slices.Clone(a.Notes), aboutCoverage), width)
	_, err := io.WriteString(w, b.String())
	return err
}

// byModel marks text of a language model that was not verified.
func byModel(is bool) string {
	if is {
		return " (model)"
	}
	return ""
}

// aboutCoverage reports whether a note is about the share of passages with vectors. Readers of an
// answer cannot act on it, so only the trace shows it.
func aboutCoverage(n assay.Note) bool { return n.Kind == assay.NoteCoverage }

// appendNotes prints notes about how something was found.
func appendNotes(b *strings.Builder, notes []assay.Note, width int) {
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	for _, note := range notes {
		b.WriteString(wrap("Note: "+note.Text, "", width))
	}
}

// writeStatus prints the status of an answer that is not complete, and its missing parts.
func writeStatus(b *strings.Builder, a assay.Answer, width int) {
	if a.Status != assay.Answered {
		label := strings.ToUpper(string(a.Status[:1])) + strings.ReplaceAll(string(a.Status[1:]), "_", " ")
		b.WriteString("\n" + wrap(strings.TrimSpace(label+": "+a.Justification+more(a.Stop)), "", width))
	}
	if len(a.Missing) > 0 {
		b.WriteString("\nMissing\n")
		for _, m := range a.Missing {
			b.WriteString(wrap("- "+m.Text+byModel(m.ByModel), "  ", width))
		}
	}
}

// more names the flag that raises the limit at which a run stopped.
func more(s assay.Stop) string {
	flag := map[assay.Stop]string{
		assay.StopDeadline: "--timeout", assay.StopTokenBudget: "--max-tokens", assay.StopCallBudget: "--max-calls", assay.StopMoneyBudget: "--max-cost",
	}[s]
	if flag == "" {
		return ""
	}
	return " Raise the limit with " + flag + "."
}

// writeSources prints each cited source once, by number, with the words quoted from it. It marks
// sources that replaced those cited by the writer.
func writeSources(b *strings.Builder, a assay.Answer, width int) {
	if len(a.Citations) == 0 {
		return
	}
	corrected, quoted := map[int]bool{}, map[int]bool{}
	for _, c := range a.Claims {
		for _, n := range c.Citations {
			corrected[n] = corrected[n] || c.Repaired
			quoted[n] = quoted[n] || c.Quoted
		}
	}
	b.WriteString("\nSources\n")
	for _, source := range a.Sources() {
		first := source[0]
		in := from(first.Origin)
		if first.Collection != "" {
			in += " (" + first.Collection + ")"
		}
		switch {
		case quoted[first.Number]:
			in += " (quoted in place of a rejected statement)"
		case corrected[first.Number]:
			in += " (corrected: the writer cited another source)"
		}
		fmt.Fprintf(b, "[%d] %s%s\n", first.Number, title(first.Title, first.Heading), in)
		at := ""
		for _, c := range source {
			if here := place(c.URI, c.Line, c.Page); here != at {
				b.WriteString("    " + here + "\n")
				at = here
				for _, uri := range c.Aliases {
					b.WriteString("    also " + shortPath(uri) + "\n")
				}
			}
			writeQuote(b, obtained(c.Provenance, c.Confidence, c.Model)+c.Quote, width)
		}
	}
}

// from describes the origin of a source that is not a document.
func from(o assay.Origin) string {
	switch o {
	case assay.FromWeb:
		return " (from the web)"
	case assay.FromService:
		return " (from a managed service)"
	}
	return ""
}

// writeQuote prints quoted words. Prose is wrapped, a table is printed row by row, and code is
// printed verbatim.
func writeQuote(b *strings.Builder, quote string, width int) {
	const indent = "      "
	if strings.Contains(quote, " | ") && isProse(quote) {
		for line := range strings.Lines(quote) {
			b.WriteString(wrap(strings.TrimSpace(line), indent, width))
		}
		return
	}
	if isProse(quote) {
		b.WriteString(wrap(strings.Join(strings.Fields(quote), " "), indent, width))
		return
	}
	for line := range strings.Lines(quote) {
		b.WriteString(strings.TrimRight(indent+line, " \t\n") + "\n")
	}
}

// isProse reports whether line breaks in text are insignificant: no line but the first is indented
// or begins with a mark.
func isProse(text string) bool {
	for i, line := range strings.Split(text, "\n") {
		if r, _ := utf8.DecodeRuneInString(line); i > 0 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("\"'(“‘`", r) {
			return false
		}
	}
	return true
}

func writeSearched(b *strings.Builder, searched []assay.Searched, width int) {
	if len(searched) == 0 {
		return
	}
	b.WriteString("\nSearched\n")
	for _, s := range searched {
		line := fmt.Sprintf("- %q%s%s: %s", s.Query, byModel(s.ByModel), from(s.Origin), count(s.Hits, "hit", "hits"))
		if s.Hits > 0 {
			line += fmt.Sprintf(", best relevance %.2f", s.TopRelevance)
		}
		if len(s.Collections) > 0 {
			line += ", in " + strings.Join(s.Collections, ", ")
		}
		if !s.Filter.IsZero() {
			line += fmt.Sprintf(", where %s", s.Filter)
		}
		b.WriteString(wrap(line, "  ", width))
	}
}

func writeClosest(b *strings.Builder, closest []assay.Closest, width int) {
	if len(closest) == 0 {
		return
	}
	b.WriteString("\nClosest\n")
	for _, c := range closest {
		b.WriteString(wrap("- "+title(c.Title, c.Heading), "  ", width))
		fmt.Fprintf(b, "    %s (relevance %.2f)\n", place(c.URI, c.Line, 0), c.Relevance)
		b.WriteString(wrap(obtained(c.Provenance, c.Confidence, c.Model)+c.Quote, "      ", width))
	}
}

// count formats a number with its noun: "1 hit", "20 hits".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
