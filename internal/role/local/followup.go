package local

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ambiguity"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
)

// A followUp is a question that was resolved against its conversation.
type followUp struct {
	question string   // resolved; empty: the question stands alone
	open     string   // a personal pronoun without a unique antecedent; empty: none
	means    []string // possible antecedents of open; nil: unknown
	person   string   // antecedent of a personal pronoun; empty: none
	pronouns string   // of the person: "he" or "she"
}

// The bounds of resolving.
const (
	maxTurns    = 8   // turns of the conversation
	maxFollowed = 300 // bytes of a question
)

// resolve resolves a question against the last one of its conversation, which was itself
// resolved against the one before:
//
//   - a reply to a clarification is put into the question that needed it;
//   - "And in Germany?" repeats the last question with some words replaced;
//   - a pronoun stands for the topic of the last question, a personal one for a person whom
//     the last turn names;
//   - a question without a content word is appended to the last one.
func resolve(question string, history []assay.Turn) followUp {
	before := thread{pronouns: map[string]string{}}
	for _, t := range history[max(0, len(history)-maxTurns):] {
		t.Question, t.Answer = visible.Line(t.Question), visible.Line(t.Answer)
		f := follow(cmp.Or(visible.Line(t.Asked), t.Question), before)
		if f.question != "" && t.Asked == "" {
			t.Question = f.question
		}
		if f.person != "" && strings.Contains(t.Question, f.person) {
			before.pronouns[f.person] = f.pronouns
		}
		if offered := ambiguity.Offered(t.Answer); len(offered) > 0 {
			before.offered = offered
		}
		isQuestion := len(contentWords(t.Question)) > 0 && !smallTalk.MatchString(t.Question)
		if len(t.Question) <= maxFollowed && (isQuestion || ambiguity.AsksBack(t.Answer)) {
			before.last = t
		}
	}
	return follow(question, before)
}

// A thread is the state of a conversation.
type thread struct {
	last     assay.Turn
	pronouns map[string]string // "he" or "she", by the person that it stood for
	offered  []string          // readings of the last clarification
}

var (
	smallTalk = lazyregexp.New(`(?i)^(?:thanks?(?: you)?|ok(?:ay)?|great|good|perfect|fine|sure|yes|no|hello|hi|bye|got it|i see)\b(?:[ ,.!]*(?:thanks?(?: you)?|then|very much|so much|please))*[ .!]*$`)
	another   = lazyregexp.New(`(?i)^(?:(?:and|but|or|so|then)[, ]+)*(?:(?:what|how) about\s+|is it the same\s+)?((?:(in|on|at|for|with|from|to|under|during|after|before|since|without|of)\s+)?\S+(?:\s+\S+){0,5}?)[?.! ]*$`)
	asks      = lazyregexp.New(`(?i)\b(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|should|will|would|must|has|have)\b`)
	itself    = lazyregexp.New(`(?i)\bit (?:take|possible|necessary|ok|okay|allowed|required|safe|legal|true|better|best)\b|\bwhat time\b`)
	aThing    = lazyregexp.New(`(?i)\b(?:the|a|an|my|our|your|each|every|some|any|no|if)\s+\S+`)
	ofThing   = lazyregexp.New(`(?i)^(?:what|who|where|when|how(?: \w+)?)(?:'s| is| are| was| were) (.+?)[?. ]*$`)
)

// follow resolves a question against a conversation.
func follow(question string, before thread) followUp {
	last := before.last
	if last.Question == "" || len(question) > maxFollowed || smallTalk.MatchString(question) {
		return followUp{}
	}
	if ambiguity.AsksBack(last.Answer) {
		if meant := meantBy(question, ambiguity.Offered(last.Answer)); meant != "" {
			return followUp{question: withTopic(last.Question, meant)}
		}
		return followUp{}
	}
	if len(contentWords(question)) == 0 && pronounIn(question) == nil {
		return followUp{question: last.Question + " " + question}
	}
	if words, preposition := replacementIn(question); words != "" {
		if instead := insteadOf(last.Question, words, before.offered); instead != "" {
			return followUp{question: instead}
		}
		return followUp{question: inPlaceOfLike(last.Question, strings.TrimRight(words, "?!. "), preposition)}
	}
	at := pronounIn(question)
	switch {
	case at == nil:
		return followUp{}
	case personal[strings.ToLower(question[at[0]:at[1]])] != "":
		return ofPerson(question, at, before)
	}
	return followUp{question: withTopic(question, subjectOf(last.Question))}
}

// replacementIn returns the words of a question like "And in Germany?", with their preposition.
// It returns nothing for other questions.
func replacementIn(question string) (words, preposition string) {
	m := another.FindStringSubmatch(question)
	if m == nil || !strings.HasSuffix(question, "?") {
		return "", ""
	}
	if asks.MatchString(m[1]) || pronounIn(m[1]) != nil {
		return "", ""
	}
	return m[1], m[2]
}

// meantBy returns the offered reading that a reply names or numbers, or the reply itself if it
// has only a few words. It returns nothing if the reply is another question.
func meantBy(reply string, offered []string) string {
	bare := strings.TrimRight(reply, "?!. ")
	held, named := stems("", bare), namedOf(bare, offered)
	if len(named) == 1 {
		return named[0]
	}
	for i, names := range [][]string{{"first", "1"}, {"second", "2"}, {"third", "3"}} {
		if len(named) == 0 && i < len(offered) && slices.ContainsFunc(names, func(n string) bool { return held[n] }) {
			return offered[i]
		}
	}
	if len(strings.Fields(bare)) > 5 || asks.MatchString(bare) || pronounIn(bare) != nil {
		return ""
	}
	return bare
}

