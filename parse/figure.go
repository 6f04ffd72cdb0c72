package parse

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"maps"
	"slices"
	"strings"

	"golang.org/x/image/draw"

	"github.com/assay-rag/assay"
)

// An Image is a figure of a document, for a model that describes it.
type Image struct {
	After   int    // index in Blocks of the block before the place of the description; -1: none
	Page    int    // from 1; 0: the format has no pages
	Type    string // "image/png", "image/jpeg", "image/gif" or "image/webp"
	Data    []byte // at most about 4 MiB, and 1568 pixels on the longer side
	Caption string // the alternative text, recognised text and caption, if any

	Boxes []assay.Rectangle // where it is on the source's pages, if known
}

// A Description is a model's description of an image.
type Description struct {
	Image int // index in Document.Images
	Text  string
	Model string
}

// A picture is a figure that a format has found.
type picture struct {
	alt   string // alternative text or title
	data  []byte // in a format of package image; nil if it cannot be had
	line  int    // source line, 0: the format has no lines
	read  bool   // its text is in texts or in the document, so it is not recognised
	texts []recognizedText

	shown []byte // the image for a model; nil: data
	box   func() // calls builder.box; nil: no box is known
}

// Bounds of the figures of a document.
const (
	maxRecognized  = 200 // different images in which text is recognised
	maxImages      = 1000
	smallestFigure = 48   // pixels of each side, below which an image is an ornament
	maxModelSide   = 1568 // pixels, to which services scale images down
	maxModelBytes  = 3 << 20
)

// picture writes a figure: its alternative text and, if the OCR program is installed, the text in
// it. It keeps the image for a model if Input.Images asks for it.
func (b *builder) picture(p picture) {
	b.figureBlock(p.alt, p)
	caption := b.recognizedBlocks(p, p.texts)
	if b.ocr != nil && !p.read && isFigure(p.data) {
		caption = b.recognizedBlocks(p, b.recognizedIn(p.data))
	}
	if p.shown == nil {
		p.shown = p.data
	}
	if b.wantImages && isFigure(p.shown) && !b.canceled() {
		b.keepImage(p, caption)
	}
}

// recognizedBlocks writes the recognised text of a figure. It returns the text of the figure.
func (b *builder) recognizedBlocks(p picture, texts []recognizedText) (caption string) {
	caption = p.alt
	for _, text := range texts {
		b.from = &assay.Provenance{Kind: assay.ProvenanceRecognized, Confidence: text.confidence}
		b.figureBlock(text.text, p)
		b.from = nil
		caption = strings.TrimSpace(caption + "\n" + text.text)
	}
	return caption
}

// isFigure reports whether an image can be decoded and is larger than an ornament.
func isFigure(data []byte) bool {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	return err == nil && min(config.Width, config.Height) >= smallestFigure && config.Width <= maxPixels/config.Height
}

func (b *builder) figureBlock(text string, p picture) {
	if strings.TrimSpace(text) == "" {
		return
	}
	b.begin(Figure)
	b.put(text, p.line)
	if p.box != nil {
		p.box()
	}
	b.end()
}

// A recognizedText is a paragraph of an image.
type recognizedText struct {
	text       string
	confidence float32
}

// recognizedIn returns the paragraphs of an image. An image that occurs again, such as a logo, has
// none the second time. A failure of the program leaves the image without text and is noted.
func (b *builder) recognizedIn(data []byte) []recognizedText {
	if !b.isNewImage(sha256.Sum256(data)) {
		return nil
	}
	img, err := decodeImage(bytes.NewReader(data))
	if err != nil {
		b.note("an image is not searched for text: " + err.Error())
		return nil
	}
	words, err := b.recognize(toGray(img), 0)
	if err != nil {
		b.note("an image is not searched for text: " + err.Error())
		return nil
	}
	return recognizedTexts(words)
}

// isNewImage reports whether an image is to be searched for text: it was not before, and the
// document has not too many.
func (b *builder) isNewImage(key [32]byte) bool {
	if b.seenImages[key] {
		return false
	}
	if b.seenImages == nil {
		b.seenImages = map[[32]byte]bool{}
	}
	if len(b.seenImages) >= maxRecognized {
		b.note(fmt.Sprintf("only the first %d images are searched for text", maxRecognized))
		return false
	}
	b.seenImages[key] = true
	return true
}

func recognizedTexts(words []word) []recognizedText {
	var texts []recognizedText
	for paragraph := range paragraphs(words) {
		texts = append(texts, recognizedText{joinWords(paragraph), confidence(paragraph)})
	}
	return texts
}

