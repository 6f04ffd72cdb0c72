package ground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/llm"
)

// A Conflict is two sentences of different passages that answer the same question and
// cannot both be true.
type Conflict struct {
	A Span `json:"a"`
	B Span `json:"b"`

	// Probability is the probability that there is a conflict, in [0, 1].
	Probability float64 `json:"probability"`
}

const (
	leastAnswerable = 0.1 // least probability that a passage which takes part answers
	mostAnswers     = 4   // passages compared, those with the likeliest answers
)

// Conflicts finds passages that answer the question differently. It considers the sentence of each
// passage with the likeliest answer. A logistic regression over the reader's entailments and
// comparisons of the answers and words decides whether two such sentences conflict. Two answers of
// the same value never conflict, and different ones always do if all other words are the same.
// Apart reports whether two passages, by index, may disagree: those of one document do not.
func Conflicts(ctx context.Context, reader llm.Reader, question string, passages []Passage, apart func(i, j int) bool) ([]Conflict, error) {
	model, err := shippedConflicts()
	if err != nil {
		return nil, err
	}
	pairs, err := conflictPairs(ctx, reader, question, passages, apart)
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, p := range pairs {
		probability := learn.Sigmoid(model.Conflict.LogOdds(p.features))
		if p.alike {
			probability = 1
		}
		if math.IsNaN(probability) {
			return nil, fmt.Errorf("the probability of a conflict is not a number: %w", assay.ErrDamaged)
		}
		if probability >= model.Least {
			found = append(found, Conflict{A: p.a.span, B: p.b.span, Probability: probability})
		}
	}
	return found, nil
}

// ConflictFeatures returns the features of the pairs of passages that may conflict. They serve to
// fit a model.
func ConflictFeatures(ctx context.Context, reader llm.Reader, question string, passages []Passage, apart func(i, j int) bool) ([][]float64, error) {
	pairs, err := conflictPairs(ctx, reader, question, passages, apart)
	var features [][]float64
	for _, p := range pairs {
		features = append(features, p.features)
	}
	return features, err
}

// A conflictPair is two answers to a question that may conflict.
type conflictPair struct {
	a, b     answer
	alike    bool // same words except for another number or name
	features []float64
}

