package ground

import (
	"regexp"
	"slices"
	"strings"
)

var (
	uncertain = regexp.MustCompile(`(?i)\b(?:may|might|could|possibly|probably|perhaps|likely|allegedly|reportedly|supposedly|suspected|claims? that|claimed that|plans? to|planned to|expected to)\b((?:\W+\w+){1,3})`)

	// hedged is what a claim may say of that in other words, or what takes its place.
	hedged = regexp.MustCompile(`(?i)\b(?:may|might|can|could|should|must|will|would|cannot|possib\w*|probab\w*|perhaps|likely|unlikely|alleged\w*|reported\w*|suppos\w*|suspect\w*|claim\w*|said|plan(?:s|ned|ning)?|expect(?:s|ed|ing)?|allow\w*|permi\w*|able|sometimes|often|up to|as (?:many|much)|at most|no more|no longer|not|never|no|nobody|forbidden|risk|if|when|unless|maximum|free|without|any|only|about|some|more|over)\b|n['’]t\b`)

	conditional = regexp.MustCompile(`(?i)\b(?:only if|if|unless|provided(?: that)?|except (?:if|when)|in case)\b([^,;.]*)`)
	restricted  = regexp.MustCompile(`(?i)\b(?:if|unless|when|whenever|once|only|except|provided|after|before|without|until|where|who|whose|whoever|whom|which|that|while|during|as soon|as long|in case|with|for|by|on|at|should|someone|those|not|never|no|cannot|may|can|might|could)\b|n['’]t\b`)

	// onlyThen is a condition that a claim has to say somehow, and demands what says it.
	onlyThen = regexp.MustCompile(`(?i)\bonly (?:with|if|when|after|by|for|once)\b([^,;.]*)`)
	demands  = regexp.MustCompile(`(?i)\b(?:only|unless|without|needs?|needed|requires?|required|must|has to|have to|except|not|no|never|cannot|nobody|limited|restricted|exclusively)\b|n['’]t\b`)

	may = regexp.MustCompile(`(?i)^(?:may|might|could|possibly|perhaps)\b`)

	notAllowed = regexp.MustCompile(`(?i)^(?:may|might|could)(?: not|n['’]t)\b`)

	untrue = regexp.MustCompile(`(?i)\b(?:it is (?:false|wrong|untrue|not true|a myth|not the case) that|it is not (?:said|claimed) that|nobody (?:says|claims|said|claimed)|falsely|denied that|denies that)\b`)
)

// leftOut says what a claim leaves out that takes back a part of what its source says: that
// it may be so only, that it is so under a condition, that somebody says it is not so.
func (s *comparison) leftOut(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords {
		return ""
	}
	share := s.shareOfPlain(part, b)
	source := clauseOf(c, b)
	said := source // what says it, without what stands beside it
	if t, ok := likest(c, stretch{0, len(c.words)}, b, clausesOf(b)); ok {
		said = b.text[b.words[t.from].start:b.words[t.to-1].end]
	}
	if at := untrue.FindStringIndex(b.text); at != nil && share >= sureOfName && !deniesOutright.MatchString(b.text[at[1]:]) && !saysNot(c) {
		return "the source says that it is not so"
	}
	if share < sureLeftOut {
		return ""
	}
	if at := uncertain.FindStringSubmatch(said); at != nil && !notAllowed.MatchString(at[0]) && !hedges(c.text, at[0], source) && sharesStem(c, at[1]) {
		return "the source says that it may be so"
	}
	if at := onlyThen.FindStringSubmatch(source); at != nil && !demands.MatchString(c.text) && !sharesStem(c, at[1]) {
		return "the source says it only under a condition"
	}
	if at := conditional.FindStringSubmatch(source); at != nil && !restricted.MatchString(c.text) && !sharesStem(c, at[1]) {
		return "the source says it under a condition"
	}
	return ""
}

// hedges reports whether a claim says in some way that what a hedge of its source says may be
// so only. What the source says beside the hedge is no such way, and neither is "will" for
// "may".
func hedges(claim, hedge, source string) bool {
	beside := strings.ToLower(strings.Replace(source, hedge, "", 1))
	possible := may.MatchString(hedge)
	return slices.ContainsFunc(hedged.FindAllString(claim, -1), func(w string) bool {
		w = strings.ToLower(w)
		return !(possible && (w == "will" || w == "must")) && (may.MatchString(w) || !slices.Contains(strings.Fields(beside), w))
	})
}

// sureLeftOut is the share of a claim's words that the sentence has to have.
const sureLeftOut = 0.8

// sharesStem reports whether a sentence has a content word of a text.
func sharesStem(c *piece, text string) bool {
	for t := range termSet(text) {
		if c.stems[t] > 0 {
			return true
		}
	}
	return false
}

// saysNot reports whether a sentence denies something in some way.
func saysNot(p *piece) bool {
	return slices.ContainsFunc(p.words, func(w token) bool { return deniesSomehow.MatchString(w.lower) })
}

// clauseOf is the part of a sentence between its semicolons and colons that shares most
// with a claim.
func clauseOf(c, b *piece) string {
	best, most := b.text, -1
	for clause := range strings.FieldsFuncSeq(b.text, func(r rune) bool { return r == ';' || r == ':' }) {
		n := 0
		for t := range termSet(clause) {
			if c.stems[t] > 0 {
				n++
			}
		}
		if n > most {
			best, most = clause, n
		}
	}
	return best
}
