package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/role"
)

// Planner splits questions by a little English grammar: several questions in one, comparisons
// of two things, and questions about a thing that a description stands for. It leaves any
// other question whole, which is always correct if not always best.
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
	if chain := chained(question); len(chain) > 1 {
		return role.Plan{Shape: role.Chain, SubQuestions: chain}, nil
	}
	return planOf(role.Single, []string{question}), nil
}

// Revise implements role.Planner. It keeps every plan, because grammar does not tell whether a
// result contradicts one. It returns an error only when ctx has ended.
func (Planner) Revise(ctx context.Context, _ role.Caller, _ role.RevisionInput) (role.Revision, error) {
	return role.Revision{Decision: role.Keep, Reason: "the local planner does not revise plans"}, ctx.Err()
}

// maxChain is the number of sub-questions of a chain.
const maxChain = 6

// chained splits a question at its nested descriptions, the innermost first. Each sub-question has a
// slot for the answer to the one before it. The result is the question alone if there is none.
func chained(question string) []role.SubQuestion {
	var outer []string
	for len(outer) < maxChain-1 {
		inner, around := described(question)
		if inner == "" {
			break
		}
		question, outer = inner, append(outer, around)
	}
	chain := []role.SubQuestion{{Text: question}}
	for _, text := range slices.Backward(outer) {
		n := len(chain)
		chain = append(chain, role.SubQuestion{Text: strings.ReplaceAll(text, "#1", fmt.Sprintf("#%d", n)), Needs: []int{n - 1}})
	}
	return chain
}

func planOf(shape role.PlanShape, texts []string) role.Plan {
	p := role.Plan{Shape: shape}
	for _, t := range texts {
		p.SubQuestions = append(p.SubQuestions, role.SubQuestion{Text: t})
	}
	return p
}

// spelledOut returns the sub-questions of a plan, with references to answers replaced by the
// questions that they answer.
func spelledOut(plan role.Plan) []string {
	texts := make([]string, len(plan.SubQuestions))
	for i, sub := range plan.SubQuestions {
		texts[i] = sub.Text
		for _, n := range sub.Needs {
			texts[i] = strings.ReplaceAll(texts[i], fmt.Sprintf("#%d", n+1), texts[n])
		}
	}
	return texts
}

var (
	nextQuestion = lazyregexp.New(`(?i),?\s+(?:and|or|but)(?:\s+also)?,?\s+((?:who|whom|whose|what|which|when|where|why|how)\s+(?:\S+\s+)*?\S+)`)
	nextYesNo    = lazyregexp.New(`(?i),\s+(?:and|or|but)(?:\s+also)?\s+((?:is|are|was|were|do|does|did|can|could|should|will|would|must|may)\s+(?:\S+\s+)+?\S+)`)
	opensAsking  = lazyregexp.New(`(?i)^(?:and |or |but |also )*(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|should|will|would|must)\b`)
	pronoun      = lazyregexp.New(`(?i)\b(it|its|one|ones|they|them|their|this|that|these|those|he|him|she|his|her)\b`)
)

// conjuncts splits a question into sentences, and a sentence at an "and" before another
// question word. A part that refers back ("and how do I stop it?") gets the topic of the
// first one.
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
		switch {
		case len(contentWords(p)) == 0:
			return nil // "how and why does …": one question asked twice
		case i > 0 && pronoun.MatchString(p) && len(contentWords(p)) < 3:
			parts[i] = strings.TrimRight(p, "?. ") + " (" + topicOf(parts[0]) + ")?"
		case i < len(parts)-1:
			parts[i] = strings.TrimRight(p, "?. ") + "?"
		}
	}
	return parts
}

// nextAsked finds the next question in a sentence: the indexes of the match, and of the
// question in it.
func nextAsked(s string) []int {
	if at := nextQuestion.FindStringSubmatchIndex(s); at != nil {
		return at
	}
	return nextYesNo.FindStringSubmatchIndex(s)
}

