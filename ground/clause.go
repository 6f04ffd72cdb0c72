package ground

import (
	"regexp"
	"strings"

	"github.com/assay-rag/assay/internal/sentence"
)

// A part is the bytes of a sentence that say one thing, and what words of the sentence
// they need before them.
type part struct {
	sentence.Span
	lead string
}

// parts cuts a sentence into what it says one after the other: clauses with a subject of
// their own, and predicates that share the first one's. What it cannot be sure of stays
// whole.
func parts(text string) []part {
	whole := []part{{Span: sentence.Span{Start: 0, End: len(text)}}}
	if strings.ContainsAny(text, "\n`|{}=<>") || strings.Contains(text, ": ") || len(text) > maxClauses || mdRow.MatchString(text) {
		return whole
	}
	var out []part
	for _, c := range clauses(text) {
		out = append(out, predicates(text, c)...)
	}
	if len(out) < 2 {
		return whole
	}
	return out
}

// maxClauses is the length in bytes of the longest sentence that is cut.
const maxClauses = 600

var (
	// joint is what stands between two things that a sentence says.
	joint = regexp.MustCompile(`[;,](?: (?:and then|and|but|while|whereas))? | (?:and then|and|but|whereas) `)

	// scope are words that may hold for all that follows them, or take it back.
	scope = regexp.MustCompile(`(?i)\b(?:if|when|whenever|unless|until|because|since|although|though|whether|once|provided|suppose|assuming|despite|where|wherever|as (?:long|soon|far)|in case|so that|either|neither|nor|both|between|not only|rather than|which|who|whom|whose|that|what|how|why|would|could|might)\b`)

	dependent = regexp.MustCompile(`(?i)^(?:otherwise|else|if|then|so|thus|therefore|hence|in (?:that|this|which) case|not|or|nor|vice versa|the (?:latter|former|other|others|rest|same)|both|neither|each|all|none|one|another|others|some)\b`)

	// denied are subjects of which nothing is said by taking what is said of them apart.
	denied = regexp.MustCompile(`(?i)^(?:no|none|nobody|no one|nothing|neither|few|only|hardly|there|it is|what|whoever|whatever|not|please|never|do not|don't)\b`)

	subjectWord = regexp.MustCompile(`^(?:(?i:the|a|an|this|these|those|its|their|his|her|our|your|my|it|they|he|she|we|you|every|each|all|any|most|many|some|two|three|four|five|six|seven|eight|nine|ten|\d[\d.,]*|(?:up to|at (?:most|least)|(?:no )?(?:more|less|fewer) than|about|around|nearly|almost) (?:\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten))\b|[A-Z])`)

	verb = regexp.MustCompile(`(?:^|[ ,])(?:(?:also|then|usually|always|never|often|only|now|still|both|thus|again|typically|normally|therefore|later|first|finally|currently|already|soon|once|instead) )*(` + finite + `)(?: |$|[,.;:])`)
)

// onceAlone is "once" where it joins nothing: "at once", "once a year", "opened once".
var onceAlone = regexp.MustCompile(`(?i)\b(?:at once|once(?: (?:a|an|per|every|each|more|again)\b|[,;.]|$))`)

// scoped reports whether a text has one of the words of scope.
func scoped(text string) bool { return scope.MatchString(onceAlone.ReplaceAllString(text, " ")) }

// finite are verbs that a subject stands before, and hardly ever nouns.
const finite = `is|are|was|were|has|have|had|can|cannot|may|must|will|should|shall|does|do|did|isn't|aren't|wasn't|weren't|hasn't|haven't|can't|won't|doesn't|don't|didn't|` +
	`accepts|adds|affects|allows|appears|applies|approves|asks|becomes|begins|belongs|brings|builds|carries|closes|comes|compares|connects|consists|consumes|contains|continues|converts|costs|covers|creates|decides|defines|deletes|depends|describes|emits|encrypts|ensures|exceeds|exists|expires|extends|fails|follows|generates|gets|gives|goes|grows|handles|happens|helps|holds|ignores|implements|includes|increases|installs|introduces|joins|keeps|knows|lacks|lasts|leads|leaves|lets|lies|listens|locks|loses|maintains|makes|manages|measures|moves|needs|occurs|offers|opens|owns|panics|pays|performs|permits|prevents|produces|provides|publishes|puts|raises|reaches|receives|reduces|refers|refuses|rejects|removes|replaces|represents|requires|returns|runs|says|searches|seems|sells|sends|serves|shows|skips|speaks|stands|starts|stays|stops|stores|suffers|supports|takes|tells|throws|treats|turns|uses|validates|varies|verifies|waits|wants|weighs|wins|wipes|writes|` +
	`accepted|added|adopted|allowed|announced|appeared|applied|approved|asked|became|began|belonged|bought|brought|built|called|came|carried|caused|changed|closed|completed|consisted|contained|continued|converted|covered|created|decided|defeated|described|designed|developed|died|discovered|divided|dropped|ended|entered|established|expanded|failed|fell|finished|followed|founded|gained|gave|got|grew|happened|held|helped|included|increased|introduced|invaded|invented|joined|kept|killed|launched|led|left|lived|lost|made|married|moved|named|offered|opened|ordered|passed|peaked|played|produced|proposed|proved|provided|published|ran|reached|received|recorded|reduced|refused|rejected|released|remained|removed|replaced|required|retired|returned|rose|sent|served|settled|showed|signed|sold|started|stayed|stood|stopped|studied|succeeded|suffered|supported|taught|told|took|turned|used|visited|voted|went|won|worked|wrote|` +
	`include|contain|require|provide|become|begin|belong|consist|depend|exist|follow|give|go|happen|keep|know|lie|make|receive|remain|remove|seem|send|show|take|tell|wear|expire|apply|return|get|pay|bring`

