package eval

import (
	"regexp"
	"strings"

	"github.com/assay-rag/assay/internal/surface"
)

var (
	attributed  = regexp.MustCompile(`^([^,;:]{3,60}?) (claimed|claims|believed|believes|argued|argues|alleged|speculated|hypothesized|hypothesised|hypothesize|asserted|assumed|hoped|feared|thought|think|thinks|believe|claim|argue|doubted|predicted|insisted|insists|suspected|suspects|suspect|expected|promised|imagined|contended|contends|maintained|warned|guessed|supposed|conjectured|postulated|theorized|envisioned|complained|worried) that ([^;:]{20,200})\.$`)
	established = regexp.MustCompile(`^([^,;:]{2,80}?) (showed|shows|show|found|find|demonstrated|demonstrates|demonstrate|revealed|reveals|reveal|confirmed|confirms|confirm|indicated|indicates|indicate|concluded|conclude|concludes|observed|proved|discovered|suggest|suggests) that ([^;:]{20,220})\.$`)
	findings    = regexp.MustCompile(`(?i)\b(?:results?|findings?|data|study|studies|analysis|analyses|evidence|observations?|work|experiments|we)\b`)
	denying     = regexp.MustCompile(`(?i)\b(?:not|no|never|whether|if|land|be|been)\b`)
	subjunctive = regexp.MustCompile(` (?:should|and that|to be) `)
	unsure      = regexp.MustCompile(`(?i)\b(?:not|no|never|whether|should|would|if|this|these|that|it|they|he|she|which|who)\b`)
)

// attribution leaves out who says something: what was found stands, what was believed
// does not.
func (e *editor) attribution(t *seedText, i int) []reworded {
	s := t.sentences[i]
	if m := attributed.FindStringSubmatch(s); m != nil && !denying.MatchString(m[1]) && hasVerb(m[3]) && !subjunctive.MatchString(m[3]) && !startsDangling(m[3]) && asked(strings.Fields(m[3])).finite(0) == "" {
		return []reworded{beyond("attribution dropped", sentenceOf(m[3]))}
	}
	m := established.FindStringSubmatch(s)
	if m == nil || unsure.MatchString(m[1]) || !hasVerb(m[3]) || startsDangling(m[3]) || strings.HasPrefix(m[2], "suggest") && !findings.MatchString(m[1]) {
		return nil
	}
	return []reworded{fairly("finding stated", sentenceOf(m[3]))}
}

// startsDangling reports whether a part of a sentence begins with what stands for
// something before it.
func startsDangling(part string) bool {
	w, _, _ := strings.Cut(strings.ToLower(part), " ")
	return pronouns[w] || w == "this" || w == "these" || w == "that" || w == "those" || w == "such" || w == "their" || w == "its" || w == "his" || w == "her" || w == "although" || w == "while" || w == "when" || w == "if" || w == "both"
}

var (
	conditionFirst = regexp.MustCompile(`^(?:If|Unless|Provided that) ([^,;:()]{8,100}), (?:then )?([^;:()]{15,140})\.$`)
	conditionLast  = regexp.MustCompile(`^([A-Z][^,;:()]{20,140}?),? (?:if|unless|provided that|only if|only when) ([^,;:()]{8,100})\.$`)
	noCondition    = regexp.MustCompile(`(?i)\b(?:as|even|whether|know|knows|asked|ask|see|determine|test|wonder|what|check|only|not|or|clear) (?:if|unless)\b`)
)

