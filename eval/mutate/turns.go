package mutate

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A turn replaces the match of a pattern.
type turn struct {
	find *lazyregexp.Regexp
	put  string // with $1 for the groups of find
}

func turns(pairs ...string) []turn {
	var out []turn
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, turn{lazyregexp.New(`(?i)` + pairs[i]), pairs[i+1]})
	}
	return out
}

// denials add a negation; affirmations remove one.
var (
	affirmations = turns(
		`\b(can|may|must|should|do|does|did|is|are|was|were|has|have|had|will|need)(?: not|n't|n’t)\b`, "$1",
		`\bcannot\b`, "can",
		`\bnever\b`, "always",
		`\bforbidden\b`, "permitted", `\bprohibited\b`, "permitted", `\bimpossible\b`, "possible",
		`\b(?:nobody|no one)\b`, "everybody",
		`\bwithout\b`, "with",
		`\bexcluded\b`, "included", `\bneither (.+?) nor\b`, "both $1 and", `\bfree of charge\b`, "subject to a charge", `\bexempt from\b`, "subject to",
		`\bunless\b`, "if", `^No `, "A ", `\b(get|gets|has|have|had|is|are|makes|need|needs|with|be|takes|without) no\b`, "$1 some",
	)
	denials = turns(
		`\b(is|are|was|were|(?-i:may)|must|can|should|will|would|could)\b`, "$1 not",
		`\b(?:has|gets)\b( (?:to|an?|the|about|only|two|\d))`, "does not have$1",
		`\bhave\b( (?:to|an?|the|about|only|two|\d))`, "do not have$1",
		`\b(?:has|have) (been|\w+ed)\b`, "has not $1",
		`\b(?:needs|requires)\b`, "does not need", `\b(?:lasts)\b`, "does not last", `\bcosts\b`, "does not cost", `\btakes\b`, "does not take",
		`\bneed\b`, "do not need", `\bpermitted\b`, "forbidden", `\ballowed\b`, "forbidden", `\bwith\b`, "without",
	)
)

// negations negates a claim, or removes its negation.
func (m *mutator) negations() {
	before := len(m.found)
	m.turn(Negation, affirmations, 1)
	if len(m.found) == before && !strings.Contains(m.claim, " only ") { // "not … only" could be negated in two ways
		m.turn(Negation, denials, 2)
	}
}

// comparisonTurns reverse a comparison. A longer phrase comes before its parts.
var comparisonTurns = turns(
	`\bno (?:more|longer) than\b`, "no less than", `\bno (?:less|fewer|shorter) than\b`, "no more than", `\bno later than\b`, "no earlier than", `\bnot exceed\b`, "not fall below",
	`\b(?:less|fewer) than\b`, "more than", `\bmore than\b`, "less than", `\bgreater than\b`, "less than",
	`\bat least\b`, "at most", `\bat most\b`, "at least", `\bat the latest\b`, "at the earliest", `\bor (?:more|longer)\b`, "or less", `\bor less\b`, "or more",
	`\bup to( (?:\W?\d|\w+ (?:or|days|hours|men|weeks|years|times|percent|tokens|months)))`, "at least$1", `\bas (?:many|much) as\b`, "at least", `\bas far as\b`, "no farther than", `\ba (?:maximum|minimum) of\b`, "",
	`\bearlier\b`, "later", `\blater(?: than|,|\.)`, "earlier than", `\bbefore\b`, "after", `\bafter\b`, "before",
	`\blonger\b`, "shorter", `\bshorter\b`, "longer", `\b(?:larger|bigger)\b`, "smaller", `\bsmaller\b`, "larger", `\bolder\b`, "younger", `\byounger\b`, "older",
	`\bfaster\b`, "slower", `\bslower\b`, "faster", `\bhigher\b`, "lower", `\blower\b`, "higher", `\bbetter\b`, "worse", `\bworse\b`, "better", `\bgreater\b`, "smaller",
	`\bmaximum\b`, "minimum", `\bminimum\b`, "maximum", `\blargest\b`, "smallest", `\blongest\b`, "shortest", `\bsmallest\b`, "largest", `\boldest\b`, "newest",
	`\babove( \w*\d)`, "below$1", `\bbelow\b`, "above", `\bover( (?:half|\w* ?\d|\w*teen|six|seven|eight|nine|ten|twelve|three|four|five|two)\b)`, "under$1", `\bunder( (?:\w* ?\d|six|half|four)\b)`, "over$1",
	`\b(?:less|fewer)\b`, "more", `\bmore\b`, "less", `\bmost\b`, "few", `\bmajority\b`, "minority", `\brare(ly)?\b`, "frequent$1", `\boften\b`, "seldom", `\busually\b`, "seldom",
	`\bwithin( (?:an?|\d+|\w+ working|one|two|three|four|five|six|seven|eight|ten|twelve|ninety) )`, "after more than$1", `\bjust under\b`, "just over", `\blittle under\b`, "little over", `\balmost\b`, "more than", `\bdouble\b`, "half", `\btwice as (?:fast|much|many|large)\b`, "half as fast",
	`\bexceeding\b`, "below", `\bexceed\b`, "stay below", `\buntil\b`, "only after", `\bat any\b`, "at no", `\bolder than\b`, "younger than",
)

func (m *mutator) comparisons() { m.turn(Comparison, comparisonTurns, 3) }

// turn makes the mutations of up to most turns that match the claim. Of two that overlap it takes
// the first.
func (m *mutator) turn(k Kind, list []turn, most int) {
	var taken [][2]int
	for _, t := range list {
		for _, at := range t.find.FindAllStringSubmatchIndex(m.claim, -1) {
			clash := false
			for _, o := range taken {
				clash = clash || at[0] < o[1] && o[0] < at[1]
			}
			if clash || len(taken) >= most || t.put == "" {
				continue
			}
			taken = append(taken, [2]int{at[0], at[1]})
			m.put(k, at[0], at[1], string(t.find.ExpandString(nil, t.put, m.claim, at)))
		}
	}
}
