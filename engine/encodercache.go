package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// Encoders provides the available sentence encoders.
type Encoders interface {
	// Default names the encoder to use if none was chosen; empty: none. It does not open it.
	Default() string

	// Open returns the encoder with that name, which is also its Model. It returns
	// assay.ErrNotFound if the encoder does not exist, and assay.ErrDamaged, naming the file, if
	// a file of it is truncated or wrong. If the encoder is an io.Closer, the caller must close
	// it.
	Open(ctx context.Context, name string) (llm.Embedder, error)
}

// encoderSetting is the tenant's setting that names the encoder of its documents. If there is none,
// Encoders.Default is used.
const encoderSetting = "encoder"

// An encoderChoice is the content of that setting.
type encoderChoice struct {
	Model  string `json:"model"`
	Source string `json:"source,omitempty"` // where the encoder came from, for display
}

// decodeEncoder decodes the setting. It returns the zero choice if there is none.
func decodeEncoder(setting []byte) (encoderChoice, error) {
	if len(setting) == 0 {
		return encoderChoice{}, nil
	}
	var c encoderChoice
	if err := json.Unmarshal(setting, &c); err != nil || c.Model == "" {
		return encoderChoice{}, fmt.Errorf("the setting %q does not name a model: %w", encoderSetting, assay.ErrDamaged)
	}
	return c, nil
}

// writeEncoder replaces the setting. A choice without a model removes it.
func writeEncoder(ctx context.Context, t store.Tenant, c encoderChoice) error {
	if c.Model == "" {
		return t.SetSetting(ctx, encoderSetting, nil)
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return t.SetSetting(ctx, encoderSetting, append(data, '\n'))
}

// retryEncoder is how long to wait before opening an encoder again that could not be opened.
const retryEncoder = 30 * time.Second

// encoderCache opens encoders and keeps them open.
type encoderCache struct {
	from Encoders // nil: none
	now  func() time.Time

	mu     sync.Mutex
	opened map[string]llm.Embedder
	failed map[string]encoderFailure
}

type encoderFailure struct {
	err error
	at  time.Time
}

func newEncoderCache(from Encoders, now func() time.Time) *encoderCache {
	return &encoderCache{from: from, now: now, opened: map[string]llm.Embedder{}, failed: map[string]encoderFailure{}}
}

// standard names the encoder to use if none was chosen; empty: none.
func (s *encoderCache) standard() string {
	if s.from == nil {
		return ""
	}
	return s.from.Default()
}

// open returns an encoder and opens it if necessary.
func (s *encoderCache) open(ctx context.Context, name string) (llm.Embedder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.opened[name]; ok {
		return e, nil
	}
	if f, ok := s.failed[name]; ok && s.now().Sub(f.at) < retryEncoder {
		return nil, f.err
	}
	if s.from == nil {
		return nil, fmt.Errorf("encoder %s: this program has no encoders: %w", name, assay.ErrNotFound)
	}
	e, err := s.from.Open(ctx, name)
	if err == nil && e.Model() != name {
		err = fmt.Errorf("it calls itself %s: %w", e.Model(), assay.ErrDamaged)
	}
	if err != nil {
		err = fmt.Errorf("open encoder %s: %w", name, err)
		if ctx.Err() == nil {
			s.failed[name] = encoderFailure{err, s.now()}
		}
		return nil, err
	}
	delete(s.failed, name)
	s.opened[name] = e
	return e, nil
}

// failure returns the error of the last attempt to open an encoder; nil: it was opened, or never
// tried.
func (s *encoderCache) failure(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed[name].err
}

// close closes all open encoders.
func (s *encoderCache) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, e := range s.opened {
		if c, ok := e.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	clear(s.opened)
	return errors.Join(errs...)
}
