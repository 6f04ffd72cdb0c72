package index

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// A builder collects documents and builds a segment from them.
type builder struct {
	rows    rows
	filters *filterWriter

	terms  map[string]uint32
	texts  []string // terms by number
	counts []uint32 // number of rows that hold each term

	// log has, for each row, the number of its terms and for each term a varint of twice the term's
	// number. The varint has 1 added if the weighted frequency is not 1, and the frequency follows
	// as another varint.
	log      []byte
	postings int
	size     int // approximate bytes of filters and terms

	// Weighted frequency of each term in the chunk being added, and the terms that occur in it.
	frequencies []uint32
	touched     []uint32

	fields map[string]field // titles and headings of the current document, by text
	list   []posting        // buffer for all postings, reused for the next segment

	entities entityBuilder
}

// A field is the contribution of a title or heading to each chunk under it.
type field struct {
	terms []uint32 // one for each token
	words uint32
}

// maxFields is how many headings of one document are cached. Some documents consist only of
// headings.
const maxFields = 1 << 10

func newBuilder() *builder {
	return &builder{
		filters:  newFilterWriter(),
		terms:    make(map[string]uint32),
		fields:   make(map[string]field),
		entities: entityBuilder{numbers: make(map[string]uint32)},
	}
}

// full reports whether the segment should be cut.
func (b *builder) full(l limits) bool {
	return b.postings >= l.builderPostings || b.size >= l.builderBytes
}

// add adds a document and its chunks. Each ID must occur only once. Section chunks are skipped
// because they are not searched. After an error b is unusable.
func (b *builder) add(d *assay.Document, chunks []assay.Chunk, a *analysis.Analyzer) error {
	id, ok := parseID(d.ID)
	version, okVersion := parseID(d.Version)
	if !ok || !okVersion {
		return fmt.Errorf("document %q of version %q: an ID is 32 hexadecimal digits: %w", d.ID, d.Version, assay.ErrInvalid)
	}
	first := b.rows.count()
	b.rows.addDocument(id[:], version[:])
	clear(b.fields)
	for i := range chunks {
		if chunks[i].Kind == assay.ChunkSection {
			continue
		}
		if err := b.addChunk(d, &chunks[i], a); err != nil {
			return err
		}
	}
	if b.rows.count() == first {
		b.rows.addBlank()
		b.log = append(b.log, 0)
		b.entities.add(nil)
	}
	for key, v := range d.Metadata {
		b.size += len(key) + len(v.String) + 32
		for _, s := range v.List {
			b.size += len(s) + 16
		}
	}
	if err := b.filters.add(uint32(first), uint32(b.rows.count()), d.Metadata, d.ACL, d.Collection, language(d)); err != nil {
		return fmt.Errorf("document %s: %w", d.ID, err)
	}
	return nil
}

// language returns the language that the document's metadata declares, or the empty string.
func language(d *assay.Document) string {
	if v, ok := d.Metadata["language"]; ok && v.Kind == assay.KindString {
		return v.String
	}
	return ""
}

func (b *builder) addChunk(d *assay.Document, c *assay.Chunk, a *analysis.Analyzer) error {
	id, err := CheckChunk(d, c)
	if err != nil {
		return err
	}
	length := titleWeight * b.addField(d.Title, titleWeight, a)
	for _, h := range c.Headings {
		length += headingsWeight * b.addField(h, headingsWeight, a)
	}
	words := uint32(0)
	a.Each(d.Text[c.Start:c.End], func(t analysis.Token) {
		b.hold(b.term(t.Term), bodyWeight)
		if !t.Part {
			words++
		}
	})
	b.rows.addChunk(id[:], length+bodyWeight*words)
	b.endChunk()
	b.size += b.entities.add(b.entities.finder.Passage(d.Title, c.Headings, d.Text[c.Start:c.End], language(d)))
	return nil
}

// addField counts the terms of a title or heading in the current chunk and returns its length in
// words. A compound counts as one word; its parts do not make a text longer.
func (b *builder) addField(text string, weight uint32, a *analysis.Analyzer) uint32 {
	f, known := b.fields[text]
	if !known {
		a.Each(text, func(t analysis.Token) {
			f.terms = append(f.terms, b.term(t.Term))
			if !t.Part {
				f.words++
			}
		})
		if len(b.fields) < maxFields {
			b.fields[text] = f
		}
	}
	for _, term := range f.terms {
		b.hold(term, weight)
	}
	return f.words
}

