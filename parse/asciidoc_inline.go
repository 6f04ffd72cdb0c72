package parse

import (
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// adAttribute is a reference to an attribute.
var adAttribute = lazyregexp.New(`\\?\{([A-Za-z0-9_][\w-]*)\}`)

// asciiDocAttributes are the attributes that every document has.
var asciiDocAttributes = map[string]string{
	"nbsp": " ", "lt": "<", "gt": ">", "amp": "&", "asterisk": "*", "tilde": "~", "caret": "^", "startsb": "[", "endsb": "]", "backslash": `\`,
	"plus": "+", "litdd": "--", "apos": "'", "quot": `"`, "empty": "", "blank": "", "sp": " ", "vbar": "|", "two-colons": "::", "two-semicolons": ";;",
	"zwsp": "", "wj": "", "deg": "°", "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "cpp": "C++", "pp": "++", "backtick": "`", "brvbar": "¦",
	"litstar": "*",
}

// expand replaces references to attributes. One that is not defined is kept.
func (a *asciiDoc) expand(s string) string {
	if strings.IndexByte(s, '{') < 0 {
		return s
	}
	return adAttribute.ReplaceAllStringFunc(s, func(ref string) string {
		name, escaped := strings.CutPrefix(ref, `\`)
		if escaped {
			return name
		}
		name = strings.Trim(name, "{}")
		value, ok := a.attrs[name]
		if !ok {
			if value, ok = asciiDocAttributes[strings.ToLower(name)]; !ok {
				return ref
			}
		}
		if len(value) > len(ref) {
			if a.budget -= len(value); a.budget < 0 {
				return ref
			}
		}
		return value
	})
}

// adKept is text whose marks are not markup: passthroughs and code.
var adKept = lazyregexp.New("``((?s:[^`]{1,400}?))''|\\+\\+\\+((?s:.+?))\\+\\+\\+|\\$\\$((?s:.+?))\\$\\$|pass:[a-z,]*\\[([^\\]]*)\\]|``((?s:[^`]+?))``|`\\+?([^`\\s](?:[^`]*[^`\\s])?)\\+?`")

// longestInline is the most bytes of a paragraph whose markup is read together.
const longestInline = 32 << 10

// inline returns text without inline markup. It keeps the line breaks. A very long text is read in
// pieces.
func (a *asciiDoc) inline(s string) string {
	if len(s) <= longestInline {
		return a.inlinePiece(s)
	}
	var out strings.Builder
	for len(s) > 0 && !a.b.canceled() {
		end := min(len(s), longestInline)
		if cut := strings.LastIndexAny(s[:end], " \n"); cut > 0 && end < len(s) {
			end = cut + 1
		}
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		out.WriteString(a.inlinePiece(s[:end]))
		s = s[end:]
	}
	return out.String()
}

func (a *asciiDoc) inlinePiece(s string) string {
	if !strings.ContainsAny(s, "`*_#^~+<>[]{}\\'$:(") {
		return s
	}
	var out strings.Builder
	at := 0
	for _, m := range adKept.FindAllStringSubmatchIndex(s, -1) {
		if m[0] > 0 && m[2] < 0 && m[10] < 0 && s[m[0]] == '`' && isWordByte(s[m[0]-1]) {
			continue // an apostrophe or accent in a word
		}
		out.WriteString(a.marks(s[at:m[0]]))
		if m[2] >= 0 {
			out.WriteString("“" + a.inline(s[m[2]:m[3]]) + "”")
		}
		for g := 4; g < len(m); g += 2 {
			if m[g] >= 0 {
				kept := s[m[g]:m[g+1]]
				if g >= 10 {
					kept = adLinkGit.ReplaceAllString(a.expand(kept), "$1($2)")
				}
				out.WriteString(kept)
			}
		}
		at = m[1]
	}
	out.WriteString(a.marks(s[at:]))
	return out.String()
}

var adLinkGit = lazyregexp.New(`\b(?:link[a-z]+|man|manpage):([\w.+-]+)\[(\d\w*)\]`)

// adMarks are the inline constructs and their texts, in the order in which they are replaced.
var adMarks = []struct {
	mark *lazyregexp.Regexp
	text string
}{
	{adLinkGit, "$1($2)"},
	{lazyregexp.New(`\[\[[^\]\n]*\]\]|\[#[\w-]+\](?:$| )|anchor:[\w-]+\[[^\]\n]*\]|\(\(\([^()\n]*\)\)\)|indexterm:\[[^\]\n]*\]`), ""},
	{lazyregexp.New(`\(\(([^()\n]+)\)\)|indexterm2:\[([^\]\n]*)\]`), "$1$2"},
	{lazyregexp.New(`<<[^<>,\n]+,\s*([^<>]+)>>`), "$1"},
	{lazyregexp.New(`<<([^<>\s,]+)>>`), "$1"},
	{lazyregexp.New(`\bxref:[^\[\]\s]+\[([^\]]+)\]`), "$1"},
	{lazyregexp.New(`\bxref:([^\[\]\s]+)\[\]`), "$1"},
	{lazyregexp.New(`\b(?:link|mailto):(?:\+\+)?[^\[\]\s]+\[\s*([^\],\s][^\]]*?)(?:,[^\]]*)?\]`), "$1"},
	{lazyregexp.New(`\b(?:link|mailto):([^\[\]\s]+)\[\]`), "$1"},
	{lazyregexp.New(`\b(?:https?|ftp|irc|git)://[^\[\]\s<>]+\[\s*([^\],\s][^\]]*?)(?:,[^\]]*)?\]`), "$1"},
	{lazyregexp.New(`\b((?:https?|ftp|irc|git)://[^\[\]\s<>]+)\[\]`), "$1"},
	{lazyregexp.New(`\b(?:image|icon):[^:\[\]\s]+\[([^\],\n]*)[^\]\n]*\]`), "$1"},
	{lazyregexp.New(`\bmenu:([^\[\]\n]+)\[([^\]\n]+)\]`), "$1 > $2"},
	{lazyregexp.New(`\b(?:kbd|btn|stem|latexmath|asciimath|footnote|command|option|filename):\[([^\]]*)\]`), "$1"},
	{lazyregexp.New(`\[\.?[\w-]+\]([#*_])`), "$1"},
	{lazyregexp.New("\"`([^`]+)`\""), "“$1”"},
	{lazyregexp.New("'`([^`]+)`'"), "‘$1’"},
	{lazyregexp.New(`\*\*([^*\n]+)\*\*`), "$1"},
	{lazyregexp.New(`__([^_\n]+)__`), "$1"},
	{lazyregexp.New(`##([^#\n]+)##`), "$1"},
	{lazyregexp.New(`(^|[^\w\\*;:}])\*([^\s*](?:[^*]*[^\s*])?)\*($|[^\w*])`), "$1$2$3"},
	{lazyregexp.New(`(^|[^\w\\;:}])_([^\s_](?:[^_]*[^\s_])?)_($|[^\w])`), "$1$2$3"},
	{lazyregexp.New(`(^|[^\w\\&;:}])#([^\s#](?:[^#\n]*[^\s#])?)#($|[^\w])`), "$1$2$3"},
	{lazyregexp.New(`(^|[^\w\\+;:}])\+([^\s+](?:[^+]*[^\s+])?)\+($|[^\w+])`), "$1$2$3"},
	{lazyregexp.New(`(\w)~([^\s~]+)~`), "$1$2"},
	{lazyregexp.New(`(\w)\^([^\s^]+)\^`), "$1^$2"},
	{lazyregexp.New(`\\([*_#+~^<\['\-{]|https?:|link:|include:)`), "$1"},
}

// adLegacyQuote is emphasis in documents with underlined sections.
var adLegacyQuote = lazyregexp.New(`(^|[\s(\[{"/,])'([^\s'](?:[^'\n]*[^\s'])?)'($|[^\w])`)

// adLegacyCode is text in single quotes.
var adLegacyCode = lazyregexp.New("`([^`'\\s][^`'\n]*)'")

// marks returns text outside code without markup.
func (a *asciiDoc) marks(s string) string {
	if !strings.ContainsAny(s, "`*_#^~+<>[]{}\\'$:(") {
		return s
	}
	s = a.expand(s)
	for _, m := range adMarks {
		s = m.mark.ReplaceAllString(s, m.text)
	}
	if a.legacy {
		s = adLegacyQuote.ReplaceAllString(s, "$1$2$3")
		s = adLegacyCode.ReplaceAllString(s, "‘$1’")
	}
	return s
}