// conflictPairs returns the answers of passages that are apart, in pairs.
func conflictPairs(ctx context.Context, reader llm.Reader, question string, passages []Passage, apart func(i, j int) bool) ([]conflictPair, error) {
	answers, err := answersIn(ctx, reader, question, passages)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(answers, func(a, b answer) int { return cmp.Compare(b.answerable, a.answerable) })
	answers = answers[:min(len(answers), mostAnswers)]
	slices.SortFunc(answers, func(a, b answer) int { return a.span.Passage - b.span.Passage })
	var pairs []conflictPair
	var claims []llm.ClaimPair
	for i, a := range answers {
		for _, b := range answers[i+1:] {
			if apart(a.span.Passage, b.span.Passage) && (compareValues(a, b) != valuesSame || yesNo.MatchString(question)) {
				pairs = append(pairs, conflictPair{a: a, b: b})
				claims = append(claims, a.claimAgainst(b), b.claimAgainst(a), a.substitutedClaim(b), b.substitutedClaim(a))
			}
		}
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	read, err := Local{Reader: reader}.entail(ctx, claims)
	if err != nil {
		return nil, err
	}
	asked := questionWordsOf(question)
	for i, p := range pairs {
		var asking [2]float64
		if asking[0], err = p.b.answers(ctx, reader, p.a.asQuestion()); err != nil {
			return nil, err
		}
		if asking[1], err = p.a.answers(ctx, reader, p.b.asQuestion()); err != nil {
			return nil, err
		}
		pairs[i].features = conflictFeatures(asked, p.a, p.b, read[4*i:4*i+4], asking)
		pairs[i].alike = !asked.yesNo && p.a.differsOnlyInAnswer(p.b, asked.words)
	}
	return pairs, nil
}

// questionWords holds the words that a question names.
type questionWords struct {
	words map[string]int // stems of its content words
	names map[string]int // stems of its names and numbers
	yesNo bool
}

func questionWordsOf(question string) questionWords {
	return questionWords{stemsOf(contentOf(wordsOf(question))), stemsOf(append(namesIn(question), numbersIn(question)...)), yesNo.MatchString(question)}
}

// yesNo matches questions that are answered with yes or no, by one number or none.
var yesNo = lazyregexp.New(`(?i)^\s*(?:is|are|was|were|am|do|does|did|can|could|may|might|must|shall|should|will|would|has|have|had)\b`)

// conflictFeatureNames names the inputs of the model, in order.
var conflictFeatureNames = []string{
	"answerable", "relevant", "asked_most", "asked_least", "contradicted", "supported", "exchanged_most", "exchanged_least",
	"same_answer", "names_differ", "polarity", "names_asked", "names_held", "names_apart",
	"numbers", "names", "modifiers", "scopes", "own_least", "own_most",
}

// conflictFeatures compares two answers. Read holds the entailments of either sentence by the
// other, and of either sentence with the other's answer substituted, by the other. Asking holds the
// probabilities that either passage answers the sentence of the other, turned into a question. Both
// indicate whether the two sentences are about the same thing.
func conflictFeatures(q questionWords, a, b answer, read []llm.Entailment, asking [2]float64) []float64 {
	has := [2]float64{coverage(q.names, a.passage), coverage(q.names, b.passage)}
	own := [2]float64{a.own(b, q), b.own(a, q)}
	return []float64{
		logOdds(min(a.answerable, b.answerable)),
		logOdds(min(a.relevance, b.relevance)),
		logOdds(max(asking[0], asking[1])),
		logOdds(min(asking[0], asking[1])),
		logOdds(max(read[0].Contradicted, read[1].Contradicted)),
		logOdds(max(read[0].Supported, read[1].Supported)),
		logOdds(max(read[2].Supported, read[3].Supported)),
		logOdds(min(read[2].Supported, read[3].Supported)),
		sameAnswer(q, a, b),
		indicator(haveOwnWords(a.names(), b.names(), a, b)),
		indicator(lexical.Negations(a.sentence.Text)%2 != lexical.Negations(b.sentence.Text)%2),
		indicator(len(q.names) > 0),
		min(has[0], has[1]),
		math.Abs(has[0] - has[1]),
		indicator(lacksStem(a.contextNumbers(), b) && lacksStem(b.contextNumbers(), a)),
		indicator(lacksStem(a.contextNames(), b) && lacksStem(b.contextNames(), a)),
		indicator(modifiersDiffer(a, b)),
		indicator(scopesDiffer(q, a, b)),
		min(own[0], own[1]),
		max(own[0], own[1]),
	}
}

// sameAnswer returns the share of words of the shorter answer in the other one. It is 0 for yes-no
// questions, whose answers are sentences with the question's words, and for answers that differ in
// a value.
func sameAnswer(q questionWords, a, b answer) float64 {
	mine, theirs := stemsOf(contentOf(wordsOf(a.words))), stemsOf(contentOf(wordsOf(b.words)))
	if q.yesNo || len(mine) == 0 || len(theirs) == 0 || compareValues(a, b) == valuesDiffer {
		return 0
	}
	return max(coverage(mine, theirs), coverage(theirs, mine))
}

// A Wording is a statement prepared for comparison with many others.
type Wording struct {
	text  string
	words []word
	stems map[string]int // of the content words that are not numbers
}

// NewWording prepares a statement.
func NewWording(text string) Wording {
	words := wordsOf(text)
	return Wording{text: text, words: words, stems: stemsWithoutNumbers(words)}
}

// Differs reports whether two statements have nearly the same words and differ in a number or a
// negation. It needs no reader and misses every contradiction in other words.
func (w Wording) Differs(other Wording) bool {
	if len(w.stems) < 2 || coverage(w.stems, other.stems) < nearlySame || coverage(other.stems, w.stems) < nearlySame {
		return false
	}
	mine, theirs := quantitiesOf(w.words), quantitiesOf(other.words)
	if len(mine) != len(theirs) {
		return false
	}
	negated := lexical.Negations(w.text)%2 != lexical.Negations(other.text)%2
	return negated == (agree(mine, theirs) && agree(theirs, mine))
}

// Differ reports whether two statements differ as [Wording.Differs] says.
func Differ(a, b string) bool { return NewWording(a).Differs(NewWording(b)) }

// withoutNumbers returns the content words of a text that are not numbers.
func withoutNumbers(text string) map[string]int {
	return stemsWithoutNumbers(wordsOf(text))
}

// stemsWithoutNumbers returns the stems of the content words that are not numbers.
func stemsWithoutNumbers(words []word) map[string]int {
	return stemsOf(slices.DeleteFunc(contentOf(words), func(w word) bool { return w.number }))
}

// An answer is the sentence of a passage that holds the likeliest answer to a question.
type answer struct {
	span     Span
	sentence llm.Excerpt
	words    string         // the answer itself
	passage  map[string]int // stems of the passage and its heading
	excerpt  llm.Excerpt    // the passage itself

	answerable float64 // probability that the passage answers
	relevance  float64
}

// answersIn reads the question against each passage, and returns the likeliest answer of each.
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
				answers = append(answers, answer{
					span: Span{i, u.Start, u.End}, sentence: sentence, words: text[best.Start:best.End],
					passage: stemsOf(wordsOf(excerpts[i].Heading + ". " + text)), excerpt: excerpts[i],
					answerable: r.Answerable, relevance: r.Relevance,
				})
				break
			}
		}
	}
	return answers, nil
}

