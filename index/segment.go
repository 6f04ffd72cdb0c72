package index

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"sort"

	"github.com/assay-rag/assay"
)

// A segment is an immutable set of documents with their chunks and postings. It
// is its file's bytes: opening one checks them and decodes little.
//
// The payload, little-endian, is a table of sections (for each its size in
// bytes, uint64) and the sections one after the other:
//
//	documents   for each document, 7 × uint32: its ID (offset in strings, bytes), its version
//	            (the same), its ACL and its collection (numbers in their sections), its first
//	            chunk; a document's chunks follow one another
//	order       the documents' numbers sorted by ID, uint32 each
//	chunks      for each chunk, 6 × uint32: its ID (offset in strings, bytes), its document,
//	            its length in terms of title, headings and body
//	strings     the bytes of IDs and versions
//	acls        the distinct ACLs, see appendACL; a count first
//	collections their names, each a length and bytes; a count first
//	keys        for each metadata key its name, kinds, entries and column's size; a count first
//	columns     the keys' columns, one after the other, see column
//	terms       for each term, sorted by its bytes, 4 × uint32: its bytes (offset in dictionary,
//	            bytes), the chunks that hold it, where its postings start
//	dictionary  the bytes of the terms
//	postings    the terms' postings, see posting
//
// Counts, lengths and sizes without a type are unsigned varints.
type segment struct {
	bytes []byte // the whole file

	documents, order, chunks, strings, columns, terms, dictionary, postings []byte

	documentCount, chunkCount, termCount int

	acls        []assay.ACL
	collections []string
	keys        map[string]keyInfo
	lengths     []float32 // of each chunk, fields weighted; see fieldWeights
	total       [fields]uint64
}

// A keyInfo says where a metadata key's column is.
type keyInfo struct {
	kinds   kindSet // of the values in it
	entries int
	column  []byte
}

const (
	documentBytes = 7 * 4
	chunkBytes    = 6 * 4
	termBytes     = 4 * 4
	sectionCount  = 11
)

// maxSegmentBytes is the size past which segments are not merged into one. The
// format's own limit is 4 GiB a section.
const maxSegmentBytes = 1 << 30

// Fields of a chunk.
const (
	titleField = iota
	headingsField
	bodyField
	fields
)

// openSegment checks a segment file's bytes, which it keeps.
func openSegment(file []byte) (*segment, error) {
	payload, err := unframe(file, segmentFile)
	if err != nil {
		return nil, err
	}
	s := &segment{bytes: file}
	sections, err := cutSections(payload)
	if err != nil {
		return nil, err
	}
	var acls, collections, keys []byte
	for i, p := range []*[]byte{&s.documents, &s.order, &s.chunks, &s.strings, &acls, &collections, &keys, &s.columns, &s.terms, &s.dictionary, &s.postings} {
		*p = sections[i]
	}
	s.documentCount = len(s.documents) / documentBytes
	s.chunkCount = len(s.chunks) / chunkBytes
	s.termCount = len(s.terms) / termBytes
	if len(s.documents)%documentBytes != 0 || len(s.chunks)%chunkBytes != 0 || len(s.terms)%termBytes != 0 || len(s.order) != 4*s.documentCount {
		return nil, damaged("a table is cut")
	}
	d := decoder{rest: acls}
	for range d.count() {
		s.acls = append(s.acls, d.acl())
	}
	d.rest = collections
	for range d.count() {
		s.collections = append(s.collections, d.string())
	}
	d.rest = keys
	if err := s.readKeys(&d); err != nil {
		return nil, err
	}
	if d.failed {
		return nil, damaged("a list is cut")
	}
	if err := s.checkTables(); err != nil {
		return nil, err
	}
	return s, nil
}

// fileName names a segment by its content, so that a file of that name never
// changes.
func (s *segment) fileName() string {
	sum := sha256.Sum256(s.bytes)
	return hex.EncodeToString(sum[:12]) + segmentSuffix
}

func damaged(what string) error { return fmt.Errorf("segment: %s: %w", what, assay.ErrDamaged) }

