package eval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
)

// maxRetrieved is how many documents of its searches an outcome keeps.
const maxRetrieved = 100

// An inquiry is a case that was asked, with all that is known of how it went.
type inquiry struct {
	outcome *Outcome
	places  []goldPlace
	trail   trail
	steps   int
	elapsed time.Duration
}

// fill completes an outcome, but for what a judge has to say.
func (q *inquiry) fill() {
	o := q.outcome
	o.Contexts = q.contexts()
	for _, h := range q.trail.ranked() {
		if len(o.Retrieved) < maxRetrieved && !slices.Contains(o.Retrieved, h.URI) {
			o.Retrieved = append(o.Retrieved, h.URI)
		}
	}
}

// contexts are the passages that the generator was handed, and those that were found for
// what it wrote.
func (q *inquiry) contexts() []Context {
	var contexts []Context
	for _, ev := range q.trail.evidence() {
		h := ev.Hit
		contexts = append(contexts, Context{
			Number: ev.Number, Document: h.Chunk.Document, URI: h.URI, Start: h.Chunk.Start, End: h.Chunk.End, Text: h.Text,
			Gold: slices.ContainsFunc(q.places, func(p goldPlace) bool { return p.holdsHit(h) }),
			Cited: slices.ContainsFunc(q.outcome.Answer.Citations, func(c assay.Citation) bool {
				return c.Number == ev.Number
			}),
		})
	}
	return contexts
}

// input is what the measures know.
func (q *inquiry) input() metric.Input {
	o := q.outcome
	refused := o.Error == "" && refuses(o.Answer)
	in := metric.Input{
		Unanswerable: o.Unanswerable, Refused: refused, Failed: o.Error != "",
		Conflicting: o.Conflicting, SaidConflict: o.Answer.Status == assay.Conflicting,
		Answers: o.Answers,
	}
	in.Ranked, in.Relevant = q.ranking()
	if !refused {
		in.Text = said(o.Answer)
	}
	for _, c := range o.Contexts {
		in.Contexts = append(in.Contexts, metric.Context{Used: c.Cited, Relevant: c.Gold})
	}
	for _, p := range q.places {
		in.Expected = append(in.Expected, metric.Source{
			Held:  slices.ContainsFunc(q.trail.evidence(), func(ev assay.Evidence) bool { return p.holdsHit(ev.Hit) }),
			Cited: slices.ContainsFunc(o.Answer.Citations, p.holdsCitation),
		})
	}
	if o.Error == "" {
		u := o.Answer.Usage
		in.Spent = &metric.Spent{
			Steps: q.steps, Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostMicros: u.CostMicros, Elapsed: q.elapsed,
		}
	}
	return in
}

// ranking is what the measures of rankings go by: of each hit the gold that it holds and
// that none before it held, or else its document, or its passage where gold is smaller
// than a document.
func (q *inquiry) ranking() (ranked []string, relevant map[string]int) {
	if len(q.places) == 0 {
		return nil, nil
	}
	relevant = map[string]int{}
	byDocument := true
	for i, p := range q.places {
		relevant[goldName(i)] = p.grade
		byDocument = byDocument && p.whole()
	}
	seen := map[string]bool{}
	for _, h := range q.trail.ranked() {
		holds := false
		for i, p := range q.places {
			if !p.holdsHit(h) {
				continue
			}
			holds = true
			if name := goldName(i); !seen[name] {
				seen[name] = true
				ranked = append(ranked, name)
			}
		}
		name := h.Chunk.ID
		if byDocument {
			name = h.Chunk.Document
		}
		if !holds && !seen[name] {
			seen[name] = true
			ranked = append(ranked, name)
		}
	}
	return ranked, relevant
}

func goldName(i int) string { return fmt.Sprintf("gold %d", i) }

// refuses reports whether an answer says that the documents do not hold one.
func refuses(a assay.Answer) bool { return a.Status == assay.NotFound }

// decide says whether the outcome is right, and where it was lost where it is not. A case
// of which nothing is known is neither.
//
// Right is an unanswerable question that was refused; an answerable one that was answered,
// in full or in part, cites gold where there is some (all of it where all is needed), and
// says a right answer where one is known, by its words or, where a model has compared the
// two, by its word.
func (q *inquiry) decide() {
	o := q.outcome
	if !o.Labelled() {
		return
	}
	switch {
	case o.Error != "":
	case o.Unanswerable:
		o.Right = refuses(o.Answer)
	default:
		o.Right = !refuses(o.Answer) && len(o.Answer.Claims) > 0 && q.citesGold() && q.saysRight()
	}
	if !o.Right {
		o.Lost = o.lost(q.places, q.trail)
	}
}

// citesGold reports whether the answer cites what it has to rest on, as far as that is
// known.
func (q *inquiry) citesGold() bool {
	if len(q.places) == 0 {
		return true
	}
	cited := 0
	for _, p := range q.places {
		cited += one(slices.ContainsFunc(q.outcome.Answer.Citations, p.holdsCitation))
	}
	return cited == len(q.places) || cited > 0 && !q.outcome.AllGold
}

// rightFrom is the score from which a judge has found an answer correct.
const rightFrom = 0.5

// saysRight reports whether the answer says a right one, as far as one is known.
func (q *inquiry) saysRight() bool {
	o := q.outcome
	if len(o.Answers) == 0 {
		return true
	}
	if by := o.Judges["correctness"]; by != "" && !strings.HasPrefix(by, "local") {
		return o.Metrics["correctness"] >= rightFrom
	}
	return saysAny(said(o.Answer), o.Answers)
}

// judged is what a judge is given.
func (q *inquiry) judged(in metric.Input) judge.Input {
	o := q.outcome
	j := judge.Input{Question: o.Question, Answer: in.Text, References: o.Answers, Refused: in.Refused}
	at := map[int]int{} // index of a context by its number
	for i, ev := range q.trail.evidence() {
		at[ev.Number] = i
		heading := append([]string{ev.Hit.Title}, ev.Hit.Chunk.Headings...)
		j.Contexts = append(j.Contexts, ground.Passage{Quote: ev.Hit.Text, Context: ev.Hit.Text, Heading: heading})
	}
	for _, c := range o.Answer.Claims {
		if c.Start < 0 || c.Start > c.End || c.End > len(o.Answer.Text) {
			continue
		}
		claim := judge.Claim{Text: o.Answer.Text[c.Start:c.End]}
		for _, n := range c.Citations {
			if i, known := at[n]; known {
				claim.Cited = append(claim.Cited, i)
			} else {
				claim.Cited = append(claim.Cited, -1)
			}
		}
		j.Claims = append(j.Claims, claim)
	}
	for _, s := range in.Expected {
		j.Sources = append(j.Sources, s.Cited)
	}
	return j
}

// measure fills in the outcome's measures, and whether it is right, which is one of them.
func (q *inquiry) measure(in metric.Input, judged judge.Judgement) {
	o := q.outcome
	o.NotJudged, o.Judging = judged.NotJudged, judged.Usage
	o.Metrics = metric.Of(in)
	o.Judges = judged.Judges(o.Metrics)
	q.decide()
	if o.Labelled() {
		in.Right = &o.Right
		o.Metrics = metric.Of(in)
	}
}
