package ground

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/sentence"
)

// Locate finds the words of text that say claim: the sentences that hold it where
// text does (however its blanks are broken into lines), else the first that says it in
// the sense of [Local], else the one to three sentences in a row that share the most of
// its words. It returns their span; start == end when no sentence shares a word with it.
//
// A part of a sentence is never all that is found: "it is wrong that water boils"
// holds "water boils" and does not say it. Whole lines, as code and table rows are,
// may be.
func Locate(claim, text string) (start, end int) {
	if start, end, ok := contains(text, claim); ok {
		if wholeLines(text, start, end) {
			return start, end
		}
		return widened(text, start, end)
	}
	claim, _ = withoutLeadIn(claim, nil)
	spans := sentence.Spans(text)
	r := read(claim)
	for _, sp := range spans {
		if len(r.terms) <= maxTerms && holds(read(text[sp.Start:sp.End]).terms, r.terms) {
			return sp.Start, sp.End
		}
	}
	return nearest(claim, text, spans)
}

// widened returns the span of the sentences that [start, end) is a part of.
func widened(text string, start, end int) (from, to int) {
	from, to = start, end
	for _, sp := range sentence.Spans(text) {
		if sp.Start < end && start < sp.End {
			from, to = min(from, sp.Start), max(to, sp.End)
		}
	}
	return from, to
}

// Find returns where text has words, however either breaks its blanks into lines.
func Find(text, words string) (start, end int, ok bool) { return contains(text, words) }

// contains finds part in text, taking every run of blanks as one space.
func contains(text, part string) (start, end int, ok bool) {
	part = strings.Join(strings.Fields(part), " ")
	if part == "" {
		return 0, 0, false
	}
	folded, at := foldBlanks(text)
	i := strings.Index(folded, part)
	if i < 0 {
		return 0, 0, false
	}
	return at[i], at[i+len(part)-1] + 1, true // part ends in no blank, so its last byte came from one byte
}

// foldBlanks returns text with each run of blanks as one space, and for each of
// its bytes the offset in text that it came from.
func foldBlanks(text string) (folded string, at []int) {
	var b strings.Builder
	b.Grow(len(text))
	at = make([]int, 0, len(text))
	blank := true // drops leading blanks
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			if !blank {
				b.WriteByte(' ')
				at = append(at, i)
			}
			blank = true
			i += size
			continue
		}
		blank = false
		b.WriteString(text[i : i+size])
		for range size {
			at = append(at, i)
			i++
		}
	}
	return b.String(), at
}

// nearest returns the window of at most maxWindow sentences that covers most of
// the claim's terms; the shorter, then the earlier on a tie.
func nearest(claim, text string, spans []sentence.Span) (start, end int) {
	const maxWindow = 3
	want := termSet(claim)
	held := make([]map[string]bool, len(spans))
	for i, sp := range spans {
		held[i] = termSet(text[sp.Start:sp.End])
	}
	best := 0
	for size := 1; size <= maxWindow; size++ {
		for i := 0; i+size <= len(spans); i++ {
			n := 0
			for t := range want {
				for _, h := range held[i : i+size] {
					if h[t] {
						n++
						break
					}
				}
			}
			if n > best {
				best, start, end = n, spans[i].Start, spans[i+size-1].End
			}
		}
	}
	return start, end
}
