package local

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sense"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/internal/visible"
)

// A turn is one of a conversation: its question as it stands for itself.
type turn struct {
	question, answer string
	calls            map[string]string // who is "he" and who "she" in the conversation, by name
	topic            string            // the reading that was chosen, if the question is of one
}

// An understanding is what becomes of a follow-up.
type understanding struct {
	question string   // as it can be understood without the conversation; empty: as it is
	open     string   // words of it that stand for what is not plain; empty: there are none
	means    []string // what they can stand for: two things or more, or none
}

// understood is a follow-up that is plain, or none at all.
func understood(question string) understanding { return understanding{question: question} }

// remembered is how many turns back a follow-up is understood from.
const remembered = 8

// longest is the length, in bytes, of a turn's question that another is understood
// from. Who asks more than that at once refers to no plain thing.
const longest = 300

// resolve understands a question from the conversation before it. Each turn is
// understood from the ones before it first, so that a chain of follow-ups holds together.
func resolve(question string, history []assay.Turn) understanding {
	var before []turn
	calls := map[string]string{}
	for _, t := range history[max(0, len(history)-remembered):] {
		q := visible.Line(t.Question)
		if u := follow(q, before); u.question != "" {
			called(calls, q, u.question)
			q = u.question
		}
		called(calls, visible.Line(t.Asked), q)
		if (contentful(q) || sense.AsksBack(t.Answer)) && len(q) <= longest {
			before = append(before, turn{q, visible.Line(t.Answer), calls, readingIn(q, before)})
		}
	}
	return follow(question, before)
}

// readingIn returns the reading, of those that were offered before, that a question has.
func readingIn(question string, before []turn) string {
	for _, t := range slices.Backward(before) {
		for _, r := range sense.Offered(t.answer) {
			if strings.Contains(question, r) {
				return r
			}
		}
	}
	return ""
}

// called notes who a follow-up calls he or she, by what it was understood as.
func called(calls map[string]string, asked, understood string) {
	r, ok := reference(asked)
	if !ok || !r.person() || !strings.HasPrefix(understood, asked[:r.start]) {
		return
	}
	rest, ok := strings.CutSuffix(understood[r.start:], asked[r.end:])
	if name := strings.TrimSuffix(strings.TrimSuffix(rest, "s"), "'"); ok && personal(rest) {
		if name == rest || !strings.HasSuffix(rest, "'s") {
			name = strings.TrimSuffix(rest, "'")
		}
		calls[name] = r.calls()
	}
}

// follow returns what a follow-up to the turns before asks.
func follow(question string, before []turn) understanding {
	if len(before) == 0 || len(question) > longest || smallTalk.MatchString(question) {
		return understanding{}
	}
	last := before[len(before)-1]
	reply := meansLead.ReplaceAllString(question, "")
	if r := chosen(reply, sense.Offered(last.answer)); r != "" {
		return understood(meaning(last.question, r))
	}
	if sense.AsksBack(last.answer) && keyWord(reply) {
		return understood(meaning(last.question, strings.TrimRight(reply, "?!. ")))
	}
	if doubts.MatchString(question) {
		return understood(last.question)
	}
	// A question that was asked back tells nothing of the next one.
	for sense.AsksBack(last.answer) {
		if before = before[:len(before)-1]; len(before) == 0 {
			return understanding{}
		}
		last = before[len(before)-1]
	}
	if aside, ok := asideOf(question); ok {
		if u, ok := aside.otherReading(before); ok {
			return u
		}
		return aside.beside(before)
	}
	if u, ok := eitherOf(question, before); ok {
		return u
	}
	if refers, ok := reference(question); ok {
		return refers.filled(question, before)
	}
	return completed(question, last)
}

// failed reports whether an answer says nothing of what was asked.
func failed(answer string) bool {
	return strings.HasPrefix(answer, "Not found in these documents") || sense.AsksBack(answer) || refusal.MatchString(answer)
}

// glued asks a turn's question together with words that go on from it; where that one
// was not answered, it is open what they ask.
func glued(last turn, words string) understanding {
	if failed(last.answer) {
		return understanding{open: strings.TrimRight(words, "?!. ")}
	}
	return understood(last.question + " " + words)
}

