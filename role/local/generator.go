package local

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Generator answers with sentences of the evidence, verbatim, each citing where
// it stands: the one that holds most of what the question asks, then those that
// add to it. It writes nothing of its own.
type Generator struct{}

// The size of an answer to one part of a question.
const (
	maxSentences = 3
	maxWords     = 90
	maxAnnounced = 150 // words, where a list is brought along
	maxPerPart   = 2   // sentences for each part when there are several
)

// Generate implements role.Generator. It returns an error only when ctx has
// ended.
func (Generator) Generate(ctx context.Context, _ role.Caller, in role.GenerateInput) (role.Draft, error) {
	if err := ctx.Err(); err != nil {
		return role.Draft{}, err
	}
	limit := maxSentences
	if len(in.Parts) > 1 {
		limit = maxPerPart
	}
	draft := role.Draft{Statements: []role.Statement{}}
	said := map[string]bool{}
	for _, p := range in.Parts {
		q := read(p.Question, p.Terms)
		q.whole = in.Question
		var candidates []candidate
		for _, n := range p.Evidence {
			if n >= 1 && n <= len(in.Evidence) {
				candidates = append(candidates, candidatesOf(q, in.Evidence[n-1])...)
			}
		}
		picked := pick(q, candidates, limit)
		if open := q.open(p.Question, picked); open != "" {
			draft.Open = append(draft.Open, open)
		}
		for _, c := range picked {
			if key := strings.Join(strings.Fields(strings.ToLower(c.text)), " "); !said[key] {
				said[key] = true
				st := role.Statement{Text: c.text, Evidence: []int{c.number}, Item: c.kind == item && c.brought}
				if cells := rowCells(c.text); c.heads != nil && (draft.Columns == nil || slices.Equal(draft.Columns, c.heads)) {
					draft.Columns, st.Cells = c.heads, cells // a draft has one table
				}
				draft.Statements = append(draft.Statements, st)
			}
		}
	}
	return draft, nil
}

// open says what a question asks for by its first words, a date or a number, where nothing
// that was picked has one; empty: something has, or nothing was picked.
func (q question) open(text string, picked []candidate) string {
	w := wantOf(text)
	if w == somebody || w == anything || len(picked) == 0 || slices.ContainsFunc(picked, func(c candidate) bool { return w.in(c.text, q) }) {
		return ""
	}
	return fmt.Sprintf("%s: %s", w, text)
}

// A unit is what can be quoted by itself: a sentence, with its line breaks taken
// for blanks, a list item without its mark, a line of a table, a piece of code.
type unit struct {
	text  string
	kind  unitKind
	heads []string // of the columns of a table's row, where they are known
}

type unitKind int

const (
	prose unitKind = iota
	item           // of a list
	crumb          // a label, a word or two, the heads of a table
	code
)

// units cuts a hit's text into units.
func units(h assay.Hit) []unit {
	const minWords = 3
	var out []unit
	for _, sp := range sentence.Spans(h.Text) {
		text := h.Text[sp.Start:sp.End]
		if rows := rowsOf(h.Chunk.Kind, text); rows != nil {
			out = append(out, rowUnits(rows)...)
			continue
		}
		mark := itemMark.FindString(text)
		switch {
		case surface.Code(text):
			out = append(out, unit{text: text, kind: code})
		case mark != "":
			out = append(out, unit{text: oneLine(text[len(mark):]), kind: item})
		case len(surface.Words(text)) < minWords:
			out = append(out, unit{text: oneLine(text), kind: crumb})
		default:
			out = append(out, unit{text: oneLine(text), kind: prose})
		}
	}
	return out
}

