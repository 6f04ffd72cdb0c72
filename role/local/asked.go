package local

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/surface"
)

// A want is a kind of thing that a question asks for by its first words.
type want string

const (
	anything want = ""
	somebody want = "a name"
	someTime want = "a date or a time"
	someDate want = "a date"
	aNumber  want = "a number"
)

var (
	asksWho    = regexp.MustCompile(`(?i)^(?:(?:by|to|for|with|of|from) )?(?:who|whom|whose)\b`)
	asksWhen   = regexp.MustCompile(`(?i)^(?:since |until )?when\b`)
	asksNumber = regexp.MustCompile(`(?i)\bhow (?:many|much|long|old|far|large|big|tall|deep|often)\b|^(?:in )?(?:what|which) (?:percentage|number|share|amount)\b`)

	// person matches words that stand for who does something: an office, a group.
	person = regexp.MustCompile(`(?i)\b(?:\pL{2,}(?:er|or|ist|ian|ant|man|men|woman|women)s?|team|council|department|committee|office|board|lead|head|staff|people|everyone|everybody|anyone|nobody|no one|user|admin|group|company|you)\b`)
	amount = regexp.MustCompile(`(?i)\b(?:unlimited|any number|no limit|none|once|twice|one|a single|several|daily|weekly|monthly|yearly|every)\b`)
)

// wantOf returns what a question asks for.
func wantOf(question string) want {
	question = strings.TrimSpace(question)
	switch {
	case asksDate.MatchString(question):
		return someDate
	case asksWhen.MatchString(question):
		return someTime
	case asksNumber.MatchString(question):
		return aNumber
	case asksWho.MatchString(question):
		return somebody
	}
	return anything
}

// in reports whether a text has such a thing that the question does not have itself.
func (w want) in(text string, q question) bool {
	switch w {
	case someDate:
		return date.MatchString(text)
	case someTime:
		return date.MatchString(text) || conditional.MatchString(text) || len(surface.Numbers(text)) > 0
	case aNumber:
		asked := surface.Numbers(q.text)
		other := func(n string) bool { return !slices.Contains(asked, n) }
		return slices.ContainsFunc(surface.Numbers(text), other) || amount.MatchString(text)
	case somebody:
		var finder entity.Finder
		asked := contentOf(q.text)
		for _, name := range append(finder.Question(text, ""), person.FindAllString(text, -1)...) {
			for stem := range contentOf(name) {
				if !asked[stem] {
					return true
				}
			}
		}
		return false
	}
	return true
}

// A covering is how much of a question texts speak of.
type covering struct {
	share   float64  // of the weight of its words, in [0, 1]
	missing []string // what is not spoken of: names first, then words
	names   []string // the names among these
	lacks   want     // what is asked for and not there; anything: nothing
}

// covered says how much of a question texts speak of, each with what it stands under.
// Words that begin alike count as one: an answer to who the director is says "directed".
func covered(q question, texts []string) covering {
	held := stems("", texts...)
	var words []string
	for _, text := range texts {
		words = append(words, surface.Words(text)...)
	}
	for _, t := range q.terms {
		if !holdsTerm(held, t) && slices.ContainsFunc(words, func(w string) bool { return kin(w, t.Text) }) {
			held[t.Stem] = true
		}
	}
	c := covering{share: q.coverage(held), missing: missing(q, held), names: missingNames(q, held)}
	if w := wantOf(q.text); !slices.ContainsFunc(texts, func(text string) bool { return w.in(text, q) }) {
		c.lacks = w
	}
	return c
}

// under returns a text with the title and the headings that it stands under.
func under(h assay.Hit, text string) string {
	return strings.Join(append([]string{h.Title}, append(slices.Clone(h.Chunk.Headings), text)...), ": ")
}
