package parse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// OCR is the program that recognises text in images. Its values identify it, so that documents are
// parsed again if another version is installed.
type OCR struct {
	Program   string   // path of tesseract
	Version   string   // such as "5.3.0"
	Languages []string // of the installed models, sorted
	Orient    bool     // detects the orientation of pages
}

// NeedsOCR is the advice for users whose documents have images of text.
const NeedsOCR = "install tesseract to read it"

// FindOCR returns the installed tesseract, or nil if there is none. The error is ctx's, or that of an
// installed program that does not run.
func FindOCR(ctx context.Context) (*OCR, error) {
	path, err := exec.LookPath("tesseract")
	if err != nil {
		return nil, nil
	}
	version, err := runOCR(ctx, path, nil, "--version")
	if err != nil {
		return nil, err
	}
	list, err := runOCR(ctx, path, nil, "--list-langs")
	if err != nil {
		return nil, err
	}
	o := &OCR{Program: path}
	if words := strings.Fields(string(version)); len(words) > 1 {
		o.Version = words[1]
	}
	for line := range strings.Lines(string(list)) {
		switch line = strings.TrimSpace(line); {
		case line == "osd":
			o.Orient = true
		case line != "" && line != "equ" && line != "snum" && !strings.ContainsAny(line, " :/"):
			o.Languages = append(o.Languages, line)
		}
	}
	if len(o.Languages) == 0 {
		return nil, fmt.Errorf("%s has no language models", path)
	}
	slices.Sort(o.Languages)
	return o, nil
}

// String identifies the program and its models.
func (o *OCR) String() string {
	if o == nil {
		return "none"
	}
	return "tesseract " + o.Version + " " + strings.Join(o.Languages, "+")
}

// A word is a recognised word. The unit of its box is the pixel of the image.
type word struct {
	text           string
	line           [4]int  // page, block, paragraph and line, as the program numbers them
	confidence     float32 // in [0, 1]
	x0, y0, x1, y1 float32
}

// Limits of the time for recognition.
const (
	imageTime     = 25 * time.Second // of one image
	maxSlowImages = 3                // of a document that take longer; the others are not tried
)

// recognize returns the words of a grey image, as OCR.recognize does, within the limit of time.
func (b *builder) recognize(img *image.Gray, dpi int) ([]word, error) {
	switch {
	case b.slowImages >= maxSlowImages:
		return nil, fmt.Errorf("not tried, because %d others took more than %v: %w", b.slowImages, b.imageTime, ErrLimit)
	case b.outOfTime():
		return nil, fmt.Errorf("not tried, because the others took too long: %w", ErrLimit)
	}
	defer b.step()
	limited, cancel := context.WithTimeout(b.ctx, b.imageTime)
	defer cancel()
	words, err := b.ocr.recognize(limited, img, dpi)
	if err != nil && limited.Err() != nil && !b.canceled() {
		b.slowImages++
		return nil, fmt.Errorf("tesseract took more than %v: %w", b.imageTime, ErrLimit)
	}
	return words, err
}

// recognize returns the words of a grey image at a resolution in dots per inch, 0 for unknown. The
// image may be turned if the orientation can be detected.
func (o *OCR) recognize(ctx context.Context, img *image.Gray, dpi int) ([]word, error) {
	mode := "3" // automatic page segmentation
	if o.Orient {
		mode = "1" // and detection of the orientation
	}
	return o.run(ctx, img, dpi, mode)
}

// recognizeUpright is recognize for an image that is not turned, which takes half the time.
func (o *OCR) recognizeUpright(ctx context.Context, img *image.Gray, dpi int) ([]word, error) {
	return o.run(ctx, img, dpi, "3")
}

func (o *OCR) run(ctx context.Context, img *image.Gray, dpi int, mode string) ([]word, error) {
	args := []string{"-", "-", "--psm", mode, "-l", strings.Join(o.Languages, "+")}
	if dpi > 0 {
		args = append(args, "--dpi", strconv.Itoa(dpi))
	}
	out, err := runOCR(ctx, o.Program, encodePGM(img), append(args, "tsv")...)
	if err != nil {
		return nil, err
	}
	return parseTSV(out)
}

// maxOCROutput bounds the output of the program for one image.
const maxOCROutput = 32 << 20

// runOCR runs the program and returns its output. The program is killed when ctx ends and, on Linux,
// when this process ends. It stays in the process group, with which a parse worker is killed.
func runOCR(ctx context.Context, program string, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "OMP_THREAD_LIMIT=1") // more threads make it slower
	cmd.Stdin = bytes.NewReader(in)
	cmd.WaitDelay = time.Second
	out, failure := &limitedBuffer{limit: maxOCROutput}, &limitedBuffer{limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, failure
	dieWithParent(cmd)
	runtime.LockOSThread() // with whose end the program would end
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		reason, _, _ := strings.Cut(strings.TrimSpace(failure.buffer.String()), "\n")
		return nil, fmt.Errorf("%s: %w: %s", program, err, cmp.Or(reason, "no reason given"))
	}
	if out.over {
		return nil, fmt.Errorf("%s: more than %d MiB of output: %w", program, maxOCROutput>>20, ErrLimit)
	}
	return out.buffer.Bytes(), nil
}

