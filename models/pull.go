package models

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
)

// A PullRequest says what to install.
type PullRequest struct {
	// What is a known name, OWNER/REPOSITORY on the mirror, the URL of a folder, or
	// a local folder.
	What string

	// Name is the name to install it under; "": that of the model or folder.
	Name string

	// Mirror is where names and repositories are looked for; "": DefaultMirror.
	Mirror string

	// SHA256 is what the weights must have; "": what the source says they have, if
	// it does.
	SHA256 string

	// Replace replaces a model of the same name that holds something else.
	Replace bool

	// Progress is told how far a file has come; may be nil.
	Progress func(Progress)
}

// A Progress says how far a file has come.
type Progress struct {
	File    string
	Done    int64
	Total   int64 // -1: not known
	Problem error // the last try broke off with it; another follows
}

// The longest files that are taken: weights, and others.
const (
	maxWeights = 8 << 30
	maxOther   = 64 << 20
)

// stagingDir holds what is being pulled, a folder for each model, beside the
// models. Its name can be no model's.
const stagingDir = ".pulling"

// Pull installs a model: it fetches or copies the files, checks their sums as far
// as any are known, opens the encoder, and only then gives the folder its name.
// What has been fetched is kept when it is interrupted, and the next Pull goes
// on with it. A model that is installed already, with the same files, is left as
// it is.
//
// Weights that are not what they should be are assay.ErrDamaged; a model that is
// not there assay.ErrNotFound; one that is not supported, or that would replace
// another, assay.ErrInvalid; a second pull of the same name at the same time
// assay.ErrLocked.
func (f *Folder) Pull(ctx context.Context, req PullRequest) (Installed, error) {
	if req.Progress == nil {
		req.Progress = func(Progress) {}
	}
	if req.SHA256 = strings.ToLower(req.SHA256); req.SHA256 != "" && !isSum(req.SHA256) {
		return Installed{}, fmt.Errorf("%q is no SHA-256: 64 hexadecimal digits: %w", req.SHA256, assay.ErrInvalid)
	}
	from, err := f.locate(req)
	if err != nil {
		return Installed{}, err
	}
	if err := checkName(from.name); err != nil {
		return Installed{}, err
	}
	if there, ok := f.has(ctx, from, req); ok {
		return there, nil
	}
	staging, release, err := f.lockStaging(from.name)
	if err != nil {
		return Installed{}, err
	}
	defer release()
	if err := os.MkdirAll(staging, 0o755); err != nil {
		return Installed{}, wrap(err)
	}
	m, err := f.stage(ctx, req, from, staging)
	if err != nil {
		return Installed{}, fmt.Errorf("pull %s: %w", from.name, err)
	}
	return f.install(ctx, m, staging, req.Replace)
}

// has returns the model when it is installed from the same URL and whole, so that
// nothing need be fetched.
func (f *Folder) has(ctx context.Context, from place, req PullRequest) (Installed, bool) {
	if req.Replace || len(from.bases) == 0 {
		return Installed{}, false
	}
	there, err := f.read(from.name)
	if err != nil || there.Source != from.source || req.SHA256 != "" && req.SHA256 != there.WeightsSHA256() {
		return Installed{}, false
	}
	return there, f.Verify(ctx, there) == nil
}

// A place is where a model comes from.
type place struct {
	name   string
	source string   // for people and for the record
	bases  []string // URLs of the folder that are tried in turn; none: it is dir
	dir    string
	note   []byte // assay.json, where the source has none; may be nil
}

// locate finds out what a request means.
func (f *Folder) locate(req PullRequest) (place, error) {
	mirror := strings.TrimRight(cmp.Or(req.Mirror, DefaultMirror), "/")
	if err := checkURL(mirror); err != nil {
		return place{}, err
	}
	repository := func(name, path string, note []byte) (place, error) {
		base := mirror + "/" + path + "/resolve/main"
		return place{name: cmp.Or(req.Name, name), source: mirror + "/" + path, bases: []string{base, mirror + "/" + path}, note: note}, nil
	}
	if k, ok := findKnown(req.What); ok {
		return repository(k.Name, k.Path, k.note())
	}
	if strings.Contains(req.What, "://") {
		if err := checkURL(req.What); err != nil {
			return place{}, err
		}
		base := strings.TrimRight(req.What, "/")
		u, _ := url.Parse(base)
		return place{name: cmp.Or(req.Name, path.Base(u.Path)), source: base, bases: []string{base, base + "/resolve/main"}}, nil
	}
	info, err := os.Stat(req.What)
	if err == nil && info.IsDir() {
		dir, err := filepath.Abs(req.What)
		if err != nil {
			return place{}, err
		}
		p := place{name: cmp.Or(req.Name, filepath.Base(dir)), source: dir, dir: dir}
		if k, ok := findKnown(p.name); ok { // it was carried here
			p.note = k.note()
		}
		return p, nil
	}
	if owner, name, ok := strings.Cut(req.What, "/"); ok && checkName(owner) == nil && checkName(name) == nil && err != nil {
		return repository(name, req.What, nil)
	}
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	return place{}, fmt.Errorf("%q is no folder, no URL, and no known name (%s): %w", req.What, strings.Join(names, ", "), assay.ErrNotFound)
}

