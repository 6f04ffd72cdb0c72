package answers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/durable"
)

// The files in the folder of an evaluation.
const (
	identityFile = "evaluation.json"
	outcomesFile = "outcomes.jsonl"
	lockFile     = "lock"
)

// An Identity says which evaluation a folder holds: the set and the configuration. Another
// evaluation needs another folder.
type Identity struct {
	Set    string            `json:"set"`  // display name
	Hash   string            `json:"hash"` // Dataset.Hash
	Config map[string]string `json:"config"`
}

// A Folder stores an evaluation, so that it can be resumed after an interruption. evaluation.json
// identifies it, and outcomes.jsonl has one line per outcome. Only one process can open a folder at
// a time.
type Folder struct {
	Dir   string
	Began time.Time
	name  string // random; run IDs are derived from it
	lock  *flock.Flock

	mu       sync.Mutex
	outcomes lineFile
	end      int64              // size of the file up to its last complete line
	done     map[[2]string]bool // by system and case
}

// A lineFile is the file of the outcomes. Tests replace it.
type lineFile interface {
	io.Reader
	io.WriterAt
	Name() string
	Sync() error
	Truncate(size int64) error
	Close() error
}

// An evaluation is the content of evaluation.json.
type evaluation struct {
	Format int       `json:"format"`
	Name   string    `json:"name"` // random; run IDs are derived from it and so differ between folders
	Began  time.Time `json:"began"`
	Identity
}

// folderFormat is the version of the file format.
const folderFormat = 1

// OpenFolder opens the folder of an evaluation and creates it if it does not exist. It fails with
// assay.ErrInvalid if the folder belongs to another set or configuration, and the error names the
// difference. It fails with assay.ErrLocked if another process has it open, with assay.ErrNewer if
// a newer version wrote it, and with assay.ErrDamaged if a line cannot be read. An incomplete last
// line is cut off.
func OpenFolder(ctx context.Context, dir string, identity Identity) (_ *Folder, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder of the evaluation: %w", err)
	}
	f := &Folder{Dir: dir, lock: flock.New(filepath.Join(dir, lockFile)), done: map[[2]string]bool{}}
	got, err := f.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if !got {
		return nil, fmt.Errorf("another evaluation writes to %s: %w", dir, assay.ErrLocked)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := f.identify(identity); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, outcomesFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f.outcomes = file
	if err := f.mend(); err != nil {
		return nil, err
	}
	for o, err := range f.Outcomes(ctx) {
		if err != nil {
			return nil, err
		}
		f.done[[2]string{o.System, o.ID}] = true
	}
	return f, nil
}

// identify reads and checks the identity of the folder, or writes it to a new folder.
func (f *Folder) identify(identity Identity) error {
	file := filepath.Join(f.Dir, identityFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		e := evaluation{Format: folderFormat, Name: strings.ToLower(rand.Text()[:16]), Began: time.Now().UTC(), Identity: identity}
		f.name, f.Began = e.Name, e.Began
		return writeWhole(file, e, 0o600)
	}
	if err != nil {
		return err
	}
	var e evaluation
	if err := json.Unmarshal(data, &e); err != nil || e.Name == "" {
		return fmt.Errorf("cannot read %s: %w", file, assay.ErrDamaged)
	}
	if e.Format > folderFormat {
		return fmt.Errorf("%s has format %d; this program supports up to %d: %w", file, e.Format, folderFormat, assay.ErrNewer)
	}
	if differs := e.differs(identity); differs != "" {
		return fmt.Errorf("%s holds another evaluation: %s: %w", f.Dir, differs, assay.ErrInvalid)
	}
	f.name, f.Began = e.Name, e.Began
	return nil
}

