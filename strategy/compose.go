package strategy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// compose writes the answer from the claims that the verifier supported.
func (e Env) compose(strategy string, found []finding, parts []role.Part, w writing) assay.Answer {
	draft, supported := w.draft, w.supported()
	a := base(strategy, e.Question, found)
	a.Notes = w.remarks(a.Notes)
	a.Status = assay.Answered
	write(&a, draft, supported)
	slices.SortStableFunc(a.Citations, func(x, y assay.Citation) int {
		return cmp.Or(cmp.Compare(x.Claim, y.Claim), cmp.Compare(x.Number, y.Number), cmp.Compare(x.Start, y.Start))
	})

	grounded := make([]bool, len(parts)) // sub-questions that some claim rests on
	closed := make([]bool, len(parts))   // and whose evidence suffices
	for i, p := range parts {
		grounded[i] = slices.ContainsFunc(supported, func(c checkedClaim) bool { return c.restsOn(p) })
		closed[i] = grounded[i] && found[i].grade.Verdict == assay.Sufficient && found[i].asked == "" // of whom it speaks is certain
	}
	open := 0
	for i := range parts {
		if closed[i] || slices.ContainsFunc(found[i].serves, func(j int) bool { return closed[j] }) {
			continue // it has its answer, or was a step to one that has
		}
		open++
		lacks := found[i].grade.Missing
		if !grounded[i] || len(lacks) == 0 {
			lacks = []string{asked(e.Question).line(found[i].spoken())}
		}
		a.Missing = more(a.Missing, lacks...)
	}
	a.Missing = more(a.Missing, draft.Open...)
	failed := failures(w.checked)
	a.Justification = fmt.Sprintf("%s supported by the cited words", count(len(supported), "statement is", "statements are"))
	if n := len(w.checked) - len(supported); n > 0 {
		a.Justification += fmt.Sprintf("; %s not and left out", count(n, "was", "were"))
	}
	if failed > 0 {
		a.Justification += fmt.Sprintf(" (at %d of them the verifier failed)", failed)
	}
	switch {
	case open == 0 && w.torn():
		a.Status = assay.Incomplete
		a.Justification += "; a list, a table or a conflict is not whole without what is left out."
	case open == 0 && (failed > 0 || draft.Failure != "" || len(draft.Open) > 0):
		a.Status = assay.Incomplete
		a.Justification += "; the question may not be fully answered."
	case open > 0:
		a.Status = assay.Incomplete
		if len(parts) == 1 {
			a.Justification += "; the question is not fully answered."
		} else {
			a.Justification += fmt.Sprintf("; %d of %d parts are not fully answered.", open, len(parts))
		}
	default:
		a.Justification += "; the evidence was graded sufficient."
	}
	// Documents that disagree about something else than what was asked leave that open.
	answers := (open < len(parts) || !e.Clarify) && !e.eachForItself
	if x, y, ok := w.conflict(supported, surface.Labels(e.Question)); ok && answers {
		a.Status = assay.Conflicting
		a.Justification = fmt.Sprintf("The documents disagree: statements %d and %d contradict each other.", x+1, y+1)
	} else if x, y, ok := declared(draft, supported); ok && answers {
		a.Status = assay.Conflicting
		a.Justification = fmt.Sprintf("The documents disagree, by the generator's word: statements %d and %d, each supported by what it cites, cannot both hold.", x+1, y+1)
	}
	elsewhere(&a)
	return a
}

// declared returns the first two claims, by index, that are cut from statements which
// the draft says cannot both hold. One that rests on nothing but what the other rests
// on takes no side.
func declared(draft role.Draft, claims []checkedClaim) (i, j int, found bool) {
	of := func(statement int) func(checkedClaim) bool {
		return func(c checkedClaim) bool { return c.statement == statement && statement >= 0 }
	}
	for _, pair := range draft.Conflicts {
		i, j = slices.IndexFunc(claims, of(pair[0])), slices.IndexFunc(claims, of(pair[1]))
		if i >= 0 && j >= 0 && i != j && claims[i].citesMore(claims[j]) && claims[j].citesMore(claims[i]) {
			return min(i, j), max(i, j), true
		}
	}
	return 0, 0, false
}

// citesMore reports whether c cites words that other does not.
func (c checkedClaim) citesMore(other checkedClaim) bool {
	return slices.ContainsFunc(c.cited, func(a assay.Citation) bool {
		return !slices.ContainsFunc(other.cited, func(b assay.Citation) bool {
			return a.Document == b.Document && a.Start < b.End && b.Start < a.End
		})
	})
}

