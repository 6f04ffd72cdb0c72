package embedded

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func TestOpenReader(t *testing.T) {
	r, err := OpenReader()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := OpenReader(); again != r {
		t.Error("the second call opened it again")
	}
	if !strings.HasPrefix(r.Model(), "reader@") {
		t.Errorf("Model() = %q", r.Model())
	}
	llmtest.TestReader(t, func(testing.TB) llm.Reader { return r })
}

// TestReaderSum checks that the reader is not opened without its sum.
func TestReaderSum(t *testing.T) {
	if _, err := readerSum(fstest.MapFS{"SHA256SUMS": {Data: []byte("00  reader.json\n")}}); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
	if _, err := readerSum(fstest.MapFS{}); err == nil {
		t.Error("no error without SHA256SUMS")
	}
}

// BenchmarkOpenReader measures decoding the weights, with the encoder already open.
func BenchmarkOpenReader(b *testing.B) {
	encoder, err := Open()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := newReader(encoder); err != nil {
			b.Fatal(err)
		}
	}
}
