package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/assay-rag/assay"
)

// A segment is an immutable set of documents with their chunks and postings. It reads its file's
// bytes in place. Opening a segment checks the bytes and decodes little.
//
// A chunk is identified by its row, its number in the segment. A document's chunks have consecutive
// rows. A document without chunks has one blank row, so that its metadata is indexed. A blank row
// has the ID zero, and no search finds or counts it.
//
// A segment's file is a frame (see frame.go) with the following sections, in this order. IDs are 16
// bytes, and numbers are little-endian.
//
//	ids         the chunk ID of each row
//	lengths     for each row a uint32, the weighted length of its chunk in words
//	documents   for each document its ID, its version and a uint32, its first row
//	documentIDs uint32s, the documents' numbers sorted by ID
//	chunkIDs    uint32s, the rows sorted by the ID of their chunk
//	blank       uint32s, the blank rows, ascending
//	sums        uint64, the sum of all lengths
//	filters     see filters.go
//	postings    see postings.go
//	dictionary  see dictionary.go
//	entity postings, entity dictionary, mentions, mention blocks
//	            see entities.go
type segment struct {
	file *file

	ids, lengths, documents, documentIDs, chunkIDs []byte

	rows          int
	documentCount int
	blank         []uint32 // ascending
	total         uint64   // sum of the lengths
	filters       filters
	dictionary    dictionary
	entities      dictionary // of entity keys
	mentions      mentions
}

const (
	idBytes         = 16
	documentBytes   = 2*idBytes + 4
	segmentSections = 14
)

// A rawID is the binary form of an ID of 32 hexadecimal digits.
type rawID [idBytes]byte

// parseID returns the raw form of an ID. It returns false if id is not 32 lower-case hexadecimal
// digits.
func parseID(id string) (rawID, bool) {
	var raw rawID
	if len(id) != 2*idBytes {
		return raw, false
	}
	for i := range raw {
		high, low := hexDigit(id[2*i]), hexDigit(id[2*i+1])
		if high|low > 0xf {
			return raw, false
		}
		raw[i] = high<<4 | low
	}
	return raw, true
}

// hexDigit returns the value of a lower-case hexadecimal digit, or 0xff if c is not one.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

// openSegment checks a segment's file and opens it. It does not hold the file.
func openSegment(f *file) (*segment, error) {
	sections, err := unframe(f.bytes, segmentFile, segmentSections)
	if err != nil {
		return nil, err
	}
	s := &segment{file: f, ids: sections[0], lengths: sections[1], documents: sections[2], documentIDs: sections[3], chunkIDs: sections[4]}
	s.rows = len(s.ids) / idBytes
	s.documentCount = len(s.documents) / documentBytes
	if len(s.ids) != s.rows*idBytes || len(s.lengths) != 4*s.rows || len(s.chunkIDs) != 4*s.rows ||
		len(s.documents) != s.documentCount*documentBytes || len(s.documentIDs) != 4*s.documentCount || len(sections[6]) != 8 {
		return nil, damaged("a table is cut")
	}
	if s.documentCount > s.rows || s.rows > maxRows {
		return nil, damaged("numbers of documents and chunks")
	}
	if s.blank, err = readAscending(sections[5], s.rows); err != nil {
		return nil, err
	}
	s.total = binary.LittleEndian.Uint64(sections[6])
	if s.filters, err = openFilters(sections[7], uint32(s.rows)); err != nil {
		return nil, err
	}
	if s.dictionary, err = openDictionary(sections[9], sections[8], uint32(s.rows)); err != nil {
		return nil, err
	}
	if s.entities, err = openDictionary(sections[11], sections[10], uint32(s.rows)); err != nil {
		return nil, err
	}
	if s.mentions, err = openMentions(sections[12], sections[13], s.rows, s.entities.count); err != nil {
		return nil, err
	}
	return s, nil
}