// asQuestion returns the sentence of a as a question for its answer, with all restrictions of the
// sentence: "In 2019 what visitors came?"
func (a answer) asQuestion() string {
	return strings.TrimRight(strings.Replace(a.sentence.Text, a.words, "what", 1), ".!") + "?"
}

// answers returns the probability that the passage of a answers a question; 0 if the question
// is too long to be read.
func (a answer) answers(ctx context.Context, reader llm.Reader, question string) (float64, error) {
	read, err := reader.Read(ctx, question, []llm.Excerpt{a.excerpt})
	if _, long := errors.AsType[*llm.TooLongError](err); long {
		return 0, nil
	}
	if err == nil && len(read) != 1 {
		err = fmt.Errorf("the reader gave %d readings for a passage: %w", len(read), assay.ErrDamaged)
	}
	if err != nil {
		return 0, err
	}
	return read[0].Answerable, nil
}

// claimAgainst returns the sentence of a as a claim about that of b.
func (a answer) claimAgainst(b answer) llm.ClaimPair {
	return llm.ClaimPair{Claim: a.sentence.Text, Passage: b.sentence}
}

// substitutedClaim returns the sentence of a, with the answer of b substituted, as a claim about
// the sentence of b.
func (a answer) substitutedClaim(b answer) llm.ClaimPair {
	return llm.ClaimPair{Claim: strings.Replace(a.sentence.Text, a.words, b.words, 1), Passage: b.sentence}
}

// differsOnlyInAnswer reports whether two sentences that contain the question's names have the same
// words except for their answers, which have different numbers or names.
func (a answer) differsOnlyInAnswer(b answer, question map[string]int) bool {
	const mostAsked = 0.6
	if coverage(question, stemsOf(wordsOf(a.sentence.Text))) < mostAsked || modifiersDiffer(a, b) {
		return false
	}
	sameNumbers := maps.Equal(a.contextNumbers(), b.contextNumbers())
	if compareValues(a, b) == valuesDiffer && sameNumbers && maps.Equal(withoutNumbers(a.sentence.Text), withoutNumbers(b.sentence.Text)) {
		return true
	}
	mine, theirs := stemsOf(contentOf(wordsOf(a.context()))), stemsOf(contentOf(wordsOf(b.context())))
	return maps.Equal(mine, theirs) && haveOwnWords(a.names(), b.names(), a, b)
}

// A comparison is the relation between the numbers of two answers.
type comparison int

const (
	valuesUnknown comparison = iota // no numbers of the same dimension
	valuesSame
	valuesDiffer
)

// compareValues compares the numbers of two answers. If only one has numbers, those of the
// other's sentence count.
func compareValues(a, b answer) comparison {
	mine, theirs := a.quantities(), b.quantities()
	if len(mine) == 0 && len(theirs) > 0 {
		mine = quantitiesOf(wordsOf(a.sentence.Text))
	}
	if len(theirs) == 0 && len(mine) > 0 {
		theirs = quantitiesOf(wordsOf(b.sentence.Text))
	}
	switch {
	case !comparable(mine, theirs):
		return valuesUnknown
	case agree(mine, theirs) || agree(theirs, mine):
		return valuesSame
	}
	return valuesDiffer
}

// quantities returns the quantities in the answer, with the units that they have in the
// sentence: the answer may end before the unit, and a word may stand between the two.
func (a answer) quantities() []quantity {
	mine, around := quantitiesOf(wordsOf(a.words)), quantitiesOf(wordsOf(a.sentence.Text))
	for i, q := range mine {
		for _, o := range around {
			if q.unit == (measure{}) && q.value == o.value && q.ordinal == o.ordinal {
				mine[i] = o
				break
			}
		}
		if q = mine[i]; q.unit == (measure{}) && len(q.of) == 2 {
			mine[i].unit = measures[q.of[1]] // "three working days"
		}
	}
	return mine
}

func namesIn(text string) []word {
	var words []word
	for _, name := range lexical.Names(text) {
		words = append(words, contentOf(wordsOf(name))...)
	}
	return words
}

func numbersIn(text string) []word {
	return slices.DeleteFunc(wordsOf(text), func(w word) bool { return !w.number })
}

// names returns the stems of the names in the answer.
func (a answer) names() map[string]int {
	var names []word
	for _, name := range lexical.Names(a.sentence.Text) {
		if strings.Contains(a.words, name) {
			names = append(names, wordsOf(name)...)
		}
	}
	return stemsOf(names)
}

// context returns the sentence without the answer.
func (a answer) context() string { return strings.Replace(a.sentence.Text, a.words, " ; ", 1) }

