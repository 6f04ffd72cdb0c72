package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/assay-rag/assay"
)

// A Data is a tensor to write, as little-endian bytes of its type and shape.
type Data struct {
	Name  string
	Type  Type
	Shape []int
	Bytes []byte
}

// Float32Data returns values as a tensor of type F32.
func Float32Data(name string, values []float32, shape ...int) Data {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return Data{Name: name, Type: F32, Shape: shape, Bytes: out}
}

// alignment is the alignment of the first tensor: a cache line.
const alignment = 64

// Write writes a file with the tensors, sorted by descending element size, so that each is aligned
// to its type, and then by name. Equal input gives equal bytes. The error is assay.ErrInvalid if a
// tensor's bytes do not match its shape, a type is unknown, or a name is repeated.
func Write(w io.Writer, metadata map[string]string, tensors []Data) error {
	tensors = slices.SortedFunc(slices.Values(tensors), func(a, b Data) int {
		return cmp.Or(cmp.Compare(sizes[b.Type], sizes[a.Type]), cmp.Compare(a.Name, b.Name))
	})
	header, err := encodeHeader(metadata, tensors)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := w.Write(t.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// encodeHeader returns the length and the header, padded with spaces.
func encodeHeader(metadata map[string]string, tensors []Data) ([]byte, error) {
	entries := map[string]any{}
	if len(metadata) > 0 {
		entries["__metadata__"] = metadata
	}
	at := int64(0)
	for _, t := range tensors {
		size, known := sizes[t.Type]
		for _, n := range t.Shape {
			size *= int64(n)
		}
		if _, twice := entries[t.Name]; twice || !known || size != int64(len(t.Bytes)) {
			return nil, fmt.Errorf("tensor %s: %s of shape %d in %d bytes: %w", t.Name, t.Type, t.Shape, len(t.Bytes), assay.ErrInvalid)
		}
		shape := append([]int{}, t.Shape...) // not null
		entries[t.Name] = map[string]any{"dtype": t.Type, "shape": shape, "data_offsets": []int64{at, at + size}}
		at += size
	}
	text, err := json.Marshal(entries) // sorts by name
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	pad := (alignment - (8+len(text))%alignment) % alignment
	text = append(text, bytes.Repeat([]byte(" "), pad)...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}
