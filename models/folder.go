package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// A Facts is what an encoder says of itself once it is open.
type Facts struct {
	Model      string   `json:"model"` // the name of its vectors, for good
	Dimensions int      `json:"dimensions"`
	MaxTokens  int      `json:"max_tokens"`
	Languages  []string `json:"languages"` // ISO 639-1; empty: not limited to any, or not known
}

// An Installed is a model in the folder, as it was when it was installed.
type Installed struct {
	Facts
	Name      string    `json:"name"`   // of its folder
	Source    string    `json:"source"` // the URL or folder that it came from
	Files     []File    `json:"files"`  // sorted by name
	Installed time.Time `json:"installed"`
}

// Bytes is the size of all files.
func (m Installed) Bytes() int64 {
	total := int64(0)
	for _, f := range m.Files {
		total += f.Bytes
	}
	return total
}

// WeightsSHA256 is the sum of the weights.
func (m Installed) WeightsSHA256() string {
	for _, f := range m.Files {
		if f.Name == weightsFile {
			return f.SHA256
		}
	}
	return ""
}

// A Folder is where models are installed: each in a folder named for it, which
// holds its files and installed.json. It is safe for concurrent use, also by
// several processes. A folder that is not there holds no models, and is made by
// Pull.
type Folder struct {
	Dir string

	// Check says why the model in a folder that has no weights yet cannot be run,
	// as far as that can be told; nil: nothing is told before Open.
	Check func(dir string) error

	// Open opens the encoder in a folder under this name, whose weights have this
	// sum, and says what it is. What it cannot open is not installed.
	Open func(ctx context.Context, dir, name, sha256 string) (Facts, error)

	// Now tells the time; nil: time.Now.
	Now func() time.Time

	// fetch downloads; the zero value is what users have, tests wait less.
	fetch fetcher
}

// recordFile is what is known of an installed model: an Installed as JSON. A
// folder without it is not an installed model.
const recordFile = "installed.json"

// maxRecord is the most that is read of one.
const maxRecord = 1 << 20

// Path is the folder of the model of that name, installed or not.
func (f *Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// List returns the models that are installed, by name. Folders that hold none
// are passed over; a record that cannot be read is an error.
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

// Find returns the installed model of this name, which may also be that of its
// vectors; assay.ErrNotFound when there is none.
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

// read reads the record of a model.
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

// Verify reads all files of an installed model and compares them with what was
// installed. One that is missing, or is another, is assay.ErrDamaged and named.
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

// Remove removes an installed model, and what is left of an unfinished pull of
// it; assay.ErrNotFound when there is neither.
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
	// Without its record it is no model any more, however far the rest comes.
	if err := os.Remove(filepath.Join(f.Path(name), recordFile)); err != nil {
		return wrap(err)
	}
	return wrap(os.RemoveAll(f.Path(name)))
}

// maxName is the longest name of a model.
const maxName = 100

// devices are names that Windows keeps for itself.
var devices = []string{"con", "prn", "aux", "nul"}

// checkName refuses, as assay.ErrInvalid, what cannot be the name of a folder
// everywhere.
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
