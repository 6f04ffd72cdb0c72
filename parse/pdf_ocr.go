package parse

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdfium"
	"github.com/assay-rag/assay/internal/pdflayout"
)

// maxScans is the number of pages of a document in which text is recognised.
const maxScans = 1000

// recognitionDPI is the resolution at which pages are rendered for recognition.
const recognitionDPI = 200

// isScan reports whether a page is an image: it has no text, or only a stamp of a few words on an
// image of most of the page, as courts and scanners add it.
func isScan(page *pdfium.Page) bool {
	const stamp = 200 // characters
	if !page.HasText() {
		return len(page.Images)+len(page.Drawings)+len(page.Rules) > 0
	}
	letters := 0
	for _, c := range page.Chars {
		if !unicode.IsSpace(c.Rune) {
			letters++
		}
	}
	if letters > stamp {
		return false
	}
	covered := float32(0)
	for _, img := range page.Images {
		covered = max(covered, (img.X1-img.X0)*(img.Y1-img.Y0))
	}
	return covered > .6*page.Width*page.Height
}

// recognize replaces the text of a page by the text that the OCR program finds in its image. It
// returns the page unchanged if it finds none.
func (p *pdf) recognize(page *pdfium.Page) (*pdfium.Page, error) {
	img, err := p.doc.Render(p.b.ctx, page.Number-1, recognitionDPI)
	if err != nil {
		return nil, err
	}
	p.b.step()
	words, err := p.b.recognize(img.Image, int(72*img.Scale+.5))
	if err != nil {
		return nil, err
	}
	var kept []word
	for paragraph := range paragraphs(words) {
		kept = append(kept, paragraph...)
	}
	if len(kept) == 0 {
		return page, nil
	}
	for i := range kept {
		w := &kept[i]
		w.x0, w.y0, w.x1, w.y1 = w.x0/img.Scale, w.y0/img.Scale, w.x1/img.Scale, w.y1/img.Scale
	}
	if p.recognized == nil {
		p.recognized = map[int][]word{}
	}
	p.recognized[page.Number] = kept
	scan := &pdfium.Page{Number: page.Number, Width: page.Width, Height: page.Height, Annotations: page.Annotations, Links: page.Links}
	addWords(scan, kept)
	return scan, nil
}

// addWords adds recognised words to a page as characters, so that the layout is found as in other
// pages. The words of a line are one run.
func addWords(page *pdfium.Page, words []word) {
	usual := usualHeight(words)
	for len(words) > 0 {
		n := 1
		for n < len(words) && words[n].line == words[0].line {
			n++
		}
		addLine(page, words[:n], usual)
		words = words[n:]
	}
}

func addLine(page *pdfium.Page, line []word, usual float32) {
	_, top, _, bottom := bounds(line)
	height := bottom - top
	if height < 1.3*usual && height > usual/1.3 {
		height = usual // its letters have the usual size, with or without ascenders and descenders
	}
	run := int32(len(page.Runs))
	page.Runs = append(page.Runs, pdfium.Run{Font: "recognized", Size: height, MCID: -1})
	for i, w := range line {
		if i > 0 {
			page.Chars = append(page.Chars, pdfium.Char{Rune: ' ', Run: run, Generated: true})
		}
		letters := []rune(w.text)
		step := (w.x1 - w.x0) / float32(len(letters))
		hyphen := i == len(line)-1 && isDivided(w.text)
		for k, r := range letters {
			x := w.x0 + step*float32(k)
			page.Chars = append(page.Chars, pdfium.Char{
				Rune: r, Run: run, X: x, Y: bottom, Box: pdfium.Box{X0: x, Y0: top, X1: x + step, Y1: bottom},
				Hyphen: hyphen && k == len(letters)-1,
			})
		}
		if i == len(line)-1 && !hyphen {
			page.Chars = append(page.Chars, pdfium.Char{Rune: '\n', Run: run, Generated: true})
		}
	}
}

// usualHeight returns the median height of words, each counted by its letters.
func usualHeight(words []word) float32 {
	var heights []float32
	for _, w := range words {
		for range utf8.RuneCountInString(w.text) {
			heights = append(heights, w.y1-w.y0)
		}
	}
	slices.Sort(heights)
	return heights[len(heights)/2]
}

// provenance returns the provenance of a block: nil unless it is on a page whose text is recognised.
func (p *pdf) provenance(boxes []pdflayout.Box) *assay.Provenance {
	for _, box := range boxes {
		words, ok := p.recognized[box.Page]
		if !ok {
			continue
		}
		inside := slices.DeleteFunc(slices.Clone(words), func(w word) bool {
			x, y := (w.x0+w.x1)/2, (w.y0+w.y1)/2
			return x < box.X0 || x > box.X1 || y < box.Y0 || y > box.Y1
		})
		if len(inside) == 0 {
			inside = words
		}
		return &assay.Provenance{Kind: assay.ProvenanceRecognized, Confidence: confidence(inside)}
	}
	return nil
}