// clauses cuts a sentence where what follows has a subject and a verb of its own.
func clauses(text string) []sentence.Span {
	var out []sentence.Span
	start := 0
	for _, at := range joint.FindAllStringIndex(text, -1) {
		if at[0] <= start {
			continue
		}
		before, after := text[start:at[0]], text[at[1]:]
		semicolon := text[at[0]] == ';'
		bare := text[at[0]] == ',' && strings.TrimSpace(text[at[0]:at[1]]) == ","
		if bare || !closed(text, at[0]) || !clause(before) || !independent(after, text[at[0]] != ' ') {
			continue
		}
		if !semicolon && (scoped(before) || strings.Contains(before, ",")) || semicolon && dependsOn(before) {
			continue
		}
		out = append(out, sentence.Span{Start: start, End: at[0]})
		start = at[1]
	}
	return append(out, sentence.Span{Start: start, End: len(text)})
}

// dependsOn reports whether what stands before a semicolon opens what only ends after it.
func dependsOn(before string) bool {
	return strings.Contains(before, ":") || listed.MatchString(before)
}

// severalAre begins with a bare noun that only a clause of its own can begin with: "meals
// are", not "meals and".
var severalAre = regexp.MustCompile(`^(?:[a-z]+ )?[a-z]{3,}s (?:are|were|have|may|must|can|cannot|should|do) `)

// leadsIn begins what is no subject.
var leadsIn = regexp.MustCompile(`^(?i:in|on|at|of|for|from|to|by|with|without|within|under|over|after|before|during|as|not|even|just|per|also|be|been|being|\w+ing|\w+ed|is|are|was|were|has|have|had|will|can|may|must|should)\b`)

var listed = regexp.MustCompile(`(?i)\b(?:either|whether|following|these)\b`)

// closed reports whether no bracket or quotation is open before at.
func closed(text string, at int) bool {
	before := text[:at]
	return strings.Count(before, "(") == strings.Count(before, ")") && strings.Count(before, "[") == strings.Count(before, "]") &&
		strings.Count(before, `"`)%2 == 0 && strings.Count(before, "“") == strings.Count(before, "”")
}

const leastClause = 3 // words

// clause reports whether a text has a subject and a verb.
func clause(text string) bool {
	at := verb.FindStringSubmatchIndex(text)
	return at != nil && at[2] > 0 && len(strings.Fields(text)) >= leastClause && len(strings.Fields(text[:at[2]])) <= maxSubjectWords
}

const maxSubjectWords = 9

// independent reports whether a text reads as a sentence of its own: it begins with its
// subject, the verb follows that soon, and it depends on nothing before it. Where it is set
// apart, its subject may be a bare noun.
func independent(text string, apart bool) bool {
	if dependent.MatchString(text) || !clause(text) {
		return false
	}
	at := verb.FindStringSubmatchIndex(text)
	subject := text[:at[2]]
	if strings.TrimSpace(adverbs.ReplaceAllString(subject, "")) == "" {
		return false
	}
	const most = 4 // words of a bare subject
	if !subjectWord.MatchString(text) && !severalAre.MatchString(text) && (!apart || len(strings.Fields(subject)) > most || leadsIn.MatchString(text)) {
		return false
	}
	return !strings.ContainsAny(subject, ",;:()") && !scoped(subject)
}

