package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// Encoders are the sentence encoders at hand.
type Encoders interface {
	// Default names the encoder that is used where none was chosen; empty: none. It
	// opens nothing.
	Default() string

	// Open returns the encoder of that name: its Model is the name. One that is not
	// there is assay.ErrNotFound; one of which a file is torn or wrong is
	// assay.ErrDamaged, and the error names the file. If it is an io.Closer, who
	// opened it closes it.
	Open(ctx context.Context, name string) (llm.Embedder, error)
}

// encoderName is the file in a tenant's folder that says which encoder its
// documents are embedded with. Where it is missing that is Encoders.Default.
const encoderName = "encoder.json"

// An encoderChoice is what that file holds.
type encoderChoice struct {
	Model  string `json:"model"`
	Source string `json:"source,omitempty"` // where it came from, for people
}

// readEncoder returns the choice that is stored in a tenant's folder; the zero one
// if there is none.
func readEncoder(dir string) (encoderChoice, error) {
	path := filepath.Join(dir, encoderName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return encoderChoice{}, nil
	}
	if err != nil {
		return encoderChoice{}, fmt.Errorf("read which encoder to use: %w", err)
	}
	var c encoderChoice
	if err := json.Unmarshal(data, &c); err != nil || c.Model == "" {
		return encoderChoice{}, fmt.Errorf("%s does not name a model: %w", path, assay.ErrDamaged)
	}
	return c, nil
}

// writeEncoder replaces the choice, whole or not at all; an empty one removes it.
func writeEncoder(dir string, c encoderChoice) error {
	path := filepath.Join(dir, encoderName)
	if c.Model == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, encoderName+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone when all went well
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// retryEncoder is how long an encoder that could not be opened is left alone.
const retryEncoder = 30 * time.Second

// A shelf keeps the encoders that were opened.
type shelf struct {
	from Encoders // nil: there are none
	now  func() time.Time

	mu     sync.Mutex
	opened map[string]llm.Embedder
	failed map[string]encoderFailure
}

type encoderFailure struct {
	err error
	at  time.Time
}

func newShelf(from Encoders, now func() time.Time) *shelf {
	return &shelf{from: from, now: now, opened: map[string]llm.Embedder{}, failed: map[string]encoderFailure{}}
}

// standard names the encoder that is used where none was chosen; empty: none.
func (s *shelf) standard() string {
	if s.from == nil {
		return ""
	}
	return s.from.Default()
}

// open returns an encoder, opened before or now.
func (s *shelf) open(ctx context.Context, name string) (llm.Embedder, error) {
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

// failure returns why an encoder could not be opened the last time; nil: it could,
// or nobody has tried.
func (s *shelf) failure(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed[name].err
}

// close closes all that were opened.
func (s *shelf) close() error {
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
