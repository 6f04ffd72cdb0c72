package pdflayout

import (
	"slices"

	"github.com/assay-rag/assay/internal/pdfium"
)

// Bounds of a figure.
const (
	minFigure      = 60     // points of width and height
	maxFigureShare = 0.6    // of the page's area; larger ones are backgrounds
	figureGap      = 8      // points between the drawings of a figure
	maxFigures     = 200    // of a page
	maxConsidered  = 20_000 // drawings of a page
)

// figures returns the places of images and of groups of at least maxDrawings drawings. The text in them
// is labels.
func (v *view) figures() []pdfium.Box {
	var out []pdfium.Box
	for _, group := range groupsOf(v.drawings) {
		if len(group) >= maxDrawings {
			out = append(out, boundsOf(group))
		}
	}
	for _, image := range v.page.Images {
		out = append(out, v.turn(image.Box))
	}
	out = slices.DeleteFunc(out, func(b pdfium.Box) bool {
		w, h := b.X1-b.X0, b.Y1-b.Y0
		return w < minFigure || h < minFigure || w*h > maxFigureShare*v.page.Width*v.page.Height
	})
	return out[:min(len(out), maxFigures)]
}

// groupsOf divides boxes where a horizontal and then a vertical gap separates them.
func groupsOf(boxes []pdfium.Box) [][]pdfium.Box {
	var out [][]pdfium.Box
	for _, rows := range apart(boxes, func(b pdfium.Box) (float32, float32) { return b.Y0, b.Y1 }) {
		out = append(out, apart(rows, func(b pdfium.Box) (float32, float32) { return b.X0, b.X1 })...)
	}
	return out
}

// apart divides boxes where no box covers a gap on one axis.
func apart(boxes []pdfium.Box, on func(pdfium.Box) (from, to float32)) [][]pdfium.Box {
	sorted := slices.Clone(boxes)
	slices.SortStableFunc(sorted, func(a, b pdfium.Box) int {
		x, _ := on(a)
		y, _ := on(b)
		return compare(x, y)
	})
	var out [][]pdfium.Box
	end := float32(0)
	for i, b := range sorted {
		from, to := on(b)
		if i == 0 || from > end+figureGap {
			out = append(out, nil)
			end = to
		}
		out[len(out)-1] = append(out[len(out)-1], b)
		end = max(end, to)
	}
	return out
}

func boundsOf(boxes []pdfium.Box) pdfium.Box {
	out := boxes[0]
	for _, b := range boxes[1:] {
		out = union(out, b)
	}
	return out
}
