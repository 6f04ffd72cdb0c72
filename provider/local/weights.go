package local

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
	"github.com/assay-rag/assay/internal/tensor"
)

// weights reads the tensors of a model by their Hugging Face names. A tensor that is missing or has
// another shape is assay.ErrDamaged.
type weights struct {
	file   *safetensors.File
	memory []byte // the whole file, if it is in memory
	prefix string // of the trunk's names: "bert." in models with a head
}

// scaled is the suffix of a quantised tensor's name in the name of its scales.
const scaled = ".scale"

// find returns the tensor and its bytes. A dimension of -1 matches any.
func (w *weights) find(name string, shape ...int) (safetensors.Tensor, []byte, error) {
	name = w.prefix + name
	t, found := w.file.Tensor(name)
	if !found {
		return t, nil, fmt.Errorf("%s: tensor %s is missing: %w", weightsFile, name, assay.ErrDamaged)
	}
	if !slices.EqualFunc(t.Shape, shape, func(got, want int) bool { return got == want || want < 0 }) {
		return t, nil, fmt.Errorf("%s: tensor %s has the shape %d, want %d: %w", weightsFile, name, t.Shape, shape, assay.ErrDamaged)
	}
	if w.memory != nil {
		start, end := w.file.Range(t)
		return t, w.memory[start:end:end], nil
	}
	data, err := w.file.Bytes(t)
	if err != nil {
		return t, nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	return t, data, nil
}

// floats returns the numbers of a tensor, which has a floating-point type, or I8 with a scale for
// each row.
func (w *weights) floats(name string, shape ...int) ([]float32, error) {
	t, data, err := w.find(name, shape...)
	if err != nil {
		return nil, err
	}
	switch t.Type {
	case safetensors.F32, safetensors.F16, safetensors.BF16:
		return safetensors.Widen(t.Type, data), nil
	case safetensors.I8:
		scales, err := w.floats(name+scaled, shape[0])
		if err != nil {
			return nil, err
		}
		numbers, width := make([]float32, len(data)), len(data)/max(1, shape[0])
		for i, v := range data {
			numbers[i] = float32(int8(v)) * scales[i/width]
		}
		return numbers, nil
	}
	return nil, fmt.Errorf("%s: tensor %s has the type %s, which is not supported: %w", weightsFile, w.prefix+name, t.Type, assay.ErrInvalid)
}

// A dense is a layer of the network: y = act(x * weights + bias).
type dense struct {
	weights *tensor.Weights
	bias    []float32
}

// dense reads layers with the same input, stacked into one.
func (w *weights) dense(out, in int, names ...string) (dense, error) {
	var d dense
	quantised := true
	for _, name := range names {
		bias, err := w.floats(name+".bias", out)
		if err != nil {
			return d, err
		}
		d.bias = append(d.bias, bias...)
		t, found := w.file.Tensor(w.prefix + name + ".weight")
		quantised = quantised && found && t.Type == safetensors.I8
	}
	if quantised {
		return w.denseInt8(d, out, in, names)
	}
	var rows []float32
	for _, name := range names {
		part, err := w.floats(name+".weight", out, in)
		if err != nil {
			return d, err
		}
		rows = append(rows, part...)
	}
	d.weights = tensor.PackFloat32(rows, out*len(names), in)
	return d, nil
}

func (w *weights) denseInt8(d dense, out, in int, names []string) (dense, error) {
	var rows []int8
	var scales []float32
	for _, name := range names {
		_, data, err := w.find(name+".weight", out, in)
		if err != nil {
			return d, err
		}
		part, err := w.floats(name+".weight"+scaled, out)
		if err != nil {
			return d, err
		}
		scales = append(scales, part...)
		if len(names) == 1 {
			rows = signed(data)
		} else {
			rows = append(rows, signed(data)...)
		}
	}
	d.weights = tensor.PackInt8(rows, scales, out*len(names), in)
	return d, nil
}

// signed returns the bytes as signed numbers, without copying.
func signed(data []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(data))), len(data))
}

// A layerNorm is a layer normalisation.
type layerNorm struct{ gamma, beta []float32 }

func (w *weights) norm(name string, n int) (layerNorm, error) {
	gamma, err := w.floats(name+".weight", n)
	if err != nil {
		return layerNorm{}, err
	}
	beta, err := w.floats(name+".bias", n)
	return layerNorm{gamma, beta}, err
}

// has reports whether the file contains a tensor with that name.
func (w *weights) has(name string) bool {
	_, found := w.file.Tensor(w.prefix + name)
	return found
}

// hasAny reports whether the file contains a tensor whose name begins with prefix.
func (w *weights) hasAny(prefix string) bool {
	return slices.ContainsFunc(w.file.Names(), func(name string) bool { return strings.HasPrefix(name, w.prefix+prefix) })
}
