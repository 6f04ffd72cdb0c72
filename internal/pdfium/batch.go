package pdfium

import (
	"context"
	_ "embed"
	"encoding/binary"
	"math"
)

// batchModule is batch.wat in binary form; scripts/pdfium assembles it.
//
//go:embed batch.wasm
var batchModule []byte

// A record is the result of a function of batchModule for one element.
type record []byte

func (r record) word(offset int) uint32 { return binary.LittleEndian.Uint32(r[offset:]) }
func (r record) int(offset int) int     { return int(int32(r.word(offset))) }
func (r record) float(offset int) float32 {
	return math.Float32frombits(r.word(offset))
}
func (r record) double(offset int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(r[offset:]))
}

// matrix returns the six numbers of a matrix.
func (r record) matrix(offset int) matrix {
	return matrix{r.float(offset), r.float(offset + 4), r.float(offset + 8), r.float(offset + 12), r.float(offset + 16), r.float(offset + 20)}
}

// color returns four components of a colour as 0xRRGGBBAA.
func (r record) color(offset int) uint32 {
	return r.word(offset)&255<<24 | r.word(offset+4)&255<<16 | r.word(offset+8)&255<<8 | r.word(offset+12)&255
}

// Offsets in the records of characters.
const (
	charRune      = 0
	charObject    = 4
	charGenerated = 8
	charHyphen    = 12
	charBox       = 16 // four floats: left, top, right, bottom
	charX         = 32 // double
	charY         = 40 // double
	charSize      = 48
)

// Offsets in the records of objects.
const (
	objectHandle   = 0
	objectType     = 4
	objectMCID     = 8
	objectBounded  = 12 // whether it has bounds
	objectBounds   = 16 // four floats: left, bottom, right, top
	objectMatrix   = 32
	pathSegments   = 56
	pathFill       = 60
	pathStroked    = 64
	pathWidth      = 68
	pathStroke     = 72 // colour
	pathFillColor  = 88
	objectSize     = 104
	segmentType    = 0
	segmentClosed  = 4
	segmentX       = 8
	segmentY       = 12
	segmentSize    = 16
	recordsPerCall = 1024
)

// batch calls a function of batchModule for n elements, in parts, and yield for each record with
// its index. A record is valid until yield returns. It stops when yield returns false.
func (in *instance) batch(ctx context.Context, function string, args []uint64, n, size int, yield func(i int, r record) bool) {
	if n <= 0 {
		return
	}
	p := in.alloc(ctx, min(n, recordsPerCall)*size)
	defer in.free(p)
	for from := 0; from < n && in.err == nil; from += recordsPerCall {
		end := min(from+recordsPerCall, n)
		clear(in.read(p, (end-from)*size))
		in.call(ctx, function, append(append(make([]uint64, 0, 8), args...), uint64(from), uint64(end), uint64(p))...)
		if in.err != nil {
			return
		}
		data := append([]byte(nil), in.read(p, (end-from)*size)...) // yield may call PDFium
		for i := from; i < end; i++ {
			if !yield(i, data[(i-from)*size:(i-from+1)*size]) || in.err != nil {
				return
			}
		}
	}
}
