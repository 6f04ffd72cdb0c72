package prompted

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordAt finds a word, or words in a row, in a text, whatever their case, where
// nothing goes on before or after it.
func wordAt(text, word string) (start, end int, ok bool) {
	for from := 0; from+len(word) <= len(text) && word != ""; {
		if strings.EqualFold(text[from:from+len(word)], word) && bounded(text, from, from+len(word)) {
			return from, from + len(word), true
		}
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}
	return 0, 0, false
}

// bounded reports whether text[start:end] is not a part of a longer word.
func bounded(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !wordRune(before) && !wordRune(after)
}

func wordRune(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
