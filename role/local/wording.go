package local

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/surface"
)

// wordings returns other forms of a question to search with, what changes its words
// first: with the initials of what it names at length, and without what it has in
// brackets; with identifiers taken apart; as a statement; its words of content alone.
// None has a word that the question does not give.
func wordings(question string) []string {
	var out []string
	for _, form := range []func(string) string{abbreviated, spelled, declared, keywords} {
		if w := form(question); w != "" && w != question {
			out = append(out, w)
		}
	}
	return out
}

// longName matches a name of three to six capitalised words, with small ones between.
var longName = regexp.MustCompile(`\p{Lu}\p{L}+(?:[ -](?:(?:of|and|for|the|on|in) )?\p{Lu}\p{L}+){2,5}`)

// bracketed matches what has its short form in brackets behind it.
var bracketed = regexp.MustCompile(`((?:[\p{L}-]+ ){2,6})\((\p{Lu}[\p{L}\p{N}]{1,7})\)`)

// abbreviated returns a question with initials for the names that it has at length, and
// a short form alone where it has both.
func abbreviated(question string) string {
	out := bracketed.ReplaceAllStringFunc(question, func(m string) string {
		parts := bracketed.FindStringSubmatch(m)
		words := strings.Fields(parts[1])
		for i := len(words) - 1; i >= 0; i-- {
			if strings.EqualFold(initials(strings.Join(words[i:], " ")), parts[2]) {
				return strings.Join(append(words[:i:i], parts[2]), " ")
			}
		}
		return m
	})
	if out != question {
		return out
	}
	return longName.ReplaceAllStringFunc(question, func(name string) string {
		if first, rest, _ := strings.Cut(name, " "); strings.HasPrefix(question, name) && opensAsking.MatchString(first) {
			return first + " " + rest // "What Is Love": the word that asks is none of it
		}
		return initials(name)
	})
}

// initials returns the first letters of a name's words but the small ones between.
func initials(name string) string {
	var b strings.Builder
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' }) {
		if r := []rune(w); !surface.Function(strings.ToLower(w)) || unicode.IsUpper(r[0]) {
			b.WriteRune(unicode.ToUpper(r[0]))
		}
	}
	return b.String()
}

// spelled returns a question with the parts of its identifiers as words: "read header
// timeout" for ReadHeaderTimeout, "file name" for file_name.
func spelled(question string) string {
	return identifier.ReplaceAllStringFunc(question, func(name string) string {
		var words []string
		for _, w := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' }) {
			words = append(words, strings.Fields(hump.ReplaceAllString(w, "$1 $2"))...)
		}
		return strings.ToLower(strings.Join(words, " "))
	})
}

var (
	identifier = regexp.MustCompile(`\b(?:\p{L}[\p{L}\p{N}]*(?:[_.]\p{L}[\p{L}\p{N}]*)+|\p{L}*\p{Ll}\p{Lu}[\p{L}\p{N}]*)\b`)
	hump       = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)
)

// keywords returns the words of content of a question of some length.
func keywords(question string) string {
	words := contentWords(question)
	if len(words) < 3 {
		return ""
	}
	return strings.Join(words, " ")
}

// The forms of questions that can be said as statements.
var (
	asksIs      = regexp.MustCompile(`(?i)^(?:what|who|where|when|which one)(?:['’]s| is| are| was| were) (.+)$`)
	asksHowIs   = regexp.MustCompile(`(?i)^how (` + measure + `) (is|are|was|were) (.+)$`)
	asksHowDo   = regexp.MustCompile(`(?i)^how (?:do|can|should|could|would|must) (?:i|you|we|one) (.+)$`)
	asksHowTo   = regexp.MustCompile(`(?i)^how to (.+)$`)
	asksWhatHas = regexp.MustCompile(`(?i)^(?:who|what|which) (?:is |are |was |were )?(.+)$`)
	asksWhether = regexp.MustCompile(`(?i)^(?:does|do|did|can|could|should|will|would|must|may) (.+)$`)
	asksDoes    = regexp.MustCompile(`(?i)^(?:when|where|why|how(?: (?:` + measure + `))?) (?:does|do|did|can|could|should|will|would|must) (.+)$`)
	verbIs      = regexp.MustCompile(`(?i)^(?:what|who|where|when|which one)(['’]s| is| are| was| were) `)
)

// declared returns how a document would begin to say what a question asks: "The
// retention period for invoices is" for "What is the retention period for invoices?".
// Empty: the form of the question is not known.
func declared(question string) string {
	q := strings.TrimRight(question, "?!. ")
	if q == strings.TrimRight(question, "!. ") && !opensAsking.MatchString(q) {
		return "" // it is said as a statement already
	}
	switch {
	case asksHowIs.MatchString(q):
		m := asksHowIs.FindStringSubmatch(q)
		return upperFirst(m[3]) + " " + m[2] + " " + m[1]
	case asksHowDo.MatchString(q):
		return "To " + asksHowDo.FindStringSubmatch(q)[1]
	case asksHowTo.MatchString(q):
		return "To " + asksHowTo.FindStringSubmatch(q)[1]
	case asksDoes.MatchString(q):
		return upperFirst(asksDoes.FindStringSubmatch(q)[1])
	case asksIs.MatchString(q):
		verb := strings.ToLower(strings.TrimSpace(verbIs.FindStringSubmatch(q)[1]))
		if strings.ContainsAny(verb, "'’") {
			verb = "is"
		}
		rest := asksIs.FindStringSubmatch(q)[1]
		if at := participle.FindStringIndex(rest); at != nil {
			return upperFirst(rest[:at[0]]) + " " + verb + rest[at[0]:]
		}
		return upperFirst(rest) + " " + verb
	case asksWhether.MatchString(q):
		return upperFirst(asksWhether.FindStringSubmatch(q)[1])
	case asksWhatHas.MatchString(q):
		return upperFirst(asksWhatHas.FindStringSubmatch(q)[1])
	}
	return ""
}

func upperFirst(s string) string {
	for i, r := range s {
		return string(unicode.ToUpper(r)) + s[i+len(string(r)):]
	}
	return s
}

// narrowing matches where what narrows a question begins: a clause, or a phrase of
// place, time or circumstance.
var narrowing = regexp.MustCompile(`(?i)(?:,| )(?:if|when|while|whenever|because|unless|after|before|during|since|until|using|under|within|without|between|in|at|on|from|by|with|for) `)

// general returns a question without what narrows it, where enough is left to ask;
// empty: it is broad as it is.
func general(question string) string {
	q := strings.TrimRight(question, "?!. ")
	for _, at := range narrowing.FindAllStringIndex(q, -1) {
		if head := strings.TrimRight(q[:at[0]], ", "); len(contentWords(head)) >= 2 {
			return head + "?"
		}
	}
	return ""
}