// predicates cuts a clause into what it says of its one subject.
func predicates(text string, c sentence.Span) []part {
	whole := []part{{Span: c}}
	clauseText := text[c.Start:c.End]
	first := verb.FindStringSubmatchIndex(clauseText)
	if first == nil {
		return whole
	}
	subject := strings.TrimSpace(clauseText[:first[2]])
	if n := len(strings.Fields(subject)); n == 0 || n > maxSubjectWords || strings.ContainsAny(subject, ",;:()") || denied.MatchString(subject) || scoped(subject) ||
		strings.Contains(" "+strings.ToLower(subject)+" ", " and ") && !plural.MatchString(clauseText[first[2]:]) {
		return whole
	}
	subject = withoutAdverb.ReplaceAllString(subject, "")
	var out []part
	start, earlier := 0, clauseText[first[2]:first[3]]
	for _, at := range joint.FindAllStringIndex(clauseText, -1) {
		if at[0] < first[3] || clauseText[at[0]] == ';' || strings.Contains(clauseText[at[0]:at[1]], "wh") {
			continue
		}
		before, after := clauseText[start:at[0]], clauseText[at[1]:]
		v := verb.FindStringSubmatchIndex(after)
		if bare := strings.TrimSpace(clauseText[at[0]:at[1]]) == ","; bare && v != nil && !helpers[after[v[2]:v[3]]] && !strings.HasSuffix(after[v[2]:v[3]], "s") {
			continue // ", named after" goes with what stands before it
		}
		if v == nil || strings.Trim(adverbs.ReplaceAllString(after[:v[2]], ""), " ") != "" || !closed(clauseText, at[0]) || !closed(text, c.Start+at[0]) {
			continue
		}
		if second := after[v[2]:v[3]]; scoped(rest(before, first[3]-start)) || strings.Contains(before, ",") || !agrees(clauseText[first[2]:first[3]], second) || shares(earlier, before, second) {
			return whole
		}
		earlier = after[v[2]:v[3]]
		out = append(out, part{sentence.Span{Start: c.Start + start, End: c.Start + at[0]}, leadOf(subject, start)})
		start = at[1]
	}
	if start == 0 || len(strings.Fields(clauseText[start:])) < 2 {
		return whole
	}
	return append(out, part{sentence.Span{Start: c.Start + start, End: c.End}, leadOf(subject, start)})
}

var (
	plural        = regexp.MustCompile(`^(?:are|were|have|can|may|must|will|should|do)\b`)
	adverbs       = regexp.MustCompile(`(?i)\b(?:also|then|usually|always|never|often|only|now|still|both|thus|again|typically|normally|therefore|later|first|finally|currently|already|soon|once|instead)\b`)
	withoutAdverb = regexp.MustCompile(`(?i) (?:also|then|usually|always|never|often|now|still|typically|normally|therefore|later|first|finally|currently|already|soon|once|instead)$`)
)

// leadOf is what a part that begins at start lacks of its clause: the subject, unless it
// has that itself.
func leadOf(subject string, start int) string {
	if start == 0 {
		return ""
	}
	return subject
}

// agrees reports whether two verbs may have one subject: "costs" and "includes", "may" and
// "must", not "includes" and "include".
func agrees(a, b string) bool {
	third := func(v string) bool {
		return strings.HasSuffix(v, "s") && v != "was" && !strings.HasSuffix(v, "ss") || v == "isn't" || v == "doesn't" || v == "hasn't"
	}
	bare := func(v string) bool {
		return v == "are" || v == "have" || v == "do" || v == "aren't" || v == "haven't" || v == "don't" || bareVerbs[v]
	}
	return !(third(a) && bare(b)) && !(bare(a) && third(b)) && !(a == "was" && (b == "were" || bare(b))) && !(a == "were" && (b == "was" || third(b)))
}

// rest is what a text has from at on.
func rest(text string, at int) string { return text[max(0, min(at, len(text))):] }

// shares reports whether a verb may be a mere participle or infinitive that goes with what
// helps the verb before it: "is locked and closed", "may send and receive".
func shares(helper, before, verb string) bool {
	switch {
	case bareVerbs[verb]:
		return modals[helper] || strings.Contains(before, " to ")
	case helpers[helper] || modals[helper]:
		return !finiteOnly[verb] && !strings.HasSuffix(verb, "s") && !helpers[verb] && !modals[verb]
	}
	return false
}

var (
	modals  = wordSet("can cannot may must will should shall does do did can't won't doesn't don't didn't")
	helpers = wordSet("is are was were has have had isn't aren't wasn't weren't hasn't haven't")

	// finiteOnly are forms of the past that are no participles, or of verbs without a passive.
	finiteOnly = wordSet("became began came died fell gave got grew happened lived peaked ran remained rose stayed stood succeeded took went wrote appeared belonged consisted existed expired")
)

var bareVerbs = wordSet("include contain require provide become begin belong consist depend exist follow give go happen keep know lie make receive remain remove seem send show take tell wear expire apply return get pay bring")
