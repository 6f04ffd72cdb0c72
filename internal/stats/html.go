package stats

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay/internal/plot"
)

//go:embed report.html
var pages embed.FS

var page = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"percent": percent,
	"share":   func(s Share) string { return orDash(s.Of > 0, percent(s.Share)) },
	"number":  func(d Distribution, x float64) string { return orDash(d.Count > 0, plot.Number(x)) },
	"money":   func(micros float64) string { return plot.Number(micros / 1e6) },
	"day":     func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
	"list":    func(names []string) string { return strings.Join(names, ", ") },
	"p":       func(p float64) string { return fmt.Sprintf("%.2g", p) },
}).ParseFS(pages, "report.html"))

func orDash(known bool, text string) string {
	if !known {
		return "–"
	}
	return text
}

// HTML writes a report with its plots as one self-contained page, without network access or
// scripts.
func HTML(w io.Writer, r Report) error {
	return page.Execute(w, struct {
		Report
		Groups   []groups
		Plots    []template.HTML
		CSS      template.CSS
		Symptoms []Symptom
	}{r, []groups{{"Strategy", r.Strategies}, {"Collection", r.Collections}, {"Day", r.Days}}, plots(r), template.CSS(plot.CSS), Symptoms()})
}

// groups are the signals of the runs grouped by one property.
type groups struct {
	By     string
	Groups []Group
}

// plots draws the signals by day, and the times of the stages.
func plots(r Report) []template.HTML {
	var days []string
	for _, g := range r.Days {
		days = append(days, g.Name)
	}
	type line struct {
		name string
		of   func(Signals) (float64, bool)
	}
	share := func(of func(Signals) Share) func(Signals) (float64, bool) {
		return func(s Signals) (float64, bool) { return of(s).Share, of(s).Of > 0 }
	}
	limits := DefaultLimits()
	var out []template.HTML
	for _, p := range []struct {
		title, label string
		high, limit  float64 // upper end of the axis, and alert limit; 0: none
		lines        []line
	}{
		{"Evidence sufficient on the first try", "share of the runs", 1, 0, []line{{"first try", share(func(s Signals) Share { return s.FirstTry })}}},
		{"Relevance of the best passage", "relevance", 1, 0, []line{{"median", func(s Signals) (float64, bool) { return s.TopRelevance.P50, s.TopRelevance.Count > 0 }}}},
		{"Not found, incomplete", "share of the runs", 1, 0, []line{{"not found", share(func(s Signals) Share { return s.NotFound })}, {"incomplete", share(func(s Signals) Share { return s.Incomplete })}}},
		{"Claims rejected", "share of the claims", 1, 0, []line{{"rejected", share(func(s Signals) Share { return s.Rejected })}}},
		{"Iterations", "iterations a question", 0, limits.Iterations, []line{{"mean", func(s Signals) (float64, bool) { return s.Iterations.Mean, s.Iterations.Count > 0 }}}},
		{"Runs ended by a limit", "share of the runs", 1, limits.CapHits, []line{{"cap hits", share(func(s Signals) Share { return s.CapHits })}}},
		{"Errors", "share of the calls", 1, limits.ToolErrors, []line{{"tools", share(func(s Signals) Share { return s.ToolErrors })}, {"models", share(func(s Signals) Share { return s.ModelErrors })}}},
		{"Latency", "milliseconds", 0, 0, []line{{"p95", func(s Signals) (float64, bool) { return s.LatencyMS.P95, s.LatencyMS.Count > 0 }}, {"median", func(s Signals) (float64, bool) { return s.LatencyMS.P50, s.LatencyMS.Count > 0 }}}},
		{"Cost", "of a run", 0, 0, []line{{"p95", func(s Signals) (float64, bool) { return s.CostMicros.P95 / 1e6, s.CostMicros.Count > 0 }}, {"median", func(s Signals) (float64, bool) { return s.CostMicros.P50 / 1e6, s.CostMicros.Count > 0 }}}},
	} {
		var series []plot.Series
		for _, l := range p.lines {
			s := plot.Series{Name: l.name}
			for i, g := range r.Days {
				if y, ok := l.of(g.Signals); ok {
					s.X, s.Y = append(s.X, float64(i)), append(s.Y, y)
				}
			}
			series = append(series, s)
		}
		if !slices.ContainsFunc(series, func(s plot.Series) bool { return len(s.X) > 0 }) {
			continue
		}
		if p.limit > 0 && len(days) > 1 {
			series = append(series, plot.Series{Name: "alert", Mark: true, X: []float64{0, float64(len(days) - 1)}, Y: []float64{p.limit, p.limit}})
		}
		frame := plot.Frame{Title: p.title, X: plot.Axis{Label: "day (UTC)", Names: days}, Y: plot.Axis{Label: p.label, High: p.high}}
		out = append(out, template.HTML(plot.Lines(frame, series)))
	}
	var stages []plot.Bar
	for _, s := range r.All.Stages {
		stages = append(stages, plot.Bar{Name: string(s.Stage), Value: s.ElapsedMS.P95})
	}
	if len(stages) > 0 {
		out = append(out, template.HTML(plot.Bars(plot.Frame{Title: "What the stages take", X: plot.Axis{Label: "p95, milliseconds"}}, stages)))
	}
	return out
}
