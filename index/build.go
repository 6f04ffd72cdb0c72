package index

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// A builder collects documents and makes a segment of them.
type builder struct {
	documents []documentRow
	chunks    []chunkRow

	acls, collections map[string]uint32 // encoded ACL or name → number
	columns           map[string]*column

	terms map[string]uint32
	lists []postingList

	// Of the chunk being added: how often it holds each term, and which terms.
	frequencies [][fields]uint32
	touched     []uint32
}

type documentRow struct {
	id, version     string
	acl, collection uint32
	firstChunk      uint32
}

type chunkRow struct {
	id       string
	document uint32
	lengths  [fields]uint32
}

// A postingList is one term's postings so far.
type postingList struct {
	count int
	next  uint32 // the chunk after the last
	bytes []byte
}

func newBuilder() *builder {
	return &builder{
		acls:        make(map[string]uint32),
		collections: make(map[string]uint32),
		columns:     make(map[string]*column),
		terms:       make(map[string]uint32),
	}
}

// add takes a document with its chunks; no ID comes twice. Section chunks are
// left out: they are not searched.
func (b *builder) add(d *assay.Document, chunks []assay.Chunk, a *analysis.Analyzer) error {
	n := b.addDocument(d.ID, d.Version, d.Collection, d.ACL)
	for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
		if !b.column(key).add(n, d.Metadata[key]) {
			return fmt.Errorf("document %s: metadata key %q has a value of no kind: %w", d.ID, key, assay.ErrInvalid)
		}
	}
	for _, c := range chunks {
		if c.Kind == assay.ChunkSection {
			continue
		}
		if c.Start < 0 || c.End < c.Start || c.End > len(d.Text) {
			return fmt.Errorf("chunk %s [%d, %d) is outside its document's %d bytes: %w", c.ID, c.Start, c.End, len(d.Text), assay.ErrDamaged)
		}
		var lengths [fields]uint32
		lengths[titleField] = b.count(d.Title, titleField, a)
		for _, h := range c.Headings {
			lengths[headingsField] += b.count(h, headingsField, a)
		}
		lengths[bodyField] = b.count(d.Text[c.Start:c.End], bodyField, a)
		b.addChunk(c.ID, n, lengths)
	}
	return nil
}

// count notes the terms of one field of the current chunk and returns how many
// words they are; a compound is one, its parts do not make a text longer.
func (b *builder) count(text string, field int, a *analysis.Analyzer) uint32 {
	words := uint32(0)
	a.Each(text, func(t analysis.Token) {
		term, ok := b.terms[t.Term]
		if !ok {
			term = b.newTerm(strings.Clone(t.Term))
		}
		f := &b.frequencies[term]
		if *f == ([fields]uint32{}) {
			b.touched = append(b.touched, term)
		}
		f[field]++
		if !t.Part {
			words++
		}
	})
	return words
}

func (b *builder) newTerm(text string) uint32 {
	n := uint32(len(b.lists))
	b.terms[text] = n
	b.lists = append(b.lists, postingList{})
	b.frequencies = append(b.frequencies, [fields]uint32{})
	return n
}

// addChunk ends the current chunk: what was counted since the last is its.
func (b *builder) addChunk(id string, document uint32, lengths [fields]uint32) {
	n := uint32(len(b.chunks))
	b.chunks = append(b.chunks, chunkRow{id, document, lengths})
	for _, term := range b.touched {
		b.lists[term].add(n, b.frequencies[term])
		b.frequencies[term] = [fields]uint32{}
	}
	b.touched = b.touched[:0]
}

func (l *postingList) add(chunk uint32, tf [fields]uint32) {
	l.bytes = appendPosting(l.bytes, chunk-l.next, tf)
	l.next = chunk + 1
	l.count++
}

func (b *builder) addDocument(id, version, collection string, acl assay.ACL) uint32 {
	n := uint32(len(b.documents))
	b.documents = append(b.documents, documentRow{
		id:         id,
		version:    version,
		acl:        number(b.acls, string(appendACL(nil, acl))),
		collection: number(b.collections, collection),
		firstChunk: uint32(len(b.chunks)),
	})
	return n
}

