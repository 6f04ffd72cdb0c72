package local

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/internal/safetensors"
	"github.com/assay-rag/assay/llm"
)

func open(t testing.TB, dir string) *Encoder {
	t.Helper()
	e, err := OpenDir(t.Context(), dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// reference returns tensors of testdata/reference.safetensors as numbers.
func reference(t testing.TB, name string) []float32 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "reference.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	tensor, found := f.Tensor(name)
	if !found {
		t.Fatalf("no reference %s", name)
	}
	numbers, err := f.Float32s(tensor)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// TestVectors holds vectors to those of ONNX Runtime, computed in float32 from
// the same weights for each text for itself.
// With ASSAY_DUMP it writes the tokens of the texts instead.
func TestVectors(t *testing.T) {
	t.Run("tiny", func(t *testing.T) { testVectors(t, filepath.Join("testdata", "tiny")) })
	for _, name := range []string{"gte-small", "all-minilm-l6-v2"} {
		t.Run(name, func(t *testing.T) { testVectors(t, filepath.Join(models(t), name)) })
	}
}

func testVectors(t *testing.T, dir string) {
	e := open(t, dir)
	texts := sampleTexts(e.tokenizer, e.MaxTokens())
	if dump := os.Getenv("ASSAY_DUMP"); dump != "" {
		var ids [][]int32
		for _, text := range texts {
			ids = append(ids, e.tokenizer.single(nil, text))
		}
		data, _ := json.Marshal(ids)
		writeDump(t, filepath.Join(dump, filepath.Base(dir)+".ids.json"), data)
		return
	}
	got, err := e.Embed(t.Context(), llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	want := reference(t, filepath.Base(dir))
	dim := len(want) / len(texts)
	for i := range texts {
		if c := cosine(got[i], want[i*dim:(i+1)*dim]); c < 0.99999 {
			t.Errorf("text %d, %d tokens: cosine %.7f with the reference", i, e.Tokens(texts[i]), c)
		}
		if n := cosine(got[i], got[i]); math.Abs(n-1) > 1e-6 {
			t.Errorf("text %d: length %g", i, n)
		}
	}
}
