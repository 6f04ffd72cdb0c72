package local

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

const (
	// leastShared is the share of the question's words from which the words of an answer that is
	// not a quotation tell that it responds.
	leastShared = 0.1

	// maxStatements bounds the statements that the reader reads.
	maxStatements = 12
)

// GradeAnswer implements role.AnswerGrader. It grades an answer by the probability that one of
// its statements, or the words that one cites, answers the question or a part of it. Without a
// reader the grade is the share of the question's words that the statements hold; it is unknown
// for an answer in other words that holds few of them, which may well respond. A statement of
// the section whose heading the question consists of always responds to it. An answer that the
// reader cannot read is a failure. GradeAnswer returns an error only if the run ends.
func (g Judge) GradeAnswer(ctx context.Context, _ role.Caller, in role.AnswerInput) (role.AnswerGrade, error) {
	out := role.AnswerGrade{Lacks: []string{}}
	relevance, known := 0.0, true
	if g.Reader != nil {
		var err error
		relevance, err = g.responds(ctx, in)
		if role.Ends(ctx, err) {
			return role.AnswerGrade{}, err
		}
		if err != nil {
			out.Failure = err.Error()
			return out, nil
		}
	} else {
		relevance, known = respondsByWords(in)
		known = known && (in.Quoted || relevance >= leastShared)
	}
	if asksForSection(in) {
		relevance, known = max(relevance, minAnswered), true
	}
	if known {
		out.Relevance = &relevance
	}
	return out, ctx.Err()
}

// responds returns the probability that an answer responds to its question: the highest that
// the reader gives for one of the excerpts of the answer.
func (g Judge) responds(ctx context.Context, in role.AnswerInput) (float64, error) {
	statements := in.Statements[:min(len(in.Statements), maxStatements)]
	excerpts := excerptsOf(statements)
	best := 0.0
	for _, question := range append([]string{in.Question}, in.Parts...) {
		readings, err := readTexts(ctx, g.Reader, question, excerpts)
		if err != nil {
			return 0, err
		}
		inPassage, err := g.inPassages(ctx, question, statements)
		if err != nil {
			return 0, err
		}
		best = max(best, answerable(readings), inPassage)
	}
	return best, nil
}

// inPassages returns the probability that the quotes of an answer respond to a question where
// they stand: that their passage does, times their share of the answers in it, if they hold
// the likeliest one. The passage responds with the geometric mean of the probabilities that
// it answers and that it helps.
func (g Judge) inPassages(ctx context.Context, question string, statements []role.ShownStatement) (float64, error) {
	var excerpts []llm.Excerpt
	quotes := map[llm.Excerpt][]string{}
	for _, st := range statements {
		for _, text := range st.Passages {
			x := llm.Excerpt{Heading: strings.Join(st.Under, " > "), Text: text}
			if quotes[x] == nil {
				excerpts = append(excerpts, x)
			}
			quotes[x] = append(quotes[x], st.Quotes...)
		}
	}
	readings, err := readTexts(ctx, g.Reader, question, excerpts)
	if err != nil {
		return 0, err
	}
	best := 0.0
	for i, r := range readings {
		best = max(best, math.Sqrt(r.Answerable*r.Relevance)*quotedShare(excerpts[i].Text, r.Spans, quotes[excerpts[i]]))
	}
	return best, nil
}

// quotedShare returns the share of the answers in a text, the likeliest first, that quotes
// from it overlap; 0 if they do not overlap the first.
func quotedShare(text string, spans []llm.Extract, quotes []string) float64 {
	quoted, all := 0.0, 0.0
	for i, s := range spans {
		all += s.Score
		overlaps := slices.ContainsFunc(quotes, func(q string) bool {
			start := strings.Index(text, q)
			return start >= 0 && start < s.End && s.Start < start+len(q)
		})
		switch {
		case overlaps:
			quoted += s.Score
		case i == 0:
			return 0
		}
	}
	if all == 0 {
		return 0
	}
	return quoted / all
}

// excerptsOf returns the texts of an answer to be read: each statement, the words that it
// cites, and all statements together.
func excerptsOf(statements []role.ShownStatement) []llm.Excerpt {
	var excerpts []llm.Excerpt
	var whole []string
	for _, st := range statements {
		heading := strings.Join(st.Under, " > ")
		for _, text := range append([]string{st.Text, st.Labelled()}, st.Quotes...) {
			x := llm.Excerpt{Heading: heading, Text: text}
			if strings.TrimSpace(text) != "" && !slices.Contains(excerpts, x) {
				excerpts = append(excerpts, x)
			}
		}
		whole = append(whole, st.Text)
	}
	if len(whole) > 1 {
		excerpts = append(excerpts, llm.Excerpt{Text: strings.Join(whole, " ")})
	}
	return excerpts
}

// respondsByWords returns the share of the question's words that the statements of an answer
// and the headings of the last one hold. Known is false for texts in different scripts.
func respondsByWords(in role.AnswerInput) (share float64, known bool) {
	var texts []string
	heading := ""
	for _, st := range in.Statements {
		heading = strings.Join(st.Under, " > ")
		switch row := st.Labelled(); {
		case row != "":
			texts = append(texts, row)
		case in.Quoted && len(st.Quotes) > 0:
			texts = append(texts, st.Quotes...)
		default:
			texts = append(texts, st.Text)
		}
	}
	text := strings.Join(texts, "\n")
	known = !strings.ContainsFunc(text, unicode.IsLetter) || latin(text) == latin(in.Question)
	return read(in.Question, nil).coverage(stems("", heading, text)), known
}

// latin reports whether a text has a letter of the Latin script.
func latin(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
}

// asksForSection reports whether the question asks for the section that a statement is from.
func asksForSection(in role.AnswerInput) bool {
	return slices.ContainsFunc(in.Statements, func(st role.ShownStatement) bool {
		return len(st.Under) > 0 && namesSection(in.Question, st.Under[0], st.Under)
	})
}
