package pdflayout

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/pdfium"
)

// A view is the characters of a page that run in one direction, and the page's rules, turned so that
// the text runs to the right.
type view struct {
	page  *pdfium.Page
	angle int // quarter turns clockwise of the text as shown
	chars []char
	rules []pdfium.Rule // of the page's main view only

	others   []*view // of the main view
	drawings []pdfium.Box
	fixed    bool // nine tenths of the characters are of a fixed width
}

// A char is a visible character or a blank.
type char struct {
	pdfium.Box // turned
	base       float32
	c          rune
	run        *pdfium.Run
	mcid       int
	space      bool // a blank, whose box does not count
	end        bool // a line end after it, or a hyphen that splits a word
	hyphen     bool
	fixed      bool
}

// skewed is the angle of text that is not horizontal or vertical.
const skewed = 4

// viewsOf returns the views of a page, that with the most characters first.
func viewsOf(p *pdfium.Page) []view {
	views := make([]view, skewed+1)
	for i := range views {
		views[i] = view{page: p, angle: i}
	}
	fixed := fixedFonts(p)
	for i := range p.Chars {
		c := &p.Chars[i]
		if c.Run < 0 || int(c.Run) >= len(p.Runs) {
			continue
		}
		run := &p.Runs[c.Run]
		v := &views[quarter(run.Angle)]
		v.add(*c, run)
		if n := len(v.chars); n > 0 {
			v.chars[n-1].fixed = run.Fixed || fixed[run.Font]
		}
	}
	views = slices.DeleteFunc(views, func(v view) bool { return len(v.chars) == 0 })
	slices.SortStableFunc(views, func(a, b view) int { return len(b.chars) - len(a.chars) })
	for i := range views {
		views[i].survey()
		if i > 0 {
			views[0].others = append(views[0].others, &views[i])
		}
	}
	if len(views) > 0 {
		main := &views[0]
		for _, r := range p.Rules {
			r.Box = main.turn(r.Box)
			main.rules = append(main.rules, r)
		}
	}
	return views
}

// survey sets the properties of the whole view.
func (v *view) survey() {
	for _, d := range v.page.Drawings[:min(len(v.page.Drawings), maxConsidered)] {
		v.drawings = append(v.drawings, v.turn(d))
	}
	n := 0
	for i := range v.chars {
		if v.chars[i].fixed {
			n++
		}
	}
	v.fixed = 10*n > 9*len(v.chars)
}

// quarter returns the quarter turns of an angle in degrees, or skewed.
func quarter(angle float32) int {
	turns := math.Round(float64(angle) / 90)
	if math.Abs(float64(angle)-90*turns) > 10 {
		return skewed
	}
	return int(turns) & 3
}

// fixedFonts returns the fonts of a page whose letters have one width, whatever their flags say.
func fixedFonts(p *pdfium.Page) map[string]bool {
	type widths struct {
		least, most float32 // in ems
		letters     map[rune]bool
	}
	fonts := map[string]*widths{}
	for i := range p.Chars {
		c := &p.Chars[i]
		if c.Run < 0 || int(c.Run) >= len(p.Runs) || c.Rune > unicode.MaxASCII || !unicode.IsLetter(c.Rune) {
			continue
		}
		run := &p.Runs[c.Run]
		w := max(c.Box.X1-c.Box.X0, c.Box.Y1-c.Box.Y0)
		if quarter(run.Angle)&1 == 0 {
			w = c.Box.X1 - c.Box.X0
		}
		w /= max(run.Size, 0.1)
		f := fonts[run.Font]
		if f == nil {
			f = &widths{w, w, map[rune]bool{}}
			fonts[run.Font] = f
		}
		f.least, f.most = min(f.least, w), max(f.most, w)
		f.letters[c.Rune] = true
	}
	fixed := map[string]bool{}
	for name, f := range fonts {
		const enough = 8 // different letters
		telling := hasAny(f.letters, "filjtI") && hasAny(f.letters, "mwMW")
		fixed[name] = telling && len(f.letters) >= enough && f.most-f.least < 0.03
	}
	return fixed
}

