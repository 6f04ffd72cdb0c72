package pdfium

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// Limits of a page. A page over the limit of characters is an ErrTooLarge; paths beyond theirs are
// given as drawings or left out, because they only help to find tables.
const (
	maxChars      = 1 << 20
	maxObjects    = 200_000
	maxSegments   = 200_000 // of all paths
	maxPath       = 2_000   // segments of a path that may be rules
	maxRules      = 50_000
	maxFormDepth  = 12
	maxAnnots     = 20_000
	maxElements   = 200_000
	maxTreeDepth  = 64
	notMarked     = -1
	typePath      = 2
	typeImage     = 3
	typeForm      = 5
	renderModeNo  = 3 // neither fill nor stroke
	renderModeTwo = 2 // fill and stroke, as for bold text
)

// A pageReader reads one page.
type pageReader struct {
	ctx   context.Context
	in    *instance
	index int
	doc   handle
	form  handle
	page  handle
	out   Page

	left, bottom, right, top float32 // of the page's box in its own coordinates

	runs     map[handle]int32 // by text object
	fonts    map[handle]fontInfo
	objects  int
	segments int
	shapes   int32 // rectangles so far
	elements int
}

// A fontInfo is the style of a font.
type fontInfo struct {
	name                 string
	weight               int
	italic, fixed, serif bool
}

