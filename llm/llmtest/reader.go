package llmtest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/llm"
)

// A Reader is a test double for llm.Reader. It calls its functions, passage by passage. Without
// them it compares words, and its probabilities are shares of common words. It is deterministic and
// safe for concurrent use if its functions are.
type Reader struct {
	Name string // "" means "scripted/reader"

	// OnRead reads a question against one passage, OnEntail a claim against its passage. If nil,
	// ReadByWords and EntailByWords are used.
	OnRead   func(question string, passage llm.Excerpt) (llm.Reading, error)
	OnEntail func(pair llm.ClaimPair) (llm.Entailment, error)
}

var _ llm.Reader = (*Reader)(nil)

// Model implements llm.Reader.
func (r *Reader) Model() string { return cmp.Or(r.Name, "scripted/reader") }

// Read implements llm.Reader.
func (r *Reader) Read(ctx context.Context, question string, passages []llm.Excerpt) ([]llm.Reading, error) {
	readings := make([]llm.Reading, 0, len(passages))
	for _, p := range passages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		read := ReadByWords
		if r.OnRead != nil {
			read = r.OnRead
		}
		reading, err := read(question, p)
		if err != nil {
			return nil, err
		}
		readings = append(readings, reading)
	}
	return readings, nil
}

// Entail implements llm.Reader.
func (r *Reader) Entail(ctx context.Context, pairs []llm.ClaimPair) ([]llm.Entailment, error) {
	entailments := make([]llm.Entailment, 0, len(pairs))
	for _, p := range pairs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entail := EntailByWords
		if r.OnEntail != nil {
			entail = r.OnEntail
		}
		entailment, err := entail(p)
		if err != nil {
			return nil, err
		}
		entailments = append(entailments, entailment)
	}
	return entailments, nil
}

// ReadByWords returns the sentences with the most words of the question as answers. Answerable is
// the share of the question's words in the best sentence, Relevance their share in the heading and
// the text.
func ReadByWords(question string, p llm.Excerpt) (llm.Reading, error) {
	words := contentWords(question)
	sentences := sentencesOf(p.Text)
	for i := range sentences {
		sentences[i].Score = share(words, p.Text[sentences[i].Start:sentences[i].End])
	}
	slices.SortStableFunc(sentences, func(a, b llm.Extract) int { return cmp.Compare(b.Score, a.Score) })
	reading := llm.Reading{Relevance: share(words, p.Heading+" "+p.Text), Spans: sentences[:min(5, len(sentences))]}
	if len(reading.Spans) > 0 {
		reading.Answerable = reading.Spans[0].Score
	}
	return reading, nil
}

// EntailByWords returns the sentence with the most words of the claim as the decisive one. The
// share of the claim's words in it is the probability of Supported, or of Contradicted if only one
// of claim and sentence has a negation.
func EntailByWords(p llm.ClaimPair) (llm.Entailment, error) {
	reading, err := ReadByWords(p.Claim, p.Passage)
	if err != nil || len(reading.Spans) == 0 {
		return llm.Entailment{Neutral: 1}, err
	}
	best := reading.Spans[0]
	e := llm.Entailment{Supported: best.Score, Neutral: 1 - best.Score, Decisive: best}
	if negated(p.Claim) != negated(p.Passage.Text[best.Start:best.End]) {
		e.Supported, e.Contradicted = 0, best.Score
	}
	return e, nil
}

// contentWords returns the words of four letters or more and those with a digit, or all words if
// there are none of these.
func contentWords(text string) []string {
	all := split(text)
	long := slices.DeleteFunc(slices.Clone(all), func(w string) bool {
		return utf8.RuneCountInString(w) < 4 && !strings.ContainsFunc(w, unicode.IsDigit)
	})
	if len(long) == 0 {
		return all
	}
	return long
}

// share returns the share of words that text contains.
func share(words []string, text string) float64 {
	if len(words) == 0 {
		return 0
	}
	there, n := split(text), 0
	for _, w := range words {
		if slices.Contains(there, w) {
			n++
		}
	}
	return float64(n) / float64(len(words))
}

func negated(text string) bool {
	return slices.ContainsFunc(split(text), func(w string) bool { return w == "not" || w == "no" || w == "never" })
}

// sentencesOf splits a text at line ends and after full stops, question marks and exclamation marks
// that are followed by a blank. Parts without a letter or digit are left out.
func sentencesOf(text string) []llm.Extract {
	var all []llm.Extract
	add := func(start, end int) {
		part := text[start:end]
		if !strings.ContainsFunc(part, isWordRune) {
			return
		}
		end -= len(part) - len(strings.TrimRightFunc(part, unicode.IsSpace))
		start += len(part) - len(strings.TrimLeftFunc(part, unicode.IsSpace))
		all = append(all, llm.Extract{Start: start, End: end})
	}
	start := 0
	for i := range len(text) {
		stop := strings.IndexByte(".?!", text[i]) >= 0 && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n')
		if stop || text[i] == '\n' {
			add(start, i+1)
			start = i + 1
		}
	}
	add(start, len(text))
	return all
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