// differs describes the first difference between two identities. It returns "" if they are equal.
func (i Identity) differs(other Identity) string {
	if i.Hash != other.Hash {
		if i.Set != other.Set {
			return fmt.Sprintf("its set is %s, and now it is %s", i.Set, other.Set)
		}
		return fmt.Sprintf("the questions, labels or passages of the set %s have changed", i.Set)
	}
	for _, keys := range []map[string]string{i.Config, other.Config} {
		for k := range keys {
			if i.Config[k] != other.Config[k] {
				return fmt.Sprintf("its %s is %q, and now it is %q", k, i.Config[k], other.Config[k])
			}
		}
	}
	return ""
}

// writeWhole writes a value as JSON atomically.
func writeWhole(file string, v any, mode fs.FileMode) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(file, append(data, '\n'), mode)
}

// writeFile writes a file atomically.
func writeFile(file string, data []byte, mode fs.FileMode) error {
	return durable.Write(file, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// mend truncates the file after its last complete line.
func (f *Folder) mend() error {
	end := int64(0)
	r := bufio.NewReaderSize(f.outcomes, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.outcomes.Name(), err)
		}
		end += int64(len(line))
	}
	f.end = end
	return f.outcomes.Truncate(end)
}

// Outcomes yields the stored outcomes in the order in which they were written. It reads them from
// disk one at a time.
func (f *Folder) Outcomes(ctx context.Context) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		file, err := os.Open(filepath.Join(f.Dir, outcomesFile))
		if err != nil {
			yield(Outcome{}, err)
			return
		}
		defer file.Close()
		r := bufio.NewReaderSize(file, 1<<16)
		for n := 1; ; n++ {
			line, err := r.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return // an incomplete line is ignored
			}
			var o Outcome
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				if err = json.Unmarshal(bytes.TrimSpace(line), &o); err != nil {
					err = fmt.Errorf("%s:%d: %w: %w", file.Name(), n, assay.ErrDamaged, err)
				}
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// Holds reports whether the folder has an outcome of each system for each of the first limit
// questions of the set (0: all).
func (f *Folder) Holds(d testset.Dataset, limit int, systems ...string) bool {
	return f.left(d, limit, systems...) == 0
}

// left returns the number of questions without an outcome, over all systems.
func (f *Folder) left(d testset.Dataset, limit int, systems ...string) int {
	n := 0
	for _, name := range systems {
		for _, c := range d.First(limit) {
			n += stat.One(!f.Has(name, c.ID))
		}
	}
	return n
}

// Empty removes all outcomes and gives later runs new names.
func (f *Folder) Empty(identity Identity) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = map[[2]string]bool{}
	if err := f.outcomes.Truncate(0); err != nil {
		return err
	}
	f.end = 0
	if err := errors.Join(f.outcomes.Sync(), os.Remove(filepath.Join(f.Dir, identityFile))); err != nil {
		return err
	}
	return f.identify(identity)
}

// Has reports whether a question has an outcome under a system.
func (f *Folder) Has(system, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done[[2]string{system, id}]
}

// Add appends an outcome. It is durable when add returns. After a failed write, the next one
// overwrites the partial line, or OpenFolder cuts it off.
func (f *Folder) Add(o Outcome) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	line = append(line, '\n')
	_, err = f.outcomes.WriteAt(line, f.end)
	if err == nil {
		err = f.outcomes.Sync()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.outcomes.Name(), errors.Join(err, f.outcomes.Truncate(f.end)))
	}
	f.end += int64(len(line))
	f.done[[2]string{o.System, o.ID}] = true
	return nil
}

// runID returns the ID of the run of a question. It is the same on every call, so that a run is
// found again if the process ended before the outcome was written.
func (f *Folder) runID(system, id string) string {
	sum := sha256.Sum256([]byte(f.name + "\x00" + system + "\x00" + id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:16])
}

// Close closes the file and unlocks the folder.
func (f *Folder) Close() error {
	var errs []error
	if f.outcomes != nil {
		errs = append(errs, f.outcomes.Close())
	}
	return errors.Join(append(errs, f.lock.Close())...)
}
