// Package durable writes files atomically. If the process or the machine stops, a reader sees
// either the old content or all of the new.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write atomically writes a file with the given mode, replacing any existing one. It returns when
// both the content and the name are durable. On an error the existing file is unchanged.
func Write(file string, mode fs.FileMode, write func(io.Writer) error) error {
	dir := filepath.Dir(file)
	t, err := os.CreateTemp(dir, filepath.Base(file)+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name()) // without effect after the rename
	if err = write(t); err == nil {
		err = t.Sync()
	}
	if err = errors.Join(err, t.Chmod(mode), t.Close()); err != nil {
		return err
	}
	if err := os.Rename(t.Name(), file); err != nil {
		return err
	}
	return syncFolder(dir)
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
