package ground

import "strings"

// denyingWords are words that turn what is said into its opposite, allowing its exceptions.
var denyingWords = wordSet(`not no never none nobody nothing nowhere neither nor without cannot lack lacks lacked fail fails failed absent unable
	unless except exempt forbidden forbid forbids prohibited prohibit prohibits banned ban impossible exclude excludes excluded excluding refuse refused
	refuses deny denies denied hardly rarely seldom free void invalid against stop stops stopped avoid avoided rules nor instead`)

// often and seldom are how often, or of how many, something is so.
var (
	oftenWords  = wordSet("most mostly usually often always majority frequent frequently common commonly generally regularly every all mainly normally typically")
	seldomWords = wordSet("few seldom rarely never minority rare uncommon infrequent hardly little sometimes occasionally none no")
	beforeWords = wordSet("before prior until till ahead beforehand earlier previously preceding advance")
	afterWords  = wordSet("after following since once afterwards later subsequently when upon past behind")
	upWords     = wordSet("more higher larger greater longer older bigger faster better largest longest oldest highest most above over exceed exceeds maximum double twice increase")
	downWords   = wordSet("less lower smaller fewer shorter younger slower worse smallest shortest youngest newest lowest least below under minimum half decrease")
	weekdays    = wordSet("monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays")
)

// facts are quantities, dates and what turns a sentence round.
func (s *comparison) facts(f *features) {
	f.group = "fact"
	var all []quantity
	for _, p := range s.evidence {
		all = append(all, quantities(p.text)...)
	}
	var n, same, best, unlike, unlikeAll, turned, absent, absentAll, days int
	var uneven, more, fewer, frequency, order, degree float64
	for i, c := range s.claim {
		var near, first []quantity
		list := s.near[i][:min(nearest4, len(s.near[i]))]
		for k, p := range list {
			q := quantities(p.text)
			near = append(near, q...)
			if k == 0 {
				first = q
			}
		}
		for _, q := range quantities(c.text) {
			n++
			here, there := standingOf(q, near), standingOf(q, all)
			same += int(oneIf(here.same))
			best += int(oneIf(standingOf(q, first).same))
			turned += int(oneIf(here.turned))
			unlike += int(oneIf(here.unlike))
			unlikeAll += int(oneIf(there.unlike))
			absent += int(oneIf(!here.same && !here.unlike))
			absentAll += int(oneIf(!there.same && !there.unlike))
		}
		for _, w := range c.words {
			month := months[w.lower] != "" && w.kind == name
			if (weekdays[w.lower] || month) && !anyWord(list, func(t token) bool {
				return months[t.lower] == months[w.lower] && month || strings.TrimSuffix(t.lower, "s") == strings.TrimSuffix(w.lower, "s")
			}) {
				days++
			}
		}
		if b := s.bestOf(i); b != nil {
			mine, theirs := countOf(c, denyingWords), countOf(b, denyingWords)
			uneven += oneIf(mine%2 != theirs%2)
			more += oneIf(mine > theirs)
			fewer += oneIf(mine < theirs)
			frequency += opposing(c, b, oftenWords, seldomWords)
			order += opposing(c, b, beforeWords, afterWords)
			degree += opposing(c, b, upWords, downWords)
		}
	}
	f.add("quantities", float64(min(n, 5)))
	f.add("same", ratioOr1(same, n))
	f.add("same_best", ratioOr1(best, n))
	f.add("absent", float64(min(absent, 3)))
	f.add("absent_all", float64(min(absentAll, 3)))
	f.add("unlike", float64(min(unlike, 3)))
	f.add("unlike_all", float64(min(unlikeAll, 3)))
	f.add("turned", float64(min(turned, 3)))
	f.add("wrong", float64(min(turned+unlike+absent+days, 4)))
	f.add("days", float64(min(days, 3)))
	f.add("uneven", uneven)
	f.add("denies_more", more)
	f.add("denies_less", fewer)
	f.add("frequency", frequency)
	f.add("order", order)
	f.add("degree", degree)
	odd, oddNew := s.oddNames()
	f.add("name_elsewhere", float64(min(odd, 3)))
	f.add("name_alone", float64(min(oddNew, 3)))
}

// A standing is how one quantity stands to others.
type standing struct {
	same   bool // it is among them
	unlike bool // its number is, of something else that is measured
	turned bool // it is, but only as the opposite bound
}

func standingOf(q quantity, others []quantity) standing {
	var s standing
	agrees := false
	for _, o := range others {
		switch {
		case q.same(o):
			s.same = true
			opposite := q.bound == most && o.bound == least || q.bound == least && o.bound == most
			s.turned = s.turned || opposite
			agrees = agrees || !opposite
		case q.value == o.value:
			s.unlike = true
		}
	}
	s.turned = s.turned && !agrees
	s.unlike = s.unlike && !s.same
	return s
}

func ratioOr1(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return ratio(n, of)
}

func anyWord(pieces []*piece, is func(token) bool) bool {
	for _, p := range pieces {
		for _, w := range p.words {
			if is(w) {
				return true
			}
		}
	}
	return false
}

// countOf returns how many words of a sentence are of a list, or negate by their ending.
func countOf(p *piece, list map[string]bool) int {
	n := 0
	for _, w := range p.words {
		if list[w.lower] || strings.HasSuffix(w.lower, "n't") {
			n++
		}
	}
	return n
}

// opposing is 1 where one sentence has only words of one list and the other only of the
// other, and -1 where they have the same.
func opposing(a, b *piece, one, other map[string]bool) float64 {
	sign := func(p *piece) int {
		s := 0
		for _, w := range p.words {
			if one[w.lower] {
				s++
			}
			if other[w.lower] {
				s--
			}
		}
		return min(1, max(-1, s))
	}
	return -float64(sign(a) * sign(b))
}

// oddNames counts the claim's names that stand only in other sentences than the one
// nearest to it, and those of them beside which, there, none of the claim's other words
// stands.
func (s *comparison) oddNames() (elsewhere, alone int) {
	for _, m := range s.words {
		if m.kind != name || m.best || !m.all {
			continue
		}
		elsewhere++
		c := s.claim[m.part]
		kept := false
		for _, p := range s.evidence {
			if p.stems[m.stem] == 0 {
				continue
			}
			n := 0
			for _, w := range c.words {
				if w.kind != small && w.stem != m.stem && p.stems[w.stem] > 0 {
					n++
				}
			}
			kept = kept || n > 0
		}
		if !kept {
			alone++
		}
	}
	return elsewhere, alone
}
