package lexical

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// Dangling returns the words of an English question whose antecedent is not in the question: "it"
// in "How do I configure it?", "the second one" in "What about the second one?". It returns the
// whole question if that has no content word ("Why?"), continues another question ("And in
// Germany?"), or names only the unit to count or choose ("How many days?"). Bare is set if no other
// word of the question is worth a search.
//
// It returns "" if the question has its topic, if "it" is a dummy pronoun ("Is it possible to …"),
// or if the antecedent may be in the question ("If a request fails, is it retried?").
func Dangling(question string) (dangling string, bare bool) {
	goes := goesOn.MatchString(question) && !verbal(question)
	named := len(Names(Quiet(question))) > 0 || namedByFunctionWords(question)
	if named && !goes || aboutAll.MatchString(question) {
		return "", false
	}
	spans := wordSpans(question)
	if len(spans) == 0 {
		return "", false
	}
	words := make([]string, len(spans))
	for i, w := range spans {
		words[i] = strings.ToLower(strings.ReplaceAll(question[w.start:w.end], "’", "'"))
	}
	from, to := referring(words)
	topics := slices.DeleteFunc(topicWords(words), func(i int) bool { return from <= i && i < to })
	switch {
	case len(topics) > 0 && (goes || unitAlone.MatchString(question)):
		return strings.TrimRight(strings.TrimSpace(question), "?!. "), true
	case len(topics) == 0:
		if from < to {
			return question[spans[from].start:spans[to-1].end], true
		}
		return strings.TrimRight(strings.TrimSpace(question), "?!. "), true
	case from == to || !subjectless(words, topics, from, to):
		return "", false
	}
	return question[spans[from].start:spans[to-1].end], false
}

// namedByFunctionWords reports whether a function word is capitalised within a sentence, and so
// is a name: "Who are The Who?", "Who wrote It?".
func namedByFunctionWords(question string) bool {
	spans := wordSpans(question)
	for i, w := range spans {
		word := question[w.start:w.end]
		begins := i == 0 || strings.ContainsAny(question[spans[i-1].end:w.start], ".?!:\"“")
		isI := word == "I" || strings.HasPrefix(word, "I'") || strings.HasPrefix(word, "I’")
		if capitalised(word) && !begins && !isI {
			return true
		}
	}
	return false
}

var (
	// goesOn matches a question that continues another one.
	goesOn = lazyregexp.New(`(?i)^(?:and|but|or)(?: (?:then|also))?,? [^?!.,:;]{1,60}\?+ *$`)

	// unitAlone matches questions that name only the unit to count or choose.
	unitAlone = lazyregexp.New(`(?i)^(?:and |but |so )?(?:how (?:many|much) [\p{L}-]+[?!. ]*|(?:which|what|whose) [\p{L}-]+\?+ *|how (?:many|much) [\p{L}-]+ (?:is|are|was|were) (?:it|that|they)[?!. ]*)$`)
)

// verbal reports whether a text has an auxiliary or a question word.
func verbal(text string) bool {
	return slices.ContainsFunc(Words(strings.ToLower(text)), func(w string) bool { return auxiliaries[w] || questionWords[w] })
}

// aboutAll matches questions whose "it" or "this" refers to all documents, or is a dummy pronoun.
var aboutAll = lazyregexp.New(`(?i)\b(about|(what|which) (time|day|date|year|month) (is|was) it)\s*[?.!]*$`)

// referents are pronouns that need an antecedent.
var referents = set(`it its itself they them their theirs he him his she her hers this that these those`)

// deictic are the referents that can stand before a noun: "this project".
var deictic = set(`this that these those its their his her`)

// ordered are words before "one" that choose one of several things: "the second one".
var ordered = set(`the this that which other another first second third last next former latter same right wrong better best`)

// ones refer to one of several things.
var ones = set(`one ones former latter`)

// referring returns the first words that need an antecedent: words[from:to].
func referring(words []string) (from, to int) {
	for i, w := range words {
		switch {
		case ones[w]:
			from := i
			for from > 0 && ordered[words[from-1]] {
				from--
			}
			ofThings := i+1 < len(words) && words[i+1] == "of"
			if from < i && !ofThings {
				return from, i + 1
			}
		case referents[w]:
			if clause(words, i) || i+1 < len(words) && words[i+1] == "one" {
				continue
			}
			return i, i + 1
		}
	}
	return 0, 0
}