// condition leaves out on what something depends, which says more than the text; and has
// it before or behind, which says the same.
func (e *editor) condition(t *seedText, i int) []reworded {
	s := t.sentences[i]
	if noCondition.MatchString(s) || strings.Contains(s, " only ") {
		return nil
	}
	if m := conditionFirst.FindStringSubmatch(s); m != nil && hasVerb(m[2]) && !strings.Contains(m[2], " if ") {
		word, _, _ := strings.Cut(s, " ")
		out := []reworded{fairly("clauses in the other order", sentenceOf(m[2]+" "+strings.ToLower(word)+" "+m[1]))}
		if strings.HasPrefix(word, "Provided") {
			out = nil
		}
		if w, _, _ := strings.Cut(m[2], " "); !startsDangling(m[2]) && !conjunctions[w] {
			out = append(out, beyond("condition dropped", sentenceOf(m[2])))
		}
		return out
	}
	if m := conditionLast.FindStringSubmatch(s); m != nil && hasVerb(m[1]) && hasVerb(m[2]) && !strings.Contains(m[1], " that ") {
		return []reworded{beyond("condition dropped", sentenceOf(m[1]))}
	}
	return nil
}

var (
	thoughtTo = regexp.MustCompile(`\b(is|are|was|were) (?:thought|believed|said|supposed|alleged|reported|rumou?red) to (be|have been)\b`)
	seeming   = regexp.MustCompile(`\b(appears|appear|appeared|seems|seem|seemed) to be\b`)
	perhaps   = regexp.MustCompile(` (?:probably|possibly|perhaps|apparently|allegedly|reportedly|supposedly)(?: |$)`)
	mayBe     = regexp.MustCompile(`\b(?:may|might) `)
	adverbs   = regexp.MustCompile(` (?:also|however|still|therefore|thus|then|currently|subsequently|eventually|indeed|furthermore|moreover)( (?:is|was|are|were|has|have|had|[a-z]+ed) )`)
)

// hedge leaves out that something only may be so; adverbs that bind sentences are left
// out without harm.
func (e *editor) hedge(t *seedText, i int) []reworded {
	s := t.sentences[i]
	var out []reworded
	be := map[string]string{"appears": "is", "seems": "is", "appear": "are", "seem": "are", "appeared": "was", "seemed": "was"}
	switch {
	case thoughtTo.MatchString(s):
		m := thoughtTo.FindStringSubmatch(s)
		verb := m[1]
		if m[2] == "have been" {
			verb = map[string]string{"is": "was", "are": "were"}[m[1]]
		}
		if verb != "" {
			out = append(out, beyond("hedge dropped", strings.Replace(s, m[0], verb, 1)))
		}
	case seeming.MatchString(s) && !strings.Contains(s, " not "):
		m := seeming.FindStringSubmatch(s)
		out = append(out, beyond("hedge dropped", strings.Replace(s, m[0], be[m[1]], 1)))
	case mayBe.MatchString(s) && !strings.Contains(s, " if ") && !strings.HasPrefix(s, "If "):
		q := asked(strings.Fields(s))
		for k := 1; k+1 < len(q); k++ {
			if w := q.at(k); w != "may" && w != "might" {
				continue
			}
			plural := answerText{text: q.text(0, k)}
			plural.count(strings.ToLower(q.text(0, k)))
			verb, next := "", q.at(k+1)
			switch {
			case q.at(k+1) == "be" && plural.plural:
				verb = "are"
			case q.at(k+1) == "be":
				verb = "is"
			case !plainVerbs[next] && !nounVerbs[next] || k+2 >= len(q):
			case plural.plural:
				verb = next
			default:
				verb = thirdOf(next)
			}
			if verb != "" && k < 7 && !startsDangling(s) && !strings.Contains(q.text(0, k), ",") {
				out = append(out, beyond("hedge dropped", q.text(0, k)+" "+verb+" "+q.text(k+2, len(q))))
			}
			break
		}
	case perhaps.MatchString(s):
		out = append(out, beyond("hedge dropped", perhaps.ReplaceAllString(s, " ")))
	case adverbs.MatchString(s):
		out = append(out, fairly("adverb left out", adverbs.ReplaceAllString(s, "$1")))
	}
	return out
}

