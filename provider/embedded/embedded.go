// Package embedded provides the sentence encoder and the reader in the binary. The encoder is
// gte-small, an English one of 384 dimensions, with int8 weights. The reader, [OpenReader], was
// trained from it. They need no file, no network and no setup; provider/local runs them.
//
// The weights are part of the binary's file and are mapped with it. A program that never embeds a
// text neither reads nor decodes them. LICENSE is the models' license, not assay's. SOURCE.md
// documents their origin and how to reproduce them, and SHA256SUMS lists the files.
package embedded

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/local"
)

// Model is the name of the encoder and of its embedding space. It is known before any weights are
// read.
const Model = name + "@" + sumHead + "/384"

// Further properties of the encoder that are known before it is opened.
const (
	Dimensions = 384
	MaxTokens  = 512
	Language   = "en" // ISO 639-1
)

// sum is the SHA-256 of model.safetensors, in two parts: the first is in Model.
const (
	name    = "gte-small-int8"
	sumHead = "50b99043"
	sum     = sumHead + "7ddda3bc2dd312108653422645d53a2da0aa50c006fd6e8b27a4bd17"
)

//go:embed config.json assay.json vocab.txt tokenizer_config.json
var described embed.FS

//go:embed model.safetensors
var weights []byte

// open decodes the weights, once.
var open = sync.OnceValues(func() (*local.Encoder, error) {
	return local.Open(context.Background(), described, local.Config{Name: name, Model: Model, SHA256: sum, Weights: weights})
})

// Open returns the encoder. The first call decodes the weights.
func Open() (*local.Encoder, error) { return open() }

// Encoders provides only this encoder, in the form in which an engine receives its encoders.
type Encoders struct{}

// Default returns the encoder's name.
func (Encoders) Default() string { return Model }

// Open returns the encoder. Any other name is assay.ErrNotFound.
func (Encoders) Open(_ context.Context, name string) (llm.Embedder, error) {
	if name != Model {
		return nil, fmt.Errorf("encoder %s: %w", name, assay.ErrNotFound)
	}
	return Open()
}

// Bytes returns the total size of the weights and the files that describe them.
func Bytes() int64 {
	total := int64(len(weights))
	for _, name := range []string{"config.json", "assay.json", "vocab.txt", "tokenizer_config.json"} {
		info, err := fs.Stat(described, name)
		if err != nil {
			panic(err) // the file is embedded
		}
		total += info.Size()
	}
	return total
}
