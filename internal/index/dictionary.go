package index

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// A dictionary maps the terms of a segment to their postings. The layout is little-endian:
//
//	 0  uint64  number of terms
//	 8  a row of dictionaryRow bytes for each block of 16 terms (the last may be shorter):
//	     0  uint64  the block's first term's first eight bytes, big-endian, zeros after its end
//	     8  uint64  offset of the block's text from the end of the rows
//	    16  uint64  offset of the postings of its first term in the section of postings
//	then the text of the blocks, for each term in byte order:
//	    varint  length of the prefix shared with the term before; 0 for a block's first
//	    varint  length of the rest, and the rest
//	    varint  number of its postings, at least 1
//	    varint  size of its postings in bytes
//
// Postings are in the order of the terms. A lookup searches the rows and reads one block. Opening a
// dictionary decodes nothing.
const (
	dictionaryBlock  = 16
	dictionaryRow    = 24
	dictionaryHeader = 8
)

// A dictionaryWriter builds the bytes of a dictionary.
type dictionaryWriter struct {
	terms int
	rows  []byte
	text  []byte
	last  []byte // the last term added
	next  uint64 // offset of the next term's postings
}

// add adds a term with count postings in size bytes, which follow the postings of the term before.
// Terms must ascend by bytes without duplicates.
func (w *dictionaryWriter) add(term string, count int, size int) {
	shared := 0
	if w.terms%dictionaryBlock == 0 {
		w.rows = binary.LittleEndian.AppendUint64(w.rows, prefix(term))
		w.rows = binary.LittleEndian.AppendUint64(w.rows, uint64(len(w.text)))
		w.rows = binary.LittleEndian.AppendUint64(w.rows, w.next)
	} else {
		shared = sharedPrefix(w.last, term)
	}
	w.text = binary.AppendUvarint(w.text, uint64(shared))
	w.text = appendString(w.text, term[shared:])
	w.text = binary.AppendUvarint(w.text, uint64(count))
	w.text = binary.AppendUvarint(w.text, uint64(size))
	w.last = append(w.last[:shared], term[shared:]...)
	w.next += uint64(size)
	w.terms++
}

// bytes returns the encoded dictionary.
func (w *dictionaryWriter) bytes() []byte {
	b := make([]byte, 0, dictionaryHeader+len(w.rows)+len(w.text))
	b = binary.LittleEndian.AppendUint64(b, uint64(w.terms))
	return append(append(b, w.rows...), w.text...)
}

// prefix returns a number that orders terms by their first eight bytes.
func prefix(term string) uint64 {
	var first [8]byte
	copy(first[:], term)
	return binary.BigEndian.Uint64(first[:])
}