// cutSections returns the sections that the table at the payload's start names.
func cutSections(payload []byte) ([][]byte, error) {
	const table = sectionCount * 8
	if len(payload) < table {
		return nil, damaged("no table of sections")
	}
	rest := payload[table:]
	sections := make([][]byte, sectionCount)
	for i := range sections {
		n := binary.LittleEndian.Uint64(payload[8*i:])
		if n > uint64(len(rest)) {
			return nil, damaged("a section is cut")
		}
		sections[i], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 {
		return nil, damaged("bytes after the last section")
	}
	return sections, nil
}

func (s *segment) readKeys(d *decoder) error {
	n := d.count()
	s.keys = make(map[string]keyInfo, n)
	columns := s.columns
	for range n {
		name := d.string()
		info := keyInfo{kinds: kindSet(d.uint()), entries: int(d.uint())}
		size := d.uint()
		if d.failed || size > uint64(len(columns)) {
			return damaged("a metadata column is cut")
		}
		info.column, columns = columns[:size], columns[size:]
		s.keys[name] = info
	}
	return nil
}

// checkTables checks that every number in the tables points to something, so
// that nothing after it has to, and sums the chunks' lengths.
func (s *segment) checkTables() error {
	next := uint32(0)
	for i := range s.documentCount {
		r := s.documents[i*documentBytes:]
		first := u32(r, 6)
		if !s.isString(r, 0) || !s.isString(r, 2) || u32(r, 4) >= uint32(len(s.acls)) || u32(r, 5) >= uint32(len(s.collections)) ||
			first < next || first > uint32(s.chunkCount) || u32(s.order, i) >= uint32(s.documentCount) {
			return damaged("a document points nowhere")
		}
		next = first
	}
	s.lengths = make([]float32, s.chunkCount)
	for i := range s.chunkCount {
		r := s.chunks[i*chunkBytes:]
		if !s.isString(r, 0) {
			return damaged("a chunk points nowhere")
		}
		document := u32(r, 2)
		if document >= uint32(s.documentCount) {
			return damaged("a chunk has no document")
		}
		if first, end := s.chunksOf(document); uint32(i) < first || uint32(i) >= end {
			return damaged("a chunk is not among its document's")
		}
		s.lengths[i] = s.weightedLength(uint32(i))
		for f, n := range s.fieldLengths(uint32(i)) {
			s.total[f] += uint64(n)
		}
	}
	last := uint32(0)
	for i := range s.termCount {
		r := s.terms[i*termBytes:]
		start := u32(r, 3)
		if uint64(u32(r, 0))+uint64(u32(r, 1)) > uint64(len(s.dictionary)) || start < last || uint64(start) > uint64(len(s.postings)) {
			return damaged("a term points nowhere")
		}
		last = start
	}
	return nil
}

// isString reports whether the two numbers from i on are a span of strings.
func (s *segment) isString(row []byte, i int) bool {
	return uint64(u32(row, i))+uint64(u32(row, i+1)) <= uint64(len(s.strings))
}

func (s *segment) stringAt(row []byte, i int) string {
	start := u32(row, i)
	return string(s.strings[start : start+u32(row, i+1)])
}

// u32 returns the i-th uint32 of a row.
func u32(row []byte, i int) uint32 { return binary.LittleEndian.Uint32(row[4*i:]) }

func (s *segment) document(n uint32) []byte { return s.documents[n*documentBytes:] }
func (s *segment) chunk(n uint32) []byte    { return s.chunks[n*chunkBytes:] }

func (s *segment) documentID(n uint32) string      { return s.stringAt(s.document(n), 0) }
func (s *segment) documentVersion(n uint32) string { return s.stringAt(s.document(n), 2) }
func (s *segment) acl(n uint32) uint32             { return u32(s.document(n), 4) }
func (s *segment) collection(n uint32) uint32      { return u32(s.document(n), 5) }

// chunksOf returns the first chunk of a document and the one after its last.
func (s *segment) chunksOf(n uint32) (first, end uint32) {
	first, end = u32(s.document(n), 6), uint32(s.chunkCount)
	if int(n)+1 < s.documentCount {
		end = u32(s.document(n+1), 6)
	}
	return first, end
}

func (s *segment) chunkID(n uint32) string       { return s.stringAt(s.chunk(n), 0) }
func (s *segment) chunkDocument(n uint32) uint32 { return u32(s.chunk(n), 2) }

// fieldLengths returns a chunk's length in terms, by field.
func (s *segment) fieldLengths(n uint32) [fields]uint32 {
	r := s.chunk(n)
	return [fields]uint32{u32(r, 3), u32(r, 4), u32(r, 5)}
}

func (s *segment) weightedLength(n uint32) float32 {
	sum := 0.0
	for f, length := range s.fieldLengths(n) {
		sum += fieldWeights[f] * float64(length)
	}
	return float32(sum)
}

// find returns the number of the document with this ID.
func (s *segment) find(id string) (uint32, bool) {
	i := sort.Search(s.documentCount, func(i int) bool { return s.documentID(u32(s.order, i)) >= id })
	if i == s.documentCount {
		return 0, false
	}
	n := u32(s.order, i)
	return n, s.documentID(n) == id
}

// term returns the i-th term and its postings.
func (s *segment) term(i int) (string, postings) {
	r := s.terms[i*termBytes:]
	start, end := u32(r, 3), uint32(len(s.postings))
	if i+1 < s.termCount {
		end = u32(r[termBytes:], 3)
	}
	return s.termText(i), postings{count: int(u32(r, 2)), bytes: s.postings[start:end], chunks: uint32(s.chunkCount)}
}

func (s *segment) termText(i int) string {
	r := s.terms[i*termBytes:]
	start := u32(r, 0)
	return string(s.dictionary[start : start+u32(r, 1)])
}

// lookup returns a term's postings; none where the segment does not hold it.
func (s *segment) lookup(term string) postings {
	i := sort.Search(s.termCount, func(i int) bool { return s.termText(i) >= term })
	if i == s.termCount {
		return postings{}
	}
	if found, p := s.term(i); found == term {
		return p
	}
	return postings{}
}

// postings are the chunks that hold one term.
type postings struct {
	count  int // chunks, deleted ones included
	bytes  []byte
	chunks uint32 // in the segment
}

// A posting says how often a chunk holds a term, by field. It is stored as a
// varint that holds the difference of its chunk's number to the one before (the
// first: to -1), less one, times four, plus how the frequencies follow:
//
//	0  the body has the term once, the other fields do not
//	1  only the body has it; its frequency follows as a varint
//	2  the frequencies in title, headings and body follow as varints
type posting struct {
	chunk uint32
	tf    [fields]uint32
}

func appendPosting(b []byte, gap uint32, tf [fields]uint32) []byte {
	head := uint64(gap) << 2
	switch {
	case tf == [fields]uint32{bodyField: 1}:
		return binary.AppendUvarint(b, head)
	case tf[titleField] == 0 && tf[headingsField] == 0:
		b = binary.AppendUvarint(b, head|1)
		return binary.AppendUvarint(b, uint64(tf[bodyField]))
	}
	b = binary.AppendUvarint(b, head|2)
	for _, n := range tf {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// each calls f for every posting, by chunk. It returns false when the bytes are
// no postings of this segment.
func (p postings) each(f func(posting)) bool {
	d := decoder{rest: p.bytes}
	next := uint64(0)
	for range p.count {
		head := d.uint()
		chunk := next + head>>2
		if d.failed || chunk >= uint64(p.chunks) {
			return false
		}
		next = chunk + 1
		x := posting{chunk: uint32(chunk)}
		switch head & 3 {
		case 0:
			x.tf[bodyField] = 1
		case 1:
			x.tf[bodyField] = uint32(d.uint())
		default:
			for i := range x.tf {
				x.tf[i] = uint32(d.uint())
			}
		}
		f(x)
	}
	return !d.failed && len(d.rest) == 0
}

// A decoder reads varints and strings from bytes. After the first that is not
// there it has failed and gives zeros.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) uint() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 {
		n := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(n)
	}
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count reads how many things follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes(d.uint())) }

func (d *decoder) strings() []string {
	var list []string
	for range d.count() {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) float() float64 {
	b := d.bytes(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// appendACL writes an ACL as a varint that is 1 when it restricts, and the list
// of its names.
func appendACL(b []byte, acl assay.ACL) []byte {
	if acl.Restricted {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return appendStrings(b, acl.Allow)
}

func (d *decoder) acl() assay.ACL {
	return assay.ACL{Restricted: d.uint() != 0, Allow: d.strings()}
}