func hasAny(letters map[rune]bool, some string) bool {
	return strings.ContainsFunc(some, func(c rune) bool { return letters[c] })
}

func (v *view) add(c pdfium.Char, run *pdfium.Run) {
	switch {
	case c.Rune == '\n' || c.Rune == '\r':
		if n := len(v.chars); n > 0 {
			v.chars[n-1].end = true
		}
		return
	case c.Generated || c.Rune == ' ' || c.Rune == '\t' || c.Rune == 0xa0 || unicode.IsSpace(c.Rune):
		v.chars = append(v.chars, char{c: ' ', run: run, mcid: run.MCID, space: true})
		return
	case c.Rune == 0 || c.Rune == 0xfffe || c.Rune == 0xffff:
		c.Rune = unicode.ReplacementChar
	case c.Rune <= unicode.MaxLatin1 && isDingbats(run.Font):
		c.Rune = '•' // the code of the font, not a letter
	}
	out := char{Box: v.turn(c.Box), c: c.Rune, run: run, mcid: run.MCID, end: c.Hyphen, hyphen: c.Hyphen}
	out.base = v.turn(pdfium.Box{X0: c.X, Y0: c.Y, X1: c.X, Y1: c.Y}).Y0
	if math.IsNaN(float64(out.X0 + out.X1 + out.Y0 + out.Y1 + out.base)) {
		out.Box, out.base = pdfium.Box{}, 0
	}
	if n := len(v.chars); n > 0 && isSwapped(&v.chars[n-1], &out) {
		v.chars[n-1].c, out.c = out.c, v.chars[n-1].c
	}
	v.chars = append(v.chars, out)
}

// isDingbats reports whether a font has pictures in the place of letters.
func isDingbats(font string) bool {
	font = strings.ToLower(font)
	return strings.Contains(font, "dingbats") || strings.Contains(font, "wingdings") || strings.Contains(font, "webdings")
}

// isSwapped reports whether two characters are the letters of one ligature in the wrong order: PDFium
// turns them like the letters of a line that runs to the left. The only ligature that fonts always
// have is lam with alef.
func isSwapped(a, b *char) bool {
	return b.c == 'ل' && strings.ContainsRune("اأإآٱ", a.c) && a.Box == b.Box && !a.space
}

// turn converts a box of the page to the coordinates of the view.
func (v *view) turn(b pdfium.Box) pdfium.Box {
	w, h := v.page.Width, v.page.Height
	switch v.angle {
	case 1:
		return pdfium.Box{X0: b.Y0, Y0: w - b.X1, X1: b.Y1, Y1: w - b.X0}
	case 2:
		return pdfium.Box{X0: w - b.X1, Y0: h - b.Y1, X1: w - b.X0, Y1: h - b.Y0}
	case 3:
		return pdfium.Box{X0: h - b.Y1, Y0: b.X0, X1: h - b.Y0, Y1: b.X1}
	}
	return b
}

// back converts a box of the view to the coordinates of the page, which has a width and a height.
func back(b pdfium.Box, angle int, w, h float32) pdfium.Box {
	switch angle {
	case 1:
		return pdfium.Box{X0: w - b.Y1, Y0: b.X0, X1: w - b.Y0, Y1: b.X1}
	case 2:
		return pdfium.Box{X0: w - b.X1, Y0: h - b.Y1, X1: w - b.X0, Y1: h - b.Y0}
	case 3:
		return pdfium.Box{X0: b.Y0, Y0: h - b.X1, X1: b.Y1, Y1: h - b.X0}
	}
	return b
}

// A fragment is text on one baseline without a wide gap.
type fragment struct {
	pdfium.Box         // from the height of capitals to the descent
	base       float32 // y of the baseline
	size       float32 // of most characters
	text       string
	chars      int // without blanks
	bold       int // characters
	italic     int
	fixed      int
	rtl        int
	artifact   bool
	hidden     bool
	mcid       int
	color      uint32
	font       string // of most characters of the size
	space      bool   // a blank follows
	hyphen     bool   // ends in a hyphen that splits a word
	seq        int    // position in the stream

	indent float32      // x of the text after a list marker; 0: no marker
	table  *placedTable // a table in the place of text
}

