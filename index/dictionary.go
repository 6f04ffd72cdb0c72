package index

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// A dictionary maps the terms of a segment to their postings. Little-endian:
//
//	 0  uint64  number of terms
//	 8  a row of dictionaryRow bytes for each block of 16 terms (the last may be shorter):
//	     0  uint64  the block's first term's first eight bytes, big-endian, zeros after its end
//	     8  uint64  where the block's text starts, from the end of the rows
//	    16  uint64  where the postings of its first term start, in the section of postings
//	and to the end the text of the blocks, for each term in order of bytes:
//	    varint  bytes that it shares with the term before; 0 for a block's first
//	    varint  length of the rest, and the rest
//	    varint  number of its postings, at least 1
//	    varint  size of its postings in bytes
//
// The postings follow each other as the terms do. A lookup searches the rows and
// reads one block; nothing is decoded before.
const (
	dictionaryBlock  = 16
	dictionaryRow    = 24
	dictionaryHeader = 8
)

// A dictionaryWriter makes the bytes of a dictionary.
type dictionaryWriter struct {
	terms int
	rows  []byte
	text  []byte
	last  []byte // the last term added
	next  uint64 // where the next term's postings start
}

// add adds a term with count postings in size bytes, which follow those of the
// term before. Terms come ascending by bytes, each once.
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

// bytes returns the dictionary of what was added.
func (w *dictionaryWriter) bytes() []byte {
	b := make([]byte, 0, dictionaryHeader+len(w.rows)+len(w.text))
	b = binary.LittleEndian.AppendUint64(b, uint64(w.terms))
	return append(append(b, w.rows...), w.text...)
}

// prefix returns a number that orders terms as their first eight bytes do.
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

// A dictionary reads the bytes of a dictionaryWriter where they are.
type dictionary struct {
	count    int // of terms
	rows     []byte
	text     []byte
	postings []byte
	chunks   uint32
}

// openDictionary reads a dictionary of a segment with so many chunks and the
// section of its postings. It decodes nothing.
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

// lookup returns a term's postings, empty ones if the segment does not hold it.
func (d dictionary) lookup(term string) (postings, error) {
	var failed error
	first := prefix(term)
	// The last block that starts with the term or one before it.
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
	var room [64]byte // for most terms
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

// at returns an iterator at the n-th term, which there must be.
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

// terms goes over all terms in order.
func (d dictionary) terms() *termIterator { return &termIterator{dictionary: d} }

// A termIterator goes over terms in the order of their bytes.
type termIterator struct {
	dictionary dictionary
	block      int     // whose first term is to be read next
	left       int     // terms to be read before that
	rest       decoder // the text of those
	text       []byte  // of the current term
	count      int
	bytes      []byte
	start      uint64 // of the next term's postings
	failed     error
}

// next goes to the next term, the first at first. It returns false after the
// last and when the bytes are damaged, which err tells apart.
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

// read decodes the term that comes next.
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

// err returns what ended the iteration, nil after the last term.
func (it *termIterator) err() error { return it.failed }
