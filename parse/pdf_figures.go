package parse

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"runtime"
	"slices"
	"sync"

	"github.com/assay-rag/assay/internal/pdfium"
	"github.com/assay-rag/assay/internal/pdflayout"
)

// A pdfFigure is an image on a page with text.
type pdfFigure struct {
	pdflayout.Box
	alt     string  // of the structure tree
	written bool    // the text layer has text on it
	share   float32 // of the page
	texts   []recognizedText
}

// figures returns the images of a page that may be figures, from top to bottom. Images that overlap
// are one figure. Images of less than a twentieth of the page are ornaments.
func figures(page *pdfium.Page) []pdfFigure {
	alts := map[int]string{}
	for _, root := range page.Structure {
		alternatives(root, alts)
	}
	var list []pdfFigure
	for _, img := range page.Images {
		f := pdfFigure{Box: pdflayout.Box{Page: page.Number, Box: img.Box}, alt: alts[img.MCID]}
		list = slices.DeleteFunc(list, func(other pdfFigure) bool {
			if !boxesMeet(f.Box.Box, other.Box.Box) {
				return false
			}
			f.X0, f.Y0, f.X1, f.Y1 = min(f.X0, other.X0), min(f.Y0, other.Y0), max(f.X1, other.X1), max(f.Y1, other.Y1)
			if f.alt == "" {
				f.alt = other.alt
			}
			return true
		})
		list = append(list, f)
	}
	for i := range list {
		f := &list[i]
		f.written = hasTextIn(page, f.Box.Box)
		f.share = (f.X1 - f.X0) * (f.Y1 - f.Y0) / (page.Width * page.Height)
	}
	list = slices.DeleteFunc(list, func(f pdfFigure) bool {
		isBackground := f.written && f.share > .7
		return isBackground || f.alt == "" && f.share < .05
	})
	slices.SortStableFunc(list, func(a, b pdfFigure) int {
		switch {
		case a.Y0 < b.Y0:
			return -1
		case a.Y0 > b.Y0:
			return 1
		}
		return 0
	})
	return list
}

// hasTextIn reports whether the text layer has more than a few characters in a box.
func hasTextIn(page *pdfium.Page, box pdfium.Box) bool {
	const few = 20
	n := 0
	for _, c := range page.Chars {
		x, y := (c.Box.X0+c.Box.X1)/2, (c.Box.Y0+c.Box.Y1)/2
		if !c.Generated && box.X0 < x && x < box.X1 && box.Y0 < y && y < box.Y1 {
			n++
		}
	}
	return n > few
}

// alternatives collects the alternative descriptions of an element's marked content.
func alternatives(e *pdfium.Element, alts map[int]string) {
	for _, child := range e.Children {
		switch {
		case child.Element != nil:
			alternatives(child.Element, alts)
		case e.Alt != "":
			alts[child.MCID] = e.Alt
		}
	}
}

func boxesMeet(a, b pdfium.Box) bool { return a.X0 < b.X1 && b.X0 < a.X1 && a.Y0 < b.Y1 && b.Y0 < a.Y1 }

// writeFigures writes the figures that are on a page before the one of box, or on the same page above
// it. Each is cut out of the rendered page, since an image object may be a part of a figure.
func (p *pdf) writeFigures(before pdflayout.Box) {
	for len(p.figures) > 0 && !p.b.canceled() {
		f := p.figures[0]
		if f.Page > before.Page || f.Page == before.Page && f.Y0 >= before.Y0 {
			return
		}
		p.figures = p.figures[1:]
		p.b.page = f.Page
		pic := picture{alt: letters(f.alt), read: true, texts: f.texts, box: func() {
			p.b.box(f.Page, f.X0, f.Y0, f.X1, f.Y1)
		}}
		pic.shown = p.colorCutOut(f)
		p.b.picture(pic)
	}
}

// Bounds of the figures of a document in which text is recognised. With them a manual of hundreds of
// pages is read in seconds.
const (
	leastRecognized = .1 // of a page
	mostRecognized  = 5  // pages that the figures cover together
)