// wideGap is the width in ems of a gap that divides fragments. The blanks of justified text are
// narrower, apart from a few; the gaps between columns of text are 1.5 ems and more.
const wideGap = 1.0

// fragments divides characters into fragments, in the order of the stream.
func fragments(chars []char, tagged bool) []fragment {
	var out []fragment
	var f fragmenter
	flush := func() {
		if frag, ok := f.fragment(); ok {
			frag.seq = len(out)
			out = append(out, frag)
		}
		f = fragmenter{}
	}
	for i := range chars {
		c := &chars[i]
		if !c.space && f.breaks(c, tagged) {
			flush()
		}
		f.add(c)
		if c.end {
			flush()
		}
	}
	flush()
	return out
}

// A fragmenter collects the characters of a fragment.
type fragmenter struct {
	chars []*char
	last  *char // that is no blank
}

// breaks reports whether c cannot continue the fragment.
func (f *fragmenter) breaks(c *char, tagged bool) bool {
	l := f.last
	if l == nil {
		return false
	}
	if tagged && c.mcid != l.mcid || c.run.Artifact != l.run.Artifact {
		return true
	}
	size := max(l.run.Size, c.run.Size, 1)
	gap := max(c.X0-l.X1, l.X0-c.X1)
	shift := abs(c.base - l.base)
	switch {
	case gap > wideGap*size:
		return true
	case shift > 0.6*size:
		return true
	case shift > 0.25*size:
		return gap > 0.5*size || c.X1 < l.X0 // a superscript follows closely
	}
	return false
}

func (f *fragmenter) add(c *char) {
	f.chars = append(f.chars, c)
	if !c.space {
		f.last = c
	}
}

// fragment returns the fragment of the characters. It is false if they are blank.
func (f *fragmenter) fragment() (fragment, bool) {
	if f.last == nil {
		return fragment{}, false
	}
	sizes := map[float32]int{}
	for _, c := range f.chars {
		if !c.space {
			sizes[c.run.Size]++
		}
	}
	out := fragment{mcid: f.last.mcid, artifact: f.last.run.Artifact, hidden: f.last.run.Invisible, hyphen: f.last.hyphen, color: f.last.run.Color}
	for size, n := range sizes {
		if m := sizes[out.size]; n > m || n == m && size > out.size {
			out.size = size
		}
	}
	var text strings.Builder
	blank := false
	first := true
	for _, c := range f.chars {
		if c.space {
			blank = text.Len() > 0
			continue
		}
		if blank {
			text.WriteByte(' ')
			blank = false
		}
		text.WriteRune(c.c)
		out.count(c)
		if c.run.Size == out.size && first {
			out.base, out.font, first = c.base, c.run.Font, false
		}
		box := pdfium.Box{X0: c.X0, X1: c.X1, Y0: c.base - 0.72*c.run.Size, Y1: c.base + 0.2*c.run.Size}
		if out.chars == 1 {
			out.Box = box
		} else {
			out.Box = union(out.Box, box)
		}
	}
	out.text, out.space = text.String(), blank
	return out, true
}

func (f *fragment) count(c *char) {
	f.chars++
	if c.run.Weight >= 600 {
		f.bold++
	}
	if c.run.Italic {
		f.italic++
	}
	if c.fixed {
		f.fixed++
	}
	if isRTL(c.c) {
		f.rtl++
	}
}

// isRTL reports whether a letter is of a script that runs to the left.
func isRTL(c rune) bool {
	return unicode.In(c, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko) && unicode.IsLetter(c)
}

func union(a, b pdfium.Box) pdfium.Box {
	return pdfium.Box{X0: min(a.X0, b.X0), Y0: min(a.Y0, b.Y0), X1: max(a.X1, b.X1), Y1: max(a.Y1, b.Y1)}
}

func abs(f float32) float32 {
	if f < 0 {
		return -f
	}
	return f
}
