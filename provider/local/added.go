package local

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An addedToken is text that is a single token wherever it occurs, such as [SEP].
type addedToken struct {
	content    string
	id         int32
	singleWord bool // not next to a word character
	lstrip     bool // includes the white space before it
	rstrip     bool // includes the white space after it
}

// addedTokens are tokens that are matched before a text is split into words.
type addedTokens struct {
	tokens []addedToken // longest first
	starts [256]bool    // their first bytes
}

func newAddedTokens(tokens []addedToken) addedTokens {
	a := addedTokens{tokens: slices.Clone(tokens)}
	slices.SortStableFunc(a.tokens, func(x, y addedToken) int { return cmp.Compare(len(y.content), len(x.content)) })
	for _, t := range tokens {
		a.starts[t.content[0]] = true
	}
	return a
}

func (a *addedTokens) none() bool { return len(a.tokens) == 0 }

// split yields the parts of a text in order: added tokens with their ID, and the text between them
// with -1. Of several tokens that begin at the same place, the longest matches.
func (a *addedTokens) split(text string, yield func(part string, token int32)) {
	done := 0 // end of the text yielded so far
	for i := 0; i < len(text); {
		t := a.at(text[i:])
		if t == nil {
			i++
			continue
		}
		start, end := i, i+len(t.content)
		i = end
		if t.singleWord && (endsWithWord(text[:start]) || startsWithWord(text[end:])) {
			continue
		}
		if t.lstrip {
			start = max(done, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if t.rstrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			i = end
		}
		if done < start {
			yield(text[done:start], -1)
		}
		yield(text[start:end], t.id)
		done = end
	}
	if done < len(text) {
		yield(text[done:], -1)
	}
}

// at returns the longest token that text begins with, or nil.
func (a *addedTokens) at(text string) *addedToken {
	if !a.starts[text[0]] {
		return nil
	}
	for i := range a.tokens {
		if strings.HasPrefix(text, a.tokens[i].content) {
			return &a.tokens[i]
		}
	}
	return nil
}

func startsWithWord(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	return size > 0 && isWord(r)
}

func endsWithWord(text string) bool {
	r, size := utf8.DecodeLastRuneInString(text)
	return size > 0 && isWord(r)
}

// isWord reports whether r matches \w of regular expressions.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
