package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/models"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/provider/local"
)

// installedEncoders are the encoder in the binary and those in the models folder. It reads no model
// before one is opened.
type installedEncoders struct {
	embedded.Encoders
	folder func() (*models.Folder, error)
}

func (i installedEncoders) Open(ctx context.Context, name string) (llm.Embedder, error) {
	if name == embedded.Model {
		return i.Encoders.Open(ctx, name)
	}
	folder, err := i.folder()
	if err != nil {
		return nil, err
	}
	m, err := folder.Find(name)
	if errors.Is(err, assay.ErrNotFound) {
		return nil, hinted{err, "install it with: assay models pull, or use the built-in one: assay models use default"}
	}
	if err != nil {
		return nil, err
	}
	if err := folder.Verify(ctx, m); err != nil {
		return nil, hinted{err, "install it again: assay models pull " + shellQuote(m.Source) + " --name " + m.Name}
	}
	e, err := local.OpenDir(ctx, folder.Path(m.Name), local.Config{Name: m.Name, SHA256: m.WeightsSHA256()})
	if err != nil {
		return nil, err
	}
	if e.Model() != name {
		return nil, fmt.Errorf("model %s in %s is %s: %w", name, folder.Path(m.Name), e.Model(), assay.ErrDamaged)
	}
	return e, nil
}

// modelsFolder returns the folder for installed encoders.
func (a *app) modelsFolder() (*models.Folder, error) {
	dir := a.getenv("ASSAY_MODELS")
	if dir == "" {
		cache, err := a.cacheDir()
		if err != nil {
			return nil, hinted{fmt.Errorf("find the cache directory for models: %w", err), "name a folder with ASSAY_MODELS"}
		}
		dir = filepath.Join(cache, "assay", "models")
	}
	check := func(dir string) error { return local.Check(os.DirFS(dir)) }
	return &models.Folder{Dir: dir, Check: check, Open: openFacts}, nil
}

// openFacts opens an encoder and returns its properties.
func openFacts(ctx context.Context, dir, name, sha256 string) (models.Facts, error) {
	e, err := local.OpenDir(ctx, dir, local.Config{Name: name, SHA256: sha256})
	if err != nil {
		return models.Facts{}, err
	}
	// A trial vector proves that the encoder works and has its dimensions.
	v, err := e.Embed(ctx, llm.Passage, []string{"assay"})
	if err != nil {
		return models.Facts{}, err
	}
	return models.Facts{Model: e.Model(), Dimensions: len(v[0]), MaxTokens: e.MaxTokens(), Languages: append([]string{}, e.Languages()...)}, nil
}
