package pdfium_test

import (
	"bytes"
	"context"
	"errors"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-rag/assay/internal/pdfium"
	"github.com/assay-rag/assay/internal/pdftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a PDF for the time of the test.
func open(t testing.TB, data []byte, passwords ...string) *pdfium.Document {
	t.Helper()
	doc, err := pdfium.Open(t.Context(), data, passwords...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(doc.Close)
	return doc
}

// page returns the first page of a PDF.
func page(t testing.TB, f *pdftest.File) *pdfium.Page {
	t.Helper()
	p, err := open(t, f.Bytes()).Page(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// text returns the characters of a page.
func text(p *pdfium.Page) string {
	var b strings.Builder
	for _, c := range p.Chars {
		b.WriteRune(c.Rune)
	}
	return strings.TrimRight(b.String(), "\n ")
}

func TestChars(t *testing.T) {
	var f pdftest.File
	p := f.Page(400, 300)
	p.Text(50, 100, 12, true, "Leave")
	p.Text(50, 120, 10, false, "Five days.")
	p.Hidden(50, 140, 10, "Scanned")
	got := page(t, &f)
	if got.Number != 1 || got.Width != 400 || got.Height != 300 || got.Rotation != 0 {
		t.Errorf("page %d is %g × %g, rotated by %d", got.Number, got.Width, got.Height, got.Rotation)
	}
	if s := text(got); s != "Leave\nFive days.\nScanned" {
		t.Errorf("text %q", s)
	}
	first := got.Chars[0]
	if first.X != 50 || first.Y != 100 || first.Box.Y0 >= 100 || first.Box.Y1 <= 100 || first.Box.X1 <= 50 {
		t.Errorf("first character at %g, %g in %v", first.X, first.Y, first.Box)
	}
	bold, regular, hidden := got.Runs[0], got.Runs[1], got.Runs[2]
	if bold.Font != "Helvetica-Bold" || bold.Size != 12 || bold.Weight != 700 || bold.MCID != -1 {
		t.Errorf("first run %+v", bold)
	}
	if regular.Size != 10 || regular.Weight >= 600 || regular.Invisible || !hidden.Invisible {
		t.Errorf("second run %+v, third run %+v", regular, hidden)
	}
	if c := got.Chars[5]; c.Rune != '\n' || !c.Generated {
		t.Errorf("the line ends with %+v", c)
	}
	if !got.HasText() {
		t.Error("the page has no text")
	}
}

func TestRotation(t *testing.T) {
	for _, tt := range []struct {
		rotate              int
		width, height, x, y float32
		angle               float32
	}{
		{0, 380, 290, 30, 95, 0},
		{90, 290, 380, 290 - 95, 30, 90},
		{180, 380, 290, 350, 290 - 95, 180},
		{270, 290, 380, 95, 350, 270},
	} {
		var f pdftest.File
		p := f.Page(400, 300)
		p.Rotate = tt.rotate
		p.Crop = [4]float64{20, 5, 400, 295} // cuts 20 at the left, 5 at the top and the bottom
		p.Text(50, 100, 12, false, "Text")
		got := page(t, &f)
		if got.Width != tt.width || got.Height != tt.height {
			t.Errorf("rotated by %d: %g × %g, want %g × %g", tt.rotate, got.Width, got.Height, tt.width, tt.height)
		}
		if c := got.Chars[0]; c.X != tt.x || c.Y != tt.y {
			t.Errorf("rotated by %d: the text starts at %g, %g, want %g, %g", tt.rotate, c.X, c.Y, tt.x, tt.y)
		}
		if a := got.Runs[0].Angle; a != tt.angle {
			t.Errorf("rotated by %d: the text runs at %g degrees, want %g", tt.rotate, a, tt.angle)
		}
	}
}

func TestAngle(t *testing.T) {
	var f pdftest.File
	f.Page(400, 300).Raw("BT /F1 10 Tf 0 2 -2 0 50 50 Tm (up) Tj ET")
	if r := page(t, &f).Runs[0]; r.Angle != 270 || r.Size != 20 {
		t.Errorf("text that runs upwards in twice the size: %+v", r)
	}
}

func TestHyphen(t *testing.T) {
	var f pdftest.File
	p := f.Page(400, 300)
	p.Text(50, 100, 12, false, "The committee finds it inter-")
	p.Text(50, 114, 12, false, "esting and well-known.")
	got := page(t, &f)
	if s := text(got); s != "The committee finds it inter-esting and well-known." {
		t.Errorf("text %q", s)
	}
	for i, c := range got.Chars {
		if c.Rune == '-' && c.Hyphen != (i == 28) {
			t.Errorf("character %d: %+v", i, c)
		}
	}
}

func TestRightToLeft(t *testing.T) {
	reversed := func(s string) string {
		var out []rune
		for _, r := range s {
			out = append([]rune{r}, out...)
		}
		return string(out)
	}
	for _, want := range []string{"שלום עולם", "הסכם 2024 נחתם", "مرحبا بالعالم"} {
		var f pdftest.File
		shown := strings.Replace(reversed(want), "4202", "2024", 1) // numbers run from left to right
		f.Page(400, 300).Unicode(50, 100, 12, shown)
		if got := text(page(t, &f)); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	}
}

func TestRules(t *testing.T) {
	var f pdftest.File
	p := f.Page(400, 300)
	p.Line(10, 20, 110, 20)
	p.Rectangle(10, 50, 60, 90, false)
	p.Rectangle(100, 100, 101, 180, true) // a line drawn as a rectangle
	p.Raw("10 10 m 60 80 90 10 100 100 c S")
	p.Image(200, 100, 300, 200)
	got := page(t, &f)
	var rules []pdfium.Box
	for _, r := range got.Rules {
		rules = append(rules, r.Box)
	}
	want := []pdfium.Box{{X0: 10, Y0: 20, X1: 110, Y1: 20},
		{X0: 10, Y0: 90, X1: 60, Y1: 90}, {X0: 60, Y0: 50, X1: 60, Y1: 90}, {X0: 10, Y0: 50, X1: 60, Y1: 50}, {X0: 10, Y0: 50, X1: 10, Y1: 90},
		{X0: 100.5, Y0: 100, X1: 100.5, Y1: 180}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if r := got.Rules; r[0].Rectangle != 0 || r[1].Rectangle == 0 || r[1].Rectangle != r[4].Rectangle || r[0].Filled || !r[5].Filled || r[0].Width != 1 {
		t.Errorf("rules %+v", r)
	}
	if len(got.Drawings) != 1 || len(got.Images) != 1 || got.Images[0].Box != (pdfium.Box{X0: 200, Y0: 100, X1: 300, Y1: 200}) {
		t.Errorf("drawings %v, images %v", got.Drawings, got.Images)
	}
	if got.HasText() {
		t.Error("the page has text")
	}
}

func TestAnnotations(t *testing.T) {
	var f pdftest.File
	p := f.Page(400, 300)
	p.Note(10, 10, 30, 30, "Check this clause")
	p.Field(50, 50, 150, 70, "Name", "Ada Lovelace")
	p.Field(50, 80, 150, 100, "Empty", "")
	p.Link(10, 200, 100, 220, "https://example.com/terms")
	got := page(t, &f)
	want := []pdfium.Annotation{
		{Box: pdfium.Box{X0: 10, Y0: 10, X1: 30, Y1: 30}, Kind: pdfium.AnnotationText, Text: "Check this clause"},
		{Box: pdfium.Box{X0: 50, Y0: 50, X1: 150, Y1: 70}, Kind: pdfium.AnnotationWidget, Name: "Name", Text: "Ada Lovelace", Field: pdfium.FieldText},
	}
	if diff := cmp.Diff(want, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	links := []pdfium.Link{{Box: pdfium.Box{X0: 10, Y0: 200, X1: 100, Y1: 220}, URI: "https://example.com/terms"}}
	if diff := cmp.Diff(links, got.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestStructure(t *testing.T) {
	var f pdftest.File
	p := f.Page(400, 300)
	p.Artifact(50, 20, 8, "Page 1")
	p.Tagged("H1", 50, 100, 18, true, "Leave")
	p.Tagged("P", 50, 120, 10, false, "Five days.")
	got := page(t, &f)
	want := []*pdfium.Element{
		{Type: "H1", Children: []pdfium.Child{{MCID: 0}}},
		{Type: "P", Children: []pdfium.Child{{MCID: 1}}},
	}
	if diff := cmp.Diff(want, got.Structure); diff != "" {
		t.Errorf("structure (-want +got):\n%s", diff)
	}
	for i, want := range []int{-1, 0, 1} {
		if r := got.Runs[i]; r.MCID != want || r.Artifact != (i == 0) {
			t.Errorf("run %d: %+v", i, r)
		}
	}
}

func TestDocument(t *testing.T) {
	f := pdftest.File{Info: map[string]string{"Title": "Urlaub für alle", "Author": "Ada", "CreationDate": "D:20240102030405+01'00'"}, Language: "de"}
	f.Page(400, 300).Text(50, 100, 12, false, "One")
	f.Page(200, 100).Text(50, 50, 12, false, "Two")
	f.Attach("notes.txt", []byte("attached text"))
	f.Bookmark("First", 1, 90)
	f.Bookmark("Second", 2, 40)
	doc := open(t, f.Bytes())
	if doc.PageCount() != 2 {
		t.Errorf("%d pages", doc.PageCount())
	}
	props, err := doc.Properties(t.Context())
	want := pdfium.Properties{Title: "Urlaub für alle", Author: "Ada", Created: "D:20240102030405+01'00'", Language: "de"}
	if err != nil || props != want {
		t.Errorf("properties %+v, %v, want %+v", props, err, want)
	}
	outline, err := doc.Outline(t.Context())
	if diff := cmp.Diff([]pdfium.OutlineItem{{Title: "First", Level: 1, Page: 1, Y: 90}, {Title: "Second", Level: 1, Page: 2, Y: 40}}, outline); err != nil || diff != "" {
		t.Errorf("outline, %v (-want +got):\n%s", err, diff)
	}
	files, err := doc.Attachments(t.Context())
	if err != nil || len(files) != 1 || files[0].Name != "notes.txt" {
		t.Fatalf("attachments %v, %v", files, err)
	}
	if data, err := doc.Attachment(t.Context(), files[0], 100); err != nil || string(data) != "attached text" {
		t.Errorf("attachment %q, %v", data, err)
	}
	if _, err := doc.Attachment(t.Context(), files[0], 5); !errors.Is(err, pdfium.ErrTooLarge) {
		t.Errorf("attachment over the limit: %v", err)
	}
	if w, h, err := doc.PageSize(t.Context(), 1); w != 200 || h != 100 || err != nil {
		t.Errorf("second page: %g × %g, %v", w, h, err)
	}
	for _, i := range []int{-1, 2} {
		if _, err := doc.Page(t.Context(), i); !errors.Is(err, pdfium.ErrPage) {
			t.Errorf("page %d: %v", i, err)
		}
	}
}

func TestPassword(t *testing.T) {
	f := pdftest.File{Password: "secret", Info: map[string]string{"Title": "Salaries"}}
	f.Page(400, 300).Text(50, 100, 12, false, "Confidential")
	data := f.Bytes()
	for _, passwords := range [][]string{nil, {"wrong"}} {
		if _, err := pdfium.Open(t.Context(), data, passwords...); !errors.Is(err, pdfium.ErrPassword) {
			t.Errorf("with %q: %v", passwords, err)
		}
	}
	doc := open(t, data, "wrong", "secret")
	p, err := doc.Page(t.Context(), 0)
	if err != nil || text(p) != "Confidential" {
		t.Errorf("page %v, %v", p, err)
	}
	if props, err := doc.Properties(t.Context()); err != nil || props.Title != "Salaries" {
		t.Errorf("properties %+v, %v", props, err)
	}
}

func TestRender(t *testing.T) {
	var f pdftest.File
	f.Page(100, 200).Rectangle(50, 0, 100, 100, true)
	f.Page(14400, 14400).Rectangle(0, 0, 100, 100, true)
	doc := open(t, f.Bytes())
	r, err := doc.Render(t.Context(), 0, 144)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Image.Bounds(); b.Dx() != 200 || b.Dy() != 400 || r.Scale != 2 {
		t.Errorf("image of %v, scale %g", b, r.Scale)
	}
	if a, b, c := r.Image.GrayAt(150, 100).Y, r.Image.GrayAt(50, 100).Y, r.Image.GrayAt(150, 300).Y; a != 0 || b != 255 || c != 255 {
		t.Errorf("pixels %d, %d, %d", a, b, c)
	}
	r, err = doc.Render(t.Context(), 1, 300)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Image.Bounds().Dx() * r.Image.Bounds().Dy(); n > 36_000_000 || n < 30_000_000 {
		t.Errorf("the huge page has %d pixels", n)
	}
}

func TestRenderColor(t *testing.T) {
	var f pdftest.File
	f.Page(100, 200).Raw("1 0 0 rg 50 0 50 100 re f")
	f.Page(14400, 14400).Rectangle(0, 0, 100, 100, true)
	doc := open(t, f.Bytes())
	r, err := doc.RenderColor(t.Context(), 0, 144)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Image.Bounds(); b.Dx() != 200 || b.Dy() != 400 || r.Scale != 2 {
		t.Errorf("image of %v, scale %g", b, r.Scale)
	}
	red, white := color.RGBA{255, 0, 0, 255}, color.RGBA{255, 255, 255, 255}
	if a, b := r.Image.RGBAAt(150, 300), r.Image.RGBAAt(50, 100); a != red || b != white {
		t.Errorf("pixels %v, %v", a, b)
	}
	r, err = doc.RenderColor(t.Context(), 1, 300)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Image.Bounds().Dx() * r.Image.Bounds().Dy(); n > 9_000_000 || n < 8_000_000 {
		t.Errorf("the huge page has %d pixels", n)
	}
}

func TestNotPDF(t *testing.T) {
	for _, data := range []string{"", "text", "%PDF-1.7", "%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer<</Root 1 0 R>>"} {
		if _, err := pdfium.Open(t.Context(), []byte(data)); !errors.Is(err, pdfium.ErrFormat) {
			t.Errorf("Open(%q): %v", data, err)
		}
	}
}

// slowPage returns a PDF with a page that takes seconds.
func slowPage() []byte {
	var f pdftest.File
	p := f.Page(400, 300)
	p.Raw(strings.Repeat("0 0 m 100 100 l S\n", 4_000_000))
	return f.Bytes()
}

func TestCancel(t *testing.T) {
	doc := open(t, slowPage())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	_, err := doc.Page(ctx, 0)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("page: %v", err)
	}
	t.Logf("ended after %v", time.Since(start))
	if _, err := doc.Page(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("page after the end of its context: %v", err)
	}
	if _, err := pdfium.Open(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("open after the end of its context: %v", err)
	}
	if _, err := doc.Properties(t.Context()); err != nil {
		t.Errorf("the document cannot be used after a canceled call: %v", err)
	}
}

func TestDeadline(t *testing.T) {
	doc := open(t, slowPage())
	pdfium.SetLimit(doc, 20*time.Millisecond)
	if _, err := doc.Page(t.Context(), 0); !errors.Is(err, pdfium.ErrTime) {
		t.Errorf("page: %v", err)
	}
	pdfium.SetLimit(doc, pdfium.PageTime)
	if _, err := doc.Properties(t.Context()); err != nil {
		t.Errorf("the document cannot be used after a deadline: %v", err)
	}
}

func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills 512 MiB")
	}
	f := pdftest.File{Compress: true}
	f.Page(400, 300).Text(50, 100, 12, false, "Small")
	f.Page(400, 300).Raw(strings.Repeat("q ", 4_000_000)) // each keeps a graphics state
	doc := open(t, f.Bytes())
	pdfium.SetLimit(doc, 5*time.Minute) // the memory must be full before, also on a busy machine
	if _, err := doc.Page(t.Context(), 1); !errors.Is(err, pdfium.ErrMemory) {
		t.Errorf("large page: %v", err)
	}
	if p, err := doc.Page(t.Context(), 0); err != nil || text(p) != "Small" {
		t.Errorf("page after a failure: %v, %v", p, err)
	}
}

// TestReopen checks that a document can be used after PDFium has failed.
func TestReopen(t *testing.T) {
	f := pdftest.File{Password: "secret"}
	f.Page(400, 300).Text(50, 100, 12, false, "Still here")
	doc := open(t, f.Bytes(), "secret")
	pdfium.Crash(doc)
	if _, err := doc.Page(t.Context(), 0); !errors.Is(err, pdfium.ErrCrashed) {
		t.Errorf("page: %v", err)
	}
	if p, err := doc.Page(t.Context(), 0); err != nil || text(p) != "Still here" {
		t.Errorf("page after a failure: %v, %v", p, err)
	}
}

// TestDamaged reads damaged variants of real files. Each call ends with a result or an error of a
// known kind.
func TestDamaged(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testData(t), "data/parsing/pdf/sources/*.pdf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files, %v", err)
	}
	if testing.Short() {
		files = files[:4]
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, 2, 3, 7} {
				readDamaged(t, data[:len(data)*n/8])
			}
			for seed := range 6 {
				readDamaged(t, flip(data, seed, 1+len(data)/2000))
			}
		})
	}
}

