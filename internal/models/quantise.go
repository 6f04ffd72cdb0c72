package models

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
)

// DefaultTableBits is the default number of bits per value of the token table.
const DefaultTableBits = 6

// tableGroup is the number of values in a row of the token table that share a scale. The few large
// values of a row then reduce only their neighbours' precision.
const tableGroup = 128

// Quantise quantises the BERT encoder in the folder src, whose weights have type F32, F16 or BF16,
// to int8 weights and a token table of tableBits bits (4 to 8; 0: DefaultTableBits). It writes the
// result to the folder dst, which must be empty or not exist. The output is deterministic on every
// processor. Quantise returns the files written, except SHA256SUMS, which lists their sums.
//
// A weight is its int8 times the scale of its row, in which 127 is the largest absolute value. In
// the token table, whose values have fewer bits, tableGroup values share the scale with the least
// squared error. docs/formats.md documents the layout.
func Quantise(ctx context.Context, src, dst string, tableBits int) ([]File, error) {
	tableBits = cmp.Or(tableBits, DefaultTableBits)
	if tableBits < 4 || tableBits > 8 {
		return nil, fmt.Errorf("a token table of %d bits, want 4 to 8: %w", tableBits, assay.ErrInvalid)
	}
	path := filepath.Join(src, weightsFile)
	sum, err := sumFile(ctx, path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, wrap(err)
	}
	defer f.Close()
	in, err := safetensors.Open(f, sum.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	tensors, err := quantiseTensors(ctx, in, tableBits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	metadata := map[string]string{"format": "assay-quantised", "version": "1", "source_sha256": sum.SHA256, "table_bits": strconv.Itoa(tableBits)}
	var weights bytes.Buffer
	if err := safetensors.Write(&weights, metadata, tensors); err != nil {
		return nil, err
	}
	return writeQuantised(ctx, src, dst, weights.Bytes())
}

// quantiseTensors returns the tensors of the quantised model, with names without the prefix
// "bert.".
func quantiseTensors(ctx context.Context, in *safetensors.File, tableBits int) ([]safetensors.Data, error) {
	_, judges := in.Tensor("classifier.weight") // a cross-encoder, which uses its pooler
	var out []safetensors.Data
	table := false
	for _, full := range in.Names() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(full, "bert.")
		t, _ := in.Tensor(full)
		if t.Type != safetensors.F32 && t.Type != safetensors.F16 && t.Type != safetensors.BF16 {
			if strings.HasSuffix(name, "position_ids") {
				continue // the constants 0, 1, 2 ...
			}
			return nil, fmt.Errorf("tensor %s has the type %s: it is quantised already, or no encoder's: %w", full, t.Type, assay.ErrInvalid)
		}
		if strings.HasPrefix(name, "pooler.") && !judges {
			continue // sentence vectors are means of the last layer
		}
		values, err := in.Float32s(t)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(values, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }); i >= 0 {
			return nil, fmt.Errorf("tensor %s: number %d is %v: %w", full, i, values[i], assay.ErrDamaged)
		}
		switch {
		case name == "embeddings.word_embeddings.weight" && len(t.Shape) == 2:
			table = true
			out = append(out, quantiseTable(name, values, t.Shape[0], t.Shape[1], tableBits)...)
		case isMatrix(name) && len(t.Shape) == 2:
			out = append(out, quantiseMatrix(name, values, t.Shape[0], t.Shape[1])...)
		default:
			out = append(out, safetensors.Float32Data(name, values, t.Shape...))
		}
	}
	if !table {
		return nil, fmt.Errorf("no tensor embeddings.word_embeddings.weight: only encoders of the BERT family are quantised: %w", assay.ErrInvalid)
	}
	return out, nil
}

// isMatrix reports whether a tensor is large enough to be quantised.
func isMatrix(name string) bool {
	return name == "embeddings.position_embeddings.weight" || strings.HasPrefix(name, "encoder.layer.") && strings.HasSuffix(name, ".weight")
}

// quantiseMatrix returns an I8 tensor and its scales, one for each row.
func quantiseMatrix(name string, values []float32, rows, columns int) []safetensors.Data {
	data, scales := make([]byte, rows*columns), make([]float32, rows)
	for r := range rows {
		row := values[r*columns : (r+1)*columns]
		scales[r] = scaleOf(largest(row), math.MaxInt8)
		for i, v := range row {
			data[r*columns+i] = byte(int8(level(v, scales[r], math.MaxInt8)))
		}
	}
	return []safetensors.Data{
		{Name: name, Type: safetensors.I8, Shape: []int{rows, columns}, Bytes: data},
		safetensors.Float32Data(name+".scale", scales, rows),
	}
}

