package ui

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// A diffSpan is a part of two texts that both have, or only one of them.
type diffSpan struct {
	Only string // "a", "b", or "" for both
	Text string
}

// maxDiffCells bounds the table of a comparison. Longer texts are compared at their ends only.
const maxDiffCells = 1 << 20

// diffWords compares two texts by words.
func diffWords(a, b string) []diffSpan { return diffParts(wordsWithSpace(a), wordsWithSpace(b)) }

// wordsWithSpace divides a text into words, each with the space after it.
func wordsWithSpace(text string) []string {
	var words []string
	start, inSpace := 0, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if inSpace && !space {
			words = append(words, text[start:i])
			start = i
		}
		inSpace = space
	}
	if start < len(text) {
		words = append(words, text[start:])
	}
	return words
}

// diffParts compares two lists by a longest common subsequence of their middle parts.
func diffParts(a, b []string) []diffSpan {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var d diffBuilder
	d.add("", a[:head]...)
	d.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	d.add("", a[len(a)-tail:]...)
	return d.spans
}

// A diffBuilder joins parts of the same side.
type diffBuilder struct{ spans []diffSpan }

func (d *diffBuilder) add(only string, parts ...string) {
	if len(parts) == 0 {
		return
	}
	text := strings.Join(parts, "")
	if n := len(d.spans); n > 0 && d.spans[n-1].Only == only {
		d.spans[n-1].Text += text
		return
	}
	d.spans = append(d.spans, diffSpan{only, text})
}

func (d *diffBuilder) middle(a, b []string) {
	if len(a)*len(b) > maxDiffCells {
		d.add("a", a...)
		d.add("b", b...)
		return
	}
	longest := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			d.add("", a[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			d.add("a", a[i])
			i++
		default:
			d.add("b", b[j])
			j++
		}
	}
	d.add("a", a[i:]...)
	d.add("b", b[j:]...)
}

// diffContext is how many equal lines are shown around a difference of JSON.
const diffContext = 2

// diffJSON compares two values by the lines of their indented form. Equal lines far from a difference
// are left out.
func diffJSON(a, b json.RawMessage) []diffSpan {
	spans := diffParts(jsonLines(a), jsonLines(b))
	for i, s := range spans {
		if s.Only != "" {
			spans[i].Text = cut(s.Text, inlineStep.text*4)
			continue
		}
		lines := strings.SplitAfter(strings.TrimSuffix(s.Text, "\n"), "\n")
		before, after := diffContext, diffContext
		if i == 0 {
			before = 0
		}
		if i == len(spans)-1 {
			after = 0
		}
		if len(lines) <= before+after+1 {
			continue
		}
		kept := slices.Concat(lines[:before], []string{"…\n"}, lines[len(lines)-after:])
		spans[i].Text = strings.TrimSuffix(strings.Join(kept, ""), "\n") + "\n"
	}
	return spans
}

func jsonLines(data json.RawMessage) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.SplitAfter(string(indented(data))+"\n", "\n")
}

// A diffChoice is a run to compare with.
type diffChoice struct {
	engine.RunSummary
	Why string
}

// maxDiffChoices is the most runs to choose from.
const maxDiffChoices = 50

// A diffChooser is the data of the page that asks for the other run.
type diffChooser struct {
	runHead
	Runs  []diffChoice
	More  int
	Other string
	Error string
}

// IsChoice reports that the page asks for the other run.
func (diffChooser) IsChoice() bool { return true }

func chooseDiff(q *request) error {
	r, steps, err := q.session.Run(q.ctx(), q.path("id"))
	if err != nil {
		return err
	}
	head, err := headOf(r, steps, "diff")
	if err != nil {
		return err
	}
	p := diffChooser{runHead: head, Other: strings.TrimSpace(q.query("other"))}
	if p.Other != "" {
		_, _, err := q.session.Run(q.ctx(), p.Other)
		if err == nil {
			return q.redirect(runPath(r.ID)+"/diff/"+url.PathEscape(p.Other), "")
		}
		if !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		p.Error = "There is no run of yours with this ID."
	}
	all, err := q.session.Runs(q.ctx(), 0)
	if err != nil {
		return err
	}
	p.choose(all)
	return q.render("diff.html", q.view("", "Compare runs", p))
}