// flip returns data with n bytes changed.
func flip(data []byte, seed, n int) []byte {
	out := bytes.Clone(data)
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[x%uint64(len(out))] ^= byte(1 << (x >> 60 & 7))
	}
	return out
}

func readDamaged(t testing.TB, data []byte) {
	doc, err := pdfium.Open(t.Context(), data)
	if err != nil {
		checkKind(t, err)
		return
	}
	defer doc.Close()
	pdfium.SetLimit(doc, 5*time.Minute) // the time of a busy machine is not under test
	for i := range min(doc.PageCount(), 5) {
		p, err := doc.Page(t.Context(), i)
		if err != nil {
			checkKind(t, err)
			continue
		}
		checkPage(t, p)
	}
	for _, f := range []func() error{
		func() error { _, err := doc.Outline(t.Context()); return err },
		func() error { _, err := doc.Properties(t.Context()); return err },
		func() error { _, err := doc.Attachments(t.Context()); return err },
		func() error { _, err := doc.Render(t.Context(), 0, 36); return err },
	} {
		checkKind(t, f())
	}
}

func checkKind(t testing.TB, err error) {
	t.Helper()
	for _, kind := range []error{nil, pdfium.ErrFormat, pdfium.ErrPassword, pdfium.ErrSecurity, pdfium.ErrPage, pdfium.ErrCrashed, pdfium.ErrMemory, pdfium.ErrTooLarge} {
		if errors.Is(err, kind) {
			return
		}
	}
	t.Errorf("an error of no kind: %v", err)
}

