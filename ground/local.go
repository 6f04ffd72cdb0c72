package ground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
)

// Local is the verifier that needs no language model. A claim that is one or more whole
// sentences of the cited text word for word is supported. Any other claim is split into
// parts. The reader reads each part against the windows of the cited text that share most
// words with it, and a logistic regression over these entailments and plain features gives
// the probability that the text supports the claim. [Check] may refuse a claim regardless of
// its probability.
type Local struct {
	// Reader may be nil. Then only claims with nearly the same words as a sentence of the
	// source are supported.
	Reader llm.Reader

	// Floor is the least probability of Supported. 0: the floor for answers that are shown
	// to people (see Floors).
	Floor float64

	// Model turns readings into probabilities. Nil: the model in the binary.
	Model *Model
}

// Scores that do not come from the model.
const (
	exactScore        = 1
	nearVerbatimScore = 0.97
	refusedScore      = 0.02 // highest score of a claim that a check refused
)

// Verify implements Verifier. It returns an error if ctx is done or the reader fails.
func (l Local) Verify(ctx context.Context, claim string, cited []Passage) (Judgement, error) {
	switch {
	case ctx.Err() != nil:
		return failed(ctx.Err())
	case len(cited) == 0:
		return Judgement{Verdict: assay.Unsupported, Reason: "cites nothing"}, nil
	case !hasWord(claim):
		return Judgement{Verdict: assay.Unsupported, Reason: "has no word to check"}, nil
	}
	sources := sourcesOf(cited)
	span, ok, err := l.exact(ctx, claim, sources)
	if err != nil {
		return failed(err)
	}
	if ok {
		return Judgement{Verdict: assay.Supported, Score: exactScore, Reason: "verbatim in the source", Spans: []Span{span}}, nil
	}
	j, err := l.judge(ctx, claim, sources)
	if err != nil {
		return failed(err)
	}
	if j.Refused = Check(claim, cited); j.Refused != "" {
		j.Score = min(j.Score, refusedScore)
		if j.Verdict == assay.Supported {
			j.Verdict = assay.Unsupported
		}
		j.Reason = j.Refused
	}
	return j, nil
}

// failed returns the judgement of a claim that could not be judged.
func failed(err error) (Judgement, error) {
	return Judgement{Verdict: assay.Unsupported, Reason: "the verifier failed: " + err.Error(), Failed: true}, err
}

// exact finds the claim as whole sentences of a source. An item of a list does not count if the
// introduction of the list may negate it: the introduction has a negation, or the reader finds that
// the item together with it contradicts the claim.
func (l Local) exact(ctx context.Context, claim string, sources []source) (Span, bool, error) {
	for i, s := range sources {
		sp, ok := exactSpan(s.Context, claim)
		if !ok {
			continue
		}
		span := Span{Passage: i, Start: sp.Start, End: sp.End}
		lead := s.leadBefore(sp)
		switch {
		case lead == "":
			return span, true, nil
		case lexical.Negations(lead) > 0:
			continue
		case l.Reader == nil:
			return span, true, nil
		}
		item := llm.Excerpt{Heading: joinHeading(s.Heading), Text: lead + "\n" + s.Context[sp.Start:sp.End]}
		read, err := l.entail(ctx, []llm.ClaimPair{{Claim: claim, Passage: item}})
		if err != nil {
			return Span{}, false, err
		}
		if read[0].Contradicted < max(read[0].Supported, read[0].Neutral) {
			return span, true, nil
		}
	}
	return Span{}, false, nil
}

// leadBefore returns the lead of the first unit in a span that has one before the span.
func (s source) leadBefore(sp sentence.Span) string {
	for _, u := range s.units {
		overlaps := u.Start < sp.End && sp.Start < u.End
		if lead := s.leadOf(u); overlaps && lead != "" && u.Lead.End <= sp.Start {
			return lead
		}
	}
	return ""
}

// leadOf returns the lead of a unit, or "".
func (s source) leadOf(u unit) string {
	if u.Lead.End > u.Start {
		return ""
	}
	return s.Context[u.Lead.Start:u.Lead.End]
}

