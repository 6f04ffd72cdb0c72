package ground

import (
	"cmp"
	"slices"
)

// vectors are what an encoder sees: for each word of the claim the likest one, and how
// near the sentences are as wholes.
func (s *comparison) vectors(f *features) {
	f.group = "vector"
	var all, new, names, numbers, homes, best []float64
	var others []float64
	for _, m := range s.words {
		if m.kind == small {
			continue
		}
		all = append(all, m.cosine)
		best = append(best, m.cosineBest)
		homes = append(homes, m.home)
		if !m.near {
			new = append(new, m.cosine)
		}
		if m.other != nil {
			others = append(others, m.cosine)
		}
		switch m.kind {
		case name:
			names = append(names, m.cosine)
		case number:
			numbers = append(numbers, m.cosine)
		}
	}
	f.spread("word", all)
	f.add("word_median_gap", at(all, 0.5)-at(all, 0))
	f.add("best_mean", average(best))
	f.add("best_least", at(best, 0))
	f.add("new_mean", average(new))
	f.add("new_least", at(new, 0))
	f.add("new_gap", at(all, 0.5)-at(new, 0))
	f.add("name_least", at(names, 0))
	f.add("number_least", at(numbers, 0))
	f.add("home_mean", average(homes))
	f.add("home_least", at(homes, 0))
	f.add("home_low", at(homes, 0.2))
	f.add("other_mean", average(others))
	f.add("other_share", ratio(len(others), len(all)))
	s.wholes(f)
}

// spread adds a list's mean, its least and what stands low in it.
func (f *features) spread(name string, list []float64) {
	f.add(name+"_mean", average(list))
	f.add(name+"_least", at(list, 0))
	f.add(name+"_low", at(list, 0.1))
	f.add(name+"_quarter", at(list, 0.25))
	below := 0
	for _, x := range list {
		if x < 0.8 {
			below++
		}
	}
	f.add(name+"_unlike", ratio(below, len(list)))
}

func average(list []float64) float64 {
	if len(list) == 0 {
		return 1
	}
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// at returns the value that a share of a list lies below; 1 of none.
func at(list []float64, share float64) float64 {
	if len(list) == 0 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[int(share*float64(len(sorted)-1))]
}

// wholes compares the claim's sentences with those near them.
func (s *comparison) wholes(f *features) {
	first, second, union, least, back := 0.0, 0.0, 0.0, 1.0, 0.0
	n := 0.0
	for i, c := range s.claim {
		if c.mean == nil || len(s.near[i]) == 0 {
			continue
		}
		n++
		var likes []float64
		sum := make([]float32, len(c.mean))
		for k, p := range s.near[i] {
			likes = append(likes, cosine(c.mean, p.mean))
			if k < nearest4 && len(p.mean) == len(sum) {
				for j, x := range p.mean {
					sum[j] += x
				}
			}
		}
		slices.SortFunc(likes, func(a, b float64) int { return cmp.Compare(b, a) })
		first += likes[0]
		least = min(least, likes[0])
		if len(likes) > 1 {
			second += likes[1]
		}
		unit(sum)
		union += cosine(c.mean, sum)
		back += returned(s.near[i][0], c)
	}
	n = max(n, 1)
	f.add("sentence", first/n)
	f.add("sentence_least", least)
	f.add("sentence_margin", (first-second)/n)
	f.add("sentences", union/n)
	f.add("back", back/n)
}

// returned is the mean over a sentence's content words of the likeness of the claim's
// likest word.
func returned(p, c *piece) float64 {
	var all []float64
	for i, u := range p.vectors {
		if p.words[i].kind == small {
			continue
		}
		most := 0.0
		for _, v := range c.vectors {
			most = max(most, cosine(u, v))
		}
		all = append(all, most)
	}
	return average(all)
}
