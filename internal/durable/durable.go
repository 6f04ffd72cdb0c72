// Package durable writes files whole or not at all: whoever reads one sees what was there
// before, or all of what is new, whatever ends the process or the machine in between.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write writes a file of that mode, which takes the place of one that is there. It returns
// when both the bytes and the name are durable; on an error what was there before is as it
// was.
func Write(file string, mode fs.FileMode, write func(io.Writer) error) error {
	dir := filepath.Dir(file)
	t, err := os.CreateTemp(dir, filepath.Base(file)+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name()) // it is gone when all went well
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

// syncFolder makes the names in a folder durable, where that can be asked for.
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
