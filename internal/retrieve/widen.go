package retrieve

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
)

// Largest extension of a passage that contains a part of a list, in bytes before and after it.
const (
	widenBefore = 600
	widenAfter  = 2000
)

// documents is implemented by a Content that reads whole documents.
type documents interface {
	Version(ctx context.Context, id, version string) (assay.Document, error)
}

// widen completes the lists in the best hits. A passage that introduces a list or contains a part
// of one is extended to the whole list and its introduction. If the document no longer exists, the
// passage stays unchanged.
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

// cutInList reports whether a passage begins or ends where a list may continue.
func cutInList(h assay.Hit) bool {
	l := layout.Of(h.Text, h.Chunk.Kind)
	if h.Chunk.Kind != assay.ChunkProse || len(l.Blocks) == 0 || h.Origin != assay.FromDocuments {
		return false
	}
	first, last := l.Blocks[0], l.Blocks[len(l.Blocks)-1]
	return first.Kind == layout.Item || goesOnIndented(h.Text[first.Start:first.End]) || last.Kind == layout.Item || last.Kind == layout.Label || layout.Announces(h.Text[last.Start:last.End])
}

// goesOnIndented reports whether the second line of a text is indented, like that of a definition
// whose term precedes it.
func goesOnIndented(text string) bool {
	_, rest, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t")
}

// widened extends a hit to the whole lists at its start and end in its document.
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
