package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/plot"
)

// longest is how many characters of a text the page shows; the rest is counted, and
// stands in the JSON and the CSV.
const longest = 4000

// visible writes foreign text as it can be shown: control characters, those that turn
// the direction of writing, and those that nobody sees are named, and what is longer
// than the page shows is cut and counted.
func visible(s string) string { return shown(s, longest) }

// named is visible for names, which are shorter.
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

// cut returns the first n characters of a text, and how many there are after them.
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

// hides reports whether a character is not seen, or changes how others are. Joiners are
// left, which some scripts need.
func hides(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r <= 0x9f: // control characters
		return true
	case r == 0x061c || r == 0x200b || r == 0x200e || r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true // marks, overrides and isolates of direction; spaces without width
	case r == 0xfeff || r >= 0xfff9 && r <= 0xfffb || r&0xfffe == 0xfffe || r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
