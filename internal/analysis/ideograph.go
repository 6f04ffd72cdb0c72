package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// bigrams yields each two neighbours of the run of ideographs, kana or Hangul
// that starts at i, and a run of one as it is. Of Han and Hangul, where one
// character may be a word, it yields each character too. It returns the run's end
// and the next position.
func bigrams(text string, i, position int, yield func(Token)) (end, next int) {
	previous := span{i, i} // the character before, empty at first
	for i < len(text) && startsCharacter(text, i) {
		current := span{i, characterEnd(text, i)}
		last := current.end == len(text) || !startsCharacter(text, current.end)
		if previous.start < previous.end {
			yield(Token{Term: character(text[previous.start:current.end]), Start: previous.start, End: current.end, Position: position})
			yieldCharacter(text, previous, position, yield)
			if last {
				yieldCharacter(text, current, position, yield)
			}
			position++
		} else if last {
			yield(Token{Term: character(text[i:current.end]), Start: i, End: current.end, Position: position})
			position++
		}
		previous = current
		i = current.end
	}
	return i, position
}

// yieldCharacter yields one character of a run where it may be a word.
func yieldCharacter(text string, c span, position int, yield func(Token)) {
	if r, _ := utf8.DecodeRuneInString(text[c.start:]); !unicode.In(r, unicode.Han, unicode.Hangul) {
		return
	}
	yield(Token{Term: character(text[c.start:c.end]), Start: c.start, End: c.end, Position: position, Part: true, Character: true})
}

func startsCharacter(text string, i int) bool {
	kind, _ := classAt(text, i)
	return kind == ideograph
}

// characterEnd returns where the character at text[i:] ends: after the marks that
// change it, and after the vowel and the last consonant of a Korean syllable that
// is written in its letters.
func characterEnd(text string, i int) int {
	_, size := utf8.DecodeRuneInString(text[i:])
	end := i + size
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !continuesCharacter(r) {
			break
		}
		end += size
	}
	return end
}

// continuesCharacter reports whether r belongs to the ideograph, kana or Hangul
// before it: the voicing marks of kana in full and half width, the medial vowels
// and final consonants of Hangul, and variation selectors.
func continuesCharacter(r rune) bool {
	switch {
	case r < 0x1160:
		return false
	case r <= 0x11FF, 0xD7B0 <= r && r <= 0xD7FF: // Hangul
		return true
	case r == 0x3099, r == 0x309A, r == 0xFF9E, r == 0xFF9F: // kana
		return true
	}
	return isVariation(r)
}

func isVariation(r rune) bool { return 0xFE00 <= r && r <= 0xFE0F || 0xE0100 <= r && r <= 0xE01EF }

// character returns the term of one or two characters.
func character(raw string) string {
	if strings.ContainsFunc(raw, isVariation) {
		raw = strings.Map(func(r rune) rune {
			if isVariation(r) {
				return -1
			}
			return r
		}, raw)
	}
	return norm.NFKC.String(raw)
}
