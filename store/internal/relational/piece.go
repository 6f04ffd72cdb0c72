package relational

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// pieceBytes is the length of a piece, reduced if it would split a character. It is long enough
// that most chunks lie in one or two pieces, and short enough that a passage is cheap to read.
const pieceBytes = 8 << 10

// A piece is a part of a version's text in its stored form. With pieces, a passage and its source
// line can be read without the rest of the text.
type piece struct {
	start      int // in the text
	line, page int // of the source at start, unless an anchor is there
	text       string
	anchors    []byte // of this piece; see encodeAnchors
}

// hash returns the first 16 bytes of the SHA-256 of all columns of the piece, to detect pieces
// altered on disk.
func (p piece) hash() []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d %d ", p.start, p.line, p.page, len(p.text))
	h.Write([]byte(p.text))
	h.Write(p.anchors)
	return h.Sum(nil)[:16]
}

// verify returns an error of kind assay.ErrDamaged if the piece's hash differs.
func (p piece) verify(hash []byte) error {
	if !bytes.Equal(p.hash(), hash) {
		return damaged("the text from %d to %d was altered since it was stored; ingest it again with --verify", p.start, p.end())
	}
	return nil
}

// end returns the end of the piece in the text.
func (p piece) end() int { return p.start + len(p.text) }

// cutPieces splits a text into pieces. An empty text has one. The anchors must be in order.
func cutPieces(text string, anchors []assay.Anchor) []piece {
	pieces := make([]piece, 0, len(text)/pieceBytes+1)
	var last assay.Anchor // last anchor before start
	for start := 0; len(pieces) == 0 || start < len(text); {
		end := cutAt(text, start)
		n := len(anchors) // the last piece includes anchors at the text's end
		if end < len(text) {
			n = sort.Search(len(anchors), func(i int) bool { return anchors[i].Start >= end })
		}
		pieces = append(pieces, piece{
			start: start, line: last.Line, page: last.Page, text: text[start:end], anchors: encodeAnchors(anchors[:n]),
		})
		if n > 0 {
			last = anchors[n-1]
		}
		last.Start, last.Line = end, lineAt(text[last.Start:end], last.Line)
		start, anchors = end, anchors[n:]
	}
	return pieces
}

// cutAt returns the end of the piece that begins at start.
func cutAt(text string, start int) int {
	end := start + pieceBytes
	if end >= len(text) {
		return len(text)
	}
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// lineAt returns the line number at the end of text, which begins on the given line.
func lineAt(text string, line int) int {
	if line == 0 {
		return 0
	}
	return line + strings.Count(text, "\n")
}

// position is assay.Document.Position for an offset in the piece or at its end.
func (p piece) position(offset int) (line, page int, err error) {
	last := assay.Anchor{Start: p.start, Line: p.line, Page: p.page}
	err = eachAnchor(p.anchors, func(a assay.Anchor) bool {
		if a.Start > offset {
			return false
		}
		last = a
		return true
	})
	if err == nil && (last.Start < p.start || offset > p.end()) {
		err = damaged("anchor at %d or offset %d is not in [%d, %d]", last.Start, offset, p.start, p.end())
	}
	if err != nil {
		return 0, 0, err
	}
	return lineAt(p.text[last.Start-p.start:offset-p.start], last.Line), last.Page, nil
}

const piecesQuery = `
SELECT start, line, page, text, anchors, hash FROM pieces WHERE version = ? AND start >= ? AND start < ? ORDER BY start`

// loadText reads the text and the anchors of one version of d.
func loadText(ctx context.Context, s Reader, number int64, d *assay.Document) error {
	text, err := loadPieces(ctx, s, number, 0, math.MaxInt64, func(p piece) (err error) {
		d.Anchors, err = decodeAnchors(d.Anchors, p.anchors)
		return err
	})
	d.Text = text
	if err != nil {
		return fmt.Errorf("document %s, %s: %w", d.ID, d.URI, err)
	}
	return nil
}

// loadSpan reads the bytes [start, end) of a version's text. A piece must begin at start.
func loadSpan(ctx context.Context, s Reader, number int64, start, end int) (string, error) {
	text, err := loadPieces(ctx, s, number, start, end, func(piece) error { return nil })
	if err == nil && len(text) < end-start {
		err = damaged("the text ends at %d, before %d", start+len(text), end)
	}
	if err != nil {
		return "", err
	}
	return text[:end-start], nil
}

// loadPieces calls fn for the pieces of a version that begin in [start, end) and returns their
// text. A piece must begin at start.
func loadPieces(ctx context.Context, s Reader, number int64, start, end int, fn func(piece) error) (string, error) {
	var texts []string
	next := start
	err := s.Each(ctx, piecesQuery, []any{number, start, end}, func(scan func(...any) error) error {
		var p piece
		var hash []byte
		if err := scan(&p.start, &p.line, &p.page, &p.text, &p.anchors, &hash); err != nil {
			return err
		}
		if p.start != next {
			return damaged("the text from %d to %d is not there", next, p.start)
		}
		if err := p.verify(hash); err != nil {
			return err
		}
		texts, next = append(texts, p.text), p.end()
		return fn(p)
	})
	if err == nil && len(texts) == 0 {
		err = damaged("the text from %d is not there", start)
	}
	return strings.Join(texts, ""), err
}
