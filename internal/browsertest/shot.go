package browsertest

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/page"
)

var update = flag.Bool("update", false, "write the golden pictures anew")

const (
	// maxShotHeight is the most pixels of the height of a picture.
	maxShotHeight = 1800
	// colourTolerance is by how much a channel of a pixel may differ.
	colourTolerance = 40
	// shareTolerance is the share of pixels that may differ by more.
	shareTolerance = 0.005
)

// still is a style sheet without anything that moves.
const still = `*, ::before, ::after { caret-color: transparent !important; animation: none !important; transition: none !important; }`

// A Mask replaces the texts of elements in a picture, because they differ from run to run.
type Mask struct{ Selector, Text string }

// Times is the mask of the times of pages.
var Times = Mask{"time", "a moment ago"}

// Picture returns a PNG of the page, as long as it is, with its texts as they are after the masks.
func (p *Page) Picture(masks ...Mask) []byte {
	p.t.Helper()
	return p.picture(maxShotHeight, masks)
}

// picture returns a PNG of the page, as long as it is and at most as high as given, with its texts as they
// are after the masks. It moves the mouse away.
func (p *Page) picture(height float64, masks []Mask) []byte {
	p.t.Helper()
	p.mu.Lock()
	frame := p.frame
	p.mu.Unlock()
	sheet := call(p, css.CreateStyleSheet, css.CreateStyleSheetParams{FrameID: frame}).StyleSheetID
	call(p, css.SetStyleSheetText, css.SetStyleSheetTextParams{StyleSheetID: sheet, Text: still})
	for _, m := range masks {
		p.Eval(fmt.Sprintf(`document.querySelectorAll(%s).forEach(e => { e.textContent = %s; })`, quoted(m.Selector), quoted(m.Text)), nil)
	}
	p.mouse("mouseMoved", 0, 0)
	p.moment()
	var size struct{ Width, Height float64 }
	p.Eval(`({Width: innerWidth, Height: Math.max(innerHeight, document.documentElement.scrollHeight)})`, &size)
	beyond := true
	r := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &beyond,
		Clip: &page.Viewport{Width: size.Width, Height: min(height, size.Height), Scale: 1},
	})
	return r.Data
}

// Shot compares a picture of the page with the golden one, testdata/screens/NAME.png. With -update it writes
// that. It compares nothing in a browser that is not the one of scripts/chromium, since others have other
// fonts. A picture that differs is written to the folder of the test's artifacts, which go test keeps with
// -artifacts, and beside it one that shows where it differs.
func (p *Page) Shot(t testing.TB, name string, masks ...Mask) {
	t.Helper()
	if !p.browser.ours {
		t.Log("no picture: the browser is not that of scripts/chromium")
		return
	}
	got, err := png.Decode(bytes.NewReader(p.Picture(masks...)))
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "screens", name+".png")
	if *update {
		if err := writePNG(golden, paletted(got)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := readPNG(golden)
	if err != nil {
		t.Fatal(err)
	}
	if want.Bounds() == got.Bounds() {
		differs, share := difference(got, want)
		if share <= shareTolerance {
			return
		}
		t.Errorf("the picture %s differs from the golden one in %.2f %% of its pixels", name, share*100)
		keep(t, name+"-differs", differs)
	} else {
		t.Errorf("the picture %s has %v pixels, the golden one %v", name, got.Bounds().Size(), want.Bounds().Size())
	}
	keep(t, name, got)
}

// keep writes a picture to the folder of the test's artifacts.
func keep(t testing.TB, name string, m image.Image) {
	t.Helper()
	file := filepath.Join(t.ArtifactDir(), name+".png")
	if err := writePNG(file, m); err != nil {
		t.Error(err)
		return
	}
	t.Logf("see %s", file)
}

// difference returns the share of the pixels in which two pictures of one size differ, and a picture in which
// these are red.
func difference(a, b image.Image) (image.Image, float64) {
	r := a.Bounds()
	out := image.NewPaletted(r, color.Palette{color.White, color.RGBA{R: 220, A: 255}})
	n := 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if distance(rgb(a.At(x, y)), rgb(b.At(x, y))) > colourTolerance {
				out.SetColorIndex(x, y, 1)
				n++
			}
		}
	}
	return out, float64(n) / float64(max(1, r.Dx()*r.Dy()))
}

// distance returns the largest difference of a channel.
func distance(a, b [3]int) int {
	d := 0
	for i := range a {
		d = max(d, a[i]-b[i], b[i]-a[i])
	}
	return d
}

func rgb(c color.Color) [3]int {
	r, g, b, _ := c.RGBA()
	return [3]int{int(r >> 8), int(g >> 8), int(b >> 8)}
}

// paletted returns a picture with 256 colours, the ones that are most frequent, so that its file is small.
func paletted(m image.Image) *image.Paletted {
	counts := map[[3]int]int{}
	r := m.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			counts[rgb(m.At(x, y))]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b [3]int) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return slices.Compare(a[:], b[:])
	})
	chosen := spread(all)
	var palette color.Palette
	for _, c := range chosen {
		palette = append(palette, color.RGBA{uint8(c[0]), uint8(c[1]), uint8(c[2]), 255})
	}
	out := image.NewPaletted(r, palette)
	nearest := map[[3]int]uint8{}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := rgb(m.At(x, y))
			i, ok := nearest[c]
			if !ok {
				i = closest(chosen, c)
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}

// spread returns at most 256 colours of a list, the first ones that are not too near to one before.
func spread(all [][3]int) [][3]int {
	for apart := 0; ; apart += 4 {
		var chosen [][3]int
		for _, c := range all {
			if !slices.ContainsFunc(chosen, func(o [3]int) bool { return distance(o, c) < apart }) {
				chosen = append(chosen, c)
			}
			if len(chosen) > 256 {
				break
			}
		}
		if len(chosen) <= 256 {
			return chosen
		}
	}
}

// closest returns the index of the nearest colour.
func closest(all [][3]int, c [3]int) uint8 {
	best := 0
	for i, o := range all {
		if distance(o, c) < distance(all[best], c) {
			best = i
		}
	}
	return uint8(best) // at most 256
}

func readPNG(file string) (image.Image, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return png.Decode(f)
}

func writePNG(file string, m image.Image) error {
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(&b, m); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// PDF prints the page, with its backgrounds, as a PDF file.
func (p *Page) PDF() []byte {
	p.t.Helper()
	yes := true
	return call(p, page.PrintToPDF, page.PrintToPDFParams{PrintBackground: &yes}).Data
}

// Save writes a picture of what the window shows, with 256 colours, for documentation.
func (p *Page) Save(file string, masks ...Mask) {
	p.t.Helper()
	m, err := png.Decode(bytes.NewReader(p.picture(float64(p.options.Height), masks)))
	if err == nil {
		err = writePNG(file, paletted(m))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
