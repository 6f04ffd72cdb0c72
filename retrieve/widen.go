package retrieve

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
)

// How far a list goes on, in bytes, before and behind the passage that holds a part of it.
const (
	widenBefore = 600
	widenAfter  = 2000
)

// documents is what a Content has that reads whole documents.
type documents interface {
	Version(ctx context.Context, id, version string) (assay.Document, error)
}

// widen completes the lists of the best hits: a passage that announces a list, or holds a
// part of one, is widened to all of it with what announces it. A document that is gone
// leaves its passage as it is.
func (s *search) widen(ctx context.Context) error {
	content, ok := s.Content.(documents)
	if !ok || s.query.Unranked {
		return nil
	}
	for _, c := range s.found[:min(len(s.found), ReadHits)] {
		if !cutInList(c.hit) {
			continue
		}
		d, err := content.Version(ctx, c.hit.Chunk.Document, c.hit.Chunk.Version)
		if errors.Is(err, assay.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		widened(&c.hit, d)
	}
	return nil
}

// cutInList reports whether a passage begins or ends where a list may go on.
func cutInList(h assay.Hit) bool {
	l := layout.Of(h.Text, h.Chunk.Kind)
	if h.Chunk.Kind != assay.ChunkProse || len(l.Blocks) == 0 || h.Origin != assay.FromDocuments {
		return false
	}
	first, last := l.Blocks[0], l.Blocks[len(l.Blocks)-1]
	return first.Kind == layout.Item || goesOnIndented(h.Text[first.Start:first.End]) || last.Kind == layout.Item || last.Kind == layout.Label || layout.Announces(h.Text[last.Start:last.End])
}

// goesOnIndented reports whether the second line of a text is indented, as that of a
// definition is whose term stands before it.
func goesOnIndented(text string) bool {
	_, rest, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t")
}

// widened widens a hit to the lists at its ends, as they stand in its document.
func widened(h *assay.Hit, d assay.Document) {
	start, end := h.Chunk.Start, h.Chunk.End
	if start < 0 || end > len(d.Text) || start >= end || d.Text[start:end] != h.Text {
		return
	}
	from, to := max(0, start-widenBefore), min(len(d.Text), end+widenAfter)
	for from > 0 && !utf8.RuneStart(d.Text[from]) {
		from++
	}
	for to < len(d.Text) && !utf8.RuneStart(d.Text[to]) {
		to--
	}
	l := layout.Of(d.Text[from:to], h.Chunk.Kind)
	if first, _, ok := l.List(start - from); ok {
		start = min(start, from+first)
	}
	if _, last, ok := l.List(end - 1 - from); ok {
		end = max(end, from+last)
	}
	h.Chunk.Start, h.Chunk.End, h.Text = start, end, d.Text[start:end]
	h.Line, h.Page = d.Position(start)
}
