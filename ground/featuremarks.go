package ground

import (
	"strings"

	"github.com/assay-rag/assay/internal/surface"
)

// classes are the marks that are compared each for itself: what a word's small words say
// of it.
var classes = []struct {
	name  string
	marks marking
}{
	{"not", isNot},
	{"may", isMay | isCould | isPerhaps | isWould},
	{"must", isMust | isNeed | isShould},
	{"will", isWill | isPast},
	{"bound", isAtMost | isAtLeast | isMore | isLess | isAbout | isExactly},
	{"quantity", isAll | isAny | isSome | isMany | isMost | isFew},
	{"only", isOnly},
	{"often", isAlways | isEver | isUsually | isOften | isSometimes | isRarely},
	{"time", isBefore | isAfter | isUntil | isSince | isDuring | isWithin},
	{"if", isIf | isUnless | isExcept | isBut | isBecause | isWhile},
	{"role", isTo | isFrom | isBy | isWith | isFor | isOr},
}

// marks are how the small words before the words that both have differ, as the strict
// rules read them.
func (s *comparison) marks(f *features) {
	f.group = "mark"
	added, dropped := make([]int, len(classes)), make([]int, len(classes))
	shared, uneven, only := 0, 0, 0
	for i, c := range s.claim {
		mine := read(c.text).terms
		var theirs []term
		near := s.near[i]
		for k, p := range near[:min(nearest4, len(near))] {
			terms := read(p.text).terms
			theirs = append(theirs, terms...)
			if k == 0 {
				if n := surface.Negations(c.text) - surface.Negations(p.text); n%2 != 0 {
					uneven++
					only += n
				}
			}
		}
		for _, t := range mine {
			seen, union, meet := false, marking(0), ^marking(0)
			for _, o := range theirs {
				if o.stem == t.stem && o.number == t.number && t.stem != "" {
					seen, union, meet = true, union|o.marks, meet&o.marks
				}
			}
			if !seen {
				continue
			}
			shared++
			for k, class := range classes {
				if t.marks&class.marks&^union != 0 {
					added[k]++
				}
				if meet&class.marks&^t.marks != 0 {
					dropped[k]++
				}
			}
		}
	}
	for k, class := range classes {
		f.add(class.name+"_added", ratio(min(added[k], 3), 1))
		f.add(class.name+"_dropped", ratio(min(dropped[k], 3), 1))
	}
	f.add("uneven", float64(uneven))
	f.add("negated", float64(only))
	f.add("shared", ratio(shared, len(s.words)))
}

// opposed are words against words that say the opposite of them, a line each side; their
// stems count.
var opposed = opposites(`
increase rise raise grow growth gain elevate higher high greater great more up enhance boost improve expand upregulate augment promote stimulate accelerate strengthen climb surge exceed above : decrease fall fell drop decline reduce lower low less fewer down diminish impair shrink downregulate suppress inhibit attenuate slow weaken plunge plummet below worsen
large big huge major significant substantial considerable vast strong : small little tiny minor insignificant negligible slight limited weak
long longer : short shorter
early earlier before first former previous begin began start open launch : late later after last latter subsequent end ended finish close cease stop
accept approve allow permit grant support agree favor back endorse praise welcome : reject refuse deny prohibit forbid ban oppose disagree criticize criticise condemn resist decline
positive beneficial advantage benefit good better best success successful succeed win won victory : negative harmful disadvantage harm bad worse worst failure unsuccessful fail lose lost defeat
activate activation active : inactivate inactivation inactive deactivate
sensitive susceptible vulnerable : resistant resistance insensitive immune
safe secure : unsafe dangerous risky
possible able capable can : impossible unable incapable cannot
present presence include contain with : absent absence exclude lack without
cause induce trigger produce lead : prevent protect avoid block
profit surplus : loss deficit
buy purchase acquire : sell sold
male man men husband father son brother boy : female woman women wife mother daughter sister girl
love like enjoy happy pleased glad satisfied : hate dislike sad unhappy upset dissatisfied
common frequent frequently often always usually : rare rarely seldom never uncommon
easy simple simply : difficult hard complex complicated
new novel modern recent : old ancient traditional
public : private
domestic national local : foreign international global
north northern : south southern
east eastern : west western
left : right
inside internal within inner : outside external outer
true correct accurate : false incorrect wrong inaccurate
same similar identical alike : different distinct unlike
direct directly : indirect indirectly
natural : artificial synthetic
create build construct establish found : destroy demolish dissolve abolish
arrive enter join come : leave depart exit quit left
add insert attach : remove delete detach
maximum most max : minimum least min
full complete entire whole : empty partial incomplete
alive live survive survival : dead die died death
hot warm heat : cold cool
fast quick rapid quickly : slow slowly
expensive costly : cheap affordable free
cheap inexpensive : expensive costly
confirm prove verify : refute disprove contradict
remember : forget forgot
day daily : night nightly
teacher : student
employer : employee
parent : child children
guilty convict : innocent acquit
legal lawful : illegal unlawful
peace : war
rich wealthy : poor
dependent : independent
necessary required mandatory essential : unnecessary optional voluntary
permanent : temporary
primary main : secondary
increase : reduction
`)