var (
	// smallTalk matches a turn that asks nothing.
	smallTalk = regexp.MustCompile(`(?i)^(?:thanks?(?: you)?|thank you very much|ok(?:ay)?|great|good|perfect|nice|cool|fine|sure|yes|no|yep|nope|hello|hi|hey|bye|goodbye|got it|i see|that is fine|never ?mind)(?:[ ,.!](?:thanks?(?: you)?|thank you|then|bye|very much|so much|please))*[ .!]*$`)

	// doubts matches a turn that asks the last question again.
	doubts = regexp.MustCompile(`(?i)^(?:and |but |so )?(?:are you (?:really )?sure|really|is (?:that|this) (?:really )?(?:so|true|right|correct|the case)|says who)(?: about (?:that|this|it))?\s*\?*$`)
)

// contentful reports whether a turn's question is about anything.
func contentful(question string) bool {
	return len(contentWords(question)) > 0 && !smallTalk.MatchString(question)
}

// A referral is the word of a question that stands for something said before.
type referral struct {
	start, end int
	word       string // lower case
	kind       referralKind
	noun       string // of "this program", lower case; empty: a pronoun
}

type referralKind int

const (
	toThing  referralKind = iota // it, this, that, this program
	toOwner                      // its, their
	toMany                       // they, them, these
	toPerson                     // he, she, him
	toHis                        // his, her before a noun
	toOne                        // one: another of the kind
	toPlace                      // there
)

var (
	pronounAt = regexp.MustCompile(`(?i)\b(it|its|they|them|their|he|she|him|his|her|this|that|these|those|one|there)\b`)

	// pleonastic matches an "it" that stands for nothing.
	pleonastic = regexp.MustCompile(`(?i)\b(?:is|was|be|would be|isn['’]t|wasn['’]t) it (?:\w+ly |not |still |also |ever )?(?:possible|necessary|required|ok|okay|allowed|safe|legal|illegal|true|better|best|worth|hard|easy|difficult|important|common|normal|wise|useful|sensible|recommended|advisable|mandatory|mostly|fair|too late|raining|snowing|time|\w+er to)\b` +
		`|\bit (?:is|was|would be) (?:\w+ly |not )?(?:possible|necessary|required|ok|okay|allowed|safe|legal|true|better|best|worth|hard|easy|difficult|important|common|recommended) (?:to|that|for|if)\b` +
		`|\bit (?:takes?|took|costs?) (?:to|for|me|you|us|a|an)\b|\b(?:does|did|will|would|can) it (?:take|cost|make sense|matter|mean|help) (?:to|for|if|when|that|me|you|us)\b` +
		`|\b(?:what|which) (?:time|day|date|year) is it\b|\b(?:how|why) is it that\b|\bit (?:seems|appears|turns out|follows|rains|snows)\b|\bas it (?:is|were)\b` +
		`|\b(?:got|get) it\b|\b(?:that|this|it)(?: is|['’]s| was| sounds) (?:fine|ok|okay|great|good|bad|too bad|impressive|interesting|amazing|awesome|important|nice|cool|sad|all|enough)\b|\bthat makes sense\b|\bit would (?:seem|appear)\b`)

	// after a "this" or "that" that stands for itself.
	standsAlone = regexp.MustCompile(`(?i)^(?:'s)?(?:\s*(?:[?!.,;:)]|$)|\s+(?:is|are|was|were|mean|means|work|works|apply|applies|happen|happens|affect|affects|change|changes|cost|costs|take|takes|include|includes|cover|covers|hold|holds|help|helps|matter|differ|compare|depend|count|also|still|really|always|ever|in|on|for|with|to|when|if|or|and|not|true|possible|safe|free|work|can|could|does|do|will|would|should|has|have)\b)`)

	// times follow a "this" or "that" that stands for no thing that was said.
	times = regexp.MustCompile(`(?i)^(?:year|month|week|day|morning|evening|afternoon|weekend|time|moment|point|case|situation|days|way|kind|sort|type|much|many|long|far|else)s?$`)

	wordAfter = regexp.MustCompile(`^ ([\p{L}\p{N}_-]+)`)
	boundary  = regexp.MustCompile(`(?i)[,;.:?!]\s|\s(?:and|or|but|if|when|while|whenever|because|before|after|until|unless|since|so|that|which|who|though|although|than)\s`)
)

