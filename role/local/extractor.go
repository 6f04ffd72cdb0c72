package local

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Extractor lists what the evidence names, by the form of its words: names and
// identifiers, dates, and numbers with what they count. The wordings of one name are one
// entity, under the first of them. Its facts are sentences of the evidence, verbatim:
// those that speak of the question; without one, the first of each piece that names
// something.
type Extractor struct{}

// The bounds of an extraction.
const (
	maxEntities   = 60
	maxFacts      = 8
	maxEntityName = 120 // bytes
)

// The kinds of entity that the form of words tells.
const (
	nameKind       = "name"
	identifierKind = "identifier"
	dateKind       = "date"
	numberKind     = "number"
)

// Extract implements role.Extractor. It returns an error only when ctx has ended.
func (Extractor) Extract(ctx context.Context, _ role.Caller, in role.Reading) (role.Extraction, error) {
	out := role.Extraction{Entities: []role.Entity{}, Facts: []role.Statement{}}
	at := map[string]int{} // in the entities, by key
	for _, ev := range in.Evidence {
		if err := ctx.Err(); err != nil {
			return role.Extraction{}, err
		}
		for _, n := range namedIn(ev.Hit) {
			i, ok := at[n.key]
			if !ok {
				if len(out.Entities) == maxEntities {
					continue
				}
				i = len(out.Entities)
				at[n.key] = i
				out.Entities = append(out.Entities, role.Entity{Name: n.text, Kind: n.kind})
			}
			if e := &out.Entities[i]; !slices.Contains(e.Evidence, ev.Number) {
				e.Evidence = append(e.Evidence, ev.Number)
			}
		}
	}
	for i := range out.Entities {
		slices.Sort(out.Entities[i].Evidence)
	}
	// What most pieces name comes first, in the order in which it came.
	slices.SortStableFunc(out.Entities, func(a, b role.Entity) int { return cmp.Compare(len(b.Evidence), len(a.Evidence)) })
	if in.Question == "" {
		out.Facts = append(out.Facts, leads(in.Evidence, maxFacts)...)
		return out, nil
	}
	for _, s := range saying(read(in.Question, nil), in.Evidence) {
		if len(out.Facts) < maxFacts {
			out.Facts = append(out.Facts, role.Statement{Text: s.text, Evidence: []int{s.number}})
		}
	}
	return out, nil
}

// A named is something that a passage names, as it stands there.
type named struct{ text, kind, key string }

var (
	wholeDate = regexp.MustCompile(`(?i)\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}(?:st|nd|rd|th)? (?:january|february|march|april|may|june|july|august|september|october|november|december)(?:,? \d{4})?|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d{4})\b`)
	counted   = regexp.MustCompile(`\b\d[\d.,]*(?: ?%|(?: |-)\pL{2,20}\b)?`)
)

// namedIn returns what a passage names, in its order: its title first.
func namedIn(h assay.Hit) []named {
	var out []named
	add := func(text, kind, key string) {
		text = strings.Trim(oneLine(text), " .,;:!?()[]\"'“”‘’`")
		if text == "" || len(text) > maxEntityName || slices.ContainsFunc(out, func(n named) bool { return n.key == key }) {
			return
		}
		out = append(out, named{text, kind, key})
	}
	var finder entity.Finder
	name := func(text string) {
		key := strings.ToLower(text)
		if keys := finder.Question(text, h.Language); len(keys) == 1 {
			key = keys[0]
		}
		add(text, kindOf(text), key)
	}
	if h.Title != "" && len(surface.Words(h.Title)) <= 8 {
		name(h.Title)
	}
	for _, sp := range sentence.Spans(h.Text) {
		text := h.Text[sp.Start:sp.End]
		dates := wholeDate.FindAllString(text, -1)
		for _, d := range dates {
			add(d, dateKind, "date "+strings.ToLower(d))
		}
		rest := wholeDate.ReplaceAllString(text, " ; ")
		if first := openingName(rest, &finder, h.Language); first != "" {
			name(first)
		}
		for _, n := range surface.Names(rest) {
			name(n)
		}
		for _, n := range counted.FindAllString(rest, -1) {
			if kindOfNumber(n) {
				add(n, numberKind, "number "+strings.ToLower(n))
			}
		}
	}
	return out
}

// kindOfNumber reports whether digits with the word after them are a number and what it
// counts, and not a piece of a name or a bare digit.
func kindOfNumber(text string) bool {
	_, word, ok := strings.Cut(strings.ReplaceAll(text, "-", " "), " ")
	if strings.HasSuffix(text, "%") {
		return true
	}
	return ok && !surface.Function(strings.ToLower(word)) && strings.ToLower(word) == word
}

// kindOf says what a name is, by its form.
func kindOf(text string) string {
	for i, r := range text {
		inside := i > 0 && unicode.IsUpper(r) && !strings.Contains(text, " ")
		if unicode.IsDigit(r) || r == '_' || r == '/' || inside {
			return identifierKind
		}
	}
	if before, after, ok := strings.Cut(text, "."); ok && before != "" && after != "" && !strings.Contains(text, " ") {
		return identifierKind
	}
	return nameKind
}

// openingName returns the capitalised words that a sentence opens with, where they name
// something: the capital of the first word alone says nothing.
func openingName(text string, finder *entity.Finder, language string) string {
	words := surface.Words(text)
	n := 0
	for n < len(words) && n < 5 && unicode.IsUpper([]rune(words[n])[0]) {
		n++
	}
	if n < 2 || surface.Function(strings.ToLower(words[0])) {
		return ""
	}
	at := strings.Index(text, words[0])
	end := at
	for _, w := range words[:n] {
		i := strings.Index(text[end:], w)
		if gap := text[end : end+i]; end > at && strings.Trim(gap, " ") != "" {
			break // a comma, a bracket
		}
		end += i + len(w)
	}
	run := text[at:end]
	if len(finder.Question(run, language)) != 1 {
		return ""
	}
	return run
}