// judge judges a claim that is not in the sources word for word.
func (l Local) judge(ctx context.Context, claim string, sources []source) (Judgement, error) {
	if span, ok := nearVerbatim(claim, sources); ok {
		return Judgement{Verdict: assay.Supported, Score: nearVerbatimScore, Reason: "nearly verbatim in the source", Spans: []Span{span}}, nil
	}
	if l.Reader == nil {
		return l.withoutReader(claim, sources), nil
	}
	model, err := l.model()
	if err != nil {
		return Judgement{}, err
	}
	whole, parts, err := l.read(ctx, claim, sources)
	if _, ok := errors.AsType[*llm.TooLongError](err); ok {
		return Judgement{Verdict: assay.Unsupported, Reason: "the claim is too long to be read"}, nil
	}
	if err != nil {
		return Judgement{}, err
	}
	if len(whole.windows) == 0 {
		return Judgement{Verdict: assay.Unsupported, Reason: "the cited text is empty"}, nil
	}
	features := featuresOf(claim, whole, parts, sources)
	j := Judgement{Verdict: assay.Unsupported, Score: learn.Sigmoid(model.Supported.LogOdds(features)), Spans: decidingSpans(parts, sources)}
	contradicted := learn.Sigmoid(model.Contradicted.LogOdds(features))
	j.Contradiction = (1 - j.Score) * contradicted
	switch {
	case math.IsNaN(j.Score) || math.IsNaN(j.Contradiction):
		return Judgement{}, fmt.Errorf("the probability of the claim is not a number: %w", assay.ErrDamaged)
	case j.Score >= cmp.Or(l.Floor, model.Shown):
		j.Verdict, j.Reason = assay.Supported, "supported by the source in other words"
	case contradicted >= model.Disputed:
		j.Verdict, j.Reason = assay.Contradicted, "the source contradicts it"
	default:
		j.Reason = lacking(claim, sources)
	}
	return j, nil
}

// model returns the model that turns entailments into probabilities.
func (l Local) model() (*Model, error) {
	if l.Model != nil {
		return l.Model, nil
	}
	return shipped()
}

// Features returns the features of a claim. They serve to fit a model. The result is nil if the
// cited text is empty.
func (l Local) Features(ctx context.Context, claim string, cited []Passage) ([]float64, error) {
	sources := sourcesOf(cited)
	whole, parts, err := l.read(ctx, claim, sources)
	if err != nil || len(whole.windows) == 0 {
		return nil, err
	}
	return featuresOf(claim, whole, parts, sources), nil
}

// read runs the reader on a claim and its parts and their windows, in one call.
func (l Local) read(ctx context.Context, claim string, sources []source) (whole reading, parts []reading, err error) {
	texts, n := partsOf(claim), perSize
	if len(texts) >= manyParts {
		n = 1
	}
	alone := len(texts) > 1 && len(strings.Fields(claim)) > maxWholeWords // too long to be read as a whole
	if len(texts) > 1 && !alone {
		texts = append([]string{claim}, texts...)
	}
	var pairs []llm.ClaimPair
	index := map[llm.ClaimPair]int{}
	readings := make([]reading, len(texts))
	for i, text := range texts {
		readings[i] = reading{part: text, windows: windowsOf(text, sources, n)}
		for _, w := range readings[i].windows {
			pair := llm.ClaimPair{Claim: text, Passage: w.excerpt(sources[w.passage])}
			if _, ok := index[pair]; !ok {
				index[pair] = len(pairs)
				pairs = append(pairs, pair)
			}
		}
	}
	var read []llm.Entailment
	if len(pairs) > 0 {
		if read, err = l.entail(ctx, pairs); err != nil {
			return whole, nil, err
		}
	}
	for i, r := range readings {
		for _, w := range r.windows {
			pair := llm.ClaimPair{Claim: r.part, Passage: w.excerpt(sources[w.passage])}
			readings[i].read = append(readings[i].read, read[index[pair]])
		}
	}
	switch {
	case alone:
		return leastSupported(readings), readings, nil
	case len(readings) > 1:
		return readings[0], readings[1:], nil
	}
	return readings[0], readings, nil
}

// maxWholeWords is the maximum length of a claim that is read as a whole in addition to its parts.
const maxWholeWords = 80

