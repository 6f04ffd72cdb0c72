package parseworker

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
)

// A message is a kind, a JSON value with its length, and for some kinds a payload whose sizes are
// in the JSON value. The JSON value has all fields of a document except the large ones, so that a
// new field is sent without a change here.
//
//	message = magic kind length(uint32, little endian) json payload
const magic = 0xA5

// The kinds of message.
const (
	kindHello   = 'H' // both directions, once
	kindRequest = 'R' // to the worker
	kindEnter   = 'E' // from the worker: a part is going to be read
	kindStep    = 'S' // from the worker: a step of a document is done
	kindParsed  = 'P' // from the worker
	kindEnd     = 'Z' // from the worker: the end of the answer to a request
)

// Limits of a message. They bound what a reader allocates for a damaged one.
const (
	maxJSON    = 256 << 20
	maxPayload = 1 << 30 // bytes of a text or a part
	maxItems   = 1 << 27 // of one list
	aheadItems = 1 << 16 // allocated before they have been read
	aheadBytes = 64 << 20
)

// errWire means that a peer does not follow the protocol.
var errWire = errors.New("damaged message")

type hello struct {
	Parser  string // parse.Version, which must be the same in both processes
	Timeout int64  // nanoseconds for each document, counted by the worker as well
	Memory  int64  // bytes
}

type request struct {
	Input parse.Input // without Data
	Size  int         // of the payload, Input.Data
	Left  int64       // nanoseconds for the source
	Skip  []string    // paths of parts to leave out
}

type enter struct{ Path string }

// A parsed is a parse.Parsed. Its payload is the text, the data and the lists, in the order of the
// counts.
type parsed struct {
	Path     string
	Err      *wireError     `json:",omitempty"`
	Document parse.Document // without the lists below
	HasData  bool           `json:",omitempty"`
	Text     int
	Data     int
	Blocks   int
	Anchors  int
	Tables   int
	Boxes    int
}

type end struct {
	Peak     int64 // bytes, the most that were resident since the worker started; 0: not known
	Resident int64 // bytes; 0: not known
}

// A wireError is an error of the worker's walk with its kinds.
type wireError struct {
	Message string
	Kinds   []string
}

func newWireError(err error) *wireError {
	if err == nil {
		return nil
	}
	e := &wireError{Message: err.Error()}
	for _, kind := range parse.Kinds() {
		if errors.Is(err, kind) {
			e.Kinds = append(e.Kinds, kind.Error())
		}
	}
	return e
}

func (e *wireError) Error() string { return e.Message }

// Is reports whether the error was of the kind target in the worker.
func (e *wireError) Is(target error) bool {
	return slices.Contains(parse.Kinds(), target) && slices.Contains(e.Kinds, target.Error())
}

// An encoder writes messages. The first error is kept and makes all later calls do nothing.
type encoder struct {
	w   *bufio.Writer
	err error
	buf [binary.MaxVarintLen64]byte
}

func newEncoder(w io.Writer) *encoder { return &encoder{w: bufio.NewWriterSize(w, 64<<10)} }

// message writes a message without its payload.
func (e *encoder) message(kind byte, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		e.err = cmp.Or(e.err, err)
		return
	}
	e.header(kind, data)
}

func (e *encoder) header(kind byte, data []byte) {
	e.write([]byte{magic, kind})
	e.write(binary.LittleEndian.AppendUint32(nil, uint32(len(data))))
	e.write(data)
}

// sendable returns m in JSON. If that is not possible, it returns the JSON of an error.
func sendable(m parsed) (data []byte, ok bool) {
	data, err := json.Marshal(m) //lint:ignore SA1026 Parts is nil
	switch {
	case err != nil:
		err = fmt.Errorf("parse %s: %w: %w", m.Path, err, parse.ErrCrash)
	case len(data) > maxJSON:
		err = fmt.Errorf("parse %s: it has %d bytes of metadata: %w", m.Path, len(data), parse.ErrLimit)
	default:
		return data, true
	}
	data, err = json.Marshal(parsed{Path: m.Path, Err: newWireError(err)}) //lint:ignore SA1026 Parts is nil
	if err != nil {
		panic(err) // of two strings
	}
	return data, false
}

