package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// bigrams yields each pair of neighbours in the run of ideographs, kana or Hangul that starts at i,
// or the character itself if the run has only one. For Han and Hangul, in which a single character
// may be a word, it also yields each character. It returns the end of the run and the next
// position.
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

// yieldCharacter yields one character of a run if its script allows words of one character.
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

// characterEnd returns the end of the character at text[i:], including its modifying marks and the
// vowel and last consonant of a Korean syllable that is written in separate letters.
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
