package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
)

// stagingAge is the least age of the staging folder of a dead process before it is removed, which
// exceeds the time between creating and locking it.
const stagingAge = time.Minute

// A staging folder is filled beside the place to which it is renamed when it is complete. It is
// locked while its process lives.
type staging struct {
	path string
	lock *flock.Flock
}

// newStaging creates a folder in parent whose name begins with a dot and prefix, and removes those
// that dead processes left.
func newStaging(parent, prefix string) (*staging, error) {
	pattern := "." + prefix + ".unfinished-"
	removeDead(parent, pattern)
	path, err := os.MkdirTemp(parent, pattern+"*")
	if err != nil {
		return nil, err
	}
	s := &staging{path: path, lock: flock.New(path+".lock", flock.SetPermissions(0o600))}
	ok, err := s.lock.TryLock()
	if err == nil && !ok {
		err = errors.New("a new folder is locked already")
	}
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// removeDead removes the staging folders of dead processes. One that cannot be removed is harmless.
func removeDead(parent, pattern string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), pattern) || time.Since(info.ModTime()) < stagingAge {
			continue
		}
		path := filepath.Join(parent, e.Name())
		lock := flock.New(path + ".lock")
		if ok, err := lock.TryLock(); err == nil && ok {
			_ = os.RemoveAll(path)
			_ = lock.Unlock()
			_ = os.Remove(lock.Path())
		}
	}
}

// commit renames the folder. The target must not exist, or be an empty folder.
func (s *staging) commit(target string) error {
	if err := checkAbsent(target); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(s.path, target); err != nil {
		return err
	}
	return errors.Join(s.release(), syncFolder(filepath.Dir(target)))
}

// remove removes the folder, if it was not renamed.
func (s *staging) remove() error { return errors.Join(os.RemoveAll(s.path), s.release()) }

// release removes the lock. It has no effect the second time.
func (s *staging) release() error {
	err := s.lock.Unlock()
	if removeErr := os.Remove(s.lock.Path()); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}

// checkAbsent returns an error unless nothing is at path but an empty folder.
func checkAbsent(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s exists and is no folder: %w", path, assay.ErrInvalid)
	}
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: %w", path, assay.ErrInvalid)
	}
	return err
}

// syncTree makes the names in a folder and below durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncFolder(path)
	})
}

// syncFolder makes the names in a folder durable if the system supports it.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
