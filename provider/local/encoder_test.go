package local

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
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

// TestVectors compares vectors with those of ONNX Runtime, computed in float32 from the same
// weights, one text at a time. With ASSAY_DUMP it writes the tokens of the texts instead.
func TestVectors(t *testing.T) {
	t.Run("tiny", func(t *testing.T) { testVectors(t, filepath.Join("testdata", "tiny"), "tiny", 0.99999) })
	// Its int8 weights and 6-bit table are compared with the original model.
	t.Run("embedded", func(t *testing.T) { testVectors(t, filepath.Join("..", "embedded"), "gte-small", 0.998) })
	for _, name := range []string{"gte-small", "all-minilm-l6-v2"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("the tiny and the embedded model suffice")
			}
			testVectors(t, filepath.Join(models(t), name), name, 0.99999)
		})
	}
}

func testVectors(t *testing.T, dir, name string, least float64) {
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
	got, err := e.embed(t.Context(), llm.Passage, texts) // the random ones may look like code
	if err != nil {
		t.Fatal(err)
	}
	want := reference(t, name)
	dim := len(want) / len(texts)
	for i := range texts {
		if c := cosine(got[i], want[i*dim:(i+1)*dim]); c < least {
			t.Errorf("text %d, %d tokens: cosine %.7f with the reference", i, e.Tokens(texts[i]), c)
		}
		if n := cosine(got[i], got[i]); math.Abs(n-1) > 1e-6 {
			t.Errorf("text %d: length %g", i, n)
		}
	}
}

