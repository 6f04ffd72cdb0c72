package surface

import (
	"regexp"
	"slices"
	"strings"
)

// Dangling returns the words of a question that stand for something which the question
// does not say: "it" in "How do I configure it?", "the second one" in "What about the
// second one?". Of a question that has no word of content at all, as "Why?", all of it
// dangles, as of one that only goes on from another, "And in Germany?", and of one that
// asks how many of something and not where, "How many days?". Bare says that no other word
// of the question says what it is about, so that there is nothing to search for. Dangling
// is empty where the question says what it is about, and where that cannot be told: "it"
// that stands for nothing ("Is it possible to …"), or for what else the question names ("If
// a request fails, is it retried?"). It knows English.
func Dangling(question string) (dangling string, bare bool) {
	goes := goesOn.MatchString(question) && !verbal(question)
	if !goes && (len(Names(Quiet(question))) > 0 || namedByFunctionWords(question)) || aboutAll.MatchString(question) {
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

// namedByFunctionWords reports whether a word that is none elsewhere is a name here, for
// it is capitalised within a sentence: "Who are The Who?", "Who wrote It?".
func namedByFunctionWords(question string) bool {
	spans := wordSpans(question)
	for i, w := range spans {
		word := question[w.start:w.end]
		begins := i == 0 || strings.ContainsAny(question[spans[i-1].end:w.start], ".?!:\"“")
		if !begins && capitalised(word) && word != "I" && !strings.HasPrefix(word, "I'") && !strings.HasPrefix(word, "I’") {
			return true
		}
	}
	return false
}

var (
	// goesOn matches the opening of a question that goes on from another.
	goesOn = regexp.MustCompile(`(?i)^(?:and|but|or)(?: (?:then|also))?,? [^?!.,:;]{1,60}\?+ *$`)

	// unitAlone matches questions that name nothing but what is counted or chosen.
	unitAlone = regexp.MustCompile(`(?i)^(?:and |but |so )?(?:how (?:many|much) [\p{L}-]+[?!. ]*|(?:which|what|whose) [\p{L}-]+\?+ *|how (?:many|much) [\p{L}-]+ (?:is|are|was|were) (?:it|that|they)[?!. ]*)$`)
)

// verbal reports whether a text asks something by itself.
func verbal(text string) bool {
	return slices.ContainsFunc(Words(strings.ToLower(text)), func(w string) bool { return auxiliaries[w] || questionWords[w] })
}

// aboutAll matches questions whose "it" or "this" is all of the documents, and those in
// which it stands for nothing.
var aboutAll = regexp.MustCompile(`(?i)\b(about|(what|which) (time|day|date|year|month) (is|was) it)\s*[?.!]*$`)

// referents are pronouns that stand for a thing that was named. That "he" and "she" are
// persons makes them no clearer.
var referents = set(`it its itself they them their theirs he him his she her hers this that these those`)

// deictic are of those the ones that can stand before a noun: "this project".
var deictic = set(`this that these those its their his her`)

// ordered are words before "one" that choose among what was named.
var ordered = set(`the this that which other another first second third last next former latter same right wrong better best`)

// referring returns the first words, as [from, to), that stand for something else.
func referring(words []string) (from, to int) {
	for i, w := range words {
		switch {
		case w == "one" || w == "ones" || w == "former" || w == "latter":
			from := i
			for from > 0 && ordered[words[from-1]] {
				from--
			}
			if from < i && !(i+1 < len(words) && words[i+1] == "of") {
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

// clause reports whether "that" or "it" at i only joins or fills: "Is it true that …",
// "everything that changed".
func clause(words []string, i int) bool {
	w := words[i]
	if w == "that" && i > 0 && !auxiliaries[words[i-1]] && !prepositions[words[i-1]] && i+1 < len(words) && !questionWords[words[i-1]] {
		return true
	}
	if w != "it" {
		return false
	}
	for _, next := range words[i+1:] { // "possible to", "take to", "mean that", "safe if"
		if next == "to" || next == "that" || next == "if" || next == "when" || next == "for" {
			return true
		}
	}
	return false
}

var (
	auxiliaries   = set(`am is are was were be do does did has have had can could may might must shall should will would isn't aren't doesn't don't didn't can't`)
	prepositions  = set(`of in on at by for with without about against between into onto through during before after from to up down off over under per via`)
	questionWords = set(`who whom whose what which when where why how`)
	determiners   = set(`a an the my your our any some no every each all which what whose many much more most`)
)

// asides are words that say nothing of what a question is about: when, how well, how far.
var asides = set(`later afterwards again once twice today tomorrow yesterday soon quickly properly correctly automatically manually
exactly actually really basically well better best fast faster instead maybe perhaps together back away ok okay hello hi thanks thank sorry
details detail example examples else`)

// topicWords returns the positions of the words that could say what a question is about.
func topicWords(words []string) []int {
	asking := Asking(strings.Join(words, " "))
	var topics []int
	for i, w := range words {
		bare := strings.ReplaceAll(w, "'", "")
		if Function(w) || Function(bare) || asking[w] || asides[w] || contracted(w) {
			continue
		}
		topics = append(topics, i)
	}
	return topics
}

// contracted reports whether a word is a function word with another one: "what's",
// "it'll", "he'd".
func contracted(w string) bool {
	head, _, ok := strings.Cut(w, "'")
	return ok && Function(head)
}

// subjectless reports whether the words of content are only what is done with, or said of,
// what words[from:to] stand for: "configure it", "is that allowed", "its advantages".
func subjectless(words []string, topics []int, from, to int) bool {
	if deictic[words[from]] && to-from == 1 && to < len(words) && len(topics) > 0 && topics[0] == to {
		own := words[from] == "its" || words[from] == "their" || words[from] == "his" || words[from] == "her"
		if own { // "its advantages": no more than the one noun phrase
			return to > 0 && topics[len(topics)-1]-to < 3 && len(topics) <= 2 && topics[len(topics)-1] == len(words)-1
		}
		verb := from > 0 && auxiliaries[words[from-1]] && to == len(words)-1 // "is that allowed"
		return verb && len(topics) == 1
	}
	for k, i := range topics {
		if i > 0 && (determiners[words[i-1]] || prepositions[words[i-1]] && words[i-1] != "to") {
			return false // "the server", "in production"
		}
		joined := k == 0 || i == topics[k-1]+2 && (words[i-1] == "and" || words[i-1] == "or")
		if !joined { // two things that are no "install and configure"
			return false
		}
	}
	last := topics[len(topics)-1]
	switch {
	case last < from:
		return from-last <= 2 && !nounBefore(words, topics[0]) // "configure it", "turn off it"
	default:
		return topics[0]-to <= 2 // "does it cost", "was it ever released"
	}
}

// nounBefore reports whether the word of content at i cannot be a verb: nobody is there
// who does it, and nothing asks for it.
func nounBefore(words []string, i int) bool {
	if i == 0 {
		return false // "configure it"
	}
	before := words[i-1]
	switch before {
	case "i", "you", "we", "he", "she", "they", "one", "to", "who", "what", "which", "not", "please", "can", "could", "should", "must", "may", "will", "would", "and", "or", "that", "did", "does", "do", "just", "also", "ever", "never":
		return false
	}
	return true
}