// maxRows is the maximum number of rows in a segment.
const maxRows = 1 << 30

// readAscending reads ascending uint32s less than n.
func readAscending(b []byte, n int) ([]uint32, error) {
	list := make([]uint32, len(b)/4)
	for i := range list {
		list[i] = u32(b, i)
		if int64(list[i]) >= int64(n) || i > 0 && list[i] <= list[i-1] {
			return nil, damaged("rows out of order")
		}
	}
	return list, nil
}

// document returns the table entry of document n.
func (s *segment) document(n uint32) []byte {
	return s.documents[int(n)*documentBytes : int(n+1)*documentBytes]
}

func (s *segment) length(row uint32) uint32 { return u32(s.lengths, int(row)) }

// id returns the ID at index n of a list of IDs.
func id(ids []byte, n uint32) []byte { return ids[int(n)*idBytes : int(n+1)*idBytes] }

// firstRow returns the first row of document n, or the number of rows if n is past the last
// document.
func (s *segment) firstRow(n int) uint32 {
	if n >= s.documentCount {
		return uint32(s.rows)
	}
	return min(u32(s.document(uint32(n))[2*idBytes:], 0), uint32(s.rows))
}

// rowsOf returns the first row of a document and the row after its last.
func (s *segment) rowsOf(n uint32) (first, end uint32) {
	first = s.firstRow(int(n))
	return first, max(first, s.firstRow(int(n)+1))
}

// documentOf returns the number of the document that a row belongs to.
func (s *segment) documentOf(row uint32) (uint32, error) {
	n := sort.Search(s.documentCount, func(n int) bool { return s.firstRow(n) > row }) - 1
	if n < 0 {
		return 0, damaged("a chunk has no document")
	}
	return uint32(n), nil
}

// findDocument returns the number of the document with the given ID.
func (s *segment) findDocument(raw rawID) (uint32, bool) {
	return find(raw, s.documentIDs, s.documents, documentBytes)
}

// findChunk returns the row of the chunk with the given ID.
func (s *segment) findChunk(raw rawID) (uint32, bool) {
	return find(raw, s.chunkIDs, s.ids, idBytes)
}

// find looks up an ID in rows of size bytes that each begin with an ID. order holds the row numbers
// sorted by ID.
func find(raw rawID, order, rows []byte, size int) (uint32, bool) {
	at := func(i int) []byte {
		start := min(int(u32(order, i))*size, len(rows)-size)
		return rows[start : start+idBytes]
	}
	i := sort.Search(len(order)/4, func(i int) bool { return bytes.Compare(at(i), raw[:]) >= 0 })
	if i == len(order)/4 || !bytes.Equal(at(i), raw[:]) {
		return 0, false
	}
	n := u32(order, i)
	return n, int(n) < len(rows)/size
}

// rows holds the rows and documents of a segment under construction.
type rows struct {
	ids       []byte
	lengths   []uint32
	documents []byte
	blank     []uint32
	total     uint64
}

func (r *rows) count() int { return len(r.lengths) }

// addDocument starts a document. The rows added next belong to it.
func (r *rows) addDocument(document, version []byte) {
	r.documents = append(append(r.documents, document...), version...)
	r.documents = binary.LittleEndian.AppendUint32(r.documents, uint32(r.count()))
}

// addChunk adds a row to the current document.
func (r *rows) addChunk(id []byte, length uint32) {
	r.ids = append(r.ids, id...)
	r.lengths = append(r.lengths, length)
	r.total += uint64(length)
}

// addBlank adds the only row of a document without chunks.
func (r *rows) addBlank() {
	r.blank = append(r.blank, uint32(r.count()))
	r.addChunk(make([]byte, idBytes), 0)
}

func (r *rows) reset() {
	*r = rows{ids: r.ids[:0], lengths: r.lengths[:0], documents: r.documents[:0], blank: r.blank[:0]}
}

