package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"sort"

	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/plot"
)

// distributions draws the distribution of the questions over each measure, in the order of the
// figures. Measures without a figure come last.
func distributions(s answers.System) []template.HTML {
	values := map[string][]float64{}
	for _, o := range s.Outcomes {
		for name, v := range o.Metrics {
			values[name] = append(values[name], v)
		}
	}
	var names []string
	for _, f := range s.Figures {
		if len(values[f.Name]) > 0 {
			names = append(names, f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var all []template.HTML
	for _, name := range names {
		f, _ := findFigure(s, name)
		if f.Unit == "" {
			f.Unit = unitOf(name)
		}
		all = append(all, svg(histogram(name, f.Unit, values[name])))
	}
	return all
}

// histogram draws one measure. A share has an axis from 0 to 1 and any other value one from 0. The
// axis is logarithmic if a few values are many times the median.
func histogram(name, unit string, values []float64) plot.SVG {
	f := plot.Frame{Title: named(name), X: plot.Axis{Label: "share"}, Y: plot.Axis{Label: "questions"}}
	low, high := slices.Min(values), slices.Max(values)
	middle := stat.Percentile(values, 50)
	switch {
	case unit == "" && low >= 0 && high <= 1:
		f.X.High = 1
	default:
		f.X.Label = unitName(unit)
		f.X.Log = low > 0 && high > 20*middle
	}
	return plot.Histogram(f, values)
}

// calibrationPlot draws the verifier's score against how often it was right, and returns the
// expected calibration error in words.
func calibrationPlot(bins []stat.Bin) (drawn template.HTML, says string) {
	var points []plot.Point
	var plain []stat.Bin
	most := 1
	for _, b := range bins {
		most = max(most, b.Cases)
	}
	for _, b := range bins {
		if b.Cases == 0 {
			continue
		}
		points = append(points, plot.Point{X: b.Score, Y: b.Right, Low: b.Right, High: b.Right, Size: 3 + 5*float64(b.Cases)/float64(most)})
		plain = append(plain, stat.Bin{Low: b.Low, High: b.High, Cases: b.Cases, Score: b.Score, Right: b.Right})
	}
	if len(points) == 0 {
		return "", ""
	}
	f := plot.Frame{
		Title: "Calibration of the verifier", X: plot.Axis{Label: "verifier score of a claim", High: 1}, Y: plot.Axis{Label: "share of these claims that are right", High: 1},
		Diagonal: true,
	}
	return svg(plot.Points(f, points)), fmt.Sprintf("%.3f", stat.ECE(plain))
}

// figurePlot draws the figures that are shares with their intervals.
func figurePlot(s answers.System) template.HTML {
	var rows []plot.Interval
	for _, f := range s.Figures {
		if f.Unit == "" && f.Mean >= 0 && f.Mean <= 1 {
			rows = append(rows, plot.Interval{Name: named(f.Name), Value: f.Mean, Low: f.Low, High: f.High})
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return svg(plot.Intervals(plot.Frame{Title: "Figures of " + named(s.Name), X: plot.Axis{Label: "share, with 95% interval", High: 1}}, rows))
}

// lossPlot draws the stages at which questions were lost, in order.
func lossPlot(s answers.System) template.HTML {
	var bars []plot.Bar
	total := 0
	for _, stage := range stages {
		if n := s.Lost[stage]; n > 0 {
			bars = append(bars, plot.Bar{Name: stageName(stage), Value: float64(n)})
			total += n
		}
	}
	if total == 0 {
		return ""
	}
	for i, b := range bars {
		bars[i].Says = fmt.Sprintf("%.0f (%.0f%%)", b.Value, 100*b.Value/float64(total))
	}
	return svg(plot.Bars(plot.Frame{Title: "Where questions were lost", X: plot.Axis{Label: "questions"}}, bars))
}

// sliceTables returns a table for each kind of slice, with a drawing of its leading figure.
func sliceTables(s answers.System) []sliceTable {
	var tables []sliceTable
	for _, slice := range s.Slices {
		i := slices.IndexFunc(tables, func(t sliceTable) bool { return t.By == named(slice.By) })
		if i < 0 {
			tables = append(tables, newSliceTable(s, slice.By))
			i = len(tables) - 1
		}
		r := sliceRow{Value: named(slice.Value), Cases: slice.Cases}
		for _, name := range tables[i].Heads {
			cell := ""
			for _, f := range slice.Figures {
				if named(f.Name) == name {
					cell = amount(f.Mean, f.Unit) + " " + interval(f)
				}
			}
			r.Cells = append(r.Cells, cell)
		}
		tables[i].Rows = append(tables[i].Rows, r)
	}
	return tables
}

func newSliceTable(s answers.System, by string) sliceTable {
	t := sliceTable{By: named(by)}
	var rows []plot.Interval
	lead := ""
	for _, slice := range s.Slices {
		if slice.By != by {
			continue
		}
		for _, f := range slice.Figures {
			if name := named(f.Name); !slices.Contains(t.Heads, name) {
				t.Heads = append(t.Heads, name)
			}
		}
		if lead == "" && len(slice.Figures) > 0 {
			lead = slice.Figures[0].Name
		}
		for _, f := range slice.Figures {
			if f.Name == lead {
				rows = append(rows, plot.Interval{Name: named(slice.Value), Value: f.Mean, Low: f.Low, High: f.High})
			}
		}
	}
	if len(rows) > 1 && len(rows) <= 30 {
		axis := plot.Axis{Label: named(lead)}
		if unitOf(lead) == "" {
			axis.High = 1
		}
		t.Plot = svg(plot.Intervals(plot.Frame{Title: named(lead) + " by " + named(by), X: axis}, rows))
	}
	return t
}

// qualityPlots draws the share of right answers against each known cost, one point per system:
// money, tokens, calls and time. It draws steps if no other cost is known.
func qualityPlots(r answers.Report) []template.HTML {
	var all []template.HTML
	for _, cost := range []struct{ figure, label string }{
		{"cost_micros", "cost per question, millionths of the currency"}, {"tokens", "model tokens per question"},
		{"model_calls", "model calls per question"}, {"latency_p50_ms", "median time per question, ms"}, {"latency_ms", "mean time per question, ms"}, {"steps", "steps per question"},
	} {
		var points []plot.Point
		spent := false
		for _, s := range r.Systems {
			x, found := findFigure(s, cost.figure)
			y, judged := findFigure(s, "right")
			if !found || !judged {
				continue
			}
			spent = spent || x.Mean > 0
			p := plot.Point{Name: named(s.Name), X: x.Mean, Y: y.Mean, Low: y.Mean, High: y.Mean}
			if interval(y) != "" {
				p.Low, p.High = y.Low, y.High
			}
			points = append(points, p)
		}
		var redundant bool
		switch cost.figure {
		case "steps": // a stand-in for real costs
			redundant = len(all) > 0
		case "latency_ms":
			redundant = slices.ContainsFunc(r.Systems, func(s answers.System) bool {
				_, hasMedian := findFigure(s, "latency_p50_ms")
				return hasMedian
			})
		}
		if !spent || redundant {
			continue
		}
		f := plot.Frame{Title: "Right answers against " + costName(cost.figure), X: plot.Axis{Label: cost.label}, Y: plot.Axis{Label: "share of right answers", High: 1}}
		f.X.Log = wide(points)
		all = append(all, svg(plot.Points(f, points)))
	}
	return all
}

func costName(figure string) string {
	return map[string]string{"cost_micros": "money", "tokens": "tokens", "model_calls": "model calls", "latency_p50_ms": "time", "latency_ms": "time", "steps": "steps"}[figure]
}

// wide reports whether all costs are positive and span more than a decade.
func wide(points []plot.Point) bool {
	var xs []float64
	for _, p := range points {
		xs = append(xs, p.X)
	}
	return len(xs) > 1 && slices.Min(xs) > 0 && slices.Max(xs) > 10*slices.Min(xs)
}

// besidePlots draws each figure of all systems, one below the other.
func besidePlots(r answers.Report) []template.HTML {
	if len(r.Systems) < 2 {
		return nil
	}
	var names []string
	for _, s := range r.Systems {
		for _, f := range s.Figures {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	var all []template.HTML
	for _, name := range names {
		var rows []plot.Interval
		unit := ""
		inUnit := true
		for _, s := range r.Systems {
			f, found := findFigure(s, name)
			if !found {
				continue
			}
			unit = f.Unit
			inUnit = inUnit && f.Mean >= 0 && f.Mean <= 1
			rows = append(rows, plot.Interval{Name: named(s.Name), Value: f.Mean, Low: f.Low, High: f.High})
		}
		axis := plot.Axis{Label: unitName(unit)}
		if unit == "" {
			axis.Label = "share"
			if inUnit {
				axis.High = 1
			}
		}
		title := named(name)
		if m, known := metric.Lookup(name); known && m.Less {
			title += " (lower is better)"
		}
		all = append(all, svg(plot.Intervals(plot.Frame{Title: title, X: axis}, rows)))
	}
	return all
}

// differencePlots draws the paired differences between each system and those it is compared with.
// It takes the figures that are shares, largest difference first.
func differencePlots(r answers.Report) []template.HTML {
	var all []template.HTML
	for _, s := range r.Systems {
		byOther := map[string][]plot.Interval{}
		for _, d := range s.Against {
			if f, _ := findFigure(s, d.Figure); f.Unit == "" && unitOf(d.Figure) == "" && d.Cases > 0 {
				byOther[d.Other] = append(byOther[d.Other], plot.Interval{Name: named(d.Figure), Value: d.Mean, Low: d.Low, High: d.High})
			}
		}
		for _, other := range slices.Sorted(maps.Keys(byOther)) {
			rows := byOther[other]
			sort.SliceStable(rows, func(i, j int) bool { return rows[i].Value > rows[j].Value })
			f := plot.Frame{Title: named(s.Name) + " less " + named(other), X: plot.Axis{Label: "difference on the same questions, with 95% interval"}}
			all = append(all, svg(plot.Intervals(f, rows)))
		}
	}
	return all
}
