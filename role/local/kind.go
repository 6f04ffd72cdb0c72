package local

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/surface"
)

// A kind is what sort of thing a question asks for: finer than a want, and told by more
// than the first words.
type kind int

const (
	kindOther kind = iota
	kindWho
	kindWhen
	kindWhere
	kindNumber
	kindWhy
	kindHow
	kindName   // what or which, of a thing that has a name: "which team"
	kindDefine // what something is
	kindWhat   // what or which, of another thing
	kindYesNo
	kinds // how many there are
)

var (
	asksTime       = regexp.MustCompile(`(?i)\b(?:what|which) (?:\pL+ )?(?:year|month|date|day|century|decade|time|period)\b`)
	asksWhereAbout = regexp.MustCompile(`(?i)^(?:(?:in|on|at|from|to|near) )?(?:where\b|(?:what|which) (?:city|country|state|place|location|town|county|region|area|continent|island|street|site|village|district|province)\b)`)
	asksWhy        = regexp.MustCompile(`(?i)^(?:why|for what reason|what (?:is|was|were|are) the (?:reason|cause|purpose)|what caused?)\b`)
	asksHow        = regexp.MustCompile(`(?i)^how\b`)
	asksName       = regexp.MustCompile(`(?i)\b(?:what|which) (?:\pL+ ){0,2}(?:team|company|person|name|group|band|organi[sz]ation|university|school|college|river|book|film|movie|song|album|language|party|player|actor|actress|king|queen|president|war|battle|act|treaty|law|church|people|family|author|artist|emperor|dynasty|channel|network|airline|airport|bridge|building|museum|award|newspaper|magazine|club|league)s?\b|\bname of\b|\bnamed\b|\bcalled\b`)
	asksDefine     = regexp.MustCompile(`(?i)^(?:what|who)(?:'s| is| are| was| were) (?:(?:the|a|an) )?(?:\pL+ ?){1,3}\??$|\b(?:mean|definition|stand for)\b`)
	asksThing      = regexp.MustCompile(`(?i)\b(?:what|which)\b`)
	asksYesNo      = regexp.MustCompile(`(?i)^(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|must|may)\b`)
)

// kindOfQuestion returns what a question asks for.
func kindOfQuestion(text string) kind {
	text = strings.TrimSpace(text)
	w := wantOf(text)
	switch {
	case w == somebody:
		return kindWho
	case w == someDate || w == someTime || asksTime.MatchString(text):
		return kindWhen
	case w == aNumber:
		return kindNumber
	case asksWhereAbout.MatchString(text):
		return kindWhere
	case asksWhy.MatchString(text):
		return kindWhy
	case asksHow.MatchString(text):
		return kindHow
	case asksName.MatchString(text):
		return kindName
	case asksDefine.MatchString(text):
		return kindDefine
	case asksThing.MatchString(text):
		return kindWhat
	case asksYesNo.MatchString(text):
		return kindYesNo
	}
	return kindOther
}

var (
	causes      = regexp.MustCompile(`(?i)\b(?:because|due to|owing to|in order to|so that|since|as a result|result(?:ed|s)? (?:in|from)|caus(?:e|es|ed|ing)|led to|lead to|leads to|reason|therefore|thus|in response|to avoid|to prevent|to protect|given that|after)\b`)
	wherePhrase = regexp.MustCompile(`\b(?:in|at|from|to|near|of|on|through|across|between|into|along) (?:the )?(?:\pL+ ){0,2}\p{Lu}\pL+`)
	numberWord  = regexp.MustCompile(`(?i)\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion|half|third|quarter|percent|per cent|once|twice|none|single)\b`)
)

// offered reports whether a text has something of the kind that the question does not
// have itself, whose stems are asked; known is false of kinds that have no form.
func (k kind) offered(text string, q question, asked map[string]bool) (has, known bool) {
	unasked := func(m string) bool { return !strings.Contains(strings.ToLower(q.text), strings.ToLower(m)) }
	switch k {
	case kindWhen:
		return slices.ContainsFunc(date.FindAllString(text, -1), unasked), true
	case kindNumber:
		own := surface.Numbers(q.text)
		other := func(n string) bool { return !slices.Contains(own, n) }
		return slices.ContainsFunc(surface.Numbers(text), other) || slices.ContainsFunc(numberWord.FindAllString(text, -1), unasked), true
	case kindWho, kindName:
		return namesAnother(text, asked), true
	case kindWhere:
		return slices.ContainsFunc(wherePhrase.FindAllString(text, -1), func(m string) bool {
			words := strings.Fields(m)
			return !holdsAny(asked, words[len(words)-1])
		}), true
	case kindWhy:
		return causes.MatchString(text), true
	}
	return false, false
}

// holdsAny reports whether a term of a word is among stems.
func holdsAny(held map[string]bool, word string) bool {
	for stem := range stems("", word) {
		if held[stem] {
			return true
		}
	}
	return false
}

// namesAnother reports whether a text names something with no word of what is asked.
func namesAnother(text string, asked map[string]bool) bool {
	var finder entity.Finder
	return slices.ContainsFunc(finder.Names(text, ""), func(n entity.Name) bool {
		name := text[n.Start:n.End]
		content := contentOf(name)
		for stem := range content {
			if asked[stem] {
				return false
			}
		}
		return len(content) > 0 && strings.ContainsFunc(name, unicode.IsUpper)
	})
}