var (
	some    = regexp.MustCompile(`^(?:Most|Some|Many|Several|A few|Few)( of the| of these)?( (?:[a-z-]+ ){0,2}[a-z]+s (?:are|were|have|had|can|do|did|show|use)\b)`)
	all     = regexp.MustCompile(`^(?:All|Every)( (?:of the )?(?:[a-z-]+ ){0,2}[a-z]+s (?:are|were|have|had|can)\b)`)
	atTimes = regexp.MustCompile(` (?:often|usually|sometimes|generally|typically|frequently|occasionally|commonly|mostly|mainly|rarely|seldom) `)
)

// quantifier says of all what is said of some, and always of what is so at times.
func (e *editor) quantifier(t *seedText, i int) []reworded {
	s := t.sentences[i]
	switch {
	case some.MatchString(s):
		return []reworded{beyond("all for some", some.ReplaceAllString(s, "All$1$2"))}
	case all.MatchString(s):
		m := all.FindStringSubmatch(s)
		turned := strings.Replace(s, m[0], "Not all"+m[1], 1)
		return []reworded{against("not all for all", turned)}
	case atTimes.MatchString(s) && !strings.Contains(s, " more ") && !strings.Contains(s, " most ") && !strings.Contains(s, " not "):
		at := atTimes.FindStringIndex(s)
		if next := asked(strings.Fields(s[at[1]:])); verbs.isParticiple(next.at(0)) || next.finite(0) != "" || plainVerbs[next.at(0)] {
			return []reworded{beyond("always for often", s[:at[0]]+" always "+s[at[1]:])}
		}
	}
	return nil
}

// voice turns the active to the passive and back; with its two sides exchanged a sentence
// is contradicted.
func (e *editor) voice(t *seedText, i int) []reworded {
	s := t.sentences[i]
	if a, ok := e.activeOf(s); ok {
		out := []reworded{fairly("active for passive", a.affirmed())}
		if !mutual[a.base] {
			wrong := a
			object, after := a.end, strings.TrimPrefix(a.rest, a.end)
			wrong.subject, wrong.rest = object, e.within(a.subject)+after
			out = append(out, against("sides of a verb exchanged", wrong.affirmed()))
		}
		return out
	}
	q := asked(strings.Fields(strings.TrimRight(s, ".")))
	k := q.pastVerb()
	if k < 0 {
		return nil
	}
	plain := saying{subject: q.text(0, k), verb: q.at(k), base: verbs.ofPast[q.at(k)], helper: "did", rest: q.text(k+1, len(q))}
	if conjunctions[lastOf(plain.subject)] || strings.Contains(plain.rest, ",") || strings.Contains(plain.rest, " and ") {
		return nil
	}
	var out []reworded
	object, after, _ := plain.object()
	own, next, doer := asked(strings.Fields(object)), asked(strings.Fields(after)), asked(strings.Fields(plain.subject))
	clean := !ownWords[own.at(0)] && !lasting.MatchString(object) && !strings.Contains(object, "ing ") && !verbs.isParticiple(next.at(0)) && !verbs.isParticiple(next.at(1)) &&
		!strings.Contains(after, "which") && !strings.HasPrefix(after, "in vi") && doer.at(0) != "no" && doer.at(0) != "here" && doer.at(len(doer)-1) != "also" && doer.at(len(doer)-1) != "we" &&
		!strings.HasSuffix(plain.subject, "ly") && !strings.Contains(object, " not") && !strings.Contains(object, "%")
	if _, ok := plain.passive(); ok && clean && !ditransitive[plain.base] {
		plain := plain
		plain.subject = e.within(plain.subject)
		p, _ := plain.passive()
		out = append(out, fairly("passive for active", p.affirmed()))
	}
	if x := plain.exchanged(); x != "" {
		out = append(out, against("sides of a verb exchanged", x))
	}
	return out
}

var ditransitive = wordsOf("bring give offer send pay teach show tell award grant earn win cost lend sell save")

var lasting = regexp.MustCompile(`(?:days|weeks|months|years|hours|minutes|times)$`)

