// Package ambiguity distinguishes the possible meanings of a question by the passages found for it.
// These are the topics of the passages, and similar documents, of another version, product or
// collection, that give different answers.
package ambiguity

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
)

// Meaning is one possible meaning of a question.
type Meaning struct {
	Name string `json:"name"` // for people, from titles and distinguishing words
	Hits []int  `json:"hits"` // indexes of the hits about it, ascending

	label string // distinguishes it from meanings with the same name
}

// Best returns the most relevant hit of the meaning, the first of several.
func (s Meaning) Best(hits []assay.Hit) assay.Hit {
	best := hits[s.Hits[0]]
	for _, i := range s.Hits[1:] {
		if hits[i].Scores.Relevance > best.Scores.Relevance {
			best = hits[i]
		}
	}
	return best
}

// Topics groups hits by document, in the order of the best hit of each. The names are unique even
// if titles are not.
func Topics(hits []assay.Hit) []Meaning {
	var topics []Meaning
	at := map[string]int{} // document → index into topics
	for i, h := range hits {
		k, ok := at[h.Chunk.Document]
		if !ok {
			k = len(topics)
			at[h.Chunk.Document] = k
			topics = append(topics, Meaning{})
		}
		topics[k].Hits = append(topics[k].Hits, i)
	}
	name(topics, hits)
	return topics
}

// name sets the names of the meanings: the title of the first hit, and if another sense has the
// same title, also the collection or the URI.
func name(senses []Meaning, hits []assay.Hit) {
	of := func(s Meaning) assay.Hit { return hits[s.Hits[0]] }
	for i, s := range senses {
		h := of(s)
		others := func(same func(assay.Hit) bool) bool {
			for j, o := range senses {
				if j != i && same(of(o)) {
					return true
				}
			}
			return false
		}
		label := title(h)
		sameTitle := func(o assay.Hit) bool { return strings.EqualFold(title(o), title(h)) }
		if others(sameTitle) {
			label = Names(h)[1]
			if others(func(o assay.Hit) bool { return sameTitle(o) && o.Collection == h.Collection }) {
				label = Names(h)[2]
			}
		}
		senses[i].Name = label
	}
}

// Names returns the possible names for the document of a hit: its title, alone, with its
// collection, and with its URI.
func Names(h assay.Hit) []string {
	t := title(h)
	return []string{t, t + " (" + visible.Line(h.Collection) + ")", t + " (" + visible.Line(h.URI) + ")"}
}

// title returns the title of a document, or the last part of its URI.
func title(h assay.Hit) string {
	if t := visible.Line(h.Title); t != "" {
		return t
	}
	base := path.Base(h.URI)
	return visible.Line(strings.TrimSuffix(base, path.Ext(base)))
}

const (
	near      = 0.75 // share of the best relevance from which on a hit answers as well as the best
	likeness  = 0.5  // share of words in common from which on two passages are about the same topic
	leastWell = 0.5  // relevance below which a hit answers nothing
)

// Alike returns the meanings of a question that differ by document. The documents have the same
// name but belong to another collection, folder or version, and have a passage that answers the
// question as well as the best one but differently. It is cautious and returns none if the question
// says which one it means, or asks for several. A passage that lacks content words of the question
// is not an answer. Hits must be sorted best first; for versions the newest meaning comes first.
func Alike(question string, hits []assay.Hit) []Meaning {
	if len(hits) == 0 || asksForSeveral(question) {
		return nil
	}
	best := slices.MaxFunc(hits, func(a, b assay.Hit) int { return cmp.Compare(a.Scores.Relevance, b.Scores.Relevance) })
	floor := max(leastWell, near*best.Scores.Relevance)
	asked := tokens(question)
	var senses []Meaning
	var labels []string
	for _, t := range Topics(hits) {
		h := hits[t.Hits[0]]
		if h.Scores.Relevance < floor || h.Origin != assay.FromDocuments || !holds(h, question) {
			continue
		}
		if len(senses) == 0 {
			senses, labels = append(senses, t), append(labels, "")
			continue
		}
		first := hits[senses[0].Hits[0]]
		one, other, ok := differingWords(first, h)
		if !ok || !sameTopic(first, h) || slices.Contains(labels, other) {
			continue
		}
		if labels[0] == "" {
			labels[0] = one
		}
		senses, labels = append(senses, t), append(labels, other)
	}
	if len(senses) < 2 {
		return nil
	}
	for _, l := range labels { // the question says which one it means
		for _, t := range tokens(l) {
			if slices.Contains(asked, t) {
				return nil
			}
		}
	}
	for i := range senses {
		senses[i].label = labels[i]
	}
	name(senses, hits)
	if Versions(senses) {
		slices.SortStableFunc(senses, func(a, b Meaning) int { return newer(a.label, b.label) })
	}
	return senses
}

