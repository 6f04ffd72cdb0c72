package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// sizedReader is a reader that reports its size.
type sizedReader struct{ llmtest.Reader }

func (*sizedReader) Bytes() int64 { return 11_000_000 }

// TestReaderIsOpenedOnce checks that the first question opens the reader, and that it is opened
// only once.
func TestReaderIsOpenedOnce(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	e := openConfig(t, Config{Dir: t.TempDir(), NoBackground: true, Reader: func() (llm.Reader, error) {
		opened.Add(1)
		return new(llmtest.Reader), nil
	}})
	ingestPaths(t, e, "testdata/handbook")
	if n := opened.Load(); n != 0 {
		t.Errorf("it was opened %d times before a question", n)
	}
	ask(t, e, someQuestion)
	ask(t, e, "Who approves travel?")
	if n := opened.Load(); n != 1 {
		t.Errorf("it was opened %d times, want once", n)
	}
}

// TestReaderThatCannotBeOpened checks that questions fail if the reader cannot be opened, and
// that Doctor reports it.
func TestReaderThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := Config{Dir: dir, NoBackground: true, Reader: func() (llm.Reader, error) {
		return nil, fmt.Errorf("model reader: model.safetensors: cut short: %w", assay.ErrDamaged)
	}}
	e := openConfig(t, config)
	ingestPaths(t, e, "testdata/handbook")
	_, err := e.Answer(t.Context(), assay.Local(), Request{Question: someQuestion})
	if !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), "model.safetensors") {
		t.Errorf("error %v, want ErrDamaged that names the file", err)
	}
	if c := checkNamed(t, Doctor(t.Context(), config), "reader"); c.OK || !errors.Is(c.Err, assay.ErrDamaged) {
		t.Errorf("%+v", c)
	}
}

func TestDoctorNamesTheReader(t *testing.T) {
	t.Parallel()
	config := Config{Dir: t.TempDir(), Reader: func() (llm.Reader, error) {
		return &sizedReader{llmtest.Reader{Name: "reader@12345678"}}, nil
	}}
	if c := checkNamed(t, Doctor(t.Context(), config), "reader"); !c.OK || c.Detail != "reader@12345678, 11.0 MB" {
		t.Errorf("%+v", c)
	}
	for _, c := range Doctor(t.Context(), Config{Dir: t.TempDir()}) {
		if c.Name == "reader" {
			t.Errorf("without a reader: %+v", c)
		}
	}
}
