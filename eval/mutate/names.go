package mutate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

var (
	proper     = lazyregexp.New(`\b[A-Z][\p{L}'’]+(?:[ -](?:de |of the |of |dan )?[A-Z][\p{L}'’]+)*`)
	identifier = lazyregexp.New(`\b(?:[A-Za-z]+[.][A-Za-z]+(?:[.][A-Za-z]+)*|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}[\w-]*|[a-z]+_\w+|[a-z]+\d+\w*)\b`)
	openings   = lazyregexp.New(`(?:^|[.!?:;]["”’)]?\s+|["“(]\s*)$`)
)

// noName lists capitalized words that are not names that could be exchanged.
var noName = wordSet(slices.Concat(months, weekdays, strings.Fields("I A An The It In On At Of For If As Or And But No Not One Two Be To So Up By With From When While After Before Its His Her Their This That These Those They He She We You There Here Who What Where Which All Any Each Every Some Most Only Even Also Such INR OK PCR AD UTC MRI Dr EU")))

func wordSet(words []string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words {
		set[w] = true
	}
	return set
}

// A named is a name in a text; code marks an identifier.
type named struct {
	text       string
	start, end int
	code       bool
}

// names replaces each name of the claim with another one of the source, and identifiers with
// identifiers. If the source has no other, the replacement is a fixed person or place.
func (m *mutator) names() {
	others := namesOf(m.source)
	for _, n := range namesOf(m.claim) {
		if _, rest, more := strings.Cut(n.text, " "); more && openings.MatchString(m.claim[:n.start]) && !strings.Contains(m.source, n.text) {
			n.text, n.start = rest, n.end-len(rest) // "Ask Ines Calloway"
		}
		if m.inDate(n.start, n.end) || !strings.Contains(m.source, n.text) {
			continue
		}
		var fit []string
		for _, o := range others {
			if o.code == n.code && !overlaps(o.text, m.claim) && !overlaps(n.text, o.text) && !together(m.source, n.text, o.text) && !slices.Contains(fit, o.text) {
				fit = append(fit, o.text)
			}
		}
		if like := slices.DeleteFunc(slices.Clone(fit), func(o string) bool { return strings.Count(o, " ") != strings.Count(n.text, " ") }); len(like) > 0 {
			fit = like
		}
		if len(fit) == 0 && !n.code {
			fit = strings.Split("Marlow|Keswick|Lindqvist|Tarrant|Okonjo|Veracruz", "|")
		}
		if len(fit) > 0 {
			m.put(Name, n.start, n.end, fit[m.choice(n.text, len(fit))])
		}
	}
}

// namesOf returns the names in a text, by position. A word at the beginning of a sentence is a name
// only if it occurs elsewhere too or has the letters of one.
func namesOf(text string) []named {
	var out []named
	for _, at := range identifier.FindAllStringIndex(text, -1) {
		if w := text[at[0]:at[1]]; !noName[w] && !strings.HasPrefix(w, "e.g") && !strings.HasPrefix(w, "a.m") && !strings.HasPrefix(w, "p.m") {
			out = append(out, named{w, at[0], at[1], true})
		}
	}
	for _, at := range proper.FindAllStringIndex(text, -1) {
		start, end := at[0], at[1]
		if openings.MatchString(text[:start]) {
			word, rest, more := strings.Cut(text[start:end], " ")
			switch {
			case noName[word] && more:
				start += len(word) + 1
				if rest == "" || rest[0] < 'A' || rest[0] > 'Z' {
					continue
				}
			case !more && !elsewhere(text, start, end):
				continue
			}
		}
		name := strings.TrimRight(text[start:end], "'’")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "'s"), "’s")
		end = start + len(name)
		if noName[name] || len(name) < 3 || slices.ContainsFunc(out, func(o named) bool { return o.start < end && start < o.end }) {
			continue
		}
		out = append(out, named{name, start, end, false})
	}
	slices.SortFunc(out, func(a, b named) int { return a.start - b.start })
	return out
}

// elsewhere reports whether text[start:end] also occurs where no sentence begins.
func elsewhere(text string, start, end int) bool {
	name := text[start:end]
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		if i != start && !openings.MatchString(text[:i]) {
			return true
		}
		at = i + len(name)
	}
}

// overlaps reports whether two texts share a word, up to a plural "s".
func overlaps(a, b string) bool {
	words := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" .,;:-'’\"()", r) })
	}
	for _, w := range words(a) {
		for _, o := range words(b) {
			if strings.TrimSuffix(w, "s") == strings.TrimSuffix(o, "s") {
				return true
			}
		}
	}
	return false
}

// together reports whether two names occur in one list, so that a statement about one holds for the
// other too.
func together(text, a, b string) bool {
	a, b = regexp.QuoteMeta(a), regexp.QuoteMeta(b)
	between := `\W{1,3}(?:(?:and|or|\p{Lu}[\w.-]*|[a-z]+\d\w*)\W{1,3}){0,6}`
	return regexp.MustCompile(a + between + b + "|" + b + between + a).MatchString(text)
}