// rowsOf cuts a piece of a table into its rows: a line each, or all the lines of a
// record that has its fields on lines of their own. It returns nil for what is
// not of a table.
func rowsOf(kind assay.ChunkKind, text string) []string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	inProse := len(lines) > 1 && !slices.ContainsFunc(lines, func(l string) bool { return !strings.Contains(l, " | ") })
	switch {
	case kind != assay.ChunkTable && !inProse:
		return nil
	case kind == assay.ChunkTable && !slices.ContainsFunc(lines, func(l string) bool { return !field.MatchString(l) }):
		return []string{strings.TrimSpace(text)}
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// rowUnits are the rows of a table as units. Heads are not quoted for themselves: they say
// nothing, and stand over each row instead.
func rowUnits(rows []string) []unit {
	var out []unit
	var heads []string
	if areHeads(rows) {
		heads = rowCells(rows[0])
		out, rows = append(out, unit{text: rows[0], kind: crumb}), rows[1:]
	}
	for _, row := range rows {
		u := unit{text: row}
		if len(heads) > 0 && len(rowCells(row)) == len(heads) {
			u.heads = heads
		}
		out = append(out, u)
	}
	return out
}

// areHeads reports whether the first of some rows is surely one of heads: it has no number,
// as each row below it has. A piece of a table may begin with any of its rows.
func areHeads(rows []string) bool {
	numbered := func(row string) bool { return strings.ContainsAny(row, "0123456789") }
	if len(rows) < 2 || len(rowCells(rows[0])) < 2 || numbered(rows[0]) || slices.Contains(rowCells(rows[0])[1:], "") {
		return false
	}
	return !slices.ContainsFunc(rows[1:], func(row string) bool { return !numbered(row) })
}

// rowCells are the cells of a row that is a line with bars.
func rowCells(row string) []string {
	cells := strings.Split(row, "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// field matches a line that is one field of a record.
var field = regexp.MustCompile(`^\s*[^\s:;|][^:;|]{0,60}: [^;|]*$`)

// itemMark matches the mark of a list item.
var itemMark = regexp.MustCompile(`^(?:[-*•+]|\d{1,2}[.)]|\(?[a-z]\))\s+`)

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// A candidate is a unit that may go into the answer.
type candidate struct {
	unit
	language string // of its document
	number   int    // of its evidence
	at       int    // its place among the units of its passage
	words    int
	held     map[string]bool // its terms
	near     map[string]bool // terms of the headings and title it stands under, and of a question right before it
	focus    float64         // share of the words of its heading that the question holds
	score    float64         // 0: not quoted for itself

	brought bool // by the sentence that announced it
}

// candidatesOf returns the units of one piece of evidence, scored. Code and
// crumbs are quoted for themselves only where there is nothing else.
func candidatesOf(q question, ev assay.Evidence) []candidate {
	h := ev.Hit
	near := stems(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title)...)
	heading := h.Title
	if hs := h.Chunk.Headings; len(hs) > 0 {
		heading = hs[len(hs)-1]
	}
	focus := surface.Focus(heading, h.Language, q.holds)
	us := units(h)
	bare := !slices.ContainsFunc(us, func(u unit) bool { return u.kind == prose || u.kind == item })
	var out []candidate
	for i, u := range us {
		c := candidate{
			unit:     u,
			language: h.Language,
			number:   ev.Number,
			at:       i,
			words:    len(surface.Words(u.text)),
			held:     stems(h.Language, u.text),
			near:     near,
			focus:    focus,
		}
		if u.heads != nil {
			c.near = stems(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title, strings.Join(u.heads, " "))...)
		}
		if i > 0 && strings.HasSuffix(us[i-1].text, "?") { // the entry of a list of questions
			c.near = stems(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title, us[i-1].text)...)
			c.focus = max(c.focus, surface.Focus(us[i-1].text, h.Language, q.holds))
		}
		if bare || u.kind == prose || u.kind == item {
			c.score = score(q, c) * h.Scores.Relevance
		}
		out = append(out, c)
	}
	return out
}

// pick returns the best candidate and then, up to limit, the one that adds most
// each time: terms of the question that are still open, or what follows a picked
// one. What announces a list or code (it ends in a colon) brings it along.
// They are ordered as they were picked, but those of one passage in the
// passage's order.
func pick(q question, candidates []candidate, limit int) []candidate {
	var picked []candidate
	held := map[string]bool{}
	words := 0
	take := func(c candidate) {
		picked = append(picked, c)
		words += c.words
		for stem := range c.held {
			held[stem] = true
		}
	}
	for range limit {
		best, bestGain := -1, 0.0
		for i, c := range candidates {
			if words > 0 && words+c.words > maxWords || isPicked(picked, c) {
				continue
			}
			if gain := gain(q, c, held, picked); gain > bestGain {
				best, bestGain = i, gain
			}
		}
		if best < 0 {
			break
		}
		take(candidates[best])
		for _, c := range namers(candidates, best) {
			if !isPicked(picked, c) && words+c.words <= maxWords {
				take(c)
			}
		}
		for _, c := range alikeRows(q, candidates[best], candidates) {
			if !isPicked(picked, c) {
				c.brought = true
				take(c)
			}
		}
		if strings.HasSuffix(candidates[best].text, ":") {
			for _, c := range announced(candidates[best+1:]) {
				if !isPicked(picked, c) && words+c.words <= maxAnnounced {
					c.brought = true
					take(c)
				}
			}
		}
	}
	rank := map[int]int{}
	for i, c := range picked {
		if _, known := rank[c.number]; !known {
			rank[c.number] = i
		}
	}
	slices.SortStableFunc(picked, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank[a.number], rank[b.number]), cmp.Compare(a.at, b.at))
	})
	return picked
}