func (r *pageReader) read() error {
	r.runs, r.fonts = map[handle]int32{}, map[handle]fontInfo{}
	r.geometry()
	for _, step := range []func() error{r.readChars, r.readObjects, r.readAnnotations, r.readStructure} {
		if err := cmp.Or(step(), r.in.err, r.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// geometry reads the size and rotation of the page.
func (r *pageReader) geometry() {
	page := uint64(r.page)
	r.out.Number = r.index + 1
	r.out.Width = api.DecodeF32(r.in.get("FPDF_GetPageWidthF", page))
	r.out.Height = api.DecodeF32(r.in.get("FPDF_GetPageHeightF", page))
	r.out.Rotation = int(r.in.get("FPDFPage_GetRotation", page)) & 3
	r.in.get("FPDF_GetPageBoundingBox", page, r.in.at(0))
	r.left, r.top, r.right, r.bottom = r.in.float(0), r.in.float(4), r.in.float(8), r.in.float(12)
}

// shown converts a point of the page's own coordinates, which have their origin at the lower left,
// to those of Page.
func (r *pageReader) shown(x, y float32) (float32, float32) {
	switch r.out.Rotation {
	case 1:
		return y - r.bottom, x - r.left
	case 2:
		return r.right - x, y - r.bottom
	case 3:
		return r.top - y, r.right - x
	default:
		return x - r.left, r.top - y
	}
}

// box converts a rectangle.
func (r *pageReader) box(x0, y0, x1, y1 float32) Box {
	x0, y0 = r.shown(x0, y0)
	x1, y1 = r.shown(x1, y1)
	return Box{min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)}
}

// readChars reads the characters of the page and their runs.
func (r *pageReader) readChars() error {
	text := uint64(r.in.call(r.ctx, "FPDFText_LoadPage", uint64(r.page)))
	if text == 0 {
		return cmp.Or(r.in.err, ErrPage)
	}
	n := int(int32(r.in.call(r.ctx, "FPDFText_CountChars", text)))
	if n > maxChars {
		return fmt.Errorf("%w: %d characters on a page, want at most %d", ErrTooLarge, n, maxChars)
	}
	r.out.Chars = make([]Char, 0, max(n, 0))
	run := int32(-1)
	r.in.batch(r.ctx, "chars", []uint64{text}, n, charSize, func(i int, c record) bool {
		run = r.char(text, uint64(i), c, run)
		return r.ctx.Err() == nil
	})
	r.out.Chars = mendChars(r.out.Chars)
	r.in.call(r.ctx, "FPDFText_ClosePage", text)
	return nil
}

// char reads the character at an index. It returns its run, which is that of the character before
// it if it is generated.
func (r *pageReader) char(text, i uint64, from record, run int32) int32 {
	const softHyphen = 0x02 // PDFium's code for a hyphen that splits a word
	c := Char{Rune: rune(from.word(charRune)), Run: run, Generated: from.int(charGenerated) == 1}
	switch c.Rune {
	case '\r':
		return run
	case softHyphen, 0xad, '-':
		if from.int(charHyphen) == 1 || c.Rune == softHyphen {
			c.Rune, c.Hyphen = '-', true
		}
	}
	c.Generated = c.Generated && (c.Rune == ' ' || c.Rune == '\n')
	if !c.Generated {
		if object := handle(from.word(charObject)); object != 0 {
			run = r.run(text, i, object)
			c.Run = run
		}
		c.Box = r.box(from.float(charBox), from.float(charBox+12), from.float(charBox+8), from.float(charBox+4))
		c.X, c.Y = r.shown(float32(from.double(charX)), float32(from.double(charY)))
	}
	r.out.Chars = append(r.out.Chars, c)
	return run
}

// run returns the index of the run of a text object, of which the character at index i is the
// first.
func (r *pageReader) run(text, i uint64, object handle) int32 {
	if n, ok := r.runs[object]; ok {
		return n
	}
	n := int32(len(r.out.Runs))
	r.runs[object] = n
	font := r.font(handle(r.in.get("FPDFTextObj_GetFont", uint64(object))))
	run := Run{Font: font.name, Weight: font.weight, Italic: font.italic, Fixed: font.fixed, Serif: font.serif}
	run.MCID = int(int32(r.in.get("FPDFPageObj_GetMarkedContentID", uint64(object))))
	run.Artifact = r.artifact(object)
	run.Size = float32(api.DecodeF64(r.in.get("FPDFText_GetFontSize", text, i)))
	if r.in.get("FPDFText_GetMatrix", text, i, r.in.at(0)) != 0 {
		a, b, c, d := r.in.float(0), r.in.float(4), r.in.float(8), r.in.float(12)
		if scale := float32(math.Hypot(float64(c), float64(d))); scale > 0 {
			run.Size *= scale
		}
		run.Angle = r.angle(a, b)
	}
	switch mode := int32(r.in.get("FPDFTextObj_GetTextRenderMode", uint64(object))); mode {
	case renderModeNo:
		run.Invisible = true
	case renderModeTwo:
		run.Weight = max(run.Weight, 700)
	}
	run.Color = r.color("FPDFPageObj_GetFillColor", object)
	r.out.Runs = append(r.out.Runs, run)
	return n
}

// angle returns the direction of the vector (a, b) as shown, in degrees clockwise.
func (r *pageReader) angle(a, b float32) float32 {
	degrees := -math.Atan2(float64(b), float64(a)) * 180 / math.Pi
	degrees = math.Mod(degrees+float64(90*r.out.Rotation)+720, 360)
	if degrees > 359.99 {
		degrees = 0
	}
	return float32(math.Round(degrees*100) / 100)
}

func (r *pageReader) color(function string, object handle) uint32 {
	if r.in.get(function, uint64(object), r.in.at(0), r.in.at(4), r.in.at(8), r.in.at(12)) == 0 {
		return 0
	}
	return r.in.integer(0)&255<<24 | r.in.integer(4)&255<<16 | r.in.integer(8)&255<<8 | r.in.integer(12)&255
}

// artifact reports whether the object is marked as an artifact.
func (r *pageReader) artifact(object handle) bool {
	n := int32(r.in.get("FPDFPageObj_CountMarks", uint64(object)))
	for i := range min(n, 8) {
		mark := r.in.get("FPDFPageObj_GetMark", uint64(object), uint64(i))
		if mark == 0 {
			continue
		}
		const room = 64
		if r.in.get("FPDFPageObjMark_GetName", mark, r.in.at(8), room, r.in.at(0)) == 0 {
			continue
		}
		if decodeUTF16(r.in.read(r.in.scratch+8, int(min(r.in.integer(0), room)))) == "Artifact" {
			return true
		}
	}
	return false
}

// font returns the style of a font.
func (r *pageReader) font(font handle) fontInfo {
	if f, ok := r.fonts[font]; ok || font == 0 {
		return f
	}
	const (
		fixed     = 1 << 0
		serif     = 1 << 1
		italic    = 1 << 6
		forceBold = 1 << 18
	)
	flags := int32(r.in.get("FPDFFont_GetFlags", uint64(font)))
	if flags < 0 {
		flags = 0
	}
	f := fontInfo{
		name:   fontName(r.in.text(r.ctx, "FPDFFont_GetBaseFontName", uint64(font))),
		italic: flags&italic != 0, fixed: flags&fixed != 0, serif: flags&serif != 0,
	}
	lower := strings.ToLower(f.name)
	f.italic = f.italic || strings.Contains(lower, "italic") || strings.Contains(lower, "oblique")
	f.weight = fontWeight(lower)
	if f.weight == 0 {
		f.weight = max(0, int(int32(r.in.get("FPDFFont_GetWeight", uint64(font)))))
	}
	if flags&forceBold != 0 {
		f.weight = max(f.weight, 700)
	}
	r.fonts[font] = f
	return f
}

// fontName returns the name of a font without the prefix of a subset, six letters and "+".
func fontName(name string) string {
	if len(name) > 7 && name[6] == '+' {
		return name[7:]
	}
	return name
}

// fontWeight returns the weight that the name of a font, in lower case, tells, or 0.
func fontWeight(name string) int {
	for _, w := range []struct {
		word   string
		weight int
	}{
		{"semibold", 600}, {"semi-bold", 600}, {"demibold", 600}, {"demi", 600}, {"extrabold", 800}, {"ultrabold", 800},
		{"black", 900}, {"heavy", 900}, {"bold", 700}, {"cmbx", 700}, {"sfbx", 700}, {"medi", 500}, {"light", 300}, {"thin", 200},
	} {
		if strings.Contains(name, w.word) {
			return w.weight
		}
	}
	return 0
}
