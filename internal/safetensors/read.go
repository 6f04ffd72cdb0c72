package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/assay-rag/assay"
)

// maxHeaderBytes is the largest header that is read, the limit of the format's own library. The
// headers of the encoders that assay reads have some 20 kB.
const maxHeaderBytes = 100 << 20

// A Type is the type of a tensor's elements.
type Type string

// The types that can be read and written. Tensors of other types can only be listed.
const (
	F32  Type = "F32"
	F16  Type = "F16"
	BF16 Type = "BF16"
	I8   Type = "I8"
	U8   Type = "U8"
)

// sizes maps each type of the format to the size of an element in bytes.
var sizes = map[Type]int64{
	"BOOL": 1, U8: 1, I8: 1, "F8_E5M2": 1, "F8_E4M3": 1, "I16": 2, "U16": 2, F16: 2, BF16: 2,
	"I32": 4, "U32": 4, F32: 4, "I64": 8, "U64": 8, "F64": 8,
}

// A Tensor describes a tensor in a file.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int // empty: a single number

	start, end int64 // in the file
}

// Len returns the number of elements.
func (t Tensor) Len() int { return int((t.end - t.start) / sizes[t.Type]) }

// A File is an open file of tensors. It is safe for concurrent use if its reader is.
type File struct {
	r        io.ReaderAt
	metadata map[string]string
	tensors  map[string]Tensor
}

// Open reads and checks the header of a file of size bytes. The reader must outlive the file. An
// invalid file gives assay.ErrDamaged.
func Open(r io.ReaderAt, size int64) (*File, error) {
	header, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(header, &entries); err != nil {
		return nil, fmt.Errorf("header: %w: %w", err, assay.ErrDamaged)
	}
	f := &File{r: r, tensors: make(map[string]Tensor, len(entries))}
	first := int64(8 + len(header))
	for name, entry := range entries {
		if name == "__metadata__" {
			if err := json.Unmarshal(entry, &f.metadata); err != nil {
				return nil, fmt.Errorf("header: __metadata__: %w: %w", err, assay.ErrDamaged)
			}
			continue
		}
		t, err := parseTensor(name, entry, first)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w: %w", name, err, assay.ErrDamaged)
		}
		f.tensors[name] = t
	}
	if err := f.checkCovers(first, size); err != nil {
		return nil, err
	}
	return f, nil
}

// readHeader returns the JSON between the length and the tensors.
func readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	var length [8]byte
	if size < int64(len(length)) {
		return nil, fmt.Errorf("%d bytes are no file of tensors: %w", size, assay.ErrDamaged)
	}
	if err := readFull(r, length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > maxHeaderBytes:
		return nil, fmt.Errorf("not a file of tensors: a header of %d bytes: %w", n, assay.ErrDamaged)
	case n > uint64(size-8):
		return nil, fmt.Errorf("cut short: %d bytes, and the header alone has %d: %w", size, n+8, assay.ErrDamaged)
	}
	header := make([]byte, n)
	return header, readFull(r, header, 8)
}

// parseTensor parses one entry of the header; first is the start of the tensors.
func parseTensor(name string, entry []byte, first int64) (Tensor, error) {
	var e struct {
		Type    Type    `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(entry, &e); err != nil {
		return Tensor{}, err
	}
	size, known := sizes[e.Type]
	if !known {
		return Tensor{}, fmt.Errorf("unknown type %q", e.Type)
	}
	if len(e.Offsets) != 2 {
		return Tensor{}, fmt.Errorf("%d offsets, want 2", len(e.Offsets))
	}
	t := Tensor{Name: name, Type: e.Type, Shape: make([]int, len(e.Shape))}
	for i, n := range e.Shape {
		if n < 0 || n > math.MaxInt32 || n > 0 && size > math.MaxInt64/4/n {
			return Tensor{}, fmt.Errorf("shape %d", e.Shape)
		}
		t.Shape[i] = int(n)
		size *= n
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin || end > math.MaxInt64-first || end-begin != size {
		return Tensor{}, fmt.Errorf("bytes %d to %d do not hold %s of shape %d", begin, end, e.Type, e.Shape)
	}
	t.start, t.end = first+begin, first+end
	return t, nil
}

// checkCovers returns an error if the tensors overlap or do not fill the file from first to size.
func (f *File) checkCovers(first, size int64) error {
	byPlace := slices.SortedFunc(maps.Values(f.tensors), func(a, b Tensor) int {
		if a.start != b.start {
			return int(max(-1, min(1, a.start-b.start)))
		}
		return int(max(-1, min(1, a.end-b.end)))
	})
	at := first
	for _, t := range byPlace {
		if t.start != at {
			return fmt.Errorf("tensor %s begins at byte %d, want %d: %w", t.Name, t.start, at, assay.ErrDamaged)
		}
		at = t.end
	}
	switch {
	case at > size:
		return fmt.Errorf("cut short: %d bytes of %d: %w", size, at, assay.ErrDamaged)
	case at < size:
		return fmt.Errorf("%d bytes too long: %w", size-at, assay.ErrDamaged)
	}
	return nil
}

// Metadata returns the header's metadata, which must not be modified.
func (f *File) Metadata() map[string]string { return f.metadata }

// Names returns the names of the tensors, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Tensor returns the description of the tensor with that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Range returns the byte range of a tensor of this file, for callers that have the file in memory.
func (f *File) Range(t Tensor) (start, end int64) { return t.start, t.end }

// Bytes returns the stored bytes of a tensor of this file.
func (f *File) Bytes(t Tensor) ([]byte, error) {
	data := make([]byte, t.end-t.start)
	if err := readFull(f.r, data, t.start); err != nil {
		return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	return data, nil
}

// Float32s reads a tensor of type F32, F16 or BF16 of this file as float32. Other types give
// assay.ErrInvalid.
func (f *File) Float32s(t Tensor) ([]float32, error) {
	if t.Type != F32 && t.Type != F16 && t.Type != BF16 {
		return nil, fmt.Errorf("tensor %s has the type %s, want F32, F16 or BF16: %w", t.Name, t.Type, assay.ErrInvalid)
	}
	data, err := f.Bytes(t)
	if err != nil {
		return nil, err
	}
	return Widen(t.Type, data), nil
}

// Widen converts data of type F32, F16 or BF16 to float32.
func Widen(t Type, data []byte) []float32 {
	out := make([]float32, int64(len(data))/sizes[t])
	for i := range out {
		switch t {
		case F32:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		case F16:
			out[i] = widenHalf(binary.LittleEndian.Uint16(data[2*i:]))
		case BF16:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
	}
	return out
}

// widenHalf returns the IEEE 754 half-precision number with these bits.
func widenHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h)>>15<<31, uint32(h)>>10&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // subnormal: a multiple of 2^-24
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// readFull reads len(p) bytes at the offset. A shorter file gives assay.ErrDamaged.
func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		return fmt.Errorf("cut short: no bytes %d to %d: %w", at+int64(n), at+int64(len(p)), assay.ErrDamaged)
	}
	return err
}

// OpenBytes opens a file in memory.
func OpenBytes(data []byte) (*File, error) { return Open(bytes.NewReader(data), int64(len(data))) }
