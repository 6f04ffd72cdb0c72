package pdflayout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdfium"
)

// A sheet writes a page of 600 by 800 points.
type sheet struct{ pdfium.Page }

func newSheet(number int) *sheet {
	return &sheet{pdfium.Page{Number: number, Width: 600, Height: 800}}
}

// A font is the style of text.
type font struct {
	size   float32
	weight int
	name   string
	angle  float32
	mcid   int
	fixed  bool
}

var regular = font{size: 10, weight: 400, name: "Serif", mcid: -1}

func (f font) sized(size float32) font { f.size = size; return f }
func (f font) bold() font              { f.weight = 700; return f }
func (f font) tagged(mcid int) font    { f.mcid = mcid; return f }

// width returns the width of a character in ems.
func (f font) width(c rune) float32 {
	switch {
	case f.fixed:
		return 0.5
	case c == 'i':
		return 0.45
	case c == 'w':
		return 0.55
	}
	return 0.5
}

// text writes a line in a style from x on the baseline y. A line of a script that runs to the left
// ends at x.
func (s *sheet) text(x, y float32, f font, text string) {
	run := int32(len(s.Runs))
	s.Runs = append(s.Runs, pdfium.Run{Font: f.name, Size: f.size, Weight: f.weight, Angle: f.angle, MCID: f.mcid, Fixed: f.fixed})
	for _, c := range text {
		step := f.width(c) * f.size
		char := pdfium.Char{Rune: c, Run: run}
		switch {
		case f.angle == 90:
			char.Box, char.X, char.Y = pdfium.Box{X0: x - 0.2*f.size, Y0: y, X1: x + 0.8*f.size, Y1: y + step}, x, y
			y += step
		case unicode.In(c, unicode.Arabic):
			x -= step
			char.Box, char.X, char.Y = pdfium.Box{X0: x, Y0: y - 0.8*f.size, X1: x + step, Y1: y + 0.2*f.size}, x, y
		default:
			char.Box, char.X, char.Y = pdfium.Box{X0: x, Y0: y - 0.8*f.size, X1: x + step, Y1: y + 0.2*f.size}, x, y
			x += step
		}
		s.Chars = append(s.Chars, char)
	}
	s.Chars = append(s.Chars, pdfium.Char{Rune: '\n', Run: run, Generated: true})
}

// lines writes lines of regular text with a distance of 12 points.
func (s *sheet) lines(x, y float32, texts ...string) {
	for i, t := range texts {
		s.text(x, y+12*float32(i), regular, t)
	}
}

func (s *sheet) rule(x0, y0, x1, y1 float32) {
	s.Rules = append(s.Rules, pdfium.Rule{Box: pdfium.Box{X0: x0, Y0: y0, X1: x1, Y1: y1}, Width: 1, Color: 0xff})
}

// grid draws the rules of a table.
func (s *sheet) grid(xs, ys []float32) {
	for _, x := range xs {
		s.rule(x, ys[0], x, ys[len(ys)-1])
	}
	for _, y := range ys {
		s.rule(xs[0], y, xs[len(xs)-1], y)
	}
}