// keepImage adds an image to the document's, once.
func (b *builder) keepImage(p picture, caption string) {
	key := sha256.Sum256(p.shown)
	if b.keptImages == nil {
		b.keptImages = map[[32]byte]bool{}
	}
	if b.keptImages[key] {
		return
	}
	if len(b.images) == maxImages {
		b.note(fmt.Sprintf("only the first %d images can be described", maxImages))
		return
	}
	b.keptImages[key] = true
	kind, data, err := forModel(p.shown)
	if err != nil {
		b.note("an image cannot be described: " + err.Error())
		return
	}
	img := Image{After: len(b.blocks) - 1, Page: b.page, Type: kind, Data: data, Caption: caption}
	if p.box != nil {
		open, boxes := b.open, b.curBoxes
		b.open, b.curBoxes = true, nil // as of a block of its own
		p.box()
		for _, box := range b.curBoxes {
			img.Boxes = append(img.Boxes, assay.Rectangle{Page: box.Page, X0: box.X0, Y0: box.Y0, X1: box.X1, Y1: box.Y1})
		}
		b.open, b.curBoxes = open, boxes
	}
	b.images = append(b.images, img)
}

// addCaptions adds to each image the caption next to it: on its page, or in the text if it has no
// box.
func (b *builder) addCaptions() {
	boxes := map[int][]assay.Box{} // of captions, by block
	for _, box := range b.boxes {
		if b.blocks[box.Block].Kind == Caption {
			boxes[box.Block] = append(boxes[box.Block], box)
		}
	}
	for i := range b.images {
		img := &b.images[i]
		at := b.captionBeside(*img)
		if len(img.Boxes) > 0 {
			at = captionNear(img.Boxes[0], boxes)
		}
		if at >= 0 {
			text := string(b.text[b.blocks[at].Start:b.blocks[at].End])
			img.Caption = strings.TrimSpace(img.Caption + "\n" + text)
		}
	}
}

// captionBeside returns the block with the caption after an image, or before it, or -1.
func (b *builder) captionBeside(img Image) int {
	isCaption := func(i int) bool { return 0 <= i && i < len(b.blocks) && b.blocks[i].Kind == Caption }
	before := img.After
	for before >= 0 && b.blocks[before].Kind == Figure {
		before--
	}
	switch {
	case isCaption(img.After + 1):
		return img.After + 1
	case isCaption(before):
		return before
	}
	return -1
}

// captionNear returns the block of the caption nearest above or below a figure, at most four lines
// away, or -1.
func captionNear(figure assay.Rectangle, captions map[int][]assay.Box) int {
	const farthest = 48 // points
	best, least := -1, float32(farthest)
	for _, block := range slices.Sorted(maps.Keys(captions)) {
		for _, c := range captions[block] {
			beside := c.X1 <= figure.X0 || figure.X1 <= c.X0
			if c.Page != figure.Page || beside {
				continue
			}
			if gap := max(c.Y0-figure.Y1, figure.Y0-c.Y1, 0); gap < least {
				best, least = block, gap
			}
		}
	}
	return best
}

// note adds a remark for the ingest report, once.
func (b *builder) note(text string) {
	if !slices.Contains(b.notes, text) {
		b.notes = append(b.notes, text)
	}
}

// forModel returns an image in a format and size that models accept.
func forModel(data []byte) (kind string, out []byte, err error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return "", nil, err
	}
	known := format == "png" || format == "jpeg" || format == "gif" || format == "webp"
	longest := max(config.Width, config.Height)
	if known && longest <= maxModelSide && len(data) <= maxModelBytes {
		return "image/" + format, data, nil
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return "", nil, err
	}
	return encodeForModel(scaleForModel(img))
}

// scaleForModel scales an image down to the size that services scale it to.
func scaleForModel(img image.Image) image.Image {
	size := img.Bounds().Size()
	longest := max(size.X, size.Y)
	if longest <= maxModelSide {
		return img
	}
	rect := image.Rect(0, 0, max(1, size.X*maxModelSide/longest), max(1, size.Y*maxModelSide/longest))
	scaled := image.NewRGBA(rect)
	draw.CatmullRom.Scale(scaled, rect, img, img.Bounds(), draw.Src, nil)
	return scaled
}

// encodeForModel encodes an image without loss, or as JPEG if it is large.
func encodeForModel(img image.Image) (kind string, out []byte, err error) {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return "", nil, err
	}
	if b.Len() <= maxModelBytes {
		return "image/png", b.Bytes(), nil
	}
	b.Reset()
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 85}); err != nil {
		return "", nil, err
	}
	return "image/jpeg", b.Bytes(), nil
}

// Describe returns doc with descriptions of its images, each as a figure after the image's block.
// They must be in the order of Image, at most one for each. Blank ones are left out.
func Describe(doc Document, descriptions []Description) Document {
	d := describer{old: doc, position: assay.Document{Text: doc.Text, Anchors: doc.Anchors}, out: doc}
	d.out.Anchors, d.out.Structure = nil, assay.Structure{Pages: doc.Pages}
	next := 0
	for i := -1; i < len(doc.Blocks); i++ {
		if i >= 0 {
			d.copyBlock(i)
		}
		if d.insideTable(i) {
			continue
		}
		for ; next < len(descriptions) && doc.Images[descriptions[next].Image].After <= i; next++ {
			d.insert(descriptions[next])
		}
	}
	d.text.WriteString(doc.Text[d.at:])
	d.out.Text = d.text.String()
	d.moveAnchors()
	d.moveMarks()
	return d.out
}