// checkURL refuses what no file can be fetched from.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is no URL of a folder, as https://HOST/PATH: %w", s, assay.ErrInvalid)
	}
	if u.User != nil {
		return fmt.Errorf("%s: a URL with a password in it would be kept: %w", u.Redacted(), assay.ErrInvalid)
	}
	return nil
}

// lockStaging returns the folder in which the model is put together, for this
// process alone, and what releases it.
func (f *Folder) lockStaging(name string) (string, func(), error) {
	dir := filepath.Join(f.Dir, stagingDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, wrap(err)
	}
	lock := flock.New(filepath.Join(dir, name+".lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return "", nil, wrap(err)
	}
	if !locked {
		return "", nil, fmt.Errorf("model %s is being pulled: %w", name, assay.ErrLocked)
	}
	release := func() { lock.Unlock() } // the file stays: two processes must not lock two of one name
	return filepath.Join(dir, name), release, nil
}

// stage brings all files into the staging folder, and opens the encoder there.
func (f *Folder) stage(ctx context.Context, req PullRequest, from place, staging string) (Installed, error) {
	sums, err := f.bring(ctx, req, from, staging)
	if err != nil {
		return Installed{}, err
	}
	if req.SHA256 != "" {
		sums[weightsFile] = req.SHA256
	}
	files, err := sumFolder(ctx, staging)
	if err != nil {
		return Installed{}, err
	}
	m := Installed{Name: from.name, Source: from.source, Files: files, Installed: f.now()}
	if err := compareSums(files, sums); err != nil {
		// What was fetched is worth nothing: the next pull begins anew.
		return Installed{}, errors.Join(err, wrap(os.RemoveAll(staging)))
	}
	if m.Facts, err = f.Open(ctx, staging, from.name, m.WeightsSHA256()); err != nil {
		if ctx.Err() == nil {
			err = errors.Join(err, wrap(os.RemoveAll(staging)))
		}
		return Installed{}, err
	}
	return m, nil
}

// compareSums refuses files that are not what the sums say, and the lack of one
// that has a sum.
func compareSums(files []File, sums map[string]string) error {
	for _, name := range append([]string{configFile, weightsFile}, describing...) {
		want, listed := sums[name]
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
		switch {
		case !listed:
		case i < 0:
			return fmt.Errorf("%s is not there, but has a sum in %s: %w", name, sumsFile, assay.ErrDamaged)
		case files[i].SHA256 != want:
			return fmt.Errorf("%s has the SHA-256 %s, want %s: %w", name, files[i].SHA256, want, assay.ErrDamaged)
		}
	}
	return nil
}

func (f *Folder) now() time.Time {
	if f.Now == nil {
		return time.Now().UTC()
	}
	return f.Now().UTC()
}

// bring fetches or copies the files of a model: what describes it first, so that
// the large file is not fetched in vain. It returns the sums that the source
// knows.
func (f *Folder) bring(ctx context.Context, req PullRequest, from place, staging string) (map[string]string, error) {
	get := f.copier(from.dir, staging, req.Progress)
	if len(from.bases) > 0 {
		base, err := f.findBase(ctx, from.bases, staging)
		if err != nil {
			return nil, err
		}
		get = f.downloader(base, staging, req.Progress)
	}
	sums := map[string]string{}
	if _, err := get(ctx, sumsFile, maxOther); err == nil {
		data, err := os.ReadFile(filepath.Join(staging, sumsFile))
		if err != nil {
			return nil, wrap(err)
		}
		sums = parseSums(data)
	} else if !errors.Is(err, assay.ErrNotFound) {
		return nil, err
	}
	if _, err := get(ctx, configFile, maxOther); err != nil {
		return nil, err
	}
	for _, name := range describing {
		if _, err := get(ctx, name, maxOther); err != nil && !errors.Is(err, assay.ErrNotFound) {
			return nil, err
		}
	}
	if err := f.complete(from, staging); err != nil {
		return nil, err
	}
	linked, err := get(ctx, weightsFile, maxWeights)
	if errors.Is(err, assay.ErrNotFound) {
		return nil, fmt.Errorf("%w: weights in other formats, as pytorch_model.bin, are not read", err)
	}
	if linked != "" && sums[weightsFile] == "" {
		sums[weightsFile] = linked
	}
	return sums, err
}

// complete sees that what was brought describes a model, and adds what is known
// of its use.
func (f *Folder) complete(from place, staging string) error {
	data, err := os.ReadFile(filepath.Join(staging, configFile))
	if err != nil {
		return wrap(err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("%s is not JSON: %w: %w", configFile, err, assay.ErrInvalid)
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(staging, name))
		return err == nil
	}
	if !there(tokenizerFile) && !there(vocabularyFile) {
		return fmt.Errorf("there is neither %s nor %s: %w", tokenizerFile, vocabularyFile, assay.ErrNotFound)
	}
	if from.note != nil && !there(settingsFile) {
		if err := writeFile(filepath.Join(staging, settingsFile), from.note); err != nil {
			return err
		}
	}
	if f.Check == nil {
		return nil
	}
	if err := f.Check(staging); err != nil {
		return errors.Join(err, wrap(os.RemoveAll(staging)))
	}
	return nil
}

// A getter brings one file into the staging folder. A file that the source does
// not have is assay.ErrNotFound, and is not left over from another time. It
// returns the sum that the source says the file has, or "".
type getter func(ctx context.Context, name string, limit int64) (linked string, err error)

// findBase returns the first of the URLs under which there is a config.json.
func (f *Folder) findBase(ctx context.Context, bases []string, staging string) (string, error) {
	var firstErr error
	for _, base := range bases {
		_, err := f.downloader(base, staging, func(Progress) {})(ctx, configFile, maxOther)
		if err == nil {
			return base, nil
		}
		firstErr = cmp.Or(firstErr, err)
		if !errors.Is(err, assay.ErrNotFound) {
			return "", err
		}
	}
	return "", firstErr
}

// downloader gets files under a URL.
func (f *Folder) downloader(base, staging string, progress func(Progress)) getter {
	return func(ctx context.Context, name string, limit int64) (string, error) {
		path := filepath.Join(staging, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", wrap(err)
		}
		// A file that came whole before something else broke off is asked after, not
		// fetched again.
		if err := os.Rename(path, partPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", wrap(err)
		}
		return f.fetch.get(ctx, wanted{url: base + "/" + name, path: path, limit: limit, progress: func(done, total int64, problem error) {
			progress(Progress{File: name, Done: done, Total: total, Problem: problem})
		}})
	}
}

// copier gets files from a local folder.
func (f *Folder) copier(dir, staging string, progress func(Progress)) getter {
	return func(ctx context.Context, name string, limit int64) (string, error) {
		to := filepath.Join(staging, filepath.FromSlash(name))
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", wrap(err)
		}
		return "", copyFile(ctx, filepath.Join(dir, filepath.FromSlash(name)), to, limit, func(done, total int64) {
			progress(Progress{File: name, Done: done, Total: total})
		})
	}
}