// analyze returns the blocks of pages.
func analyze(t testing.TB, outline []pdfium.OutlineItem, sheets ...*sheet) []Block {
	t.Helper()
	a := New()
	for _, s := range sheets {
		if err := a.Add(t.Context(), &s.Page); err != nil {
			t.Fatal(err)
		}
	}
	blocks, err := a.Blocks(t.Context(), outline)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// shape returns a line for each block: its kind, level and text, and the cells of a table.
func shape(blocks []Block) string {
	var out strings.Builder
	for _, b := range blocks {
		if b.Table == nil {
			fmt.Fprintf(&out, "%s%s: %q\n", b.Kind, levelOf(b), b.Text)
			continue
		}
		for _, c := range b.Table.Cells {
			fmt.Fprintf(&out, "%d,%d", c.Row, c.Col)
			if c.RowSpan > 1 || c.ColSpan > 1 {
				fmt.Fprintf(&out, "+%dx%d", c.RowSpan, c.ColSpan)
			}
			if c.Header {
				out.WriteString(" header")
			}
			fmt.Fprintf(&out, ": %q\n", c.Text)
		}
	}
	return out.String()
}

func levelOf(b Block) string {
	if b.Level == 0 {
		return ""
	}
	return fmt.Sprint(" ", b.Level)
}

// prose is a line that fills a column of 290 points.
const prose = "the quick brown fox jumps over the lazy dogs and runs away"

// A pageCase is a page and the shape of its blocks.
type pageCase struct {
	name  string
	write func(s *sheet)
	want  string
}

var textCases = []pageCase{
	{"lines become paragraphs", func(s *sheet) {
		s.lines(50, 100, prose, "and the first of them ends here.", prose, "without an end")
		s.lines(50, 160, "Apart from the others.")
	}, `paragraph: "` + prose + ` and the first of them ends here."
paragraph: "` + prose + ` without an end"
paragraph: "Apart from the others."
`},
	{"an indentation starts a paragraph", func(s *sheet) {
		s.lines(50, 100, prose, prose)
		s.lines(70, 124, prose[:53])
		s.lines(50, 136, prose)
	}, `paragraph: "` + prose + " " + prose + `"
paragraph: "` + prose[:53] + " " + prose + `"
`},
	{"hyphens at line ends", func(s *sheet) {
		s.lines(50, 100, "The well-known word is known and its lines are of one width, infor-", "mation is joined and a well-known compound is not, but it is well-", "known that words are joined")
	}, `paragraph: "The well-known word is known and its lines are of one width, information is joined and a well-known compound is not, but it is well-known that words are joined"
`},
	{"a superscript stays in its word", func(s *sheet) {
		s.text(50, 100, regular, "area in m")
		s.Chars = s.Chars[:len(s.Chars)-1]
		s.text(95, 96, regular.sized(6), "2")
		s.Chars = s.Chars[:len(s.Chars)-1]
		s.text(98, 100, regular, " of land")
	}, `paragraph: "area in m2 of land"
`},
	{"code keeps its lines", func(s *sheet) {
		mono := regular
		mono.name, mono.fixed = "Mono", true
		s.lines(50, 100, prose, prose, "Run this:")
		s.text(50, 136, mono, "for i := range n {")
		s.text(60, 148, mono, "go f(i)")
		s.text(50, 160, mono, "}")
	}, `paragraph: "` + prose + " " + prose + ` Run this:"
code: "for i := range n {\n  go f(i)\n}"
`},
	{"text that runs down the page", func(s *sheet) {
		s.lines(50, 100, prose, prose)
		down := regular
		down.angle = 90
		s.text(20, 100, down, "stamp of the archive")
	}, `paragraph: "` + prose + " " + prose + `"
paragraph: "stamp of the archive"
`},
	{"Arabic", func(s *sheet) {
		s.text(500, 100, regular, "سبعة")
		s.Chars = s.Chars[:len(s.Chars)-1]
		s.text(430, 100, regular, "Python")
		s.text(425, 100, regular, "ثمانية")
	}, `paragraph: "سبعة Python ثمانية"
`},
}

var structureCases = []pageCase{
	{"headings by size and weight", func(s *sheet) {
		s.text(50, 60, regular.sized(20), "Title of the Text")
		s.text(50, 100, regular.sized(14), "1 Introduction")
		s.lines(50, 120, prose, prose)
		s.text(50, 160, regular.bold(), "1.1 Aims")
		s.lines(50, 174, prose, prose, "A sentence with 12 words that is not larger, not bold.")
	}, `heading 1: "Title of the Text"
heading 2: "1 Introduction"
paragraph: "` + prose + " " + prose + `"
heading 3: "1.1 Aims"
paragraph: "` + prose + " " + prose + ` A sentence with 12 words that is not larger, not bold."
`},
	{"lists with levels", func(s *sheet) {
		s.lines(50, 100, "The list of things that we need to buy in the next week is as follows:")
		s.lines(60, 112, "•")
		s.lines(75, 112, "bread, which must be fresh and of rye and baked on the same day")
		s.lines(75, 124, "by a baker")
		s.lines(75, 136, "– two loaves")
		s.lines(60, 148, "• milk")
		s.lines(60, 160, "1. first", "2. second")
	}, `paragraph: "The list of things that we need to buy in the next week is as follows:"
list_item 1: "- bread, which must be fresh and of rye and baked on the same day by a baker"
list_item 2: "- two loaves"
list_item 1: "- milk"
list_item 1: "1. first"
list_item 1: "2. second"
`},
	{"captions and footnotes", func(s *sheet) {
		s.lines(50, 100, prose, prose, "ends.")
		s.text(50, 150, regular.sized(9), "Figure 2: The parts of a nut.")
		s.lines(50, 170, "Figure 2 shows the parts of a nut in the usual order and size.")
		s.text(50, 640, regular.sized(8), "1 Of the second edition, which differs.")
	}, `paragraph: "` + prose + " " + prose + ` ends."
caption: "Figure 2: The parts of a nut."
paragraph: "Figure 2 shows the parts of a nut in the usual order and size."
footnote: "1 Of the second edition, which differs."
`},
	{"table of contents", func(s *sheet) {
		s.lines(50, 100, "1 Introduction . . . . . . . . . . . . . . . 1", "1.1 Aims .......................... 12", "A Sources . . . . . . . . . . . . . . . . . . iv")
	}, `0,0: "1 Introduction"
0,1: "1"
1,0: "1.1 Aims"
1,1: "12"
2,0: "A Sources"
2,1: "iv"
`},
}

var orderCases = []pageCase{
	{"two columns under a title", func(s *sheet) {
		s.text(200, 60, regular.sized(16), "A Title Over Both")
		for i := range 6 {
			s.lines(50, 100+12*float32(i), fmt.Sprintf("left %d of the quick brown foxes that run", i))
		}
		for i := range 6 {
			s.lines(310, 100+12*float32(i), fmt.Sprintf("right %d of the lazy dogs that do not run", i))
		}
	}, `heading 1: "A Title Over Both"
paragraph: "` + numberedLines("left %d of the quick brown foxes that run", 6) + " " + numberedLines("right %d of the lazy dogs that do not run", 6) + `"
`},
	{"a column beside a figure", func(s *sheet) {
		s.Images = []pdfium.Image{{Box: pdfium.Box{X0: 50, Y0: 90, X1: 280, Y1: 190}, MCID: -1}}
		for i := range 4 {
			s.lines(50, 200+12*float32(i), fmt.Sprintf("left %d of the quick brown foxes that run", i))
		}
		for i := range 12 {
			s.lines(310, 100+12*float32(i)+5, fmt.Sprintf("right %d of the lazy dogs that do not run", i))
		}
	}, `paragraph: "` + numberedLines("left %d of the quick brown foxes that run", 4) + " " + numberedLines("right %d of the lazy dogs that do not run", 12) + `"
`},
	{"cells with several lines, and text below", func(s *sheet) {
		for i, row := range [][]string{{"Term", "Meaning", "Since"}, {"Board", "The five members elected", "1999"}, {"", "by the meeting", ""}, {"Audit", "Two members who check", "2004"}, {"", "the accounts", ""}} {
			for k, cell := range row {
				if cell != "" && (k != 1 || i%2 == 1 || i == 0) {
					s.lines(50+150*float32(k), 100+12*float32(i), cell)
				}
				if k == 1 && i%2 == 1 {
					s.lines(200, 112+12*float32(i), []string{"by the meeting", "the accounts"}[i/2])
				}
			}
		}
		s.lines(50, 180, "A line below", "and one more")
	}, `0,0 header: "Term"
0,1 header: "Meaning"
0,2 header: "Since"
1,0: "Board"
1,1: "The five members elected by the meeting"
1,2: "1999"
2,0: "Audit"
2,1: "Two members who check the accounts"
2,2: "2004"
paragraph: "A line below and one more"
`},
	{"turned headers of a ruled table", func(s *sheet) {
		s.grid([]float32{50, 150, 200, 250}, []float32{100, 160, 180})
		down := regular
		down.angle = 90
		s.text(175, 105, down, "length")
		s.text(225, 105, down, "width")
		s.lines(55, 174, "bolt")
		s.lines(155, 174, "12")
		s.lines(205, 174, "4")
		s.lines(50, 220, prose)
	}, `0,0 header: ""
0,1 header: "length"
0,2 header: "width"
1,0: "bolt"
1,1: "12"
1,2: "4"
paragraph: "` + prose + `"
`},
	{"a table without rules", func(s *sheet) {
		s.lines(50, 70, prose+".")
		for i, row := range [][]string{{"Name", "Mass", "Price"}, {"bolt", "12 g", "0.30"}, {"nut of steel", "4 g", "0.10"}, {"washer", "1 g", "0.05"}} {
			for k, cell := range row {
				s.lines(50+120*float32(k), 100+14*float32(i), cell)
			}
		}
	}, `paragraph: "` + prose + `."
0,0 header: "Name"
0,1 header: "Mass"
0,2 header: "Price"
1,0: "bolt"
1,1: "12 g"
1,2: "0.30"
2,0: "nut of steel"
2,1: "4 g"
2,2: "0.10"
3,0: "washer"
3,1: "1 g"
3,2: "0.05"
`},
	{"a ruled table with spans", func(s *sheet) {
		s.grid([]float32{50, 150, 250}, []float32{100, 120, 140, 160})
		s.rule(350, 100, 350, 160)
		for _, y := range []float32{100, 140, 160} {
			s.rule(250, y, 350, y)
		}
		s.lines(55, 114, "Part")
		s.lines(155, 114, "Size")
		s.lines(255, 124, "Note on")
		s.lines(255, 134, "both")
		s.lines(55, 134, "nut")
		s.lines(155, 134, "8")
		s.lines(55, 154, "bolt")
		s.lines(155, 154, "9")
		s.lines(255, 154, "none")
		s.lines(50, 200, prose)
	}, `0,0 header: "Part"
0,1 header: "Size"
0,2+2x1 header: "Note on both"
1,0: "nut"
1,1: "8"
2,0: "bolt"
2,1: "9"
2,2: "none"
paragraph: "` + prose + `"
`},
	{"boxes around text are no table", func(s *sheet) {
		s.grid([]float32{40, 400}, []float32{80, 200})
		s.lines(50, 100, prose, prose)
	}, `paragraph: "` + prose + " " + prose + `"
`},
}

func numberedLines(format string, n int) string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(format, i))
	}
	return strings.Join(lines, " ")
}

