package relational

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/assay-rag/assay"
)

// encodeStructure packs a structure. It returns nil for an empty one.
func encodeStructure(s *assay.Structure) []byte {
	if len(s.Blocks)+len(s.Tables)+len(s.Boxes)+len(s.Pages)+len(s.Provenance) == 0 {
		return nil
	}
	c := structureCoder{data: make([]byte, 0, 8*len(s.Blocks)+20*len(s.Boxes))}
	c.structure(s)
	return c.data
}

// decodeStructure is the inverse of encodeStructure.
func decodeStructure(data []byte) (assay.Structure, error) {
	var s assay.Structure
	c := structureCoder{data: data, decodes: true}
	if c.structure(&s); c.err == nil && len(c.data) > 0 {
		c.err = damaged("the structure has %d bytes too many", len(c.data))
	}
	return s, c.err
}

func structureHash(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:16]
}

// A structureCoder encodes or decodes a structure, by the same methods. Integers are signed varints,
// offsets the differences from the offset before, floats four bytes in little-endian order, and
// strings and lists begin with their length. Lists are in the order of the fields of
// assay.Structure.
type structureCoder struct {
	decodes bool
	data    []byte // encoded so far, or left to decode
	last    int    // the last offset
	err     error  // of decoding
}

func (c *structureCoder) structure(s *assay.Structure) {
	list(c, &s.Blocks, func(b *assay.Block) {
		text(c, &b.Kind)
		c.span(&b.Start, &b.End)
		c.number(&b.Level)
		text(c, &b.Label)
	})
	c.last = 0
	list(c, &s.Tables, func(t *assay.Table) {
		c.span(&t.Start, &t.End)
		list(c, &t.Cells, func(cell *assay.Cell) {
			c.span(&cell.Start, &cell.End)
			c.number(&cell.Row)
			c.number(&cell.Col)
			c.number(&cell.RowSpan)
			c.number(&cell.ColSpan)
			c.truth(&cell.Header)
		})
	})
	c.last = 0
	list(c, &s.Boxes, func(b *assay.Box) {
		c.offset(&b.Block)
		c.number(&b.Page)
		c.floats(&b.X0, &b.Y0, &b.X1, &b.Y1)
	})
	list(c, &s.Pages, func(p *assay.Page) {
		c.number(&p.Number)
		text(c, &p.Outcome)
		c.floats(&p.Width, &p.Height)
		text(c, &p.Detail)
	})
	c.last = 0
	list(c, &s.Provenance, func(p *assay.Provenance) {
		c.span(&p.Start, &p.End)
		text(c, &p.Kind)
		c.floats(&p.Confidence)
		text(c, &p.Model)
	})
}

func (c *structureCoder) span(start, end *int) {
	c.offset(start)
	c.offset(end)
}

// offset codes the difference from the offset before.
func (c *structureCoder) offset(n *int) {
	delta := *n - c.last
	c.number(&delta)
	*n = c.last + delta
	c.last = *n
}

func (c *structureCoder) number(n *int) {
	if !c.decodes {
		c.data = binary.AppendVarint(c.data, int64(*n))
		return
	}
	v, size := binary.Varint(c.data)
	if size <= 0 {
		c.fail()
		return
	}
	*n, c.data = int(v), c.data[size:]
}

func (c *structureCoder) truth(b *bool) {
	n := 0
	if *b {
		n = 1
	}
	c.number(&n)
	*b = n == 1
}

func (c *structureCoder) floats(all ...*float32) {
	for _, f := range all {
		if !c.decodes {
			c.data = binary.LittleEndian.AppendUint32(c.data, math.Float32bits(*f))
			continue
		}
		if len(c.data) < 4 {
			c.fail()
			return
		}
		*f, c.data = math.Float32frombits(binary.LittleEndian.Uint32(c.data)), c.data[4:]
	}
}

// length codes the number of elements that follow, each of at least one byte.
func (c *structureCoder) length(n int) int {
	c.number(&n)
	if c.decodes && (n < 0 || n > len(c.data)) {
		c.fail()
		return 0
	}
	return n
}

func (c *structureCoder) fail() {
	if c.err == nil {
		c.err = damaged("the structure ends in the middle")
	}
	c.data = nil
}

func text[T ~string](c *structureCoder, s *T) {
	n := c.length(len(*s))
	if !c.decodes {
		c.data = append(c.data, *s...)
		return
	}
	*s, c.data = T(c.data[:n]), c.data[n:]
}

func list[T any](c *structureCoder, all *[]T, code func(*T)) {
	n := c.length(len(*all))
	if c.decodes && n > 0 {
		*all = make([]T, n)
	}
	for i := range *all {
		if code(&(*all)[i]); c.err != nil {
			return
		}
	}
}

const structureQuery = `SELECT data, hash FROM structures WHERE version = ?`

// loadStructure reads the structure of one version of d.
func loadStructure(ctx context.Context, r Reader, number int64, d *assay.Document) error {
	return r.Each(ctx, structureQuery, []any{number}, func(scan func(...any) error) error {
		var data, hash []byte
		err := scan(&data, &hash)
		if err == nil && !bytes.Equal(structureHash(data), hash) {
			err = damaged("its structure was altered since it was stored; ingest it again with --verify")
		}
		if err == nil {
			d.Structure, err = decodeStructure(data)
		}
		if err != nil {
			return fmt.Errorf("document %s, %s: %w", d.ID, d.URI, err)
		}
		return nil
	})
}

// checkStructure checks that the spans of a structure lie in the text.
func checkStructure(d *assay.Document) error {
	if d.Text == "" {
		return nil // no text, or an entry that changes only the ACL
	}
	s := &d.Structure
	in := func(start, end int) bool { return 0 <= start && start <= end && end <= len(d.Text) }
	for i, b := range s.Blocks {
		if !in(b.Start, b.End) {
			return invalid("block %d is not a span of the text", i)
		}
	}
	for i, t := range s.Tables {
		if !in(t.Start, t.End) {
			return invalid("table %d is not a span of the text", i)
		}
		for k, c := range t.Cells {
			if !in(c.Start, c.End) {
				return invalid("cell %d of table %d is not a span of the text", k, i)
			}
		}
	}
	for i, b := range s.Boxes {
		if b.Block < 0 || b.Block >= len(s.Blocks) {
			return invalid("box %d is of no block", i)
		}
	}
	for i, p := range s.Provenance {
		if !in(p.Start, p.End) {
			return invalid("provenance %d is not a span of the text", i)
		}
	}
	return nil
}