// quantiseTable returns a U8 tensor whose rows are streams of bit-packed values, and the scales of
// their groups.
func quantiseTable(name string, values []float32, rows, columns, bits int) []safetensors.Data {
	group := tableGroup
	if columns%group != 0 {
		group = columns
	}
	groups, most := columns/group, 1<<(bits-1)-1
	width := (columns*bits + 7) / 8
	data, scales := make([]byte, rows*width), make([]float32, rows*groups)
	for r := range rows {
		packed := data[r*width : (r+1)*width]
		for g := range groups {
			part := values[r*columns+g*group:][:group]
			scale := bestScale(part, most)
			scales[r*groups+g] = scale
			for i, v := range part {
				putBits(packed, (g*group+i)*bits, uint16(level(v, scale, most)+most+1))
			}
		}
	}
	return []safetensors.Data{
		{Name: name, Type: safetensors.U8, Shape: []int{rows, width}, Bytes: data},
		safetensors.Float32Data(name+".scale", scales, rows, groups),
	}
}

// putBits writes value, of at most 9 bits, at the bit offset at of a stream. The bits must be 0
// before. Bit b of a stream is bit b%8 of byte b/8.
func putBits(stream []byte, at int, value uint16) {
	v := uint32(value) << (at % 8)
	stream[at/8] |= byte(v)
	if v > 0xff {
		stream[at/8+1] |= byte(v >> 8)
	}
}

// level returns the integer multiple of scale that is nearest to v, limited to -most and most.
func level(v, scale float32, most int) int {
	n := int(math.RoundToEven(float64(v) / float64(scale)))
	return max(-most, min(most, n))
}

// The candidate scales, as sixty-fourths of the scale at which the largest level represents the
// largest value. Smaller scales clip large values to gain precision for the others.
const (
	leastSixtyFourths = 40
	mostSixtyFourths  = 64
)

// largest returns the largest absolute value.
func largest(values []float32) float64 {
	m := 0.0
	for _, v := range values {
		m = max(m, math.Abs(float64(v)))
	}
	return m
}

// scaleOf returns the scale at which level most represents value, which must not be negative. It
// returns 1 if that scale is zero.
func scaleOf(value float64, most int) float32 {
	if scale := float32(value / float64(most)); scale > 0 {
		return scale
	}
	return 1
}

// bestScale returns the positive scale with the least squared error for values that are rounded to
// levels from -most to most.
func bestScale(values []float32, most int) float32 {
	top := largest(values)
	best, least := float32(0), math.Inf(1)
	for part := mostSixtyFourths; part >= leastSixtyFourths; part-- {
		scale := scaleOf(top*float64(part)/mostSixtyFourths, most)
		sum := 0.0
		for _, v := range values {
			d := float64(v) - float64(float64(level(v, scale, most))*float64(scale))
			sum += float64(d * d) // converted, so that no processor fuses the two and rounds differently
		}
		if sum < least {
			best, least = scale, sum
		}
	}
	return best
}

// writeQuantised writes the folder: the weights, the descriptive files and the sums of all. The
// vocabulary is taken from vocab.txt if it exists, since that is a third of the size of
// tokenizer.json.
func writeQuantised(ctx context.Context, src, dst string, weights []byte) ([]File, error) {
	if err := makeEmpty(dst); err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(dst, weightsFile), weights); err != nil {
		return nil, err
	}
	_, err := os.Stat(filepath.Join(src, vocabularyFile))
	hasVocabulary := err == nil
	for _, name := range append([]string{configFile}, describing...) {
		if name == tokenizerFile && hasVocabulary {
			continue
		}
		data, err := os.ReadFile(filepath.Join(src, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != configFile:
			continue
		case err != nil:
			return nil, wrap(err)
		}
		if err := writeFile(filepath.Join(dst, filepath.FromSlash(name)), data); err != nil {
			return nil, err
		}
	}
	files, err := sumFolder(ctx, dst)
	if err != nil {
		return nil, err
	}
	return files, writeFile(filepath.Join(dst, sumsFile), formatSums(files))
}

// makeEmpty creates the folder, or checks that it is empty.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return wrap(err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return wrap(err)
	}
	if len(there) > 0 {
		return fmt.Errorf("%s is not empty: it holds %s: %w", dir, there[0].Name(), assay.ErrInvalid)
	}
	return nil
}