func sharedPrefix(a []byte, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// A dictionary reads the output of a dictionaryWriter in place.
type dictionary struct {
	count    int // number of terms
	rows     []byte
	text     []byte
	postings []byte
	chunks   uint32
}

// openDictionary opens the dictionary b of a segment with the given number of chunks and section of
// postings. It decodes nothing.
func openDictionary(b []byte, postings []byte, chunks uint32) (dictionary, error) {
	if len(b) < dictionaryHeader {
		return dictionary{}, damaged("dictionary")
	}
	count, b := binary.LittleEndian.Uint64(b), b[dictionaryHeader:]
	if count > uint64(len(b)) {
		return dictionary{}, damaged("number of terms")
	}
	rows := (int(count) + dictionaryBlock - 1) / dictionaryBlock * dictionaryRow
	if rows > len(b) {
		return dictionary{}, damaged("rows of the dictionary")
	}
	return dictionary{count: int(count), rows: b[:rows], text: b[rows:], postings: postings, chunks: chunks}, nil
}

func (d dictionary) blocks() int { return len(d.rows) / dictionaryRow }

// lookup returns a term's postings, which are empty if the segment does not hold the term.
func (d dictionary) lookup(term string) (postings, error) {
	var failed error
	first := prefix(term)
	// Find the last block whose first term is not after the term.
	i := sort.Search(d.blocks(), func(i int) bool {
		row := d.rows[i*dictionaryRow:]
		if n := binary.LittleEndian.Uint64(row); n != first {
			return n > first
		}
		start, err := d.firstTerm(row)
		if err != nil {
			failed = err
			return true
		}
		return string(start) > term
	}) - 1
	if failed != nil || i < 0 {
		return postings{}, failed
	}
	var room [64]byte // enough for most terms
	it := termIterator{dictionary: d, block: i, text: room[:0]}
	for it.next() && it.block == i+1 {
		switch bytes.Compare(it.text, []byte(term)) {
		case 0:
			return it.postings(), nil
		case 1:
			return postings{}, nil
		}
	}
	return postings{}, it.err()
}

// firstTerm returns the first term of a row's block.
func (d dictionary) firstTerm(row []byte) ([]byte, error) {
	start := binary.LittleEndian.Uint64(row[8:])
	if start > uint64(len(d.text)) {
		return nil, damaged("rows of the dictionary")
	}
	text := decoder{rest: d.text[start:]}
	shared := text.uint()
	term := text.bytes(text.uint())
	if text.failed || shared != 0 {
		return nil, damaged("term")
	}
	return term, nil
}

// at returns an iterator at term n. It returns an error if the dictionary has no term n.
func (d dictionary) at(n uint32) (*termIterator, error) {
	if int64(n) >= int64(d.count) {
		return nil, damaged("number of a term")
	}
	it := &termIterator{dictionary: d, block: int(n / dictionaryBlock)}
	for range n%dictionaryBlock + 1 {
		if !it.next() {
			return nil, it.err()
		}
	}
	return it, nil
}

// terms returns an iterator over all terms in order.
func (d dictionary) terms() *termIterator { return &termIterator{dictionary: d} }

// A termIterator iterates over terms in byte order.
type termIterator struct {
	dictionary dictionary
	block      int     // next block
	left       int     // terms left in the current block
	rest       decoder // their text
	text       []byte  // current term
	count      int
	bytes      []byte
	start      uint64 // offset of the next term's postings
	failed     error
}

// next advances to the next term. It returns false after the last term and if the bytes are
// damaged. The method err tells these cases apart.
func (it *termIterator) next() bool {
	d := &it.dictionary
	if it.failed != nil || it.left == 0 && it.block == d.blocks() {
		return false
	}
	if it.left == 0 {
		row := d.rows[it.block*dictionaryRow:]
		start := binary.LittleEndian.Uint64(row[8:])
		if start > uint64(len(d.text)) {
			return it.fail("rows of the dictionary")
		}
		it.left = min(dictionaryBlock, d.count-it.block*dictionaryBlock)
		it.rest = decoder{rest: d.text[start:]}
		it.start = binary.LittleEndian.Uint64(row[16:])
		it.text = it.text[:0]
		it.block++
	}
	it.left--
	return it.read()
}

// read decodes the next term.
func (it *termIterator) read() bool {
	all := it.dictionary.postings
	shared := it.rest.uint()
	rest := it.rest.bytes(it.rest.uint())
	count, size := it.rest.uint(), it.rest.uint()
	if it.rest.failed || shared > uint64(len(it.text)) {
		return it.fail("term")
	}
	if it.start > uint64(len(all)) || size > uint64(len(all))-it.start || count == 0 || count > uint64(it.dictionary.chunks) {
		return it.fail("postings of a term")
	}
	it.text = append(it.text[:shared], rest...)
	it.count, it.bytes = int(count), all[it.start:it.start+size]
	it.start += size
	return true
}

func (it *termIterator) fail(what string) bool {
	it.failed = damaged(what)
	return false
}

// term returns the current term.
func (it *termIterator) term() string { return string(it.text) }

// postings returns the current term's postings.
func (it *termIterator) postings() postings {
	return postings{count: it.count, bytes: it.bytes, chunks: it.dictionary.chunks}
}

// err returns the error that ended the iteration, or nil after the last term.
func (it *termIterator) err() error { return it.failed }
