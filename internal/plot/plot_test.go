package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// wellFormed fails a test if a plot is not valid XML or has an unexpected element or an invalid
// coordinate.
func wellFormed(t *testing.T, s SVG) {
	t.Helper()
	allowed := map[string]bool{"svg": true, "line": true, "rect": true, "circle": true, "path": true, "text": true, "title": true}
	d := xml.NewDecoder(strings.NewReader(string(s)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, s)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !allowed[start.Name.Local] {
			t.Errorf("a plot with an element %q", start.Name.Local)
		}
		for _, a := range start.Attr {
			if name := a.Name.Local; name != "aria-label" && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")) {
				t.Errorf("%s=%q", name, a.Value)
			}
			if name := a.Name.Local; strings.HasPrefix(name, "on") || name == "style" || name == "href" {
				t.Errorf("a plot with an attribute %s", name)
			}
		}
	}
}

// all returns one plot of each kind for the values.
func all(title, name string, values []float64) map[string]SVG {
	f := Frame{Title: title, X: Axis{Label: name}, Y: Axis{Label: "questions"}}
	log := f
	log.X.Log = true
	share := f
	share.X.High = 1
	named := f
	named.X.Names = []string{name, name, "b"}
	var bars []Bar
	var intervals []Interval
	var points []Point
	xs := make([]float64, len(values))
	for i, v := range values {
		xs[i] = float64(i)
		bars = append(bars, Bar{Name: name, Value: v})
		intervals = append(intervals, Interval{name, v, v - 1, v + 1})
		points = append(points, Point{Name: name, X: v, Y: v, Low: v - 1, High: v + 1, Size: v})
	}
	series := []Series{{Name: name, X: xs, Y: values}, {Name: "limit", X: xs, Y: values, Mark: true}, {Name: "x", X: xs}}
	return map[string]SVG{
		"histogram": Histogram(f, values), "log": Histogram(log, values), "share": Histogram(share, values),
		"bars": Bars(f, bars), "intervals": Intervals(f, intervals), "points": Points(f, points), "points log": Points(log, points),
		"lines": Lines(f, series), "lines of days": Lines(named, series), "no lines": Lines(f, nil),
	}
}

func TestWellFormed(t *testing.T) {
	thousand := make([]float64, 1000)
	for i := range thousand {
		thousand[i] = math.Sin(float64(i)) * float64(i)
	}
	for _, values := range [][]float64{
		nil, {0}, {1}, {-3}, {0.5, 0.5}, {math.NaN()}, {math.Inf(1), math.Inf(-1), 2}, {1e-300, 1e300}, {math.MaxFloat64, -math.MaxFloat64},
		{5e-324, 5e-324}, {0, 0, 0}, thousand,
	} {
		for _, name := range []string{"", "static", `<script>alert(1)</script>"'&]]>`, "a\x00b\u202ec\xff\x1b[0m", strings.Repeat("ü", 5000)} {
			for _, s := range all(name, name, values) {
				wellFormed(t, s)
			}
		}
	}
}

func FuzzPlots(f *testing.F) {
	f.Add("a\"<>", 1.0, 2.0, -3.0)
	f.Add("\u202e", math.Inf(1), 0.0, 1e-320)
	f.Fuzz(func(t *testing.T, name string, a, b, c float64) {
		for _, s := range all(name, name, []float64{a, b, c}) {
			wellFormed(t, s)
		}
	})
}

func TestTally(t *testing.T) {
	s := newScale(Axis{High: 1}, nil, false, 0, 100)
	got := tally(s, []float64{0, 0.05, 0.1, 0.3, 0.7, 0.95, 1, 1}, 10)
	want := []int{2, 1, 0, 1, 0, 0, 0, 1, 0, 3}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("tally = %v, want %v", got, want)
			break
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.25: "0.25", 1: "1", 12.34: "12.3", 1234: "1,234", -1234: "-1,234", 12345: "12.3k", 3.2e6: "3.2M", 0.004: "0.004", math.Inf(1): "–", -0.001: "-0.001",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestMarks(t *testing.T) {
	for _, test := range []struct {
		axis   Axis
		values []float64
		want   string
	}{
		{Axis{High: 1}, nil, "0 0.2 0.4 0.6 0.8 1"},
		{Axis{}, []float64{3, 97}, "0 20 40 60 80 100"},
		{Axis{Log: true}, []float64{3, 97}, "1 2 5 10 20 50 100"},
		{Axis{Log: true}, []float64{3, 9e5}, "1 10 100 1,000 10k 100k 1M"},
		{Axis{Names: []string{"Mon", "Tue"}}, nil, "Mon Tue"},
		{Axis{}, []float64{-0.02, 0.05}, "-0.02 0 0.02 0.04 0.06"},
	} {
		if got := strings.Join(newScale(test.axis, test.values, true, 0, 100).names, " "); got != test.want {
			t.Errorf("marks of %v over %v: %s, want %s", test.axis, test.values, got, test.want)
		}
	}
}

func TestEqualInputEqualBytes(t *testing.T) {
	first, second := all("a", "b", []float64{1, 2, 3}), all("a", "b", []float64{1, 2, 3})
	for name := range first {
		if first[name] != second[name] {
			t.Errorf("%s differs between two drawings", name)
		}
	}
}