func TestBlocks(t *testing.T) {
	for _, test := range slices.Concat(textCases, structureCases, orderCases) {
		t.Run(test.name, func(t *testing.T) {
			s := newSheet(1)
			test.write(s)
			if diff := cmp.Diff(test.want, shape(analyze(t, nil, s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFurniture(t *testing.T) {
	var sheets []*sheet
	for i := range 4 {
		s := newSheet(i + 1)
		s.text(50, 40, regular.sized(9), fmt.Sprintf("Handbook of Nuts %d", i+1))
		s.lines(50, 100, fmt.Sprintf("Page %c has words of its own.", 'a'+i))
		s.lines(50, 380, "Repeated in the middle.")
		s.text(300, 780, regular, fmt.Sprint("- ", i+1, " -"))
		sheets = append(sheets, s)
	}
	var want strings.Builder
	for i := range 4 {
		fmt.Fprintf(&want, "paragraph: \"Page %c has words of its own.\"\nparagraph: \"Repeated in the middle.\"\n", 'a'+i)
	}
	if diff := cmp.Diff(want.String(), shape(analyze(t, nil, sheets...))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeadersThatDiffer(t *testing.T) {
	var sheets []*sheet
	for i := range 5 {
		s := newSheet(i + 1)
		s.lines(50, 40, "Section on "+[]string{"apples", "pears", "plums", "grapes", "figs"}[i])
		s.lines(50, 80, prose, prose, "ends.")
		sheets = append(sheets, s)
	}
	for _, b := range analyze(t, nil, sheets...) {
		if strings.Contains(b.Text, "Section") {
			t.Errorf("the header is text: %q", b.Text)
		}
	}
	if got := shape(analyze(t, nil, sheets[:3]...)); strings.Count(got, "Section") != 3 {
		t.Errorf("lines at the top of three pages are not all kept:\n%s", got)
	}
}

func TestParagraphOverPages(t *testing.T) {
	first, second := newSheet(1), newSheet(2)
	first.lines(50, 700, prose, prose)
	second.lines(50, 100, "goes on here and ends.", "Next one of "+prose)
	blocks := analyze(t, nil, first, second)
	text := prose + " " + prose + " "
	want := Block{
		Kind: assay.BlockParagraph, Text: text + "goes on here and ends.",
		Starts: []PageStart{{0, 1}, {len(text), 2}},
	}
	if len(blocks) != 2 || blocks[0].Text != want.Text || !slices.Equal(blocks[0].Starts, want.Starts) {
		t.Fatalf("got %+v, want %+v and another", blocks, want)
	}
	if len(blocks[0].Boxes) != 2 || blocks[0].Boxes[0].Page != 1 || blocks[0].Boxes[1].Page != 2 {
		t.Errorf("got boxes %v, want one on each page", blocks[0].Boxes)
	}
}

func TestOutlineAndTags(t *testing.T) {
	s := newSheet(3)
	s.text(50, 100, regular, "Known to the outline")
	s.lines(50, 112, prose, prose)
	s.text(50, 160, regular.tagged(1), "Known to the tree")
	s.text(50, 172, regular.tagged(2), prose)
	s.text(50, 184, regular.tagged(3), "A paragraph of its own.")
	s.Structure = []*pdfium.Element{{Type: "Document", Children: []pdfium.Child{
		{Element: &pdfium.Element{Type: "H3", Children: []pdfium.Child{{MCID: 1}}}},
		{Element: &pdfium.Element{Type: "P", Children: []pdfium.Child{{MCID: 2}}}},
		{Element: &pdfium.Element{Type: "P", Children: []pdfium.Child{{MCID: 3}}}},
	}}}
	want := `heading 2: "Known to the outline"
paragraph: "` + prose + " " + prose + `"
heading 3: "Known to the tree"
paragraph: "` + prose + `"
paragraph: "A paragraph of its own."
`
	got := shape(analyze(t, []pdfium.OutlineItem{{Title: "Known to  the Outline", Level: 2, Page: 3}, {Title: prose, Level: 1, Page: 9}}, s))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBoxes(t *testing.T) {
	s := newSheet(1)
	s.lines(50, 100, "abcd", "ab")
	b := analyze(t, nil, s)[0]
	want := Box{1, pdfium.Box{X0: 50, Y0: 100 - 7.2, X1: 70, Y1: 114}}
	if len(b.Boxes) != 1 || math.Abs(float64(b.Boxes[0].Y0-want.Y0)) > 0.01 || b.Boxes[0].X1 != want.X1 || b.Boxes[0].Y1 != want.Y1 {
		t.Errorf("got %v, want %v", b.Boxes, want)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newSheet(1)
	s.lines(50, 100, prose)
	if err := New().Add(ctx, &s.Page); !errors.Is(err, context.Canceled) {
		t.Errorf("Add: %v, want canceled", err)
	}
	if _, err := New().Blocks(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Blocks: %v, want canceled", err)
	}
}

// letters counts the letters of a text.
func letters(count map[rune]int, text string, by int) {
	for _, c := range text {
		if unicode.IsLetter(c) {
			count[c] += by
		}
	}
}

// FuzzBlocks checks that no letter is lost or doubled, that offsets are right, and that equal pages
// give equal blocks.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte("\x01abe\x10\x20\x30\x40hello\x02\x81\x33world"))
	f.Add([]byte{0x80, 10, 200, 10, 0x81, 20, 10, 200, 0x80, 10, 200, 90, 0x81, 90, 10, 200, 'a', 'b', 3, 20, 30, 'a'})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			t.Skip()
		}
		s := pageOf(data)
		blocks := analyze(t, nil, s)
		if again := analyze(t, nil, pageOf(data)); shape(blocks) != shape(again) {
			t.Fatalf("the same page gives\n%s\nand\n%s", shape(blocks), shape(again))
		}
		count := map[rune]int{}
		for _, c := range s.Chars {
			letters(count, string(c.Rune), 1)
		}
		for _, b := range blocks {
			letters(count, b.Text, -1)
			for _, p := range b.Starts {
				if p.Offset > len(b.Text) || p.Offset < len(b.Text) && !utf8.RuneStart(b.Text[p.Offset]) {
					t.Errorf("offset %d of %q", p.Offset, b.Text)
				}
			}
			if b.Table != nil {
				for _, c := range b.Table.Cells {
					letters(count, c.Text, -1)
				}
			}
		}
		for c, n := range count {
			if n != 0 {
				t.Errorf("%d of %q are lost (negative: doubled) in\n%s", n, c, shape(blocks))
			}
		}
	})
}

// pageOf makes a page of bytes: letters are written at a place that other bytes move, and bytes from
// 0x80 draw rules. The letters of Roman numbers are left out, because they may be page numbers.
func pageOf(data []byte) *sheet {
	s := newSheet(1)
	const alphabet = "abefghjknopqrstuwyzلاب-. •"
	x, y, f := float32(50), float32(100), regular
	for len(data) > 0 {
		c := data[0]
		data = data[1:]
		arg := func() float32 {
			if len(data) == 0 {
				return 0
			}
			v := data[0]
			data = data[1:]
			if v == 0xff {
				return float32(math.NaN())
			}
			return 3 * float32(v)
		}
		switch {
		case c >= 0x80 && c&1 == 0:
			x0, y0 := arg(), arg()
			s.rule(x0, y0, x0+arg(), y0)
		case c >= 0x80:
			x0, y0 := arg(), arg()
			s.rule(x0, y0, x0, y0+arg())
		case c < 8:
			x, y = arg(), arg()
		case c < 16:
			f.size = float32(c)
		case c < 20:
			f.angle = 90 * float32(c&1)
		case c < 24:
			f.mcid = int(c&3) - 1
		default:
			all := []rune(alphabet)
			n := len(s.Chars)
			s.text(x, y, f, string(all[int(c)%len(all)]))
			if c&3 != 0 {
				s.Chars = s.Chars[:n+1]
			}
			x += 0.5 * f.size
		}
	}
	return s
}
