package testset_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
)

// TestReadSetOfFile checks that a file of questions given as a labelled set is explained.
func TestReadSetOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "questions.jsonl")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := testset.ReadSet(file)
	if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "a labelled set is a folder with corpus.jsonl") {
		t.Errorf("ReadSet of a file: %v", err)
	}
}
