package local

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An addedToken is text that is one token wherever it stands, [SEP] for example.
type addedToken struct {
	content    string
	id         int32
	singleWord bool // not next to a word character
	lstrip     bool // takes the white space before it along
	rstrip     bool // and that behind it
}

// addedTokens are tokens to be found in a text before it is cut into words.
type addedTokens struct {
	tokens []addedToken // longest first
	starts [256]bool    // the bytes that they begin with
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

// split yields the parts of a text in order: added tokens with their ID, what is
// between them with -1. Of tokens that begin at the same place the longest
// counts.
func (a *addedTokens) split(text string, yield func(part string, token int32)) {
	done := 0 // what has been yielded
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

// isWord reports whether r is what regular expressions call \w.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
