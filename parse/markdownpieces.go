package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A large Markdown text is parsed in pieces, because the tree of a Markdown parser needs up to 200
// times the size of its text. A piece ends before a line that starts a block outside lists, if there
// is one, or else before any line. Code and tables that continue in the next piece get their
// first lines again, which are not written.
const (
	softPiece = 64 << 10  // bytes after which a piece ends before a new block
	listPiece = 128 << 10 // … or before an item of a list
	hardPiece = 192 << 10 // … or before any line
)

// A piece is a part of a Markdown text: text[start:end] after prefix.
type piece struct {
	start, end int
	prefix     string // the fence of code, or the head of a table
	table      bool   // prefix is the head of a table
}

// pieces splits text, whose first line is at the offset from.
func pieces(text string, from int) []piece {
	if len(text)-from <= hardPiece {
		return []piece{{start: from, end: len(text)}}
	}
	var all []piece
	var s pieceState
	current := piece{start: from}
	for at := from; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		if s.endsBefore(line, at-current.start) {
			current.end = at
			all = append(all, current)
			current = piece{start: at, prefix: s.prefix(), table: s.fence == "" && s.table != ""}
		}
		s.next(line)
		at += len(line) + 1
	}
	current.end = len(text)
	return append(all, current)
}

// A pieceState is what is known of the blocks that are open after a line.
type pieceState struct {
	fence  string // the line that opened code; empty: not in code
	closed string // the fence that closes it
	html   string // the text that ends an HTML block that blank lines do not end; empty: not in one
	table  string // the head of the table, two lines
	last   string // the previous line
}

// endsBefore reports whether a piece of size bytes ends before line.
func (s *pieceState) endsBefore(line string, size int) bool {
	switch {
	case size < softPiece:
		return false
	case size >= hardPiece:
		return true
	case s.fence != "" || s.html != "" || !isBlank(s.last) || line == "":
		return false
	}
	switch c := line[0]; {
	case c == ' ' || c == '\t':
		return false
	case strings.IndexByte("-*+0123456789>", c) >= 0:
		return size >= listPiece
	}
	return true
}

// prefix returns the lines to repeat at the start of a piece.
func (s *pieceState) prefix() string {
	if s.fence != "" {
		return s.fence + "\n"
	}
	return s.table
}

var (
	openFence  = lazyregexp.New("^ {0,3}(```+|~~~+)")
	tableRule  = lazyregexp.New(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	htmlBlocks = []struct{ start, end string }{{"<!--", "-->"}, {"<?", "?>"}, {"<![CDATA[", "]]>"}, {"<pre", "</pre>"}, {"<script", "</script>"}, {"<style", "</style>"}, {"<textarea", "</textarea>"}}
)

// next reads a line.
func (s *pieceState) next(line string) {
	before := s.last
	s.last = line
	trimmed := strings.TrimLeft(line, " ")
	switch {
	case s.fence != "":
		if strings.HasPrefix(trimmed, s.closed) && strings.Trim(trimmed, s.closed[:1]+" \t") == "" {
			s.fence = ""
		}
		return
	case s.html != "":
		if strings.Contains(strings.ToLower(line), s.html) {
			s.html = ""
		}
		return
	case isBlank(line):
		s.table = ""
		return
	case s.table == "" && strings.Contains(line, "|") && !isBlank(before) && tableRule.MatchString(line):
		s.table = before + "\n" + line + "\n"
	}
	if m := openFence.FindStringSubmatch(line); m != nil {
		s.fence, s.closed = line, m[1]
		return
	}
	if !strings.HasPrefix(trimmed, "<") {
		return
	}
	lower := strings.ToLower(trimmed)
	for _, b := range htmlBlocks {
		if strings.HasPrefix(lower, b.start) && !strings.Contains(lower[len(b.start):], b.end) {
			s.html = b.end
		}
	}
}

var linkDefinition = lazyregexp.New(`(?m)^ {0,3}\[[^\]\n]+\]:[ \t]*\S[^\n]*$`)

// definitions returns the definitions of links in text, each a paragraph, so that all pieces know
// them.
func definitions(text string) string {
	return strings.Join(linkDefinition.FindAllString(text, -1), "\n\n")
}

// nestedTooDeeply reports whether list items, whose markers the lines of text start with, are nested
// so deeply that a parser needs more than linear time.
func nestedTooDeeply(text string) bool {
	const deepest = 100
	var columns []int // of the markers of the open items
	for line := range strings.SplitSeq(text, "\n") {
		column := 0
		for column < len(line) && (line[column] == ' ' || line[column] == '\t') {
			column++
		}
		if column == len(line) || strings.IndexByte("-*+0123456789>", line[column]) < 0 {
			continue
		}
		for len(columns) > 0 && columns[len(columns)-1] >= column {
			columns = columns[:len(columns)-1]
		}
		if columns = append(columns, column); len(columns) > deepest {
			return true
		}
	}
	return false
}