func (e *encoder) write(p []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(p)
	}
}

func (e *encoder) text(s string) {
	if e.err == nil {
		_, e.err = e.w.WriteString(s)
	}
}

func (e *encoder) int(n int) { e.write(e.buf[:binary.PutVarint(e.buf[:], int64(n))]) }

func (e *encoder) flush() error {
	if e.err == nil {
		e.err = e.w.Flush()
	}
	return e.err
}

func (e *encoder) request(r request, data []byte) error {
	r.Input.Data, r.Size = nil, len(data)
	e.message(kindRequest, r)
	e.write(data)
	return e.flush()
}

// parsed writes p with its payload. The caller must not use the lists of p.Document afterwards.
func (e *encoder) parsed(p parse.Parsed) error {
	d := p.Document
	m := parsed{
		Path: p.Path, Err: newWireError(p.Err), Document: d,
		HasData: p.Data != nil, Text: len(d.Text), Data: len(p.Data),
		Blocks: len(d.Blocks), Anchors: len(d.Anchors), Tables: len(d.Tables), Boxes: len(d.Boxes),
	}
	m.Document.Text, m.Document.Anchors, m.Document.Parts = "", nil, nil
	m.Document.Blocks, m.Document.Tables, m.Document.Boxes = nil, nil, nil
	data, ok := sendable(m)
	e.header(kindParsed, data)
	if !ok {
		return e.flush()
	}
	e.text(d.Text)
	e.write(p.Data)
	e.blocks(d.Blocks)
	last := 0
	for _, a := range d.Anchors {
		e.int(a.Start - last)
		e.int(a.Line)
		e.int(a.Page)
		last = a.Start
	}
	e.tables(d.Tables)
	last = 0
	for _, b := range d.Boxes {
		e.int(b.Block - last)
		e.int(b.Page)
		for _, f := range []float32{b.X0, b.Y0, b.X1, b.Y1} {
			e.write(binary.LittleEndian.AppendUint32(e.buf[:0], math.Float32bits(f)))
		}
		last = b.Block
	}
	return e.flush()
}

func (e *encoder) blocks(blocks []assay.Block) {
	last := 0
	for _, b := range blocks {
		kind := slices.Index(blockKinds, b.Kind)
		e.int(kind)
		if kind < 0 {
			e.string(string(b.Kind))
		}
		e.int(b.Start - last)
		e.int(b.End - b.Start)
		e.int(b.Level)
		e.string(b.Label)
		last = b.End
	}
}

func (e *encoder) tables(tables []assay.Table) {
	for _, t := range tables {
		e.int(t.Start)
		e.int(t.End)
		e.int(len(t.Cells))
		last := assay.Cell{Start: t.Start}
		for _, c := range t.Cells {
			flags := 0
			if c.Header {
				flags = 1
			}
			if c.RowSpan != 0 || c.ColSpan != 0 {
				flags |= 2
			}
			e.int(flags)
			e.int(c.Start - last.Start)
			e.int(c.End - c.Start)
			e.int(c.Row - last.Row)
			e.int(c.Col - last.Col)
			if flags&2 != 0 {
				e.int(c.RowSpan)
				e.int(c.ColSpan)
			}
			last = c
		}
	}
}

func (e *encoder) string(s string) {
	e.int(len(s))
	e.text(s)
}

// blockKinds are the kinds of block that are sent as their index. Others are sent as strings.
var blockKinds = []assay.BlockKind{
	assay.BlockHeading, assay.BlockParagraph, assay.BlockListItem, assay.BlockCode, assay.BlockTableHead,
	assay.BlockTableRow, assay.BlockCaption, assay.BlockFigure, assay.BlockFormula, assay.BlockFootnote,
}

// A decoder reads messages. The first error is kept: after it all values read are zero.
type decoder struct {
	r   *bufio.Reader
	err error
}

func newDecoder(r io.Reader) *decoder { return &decoder{r: bufio.NewReaderSize(r, 64<<10)} }

