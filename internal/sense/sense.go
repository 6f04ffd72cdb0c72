// Package sense tells apart the things that a question can mean, by the passages that
// were found for it: the topics that they are of, and those of like documents, of
// another version, product or collection, that say something else about the same.
package sense

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/internal/visible"
)

// A Sense is one thing that a question can mean.
type Sense struct {
	Name string `json:"name"` // for people: made of titles, and of what tells like ones apart
	Hits []int  `json:"hits"` // that speak of it, by index, ascending

	label string // what tells it apart from those that are called alike
}

// Topics groups hits by the document that they are of, in the order of the best hit of
// each. Names tell apart documents whose titles do not.
func Topics(hits []assay.Hit) []Sense {
	var topics []Sense
	at := map[string]int{} // document → index into topics
	for i, h := range hits {
		k, ok := at[h.Chunk.Document]
		if !ok {
			k = len(topics)
			at[h.Chunk.Document] = k
			topics = append(topics, Sense{})
		}
		topics[k].Hits = append(topics[k].Hits, i)
	}
	name(topics, hits)
	return topics
}

// name gives the senses their names: the title of the first hit, and with it the
// collection or the address where another one has the same title.
func name(senses []Sense, hits []assay.Hit) {
	of := func(s Sense) assay.Hit { return hits[s.Hits[0]] }
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

// Names are what the document of a hit can be called: by its title, with its collection,
// and with its address.
func Names(h assay.Hit) []string {
	t := title(h)
	return []string{t, t + " (" + visible.Line(h.Collection) + ")", t + " (" + visible.Line(h.URI) + ")"}
}

// title is what a document is called: its title, else the last part of its address.
func title(h assay.Hit) string {
	if t := visible.Line(h.Title); t != "" {
		return t
	}
	base := path.Base(h.URI)
	return visible.Line(strings.TrimSuffix(base, path.Ext(base)))
}

const (
	near      = 0.75 // share of the best relevance that a hit has to have to answer as well as the best
	likeness  = 0.5  // share of two passages' words that are the same, from which they say the same of two things
	leastWell = 0.5  // relevance under which a hit answers nothing
)

// Alike returns the things that a question can mean because documents that are called
// alike, in another collection, folder or version, have a passage that answers it as
// well as the best one does and says something else. There are none where the question
// says which it means, or asks for several: it is cautious. Of what a question has words
// for that a passage has not, that is no answer. Hits are best first; of versions the
// newest comes first.
func Alike(question string, hits []assay.Hit) []Sense {
	if len(hits) == 0 || several(question) {
		return nil
	}
	best := slices.MaxFunc(hits, func(a, b assay.Hit) int { return cmp.Compare(a.Scores.Relevance, b.Scores.Relevance) })
	floor := max(leastWell, near*best.Scores.Relevance)
	asked := tokens(question)
	var senses []Sense
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
		one, other, ok := apart(first, h)
		if !ok || !sameMatter(first, h) || slices.Contains(labels, other) {
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
	for _, l := range labels { // the question says which it means
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
		slices.SortStableFunc(senses, func(a, b Sense) int { return newer(a.label, b.label) })
	}
	return senses
}

// holds reports whether a passage, with its headings and title, has all of a question's
// words of content.
func holds(h assay.Hit, question string) bool {
	has := map[string]bool{}
	for _, text := range append([]string{h.Title, h.Text}, h.Chunk.Headings...) {
		for _, t := range analysis.Tokens(text, h.Language) {
			has[t.Term] = true
		}
	}
	asking := surface.Asking(question)
	for _, w := range surface.Words(strings.ToLower(question)) {
		if bare := strings.ReplaceAll(w, "'", ""); surface.Function(w) || surface.Function(bare) || asking[w] {
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

// Versions reports whether what tells senses apart are the numbers of versions, or years.
func Versions(senses []Sense) bool {
	return len(senses) > 1 && !slices.ContainsFunc(senses, func(s Sense) bool { return !version.MatchString(s.label) })
}

var version = lazyregexp.New(`^v?\d+(?:\.\d+)*$`)

// newer orders versions, the newest first.
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

// several reports whether a question asks for more than one thing by its words.
func several(question string) bool {
	for _, w := range surface.Words(strings.ToLower(question)) {
		if slices.Contains([]string{"all", "each", "every", "both", "any", "which", "versions", "compare", "compared", "versus", "vs", "across", "list", "between"}, w) {
			return true
		}
	}
	_, _, contrasts := surface.Contrasts(question)
	return contrasts
}

// apart returns what tells two documents that are called alike apart: the words of the
// one and of the other; ok is false where they are not called alike.
func apart(a, b assay.Hit) (one, other string, ok bool) {
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

// differing returns the only part in which two lists of equal length differ.
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

// sameMatter reports whether two passages speak of the same and do not say the same: they
// stand under the same heading, or share most of their words.
func sameMatter(a, b assay.Hit) bool {
	x, y := held(a), held(b)
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

// heading is the heading that a passage stands under; empty: none but the title.
func heading(h assay.Hit) string {
	if n := len(h.Chunk.Headings); n > 0 && !strings.EqualFold(h.Chunk.Headings[n-1], h.Title) {
		return h.Chunk.Headings[n-1]
	}
	return ""
}

// held are the words of content of a passage: their stems, and numbers.
func held(h assay.Hit) map[string]bool {
	words := map[string]bool{}
	for _, t := range analysis.Tokens(h.Text, h.Language) {
		if !t.Part {
			words[t.Term] = true
		}
	}
	return words
}

// tokens are the lower-case words of a text, versions whole: "1.0".
func tokens(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.'
	})
}