// Subjects returns the meanings of a question that does not say which of several documents it is
// about, as in "When does the contract end?". The documents have different titles, and each has a
// passage that is as relevant as the best one. It returns none if the question names one of them by
// its title, names something that no document holds, or asks for several. A document that lacks a word
// of the question that another one holds is not meant. Whether the answers differ is left to the
// caller. Hits must be sorted best first.
func Subjects(question string, hits []assay.Hit) []Meaning {
	if len(hits) == 0 || asksForSeveral(question) {
		return nil
	}
	best := slices.MaxFunc(hits, func(a, b assay.Hit) int { return cmp.Compare(a.Scores.Relevance, b.Scores.Relevance) })
	floor := max(leastWell, near*best.Scores.Relevance)
	var senses []Meaning
	for _, t := range Topics(hits) {
		if h := t.Best(hits); h.Scores.Relevance >= floor && h.Origin == assay.FromDocuments {
			senses = append(senses, t)
		}
	}
	terms := termsOf(hits)
	for _, w := range lexical.Words(strings.Join(lexical.Names(question), " ")) {
		if titled := withWord(senses, terms, w, true); len(titled) > 0 && len(titled) < len(senses) || len(withWord(senses, terms, w, false)) == 0 {
			return nil
		}
	}
	asking := lexical.Asking(question)
	for _, w := range lexical.Words(strings.ToLower(question)) {
		if lexical.Function(w) || lexical.Function(strings.ReplaceAll(w, "'", "")) || asking[w] {
			continue
		}
		if with := withWord(senses, terms, w, false); len(with) > 0 {
			senses = with
		}
	}
	if len(senses) < 2 {
		return nil
	}
	name(senses, hits)
	return senses
}

// hitTerms are the terms of a hit.
type hitTerms struct {
	language string
	title    map[string]bool
	all      map[string]bool // of the title, the headings and the text
}

// termsOf returns the terms of each hit.
func termsOf(hits []assay.Hit) []hitTerms {
	of := func(language string, texts ...string) map[string]bool {
		terms := map[string]bool{}
		for _, text := range texts {
			for _, t := range analysis.Tokens(text, language) {
				terms[t.Term] = true
			}
		}
		return terms
	}
	terms := make([]hitTerms, len(hits))
	for i, h := range hits {
		texts := append([]string{title(h), h.Text}, h.Chunk.Headings...)
		terms[i] = hitTerms{h.Language, of(h.Language, title(h)), of(h.Language, texts...)}
	}
	return terms
}

// withWord returns the senses that have a word in their titles or, unless inTitle is set, in their
// headings or hits.
func withWord(senses []Meaning, terms []hitTerms, word string, inTitle bool) []Meaning {
	has := func(s Meaning) bool {
		return slices.ContainsFunc(s.Hits, func(i int) bool {
			if inTitle {
				return hasAll(terms[i].title, word, terms[i].language)
			}
			return hasAll(terms[i].all, word, terms[i].language)
		})
	}
	var with []Meaning
	for _, s := range senses {
		if has(s) {
			with = append(with, s)
		}
	}
	return with
}

// hasAll reports whether terms include all of a word.
func hasAll(terms map[string]bool, word, language string) bool {
	return !slices.ContainsFunc(analysis.Tokens(word, language), func(t analysis.Token) bool { return !t.Part && !terms[t.Term] })
}