func (b *builder) column(key string) *column {
	c := b.columns[key]
	if c == nil {
		c = new(column)
		b.columns[key] = c
	}
	return c
}

// number returns the number of key in numbers, the next one for a new key.
func number(numbers map[string]uint32, key string) uint32 {
	n, ok := numbers[key]
	if !ok {
		n = uint32(len(numbers))
		numbers[key] = n
	}
	return n
}

// segment encodes what was added, in the layout that type segment describes.
func (b *builder) segment() (*segment, error) {
	var sections [sectionCount][]byte
	var text []byte
	put := func(s string) (offset, size uint32) {
		offset = uint32(len(text))
		text = append(text, s...)
		return offset, uint32(len(s))
	}
	var documents, order, chunks []byte
	for _, d := range b.documents {
		id, idSize := put(d.id)
		version, versionSize := put(d.version)
		documents = appendRow(documents, id, idSize, version, versionSize, d.acl, d.collection, d.firstChunk)
	}
	for _, n := range b.sortedDocuments() {
		order = appendRow(order, n)
	}
	for _, c := range b.chunks {
		id, size := put(c.id)
		chunks = appendRow(chunks, id, size, c.document, c.lengths[titleField], c.lengths[headingsField], c.lengths[bodyField])
	}
	keys, columns := b.encodeColumns()
	terms, dictionary, postings := b.encodeTerms()
	for i, section := range [sectionCount][]byte{documents, order, chunks, text, encodeNumbered(b.acls, appendRaw), encodeNumbered(b.collections, appendString), keys, columns, terms, dictionary, postings} {
		if uint64(len(section)) > math.MaxUint32 {
			return nil, fmt.Errorf("segment: section %d has %d bytes, over 4 GiB: %w", i, len(section), assay.ErrInvalid)
		}
		sections[i] = section
	}
	file := newFrame(segmentFile)
	for _, section := range sections {
		file = binary.LittleEndian.AppendUint64(file, uint64(len(section)))
	}
	for _, section := range sections {
		file = append(file, section...)
	}
	s, err := openSegment(seal(file))
	if err != nil {
		return nil, fmt.Errorf("a segment just built cannot be read: %w", err)
	}
	return s, nil
}

// sortedDocuments returns the documents' numbers by ID.
func (b *builder) sortedDocuments() []uint32 {
	order := make([]uint32, len(b.documents))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.documents[x].id, b.documents[y].id) })
	return order
}

func (b *builder) encodeColumns() (keys, columns []byte) {
	keys = binary.AppendUvarint(keys, uint64(len(b.columns)))
	for _, name := range slices.Sorted(maps.Keys(b.columns)) {
		c := b.columns[name]
		keys = appendString(keys, name)
		keys = binary.AppendUvarint(keys, uint64(c.kinds))
		keys = binary.AppendUvarint(keys, uint64(c.entries))
		keys = binary.AppendUvarint(keys, uint64(len(c.bytes)))
		columns = append(columns, c.bytes...)
	}
	return keys, columns
}

func (b *builder) encodeTerms() (terms, dictionary, postings []byte) {
	for _, text := range slices.Sorted(maps.Keys(b.terms)) {
		l := b.lists[b.terms[text]]
		if l.count == 0 {
			continue
		}
		terms = appendRow(terms, uint32(len(dictionary)), uint32(len(text)), uint32(l.count), uint32(len(postings)))
		dictionary = append(dictionary, text...)
		postings = append(postings, l.bytes...)
	}
	return terms, dictionary, postings
}

// encodeNumbered writes the keys of a map by their numbers, after their count.
func encodeNumbered(numbers map[string]uint32, appendKey func([]byte, string) []byte) []byte {
	list := make([]string, len(numbers))
	for key, n := range numbers {
		list[n] = key
	}
	b := binary.AppendUvarint(nil, uint64(len(list)))
	for _, key := range list {
		b = appendKey(b, key)
	}
	return b
}

func appendRaw(b []byte, s string) []byte { return append(b, s...) }

func appendRow(b []byte, numbers ...uint32) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}