// A describer copies a document and inserts blocks.
type describer struct {
	old, out Document
	position assay.Document // of old, for its positions
	text     strings.Builder
	at       int   // bytes of the old text that are copied
	moved    []int // for each old block the distance by which it moved
	newIndex []int // for each old block its index in the new document
}

// insideTable reports whether a block and the one after it are in the same table.
func (d *describer) insideTable(i int) bool {
	inTable := func(i int) bool {
		return 0 <= i && i < len(d.old.Blocks) && (d.old.Blocks[i].Kind == TableRow || d.old.Blocks[i].Kind == TableHead)
	}
	return inTable(i) && inTable(i+1)
}

// copyBlock copies the text up to the end of block i.
func (d *describer) copyBlock(i int) {
	block := d.old.Blocks[i]
	if d.at == 0 && d.text.Len() > 0 {
		d.text.WriteString("\n\n")
	}
	d.text.WriteString(d.old.Text[d.at:block.Start])
	shift := d.text.Len() - block.Start
	d.text.WriteString(d.old.Text[block.Start:block.End])
	d.at = block.End
	block.Start, block.End = block.Start+shift, block.End+shift
	d.moved, d.newIndex = append(d.moved, shift), append(d.newIndex, len(d.out.Blocks))
	d.out.Blocks = append(d.out.Blocks, block)
}

// insert adds a description as a block of its own. Its source line is that of the text before it.
func (d *describer) insert(description Description) {
	b := newBuilder(context.Background())
	b.puts(Figure, description.Text, 0)
	text := string(b.text)
	if text == "" {
		return
	}
	if d.text.Len() > 0 {
		d.text.WriteString("\n\n")
	}
	start := d.text.Len()
	d.text.WriteString(text)
	line, page := d.position.Position(max(d.at-1, 0))
	page = cmp.Or(d.old.Images[description.Image].Page, page)
	for at := start; at < d.text.Len(); at += len("\n") { // an anchor for each line, all at the same place
		d.out.Anchors = append(d.out.Anchors, assay.Anchor{Start: at, Line: line, Page: page})
		end := strings.IndexByte(text[at-start:], '\n')
		if end < 0 {
			break
		}
		at += end
	}
	d.out.Blocks = append(d.out.Blocks, Block{Kind: Figure, Start: start, End: d.text.Len()})
	for _, box := range d.old.Images[description.Image].Boxes {
		d.out.Boxes = append(d.out.Boxes, assay.Box{Block: len(d.out.Blocks) - 1, Page: box.Page, X0: box.X0, Y0: box.Y0, X1: box.X1, Y1: box.Y1})
	}
	d.out.Provenance = append(d.out.Provenance, assay.Provenance{
		Start: start, End: d.text.Len(), Kind: assay.ProvenanceDescribed, Model: description.Model})
}

// shift returns the distance by which the old block moved that contains the byte at offset, or that
// follows it.
func (d *describer) shift(offset int) int {
	i, _ := slices.BinarySearchFunc(d.old.Blocks, offset, func(b Block, at int) int {
		if b.End <= at {
			return -1
		}
		return 1
	})
	if i == len(d.moved) {
		return len(d.out.Text) - len(d.old.Text)
	}
	return d.moved[i]
}

// moveAnchors moves the old anchors and adds one at the start of every block that follows a
// description.
func (d *describer) moveAnchors() {
	last := 0
	for i, block := range d.old.Blocks {
		if d.moved[i] == last {
			continue
		}
		last = d.moved[i]
		if line, page := d.position.Position(block.Start); line != 0 || page != 0 {
			d.out.Anchors = append(d.out.Anchors, assay.Anchor{Start: block.Start + last, Line: line, Page: page})
		}
	}
	for _, a := range d.old.Anchors {
		a.Start += d.shift(a.Start)
		d.out.Anchors = append(d.out.Anchors, a)
	}
	slices.SortStableFunc(d.out.Anchors, func(a, b assay.Anchor) int { return a.Start - b.Start })
	d.out.Anchors = slices.CompactFunc(d.out.Anchors, func(a, b assay.Anchor) bool { return a.Start == b.Start })
}

// moveMarks moves the tables, boxes and provenance of the old document.
func (d *describer) moveMarks() {
	for _, box := range d.old.Boxes {
		box.Block = d.newIndex[box.Block]
		d.out.Boxes = append(d.out.Boxes, box)
	}
	slices.SortStableFunc(d.out.Boxes, func(a, b assay.Box) int { return cmp.Compare(a.Block, b.Block) })
	for _, p := range d.old.Provenance {
		n := d.shift(p.Start)
		p.Start, p.End = p.Start+n, p.End+n
		d.out.Provenance = append(d.out.Provenance, p)
	}
	slices.SortStableFunc(d.out.Provenance, func(a, b assay.Provenance) int { return a.Start - b.Start })
	for _, t := range d.old.Tables {
		n := d.shift(t.Start)
		t.Cells = slices.Clone(t.Cells)
		for i := range t.Cells {
			t.Cells[i].Start, t.Cells[i].End = t.Cells[i].Start+n, t.Cells[i].End+n
		}
		t.Start, t.End = t.Start+n, t.End+n
		d.out.Tables = append(d.out.Tables, t)
	}
}
