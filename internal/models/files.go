package models

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/assay-rag/assay"
)

// The files of a model. The first two are required, and so is one of the two with the vocabulary.
const (
	configFile     = "config.json"
	weightsFile    = "model.safetensors"
	tokenizerFile  = "tokenizer.json"
	vocabularyFile = "vocab.txt"

	// settingsFile contains the settings that the other files of a model lack, for example the
	// prefix of a query; see docs/formats.md.
	settingsFile = "assay.json"

	// sumsFile lists the sums of the other files in the format of sha256sum.
	sumsFile = "SHA256SUMS"
)

// describing lists the optional files of a model. Files with other names are ignored, so a server
// cannot place any others.
var describing = []string{
	tokenizerFile, vocabularyFile, "tokenizer_config.json", "special_tokens_map.json", "modules.json",
	"1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json", settingsFile,
}

// A File is a file of a model with its size and sum.
type File struct {
	Name   string `json:"name"` // path within the model's folder, with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hexadecimal, lower case
}

// sumFile returns the size and the sum of a file.
func sumFile(ctx context.Context, path string) (File, error) {
	info, err := os.Stat(path) // before opening: opening a pipe would block
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is not a file: %w", path, assay.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, contextReader{ctx, f})
	if err != nil {
		return File{}, err
	}
	return File{Name: filepath.Base(path), Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// sumFolder returns the files of a model that exist in the folder, sorted by name.
func sumFolder(ctx context.Context, dir string) ([]File, error) {
	var files []File
	for _, name := range append([]string{configFile, weightsFile}, describing...) {
		f, err := sumFile(ctx, filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.Name = name
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// formatSums returns the contents of a file of sums.
func formatSums(files []File) []byte {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%s  %s\n", f.SHA256, f.Name)
	}
	return b.Bytes()
}

// parseSums parses lines in the format of sha256sum. It ignores other lines: a listed file can only
// make a check stricter, never looser.
func parseSums(data []byte) map[string]string {
	sums := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(name, " "), "*"), "./")
		if ok && isSum(sum) {
			sums[name] = strings.ToLower(sum)
		}
	}
	return sums
}

// isSum reports whether s is a hexadecimal SHA-256 sum.
func isSum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// writeFile writes a file and the folders above it. The file is on disk when it returns.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return wrap(err)
	}
	f, err := os.Create(path)
	if err != nil {
		return wrap(err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return wrap(errors.Join(err, f.Close()))
}

// wrap adds one of assay's kinds to a file system error that the user can resolve. The error itself
// names the file.
func wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", err, assay.ErrReadOnly)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", err, assay.ErrFull)
	}
	return err
}

// A contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
