package index

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/edsrzf/mmap-go"

	"github.com/assay-rag/assay"
)

// A file is one file of the index, either mapped into memory or held in memory only. Its bytes
// never change and are valid while it is held. Each snapshot holds its files, and so does the code
// that builds a snapshot.
type file struct {
	name  string // in the folder; empty: only in memory
	bytes []byte

	folder  *folder
	mapping mmap.MMap
	holders int  // guarded by folder.mu, like the fields below
	pending bool // made by a fileSink that is still open
	removed bool // remove from the folder on the last release

	segmentOnce, vectorsOnce sync.Once
	opened                   *segment
	openedVectors            *vectors
	openError                error
}

// segment returns the segment in f, the same one on each call.
func (f *file) segment() (*segment, error) {
	f.segmentOnce.Do(func() { f.opened, f.openError = openSegment(f) })
	return f.opened, f.openError
}

// vectors returns the vectors in f, the same ones on each call.
func (f *file) vectors(chunks uint32) (*vectors, error) {
	f.vectorsOnce.Do(func() { f.openedVectors, f.openError = openVectorsFile(f.bytes, chunks) })
	return f.openedVectors, f.openError
}

// onDisk reports whether f exists in its folder. It is false for a file that is only in memory or
// that has been deleted, for example with the whole folder.
func (f *file) onDisk() bool {
	if f.folder == nil {
		return false
	}
	_, err := os.Stat(f.folder.path(f.name))
	return !errors.Is(err, fs.ErrNotExist)
}

// hold keeps f's bytes valid until release.
func (f *file) hold() {
	if f.folder == nil {
		return
	}
	f.folder.mu.Lock()
	defer f.folder.mu.Unlock()
	f.holders++
}

// release undoes one hold. The last release unmaps the file.
func (f *file) release() {
	if f.folder == nil {
		return
	}
	f.folder.mu.Lock()
	defer f.folder.mu.Unlock()
	if f.holders--; f.holders > 0 {
		return
	}
	f.bytes = nil
	if f.mapping != nil {
		_ = f.mapping.Unmap() // fails only if nothing is mapped
	}
	delete(f.folder.mapped, f.name)
	if f.removed {
		_ = os.Remove(f.folder.path(f.name)) // on failure the next sweep removes it
	}
}

// A folder is the directory of an index.
type folder struct {
	dir string

	mu      sync.Mutex
	mapped  map[string]*file    // by name
	writing map[string]struct{} // names of files being written
}

// Suffixes of the index's own files. Files with these suffixes are removed if the manifest does not
// name them.
const (
	segmentSuffix   = ".segment"
	vectorsSuffix   = ".vectors"
	temporarySuffix = ".tmp"
)

func newFolder(dir string) *folder {
	return &folder{dir: dir, mapped: make(map[string]*file), writing: make(map[string]struct{})}
}

func (d *folder) path(name string) string { return filepath.Join(d.dir, name) }

// open maps the named file and holds it for the caller. A file that is already mapped is shared.
func (d *folder) open(name string) (*file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.mapped[name]; f != nil {
		f.holders++
		return f, nil
	}
	opened, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, err
	}
	f := &file{name: name, folder: d, holders: 1}
	if info.Size() == 0 || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is empty or no file: %w", name, assay.ErrDamaged) // such a file cannot be mapped
	}
	if int64(int(info.Size())) != info.Size() {
		return nil, fmt.Errorf("%s has %d bytes, more than this machine can map: %w", name, info.Size(), assay.ErrInvalid)
	}
	if f.mapping, err = mmap.MapRegion(opened, int(info.Size()), mmap.RDONLY, 0, 0); err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	f.bytes = f.mapping
	d.mapped[name] = f
	return f, nil
}

// fileSink is the place where one update or merge creates its files: a folder, or memory if folder
// is nil. It holds the files until it is closed.
type fileSink struct {
	folder *folder

	mu   sync.Mutex
	made []*file
}

// make creates a file with the output of write. The file appears complete or not at all.
func (s *fileSink) make(suffix string, write func(io.Writer) error) (*file, error) {
	if s.folder == nil {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		return &file{bytes: b.Bytes()}, nil
	}
	var random [12]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	name := hex.EncodeToString(random[:]) + suffix
	s.folder.setWriting(name, true)
	defer s.folder.setWriting(name, false)
	if err := s.folder.write(name, write); err != nil {
		return nil, writeError(err)
	}
	f, err := s.folder.open(name)
	if err != nil {
		return nil, err
	}
	s.folder.mu.Lock()
	f.pending = true
	s.folder.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, f)
	return f, nil
}

// close releases the files. It removes those that no snapshot holds by then.
func (s *fileSink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.made {
		f.folder.mu.Lock()
		f.pending, f.removed = false, f.holders == 1
		f.folder.mu.Unlock()
		f.release()
	}
	s.made = nil
}

// write creates or replaces the named file in the folder. The file appears complete or not at all,
// and is durable after sync.
func (d *folder) write(name string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	temporary := name + temporarySuffix
	d.setWriting(temporary, true)
	defer d.setWriting(temporary, false)
	f, err := os.OpenFile(d.path(temporary), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), d.path(name))
}

// setWriting records whether the named file is being written.
func (d *folder) setWriting(name string, writing bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if writing {
		d.writing[name] = struct{}{}
	} else {
		delete(d.writing, name)
	}
}

// sync makes renames in the folder durable on systems that can sync a folder.
func (d *folder) sync() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// removeOthers removes the index's own files that are not in names and do not belong to an open
// fileSink. Mapped files are removed on their last release. Files that cannot be removed, for
// example because another process has them open, are left for the next call.
func (d *folder) removeOthers(names []string) error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		name := e.Name()
		own := slices.ContainsFunc([]string{segmentSuffix, vectorsSuffix, temporarySuffix}, func(s string) bool { return strings.HasSuffix(name, s) })
		_, writing := d.writing[name]
		if !own || writing || slices.Contains(names, name) {
			continue
		}
		if f := d.mapped[name]; f != nil {
			f.removed = !f.pending
			continue
		}
		_ = os.Remove(d.path(name))
	}
	return nil
}

// writeError wraps err with the error kind that callers check for.
func writeError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", assay.ErrFull, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", assay.ErrReadOnly, err)
	}
	return err
}