func lastOf(text string) string {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// pastVerb returns where the past of a verb stands behind a short subject; -1: it is not
// sure.
func (q asked) pastVerb() int {
	if w := q.at(0); !q.capital(0) || prepositions[w] || relatives[w] || pronouns[w] || w == "this" || w == "these" {
		return -1
	}
	const most = 6
	for k := 1; k < len(q) && k <= most; k++ {
		w := q.at(k)
		if strings.HasSuffix(q[k-1], ",") || prepositions[w] && w != "of" || relatives[w] || beings[w] || havings[w] || modals[w] || helpers[w] || strings.HasSuffix(w, "ing") || w == "to" {
			return -1
		}
		if verbs.ofPast[w] != "" && !q.inside(k) && !q.capital(k) && w != verbs.ofPast[w] && w != "had" {
			if next := q.at(k + 1); determiners[next] && next != "that" || q.capital(k+1) || numeral.MatchString(next) {
				return k
			}
			return -1
		}
	}
	return -1
}

var datedEnd = regexp.MustCompile(`^(?:in|on|from|during|after|before) (?:[A-Z]|\d|the \d)`)

var byAgent = regexp.MustCompile(`^([A-Z][^,;:()]{2,70}?) (was|were|is|are) (\w+) by ((?:the |a |an )?[\w'’.-]+(?: [\w'’.-]+){0,5}?)((?: (?:in|on|at|from|during|after|before|for|with|as|to|under|near) [^,;:()]*)?)\.$`)

// activeOf makes the active of a sentence in the passive; its end is the object.
func (e *editor) activeOf(s string) (saying, bool) {
	m := byAgent.FindStringSubmatch(s)
	if m == nil || !verbs.isParticiple(m[3]) {
		return saying{}, false
	}
	base := verbs.ofPast[m[3]]
	for _, line := range irregularVerbs {
		if forms := strings.Split(line, "/"); forms[len(forms)-1] == m[3] {
			base = forms[0]
		}
	}
	agent := asked(strings.Fields(m[4]))
	for i := range agent {
		if w := agent.at(i); strings.HasSuffix(w, "ing") || relatives[w] || conjunctions[w] || prepositions[w] && w != "of" || agent.number(i) {
			return saying{}, false
		}
	}
	subject := asked(strings.Fields(m[1]))
	for i := range subject {
		if w := subject.at(i); relatives[w] || subject.finite(i) != "" || conjunctions[w] || pronouns[w] || w == "this" || prepositions[w] && w != "of" {
			return saying{}, false
		}
	}
	if after := strings.TrimSpace(m[5]); after != "" && !agent.capital(len(agent)-1) && !datedEnd.MatchString(after) {
		return saying{}, false // what follows may belong to the one who did it
	}
	if base == "" || strings.HasSuffix(m[4], "ly") || !(determiners[agent.at(0)] || agent.capital(0)) || determiners[agent.at(0)] && len(agent) == 1 || strings.Contains(" "+m[5], " and ") {
		return saying{}, false
	}
	object := e.within(m[1])
	helper := "did"
	if m[2] == "is" || m[2] == "are" {
		doer := answerText{text: m[4]}
		if helper = "does"; agent.capital(0) {
			return saying{}, false
		} else if doer.count(m[4]); doer.plural {
			helper = "do"
		}
	}
	return saying{subject: m[4], verb: conjugated(helper, base).verb, base: base, helper: helper, rest: object + m[5], end: object}, true
}

var (
	clauseLast  = regexp.MustCompile(`^([A-Z][^,;:()]{15,120}) (because|although|while|before|after|when) ([^,;:()]{15,120})\.$`)
	clauseFirst = regexp.MustCompile(`^(Because|Although|When|After|Before|While|Once) ([^,;:()]{12,120}), ([^,;:()]{15,120})\.$`)
	unorderly   = regexp.MustCompile(`(?i)\b(?:that|which|who|whom|because|although|while|before|after|when|if|unless|until|since|than|and|or|but|of when|of while|shortly|soon|long|just|even|years|days|months|weeks|hours|only|not)\b`)
)

// clauses puts the clause of "because" or "after" before the other, or behind it; with the
// clauses themselves in each other's place the sentence is contradicted.
func (e *editor) clauses(t *seedText, i int) []reworded {
	s := t.sentences[i]
	if m := clauseLast.FindStringSubmatch(s); m != nil {
		q := asked(strings.Fields(m[3]))
		if !hasVerb(m[1]) || !hasVerb(m[3]) || unorderly.MatchString(m[1]) || unorderly.MatchString(m[3]) || prepositions[q.at(0)] || strings.HasSuffix(q.at(0), "ing") {
			return nil
		}
		out := []reworded{fairly("clauses in the other order", sentenceOf(m[2]+" "+m[3]+", "+e.within(m[1])))}
		if m[2] != "when" && m[2] != "while" && m[2] != "although" && !startsDangling(m[3]) {
			out = append(out, against("clauses exchanged", sentenceOf(m[3]+" "+m[2]+" "+e.within(m[1]))))
		}
		return out
	}
	m := clauseFirst.FindStringSubmatch(s)
	if m == nil || !hasVerb(m[2]) || !hasVerb(m[3]) || unorderly.MatchString(m[3]) || startsDangling(m[3]) {
		return nil
	}
	out := []reworded{fairly("clauses in the other order", sentenceOf(m[3]+" "+strings.ToLower(m[1])+" "+m[2]))}
	if m[1] == "Because" || m[1] == "After" || m[1] == "Before" {
		if !startsDangling(m[2]) && !unorderly.MatchString(m[2]) {
			out = append(out, against("clauses exchanged", sentenceOf(m[1]+" "+e.within(sentenceOf(m[3])[:len(m[3])])+", "+e.within(m[2]))))
		}
	}
	return out
}

var (
	apposed  = regexp.MustCompile(`^((?:The )?[A-Z][\w'’.-]*(?: (?:[A-Z][\w'’.-]*|of|the|de|von|van))*), ((?:an?|the) [a-z][^,;:()]{4,60}), ([a-z][^;:]{10,160})\.$`)
	relative = regexp.MustCompile(`^([A-Z][^,;:()]{2,60}), (?:which|who) ((?:is|was|are|were|has|had) [^,;:()]{4,80}), ([a-z][^;:]{10,160})\.$`)
)

// apposition tells what stands between commas by itself, and the sentence without it.
func (e *editor) apposition(t *seedText, i int) []reworded {
	s := t.sentences[i]
	m, verb := apposed.FindStringSubmatch(s), "is "
	if m == nil {
		if m = relative.FindStringSubmatch(s); m == nil {
			return nil
		}
		verb = ""
	}
	q := asked(strings.Fields("x " + m[3]))
	kind := q.finite(1)
	first, rest, more := strings.Cut(m[1], " ")
	first = strings.ToLower(first)
	if kind == "" && verbs.ofThird[q.at(1)] == "" || conjunctions[q.at(1)] || startsDangling(m[1]) || strings.Contains(m[1], " and ") || prepositions[first] || relatives[first] ||
		first == "objectives" || verb == "" && strings.Contains(rest, " of ") || verb != "" && !more && e.small[first] {
		return nil
	}
	if verb != "" && (kind == "past" || q.at(1) == "was" || q.at(1) == "were" || q.at(1) == "had") {
		verb = "was "
	}
	out := []reworded{fairly("apposition stated", sentenceOf(m[1]+" "+verb+m[2])), fairly("apposition left out", sentenceOf(m[1]+" "+m[3]))}
	for _, n := range surface.Names(t.String()) {
		if strings.Count(n, " ") == strings.Count(strings.TrimPrefix(m[1], "The "), " ") && !strings.Contains(s, n) && !strings.Contains(n, "The ") && !ofNation.MatchString(n) && len(n) > 3 && n != strings.ToUpper(n) && !headed.MatchString(n) {
			return append(out, against("apposition of another", sentenceOf(n+" "+verb+m[2])))
		}
	}
	return out
}
