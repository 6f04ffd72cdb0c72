package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/eval/answers"
)

// CSV writes a row for each question and system: the question, the answer, whether it was right and
// the stage at which it was lost. A column for every slice and every measure follows, empty if it
// does not apply.
//
// A text cell that a spreadsheet would treat as a formula gets an apostrophe in front. Such a cell
// begins with =, +, -, @, a tab or a line break, after any spaces. Control characters are written
// as ⟨U+0000⟩. Numbers are as in JSON. Source: OWASP, "CSV Injection".
func CSV(w io.Writer, r answers.Report) error {
	slicesBy, measures := columns(r)
	head := []string{"system", "id", "question", "right", "lost", "status", "stop", "answer", "expected", "error", "run"}
	for _, by := range slicesBy {
		head = append(head, "slice:"+by)
	}
	out := csv.NewWriter(w)
	if err := out.Write(texts(append(head, measures...))); err != nil {
		return fmt.Errorf("write the CSV of %s: %w", r.Set, err)
	}
	for _, s := range r.Systems {
		for _, o := range s.Outcomes {
			if err := out.Write(row(s.Name, o, slicesBy, measures)); err != nil {
				return fmt.Errorf("write the CSV of %s: %w", r.Set, err)
			}
		}
	}
	out.Flush()
	return out.Error()
}

// columns returns the slices and the measures of all outcomes, sorted by name.
func columns(r answers.Report) (slicesBy, measures []string) {
	by, names := map[string]bool{}, map[string]bool{}
	for _, s := range r.Systems {
		for _, o := range s.Outcomes {
			for name := range o.Slices {
				by[name] = true
			}
			for name := range o.Metrics {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(by)), slices.Sorted(maps.Keys(names))
}

func row(system string, o answers.Outcome, slicesBy, measures []string) []string {
	cells := texts([]string{
		system, o.ID, o.Question, strconv.FormatBool(o.Right), string(o.Lost), string(o.Answer.Status), string(o.Answer.Stop),
		o.Answer.Text, strings.Join(o.Answers, " | "), o.Error, o.Run,
	})
	for _, by := range slicesBy {
		cells = append(cells, text(o.Slices[by]))
	}
	for _, name := range measures {
		value, applies := o.Metrics[name]
		cells = append(cells, number(value, applies))
	}
	return cells
}

// FiguresCSV writes a row for each figure of each system, for the whole set and by slice. Cells are
// as in CSV.
func FiguresCSV(w io.Writer, r answers.Report) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"system", "slice", "value", "figure", "cases", "mean", "low", "high", "unit", "judged_by"}}
	for _, s := range r.Systems {
		rows = append(rows, figureRows(s.Name, "", "", s.Figures)...)
		for _, slice := range s.Slices {
			rows = append(rows, figureRows(s.Name, slice.By, slice.Value, slice.Figures)...)
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write the figures of %s: %w", r.Set, err)
	}
	return nil
}

func figureRows(system, by, value string, figures []answers.Figure) [][]string {
	var rows [][]string
	for _, f := range figures {
		rows = append(rows, []string{
			text(system), text(by), text(value), text(f.Name), strconv.Itoa(f.Cases),
			number(f.Mean, true), number(f.Low, true), number(f.High, true), text(f.Unit), text(f.By),
		})
	}
	return rows
}

func texts(cells []string) []string {
	for i, c := range cells {
		cells[i] = text(c)
	}
	return cells
}

// text returns a cell that no spreadsheet treats as a formula.
func text(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		if hides(r) && r != '\r' {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	s = b.String()
	// The wide forms come from East Asian keyboards. Spreadsheets treat them like the narrow ones.
	if strings.IndexAny(s, "\t\r\n") == 0 || strings.IndexAny(strings.TrimLeft(s, " \u00a0\u3000"), "=+-@\t\r\n＝＋－＠") == 0 {
		return "'" + s
	}
	return s
}

// number returns a cell with a number, or an empty one if it does not apply.
func number(v float64, applies bool) string {
	if !applies || v != v {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
