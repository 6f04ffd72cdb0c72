package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/plot"
)

// longest is the number of characters of a text that the page shows. The page states how many are
// left out; the JSON and the CSV have the whole text.
const longest = 4000

// visible returns foreign text in a form safe to show. It spells out control, bidirectional and
// invisible characters, and cuts text longer than the page shows, with a count of the rest.
func visible(s string) string { return shown(s, longest) }

// named is like visible for names, with a lower limit.
func named(s string) string { return shown(s, 200) }

func shown(s string, most int) string {
	s, more := cut(strings.ToValidUTF8(s, "\ufffd"), most)
	var b strings.Builder
	for _, r := range s {
		if hides(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, " … (%s more characters)", plot.Number(float64(more)))
	}
	return b.String()
}

// cut returns the first n characters of a text, and the number of characters after them.
func cut(s string, n int) (head string, more int) {
	if len(s) <= n {
		return s, 0
	}
	at := 0
	for range n {
		if at == len(s) {
			return s, 0
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at], utf8.RuneCountInString(s[at:])
}

// hides reports whether a character is invisible or changes how others are displayed. Joiners are
// excluded, since some scripts need them.
func hides(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r <= 0x9f: // control characters
		return true
	case r == 0x061c || r == 0x200b || r == 0x200e || r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true // bidirectional marks, overrides and isolates; zero-width spaces
	case r == 0xfeff || r >= 0xfff9 && r <= 0xfffb || r&0xfffe == 0xfffe || r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
