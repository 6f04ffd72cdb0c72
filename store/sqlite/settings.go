package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/durable"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/internal/relational"
)

// Lock implements store.Tenant. The lock is the operating system's, on the file NAME.lock.
func (t *Tenant) Lock(ctx context.Context, name string) (io.Closer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := relational.CheckFileName(name); err != nil {
		return nil, err
	}
	file := name + ".lock"
	if file == writerLockName {
		return nil, invalid("the lock %q is the writer's", name)
	}
	if err := t.CheckWritable(); err != nil {
		return nil, err
	}
	path := filepath.Join(t.dir, file)
	f := flock.New(path)
	ok, err := f.TryLock()
	if err != nil {
		return nil, wrap(err, "lock %s", path)
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s is held", assay.ErrLocked, file)
	}
	return f, nil
}

// Setting implements store.Tenant. A setting is the file NAME.json.
func (t *Tenant) Setting(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := relational.CheckFileName(name); err != nil {
		return nil, err
	}
	value, err := os.ReadFile(t.settingPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return value, wrap(err, "read the setting %s", name)
}

// SetSetting implements store.Tenant.
func (t *Tenant) SetSetting(ctx context.Context, name string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := relational.CheckFileName(name); err != nil {
		return err
	}
	if len(value) > store.MaxSetting {
		return invalid("the setting %s has %d bytes, want at most %d", name, len(value), store.MaxSetting)
	}
	if err := t.CheckWritable(); err != nil {
		return err
	}
	path := t.settingPath(name)
	if len(value) > 0 {
		return wrap(durable.Write(path, 0o600, func(w io.Writer) error { _, err := w.Write(value); return err }), "write the setting %s", name)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wrap(err, "remove the setting %s", name)
	}
	return wrap(syncDirectory(t.dir), "remove the setting %s", name)
}

func (t *Tenant) settingPath(name string) string { return filepath.Join(t.dir, name+".json") }
