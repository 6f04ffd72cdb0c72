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

// A PullRequest describes a model to install.
type PullRequest struct {
	// What is a known name, OWNER/REPOSITORY on the mirror, the URL of a folder, or a local folder.
	What string

	// Name is the name to install it under; "": that of the model or folder.
	Name string

	// Mirror is the base URL for names and repositories; "": DefaultMirror.
	Mirror string

	// SHA256 is the required sum of the weights; "": the sum published by the source, if there is
	// one.
	SHA256 string

	// Replace allows replacing an installed model of the same name with other contents.
	Replace bool

	// Progress is called with the progress of each file. It may be nil.
	Progress func(Progress)
}

// A Progress is the progress of one file.
type Progress struct {
	File    string
	Done    int64
	Total   int64 // -1 if unknown
	Problem error // error of the last try; another try follows
}

// The largest accepted sizes of weights and of other files.
const (
	maxWeights = 8 << 30
	maxOther   = 64 << 20
)

// stagingDir contains unfinished pulls, one folder per model, beside the models. Its name is not a
// valid model name.
const stagingDir = ".pulling"

// Pull installs a model. It downloads or copies the files, checks their sums if they are known,
// opens the encoder, and only then renames the folder. Downloaded data survives an interruption,
// and the next Pull continues with it. A model that is already installed with the same files is
// left unchanged.
//
// Errors are assay.ErrDamaged for weights that do not match their sum, assay.ErrNotFound for a
// missing model, assay.ErrInvalid for a model that is unsupported or would replace another, and
// assay.ErrLocked for a concurrent pull of the same name.
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

// has returns the model if it is installed intact from the same URL, so that no download is needed.
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

// A place is the source of a model.
type place struct {
	name   string
	source string   // for display and for the record
	bases  []string // URLs of the folder, tried in turn; none: use dir
	dir    string
	note   []byte // assay.json for a source without one; may be nil
}

// locate resolves the source of a request.
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
		if k, ok := findKnown(p.name); ok { // it was copied here
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

// checkURL returns assay.ErrInvalid for a URL that is unsuitable for downloads.
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

// lockStaging returns the staging folder of a model, locked for this process, and a function that
// unlocks it.
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
	release := func() { lock.Unlock() } // the file remains: two processes must not lock two files of one name
	return filepath.Join(dir, name), release, nil
}

// stage copies all files into the staging folder and opens the encoder there.
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
		// The downloaded data is invalid, so the next pull starts over.
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

// compareSums returns an error for a file that does not match its sum, or that is listed but
// missing.
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

// bring downloads or copies the files of a model. The large weights come last, in case the others
// are unsuitable. It returns the sums published by the source.
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

// complete checks that the staged files describe a model, and adds its known settings.
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

// A getter copies one file into the staging folder. If the source lacks the file, it returns
// assay.ErrNotFound and removes any older copy. It returns the sum announced by the source, or "".
type getter func(ctx context.Context, name string, limit int64) (linked string, err error)

// findBase returns the first of the URLs that has a config.json.
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

// downloader returns a getter of files under a URL.
func (f *Folder) downloader(base, staging string, progress func(Progress)) getter {
	fetch := f.fetch
	if fetch.client == nil && f.Client != nil {
		fetch.client = f.Client(base)
	}
	return func(ctx context.Context, name string, limit int64) (string, error) {
		path := filepath.Join(staging, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", wrap(err)
		}
		// A file that is already complete is revalidated instead of downloaded again.
		if err := os.Rename(path, partPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", wrap(err)
		}
		return fetch.get(ctx, wanted{url: base + "/" + name, path: path, limit: limit, progress: func(done, total int64, problem error) {
			progress(Progress{File: name, Done: done, Total: total, Problem: problem})
		}})
	}
}

// copier returns a getter of files from a local folder.
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

// copyFile copies a file. If it does not exist, it returns assay.ErrNotFound.
func copyFile(ctx context.Context, from, to string, limit int64, progress func(done, total int64)) error {
	info, err := os.Stat(from) // before opening: opening a pipe would block
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

// A countingWriter reports the number of bytes written.
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

// install writes the record of the staged model and moves it into place.
func (f *Folder) install(ctx context.Context, m Installed, staging string, replace bool) (Installed, error) {
	there, err := f.read(m.Name)
	switch {
	case err == nil && slices.Equal(there.Files, m.Files):
		if f.Verify(ctx, there) == nil {
			return there, wrap(os.RemoveAll(staging))
		} // otherwise it is repaired
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

// tidy removes everything from the staging folder except the model's files, such as origins of
// parts and empty folders.
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
