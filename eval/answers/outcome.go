package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
)

// maxRetrieved is the number of retrieved documents that an outcome keeps.
const maxRetrieved = 100

// An inquiry is a case with the record of its run.
type inquiry struct {
	outcome *Outcome
	places  []goldPlace
	trail   trail
	steps   int
	elapsed time.Duration
}

// fill completes the retrieved documents and contexts of the outcome.
func (q *inquiry) fill() {
	o := q.outcome
	o.Contexts = q.contexts()
	for _, h := range q.trail.ranked() {
		if len(o.Retrieved) < maxRetrieved && !slices.Contains(o.Retrieved, h.URI) {
			o.Retrieved = append(o.Retrieved, h.URI)
		}
	}
}

// contexts returns the passages that the generator was given, and those that were found afterwards
// for its claims.
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

// input returns the input of the measures.
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
		in.Text = metric.Said(o.Answer)
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
			Steps: q.steps, Searches: len(q.trail.searches), Iterations: eval.Iterations(q.trail.paths), Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostMicros: u.CostMicros, Elapsed: q.elapsed,
		}
	}
	return in
}

// ranking returns the ranking that the measures use. Each hit becomes the gold places that it
// contains and no earlier hit does. A hit without gold becomes its document, or its chunk if gold
// is smaller than a document.
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

// A Ranker converts the hits of one search to a ranking and the grades of its relevant members, for
// the measures of package metric.
type Ranker func(hits []assay.Hit) (ranked []string, relevant map[string]int)

// Ranker returns the Ranker of a case.
func (l *Library) Ranker(ctx context.Context, c testset.Case) (Ranker, error) {
	places, err := l.places(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(hits []assay.Hit) ([]string, map[string]int) {
		q := inquiry{places: places, trail: trail{searches: [][]assay.Hit{hits}}}
		return q.ranking()
	}, nil
}

func goldName(i int) string { return fmt.Sprintf("gold %d", i) }

// refuses reports whether an answer states that the documents do not have one.
func refuses(a assay.Answer) bool { return a.Status == assay.NotFound }

// decide sets whether the outcome is right and, if not, at which stage it was lost. It leaves
// unlabelled cases undecided.
//
// An unanswerable question is right if it was refused. An answerable one is right if it was
// answered, in full or in part, cites gold if the case has any (all of it if AllGold), and agrees
// with a reference answer if the case has one. Agreement is by words, or by the judge if a model
// judged correctness.
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

// citesGold reports whether the answer cites the required gold, or the case has none.
func (q *inquiry) citesGold() bool {
	if len(q.places) == 0 {
		return true
	}
	cited := 0
	for _, p := range q.places {
		cited += stat.One(slices.ContainsFunc(q.outcome.Answer.Citations, p.holdsCitation))
	}
	return cited == len(q.places) || cited > 0 && !q.outcome.AllGold
}

// rightFrom is the correctness score from which an answer counts as correct.
const rightFrom = 0.5

// saysRight reports whether the answer agrees with a reference answer, or the case has none.
func (q *inquiry) saysRight() bool {
	o := q.outcome
	if len(o.Answers) == 0 {
		return true
	}
	if by := o.Judges["correctness"]; by != "" && !strings.HasPrefix(by, "local") {
		return o.Metrics["correctness"] >= rightFrom
	}
	return metric.SaysAny(metric.Said(o.Answer), o.Answers)
}

// judged returns the input of a judge.
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

// measure sets the measures of the outcome and decides whether it is right, which is one of them.
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
