package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
	"github.com/assay-rag/assay/llm"
)

// TestWeightTypes compares the vectors for other types of weights with those for the same numbers
// in F32.
func TestWeightTypes(t *testing.T) {
	texts := []string{"the river and the market", "cells", "an engine of history in 1998, and a signal"}
	embed := func(data []byte) []llm.Vector {
		t.Helper()
		e, err := Open(t.Context(), tiny(t, "tiny"), Config{Name: "tiny", Weights: data})
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := e.Embed(t.Context(), llm.Passage, texts)
		if err != nil {
			t.Fatal(err)
		}
		return vectors
	}
	half := tiny(t, "tiny")[weightsFile].Data
	whole := embed(half)
	for name, test := range map[string]struct {
		rewrite rewriting
		least   float64
	}{
		"F32":                {rewriteF32, 0.9999999},
		"BF16":               {rewriteBF16, 0.999},
		"I8":                 {rewriteI8, 0.999},
		"table of 6 bits":    {rewriteU8(6, 1), 0.99},
		"4 bits in 8 groups": {rewriteU8(4, 8), 0.9},
	} {
		for i, v := range embed(rewrite(t, half, test.rewrite)) {
			if c := cosine(v, whole[i]); c < test.least {
				t.Errorf("%s: text %d has the cosine %.5f with that of F16", name, i, c)
			}
		}
	}
}

// A rewriting converts a matrix to another type.
type rewriting func(name string, rows, cols int, w []float32) []safetensors.Data

// rewrite returns weights in other types: it converts matrices with do and vectors to F32. It drops
// tensors of integers.
func rewrite(t testing.TB, data []byte, do rewriting) []byte {
	t.Helper()
	f, err := safetensors.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	var all []safetensors.Data
	for _, name := range f.Names() {
		tensor, _ := f.Tensor(name)
		if tensor.Type == "I64" { // position_ids, which is unused
			continue
		}
		numbers, err := f.Float32s(tensor)
		if err != nil {
			t.Fatal(err)
		}
		if len(tensor.Shape) == 2 {
			all = append(all, do(name, tensor.Shape[0], tensor.Shape[1], numbers)...)
		} else {
			all = append(all, safetensors.Float32Data(name, numbers, tensor.Shape...))
		}
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, nil, all); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func rewriteF32(name string, rows, cols int, w []float32) []safetensors.Data {
	return []safetensors.Data{safetensors.Float32Data(name, w, rows, cols)}
}

func rewriteBF16(name string, rows, cols int, w []float32) []safetensors.Data {
	var data []byte
	for _, v := range w {
		data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
	}
	return []safetensors.Data{{Name: name, Type: safetensors.BF16, Shape: []int{rows, cols}, Bytes: data}}
}

func rewriteI8(name string, rows, cols int, w []float32) []safetensors.Data {
	scales, rounded := quantise(rows, cols, w, 127)
	data := make([]byte, len(w))
	for i, v := range rounded {
		data[i] = byte(int8(v))
	}
	return []safetensors.Data{
		{Name: name, Type: safetensors.I8, Shape: []int{rows, cols}, Bytes: data},
		safetensors.Float32Data(name+scaled, scales, rows),
	}
}

// rewriteU8 packs only the token table.
func rewriteU8(bits, groups int) rewriting {
	return func(name string, rows, cols int, w []float32) []safetensors.Data {
		if name != "embeddings.word_embeddings.weight" {
			return rewriteF32(name, rows, cols, w)
		}
		zero := 1 << (bits - 1)
		scales, rounded := quantise(rows*groups, cols/groups, w, zero-1)
		data := make([]byte, len(w)*bits/8)
		for i, v := range rounded {
			for bit := range bits {
				if (v+zero)>>bit&1 == 1 {
					data[(i*bits+bit)/8] |= 1 << ((i*bits + bit) % 8)
				}
			}
		}
		shape := []int{rows, groups}
		if groups == 1 {
			shape = shape[:1]
		}
		return []safetensors.Data{
			{Name: name, Type: safetensors.U8, Shape: []int{rows, cols * bits / 8}, Bytes: data},
			safetensors.Float32Data(name+scaled, scales, shape...),
		}
	}
}

// quantise rounds the rows to integers of at most most, with a scale for each.
func quantise(rows, cols int, w []float32, most int) (scales []float32, rounded []int) {
	for row := range slices.Chunk(w[:rows*cols], cols) {
		var largest float32
		for _, v := range row {
			largest = max(largest, v, -v)
		}
		scale := largest / float32(most)
		scales = append(scales, scale)
		for _, v := range row {
			rounded = append(rounded, int(math.Round(float64(v/scale))))
		}
	}
	return scales, rounded
}

// rewriteRounded writes the rounded values of I8 weights in F32.
func rewriteRounded(name string, rows, cols int, w []float32) []safetensors.Data {
	scales, rounded := quantise(rows, cols, w, 127)
	numbers := make([]float32, len(w))
	for i, v := range rounded {
		numbers[i] = float32(v) * scales[i/cols]
	}
	return rewriteF32(name, rows, cols, numbers)
}

// TestInt8 compares integer products with those of the same weights in float32. Their error must be
// negligible compared with that of rounding the weights.
func TestInt8(t *testing.T) {
	if testing.Short() {
		t.Skip("embeds with a whole model twice")
	}
	dir := filepath.Join(models(t), "all-minilm-l6-v2")
	data, err := os.ReadFile(filepath.Join(dir, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]llm.Vector
	for _, do := range []rewriting{rewriteI8, rewriteRounded} {
		e, err := OpenDir(t.Context(), dir, Config{Weights: rewrite(t, data, do)})
		if err != nil {
			t.Fatal(err)
		}
		texts := sampleTexts(e.tokenizer, 128)
		vectors, err := e.Embed(t.Context(), llm.Passage, texts)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, vectors)
	}
	for i := range all[0] {
		if c := cosine(all[0][i], all[1][i]); c < 0.999995 {
			t.Errorf("text %d: cosine %.7f", i, c)
		}
	}
}

// TestWideWeights checks that weights wider than the kernels support are rejected without a panic.
func TestWideWeights(t *testing.T) {
	const wide = 1<<16 + 4
	files := tiny(t, "tiny")
	files[configFile].Data = regexp.MustCompile(`"intermediate_size": *\d+`).ReplaceAll(files[configFile].Data, fmt.Appendf(nil, `"intermediate_size": %d`, wide))
	data := rewrite(t, files[weightsFile].Data, func(name string, rows, cols int, w []float32) []safetensors.Data {
		switch {
		case strings.HasSuffix(name, "intermediate.dense.weight"):
			rows, w = wide, make([]float32, wide*cols)
		case strings.HasSuffix(name, "output.dense.weight") && !strings.Contains(name, "attention"):
			cols, w = wide, make([]float32, rows*wide)
		}
		return rewriteI8(name, rows, cols, w)
	})
	f, err := safetensors.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	var all []safetensors.Data // with biases of the same width
	for _, name := range f.Names() {
		tensor, _ := f.Tensor(name)
		if strings.HasSuffix(name, "intermediate.dense.bias") {
			all = append(all, safetensors.Float32Data(name, make([]float32, wide), wide))
			continue
		}
		raw, err := f.Bytes(tensor)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, safetensors.Data{Name: name, Type: tensor.Type, Shape: tensor.Shape, Bytes: raw})
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, all); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), files, Config{Name: "wide", Weights: b.Bytes()}); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), configFile) {
		t.Errorf("Open: %v, want %s named", err, configFile)
	}
}
