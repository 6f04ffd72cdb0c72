package ground

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
)

// Learned is the verifier that needs no language model. What the strict rules of [Local]
// support is supported. All else it measures (see [Measure]) beside all passages that
// are cited, each as a whole, and a small model tells from that how likely it is that they
// say the claim together. The model was trained with labelled claims by `assay eval
// train-verifier`; docs/evaluation.md has its figures.
//
// It errs where words that are much alike say something else, and where what follows from
// the source takes knowledge or arithmetic. It knows English.
type Learned struct {
	// Encoder gives the words their vectors. Nil: it judges by words alone, with a model
	// of its own, and worse.
	Encoder Encoder

	// Floor is the least probability of Supported. 0: that for answers that people act on,
	// see Floors; then, too, a number, date, unit or name that differs is refused whatever
	// the model makes of it.
	Floor float64
}

// Floors returns the floors that were chosen when the verifier was trained: shown, for
// answers that people act on, at which next to no changed statement passes; and balanced,
// at which it tells supported claims from others best where either mistake is as bad.
func (l Learned) Floors() (shown, balanced float64, err error) {
	m, err := l.model()
	if err != nil {
		return 0, 0, err
	}
	return m.Shown, m.Balanced, nil
}

func (l Learned) model() (*Model, error) {
	if l.Encoder == nil {
		return wordsModel()
	}
	return vectorsModel()
}

// strictScore is the probability that what the strict rules support is supported: of
// docs/evaluation.md's mutated sentences they let pass one in a thousand.
const strictScore = 0.99

// Verify implements Verifier. It returns an error when ctx has ended or the encoder
// fails.
func (l Learned) Verify(ctx context.Context, claim string, cited []Passage) (Judgement, error) {
	if len(cited) == 0 {
		return Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}, ctx.Err()
	}
	kept := unlisted(claim, cited)
	if len(kept) == 0 {
		return Judgement{Verdict: assay.Unsupported, Score: vetoScore, Reason: "it stands in a list of what is not so"}, ctx.Err()
	}
	said := make([]Passage, len(kept))
	for i, k := range kept {
		said[i] = cited[k]
	}
	j, err := l.verify(ctx, claim, said)
	for i := range j.Spans {
		j.Spans[i].Passage = kept[j.Spans[i].Passage]
	}
	return j, err
}

// verify is Verify over the passages that say what they read.
func (l Learned) verify(ctx context.Context, claim string, cited []Passage) (Judgement, error) {
	strict, err := Local{}.Verify(ctx, claim, cited)
	if err != nil {
		return Judgement{}, err
	}
	if strict.Verdict == assay.Supported {
		strict.Score = strictScore
		if len(strict.Spans) == 0 {
			strict.Spans = leastSpans(claim, cited)
		}
		return strict, nil
	}
	if half, ok, err := halfSays(ctx, claim, cited); ok || err != nil {
		return half, err
	}
	if bare, _ := withoutLeadIn(claim, nil); !checkable(read(bare).terms) {
		return strict, nil
	}
	var e *Edits
	if l.Encoder != nil {
		if e, err = ShippedEdits(); err != nil {
			return Judgement{}, err
		}
	}
	s, err := compare(ctx, l.Encoder, e, claim, cited)
	if err != nil {
		return Judgement{}, err
	}
	j, err := l.judge(s)
	if err != nil {
		return Judgement{}, err
	}
	if l.Floor == 0 { // at another one it is the caller who weighs the mistakes
		if reason := s.veto(); reason != "" {
			j.Verdict, j.Score, j.Reason = assay.Unsupported, min(j.Score, vetoScore), reason
		}
	}
	j.Spans = leastSpans(claim, cited)
	return j, nil
}

// judge makes a judgement of what was measured.
func (l Learned) judge(s *comparison) (Judgement, error) {
	m, err := l.model()
	if err != nil {
		return Judgement{}, err
	}
	supported, contradicted := m.Odds(s.measured())
	j := Judgement{Score: m.Probability(supported)}
	if j.Verdict = m.Verdict(supported, contradicted, cmp.Or(l.Floor, m.Shown)); j.Verdict == assay.Supported {
		j.Reason = "the source says it in other words"
	} else {
		j.Reason = s.lacking()
	}
	return j, nil
}

// VerifyRow implements RowVerifier as [Local] does: whether cells stand together is told
// by the words themselves.
func (l Learned) VerifyRow(ctx context.Context, row Row, cited []Passage) (Judgement, error) {
	j, err := Local{}.VerifyRow(ctx, row, cited)
	if err != nil || j.Verdict != assay.Supported {
		return j, err
	}
	j.Score = min(j.Score, strictScore)
	if len(j.Spans) == 0 {
		j.Spans = leastSpans(rowText(row), cited)
	}
	return j, nil
}

// rowText is what a row says in a line.
func rowText(r Row) string {
	if strings.TrimSpace(r.Sentence) != "" {
		return r.Sentence
	}
	return strings.Join(r.Cells, " ")
}

// lacking says which of the claim's words the source has least of.
func (s *comparison) lacking() string {
	var words []string
	for _, m := range s.words {
		if m.kind != small && !m.near && m.spelt == 0 && len(words) < 3 {
			words = append(words, fmt.Sprintf("%q", m.raw))
		}
	}
	if len(words) == 0 {
		return "the source has its words, but does not say it so"
	}
	return "the nearest sentences of the source lack " + strings.Join(words, ", ")
}
