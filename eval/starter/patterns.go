package starter

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

const (
	months = `(?:January|February|March|April|May|June|July|August|September|October|November|December)`
	date   = `(?:` + months + ` \d{1,2}, \d{4}|\d{1,2} ` + months + ` \d{4}|` + months + ` \d{4}|\d{4}-\d{2}-\d{2}|(?:the )?(?:early |late |mid-)?\d{4}s?)`
	number = `(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety)`
	few    = `(?: [\pL\pN’'-]+){0,5}?`
)

// The forms of the words after "is" and similar verbs.
var (
	definition = lazyregexp.New(`^((?:an?|the|one of the) [a-z].*)$`)
	dated      = lazyregexp.New(`^([a-z]+)(` + few + `) ((?:in|on|since|until) ` + date + `)([ ,].*)?$`)
	moreDates  = lazyregexp.New(`^,? (?:and|or|to|through|until) (?:in |on )?` + date + `|^–`)
	byAgent    = lazyregexp.New(`^([a-z]+)(` + few + `) by (.+)$`)
	placed     = lazyregexp.New(`^(located|situated|based|stored|kept|born|buried|headquartered|held|installed) ((?:in|at|near|under) .+)$`)
	usedFor    = lazyregexp.New(`^(?:[a-z]+ly )?used ((?:to|for [a-z]+ing) .+)$`)
	called     = lazyregexp.New(`^(?:[a-z]+ly )?(called|known as|referred to as) (.+)$`)
	because    = lazyregexp.New(`^([a-z][^,]{3,70}?),? because (?:of )?(.+)$`)
	sized      = lazyregexp.New(`^((?:about |approximately |nearly |over |around )?` + number + ` [a-z]+) (long|wide|high|tall|deep|old|thick)$`)
	counted    = lazyregexp.New(`^([a-z]+)(` + few + `) (within|after|for|to|every|up to|at least|at most) (` + number + `) ([a-z]+s)(?:\b.*)?$`)
	quantity   = lazyregexp.New(`^(?:about |exactly |approximately |only |up to |at least |at most |over |more than )?(` + number + `) ([a-z]+(?: [a-z]+){0,2}?s)((?: (?:in|for|to|with|on|at) .+)?)$`)
	modalBe    = lazyregexp.New(`^be ([a-z]+)(` + few + `) ((?:with|using|by [a-z]+ing|through|via) .+)$`)
	modalWhen  = lazyregexp.New(`^be ([a-z]+)(` + few + `) ((?:before|after|within|until|when) .+)$`)
	opinion    = lazyregexp.New(`^(?:an?|the|one of the) (?:good|great|best|net|nice|bad|poor|better|same|most|essential|important|key|way|place|case|only|very|little|lot)\b`)
	greatest   = lazyregexp.New(`^((?:one of )?the (?:[a-z]+ )?(?:first|last|only|[a-z]{2,}est|most [a-z]+) [a-z].+)$`)
	measured   = lazyregexp.New(`^an? (?:[a-z]+ )?(population|length|height|area|capacity|diameter|depth|width|size|limit|maximum|minimum|budget|circulation|speed|range|weight) of ((?:about |approximately |nearly |over |around |up to )?` + number + `.*)$`)
	misleading = lazyregexp.New(`\b(?:after|before|until|since|death|between|from|during|that|which|who|whom|had|when|while)\b`)
	agent      = lazyregexp.New(`^(?:the |an? |[A-Z])`)
	lastDate   = lazyregexp.New(`^(.{4,90}?) ((?:in|on) ` + date + `)$`)
)

// questions turns a clause into the questions that it answers.
func (c clause) questions() []asked {
	switch c.verb {
	case "is", "are", "was", "were":
		return c.being()
	case "can", "could", "may", "must", "should", "shall", "will", "would", "might":
		return c.modal()
	}
	return c.doing()
}

