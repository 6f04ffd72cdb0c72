package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A report holds the results of a run.
type report struct {
	Command string    `json:"command"`
	Date    time.Time `json:"date"`
	Machine string    `json:"machine"`
	Load    string    `json:"load"` // load averages before and after
	Corpus  []origin  `json:"corpus"`
	Notes   []string  `json:"notes"`
	Parts   []*part   `json:"parts"`
}

// A part is one table.
type part struct {
	Title  string `json:"title"`
	About  string `json:"about"`
	First  string `json:"first"`  // header of the first column
	Values []cell `json:"values"` // in the order in which rows and columns appear
}

// A cell is one measured value.
type cell struct {
	Row     string    `json:"row"`
	Column  string    `json:"column"`
	Value   float64   `json:"value"`
	Unit    unit      `json:"unit"`
	Ratio   float64   `json:"ratio,omitempty"`   // to assay's value in the same row
	Queries int       `json:"queries,omitempty"` // answered in each round, if not all were
	Rounds  []float64 `json:"rounds,omitempty"`  // the values whose median this is
}

// A unit is the unit of a value.
type unit string

// The units.
const (
	milliseconds unit = "ms"
	seconds      unit = "s"
	megabytes    unit = "MB" // millions of bytes
	perSecond    unit = "/s"
	shareOf      unit = "share" // in [0, 1]
	times        unit = "times"
)

func (r *report) part(title, first, about string) *part {
	p := &part{Title: title, First: first, About: about}
	r.Parts = append(r.Parts, p)
	return p
}

func (p *part) add(row, column string, u unit, value float64) {
	p.Values = append(p.Values, cell{Row: row, Column: column, Value: value, Unit: u})
}

func (p *part) addDuration(row, column string, u unit, d time.Duration) {
	p.add(row, column, u, inUnit(d, u))
}

func inUnit(d time.Duration, u unit) float64 {
	if u == milliseconds {
		return d.Seconds() * 1000
	}
	return d.Seconds()
}

// addCosts adds a row of costs per query, each with its ratio to assay's, and reports them at once.
func (p *part) addCosts(row string, contenders []contender, costs []cost, queries int) {
	var ours time.Duration
	for i, c := range contenders {
		if c.engine == assayName {
			ours = costs[i].cpu
		}
	}
	for i, c := range contenders {
		v := cell{Row: row, Column: c.engine, Unit: milliseconds, Value: inUnit(costs[i].cpu, milliseconds)}
		if c.engine != assayName && ours > 0 {
			v.Ratio = float64(costs[i].cpu) / float64(ours)
		}
		if costs[i].queries < queries {
			v.Queries = costs[i].queries
		}
		for _, r := range costs[i].rounds {
			v.Rounds = append(v.Rounds, inUnit(r, milliseconds))
		}
		p.Values = append(p.Values, v)
		progress("    %s: %s", c.engine, v)
	}
}

// String formats a value for people.
func (c cell) String() string {
	var b strings.Builder
	switch c.Unit {
	case shareOf:
		fmt.Fprintf(&b, "%.3f", c.Value)
	case perSecond:
		fmt.Fprintf(&b, "%s/s", thousands(c.Value))
	case times:
		fmt.Fprintf(&b, "%.2f ×", c.Value)
	default:
		fmt.Fprintf(&b, "%s %s", threeDigits(c.Value), c.Unit)
	}
	var more []string
	if c.Ratio > 0 {
		more = append(more, "×"+twoDigits(c.Ratio))
	}
	if c.Queries > 0 {
		more = append(more, fmt.Sprintf("%d queries", c.Queries))
	}
	if len(more) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(more, ", "))
	}
	return b.String()
}

func threeDigits(v float64) string {
	switch {
	case v >= 100:
		return thousands(v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func twoDigits(v float64) string {
	switch {
	case v >= 10:
		return thousands(v)
	case v >= 1:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// markdown writes the report in the form used in docs/performance.md.
func (r *report) markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Command: `%s`, %s. %s. %s.\n\nCorpus: ", r.Command, r.Date.Format(time.DateOnly), r.Machine, r.Load)
	for i, o := range r.Corpus {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s from %s", thousands(float64(o.Chunks)), o.Place)
	}
	b.WriteString(".\n")
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n- %s", n)
	}
	b.WriteString("\n")
	for _, p := range r.Parts {
		p.markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *part) markdown(b *strings.Builder) {
	var rows, columns []string
	at := make(map[[2]string]string)
	for _, v := range p.Values {
		if !slices.Contains(rows, v.Row) {
			rows = append(rows, v.Row)
		}
		if !slices.Contains(columns, v.Column) {
			columns = append(columns, v.Column)
		}
		at[[2]string{v.Row, v.Column}] = v.String()
	}
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n| %s | %s |\n|%s\n", p.Title, p.About, p.First, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)+1))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |", row)
		for _, column := range columns {
			text := at[[2]string{row, column}]
			if text == "" {
				text = "–"
			}
			fmt.Fprintf(b, " %s |", text)
		}
		b.WriteString("\n")
	}
}
