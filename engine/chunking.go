package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// Chunkers returns the ways to divide documents into chunks, the default first.
func Chunkers() []Chunker { return chunk.Chunkers() }

// collection returns the settings of the request's collection, changed as the request asks.
func (e *Engine) collection(ctx context.Context, req IngestRequest) (col store.Collection, changed bool, err error) {
	name := cmp.Or(req.Collection, ingest.DefaultCollection)
	stored, err := e.content.Collection(ctx, name)
	if errors.Is(err, assay.ErrNotFound) {
		stored, err = store.Collection{Name: name}, nil
	}
	if err != nil {
		return col, false, err
	}
	col = stored
	col.RequireACL = col.RequireACL || req.RequireACL
	if req.Chunker != "" && req.Chunker != cmp.Or(col.Chunker, chunk.Structure) {
		col.Chunker, col.ChunkSize, col.ChunkOverlap = req.Chunker, 0, 0
	}
	if col.Chunker == chunk.Structure {
		col.Chunker = ""
	}
	col.ChunkSize = cmp.Or(req.ChunkSize, col.ChunkSize)
	col.ChunkOverlap = cmp.Or(req.ChunkOverlap, col.ChunkOverlap)
	if err := chunkOptions(col).Check(); err != nil {
		return col, false, fmt.Errorf("collection %s: %w", name, err)
	}
	return col, col != stored, nil
}

func chunkOptions(c store.Collection) chunk.Options {
	return chunk.Options{Chunker: c.Chunker, TargetTokens: c.ChunkSize, OverlapTokens: c.ChunkOverlap}
}

// chunking returns the options of the collection's chunker, with the encoder if it needs one.
func (e *Engine) chunking(ctx context.Context, col store.Collection) (chunk.Options, error) {
	opts := chunkOptions(col)
	if opts.Chunker != chunk.Semantic {
		return opts, nil
	}
	chosen, err := e.encoderSelector.selection(ctx)
	if err != nil {
		return opts, err
	}
	if chosen.wanted == "" || chosen.problem != nil {
		return opts, fmt.Errorf("the chunker %s of the collection %s needs an encoder: %w", opts.Chunker, col.Name, cmp.Or(chosen.problem, assay.ErrInvalid))
	}
	embedder, err := e.encoderSelector.encoders.open(ctx, chosen.wanted)
	if err != nil {
		return opts, fmt.Errorf("the chunker %s of the collection %s: %w", opts.Chunker, col.Name, err)
	}
	opts.Model = embedder.Model()
	opts.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
		return embedder.Embed(ctx, llm.Passage, texts)
	}
	return opts, nil
}
