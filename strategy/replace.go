package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Limits of the search for a sentence to replace a refused statement.
const (
	maxReplaced = 8 // statements replaced

	// leastNear is how near a sentence has to be to the statement: by the content words that
	// they share, or by the probability that one entails the other or the sentence
	// contradicts the statement. The reader reads only sentences that share some words, from
	// leastRead on.
	leastNear = 0.7
	leastRead = 0.3

	// leastAnswers is the least probability that the sentence answers the question.
	leastAnswers = 0.5
)

// A replacement is a refused statement with the nearest sentence of its sources, which is the bytes
// [Start, End) of Cited[Passage].Context.
type replacement struct {
	Claim   string           `json:"claim"`
	Cited   []ground.Passage `json:"cited"`
	Passage int              `json:"passage"` // -1: no sentence is near enough
	Start   int              `json:"start"`
	End     int              `json:"end"`
}

// text returns the sentence.
func (r replacement) text() string { return r.Cited[r.Passage].Context[r.Start:r.End] }

// heading returns the headings of the sentence.
func (r replacement) heading() string { return strings.Join(r.Cited[r.Passage].Heading, " > ") }

// replaceInput is the recorded input of the step.
type replaceInput struct {
	Question string        `json:"question"`
	Refused  []replacement `json:"refused"`
}

// replaceOutput is the recorded output of the step.
type replaceOutput struct {
	Refused []replacement `json:"refused"`
	Failure string        `json:"failure,omitempty"`
}

// replace adds a sentence of the source for each refused statement of a model: the sentence of its
// cited passages that is nearest to it, if it is near enough and answers the question. Other
// statements stay dropped. Without a reader no statement is replaced.
func (e Env) replace(ctx context.Context, s run.Scope, w *checkedDraft, notes *noteList) error {
	if e.ReaderModel == "" || !w.byModel {
		return nil
	}
	in := replaceInput{Question: e.Question}
	var which []int
	for i, c := range w.checked {
		refused := c.statement >= 0 && !c.Failed && c.Verdict != assay.Supported
		if !refused || c.row != nil || len(c.cited) == 0 || len(which) == maxReplaced {
			continue
		}
		r := replacement{Claim: c.Text, Passage: -1}
		for _, cit := range c.cited {
			r.Cited = append(r.Cited, passageOf(cit, w.passages[cit.Number-1]))
		}
		which, in.Refused = append(which, i), append(in.Refused, r)
	}
	if len(which) == 0 {
		return nil
	}
	step := run.Step{Name: replaceStep, Kind: assay.StepReader, Model: e.ReaderModel}
	out, err := run.Do(ctx, s, step, in, func(ctx context.Context, in replaceInput) (replaceOutput, assay.Usage, error) {
		refused, err := e.nearest(ctx, in)
		if err != nil && !role.Ends(ctx, err) {
			return replaceOutput{Refused: in.Refused, Failure: err.Error()}, assay.Usage{}, nil
		}
		return replaceOutput{Refused: refused}, assay.Usage{}, err
	})
	switch stop := stopOf(err); {
	case stop != "":
		w.ended = stop
		return nil
	case err != nil:
		return err
	case len(out.Refused) != len(which):
		return fmt.Errorf("%d replacements for %d statements: %w", len(out.Refused), len(which), assay.ErrDamaged)
	case out.Failure != "":
		notes.say(assay.NoteFailed, remarkLine("reader: it failed to look for the nearest sentences: "+out.Failure))
	}
	w.quote(which, out.Refused)
	return nil
}

// quote inserts sentences after the refused claims, by index, that they replace. A sentence that is
// already shown is not repeated.
func (w *checkedDraft) quote(which []int, refused []replacement) {
	shown := map[string]bool{}
	for _, c := range w.supported() {
		shown[c.Text] = true
	}
	var checked []checkedClaim
	for i, c := range w.checked {
		k := slices.Index(which, i)
		replaced := k >= 0 && refused[k].Passage >= 0
		if !replaced {
			checked = append(checked, c)
			continue
		}
		r, number := refused[k], c.cited[refused[k].Passage].Number
		if w.passages[number-1].describes(w.evidence[number-1].Hit, r.Start, r.End) {
			checked = append(checked, c)
			continue
		}
		text := strings.Join(strings.Fields(r.text()), " ")
		c.replaced = true
		if checked = append(checked, c); shown[text] {
			continue
		}
		shown[text] = true
		checked = append(checked, checkedClaim{
			Claim:     ground.Claim{Text: text, End: len(text), Evidence: []int{number}, Item: c.Item},
			Judgement: ground.Judgement{Verdict: assay.Supported, Score: 1, Reason: "the source's own words"},
			cited:     []assay.Citation{citation(w.evidence[number-1], w.passages[number-1], r.Start, r.End)},
			statement: c.statement, section: c.section, quoted: true,
		})
	}
	w.checked = checked
}

// nearest returns the refused statements with the nearest sentence for each. A sentence qualifies
// only if it stands by itself, which an item of a list may not, and answers the question.
func (e Env) nearest(ctx context.Context, in replaceInput) ([]replacement, error) {
	out := slices.Clone(in.Refused)
	for i, r := range in.Refused {
		best, err := e.nearestTo(ctx, r)
		if err != nil {
			return nil, err
		}
		if best.Passage < 0 {
			continue
		}
		j, err := role.Ask(ctx, ground.Local{Reader: e.Roles.Reader}, best.text(), best.Cited[best.Passage:best.Passage+1])
		if err != nil {
			return nil, err
		}
		read, err := e.Roles.Reader.Read(ctx, in.Question, []llm.Excerpt{{Heading: best.heading(), Text: best.text()}})
		if err != nil {
			return nil, err
		}
		if j.Verdict == assay.Supported && len(read) == 1 && read[0].Answerable >= leastAnswers {
			out[i] = best
		}
	}
	return out, nil
}

// nearestTo returns a statement with the nearest sentence of its passages.
func (e Env) nearestTo(ctx context.Context, r replacement) (replacement, error) {
	var sentences []replacement
	var near []float64
	var pairs []llm.ClaimPair
	for n, p := range r.Cited {
		for _, s := range ground.Cut(p.Context, nil) {
			one, other := sharedWords(r.Claim, s.Text), sharedWords(s.Text, r.Claim)
			if max(one, other) < leastRead {
				continue
			}
			x := r
			x.Passage, x.Start, x.End = n, s.Start, s.End
			sentences, near = append(sentences, x), append(near, min(one, other))
			pairs = append(pairs,
				llm.ClaimPair{Claim: r.Claim, Passage: llm.Excerpt{Heading: x.heading(), Text: s.Text}},
				llm.ClaimPair{Claim: s.Text, Passage: llm.Excerpt{Text: r.Claim}})
		}
	}
	if len(sentences) == 0 {
		return r, nil
	}
	read, err := e.Roles.Reader.Entail(ctx, pairs)
	if err != nil {
		return r, err
	}
	if len(read) != len(pairs) {
		return r, fmt.Errorf("the reader gave %d entailments for %d pairs: %w", len(read), len(pairs), assay.ErrDamaged)
	}
	best := 0
	for i := range sentences {
		// A sentence that contradicts the statement is about the same thing. A NaN is not near.
		if p := max(read[2*i].Supported, read[2*i].Contradicted, read[2*i+1].Supported); p > near[i] {
			near[i] = p
		}
		if cmp.Compare(near[i], near[best]) > 0 {
			best = i
		}
	}
	if near[best] < leastNear {
		return r, nil
	}
	return sentences[best], nil
}
