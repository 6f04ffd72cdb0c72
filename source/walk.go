package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// DefaultMaxFileBytes is the default limit of a file's size: 32 MiB.
const DefaultMaxFileBytes = 32 << 20

// Options configures a walk. The zero value selects the defaults.
type Options struct {
	// Exclude holds patterns in .gitignore's syntax, relative to each root. The last match takes
	// precedence over all ignore files. The patterns do not apply to a root itself.
	Exclude []string

	// ExcludePaths are files and folders that are never read, such as the data directory in use.
	// Symbolic links in them are resolved.
	ExcludePaths []string

	// Hidden includes files and folders whose name starts with a dot.
	Hidden bool

	// MaxFileBytes is the size above which a file is skipped; 0 means DefaultMaxFileBytes.
	MaxFileBytes int64

	// Stdin is read for the root "-"; nil means os.Stdin.
	Stdin io.Reader

	// StdinName is the name of standard input. Its URI is "stdin:" + StdinName, and its extension
	// is a hint for the format. Empty means "-".
	StdinName string

	// Upload, if set, is the document of the root "-" instead of standard input.
	Upload *Upload
}

// An Upload is a document that a caller holds in memory.
type Upload struct {
	URI     string // see UploadURI, or the URL that it was fetched from
	Name    string // slash path whose last part is a hint for the format
	Type    string // media type, as a hint for the format; empty: not known
	Data    []byte
	Sidecar Sidecar
}

// UploadURI returns the URI of a document that was uploaded under a name.
func UploadURI(name string) string { return FromUpload + ":" + EscapeName(name) }

// Walk yields the files below the roots: roots in the order given, entries by name, and files
// reached only by a link after the rest of their root. Each file is yielded once, for the first
// root that reaches it.
//
// A *Skip (one file or folder was skipped) or a *RootError (a root was skipped) does not end the
// walk. Any other error is ctx's and the last value yielded. Walk does not open the files;
// File.Read does.
func Walk(ctx context.Context, roots []string, opts Options) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		w := &walk{ctx: ctx, opts: opts, yield: yield, seen: map[string]string{}, excluded: map[string]bool{}, named: map[string]bool{}}
		w.opts.MaxFileBytes = cmp.Or(opts.MaxFileBytes, DefaultMaxFileBytes)
		for _, line := range opts.Exclude {
			if p, ok := parsePattern(line); ok {
				w.patterns = append(w.patterns, p)
			}
		}
		for _, path := range opts.ExcludePaths {
			if real, err := realPath(path); err == nil {
				w.excluded[real] = true
			}
		}
		for _, root := range roots {
			if abs, err := filepath.Abs(root); err == nil {
				w.named[abs] = true
			}
		}
		for _, root := range roots {
			if !w.root(root) {
				return
			}
		}
	}
}

// walk is the state of one Walk. Its methods return false if the consumer has stopped or ctx has
// ended.
type walk struct {
	ctx      context.Context
	opts     Options
	patterns []pattern
	excluded map[string]bool // real paths of ExcludePaths
	named    map[string]bool // absolute paths of the roots
	yield    func(File, error) bool
	seen     map[string]string // real path of each file found → URI
	siblings siblings          // of the last root that is a file
}

func (w *walk) root(root string) bool {
	if w.stopped() {
		return false
	}
	if root == "-" {
		return w.stdin()
	}
	if root == "" {
		return w.rootError(root, "", "the path is empty", fs.ErrInvalid)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return w.rootError(root, "", err.Error(), err)
	}
	uri := URI(abs)
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return w.rootFailed(root, uri, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return w.rootFailed(root, uri, err)
	}
	switch {
	case info.IsDir():
		return w.folderRoot(root, uri, real)
	case info.Mode().IsRegular():
		f, err := os.OpenFile(real, os.O_RDONLY|openFlag, 0)
		if err != nil {
			return w.rootFailed(root, uri, err)
		}
		f.Close()
		return w.fileRoot(abs, uri, real, info)
	}
	return w.rootError(root, uri, "is "+kindOf(info.Mode())+", neither a file nor a folder", errSpecial)
}

// stopped reports whether ctx has ended. If so, it yields ctx's error.
func (w *walk) stopped() bool {
	if err := w.ctx.Err(); err != nil {
		w.yield(File{}, err)
		return true
	}
	return false
}