// reference finds what of a question has to be filled in from the turns before.
func reference(question string) (referral, bool) {
	idle := pleonastic.FindAllStringIndex(question, -1)
	for _, at := range pronounAt.FindAllStringIndex(question, -1) {
		word, rest := strings.ToLower(question[at[0]:at[1]]), question[at[1]:]
		r := referral{start: at[0], end: at[1], word: word}
		if liesIn(idle, at) || joinedWord(question, at) {
			continue
		}
		next := ""
		if m := wordAfter.FindStringSubmatch(rest); m != nil {
			next = strings.ToLower(m[1])
		}
		switch word {
		case "it":
		case "its":
			r.kind = toOwner
		case "their":
			r.kind = toOwner
		case "they", "them":
			r.kind = toMany
		case "he", "she", "him":
			r.kind = toPerson
		case "his":
			r.kind = toHis
		case "her":
			r.kind = toPerson
			if next != "" && !surface.Function(next) {
				r.kind = toHis
			}
		case "this", "that", "these", "those":
			switch {
			case word == "that" && !asksThat(question[:at[0]]) && next != "" && !standsAlone.MatchString(rest):
				if !demonstrative(question[:at[0]]) {
					continue // "the file that …", "I think that …"
				}
				fallthrough
			case !standsAlone.MatchString(rest):
				if next == "" || surface.Function(next) || times.MatchString(next) {
					continue
				}
				r.noun, r.end = next, at[1]+1+len(next)
			case word == "that" && !asksThat(question[:at[0]]):
				continue
			case word == "these" || word == "those":
				r.kind = toMany
			}
		case "one":
			if !asksForOne(question[:at[0]], rest) {
				continue
			}
			r.kind = toOne
		case "there":
			if !standsAlone.MatchString(rest) || existential.MatchString(question) {
				continue
			}
			r.kind = toPlace
		}
		if !r.inside(question) {
			return r, true
		}
	}
	return referral{}, false
}

var (
	existential = regexp.MustCompile(`(?i)\b(?:is|are|was|were|be|isn't|aren't|will|has|have|been|does|do) there\b|\bthere (?:is|are|was|were|will|has|have|be|exist|should|may|might|must|could)\b`)
	beforeThat  = regexp.MustCompile(`(?i)(?:^|\b(?:is|are|was|were|does|did|do|doing|will|would|can|could|should|has|about|of|for|with|like|from|after|before|to|by|on|in|at|than|why|how|mean|use|get|change|configure|fix|avoid|explain|prove|apply|set|disable|enable|and|but|so))\s*$`)
	beforeOne   = regexp.MustCompile(`(?i)\b(?:get|buy|need|have|make|create|use|see|find|open|choose|want|own|order|write|add|for|of|to)\s+$`)
)

// asksThat reports whether a "that" after these words stands for a thing.
func asksThat(before string) bool { return beforeThat.MatchString(before) }

// demonstrative reports whether a "that" after these words points at a noun.
func demonstrative(before string) bool { return beforeThat.MatchString(before) }

// asksForOne reports whether "one" stands for another of what was spoken of, rather
// than for a number or for anyone.
func asksForOne(before, rest string) bool {
	return beforeOne.MatchString(before) && (strings.TrimLeft(rest, "?!. ") == "" || strings.HasPrefix(rest, " in ") || strings.HasPrefix(rest, " for ") || strings.HasPrefix(rest, ","))
}

// joinedWord reports whether a word is a part of a longer one ("one-off", "that's" is
// not).
func joinedWord(text string, at []int) bool {
	return at[0] > 0 && strings.ContainsRune("-_.'’", rune(text[at[0]-1])) ||
		at[1]+1 < len(text) && strings.ContainsRune("-_", rune(text[at[1]]))
}

func liesIn(spans [][]int, at []int) bool {
	for _, s := range spans {
		if s[0] <= at[0] && at[1] <= s[1] {
			return true
		}
	}
	return false
}

