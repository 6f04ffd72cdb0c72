package local

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/safetensors"
)

const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"

	// maxSmallFile is the size limit of files other than the weights. The largest vocabularies of
	// BERTs are below a tenth of it.
	maxSmallFile = 64 << 20
)

// A Config contains the properties that a model's folder lacks.
type Config struct {
	// Name is the prefix of the model's name. It defaults to the folder's name in OpenDir, and is
	// required in Open.
	Name string

	// SHA256 is the checksum of model.safetensors in hexadecimal, if the caller knows it. Empty: it
	// is computed.
	SHA256 string

	// Model is the full name of the model, for a caller that knows that the files are those of this
	// name. Empty: it is derived from Name and the files.
	Model string

	// Weights is the contents of model.safetensors, if the caller has it in memory. It is read in
	// place and must not change. Nil: it is read from the folder.
	Weights []byte
}

// Open reads a sentence encoder from a folder.
//
// Damaged or inconsistent files are assay.ErrDamaged. Models that this package cannot run, or not
// as an encoder, are assay.ErrInvalid. A missing file is fs.ErrNotExist. The message names the
// file.
func Open(ctx context.Context, fsys fs.FS, c Config) (*Encoder, error) {
	f, err := openFolder(fsys, c)
	if err != nil {
		return nil, err
	}
	defer f.close()
	e, err := newEncoder(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Name, err)
	}
	return e, nil
}

// Check returns the error for which Open would reject the model in the folder, as far as it can be
// determined from config.json, before the weights are available.
func Check(fsys fs.FS) error {
	_, err := readArchitecture(fsys, trunks...)
	return err
}

// OpenDir is Open for a folder on disk.
func OpenDir(ctx context.Context, dir string, c Config) (*Encoder, error) {
	c, err := named(dir, c)
	if err != nil {
		return nil, err
	}
	return Open(ctx, os.DirFS(dir), c)
}

// OpenReranker reads a cross-encoder: a BERT that computes one number for a query and a text
// (BertForSequenceClassification with one label). Its errors are those of Open.
func OpenReranker(ctx context.Context, fsys fs.FS, c Config) (*Reranker, error) {
	f, err := openFolder(fsys, c)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r, err := newReranker(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Name, err)
	}
	return r, nil
}

// OpenRerankerDir is OpenReranker for a folder on disk.
func OpenRerankerDir(ctx context.Context, dir string, c Config) (*Reranker, error) {
	c, err := named(dir, c)
	if err != nil {
		return nil, err
	}
	return OpenReranker(ctx, os.DirFS(dir), c)
}

// OpenReader reads a reader from reader.json and model.safetensors. Tokenizer, word embeddings and
// the layers missing from the file are those of the encoder that it was trained from. Its errors
// are those of Open.
func OpenReader(ctx context.Context, fsys fs.FS, c Config, encoder *Encoder) (*Reader, error) {
	f, err := openFolder(fsys, c)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r, err := newReader(ctx, f, encoder)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Name, err)
	}
	return r, nil
}

// OpenReaderDir is OpenReader for a folder on disk.
func OpenReaderDir(ctx context.Context, dir string, c Config, encoder *Encoder) (*Reader, error) {
	c, err := named(dir, c)
	if err != nil {
		return nil, err
	}
	return OpenReader(ctx, os.DirFS(dir), c, encoder)
}

// named sets the model's name to that of its folder, unless it is set.
func named(dir string, c Config) (Config, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return c, fmt.Errorf("model %s: %w", dir, err)
	}
	c.Name = cmp.Or(c.Name, filepath.Base(absolute))
	return c, nil
}

// A folder is an open model folder.
type folder struct {
	fs.FS
	Config
	weights weights
	file    io.Closer // of the weights; nil if they are in memory
	size    int64     // of the weights
	read    hash.Hash // of everything read except the weights
}

// identity returns the first digits of a checksum of the weights and every other file that was
// read, since the vectors may depend on any of them.
func (f *folder) identity() string {
	f.note(weightsFile, []byte(f.SHA256))
	return hex.EncodeToString(f.read.Sum(nil)[:4])
}

// note adds a file to the checksum.
func (f *folder) note(name string, data []byte) {
	fmt.Fprintf(f.read, "%s %x\n", name, sha256.Sum256(data))
}

func openFolder(fsys fs.FS, c Config) (*folder, error) {
	if c.Name == "" {
		return nil, fmt.Errorf("a model without a name: %w", assay.ErrInvalid)
	}
	f := &folder{FS: fsys, Config: c, read: sha256.New()}
	if err := f.openWeights(); err != nil {
		f.close()
		return nil, fmt.Errorf("model %s: %s: %w", c.Name, weightsFile, err)
	}
	return f, nil
}

func (f *folder) close() {
	if f.file != nil {
		f.file.Close() // opened for reading only
	}
}

// openWeights opens model.safetensors and computes its checksum.
func (f *folder) openWeights() error {
	r, size, err := f.readWeights()
	if err != nil {
		return err
	}
	f.size = size
	if f.SHA256 == "" {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(r, 0, size)); err != nil {
			return err
		}
		f.SHA256 = hex.EncodeToString(h.Sum(nil))
	} else if len(f.SHA256) != hex.EncodedLen(sha256.Size) {
		return fmt.Errorf("%q is not a SHA-256 sum: %w", f.SHA256, assay.ErrInvalid)
	}
	f.weights.memory = f.Weights
	f.weights.file, err = safetensors.Open(r, size)
	return err
}

func (f *folder) readWeights() (io.ReaderAt, int64, error) {
	if f.Weights != nil {
		return bytes.NewReader(f.Weights), int64(len(f.Weights)), nil
	}
	file, err := f.Open(weightsFile)
	if err != nil {
		return nil, 0, err
	}
	f.file = file
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if r, direct := file.(io.ReaderAt); direct {
		return r, info.Size(), nil
	}
	f.Weights, err = io.ReadAll(file)
	return bytes.NewReader(f.Weights), int64(len(f.Weights)), err
}

// readSmall reads a file other than the weights.
func readSmall(fsys fs.FS, name string) ([]byte, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSmallFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxSmallFile {
		return nil, fmt.Errorf("%s: exceeds %d bytes: %w", name, maxSmallFile, assay.ErrInvalid)
	}
	if f, ok := fsys.(*folder); ok {
		f.note(name, data)
	}
	return data, nil
}

// readJSON reads a JSON file into v.
func readJSON(fsys fs.FS, name string, v any) error {
	data, err := readSmall(fsys, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w: %w", name, err, assay.ErrDamaged)
	}
	return nil
}

// readOptional is like readJSON, for a file that may be missing.
func readOptional(fsys fs.FS, name string, v any) (found bool, err error) {
	err = readJSON(fsys, name, v)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
