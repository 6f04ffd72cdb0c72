package ground

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/llm"
)

// A Conflict is two sentences of different passages that answer the same question and
// cannot both be true.
type Conflict struct {
	A Span `json:"a"`
	B Span `json:"b"`

	// Probability that the sentences contradict each other, by the reader; 1 if their
	// answers differ.
	Probability float64 `json:"probability"`
}

// Thresholds of Conflicts.
const (
	leastAnswerable   = 0.5 // of a passage that takes part
	leastContradicted = 0.8 // of two sentences, either way
)

// Conflicts finds passages that answer the question differently. Of each passage the
// sentence with the likeliest answer counts. Two such sentences conflict if the reader
// finds that one contradicts the other, or if their answers have different numbers or
// names, unless they speak of different things. Apart reports whether two passages, by index, may
// disagree: those of one document do not.
func Conflicts(ctx context.Context, reader llm.Reader, question string, passages []Passage, apart func(i, j int) bool) ([]Conflict, error) {
	answers, err := answersIn(ctx, reader, question, passages)
	if err != nil {
		return nil, err
	}
	var pairs []llm.ClaimPair
	var of [][2]answer
	for i, a := range answers {
		for _, b := range answers[i+1:] {
			if apart(a.span.Passage, b.span.Passage) {
				of = append(of, [2]answer{a, b})
				pairs = append(pairs, a.against(b), b.against(a))
			}
		}
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	read, err := Local{Reader: reader}.entail(ctx, pairs)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for i, ab := range of {
		one, other := read[2*i], read[2*i+1]
		probability := max(one.Contradicted, other.Contradicted)
		if max(one.Supported, other.Supported) < leastContradicted && ab[0].differs(ab[1]) {
			probability = 1
		}
		if probability >= leastContradicted && !ab[0].ofAnother(ab[1]) {
			found = append(found, Conflict{A: ab[0].span, B: ab[1].span, Probability: probability})
		}
	}
	return found, nil
}

// Differ reports whether two statements speak of the same in nearly the same words, and
// differ in a number or a negation. It needs no reader and misses every contradiction in
// other words.
func Differ(a, b string) bool {
	one, other := withoutNumbers(a), withoutNumbers(b)
	if len(one) < 2 || coverage(one, other) < nearlySame || coverage(other, one) < nearlySame {
		return false
	}
	mine, theirs := quantitiesOf(wordsOf(a)), quantitiesOf(wordsOf(b))
	if len(mine) != len(theirs) {
		return false
	}
	negated := surface.Negations(a)%2 != surface.Negations(b)%2
	return negated == (agree(mine, theirs) && agree(theirs, mine))
}

// withoutNumbers returns the content words of a text that are not numbers.
func withoutNumbers(text string) map[string]int {
	return stemsOf(slices.DeleteFunc(contentOf(wordsOf(text)), func(w word) bool { return w.number }))
}

// An answer is the sentence of a passage that holds the likeliest answer to a question.
type answer struct {
	span     Span
	sentence llm.Excerpt
	words    string         // the answer itself
	passage  map[string]int // stems of the passage and its heading
}

// answersIn reads the question against each passage.
func answersIn(ctx context.Context, reader llm.Reader, question string, passages []Passage) ([]answer, error) {
	excerpts := make([]llm.Excerpt, len(passages))
	for i, p := range passages {
		excerpts[i] = llm.Excerpt{Heading: joinHeading(p.Heading), Text: p.Context}
	}
	readings, err := reader.Read(ctx, question, excerpts)
	if err != nil {
		return nil, err
	}
	if len(readings) != len(passages) {
		return nil, fmt.Errorf("the reader gave %d readings for %d passages: %w", len(readings), len(passages), assay.ErrDamaged)
	}
	var answers []answer
	for i, r := range readings {
		if !(r.Answerable >= leastAnswerable) || len(r.Spans) == 0 {
			continue
		}
		text, best := passages[i].Context, r.Spans[0]
		if best.Start < 0 || best.Start >= best.End || best.End > len(text) {
			return nil, fmt.Errorf("the reader gave the span [%d, %d) of %d bytes: %w", best.Start, best.End, len(text), assay.ErrDamaged)
		}
		for _, u := range unitsOf(text) {
			if u.Start < best.End && best.Start < u.End {
				sentence := llm.Excerpt{Heading: excerpts[i].Heading, Text: text[u.Start:u.End]}
				answers = append(answers, answer{Span{i, u.Start, u.End}, sentence, text[best.Start:best.End], stemsOf(wordsOf(excerpts[i].Heading + ". " + text))})
				break
			}
		}
	}
	return answers, nil
}

// against is the sentence of a as a claim about that of b.
func (a answer) against(b answer) llm.ClaimPair {
	return llm.ClaimPair{Claim: a.sentence.Text, Passage: b.sentence}
}

// differs reports whether two answers to one question have different numbers of the same
// unit or, without numbers, different names.
func (a answer) differs(b answer) bool {
	mine, theirs := quantitiesOf(wordsOf(a.words)), quantitiesOf(wordsOf(b.words))
	if len(mine)+len(theirs) > 0 {
		return comparable(mine, theirs) && !agree(mine, theirs) && !agree(theirs, mine)
	}
	names, otherNames := a.names(), b.names()
	return len(names) > 0 && len(otherNames) > 0 &&
		held(names, []map[string]int{b.passage}) == 0 && held(otherNames, []map[string]int{a.passage}) == 0
}

// ofAnother reports whether two sentences speak of different things, times or versions:
// each has a name or number, apart from its answer, that the other passage does not have.
func (a answer) ofAnother(b answer) bool {
	return held(a.context(), []map[string]int{b.passage}) < len(a.context()) && held(b.context(), []map[string]int{a.passage}) < len(b.context())
}

// names returns the stems of the names in the answer.
func (a answer) names() map[string]int {
	var names []word
	for _, name := range surface.Names(a.sentence.Text) {
		if strings.Contains(a.words, name) {
			names = append(names, wordsOf(name)...)
		}
	}
	return stemsOf(names)
}

// context returns the stems of the names and numbers of the sentence and its heading that
// are not in the answer.
func (a answer) context() map[string]int {
	text := a.sentence.Heading + ". " + strings.Replace(a.sentence.Text, a.words, " ", 1)
	var words []word
	for _, w := range wordsOf(text) {
		if w.number {
			words = append(words, w)
		}
	}
	for _, name := range surface.Names(text) {
		words = append(words, contentOf(wordsOf(name))...)
	}
	return stemsOf(words)
}

// comparable reports whether two of some quantities are of the same dimension.
func comparable(some, others []quantity) bool {
	for _, q := range some {
		for _, o := range others {
			if q.unit.dimension == o.unit.dimension {
				return true
			}
		}
	}
	return false
}

// agree reports whether each of some quantities is among others.
func agree(some, others []quantity) bool {
	for _, q := range some {
		found := false
		for _, o := range others {
			_, same := q.agrees(o)
			found = found || same
		}
		if !found {
			return false
		}
	}
	return true
}
