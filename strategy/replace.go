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

// Bounds of the search for a sentence that may stand in the place of a refused statement.
const (
	maxReplaced = 8 // statements

	// leastNear is how near a sentence has to be to the statement: by the content words that
	// they share, or by the probability that one entails the other or the sentence
	// contradicts the statement. The reader reads only sentences that share some words, from
	// leastRead on.
	leastNear = 0.7
	leastRead = 0.3

	// leastAnswers is the least probability that the sentence answers the question.
	leastAnswers = 0.5
)

// A replacement is a refused statement with the sentence of its sources that is nearest to
// it: the bytes [Start, End) of the Context of the passage with that index.
type replacement struct {
	Claim   string           `json:"claim"`
	Cited   []ground.Passage `json:"cited"`
	Passage int              `json:"passage"` // -1: no sentence is near enough
	Start   int              `json:"start"`
	End     int              `json:"end"`
}

// text returns the sentence.
func (r replacement) text() string { return r.Cited[r.Passage].Context[r.Start:r.End] }

// heading returns what the sentence stands under.
func (r replacement) heading() string { return strings.Join(r.Cited[r.Passage].Heading, " > ") }

// replaceInput is what the step records.
type replaceInput struct {
	Question string        `json:"question"`
	Refused  []replacement `json:"refused"`
}

// replaceOutput is what the step brings.
type replaceOutput struct {
	Refused []replacement `json:"refused"`
	Failure string        `json:"failure,omitempty"`
}

// replace puts the source's own sentence in the place of each statement of a model that was
// refused: of the passages that the statement cites the sentence nearest to it, if it is
// near and answers the question. Other statements stay dropped, and all do without a reader.
func (e Env) replace(ctx context.Context, s run.Scope, w *checkedDraft, said *notes) error {
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
		said.say(assay.NoteFailed, remark("reader: it failed to look for the nearest sentences: "+out.Failure))
	}
	w.quote(which, out.Refused)
	return nil
}

// quote puts sentences behind the refused claims, by index, that they replace. A sentence
// that is shown already is not shown again.
func (w *checkedDraft) quote(which []int, refused []replacement) {
	shown := map[string]bool{}
	for _, c := range w.supported() {
		shown[c.Text] = true
	}
	var checked []checkedClaim
	for i, c := range w.checked {
		k := slices.Index(which, i)
		if k < 0 || refused[k].Passage < 0 {
			checked = append(checked, c)
			continue
		}
		r, number := refused[k], c.cited[refused[k].Passage].Number
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

// nearest returns the refused statements with the sentence nearest to each. The sentence has
// to stand by itself, which an item of a list need not do, and to answer the question.
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

// nearestTo returns a statement with the sentence nearest to it.
func (e Env) nearestTo(ctx context.Context, r replacement) (replacement, error) {
	var sentences []replacement
	var near []float64
	var pairs []llm.ClaimPair
	for n, p := range r.Cited {
		for _, s := range ground.Cut(p.Context, nil) {
			one, other := shareHeld(r.Claim, s.Text), shareHeld(s.Text, r.Claim)
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
