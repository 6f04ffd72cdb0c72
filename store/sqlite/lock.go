package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
)

// writerLockName is the file whose lock makes a process the content's writer.
// It holds that process's ID, for people; the lock itself is the operating
// system's and ends with the process, however that ends.
const writerLockName = "writer.lock"

// A writerLock is the writer's place of one tenant.
type writerLock struct {
	file *flock.Flock
	path string
}

// lockWriter takes the writer's place; assay.ErrLocked, with the process that
// has it, when it is taken.
func lockWriter(dir string) (*writerLock, error) {
	path := filepath.Join(dir, writerLockName)
	f := flock.New(path)
	ok, err := f.TryLock()
	if err != nil {
		return nil, wrap(err, "lock %s", path)
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s is held by %s", assay.ErrLocked, writerLockName, lockHolder(path))
	}
	l := &writerLock{file: f, path: path}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		_ = f.Unlock()
		return nil, wrap(err, "lock %s", path)
	}
	return l, nil
}

// lockHolder names the process whose ID the lock file holds.
func lockHolder(path string) string {
	b, err := os.ReadFile(path)
	pid := strings.TrimSpace(string(b))
	if _, numErr := strconv.Atoi(pid); err != nil || numErr != nil {
		return "another process" // it has only just taken it, or the system lets nobody read it
	}
	if pid == strconv.Itoa(os.Getpid()) {
		return "this process (" + pid + ")"
	}
	return "process " + pid
}

// release gives the place up. The file stays: removing it would let two
// processes lock two files of one name.
func (l *writerLock) release() error {
	err := os.Truncate(l.path, 0)
	if unlockErr := l.file.Unlock(); err == nil {
		err = unlockErr
	}
	return wrap(err, "unlock %s", l.path)
}