// namedOf returns the readings whose words a text contains, or that contain all content words of
// the text.
func namedOf(text string, readings []string) []string {
	held, hasContent := stems("", text), len(contentWords(text)) > 0
	var named []string
	for _, r := range readings {
		if within(held, stems("", r)) || hasContent && within(stems("", r), contentOf(text)) {
			named = append(named, r)
		}
	}
	return named
}

// insteadOf returns a question with one of the offered readings replaced by the one that words
// name. It returns nothing if words do not name one, or the question has none.
func insteadOf(question, words string, offered []string) string {
	named := namedOf(words, offered)
	if len(named) != 1 {
		return ""
	}
	for _, r := range offered {
		if r != named[0] && strings.Contains(question, r) {
			return strings.Replace(question, r, named[0], 1)
		}
	}
	return ""
}

var personal = map[string]string{"he": "he", "him": "he", "his": "he", "she": "she", "her": "she"}

// demonstratives may stand before a noun: "this year".
var demonstratives = map[string]bool{"this": true, "that": true, "these": true, "those": true, "one": true, "ones": true}

// pronounIn returns the place of the first pronoun without an antecedent in the question.
func pronounIn(question string) []int {
	if itself.MatchString(question) {
		return nil
	}
	for _, at := range pronoun.FindAllStringIndex(question, -1) {
		word, next := strings.ToLower(question[at[0]:at[1]]), lexical.Words(question[at[1]:])
		if before := question[:at[0]]; aThing.MatchString(before) || len(lexical.Names(before)) > 0 {
			return nil
		}
		beforeNoun := len(next) > 0 && !lexical.Function(strings.ToLower(next[0]))
		isConjunction := word == "that" && len(contentWords(question[:at[0]])) > 0
		if demonstratives[word] && (beforeNoun || isConjunction) {
			continue // "this year", "say that"
		}
		return at
	}
	return nil
}

// subjectOf returns the topic of a question: the text after an opening such as "What is", or
// else the text from the first content word to the last.
func subjectOf(question string) string {
	if m := ofThing.FindStringSubmatch(question); m != nil && len(contentWords(m[1])) > 0 {
		return m[1]
	}
	words := contentWords(question)
	if len(words) == 0 {
		return strings.TrimRight(question, "?!. ")
	}
	last := words[len(words)-1]
	start, end := strings.Index(question, words[0]), strings.LastIndex(question, last)+len(last)
	return question[start:max(start, end)]
}

// withTopic returns a question with its pronoun replaced by a topic, or with the topic in
// brackets after it if the pronoun cannot be replaced.
func withTopic(question, topic string) string {
	at := pronounIn(question)
	word := ""
	if at != nil {
		word = strings.ToLower(question[at[0]:at[1]])
	}
	switch word {
	case "it", "they", "them", "this", "that", "these", "those", "he", "she", "him":
		return question[:at[0]] + topic + question[at[1]:]
	case "its", "their", "his", "her":
		return question[:at[0]] + topic + "'s" + question[at[1]:]
	}
	return strings.TrimRight(question, "?!. ") + " (" + topic + ")?"
}

// inPlaceOfLike returns a question with words in place of the phrase after the same preposition,
// of its only name, or of words with the same head. Otherwise they follow it in brackets.
func inPlaceOfLike(question, words, preposition string) string {
	names := lexical.Names(question)
	if preposition != "" {
		if at := strings.LastIndex(question, " "+strings.ToLower(preposition)+" "); at >= 0 {
			return question[:at+1] + words + "?"
		}
		return strings.TrimRight(question, "?!. ") + " " + words + "?"
	}
	if len(names) == 1 && slices.Equal(lexical.Names("of "+words), []string{words}) {
		return strings.Replace(question, names[0], words, 1)
	}
	if instead := inPlaceOfHead(question, words); instead != "" {
		return instead
	}
	return strings.TrimRight(question, "?!. ") + " (" + words + ")?"
}

// inPlaceOfHead returns a question with words in place of those with the same head: "parental
// leave" replaces "annual leave". It returns nothing if the question has no such words.
func inPlaceOfHead(question, words string) string {
	fresh := contentWords(words)
	if len(fresh) < 2 || within(stems("", question), stems("", words)) {
		return ""
	}
	head, at := stems("", fresh[len(fresh)-1]), wordsIn.FindAllStringIndex(question, -1)
	for i, w := range at {
		if !within(stems("", question[w[0]:w[1]]), head) {
			continue
		}
		first := i
		for first > 0 && i-first+1 < len(fresh) && len(contentWords(question[at[first-1][0]:at[first-1][1]])) > 0 {
			first--
		}
		return question[:at[first][0]] + strings.Join(fresh, " ") + question[w[1]:]
	}
	return ""
}

var wordsIn = lazyregexp.New(`[\pL\pN'’-]+`)

// ofPerson returns a question with the pronoun at at replaced by a person: the only name of two
// words or more in the last question, else in the first sentence of its answer. Names of
// people who are known to have another pronoun do not count.
func ofPerson(question string, at []int, before thread) followUp {
	answer, _, _ := strings.Cut(before.last.Answer, ". ")
	open := followUp{open: question[at[0]:at[1]]}
	pronouns := personal[strings.ToLower(open.open)]
	for _, text := range []string{before.last.Question, "of " + answer} {
		people := slices.DeleteFunc(lexical.Names(text), func(n string) bool {
			other := before.pronouns[n] != "" && before.pronouns[n] != pronouns
			return other || !strings.Contains(n, " ") || strings.ContainsAny(n, "0123456789_/")
		})
		if len(people) == 1 {
			return followUp{question: withTopic(question, people[0]), person: people[0], pronouns: pronouns}
		}
		if len(people) > 1 && open.means == nil {
			open.means = people
		}
	}
	return open
}