// conflict returns the first two claims, by index, that rest on different
// documents and cannot both hold. A model has read what it wrote: of two claims of its
// own it is the one to declare that.
func (w writing) conflict(claims []checkedClaim, about []string) (i, j int, found bool) {
	for i := range claims {
		for j := i + 1; j < len(claims); j++ {
			if w.byModel && claims[i].statement >= 0 && claims[j].statement >= 0 {
				continue
			}
			shared := slices.ContainsFunc(claims[i].cited, func(c assay.Citation) bool { return claims[j].cites(c.Document) })
			if !shared && !(w.siblings && claims[i].allApart(claims[j].cited)) && w.opposed(claims[i], claims[j].placed(), about) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// opposed reports whether a claim and a statement cannot both hold. What is not said in
// nearly the same words is looked at where the claim begins the answer or bears on the
// question: documents may disagree about all else.
func (w writing) opposed(c checkedClaim, other ground.Placed, about []string) bool {
	a := c.placed()
	if w.siblings && ground.Opposed(a.Text, other.Text, about) || !w.siblings && ground.Contrary(a.Text, other.Text, about) {
		return true
	}
	return w.asked != "" && (c.statement == 0 || ground.Bears(a, w.asked)) && ground.Disputed(a, other, w.asked)
}

// placed is a claim with the headings of what it cites first.
func (c checkedClaim) placed() ground.Placed {
	p := ground.Placed{Text: c.Alone()}
	if len(c.cited) > 0 {
		p.Headings = append([]string{c.cited[0].Title}, c.cited[0].Heading...)
	}
	return p
}

// headingsOf are a hit's title and the headings that it stands under.
func headingsOf(h assay.Hit) []string { return append([]string{h.Title}, h.Chunk.Headings...) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// base is an answer with what every status reports: what was searched, how
// often, and why that stopped.
func base(strategy, question string, found []finding) assay.Answer {
	a := assay.Answer{
		Question:  question,
		Strategy:  strategy,
		Claims:    []assay.Claim{},
		Citations: []assay.Citation{},
		Missing:   []string{},
		Searched:  []assay.Searched{},
		Closest:   []assay.Closest{},
	}
	var all notes
	for _, f := range found {
		all.join(f.notes)
	}
	a.Notes, a.Index = all.list(), all.index
	for _, f := range found {
		a.Searched = append(a.Searched, f.searched...)
		a.Iterations += f.iterations
		if held := f.grade.Held; held != nil && (a.Held == nil || *held > *a.Held) {
			a.Held = held
		}
		// The first sub-question that did not end well says why the run stopped.
		if a.Stop == "" || a.Stop == assay.StopSufficient {
			a.Stop = f.stop
		}
	}
	return a
}

// notFound is the answer when the documents do not hold one: what was searched
// and what came closest.
func notFound(strategy, question string, found []finding) assay.Answer {
	const closest = 3
	a := base(strategy, question, found)
	a.Status = assay.NotFound
	a.Text = "Not found in these documents."
	seen := map[string]bool{}
	var hits []assay.Hit
	top := 0.0
	for _, f := range found {
		if len(f.grade.Missing) == 0 {
			a.Missing = more(a.Missing, asked(question).line(f.spoken()))
		}
		a.Missing = more(a.Missing, f.grade.Missing...)
		for _, h := range f.hits[:min(len(f.hits), closest)] {
			top = max(top, h.Scores.Relevance)
			if !seen[h.Chunk.ID] {
				seen[h.Chunk.ID] = true
				hits = append(hits, h)
			}
		}
	}
	slices.SortStableFunc(hits, byRelevance)
	for _, h := range hits[:min(len(hits), closest)] {
		heading := h.Chunk.Headings
		if heading == nil {
			heading = []string{}
		}
		a.Closest = append(a.Closest, assay.Closest{
			URI: h.URI, Title: h.Title, Heading: heading, Line: h.Line,
			Relevance: h.Scores.Relevance, Quote: opening(h.Text),
		})
	}
	ungraded := slices.IndexFunc(found, func(f finding) bool { return f.grade.Failure != "" })
	switch {
	case slices.ContainsFunc(found, func(f finding) bool { return f.cutShort() }):
		// Not having searched to the end is not the same as not having found.
		a.Status = assay.Incomplete
		a.Text = "Not answered: the run ended before the documents were searched to the end."
		a.Justification = fmt.Sprintf("The run was cut short (%s).", a.Stop)
		if i := slices.IndexFunc(found, func(f finding) bool { return f.stop == a.Stop && f.lacked != "" }); i >= 0 {
			a.Justification = fmt.Sprintf("The run was cut short (%s: %s).", a.Stop, found[i].lacked)
		}
	case ungraded >= 0 && len(hits) > 0:
		// Nor is not having been able to judge what was found.
		a.Status = assay.Incomplete
		a.Text = "Not answered: what was found could not be graded."
		a.Justification = "The grader failed: " + remark(found[ungraded].grade.Failure)
	case len(hits) == 0:
		a.Justification = "No passage holds any of the question's words."
	default:
		a.Justification = fmt.Sprintf("No passage answers the question; the closest has relevance %.2f.", top)
		if held := unlikely(found); held != "" {
			a.Justification = "No passage answers the question: " + held + "."
		}
	}
	return a
}

// unlikely says how likely the passages hold the answer, of the finding for which that is
// likeliest; empty: a finding that is no step to another was not judged by that.
func unlikely(found []finding) string {
	var best *finding
	for i, f := range found {
		if f.grade.Held == nil && len(f.serves) > 0 {
			continue
		}
		if f.grade.Held == nil || f.sufficient() {
			return ""
		}
		if best == nil || *f.grade.Held > *best.grade.Held {
			best = &found[i]
		}
	}
	if best == nil {
		return ""
	}
	return remark(best.grade.Reason)
}

// opening returns the first words of a passage, for people.
func opening(text string) string {
	const maxRunes = 200
	text = strings.Join(strings.Fields(text), " ")
	n := 0
	for i := range text {
		if n == maxRunes {
			if space := strings.LastIndexByte(text[:i], ' '); space > 0 {
				i = space
			}
			return text[:i] + " …"
		}
		n++
	}
	return text
}
