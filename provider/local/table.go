package local

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
)

// A table holds the vectors of the vocabulary in their stored format, which for a small model is a
// third of its bytes. Rows are converted when they are looked up.
type table struct {
	cols   int
	kind   safetensors.Type
	data   []byte
	stride int // bytes of a row

	// For packed numbers (I8, U8):
	bits   int // of a number
	groups int // parts of a row with a scale each
	scales []float32
}

// table reads a tensor of rows x cols, in one of three forms: F32, F16 or BF16; I8 with the scales
// of its rows in NAME.scale; or U8 [rows, cols*bits/8] with scales [rows] or [rows, groups]. In a
// U8 tensor each row is a stream of unsigned numbers of 4 to 8 bits, lowest bits first, with an
// offset of -2^(bits-1).
func (w *weights) table(name string, rows, cols int) (*table, error) {
	t, data, err := w.find(name, rows, -1)
	if err != nil {
		return nil, err
	}
	found := &table{cols: cols, kind: t.Type, data: data, stride: len(data) / rows}
	odd := fmt.Errorf("%s: tensor %s: %s of shape %d is not a table of %d x %d: %w", weightsFile, w.prefix+name, t.Type, t.Shape, rows, cols, assay.ErrDamaged)
	switch t.Type {
	case safetensors.F32, safetensors.F16, safetensors.BF16:
		if t.Shape[1] != cols {
			return nil, odd
		}
		return found, nil
	case safetensors.I8:
		found.bits = 8
		if t.Shape[1] != cols {
			return nil, odd
		}
	case safetensors.U8:
		found.bits = t.Shape[1] * 8 / cols
		if found.bits < 4 || found.bits > 8 || t.Shape[1]*8 != cols*found.bits {
			return nil, odd
		}
	default:
		return nil, odd
	}
	return found, found.readScales(w, name+scaled, rows)
}

func (t *table) readScales(w *weights, name string, rows int) error {
	s, found := w.file.Tensor(w.prefix + name)
	shape := []int{rows}
	t.groups = 1
	if found && len(s.Shape) == 2 {
		t.groups = s.Shape[1]
		shape = []int{rows, t.groups}
		if t.groups < 1 || t.cols%t.groups != 0 {
			return fmt.Errorf("%s: tensor %s: %d scales for %d numbers: %w", weightsFile, w.prefix+name, t.groups, t.cols, assay.ErrDamaged)
		}
	}
	var err error
	t.scales, err = w.floats(name, shape...)
	return err
}

// read writes a row to dst, which must have length cols.
func (t *table) read(dst []float32, row int) {
	data := t.data[row*t.stride : (row+1)*t.stride]
	switch t.kind {
	case safetensors.F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	case safetensors.F16, safetensors.BF16:
		copy(dst, safetensors.Widen(t.kind, data))
	case safetensors.I8:
		for i := range dst {
			dst[i] = float32(int8(data[i]))
		}
		t.scale(dst, row)
	case safetensors.U8:
		t.unpack(dst, data)
		t.scale(dst, row)
	}
}

func (t *table) unpack(dst []float32, data []byte) {
	mask, zero := uint32(1)<<t.bits-1, int32(1)<<(t.bits-1)
	var held uint32 // bits read but not used yet
	have := 0
	for i := range dst {
		if have < t.bits {
			held |= uint32(data[0]) << have
			data = data[1:]
			have += 8
		}
		dst[i] = float32(int32(held&mask) - zero)
		held >>= t.bits
		have -= t.bits
	}
}

func (t *table) scale(dst []float32, row int) {
	width := t.cols / t.groups
	for g, s := range t.scales[row*t.groups : (row+1)*t.groups] {
		for i := range dst[g*width : (g+1)*width] {
			dst[g*width+i] *= s
		}
	}
}
