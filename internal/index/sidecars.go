package index

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// vectorsSections is the number of sections in a vectors file. The layout of the section is
// described in vectors.go.
const vectorsSections = 1

func openVectorsFile(b []byte, chunks uint32) (*vectors, error) {
	sections, err := unframe(b, vectorsFile, vectorsSections)
	if err != nil {
		return nil, err
	}
	return openVectors(sections[0], chunks)
}

// makeSidecar makes a sidecar of the rows that write adds.
func makeSidecar(to *fileSink, s *segment, model string, dimensions int, centre []float32, write func(*vectorsWriter) error) (*sidecar, error) {
	f, err := to.make(vectorsSuffix, func(w io.Writer) error {
		frame := newFrameWriter(w, vectorsFile)
		vw := newVectorsWriter(frame.section(), model, dimensions, centre)
		if err := write(vw); err != nil {
			return err
		}
		if err := vw.finish(); err != nil {
			return err
		}
		return frame.finish()
	})
	if err != nil {
		return nil, err
	}
	v, err := f.vectors(uint32(s.rows))
	if err != nil {
		return nil, fmt.Errorf("vectors just written cannot be read: %w", err)
	}
	return &sidecar{file: f, vectors: v}, nil
}

// A movedSidecar is a sidecar that is being joined with others. newRow has the new numbers of its
// rows; if it is nil, the rows keep their numbers.
type movedSidecar struct {
	*sidecar
	newRow []uint32
}

// row returns the new row of vector i, or gone if the vector is no longer live.
func (m movedSidecar) row(i int) uint32 {
	row := m.vectors.chunkOf(i)
	switch {
	case m.replaced.has(row):
		return dropped
	case m.newRow != nil:
		return m.newRow[row]
	}
	return row
}

// joinSidecars joins several sidecars of one model into one, for segment s. It returns nil if no
// vector is left.
func joinSidecars(ctx context.Context, parts []movedSidecar, s *segment, to *fileSink) (*sidecar, error) {
	centre, left := centreOf(parts)
	if left == 0 {
		return nil, nil
	}
	model := parts[0].vectors
	return makeSidecar(to, s, model.model(), model.dimensions(), centre, func(w *vectorsWriter) error {
		next := make([]int, len(parts)) // next vector of each part
		for n := 0; ; n++ {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			best, bestRow := -1, dropped
			for i, p := range parts {
				for next[i] < p.vectors.rows() && p.row(next[i]) == dropped {
					next[i]++
				}
				if next[i] < p.vectors.rows() && p.row(next[i]) < bestRow {
					best, bestRow = i, p.row(next[i])
				}
			}
			if best < 0 {
				return nil
			}
			if err := w.addRow(parts[best].vectors, next[best], bestRow); err != nil {
				return err
			}
			next[best]++
		}
	})
}

// wellCentred is the minimum number of vectors whose mean serves as the centre for all vectors of
// the model. With a single centre in the index, rows can be copied between sidecars and a query is
// prepared only once.
const wellCentred = 1000

// centreOf returns the centre for the joint codes of several sidecars, and the number of vectors
// left in them. It keeps the centre of the largest sidecar if that has enough vectors. Otherwise it
// computes the centre from a sample of all vectors.
func centreOf(parts []movedSidecar) (centre []float32, left int) {
	const sample = 10_000
	largest, most := 0, 0
	for i, p := range parts {
		n := 0
		for j := range p.vectors.rows() {
			if p.row(j) != dropped {
				n++
			}
		}
		if n > most {
			largest, most = i, n
		}
		left += n
	}
	if left == 0 {
		return nil, 0
	}
	if most >= wellCentred || most == left {
		return parts[largest].vectors.centre(), left
	}
	var c centroid
	step := max(1, left/sample)
	var values []float32
	for _, p := range parts {
		for j := 0; j < p.vectors.rows(); j += step {
			if p.row(j) != dropped {
				values = p.vectors.values(j, values)
				c.add(values)
			}
		}
	}
	return c.centre(parts[largest].vectors.dimensions()), left
}

// moved returns v's sidecars of a model with the new numbers of v's rows.
func (v *view) moved(model string, newRow []uint32) []movedSidecar {
	var list []movedSidecar
	for _, c := range v.sidecars {
		if c.vectors.model() == model {
			list = append(list, movedSidecar{c, newRow})
		}
	}
	return list
}

// modelsOf returns the models that the views have vectors of. Nil views are ignored.
func modelsOf(views []*view) []string {
	var models []string
	for _, v := range views {
		if v == nil {
			continue
		}
		for _, c := range v.sidecars {
			models = append(models, c.vectors.model())
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// addSidecar returns v with an additional sidecar, whose vectors replace those of the same rows and
// model.
func (v *view) addSidecar(added *sidecar) *view {
	list := slices.Clone(v.sidecars)
	for i, c := range list {
		if c.vectors.model() != added.vectors.model() {
			continue
		}
		var replaced bitset
		for n := range added.vectors.rows() {
			row := added.vectors.chunkOf(n)
			if added.replaced.has(row) || !c.vectors.has().has(row) || c.replaced.has(row) {
				continue
			}
			if replaced == nil {
				replaced = newBitset(v.segment.rows)
				copy(replaced, c.replaced)
			}
			replaced.set(row)
		}
		if replaced != nil {
			list[i] = &sidecar{file: c.file, vectors: c.vectors, replaced: replaced}
		}
	}
	return v.withSidecars(append(list, added))
}

// withoutModels returns v without the vectors of the models for which drop returns true.
func (v *view) withoutModels(drop func(model string) bool) *view {
	if !slices.ContainsFunc(v.sidecars, func(c *sidecar) bool { return drop(c.vectors.model()) }) {
		return v
	}
	return v.withSidecars(slices.DeleteFunc(slices.Clone(v.sidecars), func(c *sidecar) bool { return drop(c.vectors.model()) }))
}
