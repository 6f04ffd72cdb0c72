package index

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/assay-rag/assay"
)

// Every file of the index is a frame. It is written sequentially and is little-endian:
//
//	header   8 bytes "assayidx", uint32 format version, uint32 kind of the file
//	sections each begins at a multiple of 64 bytes, padded with zeros before it
//	table    for each section two uint64: its offset and its size in bytes
//	trailer  uint32 number of sections, uint32 CRC-32C of everything before
//
// The content of a section depends on the kind of the file.
const (
	magic         = "assayidx"
	formatVersion = 4
	headerBytes   = 16
	alignment     = 64
	entryBytes    = 16 // of the table
	trailerBytes  = 8
)

// A fileKind identifies the content of a file's sections.
type fileKind uint32

const (
	manifestFile fileKind = 1
	segmentFile  fileKind = 2
	vectorsFile  fileKind = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A frameWriter writes a frame. After a write error it writes nothing more, and finish returns the
// error.
type frameWriter struct {
	w       io.Writer
	pending []byte // not yet added to the checksum and written
	sum     uint32
	size    uint64 // including pending bytes
	table   []byte
	begun   bool // in a section, whose size is missing in the table
	err     error
}

const frameBuffer = 64 << 10

func newFrameWriter(w io.Writer, kind fileKind) *frameWriter {
	f := &frameWriter{w: w, pending: make([]byte, 0, frameBuffer)}
	header := append([]byte(magic), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(header[8:], formatVersion)
	binary.LittleEndian.PutUint32(header[12:], uint32(kind))
	f.put(header)
	return f
}

// section begins the next section. It contains everything written until the next call of section or
// finish.
func (f *frameWriter) section() *frameWriter {
	f.endSection()
	var zeros [alignment]byte
	f.put(zeros[:-f.size%alignment])
	f.table = binary.LittleEndian.AppendUint64(f.table, f.size)
	f.begun = true
	return f
}

func (f *frameWriter) endSection() {
	if f.begun {
		start := binary.LittleEndian.Uint64(f.table[len(f.table)-8:])
		f.table = binary.LittleEndian.AppendUint64(f.table, f.size-start)
		f.begun = false
	}
}

// Write appends to the current section.
func (f *frameWriter) Write(p []byte) (int, error) {
	f.put(p)
	return len(p), f.err
}

func (f *frameWriter) put(p []byte) {
	f.size += uint64(len(p))
	for len(p) > 0 {
		n := min(len(p), cap(f.pending)-len(f.pending))
		f.pending, p = append(f.pending, p[:n]...), p[n:]
		if len(f.pending) == cap(f.pending) {
			f.drain()
		}
	}
}

func (f *frameWriter) drain() {
	f.sum = crc32.Update(f.sum, castagnoli, f.pending)
	if f.err == nil {
		_, f.err = f.w.Write(f.pending)
	}
	f.pending = f.pending[:0]
}

// finish ends the frame and returns the first error.
func (f *frameWriter) finish() error {
	f.endSection()
	f.put(f.table)
	f.put(binary.LittleEndian.AppendUint32(nil, uint32(len(f.table)/entryBytes)))
	f.drain()
	f.put(binary.LittleEndian.AppendUint32(nil, f.sum))
	f.drain()
	return f.err
}

// checksum returns the checksum stored in a frame, or 0 if the frame is too short.
func checksum(frame []byte) uint32 {
	if len(frame) < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(frame[len(frame)-4:])
}

// unframe checks a file's bytes and returns its sections, whose number must be the given one. The
// error tells whether the file is foreign, newer, older or damaged.
func unframe(frame []byte, kind fileKind, sections int) ([][]byte, error) {
	if len(frame) < headerBytes+trailerBytes {
		return nil, fmt.Errorf("%d bytes are not an index file: %w", len(frame), assay.ErrDamaged)
	}
	if string(frame[:len(magic)]) != magic {
		return nil, fmt.Errorf("no index file: %w", assay.ErrForeign)
	}
	if v := binary.LittleEndian.Uint32(frame[8:]); v != formatVersion {
		if v > formatVersion {
			return nil, fmt.Errorf("index format %d, this program knows %d: %w", v, formatVersion, assay.ErrNewer)
		}
		return nil, fmt.Errorf("index format %d is older than %d, which this program reads", v, formatVersion)
	}
	if checksum(frame) != crc32.Checksum(frame[:len(frame)-4], castagnoli) {
		return nil, fmt.Errorf("checksum does not match: %w", assay.ErrDamaged)
	}
	if got := fileKind(binary.LittleEndian.Uint32(frame[12:])); got != kind {
		return nil, fmt.Errorf("file of kind %d, want %d: %w", got, kind, assay.ErrDamaged)
	}
	rest := frame[:len(frame)-trailerBytes]
	if got := u32(frame[len(rest):], 0); uint64(got) != uint64(sections) || len(rest) < headerBytes+sections*entryBytes {
		return nil, fmt.Errorf("%d sections, want %d: %w", got, sections, assay.ErrDamaged)
	}
	return cutSections(rest[:len(rest)-sections*entryBytes], rest[len(rest)-sections*entryBytes:])
}

// cutSections returns the parts of b that the table lists.
func cutSections(b, table []byte) ([][]byte, error) {
	var list [][]byte
	for ; len(table) > 0; table = table[entryBytes:] {
		start, size := binary.LittleEndian.Uint64(table), binary.LittleEndian.Uint64(table[8:])
		if start > uint64(len(b)) || size > uint64(len(b))-start || start%alignment != 0 {
			return nil, fmt.Errorf("a section lies outside the file: %w", assay.ErrDamaged)
		}
		list = append(list, b[start:start+size:start+size])
	}
	return list, nil
}