// copyFile copies a file; one that is not there is assay.ErrNotFound.
func copyFile(ctx context.Context, from, to string, limit int64, progress func(done, total int64)) error {
	info, err := os.Stat(from) // before it is opened: a pipe would wait for its writer
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not there: %w", from, assay.ErrNotFound)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return fmt.Errorf("%s is no file, or has more than %d bytes: %w", from, limit, assay.ErrInvalid)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return wrap(err)
	}
	out, err := os.Create(to)
	if err != nil {
		return wrap(err)
	}
	counted := &countingWriter{w: out, total: info.Size(), progress: progress}
	_, err = io.Copy(counted, contextReader{ctx, in})
	if err == nil {
		err = out.Sync()
	}
	return wrap(errors.Join(err, out.Close()))
}

// A countingWriter tells how much was written.
type countingWriter struct {
	w           io.Writer
	done, total int64
	progress    func(done, total int64)
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.done += int64(n)
	c.progress(c.done, c.total)
	return n, err
}

// install gives the staged model its record and its place.
func (f *Folder) install(ctx context.Context, m Installed, staging string, replace bool) (Installed, error) {
	there, err := f.read(m.Name)
	switch {
	case err == nil && slices.Equal(there.Files, m.Files):
		if f.Verify(ctx, there) == nil {
			return there, wrap(os.RemoveAll(staging))
		} // else it is mended
	case err == nil && !replace:
		return Installed{}, fmt.Errorf("another model %s is installed, %s from %s: %w", m.Name, there.Model, there.Source, assay.ErrInvalid)
	case err != nil && !errors.Is(err, assay.ErrNotFound) && !errors.Is(err, assay.ErrDamaged):
		return Installed{}, err
	}
	if err := tidy(staging, m.Files); err != nil {
		return Installed{}, err
	}
	record, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Installed{}, err
	}
	if err := writeFile(filepath.Join(staging, recordFile), append(record, '\n')); err != nil {
		return Installed{}, err
	}
	old := staging + ".old"
	if err := os.RemoveAll(old); err != nil {
		return Installed{}, wrap(err)
	}
	if err := os.Rename(f.Path(m.Name), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Installed{}, wrap(err)
	}
	if err := os.Rename(staging, f.Path(m.Name)); err != nil {
		return Installed{}, wrap(err)
	}
	return m, wrap(os.RemoveAll(old))
}

// tidy removes what is in the staging folder besides the model's files: notes on
// parts, and folders that nothing came for.
func tidy(staging string, files []File) error {
	return filepath.WalkDir(staging, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return wrap(err)
		}
		if d.IsDir() {
			if there, err := os.ReadDir(file); err != nil || len(there) > 0 || file == staging {
				return wrap(err)
			}
			return cmp.Or(wrap(os.Remove(file)), fs.SkipDir)
		}
		name, err := filepath.Rel(staging, file)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(files, func(f File) bool { return f.Name == filepath.ToSlash(name) }) {
			return nil
		}
		return wrap(os.Remove(file))
	})
}