// topicOf returns the topic of a question: its names, else its last content words.
func topicOf(question string) string {
	if names := lexical.Names(lexical.Quiet(question)); len(names) > 0 {
		return strings.Join(names, " ")
	}
	words := contentWords(question)
	return strings.Join(words[max(0, len(words)-3):], " ")
}

var comparisons = []*lazyregexp.Regexp{
	lazyregexp.New(`(?i)^(?:what(?:'s| is| are)?(?: the)?|how do)?\s*(?:difference|differences) (?:between|of) (.+?) and (.+?)\??$`),
	lazyregexp.New(`(?i)^(?:please )?compare (.+?) (?:and|with|to|against) (.+?)[?.]?$`),
	lazyregexp.New(`(?i)^how (?:do|does|is|are) (.+?) (?:differ|different) from (.+?)\??$`),
	lazyregexp.New(`(?i)^how (?:do|does|is|are) (.+?) and (.+?) (?:differ|different|compare)\??$`),
	lazyregexp.New(`(?i)^(\S+(?: \S+){0,3}) (?:vs\.?|versus) (\S+(?: \S+){0,3}?)\??$`),
}

var (
	choice = lazyregexp.New(`(?i)^(which|who|what)\b(.+?)[,:]\s*(.+?)\s+or\s+(.+?)\??$`)
	both   = lazyregexp.New(`(?i)^(?:are|were|do|did|have|is) (?:both )?(.+?) and (.+?) (?:both |each )(.+?)\??$`)
)

// comparands returns a question for each of the two things that a question compares.
func comparands(question string) []string {
	short := func(s string) bool { return len(lexical.Words(s)) <= 8 }
	for _, re := range comparisons {
		if m := re.FindStringSubmatch(question); m != nil && short(m[1]) && short(m[2]) {
			return withHead(bare(m[1]), bare(m[2]))
		}
	}
	if m := choice.FindStringSubmatch(question); m != nil && short(m[3]) && short(m[4]) {
		asked := ": " + m[1] + " " + strings.TrimSpace(m[2]) + "?"
		return []string{bare(m[3]) + asked, bare(m[4]) + asked}
	}
	if m := both.FindStringSubmatch(question); m != nil && short(m[1]) && short(m[2]) {
		return []string{"Is " + m[1] + " " + m[3] + "?", "Is " + m[2] + " " + m[3] + "?"}
	}
	return nil
}

// withHead completes the first of two things with the head of the second: "soft" and "hard
// reset" become "soft reset" and "hard reset".
func withHead(a, b string) []string {
	short, long := strings.Fields(a), strings.Fields(b)
	if len(short) < len(long) {
		a = strings.Join(append(short, long[len(short):]...), " ")
	}
	return []string{a, b}
}

// bare returns a phrase without its article.
func bare(s string) string {
	first, rest, ok := strings.Cut(s, " ")
	if ok && slices.Contains([]string{"the", "a", "an"}, strings.ToLower(first)) {
		return rest
	}
	return s
}

// description matches a description at the end of a question that stands for a thing: "the
// city where X died", "the director of X".
var description = lazyregexp.New(`\S ((?:the|a|an) (?:\S+ ){1,2}?(?:that|which|who|whose|where) .*[A-Z].*?)\??$|\b(?:of|by|for|in|from|to|through|with|at) ((?:the|a|an) (?:\S+ ){1,3}?of .*[A-Z].*?)\??$`)

// described splits a question into the description at its end and the question about the thing
// described, "#1". Both are empty if there is no description.
func described(question string) (inner, outer string) {
	at := description.FindStringSubmatchIndex(question)
	if at == nil {
		return "", ""
	}
	start, end := max(at[2], at[4]), max(at[3], at[5])
	if len(contentWords(question[start:end])) < 2 {
		return "", ""
	}
	return question[start:end], question[:start] + "#1" + question[end:]
}