// A limitedBuffer keeps the first bytes written to it and drops the rest.
type limitedBuffer struct {
	buffer bytes.Buffer // not embedded, since its ReadFrom has no limit
	limit  int
	over   bool
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	keep := p[:min(len(p), b.limit-b.buffer.Len())]
	b.over = b.over || len(keep) < len(p)
	b.buffer.Write(keep)
	return len(p), nil
}

// encodePGM encodes a grey image in the portable graymap format.
func encodePGM(img *image.Gray) []byte {
	size := img.Bounds().Size()
	out := fmt.Appendf(make([]byte, 0, size.X*size.Y+32), "P5\n%d %d\n255\n", size.X, size.Y)
	for y := range size.Y {
		out = append(out, img.Pix[y*img.Stride:y*img.Stride+size.X]...)
	}
	return out
}

// errTSV means that the program's output does not have its documented form.
var errTSV = errors.New("tesseract's output is not the table that it documents")

// parseTSV parses tesseract's table: level, page, block, paragraph, line, word, left, top, width,
// height, confidence in percent (-1: none), text. Rows of level 5 are words.
func parseTSV(table []byte) ([]word, error) {
	var words []word
	for line := range strings.Lines(string(table)) {
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), "\t", 12)
		if len(f) < 12 || f[0] != "5" {
			continue
		}
		var n [9]int
		for i := range n {
			v, err := strconv.Atoi(f[i+1])
			if err != nil {
				return nil, errTSV
			}
			n[i] = v
		}
		confidence, err := strconv.ParseFloat(f[10], 32)
		if err != nil {
			return nil, errTSV
		}
		text := strings.TrimSpace(f[11])
		if text == "" {
			continue
		}
		words = append(words, word{
			text: text, line: [4]int(n[:4]), confidence: float32(min(max(confidence, 0), 100) / 100),
			x0: float32(n[5]), y0: float32(n[6]), x1: float32(n[5] + n[7]), y1: float32(n[6] + n[8]),
		})
	}
	return words, nil
}

// recognized writes the recognised words of a page as paragraphs and reports whether there are any.
// A pixel is scale units of the page's boxes.
func (b *builder) recognized(words []word, page int, scale float32) bool {
	outer := b.from
	defer func() { b.from = outer }()
	b.page = page
	found := false
	for paragraph := range paragraphs(words) {
		found = true
		b.from = &assay.Provenance{Kind: assay.ProvenanceRecognized, Confidence: confidence(paragraph)}
		b.begin(Paragraph)
		b.put(joinWords(paragraph), 0)
		x0, y0, x1, y1 := bounds(paragraph)
		b.box(page, x0*scale, y0*scale, x1*scale, y1*scale)
		b.end()
	}
	return found
}

// paragraphs yields the words of each paragraph. Paragraphs without a letter or digit are noise of the
// image and are left out.
func paragraphs(words []word) iter.Seq[[]word] {
	return func(yield func([]word) bool) {
		for len(words) > 0 {
			n := 1
			for n < len(words) && [3]int(words[n].line[:3]) == [3]int(words[0].line[:3]) {
				n++
			}
			if slices.ContainsFunc(words[:n], hasLetters) && !yield(words[:n]) {
				return
			}
			words = words[n:]
		}
	}
}

func hasLetters(w word) bool {
	return strings.IndexFunc(w.text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}

// joinWords joins the words of a paragraph, with words that a line end divides made whole.
func joinWords(words []word) string {
	var text []byte
	for i, w := range words {
		next, _ := utf8.DecodeRuneInString(w.text)
		switch {
		case i == 0:
		case w.line != words[i-1].line && isDivided(words[i-1].text) && unicode.IsLower(next):
			text = text[:len(text)-len("-")]
		default:
			text = append(text, ' ')
		}
		text = append(text, w.text...)
	}
	return string(text)
}

// isDivided reports whether a word at the end of a line ends with a letter and a hyphen.
func isDivided(word string) bool {
	head, ok := strings.CutSuffix(word, "-")
	last, _ := utf8.DecodeLastRuneInString(head)
	return ok && unicode.IsLetter(last)
}

// confidence returns the mean confidence of words, weighted by their letters.
func confidence(words []word) float32 {
	sum, letters := float32(0), 0
	for _, w := range words {
		n := utf8.RuneCountInString(w.text)
		sum += w.confidence * float32(n)
		letters += n
	}
	return sum / float32(max(letters, 1))
}

// bounds returns the smallest rectangle around words.
func bounds(words []word) (x0, y0, x1, y1 float32) {
	x0, y0, x1, y1 = words[0].x0, words[0].y0, words[0].x1, words[0].y1
	for _, w := range words[1:] {
		x0, y0, x1, y1 = min(x0, w.x0), min(y0, w.y0), max(x1, w.x1), max(y1, w.y1)
	}
	return x0, y0, x1, y1
}
