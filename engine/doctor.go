package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/store/sqlite"
)

// A Check is the result of one of Doctor's checks.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // findings, in words
	Err    error  `json:"-"`      // reason if not OK; nil otherwise
}

// minFreeBytes is the free space below which a disk counts as full. An ingest writes its changes
// twice before it can delete the first copy.
const minFreeBytes = 64 << 20

// Doctor checks a data directory: the directory, its databases and their writer, the documents,
// the index, the encoder and the coverage of its vectors, the journals of all runs, the free disk
// space, and the reader. It returns the checks that it could run and changes nothing.
func Doctor(ctx context.Context, config Config) []Check {
	x := &examination{ctx: ctx, dir: config.Dir}
	if x.directory() && x.databases() {
		x.writer()
		x.size()
		x.documents()
		x.index()
		x.vectors(config)
		x.runs()
		x.failed("databases", x.tenant.Close())
	}
	x.reader(config)
	return x.checks
}

// An examination collects the checks of Doctor.
type examination struct {
	ctx    context.Context
	dir    string
	tenant *sqlite.Tenant
	checks []Check
}

func (x *examination) fine(name, format string, args ...any) {
	x.checks = append(x.checks, Check{Name: name, OK: true, Detail: fmt.Sprintf(format, args...)})
}

// failed records err if it is not nil, and reports whether it was.
func (x *examination) failed(name string, err error) bool {
	if err != nil {
		x.checks = append(x.checks, Check{Name: name, Detail: err.Error(), Err: err})
	}
	return err != nil
}

// directory checks that the data directory exists and that its disk has free space. It reports
// whether there is any content to check.
func (x *examination) directory() bool {
	const name = "data directory"
	entries, err := os.ReadDir(x.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.failed(name, fmt.Errorf("%s does not exist: %w", x.dir, assay.ErrNotFound))
		return false
	case x.failed(name, err):
		return false
	}
	free, err := freeBytes(x.dir)
	if !x.failed("disk", err) {
		if free < minFreeBytes {
			x.failed("disk", fmt.Errorf("%d MiB free, want at least %d: %w", free>>20, minFreeBytes>>20, assay.ErrFull))
		} else {
			x.fine("disk", "%d MiB free", free>>20)
		}
	}
	if len(entries) == 0 {
		x.fine(name, "%s is empty", x.dir)
		return false
	}
	return true
}

// databases checks that the databases exist, belong to assay, have a supported version and are
// intact. It reports whether the other checks can run.
func (x *examination) databases() bool {
	s, err := sqlite.Open(x.ctx, x.dir)
	if x.failed("data directory", err) {
		return false
	}
	x.fine("data directory", "%s", x.dir)
	tenants, err := s.Tenants(x.ctx)
	if x.failed("databases", err) {
		return false
	}
	if len(tenants) == 0 {
		x.fine("databases", "none yet")
		return false
	}
	x.tenant, err = s.Tenant(x.ctx, tenantName)
	if x.failed("databases", err) {
		return false
	}
	if x.failed("databases", x.tenant.Check(x.ctx)) {
		return true // the rest can still be checked
	}
	if x.tenant.ReadOnly() {
		x.failed("databases", fmt.Errorf("searches work, questions and ingests do not: %w", assay.ErrReadOnly))
	} else {
		x.fine("databases", "of this version, can be written")
	}
	return true
}

// writer reports which process is writing the content. It tries to take the writer lock only if
// the lock file names a process, because taking it even briefly could make a starting ingest
// fail.
func (x *examination) writer() {
	if x.tenant.ReadOnly() {
		return
	}
	holder, err := os.ReadFile(filepath.Join(x.tenant.Dir(), "writer.lock"))
	if len(holder) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		x.fine("writer", "nobody is ingesting")
		return
	}
	w, err := x.tenant.Writer(x.ctx)
	switch {
	case errors.Is(err, assay.ErrLocked):
		x.fine("writer", "%v", err)
	case !x.failed("writer", err):
		x.failed("writer", w.Close())
		x.fine("writer", "nobody is ingesting")
	}
}