// being handles clauses of the form "X is …".
func (c clause) being() []asked {
	var all []asked
	be := c.verb + " " + c.subject
	add := func(kind, question, answer string, worth float64) {
		all = append(all, asked{kind, question, answer, worth})
	}
	participle := func(w string) bool { _, ok := verbs().participle[w]; return ok }
	if m := because.FindStringSubmatch(c.rest); m != nil {
		add("reason", "Why "+be+" "+m[1], m[2], 1.2)
		return all
	}
	if m := dated.FindStringSubmatch(c.rest); m != nil && participle(m[1]) && !misleading.MatchString(m[2]) && !moreDates.MatchString(m[4]) {
		add("date", "When "+be+" "+m[1]+m[2], m[3], 1.2)
	}
	if m := counted.FindStringSubmatch(c.rest); m != nil && participle(m[1]) && !(m[3] == "to" && m[1] != "limited") {
		add("number", upperFirst(m[3])+" how many "+m[5]+" "+be+" "+m[1]+m[2], m[4]+" "+m[5], 1.2)
	}
	if m := placed.FindStringSubmatch(c.rest); m != nil && !dated.MatchString(c.rest) && !strings.HasSuffix(untilComma(m[2]), "order") {
		add("place", "Where "+be+" "+m[1], untilVerb(untilComma(m[2])), 1.2)
	}
	if m := usedFor.FindStringSubmatch(c.rest); m != nil {
		add("use", "What "+be+" used for", m[1], 1)
	}
	if m := called.FindStringSubmatch(c.rest); m != nil {
		add("name", "What "+be+" "+m[1], untilVerb(untilComma(m[2])), 0.9)
	}
	if m := sized.FindStringSubmatch(c.rest); m != nil {
		add("number", "How "+m[2]+" "+be, m[1], 1.2)
	}
	if m := byAgent.FindStringSubmatch(c.rest); m != nil && participle(m[1]) && agent.MatchString(m[3]) && len(all) == 0 {
		by := beforeIn.ReplaceAllString(untilVerb(untilComma(m[3])), "")
		who := "What"
		if c.names.isPerson(strings.Fields(strings.TrimPrefix(by, "the "))) || byRole.MatchString(by) {
			who = "Who"
		}
		if len(strings.Fields(by)) <= 9 && !strings.Contains(by, "ing ") {
			add("agent", who+" "+be+" "+m[1]+adverb.ReplaceAllString(m[2], "")+" by", by, 1)
		}
	}
	if m := greatest.FindStringSubmatch(c.rest); m != nil && !c.vague && !strings.HasPrefix(m[1], "one of") && !strings.Contains(m[1], ",") && len(strings.Fields(m[1])) >= 4 && len(all) == 0 {
		who := "What"
		if c.person {
			who = "Who"
		}
		add("greatest", who+" "+c.verb+" "+m[1], c.subject, 1.2)
	}
	if m := definition.FindStringSubmatch(c.rest); m != nil && len(all) == 0 && !opinion.MatchString(m[1]) {
		who := "What"
		if c.person {
			who = "Who"
		}
		worth := 0.8
		if c.plural {
			worth = 0.6
		}
		add("definition", who+" "+be, m[1], worth)
	}
	return all
}

// adverb matches a trailing adverb of manner, which precedes the agent.
var adverb = lazyregexp.New(` [a-z]+ly$`)

// beforeIn matches a time or place after the agent.
var beforeIn = lazyregexp.New(` (?:in|on|at) (?:` + date + `|[a-z]+) ?.*$`)

// byRole matches an agent described by a role.
var byRole = lazyregexp.New(`^(?:the|a|an) (?:[a-z]+ )?(?:head|manager|director|author|user|king|queen|president|administrator|operator|owner|maintainer|developer|engineer|architect|government|chairman|minister|editor|caller|client|board|committee|council|court|team|staff|minister|parliament|department|office|secretary|treasurer|chief|doctor|nurse|teacher|supervisor)\b`)

// modal handles clauses of the form "X must …".
func (c clause) modal() []asked {
	words := strings.Fields(c.rest)
	if m := modalWhen.FindStringSubmatch(c.rest); m != nil && verbs().participle[m[1]].base != "" {
		return []asked{{"date", "When " + c.verb + " " + c.subject + " be " + m[1] + m[2], m[3], 1}}
	}
	if m := modalBe.FindStringSubmatch(c.rest); m != nil && !strings.ContainsAny(m[2], "0123456789") && verbs().participle[m[1]].base != "" && !joined.MatchString(m[2]) {
		return []asked{{"way", "How " + c.verb + " " + c.subject + " be " + m[1] + m[2], m[3], 1}}
	}
	obliges := c.verb == "must" || c.verb == "should"
	action := verbs().base[words[0]] && !idle[words[0]]
	if obliges && action && len(words) <= 14 && strings.Contains(c.subject, " ") {
		return []asked{{"duty", "What " + c.verb + " " + c.subject + " do", c.rest, 0.7}}
	}
	return nil
}

// idle lists verbs that describe a state rather than an action.
var idle = wordSet("be have follow go contain consist represent begin end match appear occur exist belong mean know remain include use hold cover")

// joined matches phrases that continue with a "with" that does not name a means.
var joined = lazyregexp.New(` (?:conjunction|combination|accordance|connection|comparison|relation|association|compliance|line|together|along)$`)

// abstract matches an abstract noun, which needs a complement.
var abstract = lazyregexp.New(`(?i)^[a-z]+(?:ence|ance|tion|sion|ment|ness|ity|ing|ure|al)$`)

// objective lists verbs whose object answers "what".
var objective = wordSet(`support provide contain include require return use mean describe define implement create remove produce replace prevent control specify
 report cover hold store represent offer show indicate generate accept need receive handle serve manage`)

// adverbial matches the beginning of a phrase that is not an object.
var adverbial = lazyregexp.New(`^(?:(?:in|on|at|from|to|with|for|as|by|into|up|out|off|down|back)\b|\d)`)

