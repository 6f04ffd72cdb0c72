package ground

import (
	"regexp"
	"slices"
)

var (
	uncertain = regexp.MustCompile(`(?i)\b(?:may|might|could|possibly|probably|perhaps|likely|allegedly|reportedly|supposedly|suspected|claims? that|claimed that|plans? to|planned to|expected to)\b((?:\W+\w+){1,3})`)

	// hedged is what a claim may say of that in other words, or what takes its place.
	hedged = regexp.MustCompile(`(?i)\b(?:may|might|can|could|should|must|will|would|cannot|possib\w*|probab\w*|perhaps|likely|unlikely|alleged\w*|reported\w*|suppos\w*|suspect\w*|claim\w*|said|plan\w*|expect\w*|allow\w*|permi\w*|able|sometimes|often|up to|as (?:many|much)|at most|no more|no longer|not|never|no|nobody|forbidden|risk|if|when|unless|maximum|free|without|any|only|about|some|more|over)\b|n['’]t\b`)

	conditional = regexp.MustCompile(`(?i)\b(?:only if|if|unless|provided(?: that)?|except (?:if|when)|in case)\b([^,;.]*)`)
	restricted  = regexp.MustCompile(`(?i)\b(?:if|unless|when|whenever|once|only|except|provided|after|before|without|until|where|who|whose|whoever|whom|which|that|while|during|as soon|as long|in case|with|for|by|on|at|should|someone|those|not|never|no|cannot|may|can|might|could)\b|n['’]t\b`)

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
	if at := untrue.FindStringIndex(b.text); at != nil && share >= sureOfName && !deniesOutright.MatchString(b.text[at[1]:]) && !saysNot(c) {
		return "the source says that it is not so"
	}
	if share < sureLeftOut {
		return ""
	}
	if at := uncertain.FindStringSubmatch(source); at != nil && !hedged.MatchString(c.text) && sharesStem(c, at[1]) {
		return "the source says that it may be so"
	}
	if at := conditional.FindStringSubmatch(source); at != nil && !restricted.MatchString(c.text) && !sharesStem(c, at[1]) {
		return "the source says it under a condition"
	}
	return ""
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
