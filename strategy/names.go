package strategy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// A kind is what a description describes, as far as its nouns tell.
type kind int

const (
	anything kind = iota
	ofPlace
	ofPerson
	ofBody // of people: a company, a team, a school
)

// kinds are nouns that say what kind of thing is described.
var kinds = func() map[string]kind {
	kinds := map[string]kind{}
	for k, nouns := range map[kind]string{
		ofPlace: `place location birthplace city town village hometown capital county country state province region district territory area continent
		island colony municipality nation land parish site office headquarters river lake mountain sea`,
		ofPerson: `person man woman individual actor actress author writer singer artist musician performer director producer composer founder creator
		inventor designer editor husband wife spouse father mother son daughter child brother sister sibling leader president king queen emperor
		mayor governor politician player athlete coach teacher student successor predecessor star host owner character explorer scientist painter
		poet novelist lyricist architect`,
		ofBody: `company organization organisation team club band group school university college institution party label publisher station network
		agency association church employer department`,
	} {
		for noun := range strings.FieldsSeq(nouns) {
			kinds[noun] = k
		}
	}
	return kinds
}()

// kindOf returns what kind of thing a description describes, and the noun that says so:
// the first one, as in "the city where X was born" and "X's main director". What begins
// as "the floor in which" is described by that noun, whatever others follow.
func kindOf(description string) (kind, string) {
	words := surface.Words(description)
	for i, w := range words {
		lower := strings.ToLower(w)
		if k, ok := kinds[lower]; ok {
			return k, lower
		}
		if i > 1 && strings.EqualFold(words[0], "the") && surface.Function(lower) {
			return anything, strings.ToLower(words[i-1])
		}
	}
	return anything, ""
}

// namedIn is in how many of the best hits of its own search a name is looked for.
const namedIn = 2

// names returns the names in the best hits of a finding, so many of them, that may be what
// its question describes, the likeliest first, at most maxFills.
func (f *finding) names(read int) []candidate {
	const second = 0.7 // of a name in a hit that is not the best one
	b := newNaming(f.question, f.terms)
	best := map[string]candidate{}
	for i, h := range f.ranked()[:min(read, len(f.hits))] {
		for key, c := range b.in(h) {
			if i > 0 {
				c.score *= second
			}
			if old, ok := best[key]; !ok || c.score > old.score {
				c.chunk = h.Chunk.ID
				best[key] = c
			}
		}
	}
	var list []candidate
	for _, c := range best {
		if c.score > 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	return list[:min(maxFills, len(list))]
}

// ranked returns the hits in the order in which searches ranked them.
func (f *finding) ranked() []assay.Hit {
	hits := slices.Clone(f.hits)
	slices.SortStableFunc(hits, func(a, b assay.Hit) int {
		return cmp.Compare(f.places[a.Chunk.ID], f.places[b.Chunk.ID])
	})
	return hits
}

// A naming looks for the name of what a question describes.
type naming struct {
	terms  []assay.Term
	weight float64           // of all terms
	asked  map[string]bool   // stems of the question
	own    []map[string]bool // stems of each name in the question
	others []assay.Term      // terms that are neither of a name nor the noun
	kind   kind
	noun   string
	finder entity.Finder
}

func newNaming(question string, terms []assay.Term) *naming {
	n := &naming{terms: terms, asked: map[string]bool{}}
	n.kind, n.noun = kindOf(question)
	for _, t := range analysis.Tokens(question, "") {
		n.asked[t.Term] = true
	}
	for _, name := range n.finder.Names(question, "") {
		own := map[string]bool{}
		for _, t := range analysis.Tokens(question[name.Start:name.End], "") {
			if !t.Part && !surface.Function(strings.ToLower(question[name.Start:name.End][t.Start:t.End])) {
				own[t.Term] = true
			}
		}
		if len(own) > 0 {
			n.own = append(n.own, own)
		}
	}
	for _, t := range terms {
		n.weight += t.Weight
		if lower := strings.ToLower(t.Text); lower != n.noun && !surface.Function(lower) {
			n.others = append(n.others, t)
		}
	}
	return n
}

// spokenOf reports whether a text speaks of what the question describes it by: it has
// words of each name in it, and the hit has all; where the question has no names, it has
// half of the weight of its words.
func (n *naming) spokenOf(text, hit map[string]bool) bool {
	for _, own := range n.own {
		some := false
		for stem := range own {
			if !hit[stem] {
				return false
			}
			some = some || text[stem]
		}
		if !some {
			return false
		}
	}
	if len(n.own) > 0 {
		return true
	}
	held, all := 0.0, 0.0
	for _, t := range n.others {
		all += t.Weight
		if text[t.Stem] || slices.ContainsFunc(t.Forms, func(form string) bool { return text[form] }) {
			held += t.Weight
		}
	}
	return held > 0 && held >= all/2
}

// The weights of what speaks for a name, set by hand on the descriptions in
// musique-train100.
const (
	nearness   = 0.5  // that the question's terms stand near it
	ofTitle    = 0.6  // that the passage is about it
	hasNoun    = 0.5  // that it says what it is: "McDowell County"
	placed     = 0.3  // that it stands as names of its kind do, or as they do not
	hinted     = 0.15 // that it may
	wordy      = 0.2  // that a person has two names or more; that a place follows a place
	describing = 0.2  // that it only says more of a noun: "American band"
	echoing    = 0.4  // that it has words of the question: "Ibsen Year", asked of Ibsen
)

// in returns the names in a hit, by their keys, that stand where it speaks of what the
// question describes: in a sentence that does together with the one before it, or with
// the headings it is under.
func (n *naming) in(h assay.Hit) map[string]candidate {
	found := map[string]candidate{}
	about := stemsOf(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title)...)
	all := stemsOf(h.Language, h.Text)
	maps.Copy(all, about)
	var before map[string]bool
	for _, sp := range sentence.Spans(h.Text) {
		text := h.Text[sp.Start:sp.End]
		here := stemsOf(h.Language, text)
		window := maps.Clone(about)
		maps.Copy(window, here)
		maps.Copy(window, before)
		before = here
		if !n.spokenOf(window, all) {
			continue
		}
		held, near := n.held(text, h.Language)
		for _, name := range n.finder.Names(text, h.Language) {
			end := n.withNoun(text, name.End)
			n.add(found, text[name.Start:end], name.Key, held+nearness*near(name)+n.fits(text, name))
		}
	}
	if n.spokenOf(all, all) {
		for _, name := range n.finder.Names(h.Title, h.Language) {
			n.add(found, h.Title[name.Start:name.End], name.Key, ofTitle)
		}
	}
	return found
}

