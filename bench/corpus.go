package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// A corpus is real text in documents of one to eight chunks of 100 to 200 words. It is stored in a
// file that is mapped into memory, so that reading it keeps nothing on the heap. Documents are in a
// fixed random order, so that the first n chunks are a sample of all.
type corpus struct {
	path    string
	file    []byte // mapped
	origin  []origin
	hash    uint64
	chunks  int
	offsets []uint64 // of each document in the file
	first   []uint32 // number of each document's first chunk, then the total
}

// An origin reports how many of a corpus's chunks come from a place.
type origin struct {
	Place  string `json:"place"`
	Chunks int    `json:"chunks"`
}

// A corpusDocument is a document with the value used by filters.
type corpusDocument struct {
	Title  string
	Chunks []corpusChunk
	Share  float64 // uniform in [0, 1): a filter Share < x keeps the share x of the documents
}

type corpusChunk struct {
	Heading string // "" for none
	Text    string
}

// The layout of a corpus file, all numbers little-endian:
//
//	documents  each: uvarint number of chunks, title, then heading and text of
//	           each chunk; strings are a uvarint length and the bytes
//	table      per document: uint64 offset, uint32 number of its first chunk
//	origins    each: uvarint chunks, the place
//	trailer    uint64 offset of the table, of the origins; uint32 documents,
//	           chunks; uint64 FNV-1a of the documents; magic
const (
	corpusMagic   = "assaybench corpus 2\n"
	corpusTrailer = 32 + len(corpusMagic)
)

