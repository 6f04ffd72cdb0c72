package ground

import (
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/surface"
)

// sizes are how long the two are.
func (s *comparison) sizes(f *features) {
	f.group = "size"
	words, distinct := 0, map[string]bool{}
	for _, p := range s.evidence {
		words += len(p.words)
		for stem := range p.stems {
			distinct[stem] = true
		}
	}
	f.add("claim", math.Log1p(float64(len(s.words))))
	f.add("sentences", float64(len(s.claim)))
	f.add("evidence", math.Log1p(float64(words)))
	f.add("evidence_sentences", math.Log1p(float64(len(s.evidence))))
	f.add("variety", ratio(len(distinct), words))
	f.add("content", s.part(func(m match) bool { return m.kind != small }))
	f.add("names", s.part(func(m match) bool { return m.kind == name }))
	f.add("numbers", s.part(func(m match) bool { return m.kind == number }))
}

// part is the share of the claim's words for which which holds.
func (s *comparison) part(which func(match) bool) float64 {
	n := 0
	for _, m := range s.words {
		if which(m) {
			n++
		}
	}
	return ratio(n, len(s.words))
}

// covered is the share of the words of which that has holds for; 1 where there are none.
func (s *comparison) covered(which, has func(match) bool) float64 {
	n, of := 0, 0
	for _, m := range s.words {
		if which(m) {
			of++
			if has(m) {
				n++
			}
		}
	}
	if of == 0 {
		return 1
	}
	return ratio(n, of)
}

func content(m match) bool { return m.kind != small }
func inBest(m match) bool  { return m.best }
func inNear(m match) bool  { return m.near }
func inAll(m match) bool   { return m.all }

// coverage is how much of the claim's words stands there.
func (s *comparison) coverage(f *features) {
	f.group = "cover"
	f.add("best", s.covered(content, inBest))
	f.add("near", s.covered(content, inNear))
	f.add("all", s.covered(content, inAll))
	f.add("every_best", s.covered(func(match) bool { return true }, inBest))
	f.add("every_near", s.covered(func(match) bool { return true }, inNear))
	f.add("small_best", s.covered(func(m match) bool { return m.kind == small }, inBest))
	f.add("spread", s.covered(content, inNear)-s.covered(content, inBest))
	spelt, n, missing, unseen := 0.0, 0, 0, 0
	least := 1.0
	for _, m := range s.words {
		if m.kind == small {
			continue
		}
		n++
		spelt += m.spelt
		least = min(least, m.spelt)
		if !m.near && m.spelt == 0 {
			missing++
			if !m.all {
				unseen++
			}
		}
	}
	f.add("spelt", spelt/float64(max(n, 1)))
	f.add("spelt_least", least)
	f.add("missing", math.Log1p(float64(missing)))
	f.add("unseen", math.Log1p(float64(unseen)))
	lowest, lowestNear, second := 1.0, 1.0, 0.0
	for i, c := range s.claim {
		all, best, near := 0, 0, 0
		for _, m := range s.words {
			if m.part == i && m.kind != small {
				all++
				best += int(oneIf(m.best))
				near += int(oneIf(m.near))
			}
		}
		if all == 0 {
			continue
		}
		lowest = min(lowest, ratio(best, all))
		lowestNear = min(lowestNear, ratio(near, all))
		if len(s.near[i]) > 1 {
			held := 0
			for _, w := range c.words {
				if w.kind != small && s.near[i][1].stems[w.stem] > 0 {
					held++
				}
			}
			second += ratio(held, all) / float64(len(s.claim))
		}
	}
	f.add("least_best", lowest)
	f.add("least_near", lowestNear)
	f.add("second", second)
	f.add("back", s.back())
}

// back is the share of the content words of the best sentences that the claim has.
func (s *comparison) back() float64 {
	held, all := 0, 0
	for i := range s.claim {
		if b := s.bestOf(i); b != nil {
			for _, w := range b.words {
				if w.kind == small {
					continue
				}
				all++
				if slices.ContainsFunc(s.claim, func(c *piece) bool { return c.stems[w.stem] > 0 }) {
					held++
				}
			}
		}
	}
	return ratio(held, all)
}