// inside reports whether what r stands for is named before it in its own question: in
// another clause, or in the same one where r is the thing's owner ("Does a server keep
// its logs?").
func (r referral) inside(question string) bool {
	before := question[:r.start]
	if r.noun != "" {
		return matter{text: before}.speaksOf(r.noun)
	}
	if r.kind == toOwner || r.kind == toHis {
		return namesThing(before) || manyThings.MatchString(before)
	}
	cuts := boundary.FindAllStringIndex(before+" ", -1)
	if len(cuts) == 0 {
		return false
	}
	clause := before[:cuts[len(cuts)-1][0]]
	return namesThing(clause) || len(contentWords(clause)) > 1 && !smallTalk.MatchString(clause)
}

var (
	// aThing matches a noun that has an article or an owner.
	aThing = regexp.MustCompile(`(?i)\b(?:a|an|the|my|our|your|each|every|some|any|no|two|three)\s+([\p{L}\p{N}_-]+)`)

	manyThings = regexp.MustCompile(`(?i)\b\p{L}{3,}[^\W_s]s (?:\p{L}+ )*$`)
)

// namesThing reports whether the words before a pronoun hold what it may stand for.
func namesThing(before string) bool {
	for _, m := range aThing.FindAllStringSubmatch(before, -1) {
		if w := strings.ToLower(m[1]); !surface.Function(w) && !times.MatchString(w) {
			return true
		}
	}
	return len(namesIn(before)) > 0
}

// person reports whether r is somebody, and calls says what that one is called.
func (r referral) person() bool { return r.kind == toPerson || r.kind == toHis }

func (r referral) calls() string {
	if r.word == "she" || r.word == "her" {
		return "she"
	}
	return "he"
}

// filled returns the question with what r refers to in its place.
func (r referral) filled(question string, before []turn) understanding {
	t, ok := r.antecedent(before)
	if !ok {
		return r.untold(question, t.means)
	}
	if (matter{text: question}).has(t.text) {
		return understanding{}
	}
	if r.kind == toPlace {
		return understood(put(question, r, "in "+t.text))
	}
	if !t.sure || r.noun != "" && !t.speaksOf(r.noun) {
		if r.noun != "" && !t.sure || !strings.HasSuffix(question, "?") && !opensAsking.MatchString(question) {
			return understanding{}
		}
		return understood(withAside(question, t.text))
	}
	if r.kind == toOwner || r.kind == toHis {
		return understood(put(question, r, owners(t.text)))
	}
	return understood(put(question, r, t.text))
}

// maxOpen is how many words of content a question has at most of which a pronoun that
// stands for nothing known says what it is about: with more they say it.
const maxOpen = 3

// untold is a question in which it is not plain what r refers to: somebody, one of
// several, or all that the question is about.
func (r referral) untold(question string, means []string) understanding {
	if r.noun != "" || r.kind == toOne || r.kind == toPlace || !strings.HasSuffix(question, "?") && !opensAsking.MatchString(question) {
		return understanding{}
	}
	if !r.person() && len(means) == 0 && (len(namesIn(question)) > 0 || len(contentWords(question)) > maxOpen) {
		return understanding{}
	}
	return understanding{open: question[r.start:r.end], means: means}
}

// put puts text in the place of r.
func put(question string, r referral, text string) string {
	return question[:r.start] + text + question[r.end:]
}

// owners is the form of a name that owns what follows.
func owners(name string) string {
	if strings.HasSuffix(name, "s") {
		return name + "'"
	}
	return name + "'s"
}

// withAside adds words to a question in brackets, before its mark.
func withAside(question, words string) string {
	bare := strings.TrimRight(question, "?!. ")
	return bare + " (" + words + ")?"
}

// antecedent returns what r refers to.
func (r referral) antecedent(before []turn) (matter, bool) {
	for i := len(before) - 1; i >= max(0, len(before)-3); i-- {
		t, ok := before[i].about(r)
		if ok {
			return t, r.noun == "" || t.speaksOf(r.noun) || pointsAtAny[r.noun] || before[i].speaksOf(r.noun)
		}
		if t.text == several {
			return t, false // and none of them is the one
		}
	}
	return matter{}, false
}

// pointsAtAny are nouns that anything can be called by.
var pointsAtAny = wordsIn(`thing things topic topics subject issue issues problem problems feature option setting product service program programme
process procedure method approach concept term word place city country company organisation organization person man woman film movie book song
team game event document policy rule law function type package tool system`)

