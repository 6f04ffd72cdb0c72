package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/models"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// TestSums checks every file against its folder's SHA256SUMS, and the constant against the weights.
func TestSums(t *testing.T) {
	listed := checkSums(t, ".")
	if listed["model.safetensors"] != sum || len(listed) != 5 {
		t.Errorf("SHA256SUMS lists %v, the constant says %s", listed, sum)
	}
	if got := Bytes(); got > 35e6 {
		t.Errorf("the encoder takes %d bytes, more than 35 MB", got)
	}
	if listed := checkSums(t, "reader"); len(listed) != 2 || listed["reader.json"] == "" {
		t.Errorf("reader/SHA256SUMS lists %v", listed)
	}
	if got := len(readerWeights); got > 25e6 {
		t.Errorf("the reader takes %d bytes, more than 25 MB", got)
	}
}

// checkSums compares the files of a folder with its SHA256SUMS and returns the listed sums.
func checkSums(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(list)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != want {
			t.Errorf("%s has the SHA-256 %x, SHA256SUMS says %s", name, got, want)
		}
		listed[name] = want
	}
	return listed
}

// TestRecipe reproduces the weights from the half-precision ones.
func TestRecipe(t *testing.T) {
	if testing.Short() {
		t.Skip("quantises a whole model")
	}
	shared := os.Getenv("ASSAY_TESTDATA")
	if shared == "" {
		t.Skip("ASSAY_TESTDATA is not set")
	}
	src := filepath.Join(shared, "models", "gte-small")
	if _, err := os.Stat(src); err != nil {
		t.Skip(err)
	}
	files, err := models.Quantise(t.Context(), src, t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name == "model.safetensors" && f.SHA256 != sum {
			t.Errorf("the recipe makes weights with the SHA-256 %s, embedded are those with %s", f.SHA256, sum)
		}
	}
}

func TestOpen(t *testing.T) {
	e, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if e.Model() != Model {
		t.Errorf("Model() = %q, the constant says %q", e.Model(), Model)
	}
	if again, _ := Open(); again != e {
		t.Error("the second call opened it again")
	}
	if l := e.Languages(); len(l) != 1 || l[0] != "en" {
		t.Errorf("Languages() = %q", l)
	}
	llmtest.TestEmbedder(t, e)
}

// TestMeaning checks that texts with the same meaning are closer than texts that only share words.
func TestMeaning(t *testing.T) {
	e, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	v, err := e.Embed(ctx, llm.Passage, []string{
		"Employees may carry unused vacation days into the next year.",
		"The next year, unused carry handles were added to the vacation van.",
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := e.Embed(ctx, llm.Query, []string{"Can I keep my remaining leave after December?"})
	if err != nil {
		t.Fatal(err)
	}
	if same, other := dot(q[0], v[0]), dot(q[0], v[1]); same <= other || math.IsNaN(same) {
		t.Errorf("similarities %.3f of the answer, %.3f of other words", same, other)
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestEncoders checks that no encoder is returned for another name.
func TestEncoders(t *testing.T) {
	var from Encoders
	e, err := from.Open(t.Context(), from.Default())
	if err != nil || e.Model() != Model {
		t.Errorf("opened %v, %v", e, err)
	}
	if _, err := from.Open(t.Context(), "bge-small"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("error %v for another name, want ErrNotFound", err)
	}
}