func checkPage(t testing.TB, p *pdfium.Page) {
	t.Helper()
	for _, c := range p.Chars {
		if int(c.Run) >= len(p.Runs) || c.Box.X0 > c.Box.X1 || c.Box.Y0 > c.Box.Y1 || math.IsNaN(float64(c.Box.X0)) {
			t.Fatalf("character %+v of %d runs", c, len(p.Runs))
		}
	}
	for _, r := range p.Rules {
		if r.X0 != r.X1 && r.Y0 != r.Y1 || r.X0 > r.X1 || r.Y0 > r.Y1 {
			t.Fatalf("rule %+v", r)
		}
	}
}

// TestLeak checks that documents leave no memory behind.
func TestLeak(t *testing.T) {
	var f pdftest.File
	f.Page(400, 300).Text(50, 100, 12, false, "Text")
	data := f.Bytes()
	n := 1000
	if testing.Short() {
		n = 100
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var before uint64
	for i := range n {
		if i == n/10 {
			before = heap()
		}
		doc, err := pdfium.Open(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := doc.Page(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		doc.Close()
		doc.Close()
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
}

func FuzzOpen(f *testing.F) {
	var file pdftest.File
	p := file.Page(400, 300)
	p.Table(50, 50, 80, [][]string{{"Name", "Days"}, {"Ada", "5"}})
	p.Tagged("P", 50, 150, 10, false, "Text")
	p.Field(50, 200, 150, 220, "Name", "Ada")
	file.Bookmark("First", 1, 20)
	file.Attach("a.txt", []byte("attached"))
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) { readDamaged(t, data) })
}

// testData returns the folder of shared test data.
func testData(t testing.TB) string {
	dir := os.Getenv("ASSAY_TESTDATA")
	if dir == "" {
		t.Skip("ASSAY_TESTDATA is not set")
	}
	return dir
}
