package ground

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// deniesOutright are the words that deny outright.
	deniesOutright = regexp.MustCompile(`(?i)\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|forbidden|prohibited|impossible)\b|n['’]t\b`)

	// deniesSomehow are words in whose neighbourhood a denial may say the same in other
	// words: "free" and "no fee", "accompanied" and "never alone" are told by none.
	deniesSomehow = regexp.MustCompile(`(?i)^(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|only|except\w*|unless|but|rather|instead|free\w*|off|against|few|hardly|seldom|rare\w*|until|till|before|different\w*|distinct|out|away|lost|los[et]s?|missing|empty|nil|null|zero|void|otherwise|outside|beyond|default|always|all|alone|still|even|keep\w*|kept|remain\w*|unchanged|negative|` +
		`lack\w*|fail\w*|refus\w*|reject\w*|forbid\w*|prohibit\w*|exclu\w*|exempt\w*|imposs\w*|illegal\w*|ignor\w*|avoid\w*|prevent\w*|stop\w*|drop\w*|remov\w*|delet\w*|discard\w*|clos\w*|expir\w*|withdr\w*|den(?:y|ies|ied)|ban(?:s|ned)?|break\w*|broke\w*|cut|shut\w*|leak\w*|limit\w*|restrict\w*|unable|anonym\w*|immut\w*|separat\w*|apart|invalid\w*|indefinit\w*|independ\w*|un[a-z]{4,}|dis[a-z]{4,}|non|in(?:sufficient|complete|correct|valid|active|capable|visible|accessible|eligible)\w*|[a-z]{3,}less|.*n['’]t)$`)

	// softly are verbs and adjectives that deny what stands behind or before them.
	softly = wordSet(`forbidden prohibited prohibits forbids banned impossible illegal excluded excludes rejected rejects refused refuses denied denies unsuitable disallowed`)

	// outright are words that deny by themselves, wherever they stand.
	outright = wordSet("not no never none nobody nothing neither nor cannot without kein keine keinen nicht nie niemals ohne")
)

// excuses reports whether a clause has a word by which it may deny what the other sentence
// denies in other words; a word that both have is none.
func excuses(p *piece, c stretch, other *piece) bool {
	for i := c.from; i < c.to; i++ {
		w := p.words[i]
		switch {
		case (w.lower == "instead" || w.lower == "rather") && !insteadOf(p, i):
		case staying[w.lower] && !changes.MatchString(other.text):
		case somehow(w.lower) && (outright[w.lower] || other.stems[w.stem] == 0):
			return true
		}
	}
	return false
}

// excusesHead is excuses, where both have the word that is denied: "before" and "all" do not
// take back a denial of that.
func excusesHead(p *piece, c stretch, other *piece) bool {
	for i := c.from; i < c.to; i++ {
		w := p.words[i]
		if saysStrongly(w) && (outright[w.lower] || strings.HasSuffix(w.lower, "n't") || other.stems[w.stem] == 0) || insteadOf(p, i) || w.lower == "but" && slices.ContainsFunc(p.words[:i], func(w token) bool { return wholly[w.lower] }) {
			return true
		}
	}
	return false
}

// wholly are words behind which "but" says what is left out.
var wholly = wordSet("all every any each none nothing nobody no everything everybody everyone")

// insteadOf reports whether "instead of" or "rather than" begins at word i.
func insteadOf(p *piece, i int) bool {
	if i+1 == len(p.words) {
		return false
	}
	w, next := p.words[i].lower, p.words[i+1].lower
	return w == "instead" && next == "of" || w == "rather" && next == "than"
}

// saysStrongly reports whether a word denies or restricts by its own meaning.
func saysStrongly(w token) bool {
	return somehow(w.lower) && !faintly[w.lower]
}

// somehow reports whether a lower-case word may deny something: no word that only begins as
// one that does, as "university".
func somehow(lower string) bool {
	return deniesSomehow.MatchString(lower) && !unlikeDenial.MatchString(lower)
}

var (
	unlikeDenial = regexp.MustCompile(`^(?:univers|united|unif|union|units?$|unique|under|display|discuss|district|distanc|disk|diseas|dishes|distrib|discov|disabilit|wireless)`)

	// staying are words that deny what changes something: who keeps a name is not renamed.
	staying = wordSet("keep keeps kept remain remains remained unchanged")
	changes = regexp.MustCompile(`(?i)\b(?:re\w{4,}|chang\w*|alter\w*|lose\w*|lost|mov\w*|left|leaves?)\b`)
)

// faintly are words that stand where something may be denied in other words, and seldom do
// it by themselves.
var faintly = wordSet("but rather instead against otherwise always all alone still even before until till keep keeps kept remain remains")

// obliging are words that say that something has to be; where a claim denies it, "only"
// and "before" of its source deny nothing.
var obliging = wordSet("need needs have required require requires obliged necessary")

var notNeeded = regexp.MustCompile(`(?i)^(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|except\w*|unless|free\w*|exempt\w*|optional\w*|voluntar\w*|un[a-z]{4,}|may|can|might|if|auto\w+|.*n['’]t)$`)

// excusesNeed reports whether a clause may say that something need not be.
func excusesNeed(p *piece, c stretch) bool {
	return slices.ContainsFunc(p.words[c.from:c.to], func(w token) bool { return notNeeded.MatchString(w.lower) })
}