// deeds lists verbs whose object, in the past tense, answers "what".
var deeds = wordSet(`found invent discover publish write build win defeat design introduce establish develop create sign join receive release launch host
 lead adopt propose describe abolish produce sell buy acquire open close commission`)

// doing handles clauses of the form "X does …".
func (c clause) doing() []asked {
	var all []asked
	v, present := verbs().third[c.verb]
	do := "does"
	if !present {
		v, do = verbs().past[c.verb], "did"
	}
	if c.verb == "have" {
		v, do = verb{base: "have"}, "do"
	}
	if !strings.Contains(c.subject, " ") && abstract.MatchString(c.subject) && !c.names.proper(c.subject) {
		return nil // absence of an unnamed thing
	}
	if v.base == "" || v.base == "be" || strings.HasPrefix(c.rest, "and ") || strings.HasPrefix(c.rest, "to ") || strings.HasPrefix(c.rest, "been ") {
		return nil
	}
	if m := measured.FindStringSubmatch(c.rest); m != nil && v.base == "have" {
		is := map[string]string{"do": "is", "does": "is", "did": "was"}[do]
		return []asked{{"number", "What " + is + " the " + m[1] + " of " + c.subject, untilComma(m[2]), 1.3}}
	}
	if m := quantity.FindStringSubmatch(c.rest); m != nil {
		all = append(all, asked{"number", "How many " + m[2] + " " + do + " " + c.subject + " " + v.base + m[3], m[1] + " " + m[2], 1.3})
	}
	if participle, _, _ := strings.Cut(c.rest, " "); v.base == "have" && verbs().participle[participle].base != "" {
		return all // the verb is the next one
	}
	rest := head(c.rest)
	if m := lastDate.FindStringSubmatch(rest); m != nil && do == "did" && v.base != "have" && !misleading.MatchString(m[1]) {
		all = append(all, asked{"date", "When did " + c.subject + " " + v.base + " " + m[1], m[2], 1.2})
	}
	if c.person && do == "did" && v.base != "have" && 2 < len(strings.Fields(rest)) && len(strings.Fields(rest)) <= 14 {
		all = append(all, asked{"person", "Who " + c.verb + " " + rest, c.subject, 1.1})
	}
	if len(all) == 0 && do == "did" && deeds[v.base] && !c.vague && !adverbial.MatchString(rest) && 1 < len(strings.Fields(rest)) && len(strings.Fields(rest)) <= 14 {
		all = append(all, asked{"deed", "What did " + c.subject + " " + v.base, rest, 0.8})
	}
	if len(all) == 0 && do == "does" && objective[v.base] && !strings.HasPrefix(c.rest, "that ") {
		all = append(all, asked{"thing", "What does " + c.subject + " " + v.base, c.rest, 0.7})
	}
	return all
}

// fronted matches a statement that begins with a date.
var fronted = lazyregexp.New(`^((?:In|On) ` + date + `), (.+)$`)

// when asks for the date that a statement begins with.
func (c clause) when(date string) []asked {
	date = lowerFirst(date)
	rest := head(c.rest)
	n := len(strings.Fields(rest))
	if strings.HasPrefix(rest, "and ") || misleading.MatchString(rest) || n < 2 || n > 14 {
		return nil
	}
	first, _, _ := strings.Cut(rest, " ")
	if c.verb == "was" || c.verb == "were" {
		if verbs().participle[first].base == "" {
			return nil
		}
		return []asked{{"date", "When " + c.verb + " " + c.subject + " " + rest, date, 1.2}}
	}
	if v := verbs().past[c.verb]; v.base != "" && v.base != "have" {
		return []asked{{"date", "When did " + c.subject + " " + v.base + " " + rest, date, 1.2}}
	}
	return nil
}

// aside matches the beginning of a subordinate part that a sentence can do without.
var aside = lazyregexp.New(`^(?:who|which|where|when|while|after|before|as|with|including|although|though|whose|[a-z]+ing|a|an|the)\b`)

// head returns the main part of a clause, before a subordinate part. It returns "" if the rest
// belongs to the main part, as in a list.
func head(s string) string {
	first, more, found := strings.Cut(s, ", ")
	if found && (!aside.MatchString(more) || strings.Contains(more, ", and ")) || strings.HasSuffix(first, " and") || strings.HasSuffix(first, " or") {
		return ""
	}
	return first
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func untilComma(s string) string {
	head, _, _ := strings.Cut(s, ",")
	return head
}

// untilVerb cuts a phrase before an "and" that introduces another verb.
func untilVerb(s string) string {
	for at := 0; ; {
		i := strings.Index(s[at:], " and ")
		if i < 0 {
			return s
		}
		at += i
		next, _, _ := strings.Cut(s[at+len(" and "):], " ")
		_, third := verbs().third[next]
		_, past := verbs().past[next]
		if auxiliaries[next] || (third || past) && !plausible(next) {
			return s[:at]
		}
		at += len(" and ")
	}
}
