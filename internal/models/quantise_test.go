package models

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
)

// smallBERT writes a folder with the tensors of a very small BERT. change may add or remove
// tensors.
func smallBERT(t testing.TB, change func(map[string]safetensors.Data)) string {
	t.Helper()
	seed := uint32(1)
	tensors := map[string]safetensors.Data{}
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			seed = seed*1664525 + 1013904223
			values[i] = float32(int32(seed)) / (1 << 31)
		}
		tensors[name] = safetensors.Float32Data(name, values, shape...)
	}
	add("bert.embeddings.word_embeddings.weight", 10, 256)
	add("bert.embeddings.position_embeddings.weight", 4, 256)
	add("bert.embeddings.LayerNorm.weight", 256)
	add("bert.encoder.layer.0.output.dense.weight", 256, 8)
	add("bert.encoder.layer.0.output.dense.bias", 256)
	add("bert.pooler.dense.weight", 256, 256)
	tensors["bert.embeddings.position_ids"] = safetensors.Data{Name: "bert.embeddings.position_ids", Type: "I64", Shape: []int{1}, Bytes: make([]byte, 8)}
	if change != nil {
		change(tensors)
	}
	var all []safetensors.Data
	for _, d := range tensors {
		all = append(all, d)
	}
	var weights bytes.Buffer
	if err := safetensors.Write(&weights, nil, all); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeModel(t, dir, map[string][]byte{configFile: []byte("{}"), weightsFile: weights.Bytes(), vocabularyFile: []byte("a\n"), tokenizerFile: []byte("{}")})
	return dir
}

// unpack returns the dequantised values of a tensor.
func unpack(t *testing.T, f *safetensors.File, name string, rows, columns int) []float32 {
	t.Helper()
	tensor, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	data, err := f.Bytes(tensor)
	if err != nil {
		t.Fatal(err)
	}
	factors, _ := f.Tensor(name + ".scale")
	scales, err := f.Float32s(factors)
	if err != nil {
		t.Fatal(err)
	}
	groups := len(scales) / rows
	out := make([]float32, rows*columns)
	for r := range rows {
		for c := range columns {
			scale := scales[r*groups+c/(columns/groups)]
			switch tensor.Type {
			case safetensors.I8:
				out[r*columns+c] = float32(int8(data[r*columns+c])) * scale
			case safetensors.U8:
				bits := 8 * tensor.Shape[1] / columns
				u := 0
				for b := range bits {
					at := c*bits + b
					u |= int(data[r*tensor.Shape[1]+at/8]>>(at%8)&1) << b
				}
				out[r*columns+c] = float32(u-1<<(bits-1)) * scale
			}
		}
	}
	return out
}

func TestQuantise(t *testing.T) {
	src := smallBERT(t, nil)
	original, err := os.ReadFile(filepath.Join(src, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	was, err := safetensors.OpenBytes(original)
	if err != nil {
		t.Fatal(err)
	}
	for bits := 4; bits <= 8; bits++ {
		dst, again := filepath.Join(t.TempDir(), "new"), t.TempDir()
		files, err := Quantise(t.Context(), src, dst, bits)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 3 || files[2].Name != vocabularyFile {
			t.Errorf("wrote %+v, want config, weights and vocab.txt", files)
		}
		if second, err := Quantise(t.Context(), src, again, bits); err != nil || second[1] != files[1] {
			t.Errorf("quantised twice: %+v and %+v, %v", files[1], second[1], err)
		}
		data, err := os.ReadFile(filepath.Join(dst, weightsFile))
		if err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.OpenBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []struct {
			name          string
			rows, columns int
			bits          int
		}{
			{"embeddings.word_embeddings.weight", 10, 256, bits},
			{"embeddings.position_embeddings.weight", 4, 256, 8},
			{"encoder.layer.0.output.dense.weight", 256, 8, 8},
		} {
			tensor, _ := was.Tensor("bert." + m.name)
			want, err := was.Float32s(tensor)
			if err != nil {
				t.Fatal(err)
			}
			squares := 0.0
			for i, got := range unpack(t, f, m.name, m.rows, m.columns) {
				squares += float64(got-want[i]) * float64(got-want[i])
			}
			step := 1 / float64(int(1)<<(m.bits-1)-1) // the largest value is 1
			if got, most := math.Sqrt(squares/float64(len(want))), 1.05*step/math.Sqrt(12); got > most {
				t.Errorf("%d bits: %s is off by %.5f on the root mean square, want at most %.5f", bits, m.name, got, most)
			}
		}
		for _, name := range f.Names() {
			if name == "pooler.dense.weight" || name == "embeddings.position_ids" {
				t.Errorf("%s was kept", name)
			}
		}
	}
}

func TestQuantiseRefuses(t *testing.T) {
	full := t.TempDir()
	writeModel(t, full, map[string][]byte{"x": nil})
	tests := map[string]struct {
		src, dst string
		bits     int
		kind     error
	}{
		"no bits":   {smallBERT(t, nil), t.TempDir(), 3, assay.ErrInvalid},
		"not empty": {smallBERT(t, nil), full, 6, assay.ErrInvalid},
		"no folder": {filepath.Join(full, "none"), t.TempDir(), 6, os.ErrNotExist},
		"no table": {smallBERT(t, func(m map[string]safetensors.Data) { delete(m, "bert.embeddings.word_embeddings.weight") }),
			t.TempDir(), 6, assay.ErrInvalid},
		"quantised": {smallBERT(t, func(m map[string]safetensors.Data) {
			m["q"] = safetensors.Data{Name: "q", Type: safetensors.I8, Shape: []int{1}, Bytes: []byte{1}}
		}), t.TempDir(), 6, assay.ErrInvalid},
		"no numbers": {smallBERT(t, func(m map[string]safetensors.Data) {
			m["n"] = safetensors.Float32Data("n", []float32{float32(math.NaN())}, 1)
		}), t.TempDir(), 6, assay.ErrDamaged},
	}
	for name, test := range tests {
		if _, err := Quantise(t.Context(), test.src, test.dst, test.bits); !errors.Is(err, test.kind) {
			t.Errorf("%s: %v, want %v", name, err, test.kind)
		}
	}
}

// TestBestScale checks that no nearby scale has a smaller error.
func TestBestScale(t *testing.T) {
	values := []float32{0.1, -0.2, 0.3, 0.15, -0.05, 4}
	if got := bestScale(make([]float32, 3), 7); got != 1 {
		t.Errorf("of zeros: %v, want 1", got)
	}
	squares := func(scale float32) float64 {
		sum := 0.0
		for _, v := range values {
			d := float64(v) - float64(level(v, scale, 7))*float64(scale)
			sum += d * d
		}
		return sum
	}
	if best := bestScale(values, 7); squares(best) > squares(4.0/7) {
		t.Errorf("scale %v leaves %v, the largest value's %v", best, squares(best), squares(4.0/7))
	}
}