func isPicked(picked []candidate, c candidate) bool {
	return slices.ContainsFunc(picked, func(p candidate) bool { return p.number == c.number && p.at == c.at })
}

// pronounFirst is a sentence of which only what stands before it says whom it is about.
var pronounFirst = regexp.MustCompile(`^(?:(?:He|She|They|It|His|Her|Their|Its)\b|(?:Er|Sie|Es|Ihr|Il|Elle|Ils|Elles) )`)

// nobodysIt is an "it" that stands for nobody: "It is possible to …".
var nobodysIt = regexp.MustCompile(`^It (?:is|was|would be|will be|may be|can be|takes|seems|follows) (?:[^,;.]* )?(?:to|that|whether|if|when) `)

// mostBefore is how many sentences come along to say whom a pronoun stands for.
const mostBefore = 2

// namers returns the sentences before a candidate that begins with a pronoun, back to the
// one that does not: what is quoted has to say whom it is about. nil where that is too far
// away, or is no sentence.
func namers(candidates []candidate, at int) []candidate {
	var before []candidate
	for i := at; ; i-- {
		c := candidates[i]
		if c.kind != prose || c.heads != nil || i < at && (c.number != candidates[at].number || c.at != candidates[i+1].at-1) {
			return nil
		}
		if i < at {
			before = append(before, c)
		}
		if !pronounFirst.MatchString(c.text) || nobodysIt.MatchString(c.text) {
			return before
		}
		if i == 0 || len(before) == mostBefore {
			return nil
		}
	}
}

// alikeRows returns the rows of a table that a question asks for as much as for one of
// them, where it tells none of the table's rows from the others ("What do the plans
// cost?"); nil where it does, and where they are too many to be shown.
func alikeRows(q question, row candidate, candidates []candidate) []candidate {
	if row.heads == nil {
		return nil
	}
	var rows []candidate
	words := 0
	for _, c := range candidates {
		if c.number != row.number || !slices.Equal(c.heads, row.heads) {
			continue
		}
		for _, t := range q.terms {
			if holdsTerm(c.held, t) != holdsTerm(row.held, t) {
				return nil
			}
		}
		rows, words = append(rows, c), words+c.words
	}
	if words > maxAnnounced {
		return nil
	}
	return rows
}

// announced returns what the sentence before rest announces: the items of a
// list, or the one unit that follows. rest goes on into other passages.
func announced(rest []candidate) []candidate {
	n := 0
	for n < len(rest) && rest[n].number == rest[0].number && rest[n].at == rest[0].at+n && (n == 0 || rest[n].kind == item) {
		n++
		if rest[0].kind != item {
			break
		}
	}
	return rest[:n]
}

// A further sentence must add minGain, score minShare of what the first does, and
// not stand before it in its passage, to be worth reading. The sentence right
// after the first is, and so is one that scores almostShare of the first, before
// it or in another passage: over eight golden sets that cites a right section for
// 169 of 200 questions, 162 without it. At 0.75 it would be 171, with more that
// does not belong.
const (
	minGain     = 0.15
	minShare    = 0.5
	almostShare = 0.85
)

// gain is what a candidate adds to what was picked.
func gain(q question, c candidate, held map[string]bool, picked []candidate) float64 {
	if len(picked) == 0 {
		return c.score
	}
	first := picked[0]
	almost := c.score >= almostShare*first.score
	if c.number == first.number && c.at < first.at && !almost || c.kind == code || c.kind == crumb {
		return 0
	}
	open := 0.0
	for _, t := range q.terms {
		if holdsTerm(c.held, t) && !holdsTerm(held, t) {
			open += t.Weight
		}
	}
	g := 0.0
	if all := q.weight(); all > 0 {
		g = open / all
	}
	follows := c.heads == nil && slices.ContainsFunc(picked, func(p candidate) bool { return p.number == c.number && c.at == p.at+1 })
	if follows {
		g += 0.1 + c.score/4 // goes on where a picked one ended
	}
	if follows && len(picked) == 1 && strings.HasSuffix(c.text, ".") {
		return max(g, minGain)
	}
	known := slices.ContainsFunc(picked, func(p candidate) bool { return p.number == c.number })
	if almost && (!known || c.at < first.at) {
		return max(g, minGain)
	}
	if g < minGain || c.score < minShare*first.score {
		return 0
	}
	return g
}
