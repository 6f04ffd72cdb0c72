package local

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Planner cuts questions by grammar: several questions in one, comparisons of
// named things, and "the X of the Y that Z". What it does not recognise it
// leaves whole, which is always right if not always best.
type Planner struct{}

// Plan implements role.Planner. It returns an error only when ctx has ended.
func (Planner) Plan(ctx context.Context, _ role.Caller, question string) (role.Plan, error) {
	if err := ctx.Err(); err != nil {
		return role.Plan{}, err
	}
	question = strings.Join(strings.Fields(question), " ")
	if parts := conjuncts(question); len(parts) > 1 {
		return planOf(role.Conjunction, parts), nil
	}
	if parts := comparands(question); len(parts) > 1 {
		return planOf(role.Comparison, parts), nil
	}
	if links := chain(question); links != nil {
		return role.Plan{Shape: role.Chain, SubQuestions: links}, nil
	}
	if inner := relative(question); inner != "" && !numbered.MatchString(question) {
		return role.Plan{Shape: role.Chain, SubQuestions: []role.SubQuestion{
			{Text: inner},
			{Text: question, Needs: []int{0}},
		}}, nil
	}
	return planOf(role.Single, []string{question}), nil
}

func planOf(shape role.PlanShape, texts []string) role.Plan {
	p := role.Plan{Shape: shape}
	for _, t := range texts {
		p.SubQuestions = append(p.SubQuestions, role.SubQuestion{Text: t})
	}
	return p
}

// asks matches what a question of its own begins with.
const asks = `(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|should|will|would|must)`

var (
	nextQuestion = regexp.MustCompile(`(?i),?\s+(?:and|or|but)(?:\s+also)?,?\s+((?:who|whom|whose|what|which|when|where|why|how)\s+(?:\S+\s+)*?\S+)`)
	nextYesNo    = regexp.MustCompile(`(?i),\s+(?:and|or|but)(?:\s+also)?\s+((?:is|are|was|were|do|does|did|can|could|should|will|would|must|may)\s+(?:\S+\s+)+?\S+)`)
	opensAsking  = regexp.MustCompile(`(?i)^(?:and |or |but |also )*` + asks + `\b`)
	pronoun      = regexp.MustCompile(`(?i)\b(it|its|one|ones|they|them|their|this|that|these|those|he|she|his|her)\b`)
)

// conjuncts cuts a question at its sentences, and a sentence at an "and" before
// another question word. A part that refers back ("and how do I stop it?") takes
// along what the one before names.
func conjuncts(question string) []string {
	var parts []string
	for _, sp := range sentence.Spans(question) {
		s := question[sp.Start:sp.End]
		if !opensAsking.MatchString(s) {
			return nil // "I have a server. How do I stop it?" is one question with its setting
		}
		for at := nextAsked(s); at != nil; at = nextAsked(s) {
			parts = append(parts, strings.Trim(s[:at[0]], " ,;"))
			s = s[at[2]:]
		}
		parts = append(parts, strings.Trim(s, " ,;"))
	}
	for i, p := range parts {
		if len(contentWords(p)) == 0 {
			return nil // "how and why does …": one question asked twice
		}
		if i > 0 && pronoun.MatchString(p) && len(contentWords(p)) < 3 {
			parts[i] = strings.TrimRight(p, "?. ") + " (" + strings.Join(topic(parts[0]), " ") + ")?"
		} else if i < len(parts)-1 {
			parts[i] = strings.TrimRight(p, "?. ") + "?"
		}
	}
	return parts
}

// nextAsked finds where in a sentence another question begins: the match, and
// its question.
func nextAsked(s string) []int {
	if at := nextQuestion.FindStringSubmatchIndex(s); at != nil {
		return at
	}
	return nextYesNo.FindStringSubmatchIndex(s)
}

// topic returns the words that say what a question is about: what it names, or
// its last content words.
func topic(question string) []string {
	if names := surface.Names(surface.Quiet(question)); len(names) > 0 {
		return names
	}
	words := contentWords(question)
	return words[max(0, len(words)-3):]
}

func contentWords(text string) []string {
	asking := surface.Asking(text)
	return slices.DeleteFunc(surface.Words(text), func(w string) bool {
		w = strings.ToLower(w)
		return surface.Function(w) || asking[w]
	})
}

var comparisons = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^(?:what(?:'s| is| are)?(?: the)?|how do)?\s*(?:difference|differences) (?:between|of) (.+?) and (.+?)\??$`),
	regexp.MustCompile(`(?i)^(?:please )?compare (.+?) (?:and|with|to|against) (.+?)[?.]?$`),
	regexp.MustCompile(`(?i)^(?:how|in what way|in which way)s? (?:do|does|is|are) (.+?) (?:differ|different) from (.+?)\??$`),
	regexp.MustCompile(`(?i)^(?:how|in what way|in which way)s? (?:do|does|is|are) (.+?) and (.+?) (?:differ|different|compare)\??$`),
	regexp.MustCompile(`(?i)^(\S+(?: \S+){0,3}) (?:vs\.?|versus) (\S+(?: \S+){0,3}?)\??$`),
}

var (
	choice = regexp.MustCompile(`(?i)^(which|who|what)\b(.+?)[,:]\s*(.+?)\s+or\s+(.+?)\??$`)
	both   = regexp.MustCompile(`(?i)^(?:are|were|do|did|have|is) (?:both )?(.+?) and (.+?) (?:both |each )(.+?)\??$`)
)

// comparands returns one question for each thing that a question compares.
func comparands(question string) []string {
	for _, re := range comparisons {
		if m := re.FindStringSubmatch(question); m != nil && short(m[1]) && short(m[2]) {
			return withHead(bare(m[1]), bare(m[2]))
		}
	}
	if m := choice.FindStringSubmatch(question); m != nil && short(m[3]) && short(m[4]) {
		rest := strings.TrimSpace(m[2])
		return []string{bare(m[3]) + ": " + m[1] + " " + rest + "?", bare(m[4]) + ": " + m[1] + " " + rest + "?"}
	}
	if m := both.FindStringSubmatch(question); m != nil && short(m[1]) && short(m[2]) {
		return []string{"Is " + m[1] + " " + m[3] + "?", "Is " + m[2] + " " + m[3] + "?"}
	}
	return nil
}

// withHead gives the first of two things the head that it shares with the
// second: "soft" and "hard reset" are "soft reset" and "hard reset".
func withHead(a, b string) []string {
	short, long := strings.Fields(a), strings.Fields(b)
	if len(short) < len(long) {
		a = strings.Join(append(short, long[len(short):]...), " ")
	}
	return []string{a, b}
}

func short(s string) bool { return len(surface.Words(s)) <= 8 }

func bare(s string) string {
	for _, article := range []string{"the ", "a ", "an "} {
		if len(s) > len(article) && strings.EqualFold(s[:len(article)], article) {
			return s[len(article):]
		}
	}
	return s
}

// inner matches the Y of "the X of the Y that Z": a thing that is known only by
// what is said of it.
var inner = regexp.MustCompile(`(?i)\b(?:of|by|for|in|from|to|with|at) (?:the|a|an) ((?:\S+ ){1,4}?(?:that|which|who|whose|where) .+?)\??$`)

// relative returns that Y with its clause, or "".
func relative(question string) string {
	m := inner.FindStringSubmatch(question)
	if m == nil || len(contentWords(m[1])) < 2 {
		return ""
	}
	return m[1]
}