// kinds are the names, numbers and kinds of words by their endings.
func (s *comparison) kinds(f *features) {
	f.group = "kind"
	is := func(k kind) func(match) bool { return func(m match) bool { return m.kind == k } }
	lacks := func(which, has func(match) bool) float64 {
		n := 0
		for _, m := range s.words {
			if which(m) && !has(m) {
				n++
			}
		}
		return math.Log1p(float64(n))
	}
	f.add("name_near", s.covered(is(name), inNear))
	f.add("name_all", s.covered(is(name), inAll))
	f.add("name_missing", lacks(is(name), inNear))
	f.add("name_unseen", lacks(is(name), inAll))
	f.add("number_near", s.covered(is(number), inNear))
	f.add("number_all", s.covered(is(number), inAll))
	f.add("number_missing", lacks(is(number), inNear))
	f.add("number_unseen", lacks(is(number), inAll))
	year := func(m match) bool { return m.kind == number && len(m.stem) == 4 && m.stem >= "1000" && m.stem < "2200" }
	f.add("year_missing", lacks(year, inNear))
	date := func(m match) bool { return months[m.lower] != "" && m.kind == name }
	f.add("month_missing", lacks(date, inNear))
	f.add("unit_other", s.otherUnits())
	rival := 0
	for i := range s.claim {
		if b := s.bestOf(i); b != nil {
			for _, w := range b.words {
				if w.kind == number && s.claim[i].stems[w.stem] == 0 {
					rival++
				}
			}
		}
	}
	f.add("number_rivals", math.Log1p(float64(rival)))
	for _, e := range []struct {
		name    string
		endings []string
	}{
		{"adverb", []string{"ly"}},
		{"past", []string{"ed"}},
		{"going", []string{"ing"}},
		{"adjective", []string{"al", "ive", "ous", "ful", "less", "able", "ible", "ic", "ary"}},
		{"noun", []string{"tion", "sion", "ment", "ness", "ity", "ance", "ence", "ers", "er", "ist"}},
	} {
		which := func(m match) bool {
			return m.kind == plain && len(m.lower) > 4 && slices.ContainsFunc(e.endings, func(end string) bool { return strings.HasSuffix(m.lower, end) })
		}
		f.add(e.name+"_missing", lacks(which, func(m match) bool { return m.near || m.spelt > 0 }))
	}
	f.add("plain_missing", lacks(is(plain), func(m match) bool { return m.near || m.spelt > 0 }))
}

// otherUnits counts the claim's numbers that stand there only before other words.
func (s *comparison) otherUnits() float64 {
	other := 0
	for _, m := range s.words {
		if m.kind != number || !m.near {
			continue
		}
		mine := following(s.claim[m.part].words, m.at)
		same := mine == ""
		for _, p := range s.near[m.part][:min(nearest4, len(s.near[m.part]))] {
			for j, w := range p.words {
				if w.stem == m.stem && (following(p.words, j) == mine || j+2 < len(p.words) && p.words[j+2].stem == mine) {
					same = true
				}
			}
		}
		if !same {
			other++
		}
	}
	return math.Log1p(float64(other))
}

// following is the stem of the next word that is not small; empty at the end.
func following(words []token, i int) string {
	for _, w := range words[i+1:] {
		if w.kind != small {
			return w.stem
		}
	}
	return ""
}

