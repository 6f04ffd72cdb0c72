package relational

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockSuffix = ".lock"

	// staleAge is the minimum age of an unlocked owner's file before it is removed, which exceeds
	// the time between creating and locking a file.
	staleAge = time.Minute
)

// An owner represents this process as a holder of leases. Its file is locked while the process is
// alive. The operating system releases the lock with the process, however it exits, and unlike a
// process ID the lock is never mistaken for that of another process.
type owner struct {
	word string
	dir  string
	file *flock.Flock

	mu     sync.Mutex
	tokens map[string]bool // of the held leases
}

// newOwner creates and locks a file in the folder, and removes the files of dead processes.
func newOwner(dir string) (*owner, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, wrap(err, "lock a file for leases")
	}
	o := &owner{word: rand.Text(), dir: dir, tokens: make(map[string]bool)}
	o.file = flock.New(ownerPath(dir, o.word))
	ok, err := o.file.TryLock()
	if err == nil && !ok {
		err = errors.New("a new file is locked already")
	}
	if err != nil {
		return nil, wrap(err, "lock %s", o.file.Path())
	}
	removeStale(dir)
	return o, nil
}

func ownerPath(dir, word string) string { return filepath.Join(dir, word+lockSuffix) }

// removeStale removes the files of dead owners. A file that cannot be removed is harmless.
func removeStale(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		word, ok := strings.CutSuffix(e.Name(), lockSuffix)
		info, err := e.Info()
		if !ok || err != nil || time.Since(info.ModTime()) < staleAge {
			continue
		}
		if alive, err := ownerAlive(dir, word); err == nil && !alive {
			_ = os.Remove(ownerPath(dir, word))
		}
	}
}

// ownerAlive reports whether the process that owns the file is alive, as far as file locks reach.
// The owner's lock excludes the shared lock tried here. Concurrent checks do not exclude each
// other.
func ownerAlive(dir, word string) (bool, error) {
	f := flock.New(ownerPath(dir, word), flock.SetFlag(os.O_RDONLY))
	ok, err := f.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if ok {
		return false, f.Unlock()
	}
	return true, f.Close()
}

// hold, drop and holds track the leases of this process.
func (o *owner) hold(token string) { o.mu.Lock(); o.tokens[token] = true; o.mu.Unlock() }
func (o *owner) drop(token string) { o.mu.Lock(); delete(o.tokens, token); o.mu.Unlock() }
func (o *owner) holds(token string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tokens[token]
}

// close unlocks and removes the owner's file, which releases all leases. The file is gone already if
// the tenant was deleted.
func (o *owner) close() error {
	unlockErr := o.file.Unlock() // Windows does not remove an open file
	err := os.Remove(o.file.Path())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return wrap(errors.Join(unlockErr, err), "unlock %s", o.file.Path())
}

// A Host identifies a machine.
type Host struct {
	Machine string // its name and, if available, its machine ID
	Boot    string // boot ID of its system; empty: not known
}

// ThisHost returns the host of this process.
func ThisHost() Host {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return Host{
		Machine: strings.TrimSuffix(name+"/"+firstLine("/etc/machine-id"), "/"),
		Boot:    firstLine("/proc/sys/kernel/random/boot_id"),
	}
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// same reports whether h and other are the same machine. Containers on one kernel share its boot
// ID.
func (h Host) same(other Host) bool {
	return h.Machine == other.Machine || h.Boot != "" && h.Boot == other.Boot
}
