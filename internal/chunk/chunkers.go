package chunk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/parse"
)

// A Chunker is a way to divide a document.
type Chunker struct {
	Name  string
	Short string // one line of help

	split func(*splitter, context.Context) error
}

// Structure is the name of the default chunker, and Semantic of the one that needs an encoder.
const (
	Structure = "structure"
	Semantic  = "semantic"
)

// Chunkers returns all chunkers, the default first.
func Chunkers() []Chunker { return slices.Clone(chunkers) }

var chunkers = []Chunker{
	{Structure, "sections as parents; keeps sentences, tables, code and lists together", (*splitter).sections},
	{"fixed", "windows of equal size, cut at blanks", (*splitter).byFixed},
	{"sliding", "windows of equal size that overlap", (*splitter).bySliding},
	{"sentence", "whole sentences up to the size", (*splitter).bySentence},
	{"recursive", "blocks, else lines, else sentences, else words, joined up to the size", (*splitter).byRecursive},
	{Semantic, "cut where the topic changes, by the vectors of the sentences; needs an encoder", (*splitter).bySemantic},
	{"hierarchical", "small chunks below larger parents, by size alone", (*splitter).byHierarchy},
	{"contextual", "as recursive, within sections, with the headings above in the embedded text", (*splitter).byContext},
}

