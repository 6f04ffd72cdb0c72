package index

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/assay-rag/assay"
)

// Every file of the index starts with a header of 24 bytes, little-endian:
//
//	 0  8 bytes  "assayidx"
//	 8  uint32   format version
//	12  uint32   CRC-32C of everything that follows
//	16  uint32   kind of the file
//	20  uint32   zero
//
// and holds its payload after it, to the end of the file.
const (
	magic         = "assayidx"
	formatVersion = 1
	headerBytes   = 24
)

// A fileKind says what a file's payload is.
type fileKind uint32

const (
	manifestFile fileKind = 1
	segmentFile  fileKind = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newFrame returns a header to append a payload of this kind to; seal completes
// it.
func newFrame(kind fileKind) []byte {
	frame := make([]byte, headerBytes)
	copy(frame, magic)
	binary.LittleEndian.PutUint32(frame[8:], formatVersion)
	binary.LittleEndian.PutUint32(frame[16:], uint32(kind))
	return frame
}

// seal writes the checksum of a finished frame into it.
func seal(frame []byte) []byte {
	binary.LittleEndian.PutUint32(frame[12:], crc32.Checksum(frame[16:], castagnoli))
	return frame
}

// checksum returns the checksum a frame carries.
func checksum(frame []byte) uint32 { return binary.LittleEndian.Uint32(frame[12:]) }

// unframe checks a file's bytes and returns the payload in it. The error says
// whether they are foreign, newer or damaged.
func unframe(frame []byte, kind fileKind) ([]byte, error) {
	if len(frame) < headerBytes {
		return nil, fmt.Errorf("%d bytes are less than a header: %w", len(frame), assay.ErrDamaged)
	}
	if string(frame[:len(magic)]) != magic {
		return nil, fmt.Errorf("no index file: %w", assay.ErrForeign)
	}
	if v := binary.LittleEndian.Uint32(frame[8:]); v != formatVersion {
		if v > formatVersion {
			return nil, fmt.Errorf("index format %d, this program knows %d: %w", v, formatVersion, assay.ErrNewer)
		}
		return nil, fmt.Errorf("index format %d: %w", v, assay.ErrDamaged)
	}
	if checksum(frame) != crc32.Checksum(frame[16:], castagnoli) {
		return nil, fmt.Errorf("checksum does not match: %w", assay.ErrDamaged)
	}
	if got := fileKind(binary.LittleEndian.Uint32(frame[16:])); got != kind {
		return nil, fmt.Errorf("file of kind %d, want %d: %w", got, kind, assay.ErrDamaged)
	}
	return frame[headerBytes:], nil
}
