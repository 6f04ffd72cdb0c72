package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A location says where the documents and runs of a command are: in a data directory or in a database.
type location struct {
	// dir is the data directory. With a database it is the folder for what this machine derives from it,
	// such as the index.
	dir     string
	remote  config.Store   // zero: a data directory with an index of its own
	indexes *sharedIndexes // nil: the index is own
}

// localDir returns the location of a data directory.
func localDir(dir string) location { return location{dir: dir} }

// String names the location for people. It contains no password.
func (l location) String() string {
	if l.remote.Remote() {
		return l.remote.URL
	}
	return l.dir
}

// missing reports whether the data directory does not exist. A database exists.
func (l location) missing() bool {
	if l.remote.Remote() {
		return false
	}
	_, err := os.Stat(l.dir)
	return errors.Is(err, fs.ErrNotExist)
}

// openStore opens the store at the location. The caller closes it.
func (l location) openStore(ctx context.Context) (store.Store, error) {
	if l.remote.Remote() {
		return l.openPostgres(ctx)
	}
	s, err := sqlite.Open(ctx, l.dir)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// use makes an engine work on the location.
func (l location) use(c *engine.Config) {
	c.Dir = l.dir
	if l.remote.Remote() {
		c.Dir, c.OpenStore = "", l.openStore
	}
	if l.shared() {
		c.OpenIndex = func(ctx context.Context, t store.Tenant) (engine.Index, error) {
			x, err := l.indexes.of(ctx, l.remote)
			if err != nil {
				return nil, err
			}
			return x.Open(ctx, t.Content())
		}
		c.RemoveIndex = l.removeIndex
	}
}

// removeIndex removes the shared index of the content with an identity.
func (l location) removeIndex(ctx context.Context, identity string) error {
	x, err := l.indexes.of(ctx, l.remote)
	if err != nil {
		return err
	}
	return x.Remove(ctx, identity)
}

// shared reports whether the indexes are shared with other processes.
func (l location) shared() bool {
	return l.remote.Index == config.PGVector || l.remote.Index == config.OpenSearch
}

// needsFiles returns an error for a command that works on the files of a data directory.
func (l location) needsFiles(command, instead string) error {
	if !l.remote.Remote() {
		return nil
	}
	return hinted{usagef("%s works on the files of a data directory, and this store is a database, %s", command, l), instead}
}

// location returns where the data of the command is. --docs names a data directory of its own.
func (a *app) location(ctx context.Context) (location, error) {
	dir, err := a.dataDir(ctx)
	if err != nil {
		return location{}, err
	}
	if len(a.docs) > 0 {
		if a.store != "" && a.store != config.Local {
			return location{}, usagef("--docs and --store exclude each other")
		}
		return localDir(dir), nil
	}
	remote, err := a.storeSettings()
	if err != nil {
		return localDir(dir), err
	}
	at := location{dir: dir, remote: remote}
	if remote.Remote() {
		at = remoteAt(dir, remote)
	}
	if at.shared() {
		if a.indexes == nil {
			a.indexes = &sharedIndexes{}
		}
		at.indexes = a.indexes
	}
	return at, nil
}

// remoteAt returns the location of a database. Its index and lease files are in a folder of dir.
func remoteAt(dir string, remote config.Store) location {
	sum := sha256.Sum256([]byte(remote.URL))
	return location{dir: filepath.Join(dir, "derived", hex.EncodeToString(sum[:8])), remote: remote}
}

// storeSettings returns the settings of the store, the index and the queue.
func (a *app) storeSettings() (config.Store, error) {
	s, err := config.LoadStore(a.sources(), config.StoreFlags{Store: a.store, Index: a.index, Queue: a.queue})
	if some := !s.Password.Empty() || !s.QueuePassword.Empty() || !s.Cluster.Password.Empty(); err == nil && some {
		a.hide(s.Secrets)
	}
	return s, err
}

// sameLocation returns the flags that name the same data again.
func (a *app) sameLocation() string {
	flags := ""
	if a.store != "" {
		flags += " --store " + shellQuote(a.store)
	}
	if a.data != "" {
		flags += " --data " + shellQuote(a.data)
	}
	return flags
}

// noDirectory returns an error for a data directory that does not exist and a command that needs it.
func noDirectory(at location, what, hint string) error {
	return hinted{fmt.Errorf("no %s yet in %s", what, cmp.Or(at.String(), defaultData)), hint}
}
