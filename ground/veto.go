package ground

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// vetoScore is the most that the probability is where there is a veto.
const vetoScore = 0.04

// veto says why a claim cannot be supported whatever a model makes of its words: a number,
// date, unit or name that what is nearest to it does not have, a bound that lies on the
// other side, or a denial on one side alone. Empty: there is nothing of that kind.
func (s *comparison) veto() string {
	for i, c := range s.claim {
		if reason := s.vetoPart(i, c); reason != "" {
			return reason
		}
	}
	return ""
}

// vetoed are the sentences in which a claim's quantities have to stand.
const vetoed = 3

func (s *comparison) vetoPart(part int, c *piece) string {
	near := s.near[part][:min(vetoed, len(s.near[part]))]
	if len(near) == 0 {
		return ""
	}
	mine := quantities(c.text)
	var theirs [][]quantity
	for _, p := range near {
		theirs = append(theirs, quantities(p.text))
	}
	used := make([]bool, len(theirs[0]))
	var open []quantity // that the nearest sentence has not
	for _, q := range mine {
		if k := slices.IndexFunc(theirs[0], func(o quantity) bool { return q.same(o) }); k >= 0 {
			if used[k] {
				for l, o := range theirs[0] {
					if !used[l] && q.same(o) {
						k = l
					}
				}
			}
			used[k] = true
			continue
		}
		open = append(open, q)
	}
	for _, q := range open {
		if q.trivial() {
			continue
		}
		rival := false
		for k, o := range theirs[0] {
			rival = rival || !used[k] && o.dim == q.dim && !o.weak && !q.weak && (o.noun == q.noun || o.noun == "" || q.noun == "" || q.dim != count)
		}
		found := false
		for k := 1; k < len(near); k++ {
			found = found || slices.ContainsFunc(theirs[k], q.same) && s.bearsMuch(part, near[k])
		}
		if rival && !found || !found && !q.excused(theirs) {
			return fmt.Sprintf("%s is not in what says the rest", strings.TrimSpace(c.text[q.start:q.end]))
		}
		if rival {
			return fmt.Sprintf("%s: what says the rest has another one", strings.TrimSpace(c.text[q.start:q.end]))
		}
	}
	return cmp.Or(againstBound(c.text, near[0].text, mine, theirs[0]), s.changed(part, c), s.turned(part, c), s.crossed(part, c), s.otherName(part, c))
}

// trivial reports whether a quantity is said without counting: "one of", "first".
func (q quantity) trivial() bool {
	return q.dim == count && q.value <= 2 && q.value == q.plain
}

// excused reports whether a unit that is not counted is not missed, since no time at all
// is told there.
func (q quantity) excused(theirs [][]quantity) bool {
	return q.weak && !slices.ContainsFunc(slices.Concat(theirs...), func(o quantity) bool { return o.dim == duration || o.dim == span12 || o.dim == q.dim })
}

// bearsMuch reports whether a sentence has two of the words of a claim's sentence, numbers
// aside.
func (s *comparison) bearsMuch(part int, p *piece) bool {
	n := 0
	for _, t := range s.claim[part].words {
		if (t.kind == plain || t.kind == name) && p.stems[t.stem] > 0 {
			n++
		}
	}
	return n >= 2
}