// contextNumbers returns the stems of the numbers in the sentence that are not in the answer.
func (a answer) contextNumbers() map[string]int { return stemsOf(numbersIn(a.context())) }

// contextNames returns the stems of the names in the heading and the sentence that are not in the
// answer. Numbers of a heading do not count: they number editions of one document.
func (a answer) contextNames() map[string]int {
	names := namesIn(a.sentence.Heading + ". " + a.context())
	return stemsOf(slices.DeleteFunc(names, func(w word) bool { return w.number }))
}

// lacksStem reports whether the passage of b lacks one of some stems.
func lacksStem(stems map[string]int, b answer) bool {
	return stemsIn(stems, []map[string]int{b.passage}) < len(stems)
}

// haveOwnWords reports whether stems of a and of b, if there are any, are all lacking in the
// passage of the other.
func haveOwnWords(mine, theirs map[string]int, a, b answer) bool {
	return len(mine) > 0 && len(theirs) > 0 && stemsIn(mine, []map[string]int{b.passage}) == 0 && stemsIn(theirs, []map[string]int{a.passage}) == 0
}

// modifiersDiffer reports whether a word follows one word in a and another in b: "the billing
// service" and "the orders service".
func modifiersDiffer(a, b answer) bool {
	mine, theirs := a.modifiers(), b.modifiers()
	for stem, before := range mine {
		if haveOwnWords(before, theirs[stem], a, b) {
			return true
		}
	}
	return false
}

// modifiers returns the content words directly before each content word of the heading and the
// sentence, without the answer.
func (a answer) modifiers() map[string]map[string]int {
	before := map[string]map[string]int{}
	for _, text := range []string{a.sentence.Heading, a.context()} {
		words := wordsOf(text)
		for i := 1; i < len(words); i++ {
			w, m := words[i], words[i-1]
			if !w.content || !m.content || w.number || m.number {
				continue
			}
			if before[w.stem] == nil {
				before[w.stem] = map[string]int{}
			}
			before[w.stem][m.stem]++
		}
	}
	return before
}

// own counts the content words of the heading and the sentence, without the answer, that
// neither the question nor the passage of b has.
func (a answer) own(b answer, q questionWords) float64 {
	words := stemsOf(contentOf(wordsOf(a.sentence.Heading + ". " + a.context())))
	return float64(len(without(words, b.passage, q.words)))
}

// without returns the stems that none of some bags has.
func without(stems map[string]int, bags ...map[string]int) []string {
	var out []string
	for stem := range stems {
		if stemsIn(map[string]int{stem: 1}, bags) == 0 {
			out = append(out, stem)
		}
	}
	return out
}

// scopesDiffer reports whether a preposition has a word after it in a and another in b that
// the other passage and the question lack: "in summer" and "in winter".
func scopesDiffer(q questionWords, a, b answer) bool {
	theirs := b.scopes()
	for preposition, words := range a.scopes() {
		if len(without(words, b.passage, q.words)) > 0 && len(without(theirs[preposition], a.passage, q.words)) > 0 {
			return true
		}
	}
	return false
}

var prepositions = lazyregexp.New(`(?i)^(?:in|for|at|from|until|since|before|after|with|during|on|by)$`)

// scopes returns the content words after each preposition of the heading and the sentence, without
// the answer.
func (a answer) scopes() map[string]map[string]int {
	after := map[string]map[string]int{}
	for _, text := range []string{a.sentence.Heading, a.context()} {
		preposition := ""
		for _, w := range wordsOf(text) {
			switch lower := strings.ToLower(w.raw); {
			case prepositions.MatchString(lower):
				preposition = lower
				continue
			case preposition != "" && w.content:
				if after[preposition] == nil {
					after[preposition] = map[string]int{}
				}
				after[preposition][w.stem]++
			case slices.Contains(articles, lower) && lower != "of":
				continue
			}
			preposition = ""
		}
	}
	return after
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
			found = found || q.equals(o)
		}
		if !found {
			return false
		}
	}
	return true
}

// equals reports whether two quantities are the same with their units. Unlike agrees, it does
// not accept a rounded value.
func (q quantity) equals(o quantity) bool {
	_, same := q.agrees(o)
	return same && !q.rounds(o) || q.standsFor(o) || o.standsFor(q)
}

// rounds reports whether q is an exact value that differs from o only by rounding.
func (q quantity) rounds(o quantity) bool {
	exact := !q.about && !o.about
	sameUnit := q.unit.factor == o.unit.factor
	return exact && sameUnit && !equal(q.value, o.value) && q.value == math.Round(o.value)
}

// standsFor reports whether the second reading of q is the value of o: "3 pm" is 15.
func (q quantity) standsFor(o quantity) bool { return q.also > 0 && q.also == o.value }