func (w *walk) rootFailed(root, uri string, err error) bool {
	detail := plainCause(err).Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		detail = "no such file or folder"
	case errors.Is(err, fs.ErrPermission):
		detail = "may not be read: permission denied"
	}
	return w.rootError(root, uri, detail, plainCause(err))
}

func (w *walk) rootError(root, uri, detail string, err error) bool {
	return w.yield(File{}, &RootError{Root: root, URI: uri, Detail: detail, Err: err})
}

func (w *walk) skip(uri string, r Reason, detail string, err error) bool {
	return w.yield(File{}, &Skip{URI: uri, Reason: r, Detail: detail, Err: err})
}

func (w *walk) stdin() bool {
	if u := w.opts.Upload; u != nil {
		return w.yield(File{URI: u.URI, Root: u.URI, Rel: u.Name, Source: FromUpload, SizeBytes: int64(len(u.Data)), upload: u, limit: w.opts.MaxFileBytes}, nil)
	}
	name, uri := EscapeName(cmp.Or(w.opts.StdinName, "-")), StdinURI(w.opts.StdinName)
	if _, ok := w.seen[uri]; ok {
		return true
	}
	w.seen[uri] = uri
	in := w.opts.Stdin
	if in == nil {
		in = os.Stdin
	}
	return w.yield(File{URI: uri, Root: uri, Rel: name, Source: FromStdin, stdin: in, limit: w.opts.MaxFileBytes}, nil)
}

// StdinURI returns the URI of standard input with a name; empty: "-".
func StdinURI(name string) string { return FromStdin + ":" + EscapeName(cmp.Or(name, "-")) }

// fileRoot yields a file that is a root itself, even if patterns exclude it.
func (w *walk) fileRoot(abs, uri, real string, info fs.FileInfo) bool {
	if doc, ok := documentOf(abs); ok {
		if w.named[doc] { // as with a shell's "*"
			return true
		}
		return w.skip(uri, SidecarOrphan, "is a sidecar by its name, and its document is not named with it", nil)
	}
	sidecars := w.siblings.sidecars(abs)
	if len(sidecars) == 0 && real != abs {
		sidecars = w.siblings.sidecars(real)
	}
	return w.found(real, info, File{
		URI: uri, Root: uri, Rel: EscapeName(filepath.Base(abs)),
		at:       place{filepath.Dir(real), filepath.Base(real)},
		sidecars: sidecars,
	})
}

// found yields a regular file unless it was yielded before or is too large. It completes f from
// info.
func (w *walk) found(real string, info fs.FileInfo, f File) bool {
	if uri, ok := w.seen[real]; ok {
		return uri == f.URI || w.skip(f.URI, SameFile, "is the same file as "+uri, nil)
	}
	w.seen[real] = f.URI
	f.Source = FromFile
	f.SizeBytes = info.Size()
	f.Modified = modified(info)
	f.limit = w.opts.MaxFileBytes
	if f.SizeBytes > f.limit {
		return w.yield(File{}, f.skip(sizeError{f.SizeBytes, f.limit}))
	}
	return w.yield(f, nil)
}

// siblings finds the sidecars beside a file that is itself a root. It caches one folder, because a
// shell's "*.md" makes every file of a folder a root.
type siblings struct {
	folder string
	names  map[string][]string // document name → names of its sidecars
}

func (s *siblings) sidecars(path string) []place {
	folder, name := filepath.Split(path)
	if s.names == nil || s.folder != folder {
		s.folder, s.names = folder, map[string][]string{}
		entries, err := os.ReadDir(folder)
		for _, e := range entries {
			if doc, ok := documentOf(e.Name()); ok {
				s.names[doc] = append(s.names[doc], e.Name())
			}
		}
		if err != nil { // the folder may be entered but not listed
			if _, err := os.Lstat(path + SidecarSuffix); err == nil {
				s.names[name] = []string{name + SidecarSuffix}
			}
			places := placesOf(folder, "", s.names[name])
			s.names = nil
			return places
		}
	}
	return placesOf(folder, "", s.names[name])
}

// placesOf returns the places of sidecars from their names and the folder's path below root.
func placesOf(root, folder string, names []string) []place {
	var ps []place
	for _, n := range names {
		ps = append(ps, place{root, filepath.Join(folder, n)})
	}
	return ps
}

// kindOf returns the kind of an entry that is neither a regular file nor a folder.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return fmt.Sprintf("a special file (%v)", m.Type())
}

func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return abs, nil
	}
	return real, err
}
