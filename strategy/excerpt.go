package strategy

import (
	"slices"

	"github.com/assay-rag/assay"
)

// excerpt returns the bytes [start, end) of a hit's text as a hit.
func excerpt(h assay.Hit, start, end int) assay.Hit {
	x := h
	c := &x.Chunk
	c.ID = assay.ChunkID(h.Chunk.ID, "excerpt", start)
	c.Parent, c.Start, c.End = h.Chunk.ID, h.Chunk.Start+start, h.Chunk.Start+end
	if len(h.Text) > 0 {
		c.Tokens = (h.Chunk.Tokens*(end-start) + len(h.Text) - 1) / len(h.Text)
	}
	x.Text, x.Children, x.Page = h.Text[start:end], nil, h.Page
	x.Matched = slices.Clone(h.Matched)
	return x
}