// A segmentWriter writes a segment: first its rows and filters, then its terms one by one, then its
// entities, and finally the mentions of each row.
type segmentWriter struct {
	frame    *frameWriter
	lengths  []uint32
	terms    dictionaryWriter
	entities dictionaryWriter
	mentions mentionWriter
	encoded  []byte
}

func newSegmentWriter(w io.Writer, r *rows, f *filterWriter) (*segmentWriter, error) {
	if r.count() > maxRows {
		return nil, fmt.Errorf("segment of %d chunks, at most %d: %w", r.count(), maxRows, assay.ErrInvalid)
	}
	frame := newFrameWriter(w, segmentFile)
	sw := &segmentWriter{frame: frame, lengths: r.lengths}
	_, _ = frame.section().Write(r.ids) // errors are returned by finish
	sw.numbers(r.lengths)
	_, _ = frame.section().Write(r.documents)
	sw.numbers(sortedIDs(r.documents, documentBytes))
	sw.numbers(sortedIDs(r.ids, idBytes))
	sw.numbers(r.blank)
	_, _ = frame.section().Write(binary.LittleEndian.AppendUint64(nil, r.total))
	if err := f.writeTo(frame.section(), uint32(r.count())); err != nil {
		return nil, err
	}
	frame.section() // postings
	return sw, frame.err
}

// numbers writes a section of uint32s.
func (w *segmentWriter) numbers(list []uint32) {
	w.frame.section()
	for part := range slices.Chunk(list, frameBuffer/4) {
		w.encoded = w.encoded[:0]
		for _, n := range part {
			w.encoded = binary.LittleEndian.AppendUint32(w.encoded, n)
		}
		_, _ = w.frame.Write(w.encoded)
	}
}

// sortedIDs returns the indices of rows of size bytes, sorted by the ID at the start of each row.
func sortedIDs(rows []byte, size int) []uint32 {
	type key struct {
		start uint64 // first bytes of the ID
		n     uint32
	}
	keys := make([]key, len(rows)/size)
	for i := range keys {
		keys[i] = key{binary.BigEndian.Uint64(rows[i*size:]), uint32(i)}
	}
	rest := func(n uint32) []byte { return rows[int(n)*size+8 : int(n)*size+idBytes] }
	slices.SortFunc(keys, func(a, b key) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		if c := bytes.Compare(rest(a.n), rest(b.n)); c != 0 {
			return c
		}
		return int(a.n) - int(b.n)
	})
	order := make([]uint32, len(keys))
	for i, k := range keys {
		order[i] = k.n
	}
	return order
}

// term adds a term with its postings, which ascend by chunk. Terms must be added in byte order.
func (w *segmentWriter) term(text string, list []posting) error {
	return w.postings(&w.terms, text, list)
}

func (w *segmentWriter) postings(d *dictionaryWriter, key string, list []posting) error {
	w.encoded = appendPostings(w.encoded[:0], list, w.lengths)
	d.add(key, len(list), len(w.encoded))
	_, err := w.frame.Write(w.encoded)
	return err
}

// endTerms ends the section of terms. Entities follow.
func (w *segmentWriter) endTerms() {
	_, _ = w.frame.section().Write(w.terms.bytes()) // errors are returned by finish
	w.terms = dictionaryWriter{}
	w.frame.section() // postings of the entities
}

// entity adds an entity with the rows that name it. Entities must be added in byte order of their
// keys.
func (w *segmentWriter) entity(key string, list []posting) error {
	return w.postings(&w.entities, key, list)
}

// endEntities ends the section of entities. The mentions of each row follow.
func (w *segmentWriter) endEntities() {
	_, _ = w.frame.section().Write(w.entities.bytes())
	w.entities = dictionaryWriter{}
	w.mentions.frame = w.frame.section()
}

func (w *segmentWriter) finish() error {
	_, _ = w.frame.section().Write(w.mentions.starts)
	return w.frame.finish()
}