// withNoun returns where a name ends that ends at byte end of a text: after the noun that
// says what it is, as in "Hamburg office".
func (n *naming) withNoun(text string, end int) int {
	after, ok := strings.CutPrefix(text[end:], " "+n.noun)
	if n.noun == "" || !ok || after != "" && !strings.ContainsRune(" ,.;:)?!", rune(after[0])) {
		return end
	}
	return end + 1 + len(n.noun)
}

// add notes a name, unless the question has it.
func (n *naming) add(found map[string]candidate, name, key string, score float64) {
	known, echoes := true, false
	for _, t := range analysis.Tokens(name, "") {
		switch {
		case t.Part:
		case !n.asked[t.Term]:
			known = false
		case !strings.EqualFold(name[t.Start:t.End], n.noun):
			echoes = true
		}
	}
	if known {
		return
	}
	if echoes {
		score -= echoing
	}
	if old, ok := found[key]; !ok || score > old.score {
		found[key] = candidate{name: name, score: score}
	}
}

// held returns the share of the terms' weight that a sentence has, and how near to a name
// in it the weightiest of them are, in [0, 1].
func (n *naming) held(text, language string) (share float64, near func(entity.Name) float64) {
	const reach = 30 // bytes at which nearness has halved
	type place struct {
		at     int
		weight float64
	}
	var places []place
	sum := 0.0
	tokens := analysis.Tokens(text, language)
	for _, t := range n.terms {
		counted := false
		for _, k := range tokens {
			if k.Term != t.Stem && !slices.Contains(t.Forms, k.Term) {
				continue
			}
			places = append(places, place{k.Start, t.Weight})
			if !counted {
				sum, counted = sum+t.Weight, true
			}
		}
	}
	if n.weight > 0 {
		share = sum / n.weight
	}
	return share, func(name entity.Name) float64 {
		best := 0.0
		for _, p := range places {
			apart := max(p.at-name.End, name.Start-p.at, 0)
			best = max(best, p.weight*reach/float64(reach+apart))
		}
		return best
	}
}

// fits says how well the words about a name in a text fit the kind that is described.
func (n *naming) fits(text string, name entity.Name) float64 {
	score := 0.0
	adjective := describes(text[name.End:])
	if adjective {
		score -= describing
	}
	words := strings.Fields(name.Key)
	if n.noun != "" && slices.Contains(words, n.noun) {
		return score + hasNoun
	}
	if n.withNoun(text, name.End) > name.End {
		return hasNoun
	}
	switch last := before(text[:name.Start]); n.kind {
	case ofPlace:
		switch last {
		case "in", "at", "near", "from", "to":
			score += placed
		case "of":
			score += hinted
		case "by", "with":
			score -= placed
		}
		if strings.HasSuffix(last, ",") && len(words) <= 2 {
			score += wordy
		}
	case ofPerson:
		switch last {
		case "by", "with":
			score += placed
		case "in", "at", "near":
			score -= placed
		}
		if len(words) >= 2 && len(words) <= 4 && !adjective {
			score += wordy
		}
	case ofBody:
		switch last {
		case "by", "for", "with", "of", "at":
			score += hinted
		}
	}
	return score
}

// before returns the lower-case word at the end of a text, with the marks after it; an
// article is passed over.
func before(text string) string {
	const longest = 40 // bytes that are looked at
	words := strings.Fields(strings.ToLower(text[max(0, len(text)-longest):]))
	if len(words) > 1 && words[len(words)-1] == "the" {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// describes reports whether what follows a name is a noun that the name says more of.
func describes(after string) bool {
	next, ok := strings.CutPrefix(after, " ")
	if !ok || next == "" || next[0] < 'a' || next[0] > 'z' {
		return false
	}
	word, _, _ := strings.Cut(next, " ")
	return !surface.Function(strings.Trim(word, ",.;:)"))
}

// speaksOfAll reports whether a hit has all words of the names.
func speaksOfAll(h assay.Hit, names []string) bool {
	held := stemsOf(h.Language, append(slices.Clone(h.Chunk.Headings), h.Title, h.Text)...)
	return !slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(analysis.Tokens(name, ""), func(t analysis.Token) bool { return !t.Part && !held[t.Term] })
	})
}