// size adds up the sizes of the tenant's files.
func (x *examination) size() {
	const content, runs, index = "documents and vectors", "runs", "index"
	bytes := map[string]int64{}
	err := filepath.WalkDir(x.tenant.Dir(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a merged segment, or the log of a closed database
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(d.Name(), "content.db"):
			bytes[content] += info.Size()
		case strings.HasPrefix(d.Name(), "runs.db"):
			bytes[runs] += info.Size()
		default:
			bytes[index] += info.Size()
		}
		return nil
	})
	if x.failed("size", err) {
		return
	}
	mb := func(part string) float64 { return float64(bytes[part]) / 1e6 }
	x.fine("size", "%.1f MB: %s %.1f, %s %.1f, %s %.1f", mb(content)+mb(runs)+mb(index), content, mb(content), index, mb(index), runs, mb(runs))
}

// documents reads every document and checks that its chunks lie within its text.
func (x *examination) documents() {
	documents, chunks := 0, 0
	for change, err := range x.tenant.Content().Changes(x.ctx, 0) {
		if x.failed("documents", err) {
			return
		}
		if change.Deleted {
			continue
		}
		documents++
		chunks += len(change.Chunks)
		for _, c := range change.Chunks {
			if c.Start < 0 || c.Start > c.End || c.End > len(change.Document.Text) {
				x.failed("documents", fmt.Errorf("%s: chunk %d lies outside the text: %w", change.Document.URI, c.Ordinal, assay.ErrDamaged))
				return
			}
		}
	}
	x.fine("documents", "%d, in %d chunks", documents, chunks)
}

// index compares the index with the content. An index that is behind or lost is not an error,
// because the next search brings it up to date.
func (x *examination) index() {
	content := x.tenant.Content()
	stored, err := content.Sequence(x.ctx)
	if x.failed("index", err) {
		return
	}
	ix, err := index.Open(x.ctx, indexDir(x.tenant), content)
	if x.failed("index", err) {
		return
	}
	switch held := ix.Version().Sequence; {
	case ix.Lost() != nil:
		x.fine("index", "cannot be used, the next search reads the documents again: %v", ix.Lost())
	case held == stored:
		x.fine("index", "holds all changes, up to %d", stored)
	default:
		x.fine("index", "holds the changes up to %d of %d; the next search reads the rest", held, stored)
	}
	x.failed("index", ix.Close())
}

// vectors opens the encoder and counts its vectors. Missing vectors are not an error; they are
// made later.
func (x *examination) vectors(config Config) {
	if config.Encoders == nil {
		return
	}
	const name = "vectors"
	shelf := newShelf(config.Encoders, time.Now)
	c := &chooser{dir: x.tenant.Dir(), content: x.tenant.Content(), shelf: shelf, now: time.Now}
	s, err := c.status(x.ctx)
	if x.failed(name, errors.Join(err, shelf.close())) {
		return
	}
	var counts []string
	for _, m := range s.Models {
		counts = append(counts, fmt.Sprintf("%s: %d of %s", m.Model, m.Embedded, counted(s.Chunks, "chunk")))
	}
	detail := strings.Join(counts, "; ")
	if s.Serving != s.Wanted && s.Serving != "" {
		detail += fmt.Sprintf("; %s serves until %s has caught up", s.Serving, s.Wanted)
	}
	if s.problem != nil {
		x.failed(name, fmt.Errorf("%w (%s)", s.problem, detail))
		return
	}
	x.fine(name, "%s", detail)
}

// reader opens the reader and reports its name and size.
func (x *examination) reader(config Config) {
	const name = "reader"
	r, err := openReader(config)
	if x.failed(name, err) || r == nil {
		return
	}
	detail := r.Model()
	if sized, ok := r.(interface{ Bytes() int64 }); ok {
		detail += fmt.Sprintf(", %.1f MB", float64(sized.Bytes())/1e6)
	}
	x.fine(name, "%s", detail)
}

// runs checks the journals of all runs.
func (x *examination) runs() {
	runs, err := x.tenant.Runs().List(x.ctx, 0)
	if x.failed("runs", err) {
		return
	}
	sound := 0
	var interrupted []string
	for _, r := range runs {
		if _, err := x.tenant.Runs().Records(x.ctx, r.ID); err != nil {
			x.failed("runs", fmt.Errorf("run %s: %w", r.ID, err))
			continue
		}
		sound++
		if r.State == assay.RunActive && !r.Live {
			interrupted = append(interrupted, r.ID)
		}
	}
	detail := fmt.Sprintf("%d of %s with a sound journal", sound, counted(len(runs), "run"))
	if len(interrupted) > 0 {
		detail += fmt.Sprintf("; %d interrupted, can be resumed: %s", len(interrupted), strings.Join(interrupted, ", "))
	}
	x.fine("runs", "%s", detail)
}
