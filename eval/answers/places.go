package answers

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
)

// A Library locates gold in the stored documents.
type Library struct {
	answerer Answerer
	byID     map[string]assay.Document
	byBase   map[string][]string // IDs by the last part of the URI
}

// OpenLibrary lists the documents without their texts.
func OpenLibrary(ctx context.Context, a Answerer) (*Library, error) {
	l := &Library{answerer: a, byID: map[string]assay.Document{}, byBase: map[string][]string{}}
	for d, err := range a.Documents(ctx) {
		if err != nil {
			return nil, err
		}
		d.Text, d.Anchors = "", nil
		l.byID[d.ID] = d
		base := path.Base(d.URI)
		l.byBase[base] = append(l.byBase[base], d.ID)
	}
	return l, nil
}

// A goldPlace is a place of gold in stored documents. Any of its spots satisfies it.
type goldPlace struct {
	grade   int
	spots   []spot
	mistake string // error of the set: a quote that no document of this name contains
}

// A spot is a document or a part of one.
type spot struct {
	document   string // ID; empty: any
	section    string // heading of the section; empty: any
	start, end int    // end 0: the whole document
}

// places locates the gold of a case. Unless all gold is required, the places in one document become
// one place with several spots, because one of them is enough.
func (l *Library) places(ctx context.Context, c testset.Case) ([]goldPlace, error) {
	var places []goldPlace
	at := map[string]int{}
	for _, g := range c.Gold {
		spots, mistake, err := l.spots(ctx, g)
		if err != nil {
			return nil, err
		}
		i, known := at[g.Document]
		if !known || c.AllGold {
			i = len(places)
			places = append(places, goldPlace{})
			at[g.Document] = i
		}
		places[i].grade = max(places[i].grade, g.Grade, 1)
		places[i].spots = append(places[i].spots, spots...)
		places[i].mistake = cmp.Or(places[i].mistake, mistake)
	}
	return places, nil
}

// spots locates one gold. It returns none if no stored document contains it. The mistake is set if
// a document of this name exists but does not contain the quote.
func (l *Library) spots(ctx context.Context, g testset.Gold) (spots []spot, mistake string, err error) {
	if g.Document == "" {
		return []spot{{section: g.Section}}, "", nil
	}
	named := l.named(g.Document)
	for _, id := range named {
		s := spot{document: id, section: g.Section, start: g.Start, end: g.End}
		if g.Quote != "" {
			d, err := l.answerer.Document(ctx, id)
			if err != nil {
				return nil, "", err
			}
			var found bool
			if s.start, s.end, found = findQuote(d.Text, g); !found {
				continue
			}
		}
		spots = append(spots, s)
	}
	if len(spots) == 0 && len(named) > 0 {
		mistake = fmt.Sprintf("the gold quotes %q, which is not in %s", cut(g.Quote), g.Document)
	}
	return spots, mistake, nil
}

// mistakes returns the errors of the set for places that have no spot.
func mistakes(places []goldPlace) string {
	var all []string
	for _, p := range places {
		if len(p.spots) == 0 && p.mistake != "" {
			all = append(all, p.mistake)
		}
	}
	return strings.Join(all, "; ")
}

// named returns the IDs of the documents that match a name: by ID, by URI, or by a suffix of the
// URI from a "/" on.
func (l *Library) named(name string) []string {
	if _, ok := l.byID[name]; ok {
		return []string{name}
	}
	var ids []string
	end := "/" + strings.TrimPrefix(name, "/")
	for _, id := range l.byBase[path.Base(name)] {
		if uri := l.byID[id].URI; uri == name || strings.HasSuffix(uri, end) {
			ids = append(ids, id)
		}
	}
	return ids
}

// findQuote returns the span of a gold's quote: the labelled span if the text still matches, else
// the nearest occurrence, else one that differs in white space.
func findQuote(text string, g testset.Gold) (start, end int, found bool) {
	if g.End > 0 && g.End <= len(text) && text[g.Start:g.End] == g.Quote {
		return g.Start, g.End, true
	}
	if strings.TrimSpace(g.Quote) == "" {
		return 0, 0, false
	}
	best := -1
	for from := 0; ; {
		i := strings.Index(text[from:], g.Quote)
		if i < 0 {
			break
		}
		if i += from; best < 0 || abs(i-g.Start) < abs(best-g.Start) {
			best = i
		}
		from = i + 1
	}
	if best >= 0 {
		return best, best + len(g.Quote), true
	}
	return findLoosely(text, g.Quote)
}

// findLoosely finds the first occurrence of the quote's words with any white space between them.
// The quote must have at least one word.
func findLoosely(text, quote string) (start, end int, found bool) {
	words := strings.Fields(quote)
	for from := 0; ; from++ {
		i := strings.Index(text[from:], words[0])
		if i < 0 {
			return 0, 0, false
		}
		from += i
		if end, ok := wordsAt(text, from, words); ok {
			return from, end, true
		}
	}
}

// wordsAt reports whether the words begin at a position, and returns their end.
func wordsAt(text string, at int, words []string) (end int, ok bool) {
	for i, w := range words {
		if i > 0 {
			trimmed := strings.TrimLeft(text[at:], " \t\r\n\u00a0")
			if len(trimmed) == len(text)-at {
				return 0, false
			}
			at = len(text) - len(trimmed)
		}
		if !strings.HasPrefix(text[at:], w) {
			return 0, false
		}
		at += len(w)
	}
	return at, true
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// holds reports whether a span of a document under these headings overlaps the place.
func (p goldPlace) holds(document string, start, end int, headings []string) bool {
	return slices.ContainsFunc(p.spots, func(s spot) bool {
		if s.document != "" && s.document != document || s.end > 0 && (end <= s.start || s.end <= start) {
			return false
		}
		return s.section == "" || under(headings, s.section)
	})
}

// under reports whether a section is one of the headings. Letter case and backquotes are ignored.
func under(headings []string, section string) bool {
	return slices.ContainsFunc(headings, func(h string) bool {
		return strings.EqualFold(strings.ReplaceAll(h, "`", ""), section)
	})
}

// holdsHit is holds for a hit.
func (p goldPlace) holdsHit(h assay.Hit) bool {
	return p.holds(h.Chunk.Document, h.Chunk.Start, h.Chunk.End, append([]string{h.Title}, h.Chunk.Headings...))
}

// holdsCitation is holds for a citation.
func (p goldPlace) holdsCitation(c assay.Citation) bool {
	return p.holds(c.Document, c.Start, c.End, append([]string{c.Title}, c.Heading...))
}

// whole reports whether all spots are whole documents.
func (p goldPlace) whole() bool {
	return !slices.ContainsFunc(p.spots, func(s spot) bool { return s.end > 0 || s.section != "" })
}
