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

// writerLockName is the file whose lock makes a process the content's writer. It contains that
// process's ID for diagnostics. The lock itself is the operating system's and ends with the
// process, however it exits.
const writerLockName = "writer.lock"

// A writerLock is a tenant's writer lock.
type writerLock struct {
	file *flock.Flock
	path string
}

// lockWriter takes the writer lock. If it is taken, the error is assay.ErrLocked and names the
// process that holds it.
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

// lockHolder returns the process whose ID is in the lock file.
func lockHolder(path string) string {
	b, err := os.ReadFile(path)
	pid := strings.TrimSpace(string(b))
	if _, numErr := strconv.Atoi(pid); err != nil || numErr != nil {
		return "another process" // it has only just locked the file, or the file is not readable
	}
	if pid == strconv.Itoa(os.Getpid()) {
		return "this process (" + pid + ")"
	}
	return "process " + pid
}

// release releases the lock. The file is kept, because after a removal two processes could lock two
// files of the same name.
func (l *writerLock) release() error {
	err := os.Truncate(l.path, 0)
	if unlockErr := l.file.Unlock(); err == nil {
		err = unlockErr
	}
	return wrap(err, "unlock %s", l.path)
}
