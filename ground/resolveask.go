package ground

import (
	"regexp"
	"strings"
)

// An asked is a question in the form of a statement: "subject helper predicate", with the
// answer at its end, or in the place of the subject.
type asked struct {
	wh        string // in lower case: "how long", "who", "which plan"; empty: yes or no is asked
	subject   string
	helper    string // "is", "may", "does"; of a question for the subject its verb
	predicate string // may be empty
	ofSubject bool   // the answer is the subject: "Who approves travel?"
}

const auxiliaries = `am|is|are|was|were|can|may|must|should|will|do|does|did|has|have`

var (
	whQuestion  = regexp.MustCompile(`(?i)^((?:(?:in|on|at|by|from|until|to|for|with|under|since|after|within) )?(?:how (?:long|much|often|far|old|tall|large|big|high|fast|deep|heavy|wide|early|late|soon)(?: \w+)??|how many (?:[\w-]+ ?){1,4}?|(?:what|which)(?: [\w-]+){0,3}?|when|where|why|who|whom|how))\s+(` + auxiliaries + `)\s+(.+)$`)
	whOfSubject = regexp.MustCompile(`(?i)^(who|what|(?:which|how many)(?: [\w-]+){1,3}?)\s+(` + finite + `)\s+(.+)$`)
	yesNo       = regexp.MustCompile(`(?i)^(` + auxiliaries + `)\s+(.+)$`)
	there       = regexp.MustCompile(`(?i)^there\b`)

	baseVerb      = regexp.MustCompile(`^(?:` + bases + `)$`)
	predicatePart = regexp.MustCompile(`^(?:\w{3,}ed|\w{4,}ing|built|made|kept|held|sent|paid|given|taken|done|found|sold|born|known|written|shown|put|closed|open|free|located|based|set|bought|read|run|stored|led|lost|met|told|worn|won|spent|used|due|available|valid|necessary|responsible|possible|required|in charge|named|called)$`)
	predicative   = regexp.MustCompile(`^(?:in|on|at|for|from|to|with|by|within|without|under|over|during|an?|the|not|safe|legal|mandatory|optional|included|covered|larger|smaller|longer|shorter|faster|slower|older|cheaper|more|less|part|subject|still|also|always|too)$`)
)

const bases = `be|accept|add|allow|announce|appear|apply|approve|ask|attend|become|begin|belong|borrow|bring|build|buy|call|cancel|carry|cause|change|charge|check|choose|claim|close|come|consist|contain|contribute|cost|count|cover|create|cut|decide|delete|deliver|depend|die|do|drive|drop|earn|eat|end|enter|exist|expect|expire|fail|fall|find|finish|fly|follow|gain|get|give|go|grow|hand|handle|happen|have|help|hold|include|inform|insure|join|keep|know|last|leave|lend|live|lock|look|lose|mail|make|marry|mean|measure|meet|move|need|occur|offer|open|order|own|park|pay|play|print|produce|protect|provide|publish|put|reach|read|receive|recover|register|remain|remove|rent|repay|replace|reply|report|request|require|reset|resign|return|ride|rise|run|say|see|sell|send|serve|set|share|show|sign|sleep|speak|spend|stand|start|stay|stop|store|study|sublet|submit|support|take|talk|tell|travel|treat|try|turn|use|visit|vote|wait|walk|want|wear|weigh|win|withdraw|work|write`

