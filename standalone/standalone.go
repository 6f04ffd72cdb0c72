// Package standalone opens an engine that needs nothing but its binary: the encoder and the reader
// are those of provider/embedded, so that searches by meaning and answers work offline. It is the
// entry point for most programs; those with models of their own for both use package engine, which
// does not link the embedded ones.
package standalone

import (
	"context"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/provider/embedded"
)

// Config returns the configuration of an engine on the data directory dir with the embedded encoder
// and reader.
func Config(dir string) engine.Config {
	return engine.Config{Dir: dir, Encoders: embedded.Encoders{}, Reader: embedded.OpenReader, OCR: parse.FindOCR}
}

// Open opens the data directory dir, which is created if it is missing. Each change is applied to
// the engine's configuration in order, to add language models, a strategy or, if dir is empty, a
// store. The errors are those of engine.Open, and the engine must be closed.
func Open(ctx context.Context, dir string, changes ...func(*engine.Config)) (*engine.Engine, error) {
	c := Config(dir)
	for _, change := range changes {
		change(&c)
	}
	return engine.Open(ctx, c)
}
