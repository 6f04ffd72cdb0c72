package ground

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
)

// maxParts is the maximum number of parts of a claim. Neighbours are joined if there are more.
const maxParts = 10

var (
	// auxiliary matches the finite verbs that can be recognised without a dictionary.
	auxiliary = lazyregexp.New(`(?i)\b(?:is|are|was|were|has|have|had|can|cannot|may|must|will|would|should|shall|could|does|do|did|isn't|aren't|wasn't|weren't|can't|won't|doesn't|don't|didn't)\b`)

	// joint matches a place where two clauses may be joined.
	joint = lazyregexp.New(`;\s+|,?\s+(?:and|but|while|whereas)\s+`)

	// subordinate matches words that open a clause on which the rest of the sentence may depend.
	subordinate = lazyregexp.New(`(?i)\b(?:if|when|whenever|unless|until|because|since|although|though|whether|once|provided|either|neither|nor|both|between|not only|which|who|whom|whose|that|what|how|where)\b`)

	pronoun = lazyregexp.New(`(?i)^(?:it|its|they|their|he|his|she|her|this|these|that|those|such|both|the (?:latter|former|same|other))\b`)
)

// partsOf splits a claim into sentences, and sentences into clauses that each have a finite
// verb. It is conservative: a clause that may depend on another one is not split off.
func partsOf(claim string) []string {
	var parts []string
	lead := "" // a question, which the next sentence answers
	for _, u := range unitsOf(claim) {
		text := claim[u.Start:u.End]
		switch {
		case !hasWord(text):
			continue
		case isQuestion(text):
			lead += text + " "
			continue
		case pronoun.MatchString(text) && len(parts) > 0 && lead == "":
			parts[len(parts)-1] += " " + text
			continue
		}
		clauses := clausesOf(text)
		clauses[0] = lead + clauses[0]
		parts, lead = append(parts, clauses...), ""
	}
	if len(parts) == 0 {
		return []string{claim}
	}
	var joined []string
	for group := range slices.Chunk(parts, (len(parts)+maxParts-1)/maxParts) {
		joined = append(joined, strings.Join(group, " "))
	}
	return joined
}

// clausesOf splits a sentence into clauses that each have a finite verb.
func clausesOf(text string) []string {
	verb := auxiliary.FindStringIndex(text)
	if verb == nil || verb[0] == 0 || strings.ContainsAny(text, "\n`|{}()\"") {
		return []string{text}
	}
	subject := text[:verb[0]]
	var out []string
	start := 0
	for _, at := range joint.FindAllStringIndex(text, -1) {
		before, after := text[start:at[0]], text[at[1]:]
		dependent := subordinate.MatchString(before) || pronoun.MatchString(after)
		if dependent || at[0] < verb[1] || at[0] <= start {
			continue
		}
		next := auxiliary.FindStringIndex(after)
		switch {
		case next == nil || !auxiliary.MatchString(before):
			continue
		case next[0] == 0: // a second predicate of the same subject
			after = subject + after
		case !startsClause(after[:next[0]]):
			continue
		}
		out = append(out, before)
		return append(out, clausesOf(after)...)
	}
	return append(out, text)
}

// startsClause reports whether the words before a verb can be its subject: a few words
// without a comma or another joint.
func startsClause(subject string) bool {
	const most = 5
	if strings.ContainsAny(subject, ",;:") || joint.MatchString(subject) || subordinate.MatchString(subject) {
		return false
	}
	n := len(strings.Fields(subject))
	return n > 0 && n <= most
}

// Standalone returns a claim in a form that can be understood without the text before it. A claim
// that begins with a pronoun gets the first name in that text, "Pro plan: It costs 3 euros". An
// answer that is too short to be a sentence gets the question.
func Standalone(question, before, claim string) string {
	const shortest = 4 // words of the shortest sentence
	claim = strings.TrimSpace(claim)
	switch {
	case before == "" && len(strings.Fields(claim)) < shortest && isQuestion(question):
		return strings.TrimSpace(question) + " " + claim
	case pronoun.MatchString(claim):
		if before == "" {
			before = question
		}
		if name := firstName(before); name != "" && !strings.Contains(claim, name) {
			return name + ": " + claim
		}
	}
	return claim
}

// firstName returns the first name of a text, or "".
func firstName(text string) string {
	for _, name := range lexical.Names(text) {
		return name
	}
	return ""
}
