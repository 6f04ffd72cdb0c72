package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// paragraph escapes a line of a paragraph: its inline markup, and characters at its start that begin
// a heading, quote, list, rule, table or fence.
func paragraph(line string) string {
	line = strings.TrimLeft(line, " \t")
	if line == "" {
		return ""
	}
	s := inline(line)
	switch c := line[0]; {
	case c == '>' || c == '|' || c == '~' || c == '=':
		return `\` + s
	case c == '#':
		if rest := strings.TrimLeft(line, "#"); rest == "" || rest[0] == ' ' {
			return `\` + s
		}
	case c == '-' || c == '+' || c == ':':
		if len(line) == 1 || line[1] == ' ' || strings.Trim(line, "-:| \t") == "" {
			return `\` + s
		}
	case '0' <= c && c <= '9':
		word, _, _ := strings.Cut(line, " ")
		if isNumber(word) {
			return word[:len(word)-1] + `\` + s[len(word)-1:]
		}
	}
	return s
}

// inline escapes the characters of a line that Markdown reads as emphasis, code, links, tags and
// entities.
func inline(s string) string {
	if !strings.ContainsAny(s, "\\`*_<&]") {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		if isMarkup(s, i, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// isMarkup reports whether the character c at the offset i of s is to be escaped.
func isMarkup(s string, i int, c rune) bool {
	rest := s[i+utf8.RuneLen(c):]
	next, _ := utf8.DecodeRuneInString(rest)
	switch c {
	case '`', '*':
		return true
	case '\\':
		return next < utf8.RuneSelf && unicode.IsPunct(next) || strings.ContainsRune("$+<=>^`|~", next)
	case '_':
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		return !isWord(before) || !isWord(next)
	case '<':
		return next != ' ' && next != '=' && rest != ""
	case '&':
		end := strings.IndexByte(rest, ';')
		return end > 0 && end < 32 && !strings.ContainsFunc(rest[:end], func(c rune) bool { return !isWord(c) && c != '#' })
	case ']':
		return next == '(' || next == '[' || next == ':'
	}
	return false
}

func isWord(c rune) bool {
	return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c))
}
