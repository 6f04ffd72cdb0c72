package embedded

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/local"
)

// The files of the reader. Its embeddings and lowest layers are the encoder's.
var (
	//go:embed reader/reader.json reader/SHA256SUMS
	readerFiles embed.FS

	//go:embed reader/model.safetensors
	readerWeights []byte
)

// openReader decodes the reader's weights, once.
var openReader = sync.OnceValues(func() (llm.Reader, error) {
	encoder, err := Open()
	if err != nil {
		return nil, err
	}
	return newReader(encoder)
})

func newReader(encoder *local.Encoder) (llm.Reader, error) {
	files, err := fs.Sub(readerFiles, "reader")
	if err != nil {
		return nil, err
	}
	sum, err := readerSum(files)
	if err != nil {
		return nil, err
	}
	r, err := local.OpenReader(context.Background(), files, local.Config{Name: "reader", SHA256: sum, Weights: readerWeights}, encoder)
	if err != nil {
		return nil, err // not a nil *local.Reader in an interface
	}
	return r, nil
}

// OpenReader returns the embedded reader. The first call decodes its weights and the encoder's.
func OpenReader() (llm.Reader, error) { return openReader() }

// readerSum returns the SHA-256 of the weights from SHA256SUMS. A test checks the files against it.
func readerSum(files fs.FS) (string, error) {
	list, err := fs.ReadFile(files, "SHA256SUMS")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(list)) {
		if sum, found := strings.CutSuffix(strings.TrimSpace(line), "  model.safetensors"); found {
			return sum, nil
		}
	}
	return "", fmt.Errorf("model reader: SHA256SUMS does not list model.safetensors: %w", assay.ErrDamaged)
}
