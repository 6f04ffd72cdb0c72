// Package watch notices changes of files below folders. It is a hint only: events may be lost, so
// callers also look at the folders at intervals.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quiet   = 300 * time.Millisecond // a change is reported after this long without another
	longest = 5 * time.Second        // and at the latest after this long
	renew   = 15 * time.Second       // roots that are missing are looked for at this interval
)

// maxFolders bounds the watched folders of one call; systems have a limit too. Changes in the
// others are found by the caller's next look.
const maxFolders = 8192

// Folders calls changed once when the watch has begun, and then after files at or below the roots
// have changed, once for a burst of changes. It returns nil when ctx ends. Roots and folders may be removed and created again
// meanwhile. Folders whose names start with a dot are not watched.
func Folders(ctx context.Context, roots []string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer w.Close()
	f := &watcher{w: w, roots: roots, watched: map[string]bool{}}
	f.addRoots()
	return f.run(ctx, changed)
}

type watcher struct {
	w       *fsnotify.Watcher
	roots   []string
	watched map[string]bool // paths
}

func (f *watcher) run(ctx context.Context, changed func()) error {
	ticker := time.NewTicker(renew)
	defer ticker.Stop()
	settled := time.NewTimer(0)
	<-settled.C
	var first time.Time // of the burst; zero: none
	note := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		settled.Reset(min(quiet, max(0, longest-now.Sub(first))))
	}
	note() // what changed before the watch began
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-f.w.Events:
			if !ok {
				return errors.New("watch: the watcher has ended")
			}
			if e.Op == fsnotify.Chmod {
				continue
			}
			f.follow(e)
			note()
		case err, ok := <-f.w.Errors:
			if !ok {
				return errors.New("watch: the watcher has ended")
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				note() // events were lost
			}
		case <-ticker.C:
			if f.addRoots() {
				note()
			}
		case <-settled.C:
			first = time.Time{}
			changed()
		}
	}
}

// follow watches a folder that was created and forgets one that is gone.
func (f *watcher) follow(e fsnotify.Event) {
	switch {
	case e.Has(fsnotify.Remove), e.Has(fsnotify.Rename):
		delete(f.watched, e.Name)
	case e.Has(fsnotify.Create):
		f.add(e.Name)
	}
}

// addRoots watches the roots that are not watched and reports whether there were any.
func (f *watcher) addRoots() bool {
	added := false
	for _, root := range f.roots {
		if !f.watched[root] && f.add(root) {
			added = true
		}
	}
	return added
}

// add watches path and the folders below it, and reports whether path is watched. It watches a file
// only if it is a root.
func (f *watcher) add(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return f.isRoot(path) && f.watch(path)
	}
	// An entry that cannot be read is left to the caller's next look.
	_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && d != nil && d.IsDir():
			return filepath.SkipDir
		case err != nil:
			return nil
		case d.IsDir() && at != path && d.Name()[0] == '.':
			return filepath.SkipDir
		case d.IsDir() && len(f.watched) >= maxFolders:
			return filepath.SkipAll
		case d.IsDir():
			f.watch(at)
		}
		return nil
	})
	return f.watched[path]
}

func (f *watcher) isRoot(path string) bool {
	for _, root := range f.roots {
		if root == path {
			return true
		}
	}
	return false
}

func (f *watcher) watch(path string) bool {
	if f.w.Add(path) != nil {
		return false
	}
	f.watched[path] = true
	return true
}