// readQuestion turns a question into a statement that lacks its answer. The zero asked is
// a question that it cannot turn.
func readQuestion(question string) asked {
	q := strings.TrimRight(strings.TrimSpace(question), "?! ")
	if strings.ContainsAny(q, "?\n;") || len(q) > maxClauses || strings.Contains(q, " being ") {
		return asked{}
	}
	if m := whQuestion.FindStringSubmatch(q); m != nil {
		a := asked{wh: strings.ToLower(m[1]), helper: strings.ToLower(m[2])}
		a.subject, a.predicate = subjectOf(a.helper, m[3], false)
		if lower := strings.ToLower(m[3]); (a.wh == "who" || strings.HasPrefix(a.wh, "which ") || strings.HasPrefix(a.wh, "how many ")) && a.subject == "" && !subjectWord.MatchString(m[3]) ||
			a.wh == "who" && (modals[a.helper] || a.helper == "has") && baseVerb.MatchString(firstWord(lower)) || a.wh == "who" && helpers[a.helper] && predicatePart.MatchString(firstWord(lower)) {
			return asked{wh: a.wh, helper: a.helper, predicate: m[3], ofSubject: true}
		}
		if a.subject == "" {
			return asked{}
		}
		a.subject, a.predicate = toReader(a.subject), toReader(a.predicate)
		a.helper = agreeWith(a.subject, a.helper)
		return a
	}
	if m := whOfSubject.FindStringSubmatch(q); m != nil {
		return asked{wh: strings.ToLower(m[1]), helper: m[2], predicate: m[3], ofSubject: true}
	}
	if m := yesNo.FindStringSubmatch(q); m != nil {
		a := asked{helper: strings.ToLower(m[1])}
		if there.MatchString(m[2]) {
			a.subject, a.predicate = "there", strings.TrimSpace(m[2][len("there"):])
		} else {
			a.subject, a.predicate = subjectOf(a.helper, m[2], true)
		}
		if a.subject == "" || a.predicate == "" {
			return asked{}
		}
		a.subject, a.predicate = toReader(a.subject), toReader(a.predicate)
		a.helper = agreeWith(a.subject, a.helper)
		return a
	}
	return asked{}
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// subjectOf parts what follows the helper of a question into its subject and the rest of
// what is said of it; empty where it cannot tell.
func subjectOf(helper, text string, needsPredicate bool) (subject, predicate string) {
	words := strings.Fields(text)
	be := helper == "is" || helper == "am" || helper == "are" || helper == "was" || helper == "were"
	for i := 1; i < len(words); i++ {
		w := strings.ToLower(words[i])
		starts := false
		switch {
		case be:
			starts = predicatePart.MatchString(w)
			starts = starts || needsPredicate && predicative.MatchString(w)
		case helper == "has" || helper == "have":
			starts = predicatePart.MatchString(w) || w == "been" || w == "to"
		default:
			noun := i+1 < len(words) && baseVerb.MatchString(words[i+1]) // "does parental leave last"
			starts = baseVerb.MatchString(w) && !noun
		}
		if starts && !article[strings.ToLower(words[i-1])] {
			return strings.Join(words[:i], " "), strings.Join(words[i:], " ")
		}
	}
	if be && !needsPredicate {
		return text, ""
	}
	return "", ""
}

var article = wordSet("the a an this that these those my your our their its his her every each any no of and or for to very more most")

var (
	firstPerson = regexp.MustCompile(`\b(?:I|we|We)\b`)
	mine        = regexp.MustCompile(`\b(?:my|My|our|Our)\b`)
	me          = regexp.MustCompile(`\b(?:me|us)\b`)
)

// toReader puts what somebody asks of themselves as the answer says it: "I" is "you".
func toReader(text string) string {
	return me.ReplaceAllString(mine.ReplaceAllString(firstPerson.ReplaceAllString(text, "you"), "your"), "you")
}

func agreeWith(subject, helper string) string {
	switch {
	case !strings.EqualFold(subject, "you"):
		return helper
	case helper == "is" || helper == "am":
		return "are"
	case helper == "was":
		return "were"
	}
	return helper
}

var (
	shortYes   = regexp.MustCompile(`(?i)^(yes|no|ja|nein)(?:,? (?:it|they|he|she|you|we|this|that|there|these|those) (?:` + auxiliaries + `|cannot|\w+n['’]t)(?: not)?)?[.!]?$`)
	leadingYes = regexp.MustCompile(`(?i)^(yes|no)[,:;–—-]\s*`)
	fragment   = regexp.MustCompile(`(?i)^(?:\d|[€$£]|(?:about|around|roughly|approximately|up to|at least|at most|no more than|no later than|more than|less than|fewer than|within|in|on|at|by|from|until|since|after|before|between|under|over|for|to|with|without|during|every|each|once|twice|never|always|only|because|due to|an?|the|half|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|ninety|one|none|nobody|everybody|everyone)\b|[A-Z])`)
	datesIn    = regexp.MustCompile(`^(?:1\d\d\d|20\d\d)$|^(?:` + monthWords + `)(?: \d{4})?$`)
	datesOn    = regexp.MustCompile(`^(?:\d{1,2}(?:st|nd|rd|th)? (?:` + monthWords + `)|(?:` + monthWords + `) \d{1,2}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)`)
	clockAt    = regexp.MustCompile(`^\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\.?| o'clock)?$`)
	prefixed   = regexp.MustCompile(`(?i)^(?:in|on|at|by|from|until|since|after|before|between|under|over|for|to|with|without|during|every|each|once|twice|never|always|within|because|no later|near|behind|outside|inside|around)\b`)
)

const monthWords = `January|February|March|April|May|June|July|August|September|October|November|December`

// whole makes a statement of a claim that is only an answer to the question: "Yes.", "30
// days.", "Yes, within a week."
func (a asked) whole(claim string) (statement string, ok bool) {
	if a.helper == "" {
		return "", false
	}
	if m := shortYes.FindStringSubmatch(claim); m != nil {
		if a.wh != "" || a.subject == "" {
			return "", false
		}
		return a.says(!strings.HasPrefix(strings.ToLower(m[1]), "n"), ""), true
	}
	text := claim
	yes := leadingYes.FindStringSubmatch(claim)
	if yes != nil {
		text = claim[len(yes[0]):]
	}
	const most = 12 // words of an answer that is no sentence
	bare := strings.TrimRight(strings.TrimSpace(text), ".! ")
	if !fragment.MatchString(text) || len(strings.Fields(bare)) > most || verb.MatchString(uncaused(bare)) || a.wh == "why" != (uncaused(bare) == "") || saysSomething(bare) || strings.ContainsAny(bare, ";:|") || bare == "" {
		return "", false
	}
	switch {
	case a.wh == "" && yes != nil && !a.ofSubject && prefixed.MatchString(bare):
		return a.says(strings.EqualFold(yes[1], "yes"), lowerFirst(bare)), true
	case a.wh == "" || yes != nil:
		return "", false
	case a.ofSubject:
		if prefixed.MatchString(bare) {
			return "", false
		}
		return a.answered(bare), true
	}
	return a.says(true, a.fill(bare)), true
}

// uncaused is an answer without the reason in it, which may have a verb.
func uncaused(text string) string {
	if lower := strings.ToLower(text); strings.HasPrefix(lower, "because ") || strings.HasPrefix(lower, "due to ") {
		return ""
	}
	return text
}

// saysSomething reports whether an answer that does not begin with a number or preposition
// may be a sentence, with a verb of its own.
func saysSomething(bare string) bool {
	words := strings.Fields(strings.ToLower(bare))
	if strings.Count(bare, "(") != strings.Count(bare, ")") || strings.Contains(bare, ". ") {
		return true // torn
	}
	if prefixed.MatchString(bare) || onlyNumber.MatchString(words[0]) || onlyNumber.MatchString(strings.Join(words[:min(2, len(words))], " ")) {
		return false
	}
	const most = 6 // words of a name or thing
	if len(words) > most {
		return true
	}
	for _, w := range words[1:] {
		if w = strings.Trim(w, ",.()\"'"); baseOf(w) != w && baseVerb.MatchString(baseOf(w)) {
			return true
		}
	}
	return false
}

// answered puts an answer in the place of the subject.
func (a asked) answered(bare string) string {
	if noun, ok := strings.CutPrefix(a.wh, "how many "); ok && onlyNumber.MatchString(bare) {
		bare += " " + noun
	}
	helper := a.helper
	if many(bare, "") && (helper == "is" || helper == "was" || helper == "has" || helper == "does") && !strings.HasPrefix(a.wh, "which ") {
		helper = map[string]string{"is": "are", "was": "were", "has": "have", "does": "do"}[helper]
	} else if many(bare, "") && !helpers[helper] && !modals[helper] {
		helper = inNumber(helper, true)
	}
	return upperFirst(bare) + " " + helper + " " + a.predicate + "."
}

var onlyNumber = regexp.MustCompile(`(?i)^(?:(?:about|up to|at least|at most|around|only|roughly|over|under|more than|less than|fewer than) )?(?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|one|twenty|thirty|forty|fifty)$`)

// fill gives an answer the noun or preposition that the question has for it.
func (a asked) fill(bare string) string {
	switch noun, counted := strings.CutPrefix(a.wh, "how many "); {
	case counted && onlyNumber.MatchString(bare):
		return lowerFirst(bare) + " " + noun
	case counted:
		if head, of, ok := strings.Cut(noun, " of "); ok && strings.Contains(bare, head) {
			return lowerFirst(bare) + " of " + of
		}
	}
	if prefixed.MatchString(bare) || (a.wh != "when" && a.wh != "where") {
		if p := firstWord(a.wh); strings.Contains(" in on at by from until to for with under since after within ", " "+p+" ") && !prefixed.MatchString(bare) {
			return p + " " + lowerFirst(bare)
		}
		return lowerFirst(bare)
	}
	switch {
	case a.wh == "where" || datesIn.MatchString(bare):
		return "in " + lowerFirst(bare)
	case datesOn.MatchString(bare):
		return "on " + bare
	case clockAt.MatchString(bare):
		return "at " + bare
	}
	return lowerFirst(bare)
}

// says is the question as a statement, that it is so or not, with an answer at its end, or
// right behind a verb that has it for its object.
func (a asked) says(so bool, answer string) string {
	helper, predicate := a.helper, a.predicate
	if helper == "do" || helper == "does" || helper == "did" {
		first, rest, _ := strings.Cut(predicate, " ")
		if so {
			predicate, helper = strings.TrimSpace(inflected(first, helper)+" "+rest), ""
		}
	}
	if !so {
		helper += " not"
	}
	if head, rest, ok := strings.Cut(predicate, " "); ok && answer != "" && strings.HasPrefix(a.wh, "how m") && taking.MatchString(head) {
		predicate = head + " " + answer + " " + rest
		answer = ""
	}
	words := strings.Join(strings.Fields(strings.Join([]string{a.subject, helper, predicate, answer}, " ")), " ")
	return upperFirst(words) + "."
}

// taking are verbs whose object an amount is.
var taking = regexp.MustCompile(`^(?:ha(?:ve|s|d)|gets?|got|needs?|contains?|includes?|holds?|takes?|costs?|pays?|receives?|weighs?)$`)