// completed returns a question that names nothing and has at most one word that it
// could be about, as "What are the requirements?", beside what the last one was about;
// empty: it is no such question.
func completed(question string, last turn) understanding {
	words := contentWords(question)
	if len(words) == 0 {
		if !opensAsking.MatchString(question) && !askForMore.MatchString(question) {
			return understanding{}
		}
		return glued(last, question)
	}
	if len(words) > 1 || len(surface.Names(question)) > 0 || asksMeaning.MatchString(question) || !opensAsking.MatchString(question) && !askForMore.MatchString(question) {
		return understanding{}
	}
	t, ok := last.about(referral{})
	if !ok || t.speaksOf(strings.ToLower(words[0])) {
		return understanding{}
	}
	return understood(withAside(question, t.text))
}

var (
	askForMore  = regexp.MustCompile(`(?i)^(?:please |can you |could you |would you )*(?:tell me|say|give me|show me|explain|elaborate|go on|what else|anything else|more)\b`)
	asksMeaning = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:what|who)(?:'s| is| are| does| do)? (?:an? )?[\p{L}\p{N}_.-]+(?: mean)?\s*\??$`)
)

// keyWord reports whether a reply is nothing but the name of something.
func keyWord(reply string) bool {
	bare := strings.TrimRight(reply, "?!. ")
	return len(contentWords(bare)) > 0 && len(strings.Fields(bare)) <= 5 && !opensAsking.MatchString(bare) && !pronoun.MatchString(bare) &&
		!speaks.MatchString(bare) && !asideLead.MatchString(bare) && !asideAnd.MatchString(bare) && !otherIn.MatchString(bare)
}

// meansLead matches the words that a reply begins with before what it chooses.
var meansLead = regexp.MustCompile(`(?i)^(?:no,? |sorry,? |well,? )?(?:(?:i|we) (?:mean|meant|want|was asking about|am asking about)|i['’]m asking about|(?:(?:the )?one|that) (?:in|of|from|for)|in|of|from|for) +`)

// takesAll matches a reply that means each of the readings.
var takesAll = regexp.MustCompile(`(?i)^(?:for )?(?:both|all|each|every one|all three)(?: of (?:them|these|those))?(?:,? please)?[.! ]*$`)

// replyLead matches what a reply opens with before it says what is meant.
var replyLead = regexp.MustCompile(`(?i)^(?:no[,.]? )?(?:i (?:mean|meant|am asking about|want)|i['’]m asking about|(?:the one |that |it is |it['’]s )?(?:in|for|from|of|about)|it is|it['’]s) `)

var ordinal = regexp.MustCompile(`(?i)\b(first|second|third|last|former|latter)\b|^(?:the |number |no\. ?|#)?(\d)\.?$`)

// chosen returns the one of the readings that a reply names or counts, or all of them
// where it takes all; empty: it does neither, or names several.
func chosen(reply string, readings []string) string {
	if len(readings) > 1 && takesAll.MatchString(reply) {
		return strings.Join(readings[:len(readings)-1], ", ") + " and " + readings[len(readings)-1]
	}
	if m := replyLead.FindString(reply); m != "" {
		reply = reply[len(m):]
	}
	var named []string
	for _, r := range readings {
		if (matter{text: reply}).has(r) || len(contentWords(reply)) > 0 && len(contentWords(reply)) <= len(contentWords(r)) && (matter{text: r}).has(reply) {
			named = append(named, r)
		}
	}
	if len(named) == 1 {
		return named[0]
	}
	m := ordinal.FindStringSubmatch(reply)
	if len(named) > 1 || m == nil || len(strings.Fields(reply)) > 4 {
		return ""
	}
	places := map[string]int{"first": 0, "former": 0, "1": 0, "second": 1, "2": 1, "third": 2, "3": 2, "latter": len(readings) - 1, "last": len(readings) - 1}
	at, ok := places[strings.ToLower(m[1]+m[2])]
	if !ok || at >= len(readings) {
		return ""
	}
	return readings[at]
}

// meaning returns a question with the reading that was meant in it.
func meaning(question, reading string) string {
	if r, ok := reference(question); ok && r.kind != toPlace {
		if r.kind == toOwner || r.kind == toHis {
			return put(question, r, owners(reading))
		}
		return put(question, r, reading)
	}
	return withAside(question, reading)
}