// leastSupported returns the part that the sources support least.
func leastSupported(parts []reading) reading {
	least := parts[0]
	for _, p := range parts[1:] {
		if len(p.read) > 0 && p.read[p.best()].Supported < least.read[least.best()].Supported {
			least = p
		}
	}
	return least
}

// entail runs the reader on pairs and checks the probabilities that it returns.
func (l Local) entail(ctx context.Context, pairs []llm.ClaimPair) ([]llm.Entailment, error) {
	read, err := l.Reader.Entail(ctx, pairs)
	if err != nil {
		return nil, err
	}
	if len(read) != len(pairs) {
		return nil, fmt.Errorf("the reader gave %d entailments for %d pairs: %w", len(read), len(pairs), assay.ErrDamaged)
	}
	for _, e := range read {
		for _, p := range []float64{e.Supported, e.Contradicted, e.Neutral} {
			if !(p >= 0 && p <= 1) {
				return nil, fmt.Errorf("the reader gave the probability %v: %w", p, assay.ErrDamaged)
			}
		}
	}
	return read, nil
}

// decidingSpans returns the sentence that decides each part, in the order of the text.
func decidingSpans(parts []reading, sources []source) []Span {
	var spans []Span
	for _, p := range parts {
		b := p.best()
		w := p.windows[b]
		span := w.deciding(p.read[b].Decisive, stemsOf(contentOf(wordsOf(p.part))), sources[w.passage])
		if !slices.Contains(spans, span) {
			spans = append(spans, span)
		}
	}
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Passage, b.Passage), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	return spans
}

// withoutReader returns the judgement without a reader, by words alone. It is never Supported.
func (l Local) withoutReader(claim string, sources []source) Judgement {
	windows := windowsOf(claim, sources, 1)
	if len(windows) == 0 {
		return Judgement{Verdict: assay.Unsupported, Reason: "the cited text is empty"}
	}
	want := stemsOf(contentOf(wordsOf(claim)))
	w := windows[0]
	span := w.deciding(llm.Extract{}, want, sources[w.passage])
	return Judgement{
		Verdict: assay.Unsupported, Score: coverage(want, everyStem(sources)) / 2, Reason: lacking(claim, sources), Spans: []Span{span},
	}
}

// everyStem returns the stems of all sources and their headings.
func everyStem(sources []source) map[string]int {
	all := map[string]int{}
	for _, s := range sources {
		for _, bag := range append(slices.Clone(s.bags), stemsOf(wordsOf(joinHeading(s.Heading)))) {
			for stem := range bag {
				all[stem]++
			}
		}
	}
	return all
}

func joinHeading(heading []string) string { return strings.Join(heading, " > ") }

// lacking returns the reason for an unsupported claim: its content words that the sources do
// not have.
func lacking(claim string, sources []source) string {
	const most = 3
	have := everyStem(sources)
	var words []string
	for _, w := range contentOf(wordsOf(claim)) {
		if have[w.stem] == 0 && len(words) < most && !slices.Contains(words, fmt.Sprintf("%q", w.raw)) {
			words = append(words, fmt.Sprintf("%q", w.raw))
		}
	}
	if len(words) == 0 {
		return "the source has its words, but does not say it"
	}
	return "the source lacks " + strings.Join(words, ", ")
}

// nearVerbatim finds the sentence that has the same words as a claim in the same order, ignoring
// insignificant words.
func nearVerbatim(claim string, sources []source) (Span, bool) {
	want := significant(wordsOf(claim))
	if len(contentOf(want)) < 2 {
		return Span{}, false
	}
	same := func(a, b word) bool { return a.stem == b.stem }
	for i, s := range sources {
		for k, u := range s.units {
			if slices.EqualFunc(want, significant(s.words[k]), same) && s.leadBefore(u.Span) == "" {
				return Span{Passage: i, Start: u.Start, End: u.End}, true
			}
		}
	}
	return Span{}, false
}

// insignificant are function words without a meaning of their own.
var insignificant = map[string]bool{
	"a": true, "an": true, "the": true, "that": true, "also": true, "please": true,
}

// significant returns the words of a text without the insignificant ones.
func significant(words []word) []word {
	return slices.DeleteFunc(slices.Clone(words), func(w word) bool { return insignificant[strings.ToLower(w.raw)] })
}