// chunker returns the chunker with a name, or the default for "".
func chunker(name string) (Chunker, error) {
	if name == "" {
		return chunkers[0], nil
	}
	var names []string
	for _, c := range chunkers {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Chunker{}, fmt.Errorf("chunker %q is not one of %s: %w", name, strings.Join(names, ", "), assay.ErrInvalid)
}

// A piece is a span that a chunker does not divide further.
type piece struct {
	start, end int
	tokens     int
}

func (s *splitter) piece(start, end int) piece {
	return piece{start, end, Tokens(s.doc.Text[start:end])}
}

func (s *splitter) byFixed(context.Context) error {
	s.windows(s.words(nil, 0, len(s.doc.Text)), 0, noHeadings)
	return nil
}

func (s *splitter) bySliding(context.Context) error {
	s.windows(s.words(nil, 0, len(s.doc.Text)), s.packer.overlap, noHeadings)
	return nil
}

func (s *splitter) bySentence(context.Context) error {
	s.windows(s.sentences(s.doc.Blocks), s.packer.overlap, noHeadings)
	return nil
}

// byRecursive splits like the recursive splitters of common frameworks: at the strongest boundary
// that gives pieces of at most the target size, which are then joined up to it.
func (s *splitter) byRecursive(context.Context) error {
	s.windows(s.recursive(s.doc.Blocks), s.packer.overlap, noHeadings)
	return nil
}

func (s *splitter) byContext(ctx context.Context) error {
	return s.eachSection(ctx, func(blocks []parse.Block) {
		s.windows(s.recursive(blocks), s.packer.overlap, s.headings())
	})
}

// byHierarchy makes parents of sectionTargets times the target size, whatever the sections, and
// children of the target size below them.
func (s *splitter) byHierarchy(context.Context) error {
	pieces := s.recursive(s.doc.Blocks)
	limit := sectionTargets * s.packer.target
	for len(pieces) > 0 {
		n, tokens := 1, pieces[0].tokens
		origin := s.doc.ProvenanceOf(pieces[0].start, pieces[0].end)
		for n < len(pieces) && tokens+pieces[n].tokens <= limit && sameOrigin(origin, s.doc.ProvenanceOf(pieces[n].start, pieces[n].end)) {
			tokens += pieces[n].tokens
			n++
		}
		leaves := s.fill(pieces[:n], 0)
		s.family(leaves, noHeadings)
		pieces = pieces[n:]
	}
	return nil
}

// noHeadings are the headings of chunks that ignore sections.
var noHeadings = []string{}

// windows adds chunks of consecutive pieces up to the target size. A chunk repeats the last pieces
// of the one before, up to overlap tokens.
func (s *splitter) windows(pieces []piece, overlap int, headings []string) {
	for _, l := range s.fill(pieces, overlap) {
		s.add(l, headings, -1)
	}
}

// fill joins consecutive pieces of one provenance into spans of at most the target size.
func (s *splitter) fill(pieces []piece, overlap int) []span {
	var spans []span
	for from := 0; from < len(pieces); {
		origin := s.doc.ProvenanceOf(pieces[from].start, pieces[from].end)
		fits := func(p piece, tokens int) bool {
			return tokens+p.tokens <= s.packer.target && sameOrigin(origin, s.doc.ProvenanceOf(p.start, p.end))
		}
		end, tokens := from+1, pieces[from].tokens
		for end < len(pieces) && fits(pieces[end], tokens) {
			tokens += pieces[end].tokens
			end++
		}
		spans = append(spans, s.span(pieces[from].start, pieces[end-1].end))
		if end == len(pieces) {
			break
		}
		if !sameOrigin(origin, s.doc.ProvenanceOf(pieces[end].start, pieces[end].end)) {
			from = end
			continue
		}
		next, repeated := end, 0
		for next-1 > from && repeated+pieces[next-1].tokens <= overlap {
			next--
			repeated += pieces[next].tokens
		}
		if repeated+pieces[end].tokens > s.packer.target {
			next = end // else the next chunk would hold nothing new
		}
		from = next
	}
	return spans
}

// span returns the span with the kind of the blocks that it touches.
func (s *splitter) span(start, end int) span {
	l := span{start: start, end: end, tokens: Tokens(s.doc.Text[start:end]), kind: assay.ChunkProse}
	first, _ := slices.BinarySearchFunc(s.doc.Blocks, start, func(b parse.Block, at int) int {
		if b.End <= at {
			return -1
		}
		return 1
	})
	code, rows := true, true
	for _, b := range s.doc.Blocks[first:] {
		if b.Start >= end {
			break
		}
		code = code && b.Kind == parse.Code
		rows = rows && (b.Kind == parse.TableRow || b.Kind == parse.TableHead)
	}
	switch {
	case code:
		l.kind = assay.ChunkCode
	case rows:
		l.kind = assay.ChunkTable
	}
	return l
}

// words appends the words of a span: runs without blanks, cut between runes if they are longer than
// a chunk.
func (s *splitter) words(pieces []piece, start, end int) []piece {
	text := s.doc.Text
	for at := start; at < end; {
		r, n := utf8.DecodeRuneInString(text[at:])
		if unicode.IsSpace(r) {
			at += n
			continue
		}
		stop := at
		for stop < end && stop-at < longestRun(s.packer.target) {
			r, n := utf8.DecodeRuneInString(text[stop:])
			if unicode.IsSpace(r) {
				break
			}
			stop += n
		}
		pieces = append(pieces, s.piece(at, stop))
		at = stop
	}
	return pieces
}

// sentences divides prose into sentences, and code and table rows into lines. A sentence or line that
// is larger than the target size is cut at blanks.
func (s *splitter) sentences(blocks []parse.Block) []piece {
	var pieces []piece
	for _, b := range blocks {
		for _, sp := range s.parts(b.Start, b.End, boundaryOf(b)) {
			pieces = s.appendPiece(pieces, sp)
		}
	}
	return pieces
}

func (s *splitter) appendPiece(pieces []piece, p piece) []piece {
	if p.tokens > s.packer.target {
		return s.words(pieces, p.start, p.end)
	}
	return append(pieces, p)
}

// A boundary is a kind of place at which text is cut.
type boundary int

const (
	atLines boundary = iota
	atSentences
)

func boundaryOf(b parse.Block) boundary {
	switch b.Kind {
	case parse.Code, parse.TableHead, parse.TableRow, parse.Formula:
		return atLines
	}
	return atSentences
}

// parts splits a span at a kind of boundary.
func (s *splitter) parts(start, end int, at boundary) []piece {
	var pieces []piece
	if at == atSentences {
		for _, sp := range sentence.Spans(s.doc.Text[start:end]) {
			pieces = append(pieces, s.piece(start+sp.Start, start+sp.End))
		}
		return pieces
	}
	for line := range strings.SplitAfterSeq(s.doc.Text[start:end], "\n") {
		if u, ok := s.trimmed(start, start+len(line), parse.Code); ok {
			pieces = append(pieces, piece{u.start, u.end, u.tokens})
		}
		start += len(line)
	}
	return pieces
}

// recursive returns pieces of at most the target size: blocks, else their lines, else sentences,
// else words.
func (s *splitter) recursive(blocks []parse.Block) []piece {
	var pieces []piece
	for _, b := range blocks {
		whole := s.piece(b.Start, b.End)
		if whole.tokens <= s.packer.target {
			pieces = append(pieces, whole)
			continue
		}
		for _, line := range s.parts(b.Start, b.End, atLines) {
			if line.tokens <= s.packer.target {
				pieces = append(pieces, line)
				continue
			}
			for _, p := range s.parts(line.start, line.end, atSentences) {
				pieces = s.appendPiece(pieces, p)
			}
		}
	}
	return pieces
}
