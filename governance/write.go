package governance

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/assay-rag/assay/internal/plot"
)

// JSON writes a report as indented JSON. Equal reports give equal bytes.
func JSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// FiguresTable returns the figures of a report as a table.
func FiguresTable(r Report) Table {
	t := Table{Name: "figures", Title: "Figures", Columns: []string{"figure", "value", "unit", "numerator", "denominator", "objective", "alert", "state", "definition", "runs"}}
	for _, f := range r.Figures {
		var value any = round(f.Value)
		if f.State == NotMeasured {
			value = nil
		}
		t.add(f.Name, value, f.Unit, round(f.Count), round(f.Of), f.Objective.text(), f.Alert.text(), string(f.State), f.Definition, f.Runs)
	}
	return t
}

func (b *Bound) text() string {
	if b == nil {
		return ""
	}
	op := b.Op
	if op == "==" {
		op = "exactly" // a spreadsheet would take it for a formula
	}
	return op + " " + strconv.FormatFloat(b.Value, 'f', -1, 64)
}

// CSV writes a table with a row of column names. Run IDs in one cell are separated by spaces. A text
// that a spreadsheet would treat as a formula gets an apostrophe in front (OWASP, "CSV Injection"),
// and control characters become spaces.
func CSV(w io.Writer, t Table) error {
	out := csv.NewWriter(w)
	if err := out.Write(t.Columns); err != nil {
		return fmt.Errorf("write table %s: %w", t.Name, err)
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = csvCell(c)
		}
		if err := out.Write(cells); err != nil {
			return fmt.Errorf("write table %s: %w", t.Name, err)
		}
	}
	out.Flush()
	return out.Error()
}

func csvCell(c any) string {
	text := CellText(c)
	switch c.(type) {
	case string, []string:
	default:
		return text
	}
	if s := strings.TrimLeft(text, " "); s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + text
	}
	return text
}

// CellText returns a cell of a table as text on one line.
func CellText(c any) string {
	switch c := c.(type) {
	case nil:
		return ""
	case string:
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, c)
	case []string:
		return strings.Join(c, " ")
	case float64:
		return strconv.FormatFloat(c, 'f', -1, 64)
	}
	return fmt.Sprint(c)
}

//go:embed page.html page.css
var pageFiles embed.FS

// page returns the template, parsed at the first use.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(pageFuncs).ParseFS(pageFiles, "page.html"))
})

var pageFuncs = template.FuncMap{
	"cell":  CellText,
	"list":  func(c any) []string { l, _ := c.([]string); return l },
	"isnum": isNumber,
	"value": Figure.Text,
	"bound": func(b *Bound, f Figure) string { return b.Text(f.Unit) },
	"of":    Figure.Counted,
	"day":   func(t *time.Time) string { return t.Format(time.DateOnly) },
	"state": func(s State) string { return strings.ReplaceAll(string(s), "_", " ") },
}

func isNumber(c any) bool {
	switch c.(type) {
	case int, int64, float64:
		return true
	}
	return false
}

// Text returns the value of a figure for people.
func (f Figure) Text() string {
	if f.State == NotMeasured {
		return "–"
	}
	return inUnit(f.Value, f.Unit)
}

func inUnit(x float64, unit string) string {
	switch unit {
	case "share":
		return strconv.FormatFloat(round(100*x), 'f', decimals(100*x, 1), 64) + "%"
	case "ms":
		return plot.Number(x/1000) + " s"
	case "micros":
		return plot.Number(x / 1e6)
	}
	return strconv.FormatFloat(x, 'f', decimals(x, 2), 64)
}

// decimals returns 0 for a whole number, and otherwise most.
func decimals(x float64, most int) int {
	if x == float64(int64(x)) {
		return 0
	}
	return most
}

// Text returns the bound of a figure in a unit for people. That of nil is a dash.
func (b *Bound) Text(unit string) string {
	if b == nil {
		return "–"
	}
	op := map[string]string{"==": "", "<=": "at most ", ">=": "at least ", "<": "under ", ">": "above "}[b.Op]
	return op + inUnit(b.Value, unit)
}

// Counted says what a share or mean is of; empty: nothing.
func (f Figure) Counted() string {
	switch {
	case f.State == NotMeasured || f.Unit == "count" && f.Of == 0:
		return ""
	case f.Unit == "share" || f.Unit == "count" && f.Count != f.Of:
		return plot.Number(f.Count) + " of " + plot.Number(f.Of)
	}
	return "of " + plot.Number(f.Of)
}

// HTML writes a report as one self-contained page without scripts and network access. Its
// Content-Security-Policy permits nothing but its own style sheet. Equal reports give equal pages.
func HTML(w io.Writer, r Report) error {
	sheet, err := pageFiles.ReadFile("page.css")
	if err != nil {
		return err
	}
	css := string(sheet) + plot.CSS
	sum := sha256.Sum256([]byte(css))
	return page().Execute(w, struct {
		Report
		Alerts []Figure
		CSS    template.CSS
		Policy string
		Plots  []template.HTML
	}{r, r.Alerts(), template.CSS(css), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'", Plots(r)})
}

// plots draws the tables that have a course over time.
func plots(r Report) []plot.SVG {
	var out []plot.SVG
	line := func(table, column, title, label string, high, limit float64) {
		t := r.Table(table)
		at := slices.Index(t.Columns, column)
		var names []string
		s := plot.Series{Name: column}
		for i, row := range t.Rows {
			names = append(names, CellText(row[0]))
			s.X, s.Y = append(s.X, float64(i)), append(s.Y, toFloat(row[at]))
		}
		if len(names) == 0 {
			return
		}
		all := []plot.Series{s}
		if limit > 0 && len(names) > 1 {
			all = append(all, plot.Series{Name: "alert", Mark: true, X: []float64{0, float64(len(names) - 1)}, Y: []float64{limit, limit}})
		}
		f := plot.Frame{Title: title, X: plot.Axis{Label: "month (UTC)", Names: names}, Y: plot.Axis{Label: label, High: high}}
		out = append(out, plot.Lines(f, all))
	}
	line("overrides", "override_rate", "Override rate", "share of the decisions", 1, overrideLimit)
	line("session_times", "p95_ms", "Session time, p95", "milliseconds", 0, timeAlert)
	line("costs", "micros_per_session", "Cost of a session", "millionths", 0, 0)
	byIterations := map[int]float64{}
	t := r.Table("iteration_distribution")
	for _, row := range t.Rows {
		byIterations[int(toFloat(row[2]))] += toFloat(row[3])
	}
	var bars []plot.Bar
	for _, n := range keysOf(byIterations) {
		bars = append(bars, plot.Bar{Name: strconv.Itoa(n), Value: byIterations[n]})
	}
	if len(bars) > 0 {
		f := plot.Frame{Title: "Iterations", X: plot.Axis{Label: "answers"}, Y: plot.Axis{Label: "iterations"}}
		out = append(out, plot.Bars(f, bars))
	}
	return out
}

// Plots returns the plots of a report as SVG: the tables that have a course over time. Their texts are
// escaped.
func Plots(r Report) []template.HTML {
	var out []template.HTML
	for _, p := range plots(r) {
		out = append(out, template.HTML(p))
	}
	return out
}

func toFloat(c any) float64 {
	switch c := c.(type) {
	case int:
		return float64(c)
	case int64:
		return float64(c)
	case float64:
		return c
	}
	return 0
}