// recognizeFigures recognises the text of the larger figures, several at a time.
func (p *pdf) recognizeFigures() {
	if p.src.ocr == nil {
		return
	}
	todo, all := recognizable(p.figures)
	if !all {
		p.b.note(fmt.Sprintf("only the first %d figures are searched for text, which cover %d pages together", len(todo), mostRecognized))
	}
	for list := range slices.Chunk(todo, runtime.GOMAXPROCS(0)) {
		if p.b.canceled() {
			return
		}
		if p.b.outOfTime() || p.b.slowImages >= maxSlowImages {
			p.b.note("not all figures are searched for text, because others took too long")
			return
		}
		p.recognizeTogether(list)
	}
}

// recognizable returns the figures in which text is to be recognised, and whether these are all of
// those that are large enough.
func recognizable(figures []pdfFigure) (list []*pdfFigure, all bool) {
	covered := float32(0)
	for i := range figures {
		f := &figures[i]
		if f.written || f.share < leastRecognized {
			continue
		}
		if covered += f.share; covered > mostRecognized {
			return list, false
		}
		list = append(list, f)
	}
	return list, true
}

// recognizeTogether recognises the text of figures at the same time. A figure that was recognised
// before, such as a logo, has none.
func (p *pdf) recognizeTogether(list []*pdfFigure) {
	failures := make([]error, len(list))
	var work sync.WaitGroup
	for i, f := range list {
		data, img := p.cutOut(*f)
		if data == nil || !p.b.isNewImage(sha256.Sum256(data)) {
			continue
		}
		work.Go(func() {
			limited, cancel := context.WithTimeout(p.b.ctx, p.b.imageTime)
			defer cancel()
			words, err := p.src.ocr.recognizeUpright(limited, toGray(img), recognitionDPI)
			f.texts, failures[i] = recognizedTexts(words), err
		})
	}
	work.Wait()
	p.b.step()
	for _, err := range failures {
		if err == nil {
			continue
		}
		if errors.Is(err, context.DeadlineExceeded) {
			p.b.slowImages++
		}
		p.b.note("a figure is not searched for text: " + err.Error())
	}
}

// cutOut returns the part of the rendered page that shows a figure, encoded and as an image, or nil
// if the page cannot be rendered, which is noted.
func (p *pdf) cutOut(f pdfFigure) ([]byte, image.Image) {
	if p.rendered == nil || p.renderedPage != f.Page {
		img, err := p.doc.Render(p.b.ctx, f.Page-1, recognitionDPI)
		p.b.step()
		if err != nil {
			p.b.note("a figure is not searched for text: " + err.Error())
			return nil, nil
		}
		p.rendered, p.renderedPage = &img, f.Page
	}
	scale := p.rendered.Scale
	area := image.Rect(int(f.X0*scale), int(f.Y0*scale), int(f.X1*scale)+1, int(f.Y1*scale)+1)
	area = area.Intersect(p.rendered.Image.Bounds())
	if area.Empty() {
		return nil, nil
	}
	img := p.rendered.Image.SubImage(area)
	_, data, err := encodeForModel(img)
	if err != nil {
		p.b.note("a figure is not searched for text: " + err.Error())
		return nil, nil
	}
	return data, img
}

// modelDPI renders an A4 page about as large as models read images.
const modelDPI = 144

// colorCutOut returns the part of the page in colour that shows a figure, for a model. It is nil if
// images are not wanted or the page cannot be rendered, which is noted.
func (p *pdf) colorCutOut(f pdfFigure) []byte {
	if !p.src.images {
		return nil
	}
	if p.colored == nil || p.coloredPage != f.Page {
		img, err := p.doc.RenderColor(p.b.ctx, f.Page-1, modelDPI)
		if err != nil {
			p.b.note("a figure cannot be described: " + err.Error())
			return nil
		}
		p.colored, p.coloredPage = &img, f.Page
	}
	data, err := figureIn(p.colored.Image, p.colored.Scale, f)
	if err != nil {
		p.b.note("a figure cannot be described: " + err.Error())
	}
	return data
}

// figureIn returns the part of a rendered page that shows a figure, or nil if there is none. Scale is
// in pixels per point.
func figureIn(page interface {
	image.Image
	SubImage(r image.Rectangle) image.Image
}, scale float32, f pdfFigure) ([]byte, error) {
	area := image.Rect(int(f.X0*scale), int(f.Y0*scale), int(f.X1*scale)+1, int(f.Y1*scale)+1)
	area = area.Intersect(page.Bounds())
	if area.Empty() {
		return nil, nil
	}
	_, data, err := encodeForModel(page.SubImage(area))
	return data, err
}