// term returns the number of a term, adding the term if it is new.
func (b *builder) term(text string) uint32 {
	n, ok := b.terms[text]
	if !ok {
		n = uint32(len(b.texts))
		text = strings.Clone(text)
		b.terms[text] = n
		b.texts = append(b.texts, text)
		b.counts = append(b.counts, 0)
		b.frequencies = append(b.frequencies, 0)
		b.size += len(text) + 64
	}
	return n
}

// hold counts a term of the current chunk.
func (b *builder) hold(term, weight uint32) {
	if b.frequencies[term] == 0 {
		b.touched = append(b.touched, term)
	}
	b.frequencies[term] += weight
}

// endChunk writes the terms counted since the last chunk to the log.
func (b *builder) endChunk() {
	b.log = binary.AppendUvarint(b.log, uint64(len(b.touched)))
	for _, term := range b.touched {
		if tf := b.frequencies[term]; tf == 1 {
			b.log = binary.AppendUvarint(b.log, uint64(term)<<1)
		} else {
			b.log = binary.AppendUvarint(b.log, uint64(term)<<1|1)
			b.log = binary.AppendUvarint(b.log, uint64(tf))
		}
		b.counts[term]++
		b.frequencies[term] = 0
	}
	b.postings += len(b.touched)
	b.touched = b.touched[:0]
}

// write writes the segment of the added documents.
func (b *builder) write(w io.Writer) error {
	sw, err := newSegmentWriter(w, &b.rows, b.filters)
	if err != nil {
		return err
	}
	ends := b.sortPostings()
	for _, term := range byText(b.texts) {
		list := b.list[ends[term]-b.counts[term] : ends[term]]
		if len(list) == 0 {
			continue
		}
		if err := sw.term(b.texts[term], list); err != nil {
			return err
		}
	}
	return b.entities.write(sw)
}

// sortPostings copies the log's postings into b.list, grouped by term, and returns the end of each
// term's postings.
func (b *builder) sortPostings() []uint32 {
	next := make([]uint32, len(b.counts)) // position of each term's next posting
	sum := uint32(0)
	for term, n := range b.counts {
		next[term] = sum
		sum += n
	}
	b.list = slices.Grow(b.list[:0], b.postings)[:b.postings]
	log := decoder{rest: b.log}
	for row := range uint32(b.rows.count()) {
		for range log.uint() {
			head := log.uint()
			tf := uint32(1)
			if head&1 != 0 {
				tf = uint32(log.uint())
			}
			term := head >> 1
			b.list[next[term]] = posting{row, tf}
			next[term]++
		}
	}
	return next
}

// byText returns the indices of texts, sorted by the bytes of the texts.
func byText(texts []string) []uint32 {
	type key struct {
		start uint64 // first bytes
		n     uint32
	}
	keys := make([]key, len(texts))
	for i, text := range texts {
		keys[i] = key{prefix(text), uint32(i)}
	}
	slices.SortFunc(keys, func(x, y key) int {
		if c := cmp.Compare(x.start, y.start); c != 0 {
			return c
		}
		return strings.Compare(texts[x.n], texts[y.n])
	})
	order := make([]uint32, len(keys))
	for i, k := range keys {
		order[i] = k.n
	}
	return order
}

// reset prepares b for the next segment.
func (b *builder) reset() {
	b.rows.reset()
	b.filters = newFilterWriter()
	clear(b.terms)
	clear(b.texts)
	b.texts, b.counts, b.frequencies = b.texts[:0], b.counts[:0], b.frequencies[:0]
	b.log, b.postings, b.size = b.log[:0], 0, 0
	b.entities.reset()
}

// cut makes a segment of the added documents and resets b.
func (b *builder) cut(to *fileSink) (*segment, error) {
	defer b.reset()
	return makeSegment(to, b.write)
}

func makeSegment(to *fileSink, write func(io.Writer) error) (*segment, error) {
	f, err := to.make(segmentSuffix, write)
	if err != nil {
		return nil, err
	}
	s, err := f.segment()
	if err != nil {
		return nil, fmt.Errorf("a segment just written cannot be read: %w", err)
	}
	return s, nil
}