// message reads the kind and the JSON value of the next message. io.EOF means that there is none.
func (d *decoder) message() (kind byte, value []byte, err error) {
	var head [6]byte
	n, err := io.ReadFull(d.r, head[:])
	switch {
	case n > 0 && head[0] != magic:
		return 0, nil, errWire
	case err != nil:
		return 0, nil, err
	}
	size := binary.LittleEndian.Uint32(head[2:])
	if size > maxJSON {
		return 0, nil, errWire
	}
	value, err = d.take(int(size))
	return head[1], value, err
}

// take reads n bytes. It allocates in proportion to the bytes that have arrived.
func (d *decoder) take(n int) ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	if n < 0 || n > maxPayload {
		d.err = errWire
		return nil, d.err
	}
	if n <= aheadBytes {
		data := make([]byte, n)
		_, d.err = io.ReadFull(d.r, data)
		return data, d.err
	}
	var b bytes.Buffer
	b.Grow(aheadBytes)
	if _, d.err = io.CopyN(&b, d.r, int64(n)); d.err != nil {
		return nil, d.err
	}
	return b.Bytes(), nil
}

func (d *decoder) int() int {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadVarint(d.r)
	d.err = err
	return int(n)
}

func (d *decoder) string() string {
	s, _ := d.take(d.int())
	return string(s)
}

func (d *decoder) float() float32 {
	b, err := d.take(4)
	if err != nil {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

func (d *decoder) request(value []byte) (request, error) {
	var r request
	if err := json.Unmarshal(value, &r); err != nil {
		return r, errors.Join(errWire, err)
	}
	var err error
	r.Input.Data, err = d.take(r.Size)
	return r, err
}

// parsed reads the payload of a kindParsed message with the given JSON value.
func (d *decoder) parsed(value []byte) (parse.Parsed, error) {
	var m parsed
	if err := json.Unmarshal(value, &m); err != nil {
		return parse.Parsed{}, errors.Join(errWire, err)
	}
	p := parse.Parsed{Path: m.Path, Document: m.Document}
	if m.Err != nil {
		p.Err = m.Err
	}
	text, _ := d.take(m.Text)
	p.Document.Text = string(text)
	data, _ := d.take(m.Data)
	if m.HasData {
		p.Data = data
	}
	last := 0
	p.Document.Blocks = list(d, m.Blocks, func() assay.Block {
		b := assay.Block{Kind: d.blockKind()}
		b.Start = last + d.int()
		b.End = b.Start + d.int()
		b.Level, b.Label = d.int(), d.string()
		last = b.End
		return b
	})
	start := 0
	p.Document.Anchors = list(d, m.Anchors, func() assay.Anchor {
		start += d.int()
		return assay.Anchor{Start: start, Line: d.int(), Page: d.int()}
	})
	p.Document.Tables = list(d, m.Tables, d.table)
	block := 0
	p.Document.Boxes = list(d, m.Boxes, func() assay.Box {
		block += d.int()
		return assay.Box{Block: block, Page: d.int(), X0: d.float(), Y0: d.float(), X1: d.float(), Y1: d.float()}
	})
	return p, d.err
}

func (d *decoder) blockKind() assay.BlockKind {
	switch i := d.int(); {
	case i < 0:
		return assay.BlockKind(d.string())
	case i < len(blockKinds):
		return blockKinds[i]
	}
	d.err = errors.Join(d.err, errWire)
	return ""
}

func (d *decoder) table() assay.Table {
	t := assay.Table{Start: d.int(), End: d.int()}
	last := assay.Cell{Start: t.Start}
	t.Cells = list(d, d.int(), func() assay.Cell {
		flags := d.int()
		c := assay.Cell{Header: flags&1 != 0}
		c.Start = last.Start + d.int()
		c.End = c.Start + d.int()
		c.Row, c.Col = last.Row+d.int(), last.Col+d.int()
		if flags&2 != 0 {
			c.RowSpan, c.ColSpan = d.int(), d.int()
		}
		last = c
		return c
	})
	return t
}

// list reads n items; nil if there are none.
func list[T any](d *decoder, n int, read func() T) []T {
	if n < 0 || n > maxItems {
		d.err = errors.Join(d.err, errWire)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	items := make([]T, 0, min(n, aheadItems))
	for len(items) < n && d.err == nil {
		items = append(items, read())
	}
	return items
}