// holds reports whether a passage, with its headings and title, has all content words of a
// question.
func holds(h assay.Hit, question string) bool {
	has := map[string]bool{}
	for _, text := range append([]string{h.Title, h.Text}, h.Chunk.Headings...) {
		for _, t := range analysis.Tokens(text, h.Language) {
			has[t.Term] = true
		}
	}
	asking := lexical.Asking(question)
	for _, w := range lexical.Words(strings.ToLower(question)) {
		if bare := strings.ReplaceAll(w, "'", ""); lexical.Function(w) || lexical.Function(bare) || asking[w] {
			continue
		}
		for _, t := range analysis.Tokens(w, h.Language) {
			if !t.Part && !has[t.Term] {
				return false
			}
		}
	}
	return true
}

// Versions reports whether meanings differ by version number or year.
func Versions(senses []Meaning) bool {
	return len(senses) > 1 && !slices.ContainsFunc(senses, func(s Meaning) bool { return !version.MatchString(s.label) })
}

var version = lazyregexp.New(`^v?\d+(?:\.\d+)*$`)

// newer compares versions, newest first.
func newer(a, b string) int {
	x, y := strings.Split(strings.TrimPrefix(a, "v"), "."), strings.Split(strings.TrimPrefix(b, "v"), ".")
	for i := range min(len(x), len(y)) {
		m, n := strings.TrimLeft(x[i], "0"), strings.TrimLeft(y[i], "0")
		if d := cmp.Or(len(n)-len(m), strings.Compare(n, m)); d != 0 {
			return d
		}
	}
	return len(y) - len(x)
}

// asksForSeveral reports whether a question explicitly asks for more than one thing.
func asksForSeveral(question string) bool {
	for _, w := range lexical.Words(strings.ToLower(question)) {
		if slices.Contains([]string{"all", "each", "every", "both", "any", "which", "versions", "compare", "compared", "versus", "vs", "across", "list", "between"}, w) {
			return true
		}
	}
	_, _, contrasts := lexical.Contrasts(question)
	return contrasts
}

// differingWords returns the words by which two documents with the same name differ, one for each.
// It reports false if the names differ.
func differingWords(a, b assay.Hit) (one, other string, ok bool) {
	x, y := tokens(title(a)), tokens(title(b))
	switch {
	case slices.Equal(x, y) && a.Collection != b.Collection:
		return a.Collection, b.Collection, true
	case slices.Equal(x, y):
		return differing(strings.Split(a.URI, "/"), strings.Split(b.URI, "/"))
	case len(x) > 1:
		return differing(x, y)
	}
	return "", "", false
}

// differing returns the only element in which two lists of equal length differ.
func differing(x, y []string) (one, other string, ok bool) {
	if len(x) != len(y) || len(x) < 2 {
		return "", "", false
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		if ok {
			return "", "", false
		}
		one, other, ok = x[i], y[i], true
	}
	return one, other, ok
}

// sameTopic reports whether two passages are about the same topic but differ: they have the same
// heading, or share most of their words.
func sameTopic(a, b assay.Hit) bool {
	x, y := contentStems(a), contentStems(b)
	shared := 0
	for w := range x {
		if y[w] {
			shared++
		}
	}
	all := len(x) + len(y) - shared
	if all == 0 || shared == all {
		return false
	}
	return heading(a) != "" && strings.EqualFold(heading(a), heading(b)) || float64(shared) >= likeness*float64(all)
}

// heading returns the heading of a passage, or "" if it has only the title.
func heading(h assay.Hit) string {
	if n := len(h.Chunk.Headings); n > 0 && !strings.EqualFold(h.Chunk.Headings[n-1], h.Title) {
		return h.Chunk.Headings[n-1]
	}
	return ""
}

// contentStems returns the stems of the content words of a passage, and its numbers.
func contentStems(h assay.Hit) map[string]bool {
	words := map[string]bool{}
	for _, t := range analysis.Tokens(h.Text, h.Language) {
		if !t.Part {
			words[t.Term] = true
		}
	}
	return words
}

// tokens returns the lower-case words of a text, with versions such as "1.0" as one word.
func tokens(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.'
	})
}
