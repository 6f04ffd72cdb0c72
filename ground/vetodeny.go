package ground

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// deniesOutright are the words that deny outright.
	deniesOutright = regexp.MustCompile(`(?i)\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|forbidden|prohibited|impossible)\b|n['’]t\b`)

	// boundDenial are denials of more or less: "no more than", "must not cost more than",
	// "not yet six". What quantities bound is compared there.
	boundDenial = regexp.MustCompile(`(?i)\b(?:not|no|never|nobody|cannot|none)\b(?: [\w'’]+){0,5} (?:more|less|fewer|longer|later|earlier|older|younger|larger|shorter|higher|lower|over|under|above|below|beyond|before|after|until|exceed\w*|yet|only|even|else|other|any|all|every|always|than)\b|\bno longer\b|\bnot only\b`)

	// deniesSomehow are words in whose neighbourhood a denial may say the same in other
	// words: "free" and "no fee", "accompanied" and "never alone" are told by none.
	deniesSomehow = regexp.MustCompile(`(?i)\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|only|except\w*|unless|but|rather|instead|free\w*|off|against|few|hardly|seldom|rare\w*|until|before|different\w*|distinct|out|away|lost|los[et]s?|missing|empty|nil|null|zero|void|otherwise|always|at all times|alone|still|even|` +
		`lack\w*|fail\w*|refus\w*|reject\w*|forbid\w*|prohibit\w*|exclu\w*|exempt\w*|imposs\w*|illegal\w*|ignor\w*|avoid\w*|prevent\w*|stop\w*|drop\w*|remov\w*|delet\w*|discard\w*|clos\w*|expir\w*|withdr\w*|den(?:y|ies|ied)|ban(?:s|ned)?|break\w*|broke\w*|cut|shut\w*|leak\w*|limit\w*|restrict\w*|unable|anonym\w*|immut\w*|invalid\w*|indefinit\w*|inde\w+|un[a-z]{4,}|dis[a-z]{4,}|non-?[a-z]{3,}|[a-z]{3,}less)\b|n['’]t\b`)
)

// denied says that a claim denies what the sentence that says it does not, nor the next
// ones; empty: it does not, or they do in some way.
func (s *comparison) denied(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOfPlain(part, b) < leastSure {
		return ""
	}
	if slices.ContainsFunc(quantities(c.text), func(q quantity) bool { return q.bound != exact }) {
		return "" // who is not younger than four is four
	}
	mine, theirs := boundDenial.ReplaceAllString(c.text, ""), b.text
	if deniesOutright.MatchString(mine) && !deniesSomehow.MatchString(theirs) && !s.deniedNext(part) {
		return "it denies what the source does not"
	}
	return ""
}

// deniedNext reports whether the second sentence denies outright, and has some of the
// claim's words.
func (s *comparison) deniedNext(part int) bool {
	near := s.near[part]
	return len(near) > 1 && deniesOutright.MatchString(near[1].text) && s.shareOfPlain(part, near[1]) >= sureOfName/2
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
