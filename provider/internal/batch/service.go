package batch

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Service is a service whose models embed or rerank. It is safe for concurrent use.
type Service struct {
	client wire.Client
	Root   string // base URL without the version
	URL    string // base URL with it
}

var versioned = lazyregexp.New(`/v\d+$`)

// Open returns a service. version is appended to a base URL that ends in none. An invalid address
// is assay.ErrInvalid.
func Open(e wire.Endpoint, s wire.Service, version string) (*Service, error) {
	client, base, err := e.Client(s)
	if err != nil {
		return nil, err
	}
	root := versioned.ReplaceAllString(base, "")
	if root == base {
		base += version
	}
	return &Service{client: client, Root: root, URL: base}, nil
}

// Model returns a client whose errors name a model.
func (s *Service) Model(name string) *wire.Client {
	c := s.client
	c.Name += "/" + name
	return &c
}

// Embedder returns a model as an embedder of requests of at most most texts. dimensions is the
// requested size of its vectors, which becomes part of its name, or 0 for the model's default. A
// negative size is assay.ErrInvalid.
func (s *Service) Embedder(model string, dimensions, most int, fetch FetchVectors) (llm.Embedder, error) {
	if dimensions < 0 {
		return nil, fmt.Errorf("vectors of %d dimensions: %w", dimensions, assay.ErrInvalid)
	}
	client := s.Model(model)
	if dimensions > 0 {
		client.Name = fmt.Sprintf("%s/%d", client.Name, dimensions)
	}
	return &Embedder{Client: client, Most: most, Fetch: func(ctx context.Context, p llm.Purpose, texts []string) ([]Row, int, error) {
		return fetch(ctx, client, p, texts)
	}}, nil
}

// FetchVectors is the type of Embedder.Fetch with the client to use.
type FetchVectors func(ctx context.Context, client *wire.Client, p llm.Purpose, texts []string) (rows []Row, tokens int, err error)