func opposites(list string) map[string]map[string]bool {
	m := map[string]map[string]bool{}
	for line := range strings.Lines(list) {
		one, other, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for a := range strings.FieldsSeq(one) {
			for b := range strings.FieldsSeq(other) {
				for _, pair := range [][2]string{{stemOf(a), stemOf(b)}, {stemOf(b), stemOf(a)}} {
					if m[pair[0]] == nil {
						m[pair[0]] = map[string]bool{}
					}
					m[pair[0]][pair[1]] = true
				}
			}
		}
	}
	return m
}

// rising and falling are the stems of words for more and for less.
var rising, falling = direction("increase rise raise grow growth gain elevate higher greater more enhance boost improve expand upregulate augment promote stimulate accelerate strengthen climb surge exceed induce activate"),
	direction("decrease fall fell drop decline reduce reduction lower less fewer diminish impair shrink downregulate suppress inhibit attenuate slow weaken plunge worsen prevent block loss lack")

// turning are the stems of words that turn round what a sentence says of its subject: an
// even number of them, denials counted, comes to what none does ("loss of X prevents Y").
var turning = direction(`decrease fall fell drop decline reduce reduction lower less fewer diminish impair impairment shrink downregulate
	suppress suppression inhibit inhibition inhibitor inhibitory attenuate attenuation slow weaken worsen prevent prevention block blockade loss lose lack absence absent
	limit restrict deficient deficiency deplete depletion knockout knockdown disrupt disruption abolish abrogate repress repression fail failure
	poor negative negatively small rare rarely impede hinder ablation deletion silence antagonist resistant resistance insensitive inactive
	inactivate unable unlikely ineffective insufficient dispensable protect against avoid deny refuse reject forbid prohibit exclude stop end cease`)

// turns is how many words of a piece turn round what it says.
func turns(p *piece) int {
	n := surface.Negations(p.text)
	for _, w := range p.words {
		if turning[w.stem] {
			n++
		}
	}
	return n
}

func direction(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[stemOf(w)] = true
	}
	return m
}

// negative are what English puts before a word to deny it.
var negative = []string{"un", "in", "im", "ir", "il", "non", "dis", "a", "anti", "mis"}

// denies reports whether one of two words is the other with a negation before it.
func denies(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(b) < 4 {
		return false
	}
	for _, n := range negative {
		if a == n+b {
			return true
		}
	}
	return false
}

// opposites are words whose opposite stands there.
func (s *comparison) opposites(f *features) {
	f.group = "opposite"
	best, near, prefixed := 0, 0, 0
	for _, m := range s.words {
		if m.near && m.kind != small {
			continue
		}
		against := opposed[m.stem]
		for k, p := range s.near[m.part][:min(nearest4, len(s.near[m.part]))] {
			found := false
			for _, w := range p.words {
				if against[w.stem] && s.claim[m.part].stems[w.stem] == 0 {
					found = true
				}
				if m.kind == plain && w.kind == plain && denies(m.lower, w.lower) {
					prefixed++
				}
			}
			if found {
				near++
				best += int(oneIf(k == 0))
				break
			}
		}
	}
	f.add("best", float64(min(best, 3)))
	f.add("near", float64(min(near, 3)))
	f.add("prefixed", float64(min(prefixed, 3)))
	against, along, claims := 0, 0, 0
	turned, mine, theirs := 0, 0, 0
	for i, c := range s.claim {
		up := heading(c)
		if up != 0 {
			claims++
		}
		if b := s.bestOf(i); b != nil {
			switch of := heading(b); {
			case up*of < 0:
				against++
			case up*of > 0:
				along++
			}
			turned += (turns(c) + turns(b)) % 2
			mine, theirs = mine+turns(c), theirs+turns(b)
		}
	}
	f.add("direction", float64(min(claims, 3)))
	f.add("against", float64(min(against, 3)))
	f.add("along", float64(min(along, 3)))
	f.add("turned", float64(min(turned, 3)))
	f.add("turns", float64(min(mine, 4)))
	f.add("turns_best", float64(min(theirs, 4)))
}

// heading is above 0 where a sentence says that something gets more, and below where less;
// a negation before turns it round.
func heading(p *piece) int {
	sum, sign := 0, 1
	for _, w := range p.words {
		if surface.Negations(w.raw) > 0 {
			sign = -sign
		}
		if rising[w.stem] {
			sum += sign
		}
		if falling[w.stem] {
			sum -= sign
		}
	}
	return sum
}