// clause reports whether "that" at i is a conjunction ("everything that changed"), or "it" a
// dummy pronoun ("Is it true that …").
func clause(words []string, i int) bool {
	switch words[i] {
	case "that":
		if i == 0 || i+1 == len(words) {
			return false
		}
		before := words[i-1]
		return !auxiliaries[before] && !prepositions[before] && !questionWords[before]
	case "it":
		return slices.ContainsFunc(words[i+1:], func(w string) bool { return clauseOpeners[w] })
	}
	return false
}

// clauseOpeners follow a dummy "it": "possible to", "mean that", "safe if".
var clauseOpeners = set(`to that if when for`)

var (
	auxiliaries   = set(`am is are was were be do does did has have had can could may might must shall should will would isn't aren't doesn't don't didn't can't`)
	prepositions  = set(`of in on at by for with without about against between into onto through during before after from to up down off over under per via`)
	questionWords = set(`who whom whose what which when where why how`)
	determiners   = set(`a an the my your our any some no every each all which what whose many much more most`)
)

// asides are content words without a topic: when, how well, how far.
var asides = set(`later afterwards again once twice today tomorrow yesterday soon quickly properly correctly automatically manually
exactly actually really basically well better best fast faster instead maybe perhaps together back away ok okay hello hi thanks thank sorry
details detail example examples else`)

// topicWords returns the indexes of the words that may be the topic of a question.
func topicWords(words []string) []int {
	asking := Asking(strings.Join(words, " "))
	var topics []int
	for i, w := range words {
		isFunction := Function(w) || Function(strings.ReplaceAll(w, "'", "")) || contracted(w)
		if !isFunction && !asking[w] && !asides[w] {
			topics = append(topics, i)
		}
	}
	return topics
}

// contracted reports whether a word is a contraction of a function word: "what's", "it'll".
func contracted(w string) bool {
	head, _, ok := strings.Cut(w, "'")
	return ok && Function(head)
}

// subjectless reports whether the topics of a question are only predicates or properties of
// words[from:to]: "configure it", "is that allowed", "its advantages". There is at least one
// topic.
func subjectless(words []string, topics []int, from, to int) bool {
	last := topics[len(topics)-1]
	if beforeNoun := to-from == 1 && topics[0] == to; beforeNoun && deictic[words[from]] {
		if possessives[words[from]] { // "its advantages": a single noun phrase
			return len(topics) <= 2 && last-to < 3 && last == len(words)-1
		}
		isPredicate := from > 0 && auxiliaries[words[from-1]] && to == len(words)-1 // "is that allowed"
		return isPredicate && len(topics) == 1
	}
	for k, i := range topics {
		if i > 0 && opensPhrase(words[i-1]) {
			return false // "the server", "in production"
		}
		if k > 0 && !(i == topics[k-1]+2 && coordinates(words[i-1])) {
			return false // not "install and configure"
		}
	}
	if last < from {
		return from-last <= 2 && !isNoun(words, topics[0]) // "configure it", "turn off it"
	}
	return topics[0]-to <= 2 // "does it cost", "was it ever released"
}

// possessives are the deictic words that name an owner.
var possessives = set(`its their his her`)

// opensPhrase reports whether a word opens a noun phrase or a prepositional one.
func opensPhrase(w string) bool { return determiners[w] || prepositions[w] && w != "to" }

func coordinates(w string) bool { return w == "and" || w == "or" }

// isNoun reports whether the content word at i cannot be a verb, by the word before it.
func isNoun(words []string, i int) bool {
	if i == 0 {
		return false // "configure it"
	}
	switch words[i-1] {
	case "i", "you", "we", "he", "she", "they", "one", "to", "who", "what", "which", "not", "please", "can", "could", "should", "must", "may", "will", "would", "and", "or", "that", "did", "does", "do", "just", "also", "ever", "never":
		return false
	}
	return true
}
