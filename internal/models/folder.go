package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// Facts are the properties of an opened encoder.
type Facts struct {
	Model      string   `json:"model"` // permanent name of its embedding space
	Dimensions int      `json:"dimensions"`
	MaxTokens  int      `json:"max_tokens"`
	Languages  []string `json:"languages"` // ISO 639-1; empty: unrestricted or unknown
}

// An Installed is the record of a model, made when it was installed.
type Installed struct {
	Facts
	Name      string    `json:"name"`   // of its folder
	Source    string    `json:"source"` // source URL or folder
	Files     []File    `json:"files"`  // sorted by name
	Installed time.Time `json:"installed"`
}

// Bytes returns the total size of the files.
func (m Installed) Bytes() int64 {
	total := int64(0)
	for _, f := range m.Files {
		total += f.Bytes
	}
	return total
}

// WeightsSHA256 returns the sum of the weights.
func (m Installed) WeightsSHA256() string {
	for _, f := range m.Files {
		if f.Name == weightsFile {
			return f.SHA256
		}
	}
	return ""
}

// A Folder contains installed models, each in a folder with its name that holds its files and
// installed.json. It is safe for concurrent use, also by several processes. A Folder that does not
// exist contains no models; Pull creates it.
type Folder struct {
	Dir string

	// Check returns why the model in a folder, without its weights, cannot be run, as far as that
	// can be determined. If nil, only Open checks the model.
	Check func(dir string) error

	// Open opens the encoder in dir under the given name, whose weights have the given sum, and
	// returns its properties. A model that it rejects is not installed.
	Open func(ctx context.Context, dir, name, sha256 string) (Facts, error)

	// Now returns the time; nil: time.Now.
	Now func() time.Time

	// Client makes the client for downloads from a base URL. It is required by downloads.
	Client func(base string) *http.Client

	// fetch downloads. The zero value is for production; tests use shorter waits.
	fetch fetcher
}

// recordFile is the record of an installed model, an Installed as JSON. A folder without it is not
// an installed model.
const recordFile = "installed.json"

// maxRecord is the largest size of a record.
const maxRecord = 1 << 20

// Path returns the folder of the model with that name, installed or not.
func (f *Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// List returns the installed models, sorted by name. It skips folders without a model; a record
// that cannot be read is an error.
func (f *Folder) List() ([]Installed, error) {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(err)
	}
	var all []Installed
	for _, e := range entries {
		if checkName(e.Name()) != nil {
			continue
		}
		m, err := f.read(e.Name())
		if errors.Is(err, assay.ErrNotFound) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Find returns the installed model with the given name or model name (Facts.Model). It returns
// assay.ErrNotFound if there is none.
func (f *Folder) Find(name string) (Installed, error) {
	if strings.ContainsAny(name, "@/") {
		all, err := f.List()
		if i := slices.IndexFunc(all, func(m Installed) bool { return m.Model == name }); i >= 0 {
			return all[i], nil
		}
		if err != nil {
			return Installed{}, err
		}
		return Installed{}, notInstalled(name)
	}
	if err := checkName(name); err != nil {
		return Installed{}, err
	}
	return f.read(name)
}

func notInstalled(name string) error {
	return fmt.Errorf("model %s is not installed: %w", name, assay.ErrNotFound)
}

// read returns the record of a model.
func (f *Folder) read(name string) (Installed, error) {
	path := filepath.Join(f.Path(name), recordFile)
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return Installed{}, wrap(err)
		}
		return Installed{}, notInstalled(name)
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return Installed{}, fmt.Errorf("%s is no record of a model: %w", path, assay.ErrDamaged)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Installed{}, wrap(err)
	}
	var m Installed
	if err := json.Unmarshal(data, &m); err != nil {
		return Installed{}, fmt.Errorf("%s: %w: %w", path, err, assay.ErrDamaged)
	}
	if m.Name = name; m.WeightsSHA256() == "" {
		return Installed{}, fmt.Errorf("%s names no weights: %w", path, assay.ErrDamaged)
	}
	return m, nil
}

// Verify compares all files of an installed model with its record. A missing or modified file is
// assay.ErrDamaged, and the error names it.
func (f *Folder) Verify(ctx context.Context, m Installed) error {
	for _, want := range m.Files {
		if want.Name != configFile && want.Name != weightsFile && !slices.Contains(describing, want.Name) {
			return fmt.Errorf("%s lists the file %q: %w", filepath.Join(f.Path(m.Name), recordFile), want.Name, assay.ErrDamaged)
		}
		path := filepath.Join(f.Path(m.Name), filepath.FromSlash(want.Name))
		got, err := sumFile(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is missing: %w", path, assay.ErrDamaged)
		case err != nil:
			return err
		case got.Bytes != want.Bytes:
			return fmt.Errorf("%s has %d bytes, and had %d when it was installed: %w", path, got.Bytes, want.Bytes, assay.ErrDamaged)
		case got.SHA256 != want.SHA256:
			return fmt.Errorf("%s is not what was installed: its SHA-256 is %s, and was %s: %w", path, got.SHA256, want.SHA256, assay.ErrDamaged)
		}
	}
	return nil
}

// Remove removes an installed model and the remains of an unfinished pull. It returns
// assay.ErrNotFound if there is neither.
func (f *Folder) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := os.Stat(f.Dir); errors.Is(err, fs.ErrNotExist) {
		return notInstalled(name)
	}
	staging, release, err := f.lockStaging(name)
	if err != nil {
		return err
	}
	defer release()
	_, partErr := os.Stat(staging)
	_, err = os.Stat(filepath.Join(f.Path(name), recordFile))
	if err != nil && partErr != nil {
		return notInstalled(name)
	}
	if partErr == nil {
		if err := os.RemoveAll(staging); err != nil {
			return wrap(err)
		}
	}
	if err != nil {
		return nil
	}
	// Without its record the folder is no model, even if the rest is removed only partly.
	if err := os.Remove(filepath.Join(f.Path(name), recordFile)); err != nil {
		return wrap(err)
	}
	return wrap(os.RemoveAll(f.Path(name)))
}

// maxName is the longest name of a model.
const maxName = 100

// devices are names that Windows reserves.
var devices = []string{"con", "prn", "aux", "nul"}

// checkName returns assay.ErrInvalid for a name that is not portable as a folder name.
func checkName(name string) error {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	device := slices.Contains(devices, base) ||
		len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9'
	if name == "" || len(name) > maxName || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") || device ||
		strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return fmt.Errorf("%q is no name for a model: letters, digits, and - _ . inside it: %w", name, assay.ErrInvalid)
	}
	return nil
}
