package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/parse"
)

// A unit is a span that is not divided further.
type unit struct {
	start, end int
	tokens     int
	kind       parse.BlockKind
	glued      bool // belongs with the unit after it
}

// prose reports whether u consists of sentences.
func (u unit) prose() bool { return u.kind == parse.Paragraph || u.kind == parse.ListItem }

// units splits the blocks of one section into units, in order.
func (s *splitter) units(blocks []parse.Block) []unit {
	var units []unit
	if n := s.declaration(blocks); n > 0 {
		u := s.unit(blocks[0].Start, blocks[n-1].End, parse.Paragraph)
		if u.tokens <= s.packer.hard {
			units = append(units, u)
			blocks = blocks[n:]
		}
	}
	for i, b := range blocks {
		units = s.appendBlock(units, b)
		if i+1 < len(blocks) && introduces(s.doc.Text, b, blocks[i+1]) {
			units[len(units)-1].glued = true
		}
	}
	return units
}

// declaration returns the number of blocks, in source code, that form a doc comment and its
// signature; 0 for none.
func (s *splitter) declaration(blocks []parse.Block) int {
	if s.doc.Type != "go" && s.doc.Type != "source" {
		return 0
	}
	for i, b := range blocks {
		if b.Kind == parse.Code && i > 0 && i+1 < len(blocks) && blocks[i+1].Kind != parse.Code {
			continue // code inside the comment
		}
		if b.Kind == parse.Code && i > 0 {
			return i + 1
		}
	}
	return 0
}

// introduces reports whether block a should stay with the block b after it: prose with its example,
// a sentence with the list it announces, column names with the first row.
func introduces(text string, a, b parse.Block) bool {
	switch a.Kind {
	case parse.Paragraph:
		return b.Kind == parse.Code || text[a.End-1] == ':'
	case parse.TableHead:
		return b.Kind == parse.TableRow
	}
	return false
}

func (s *splitter) unit(start, end int, kind parse.BlockKind) unit {
	return unit{start: start, end: end, tokens: Tokens(s.doc.Text[start:end]), kind: kind}
}

// appendBlock appends the units of one block: the block itself, its sentences, or its lines if it
// is code that is too large.
func (s *splitter) appendBlock(units []unit, b parse.Block) []unit {
	whole := s.unit(b.Start, b.End, b.Kind)
	switch b.Kind {
	case parse.Paragraph, parse.ListItem:
		if whole.tokens*2 <= s.packer.target {
			return append(units, whole)
		}
		return s.appendSentences(units, whole)
	case parse.Code:
		if whole.tokens <= s.packer.hard {
			return append(units, whole)
		}
		return s.appendLines(units, whole)
	}
	if whole.tokens <= s.packer.hard {
		return append(units, whole)
	}
	return s.appendSentences(units, whole)
}

func (s *splitter) appendSentences(units []unit, whole unit) []unit {
	for _, sp := range sentence.Spans(s.doc.Text[whole.start:whole.end]) {
		u := s.unit(whole.start+sp.Start, whole.start+sp.End, whole.kind)
		if u.tokens <= s.packer.hard {
			units = append(units, u)
		} else {
			units = s.appendWords(units, u)
		}
	}
	return units
}

// appendLines splits code that is too large at blank lines, and parts that are still too large at
// any line.
func (s *splitter) appendLines(units []unit, whole unit) []unit {
	text := s.doc.Text[whole.start:whole.end]
	for at := 0; at < len(text); {
		end := strings.Index(text[at:], "\n\n")
		if end < 0 {
			end = len(text)
		} else {
			end += at
		}
		if u, ok := s.trimmed(whole.start+at, whole.start+end, whole.kind); ok {
			if u.tokens <= s.packer.target {
				units = append(units, u)
			} else {
				units = s.appendEachLine(units, u)
			}
		}
		at = end
		for at < len(text) && text[at] == '\n' {
			at++
		}
	}
	return units
}

func (s *splitter) appendEachLine(units []unit, whole unit) []unit {
	at := whole.start
	for line := range strings.SplitAfterSeq(s.doc.Text[whole.start:whole.end], "\n") {
		if u, ok := s.trimmed(at, at+len(line), whole.kind); ok {
			if u.tokens <= s.packer.hard {
				units = append(units, u)
			} else {
				units = s.appendWords(units, u)
			}
		}
		at += len(line)
	}
	return units
}

// trimmed returns a unit of the span without blanks at its end and blank lines before it. It
// reports false if the span is blank.
func (s *splitter) trimmed(start, end int, kind parse.BlockKind) (unit, bool) {
	text := s.doc.Text[start:end]
	end = start + len(strings.TrimRightFunc(text, unicode.IsSpace))
	if end == start {
		return unit{}, false
	}
	return s.unit(start, end, kind), true
}

// appendWords splits text without better boundaries at blanks. It splits a run without blanks that
// is over the limit between runes.
func (s *splitter) appendWords(units []unit, whole unit) []unit {
	text, limit := s.doc.Text, s.packer.target
	start, end, tokens := -1, 0, 0
	flush := func() {
		if start >= 0 {
			units = append(units, s.unit(start, end, whole.kind))
		}
		start, tokens = -1, 0
	}
	for at := whole.start; at < whole.end; {
		r, n := utf8.DecodeRuneInString(text[at:])
		if unicode.IsSpace(r) {
			at += n
			continue
		}
		stop := at
		for stop < whole.end && stop-at < longestRun(limit) {
			r, n := utf8.DecodeRuneInString(text[stop:])
			if unicode.IsSpace(r) {
				break
			}
			stop += n
		}
		k := Tokens(text[at:stop])
		if start >= 0 && tokens+k > limit {
			flush()
		}
		if start < 0 {
			start = at
		}
		end, tokens = stop, tokens+k
		at = stop
	}
	flush()
	return units
}

// longestRun returns the largest size in bytes of a run without blanks in a unit of the given
// tokens, since each byte may be a token.
func longestRun(tokens int) int { return max(tokens, utf8.UTFMax) }