// choose lists the runs with the same question, the forks and the run that this is a fork of.
func (p *diffChooser) choose(all []engine.RunSummary) {
	of := func(s engine.RunSummary) string {
		if s.ForkedFrom == nil {
			return ""
		}
		return s.ForkedFrom.Run
	}
	for _, s := range all {
		why := ""
		switch {
		case s.ID == p.Run.ID || s.Describing:
			continue
		case of(s) == p.Run.ID:
			why = "fork of this run"
		case p.Forks() && p.Request.ForkedFrom.Run == s.ID:
			why = "this run is its fork"
		case s.Question == p.Run.Question:
			why = "same question"
		default:
			continue
		}
		if len(p.Runs) == maxDiffChoices {
			p.More++
			continue
		}
		p.Runs = append(p.Runs, diffChoice{s, why})
	}
}

// A diffPage is the data of the comparison of two runs.
type diffPage struct {
	runHead
	Other  runHead
	Answer []diffSpan // by words; nil: equal
	Fields []diffField
	First  *diffStep // the first step that differs
	Steps  []diffStep
	Count  int // steps that differ
	Same   int
}

// Equal reports whether the two runs do not differ.
func (p diffPage) Equal() bool { return len(p.Fields) == 0 && p.Count == 0 && p.Answer == nil }

// IsChoice reports that the page asks for the other run.
func (diffPage) IsChoice() bool { return false }

// A diffField is a field that differs.
type diffField struct {
	Of, Name string
	Spans    []diffSpan
}

// A diffStep is a step that differs.
type diffStep struct {
	kindWords
	Path, Scope string
	A, B        *stepRow
	Differs     string
	Input       []diffSpan
	Output      []diffSpan
}

// maxDiffSteps is the most steps that a comparison shows.
const maxDiffSteps = 100

func showDiff(q *request) error {
	a, b := q.path("id"), q.path("other")
	d, err := q.session.Diff(q.ctx(), a, b)
	if err != nil {
		return err
	}
	p := diffPage{Same: d.Same, Count: len(d.Steps)}
	var lines [2]timeLine
	for i, id := range []string{a, b} {
		r, steps, err := q.session.Run(q.ctx(), id)
		if err != nil {
			return err
		}
		head, err := headOf(r, steps, "diff")
		if err != nil {
			return err
		}
		lines[i] = newTimeLine(steps)
		if i == 0 {
			p.runHead = head
		} else {
			p.Other = head
		}
	}
	p.fields(d)
	for _, s := range d.Steps[:min(len(d.Steps), maxDiffSteps)] {
		p.Steps = append(p.Steps, diffStepOf(s, lines))
	}
	if len(p.Steps) > 0 {
		p.First = &p.Steps[0]
	}
	v := q.view("", "Compare runs", p)
	v.Wide = true
	return q.render("diff.html", v)
}

// fields sets the fields that differ. The text of the answer is compared by words.
func (p *diffPage) fields(d engine.RunDiff) {
	for _, f := range d.Fields {
		if f.Of == "answer" && f.Name == "text" {
			var a, b string
			if json.Unmarshal(orNull(f.A), &a) == nil && json.Unmarshal(orNull(f.B), &b) == nil {
				p.Answer = diffWords(a, b)
				continue
			}
		}
		p.Fields = append(p.Fields, diffField{f.Of, fieldWords(f.Name), diffJSON(f.A, f.B)})
	}
}

func orNull(data json.RawMessage) json.RawMessage {
	if data == nil {
		return json.RawMessage("null")
	}
	return data
}

func diffStepOf(s engine.StepDiff, lines [2]timeLine) diffStep {
	scope, _ := scopeOf(s.Path)
	out := diffStep{Path: s.Path, Scope: scopeWords(scope), Differs: strings.Join(s.Differs, ", ")}
	for i, side := range []*engine.Step{s.A, s.B} {
		if side == nil {
			continue
		}
		row := newStepRow(*side, lines[i], inlineStep)
		out.kindWords = row.kindWords
		if i == 0 {
			out.A = &row
		} else {
			out.B = &row
		}
	}
	if out.A != nil && out.B != nil {
		if slices.Contains(s.Differs, "input") {
			out.Input = diffJSON(s.A.Input, s.B.Input)
		}
		if slices.Contains(s.Differs, "output") {
			out.Output = diffJSON(s.A.Output, s.B.Output)
		}
	}
	return out
}
