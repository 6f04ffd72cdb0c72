package local

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// Analyst sorts sentences of the evidence, verbatim, by the part of the question that
// they speak of; of a question in one part by the section that they stand in. What is
// open is what of the question's words, names first, none of them has.
type Analyst struct{}

// maxAnalysed is how many sentences the analysis of one part of a question has at most:
// the best, down to half (minShare) of what the first one scores.
const maxAnalysed = 8

// Analyse implements role.Analyst. It returns an error only when ctx has ended.
func (Analyst) Analyse(ctx context.Context, c role.Caller, in role.Reading) (role.Analysis, error) {
	plan, err := Planner{}.Plan(ctx, c, in.Question)
	if err != nil {
		return role.Analysis{}, err
	}
	out := role.Analysis{Categories: []role.Category{}, Answered: []string{}, Open: []string{}}
	for _, part := range spelledOut(plan) {
		q := read(part.Text, nil)
		q.whole = in.Question
		said := saying(q, in.Evidence)
		var texts []string
		for _, s := range said {
			name := part.Text
			if len(plan.SubQuestions) == 1 {
				name = sectionOf(s.hit)
			}
			out.Categories = sorted(out.Categories, name, s.candidate)
			texts = append(texts, under(s.hit, s.text))
		}
		c := covered(q, texts)
		switch {
		case len(said) == 0:
			out.Open = append(out.Open, part.Text)
		case c.lacks != anything:
			out.Open = append(out.Open, string(c.lacks)+" for: "+part.Text)
		default:
			out.Answered = append(out.Answered, part.Text)
		}
		if len(said) > 0 {
			out.Open = append(out.Open, c.missing...)
		}
	}
	return out, nil
}

// A said is a sentence of the evidence and the hit that it is of.
type said struct {
	candidate
	hit assay.Hit
}

// saying returns the sentences of the evidence that speak of a question, the best first,
// each once.
func saying(q question, evidence []assay.Evidence) []said {
	var all []said
	for _, ev := range evidence {
		for _, c := range candidatesOf(q, ev) {
			same := func(s said) bool { return strings.EqualFold(s.text, c.text) }
			if c.score > 0 && !slices.ContainsFunc(all, same) {
				all = append(all, said{c, ev.Hit})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(b.score, a.score) })
	for i, s := range all {
		if i == maxAnalysed || s.score < minShare*all[0].score {
			return all[:i]
		}
	}
	return all
}

// sorted returns the categories with a statement in the one of that name.
func sorted(categories []role.Category, name string, c candidate) []role.Category {
	at := slices.IndexFunc(categories, func(k role.Category) bool { return k.Name == name })
	if at < 0 {
		at = len(categories)
		categories = append(categories, role.Category{Name: name})
	}
	categories[at].Statements = append(categories[at].Statements, role.Statement{Text: c.text, Evidence: []int{c.number}})
	return categories
}

// sectionOf names where a hit stands: its last heading, its document's title, or where
// that is.
func sectionOf(h assay.Hit) string {
	if n := len(h.Chunk.Headings); n > 0 && h.Chunk.Headings[n-1] != "" {
		return h.Chunk.Headings[n-1]
	}
	return cmp.Or(h.Title, h.URI)
}