// sequence is how far the claim's words stand in the same order and side by side.
func (s *comparison) sequence(f *features) {
	f.group = "order"
	var two, twoAll, three, threeAll, pairs, triples int
	for _, c := range s.claim {
		for i := 1; i < len(c.words); i++ {
			pairs++
			has := s.grams(c.words[i-1 : i+1])
			twoAll += int(oneIf(has))
		}
		for i := 2; i < len(c.words); i++ {
			triples++
			threeAll += int(oneIf(s.grams(c.words[i-2 : i+1])))
		}
	}
	var common, run, total, edits, inserted, swapped, gap int
	turned, aligned := 0, 0
	longestNew := 0
	for i, c := range s.claim {
		total += len(c.words)
		b := s.bestOf(i)
		if b == nil {
			continue
		}
		for k := 1; k < len(c.words); k++ {
			two += int(oneIf(b.pair(c.words[k-1].stem, c.words[k].stem)))
		}
		for k := 2; k < len(c.words); k++ {
			three += int(oneIf(hasGram(b, c.words[k-2:k+1])))
		}
		pairsOf := align(c.words, b.words)
		common += len(pairsOf)
		run = max(run, longestRun(pairsOf))
		e, ins, sw, g := localEdits(c.words, b.words, pairsOf)
		edits, inserted, swapped, gap = edits+e, inserted+ins, swapped+sw, max(gap, g)
		t, a := inversions(c.words, b.words)
		turned, aligned = turned+t, aligned+a
	}
	fresh := 0
	for _, m := range s.words {
		switch {
		case m.kind == small:
		case m.near:
			fresh = 0
		default:
			fresh++
			longestNew = max(longestNew, fresh)
		}
	}
	f.add("pairs_best", ratio(two, pairs))
	f.add("pairs_all", ratio(twoAll, pairs))
	f.add("triples_best", ratio(three, triples))
	f.add("triples_all", ratio(threeAll, triples))
	f.add("common", ratio(common, total))
	f.add("run", ratio(run, total))
	f.add("edits", float64(min(edits, 6)))
	f.add("inserted", float64(min(inserted, 6)))
	f.add("swapped", float64(min(swapped, 6)))
	f.add("gap", float64(min(gap, 12)))
	f.add("turned", ratio(turned, aligned))
	f.add("new_run", float64(min(longestNew, 12)))
}

// grams reports whether words stand side by side in any sentence.
func (s *comparison) grams(words []token) bool {
	return slices.ContainsFunc(s.evidence, func(p *piece) bool { return p.stems[words[0].stem] > 0 && hasGram(p, words) })
}

func hasGram(p *piece, words []token) bool {
	for i := 0; i+len(words) <= len(p.words); i++ {
		j := 0
		for j < len(words) && p.words[i+j].stem == words[j].stem {
			j++
		}
		if j == len(words) {
			return true
		}
	}
	return false
}

// align returns the pairs of indices of a longest common subsequence of two sentences.
func align(a, b []token) [][2]int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].stem == b[j].stem {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].stem == b[j].stem:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case table[i+1][j] >= table[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// longestRun is the most pairs in a row that stand side by side in both.
func longestRun(pairs [][2]int) int {
	longest, n := 0, 0
	for k, p := range pairs {
		if k > 0 && p[0] == pairs[k-1][0]+1 && p[1] == pairs[k-1][1]+1 {
			n++
		} else {
			n = 1
		}
		longest = max(longest, n)
	}
	return longest
}

// localEdits counts between words that both have: the short stretches in which each has
// other words, those where only the claim has some, and those with a negation, name or
// number on either side; and the claim's longest stretch of other words.
func localEdits(a, b []token, pairs [][2]int) (edits, inserted, swapped, gap int) {
	const short = 3
	for k := 1; k < len(pairs); k++ {
		mine, theirs := a[pairs[k-1][0]+1:pairs[k][0]], b[pairs[k-1][1]+1:pairs[k][1]]
		gap = max(gap, len(mine))
		weighty := func(t token) bool { return t.kind != small || surface.Negations(t.raw) > 0 }
		held := slices.ContainsFunc(mine, weighty)
		switch {
		case len(mine) > short || len(theirs) > short || !held && !slices.ContainsFunc(theirs, weighty):
		case len(theirs) == 0:
			inserted++
		case held && slices.ContainsFunc(theirs, weighty):
			edits++
			if slices.ContainsFunc(mine, func(t token) bool { return t.kind == name || t.kind == number || surface.Negations(t.raw) > 0 }) {
				swapped++
			}
		}
	}
	return edits, inserted, swapped, gap
}

// inversions counts the pairs of content words in a row, of those that both have, that
// stand the other way round in b.
func inversions(a, b []token) (turned, of int) {
	last := -1
	for _, w := range a {
		if w.kind == small {
			continue
		}
		j := slices.IndexFunc(b, func(t token) bool { return t.stem == w.stem })
		if j < 0 {
			continue
		}
		if last >= 0 {
			of++
			if j < last {
				turned++
			}
		}
		last = j
	}
	return turned, of
}
