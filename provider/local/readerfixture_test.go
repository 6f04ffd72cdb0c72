package local

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assay-rag/assay/internal/safetensors"
)

// tinyReaderSettings returns the contents of reader.json for the random reader.
func tinyReaderSettings() map[string]any {
	return map[string]any{
		"encoder": "tiny", "max_tokens": 64,
		"answerable": map[string]any{"scale": 0.7, "bias": -0.2},
		"relevance":  map[string]any{"scale": 1.3, "bias": 0.1},
		"entailment": map[string]any{"scale": 0.9},
	}
}

// randomReader returns the files of a reader with random weights for the tiny encoder. Like one
// that was trained with its lowest layer frozen, it lacks that layer and the embeddings. write
// converts matrices to their stored type.
func randomReader(t testing.TB, write rewriting) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	setReader(t, files, tinyReaderSettings())
	setTensors(t, files, randomTensors(1, 2, 32, 80, write))
	return files
}

// setReader writes reader.json.
func setReader(t testing.TB, files fstest.MapFS, settings map[string]any) {
	t.Helper()
	data, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	files[readerFile] = &fstest.MapFile{Data: data}
}

// setTensors writes model.safetensors.
func setTensors(t testing.TB, files fstest.MapFS, tensors []safetensors.Data) {
	t.Helper()
	var file bytes.Buffer
	if err := safetensors.Write(&file, nil, tensors); err != nil {
		t.Fatal(err)
	}
	files[weightsFile] = &fstest.MapFile{Data: file.Bytes()}
}

// randomTensors returns the tensors of the layers [first, last) and of the heads.
func randomTensors(first, last, hidden, wide int, write rewriting) []safetensors.Data {
	random := rand.New(rand.NewPCG(15, 0))
	var all []safetensors.Data
	draw := func(n int, mean, spread float64) []float32 {
		numbers := make([]float32, n)
		for i := range numbers {
			numbers[i] = float32(mean + spread*random.NormFloat64())
		}
		return numbers
	}
	vector := func(name string, n int, mean float64) {
		all = append(all, safetensors.Float32Data(name, draw(n, mean, 0.1), n))
	}
	dense := func(name string, out, in int) {
		all = append(all, write(name+".weight", out, in, draw(out*in, 0, 0.2))...)
		vector(name+".bias", out, 0)
	}
	for i := first; i < last; i++ {
		name := layerName(i)
		for _, part := range []string{"query", "key", "value"} {
			dense(name+"attention.self."+part, hidden, hidden)
		}
		dense(name+"attention.output.dense", hidden, hidden)
		dense(name+"intermediate.dense", wide, hidden)
		dense(name+"output.dense", hidden, wide)
		for _, norm := range []string{"attention.output.LayerNorm", "output.LayerNorm"} {
			vector(name+norm+".weight", hidden, 1)
			vector(name+norm+".bias", hidden, 0)
		}
	}
	for _, head := range []struct {
		name string
		rows int
	}{{"span", 2}, {"relevance", 1}, {"entailment", 3}} {
		all = append(all, safetensors.Float32Data(head.name+".weight", draw(head.rows*hidden, 0, 0.3), head.rows, hidden))
		vector(head.name+".bias", head.rows, 0)
	}
	return all
}

// tensorsOf returns the tensors of a file, which the caller may change.
func tensorsOf(t testing.TB, data []byte) []safetensors.Data {
	t.Helper()
	f, err := safetensors.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	var all []safetensors.Data
	for _, name := range f.Names() {
		tensor, _ := f.Tensor(name)
		raw, err := f.Bytes(tensor)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, safetensors.Data{Name: name, Type: tensor.Type, Shape: tensor.Shape, Bytes: raw})
	}
	return all
}

// without returns the tensors whose names lack a prefix.
func without(tensors []safetensors.Data, prefix string) []safetensors.Data {
	return slices.DeleteFunc(slices.Clone(tensors), func(d safetensors.Data) bool {
		return len(d.Name) >= len(prefix) && d.Name[:len(prefix)] == prefix
	})
}

// openFiles opens a reader on the tiny encoder.
func openFiles(t testing.TB, files fstest.MapFS) *Reader {
	t.Helper()
	r, err := OpenReader(t.Context(), files, Config{Name: "reader"}, open(t, filepath.Join("testdata", "tiny")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// openRandom opens the random reader with float32 weights.
func openRandom(t testing.TB) *Reader {
	t.Helper()
	return openFiles(t, randomReader(t, rewriteF32))
}

// wordsOf returns n words that are one token each for the tiny encoder.
func wordsOf(n int) string {
	short := strings.Fields("the of and in to a is was for as on with by that it from at are this be or an which were protein cells")
	var b strings.Builder
	for i := range n {
		b.WriteString(short[i%len(short)] + " ")
	}
	return b.String()
}