// openCorpus opens the corpus of n chunks in the cache folder. If it does not exist, or fresh is
// set, it is made first, which takes a minute or two.
func openCorpus(ctx context.Context, cache string, n int, testdata string, fresh bool) (*corpus, error) {
	name := fmt.Sprintf("corpus-2-%d.chunks", n) // 2: version of the method and the layout
	if testdata != "" {
		name = fmt.Sprintf("corpus-2-%d-testdata.chunks", n)
	}
	path := filepath.Join(cache, name)
	if !fresh {
		c, err := mapCorpus(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	progress("making a corpus of %d chunks (once; kept as %s)", n, path)
	documents, origins, err := makeCorpus(ctx, n, places(testdata))
	if err != nil {
		return nil, fmt.Errorf("make a corpus: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	if err := writeCorpus(path, documents, origins); err != nil {
		return nil, fmt.Errorf("write the corpus: %w", err)
	}
	return mapCorpus(path)
}

// makeCorpus takes chunks from the places in their order until there are n. It makes missing chunks
// from the first half of one real chunk and the second half of another, which gives real words in
// nearly real sentences.
func makeCorpus(ctx context.Context, n int, from []place) ([]corpusDocument, []origin, error) {
	m := maker{limit: n, seen: make(map[uint64]struct{})}
	var origins []origin
	for _, p := range from {
		before := m.chunks
		for t, err := range p.texts(ctx) {
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", p.name, err)
			}
			if m.add(t); m.chunks >= n {
				break
			}
		}
		if m.chunks > before {
			origins = append(origins, origin{p.name, m.chunks - before})
			progress("  %7d chunks from %s", m.chunks-before, p.name)
		}
		if m.chunks >= n {
			break
		}
	}
	if m.chunks == 0 {
		return nil, nil, errors.New("no text was found: neither /usr/share/doc, nor a Go installation, nor ASSAY_TESTDATA")
	}
	if missing := n - m.chunks; missing > 0 {
		m.splice(missing)
		origins = append(origins, origin{"spliced: halves of two real chunks each, because no more were found", missing})
		progress("  %7d chunks spliced from halves of real ones", missing)
	}
	random := rand.New(rand.NewPCG(3, 1))
	random.Shuffle(len(m.documents), func(i, j int) { m.documents[i], m.documents[j] = m.documents[j], m.documents[i] })
	return m.documents, origins, nil
}

// A maker splits texts into documents of distinct chunks.
type maker struct {
	limit     int
	chunks    int
	documents []corpusDocument
	seen      map[uint64]struct{} // hashes of the chunks' words
}

// add splits a text into chunks and adds those that are new and look like prose.
func (m *maker) add(t foundText) {
	title := clip(strings.Join(strings.Fields(t.Title), " "))
	room := 0 // chunks that still fit into the last document
	for c := range cut(t.Text) {
		if m.chunks >= m.limit {
			return
		}
		hash, ok := wordsHash(c.Text)
		if !ok {
			continue
		}
		if _, twice := m.seen[hash]; twice {
			continue
		}
		m.seen[hash] = struct{}{}
		if room == 0 {
			room = 1 + int(hash%8)
			m.documents = append(m.documents, corpusDocument{Title: title})
		}
		last := &m.documents[len(m.documents)-1]
		last.Chunks = append(last.Chunks, c)
		room--
		m.chunks++
	}
}

func (m *maker) splice(n int) {
	var all []corpusChunk
	for _, d := range m.documents {
		all = append(all, d.Chunks...)
	}
	random := rand.New(rand.NewPCG(3, 2))
	for n > 0 {
		a := m.documents[random.IntN(len(m.documents))]
		d := corpusDocument{Title: a.Title}
		for range min(n, 1+random.IntN(8)) {
			x, y := all[random.IntN(len(all))], all[random.IntN(len(all))]
			d.Chunks = append(d.Chunks, corpusChunk{x.Heading, firstHalf(x.Text) + secondHalf(y.Text)})
		}
		n -= len(d.Chunks)
		m.chunks += len(d.Chunks)
		m.documents = append(m.documents, d)
	}
}

func firstHalf(s string) string  { return s[:middle(s)] }
func secondHalf(s string) string { return s[middle(s):] }

// middle returns the start of the word in the middle of s.
func middle(s string) int {
	half := len(s) / 2
	if i := strings.IndexAny(s[half:], " \n\t"); i >= 0 {
		return half + i
	}
	for half < len(s) && !utf8.RuneStart(s[half]) {
		half++
	}
	return half
}

// cut yields a text's chunks. It joins paragraphs until they have 100 words, and cuts them at the
// end of a line before they reach 200. The remainder becomes a chunk if it has 50 words.
func cut(text string) func(yield func(corpusChunk) bool) {
	return func(yield func(corpusChunk) bool) {
		var b strings.Builder
		words, blank, heading, next := 0, false, "", ""
		end := func() bool {
			c := corpusChunk{heading, strings.TrimSpace(b.String())}
			b.Reset()
			words, heading = 0, next
			return yield(c)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRightFunc(line, unicode.IsSpace)
			if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") && len(title) < 100 {
				next = clip(strings.TrimSpace(title))
				if words >= 100 && !end() {
					return
				}
				if words == 0 {
					heading = next
				}
				continue
			}
			n := len(strings.Fields(line))
			if n > 200 {
				line, n = strings.Join(strings.Fields(line)[:200], " "), 200
			}
			if words >= 50 && (words+n > 200 || n == 0 && words >= 100) && !end() {
				return
			}
			if n > 0 || words > 0 && !blank {
				b.WriteString(line + "\n")
			}
			words, blank = words+n, n == 0
		}
		if words >= 50 {
			end()
		}
	}
}

// clip shortens titles and headings to at most 100 bytes.
func clip(s string) string {
	if len(s) <= 100 {
		return s
	}
	s = s[:100]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// wordsHash hashes the letters of a chunk, so that chunks that differ only in white space, digits
// or punctuation are equal. It reports false for text unlike prose: fewer than six in ten
// characters are letters, or its words are very short, very long or nearly all the same.
func wordsHash(text string) (hash uint64, ok bool) {
	letters, others := 0, 0
	h := fnv.New64a()
	var buffer [utf8.UTFMax]byte
	for _, r := range text {
		switch {
		case unicode.IsLetter(r):
			letters++
			h.Write(buffer[:utf8.EncodeRune(buffer[:], unicode.ToLower(r))])
		case !unicode.IsSpace(r):
			others++
		}
	}
	words := strings.Fields(text)
	distinct := make(map[string]struct{}, len(words))
	for _, w := range words {
		distinct[w] = struct{}{}
	}
	mean := float64(letters) / float64(max(1, len(words)))
	ok = letters*10 >= (letters+others)*6 && mean >= 2 && mean <= 15 && len(distinct)*4 >= len(words)
	return h.Sum64(), ok
}

func writeCorpus(path string, documents []corpusDocument, origins []origin) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	w := bufio.NewWriterSize(f, 1<<20)
	var table []byte
	var offset uint64
	hash := fnv.New64a()
	chunks := 0
	for _, d := range documents {
		table = binary.LittleEndian.AppendUint64(table, offset)
		table = binary.LittleEndian.AppendUint32(table, uint32(chunks))
		row := appendText(binary.AppendUvarint(nil, uint64(len(d.Chunks))), d.Title)
		for _, c := range d.Chunks {
			row = appendText(appendText(row, c.Heading), c.Text)
		}
		chunks += len(d.Chunks)
		offset += uint64(len(row))
		hash.Write(row)
		w.Write(row)
	}
	end := table
	for _, o := range origins {
		end = appendText(binary.AppendUvarint(end, uint64(o.Chunks)), o.Place)
	}
	end = binary.LittleEndian.AppendUint64(end, offset)
	end = binary.LittleEndian.AppendUint64(end, offset+uint64(len(table)))
	end = binary.LittleEndian.AppendUint32(end, uint32(len(documents)))
	end = binary.LittleEndian.AppendUint32(end, uint32(chunks))
	end = binary.LittleEndian.AppendUint64(end, hash.Sum64())
	w.Write(append(end, corpusMagic...))
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func mapCorpus(path string) (*corpus, error) {
	file, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	c := &corpus{path: path, file: file}
	if len(file) < corpusTrailer || string(file[len(file)-len(corpusMagic):]) != corpusMagic {
		return nil, fmt.Errorf("%s is not a corpus of this version; -fresh makes it again", path)
	}
	t := file[len(file)-corpusTrailer:]
	table, origins := binary.LittleEndian.Uint64(t), binary.LittleEndian.Uint64(t[8:])
	documents := int(binary.LittleEndian.Uint32(t[16:]))
	c.chunks = int(binary.LittleEndian.Uint32(t[20:]))
	c.hash = binary.LittleEndian.Uint64(t[24:])
	for i := range documents {
		row := file[table+uint64(i)*12:]
		c.offsets = append(c.offsets, binary.LittleEndian.Uint64(row))
		c.first = append(c.first, binary.LittleEndian.Uint32(row[8:]))
	}
	c.first = append(c.first, uint32(c.chunks))
	for b := file[origins : len(file)-corpusTrailer]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		var where string
		where, b = readText(b[size:])
		c.origin = append(c.origin, origin{where, int(n)})
	}
	return c, nil
}

// prefix returns the corpus of the first documents that together have at least n chunks.
func (c *corpus) prefix(n int) *corpus {
	p := *c
	for i, first := range c.first {
		if int(first) >= n {
			p.offsets, p.first, p.chunks = c.offsets[:i], c.first[:i+1], int(first)
			break
		}
	}
	return &p
}

// textBytes returns the total size of titles, headings and chunks in bytes.
func (c *corpus) textBytes() int64 {
	n := 0
	for i := range c.documents() {
		d := c.document(i)
		n += len(d.Title)
		for _, chunk := range d.Chunks {
			n += len(chunk.Heading) + len(chunk.Text)
		}
	}
	return int64(n)
}

func (c *corpus) documents() int { return len(c.offsets) }

// document returns a document with its own copies of the strings.
func (c *corpus) document(i int) corpusDocument {
	b := c.file[c.offsets[i]:]
	n, size := binary.Uvarint(b)
	d := corpusDocument{Chunks: make([]corpusChunk, n), Share: share(i)}
	d.Title, b = readText(b[size:])
	for j := range d.Chunks {
		d.Chunks[j].Heading, b = readText(b)
		d.Chunks[j].Text, b = readText(b)
	}
	return d
}

func readText(b []byte) (string, []byte) {
	n, size := binary.Uvarint(b)
	b = b[size:]
	return string(b[:n]), b[n:]
}

// share returns the document's random number, uniform in [0, 1).
func share(document int) float64 {
	x := uint64(document) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / math.Exp2(53)
}

// mapFile maps a file into memory, read-only, until the process ends.
func mapFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, nil
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return data, nil
}