// TestEmbedBatches compares the vectors of many texts, which are computed in several batches, with
// those of single texts.
func TestEmbedBatches(t *testing.T) {
	e := open(t, filepath.Join("testdata", "tiny"))
	random := sequenceOf(3)
	var texts []string
	for range 200 {
		texts = append(texts, textOf(e.tokenizer, 2+random.next(62), false, &random))
	}
	texts[7] = "" // [CLS] [SEP] has a vector as well
	got, err := e.Embed(t.Context(), llm.Query, texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(texts) {
		t.Fatalf("%d vectors of %d texts", len(got), len(texts))
	}
	for i, text := range texts {
		alone, err := e.Embed(t.Context(), llm.Query, []string{text})
		if err != nil {
			t.Fatal(err)
		}
		if c := cosine(got[i], alone[0]); c < 0.999999 {
			t.Errorf("text %d: cosine %.7f with its vector alone", i, c)
		}
	}
}

// TestEmbedCode checks that identifiers are separated into words in code, and unchanged in prose.
func TestEmbedCode(t *testing.T) {
	e := open(t, filepath.Join("testdata", "tiny"))
	vector := func(text string) llm.Vector {
		t.Helper()
		vectors, err := e.Embed(t.Context(), llm.Passage, []string{text})
		if err != nil {
			t.Fatal(err)
		}
		return vectors[0]
	}
	for _, tt := range []struct {
		text, apart string
		want        bool
	}{
		{"x := f(aB);", "x := f(a B);", true},
		{"an aB of it", "an a B of it", false},
	} {
		if got := slices.Equal(vector(tt.text), vector(tt.apart)); got != tt.want {
			t.Errorf("%q is read as %q: %v", tt.text, tt.apart, got)
		}
	}
}

func TestEmbedNothing(t *testing.T) {
	e := open(t, filepath.Join("testdata", "tiny"))
	if vectors, err := e.Embed(t.Context(), llm.Query, nil); err != nil || len(vectors) != 0 {
		t.Errorf("vectors %v, error %v, want none", vectors, err)
	}
}

func TestEmbedTooLong(t *testing.T) {
	e := open(t, filepath.Join("testdata", "tiny"))
	fits, long := strings.Repeat("a ", 62), strings.Repeat("a ", 63)
	if _, err := e.Embed(t.Context(), llm.Passage, []string{fits}); err != nil {
		t.Errorf("%d tokens: %v", e.Tokens(fits), err)
	}
	for name, embed := range map[string]func() error{
		"Embed":       func() error { _, err := e.Embed(t.Context(), llm.Passage, []string{fits, long}); return err },
		"EmbedTokens": func() error { _, err := e.EmbedTokens(t.Context(), llm.Passage, []string{fits, long}); return err },
	} {
		var got *llm.TooLongError
		if err := embed(); !errors.As(err, &got) {
			t.Fatalf("%s: error %v, want a TooLongError", name, err)
		}
		if want := (llm.TooLongError{Model: e.Model(), Text: 1, Tokens: 65, Limit: 64}); *got != want {
			t.Errorf("%s: error %+v, want %+v", name, *got, want)
		}
	}
}

// TestEmbedCancelled cancels a call between two of its batches.
func TestEmbedCancelled(t *testing.T) {
	e := open(t, filepath.Join("testdata", "tiny"))
	texts := slices.Repeat([]string{strings.Repeat("a ", 60)}, 4*runtime.GOMAXPROCS(0)*batchRows/62)
	sequences, err := e.sequences(llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	err = e.bert.run(ctx, sequences, allRows, func(int, []float32) error { done++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if done == 0 || done >= len(texts)/2 {
		t.Errorf("%d of %d texts were computed, want those of the first batch", done, len(texts))
	}
	vectors, err := e.Embed(ctx, llm.Passage, texts)
	if !errors.Is(err, context.Canceled) || len(vectors) != 0 {
		t.Errorf("%d vectors, error %v, want none and that of the context", len(vectors), err)
	}
}

// TestEmbedConcurrently runs more concurrent calls than there are slots.
func TestEmbedConcurrently(t *testing.T) {
	e := open(t, filepath.Join("testdata", "tiny"))
	texts := []string{"the river", "an engine of the court", "cells"}
	want, err := e.Embed(t.Context(), llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	for range 4 * runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			got, err := e.Embed(t.Context(), llm.Passage, texts)
			if err == nil && !cmp.Equal(got, want) {
				err = errors.New("other vectors than alone")
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestEmbedTokens(t *testing.T) {
	plain := open(t, filepath.Join("testdata", "tiny"))
	texts := []string{"the river market", "", "cells"}
	got, err := plain.EmbedTokens(t.Context(), llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || len(got[0]) != 3 || len(got[1]) != 0 || len(got[2]) != 1 {
		t.Fatalf("token vectors %v, want 3, 0 and 1", got)
	}
	for _, v := range got[0] {
		if n := cosine(v, v); len(v) != 32 || math.Abs(n-1) > 1e-6 {
			t.Errorf("a token's vector of %d numbers and length %g", len(v), n)
		}
	}
}

// TestPrompts compares the vectors of a model with prompts with those of texts that begin with the
// prompts.
func TestPrompts(t *testing.T) {
	files := tiny(t, "tiny")
	files[noteFile] = &fstest.MapFile{Data: []byte(`{"query":"which: ","passage":"from the history: ","pooling":"cls"}`)}
	prompted, err := Open(t.Context(), files, Config{Name: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	files[noteFile] = &fstest.MapFile{Data: []byte(`{"pooling":"cls"}`)}
	plain, err := Open(t.Context(), files, Config{Name: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	for purpose, prompt := range map[llm.Purpose]string{llm.Query: "which: ", llm.Passage: "from the history: "} {
		got, err := prompted.Embed(t.Context(), purpose, []string{"river"})
		if err != nil {
			t.Fatal(err)
		}
		want, err := plain.Embed(t.Context(), purpose, []string{prompt + "river"})
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(got, want) {
			t.Errorf("purpose %d: not the vector of %q", purpose, prompt+"river")
		}
		tokens, err := prompted.EmbedTokens(t.Context(), purpose, []string{"river market"})
		if err != nil {
			t.Fatal(err)
		}
		if len(tokens[0]) != 2 {
			t.Errorf("purpose %d: %d tokens have vectors, want those of the text", purpose, len(tokens[0]))
		}
	}
	if got, want := prompted.Tokens("river"), 1+4+1+1; got != want {
		t.Errorf("%d tokens, want %d, which the longer prompt makes", got, want)
	}
}

// TestDamagedNumbers checks that NaN in the weights is an error.
func TestDamagedNumbers(t *testing.T) {
	damaged := rewrite(t, tiny(t, "tiny")[weightsFile].Data, func(name string, rows, cols int, w []float32) []safetensors.Data {
		if name == "encoder.layer.1.output.dense.weight" {
			w[0] = float32(math.NaN())
		}
		return rewriteF32(name, rows, cols, w)
	})
	e, err := Open(t.Context(), tiny(t, "tiny"), Config{Name: "tiny", Weights: damaged})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), llm.Query, []string{"river"}); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
}

func TestContract(t *testing.T) {
	llmtest.TestEmbedder(t, open(t, filepath.Join("testdata", "tiny")))
}
