package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/store"
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

// Doctor checks the data of a tenant: the data directory and its free disk space, the databases and
// their writer, the documents, the index, the encoder and the coverage of its vectors, the journals
// of all runs, and the reader. With Config.Store there is no data directory to check. It returns the
// checks that it could run and changes nothing.
func Doctor(ctx context.Context, config Config) []Check {
	x := &examination{ctx: ctx, config: config, name: cmp.Or(config.Tenant, DefaultTenant)}
	if config.remote() || x.directory() {
		x.store()
	}
	x.reader()
	return x.checks
}

// An examination collects the checks of Doctor.
type examination struct {
	ctx    context.Context
	config Config
	name   string // of the tenant
	tenant store.Tenant
	checks []Check

	// shared means that the caller may know nothing of the store but the tenant.
	shared bool
}

// store runs the checks of the tenant's data.
func (x *examination) store() {
	s, own, err := x.config.open(x.ctx)
	if x.failed("data directory", err) {
		return
	}
	if own != nil {
		if x.config.Dir != "" {
			x.fine("data directory", "%s", x.config.Dir)
		}
		defer func() { x.failed("databases", own.Close()) }()
	}
	if !x.databases(s) {
		return
	}
	x.writer()
	x.size()
	x.documents()
	x.index()
	x.vectors()
	x.runs()
	x.audit("audit log", x.tenant.Audit(), x.tenant.Registry())
	x.stops(s)
	x.failed("databases", x.tenant.Close())
	if !x.shared {
		x.system(s)
	}
}

// stops reports who has stopped the tenant or all tenants.
func (x *examination) stops(s store.Store) {
	registries := []store.Registry{x.tenant.Registry()}
	_, err := os.Stat(filepath.Join(x.config.Dir, "system.db")) // System would create it
	if x.config.remote() || err == nil {
		system, err := s.System(x.ctx)
		if x.failed("stops", err) {
			return
		}
		defer system.Close()
		registries = append(registries, system.Registry())
	}
	stops, err := stopsIn(x.ctx, registries...)
	if x.failed("stops", err) {
		return
	}
	for _, stop := range stops {
		what := "this tenant is"
		if stop.All {
			what = "all tenants are"
			if x.shared {
				stop.By, stop.Reason = "the operator", "not shown here"
			}
		}
		x.failed("stops", fmt.Errorf("%s %w: %s, since %s: %s", what, assay.ErrStopped, stop.By, stop.Since.UTC().Format(time.RFC3339), stop.Reason))
	}
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
	dir := x.config.Dir
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.failed(name, fmt.Errorf("%s does not exist: %w", dir, assay.ErrNotFound))
		return false
	case x.failed(name, err):
		return false
	}
	free, err := freeBytes(dir)
	if !x.failed("disk", err) {
		if free < minFreeBytes {
			x.failed("disk", fmt.Errorf("%d MiB free, want at least %d: %w", free>>20, minFreeBytes>>20, assay.ErrFull))
		} else {
			x.fine("disk", "%d MiB free", free>>20)
		}
	}
	if len(entries) == 0 {
		x.fine(name, "%s is empty", dir)
		return false
	}
	return true
}

// databases checks that the databases exist, belong to assay, have a supported version and are
// intact. It reports whether the other checks can run.
func (x *examination) databases(s store.Store) bool {
	tenants, err := s.Tenants(x.ctx)
	if x.failed("databases", err) {
		return false
	}
	if x.name == DefaultTenant && !slices.Contains(tenants, x.name) { // Tenant would create it
		x.fine("databases", "none yet")
		return false
	}
	x.tenant, err = s.Tenant(x.ctx, x.name)
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

// writer reports which process is writing the content. It takes the writer lock for a moment; an
// ingest that starts meanwhile waits for longer than that.
func (x *examination) writer() {
	if x.tenant.ReadOnly() {
		return
	}
	w, err := x.tenant.Writer(x.ctx)
	switch {
	case errors.Is(err, assay.ErrLocked):
		x.fine("writer", "%v", err)
	case !x.failed("writer", err):
		x.failed("writer", w.Close())
		x.fine("writer", "no other process holds the writer lock")
	}
}

// size reports the size of the tenant's data and of its index.
func (x *examination) size() {
	stored, err := x.tenant.Size(x.ctx)
	if x.failed("size", err) {
		return
	}
	index, err := x.indexSize()
	if x.failed("size", err) {
		return
	}
	mb := func(bytes int64) float64 { return float64(bytes) / 1e6 }
	x.fine("size", "%.1f MB: documents and vectors %.1f, index %.1f, runs %.1f",
		mb(stored.Content+index+stored.Runs), mb(stored.Content), mb(index), mb(stored.Runs))
}

// folderSize adds up the sizes of the files in a folder, which may not exist. An empty path is no
// folder.
func folderSize(dir string) (bytes int64, err error) {
	if dir == "" {
		return 0, nil
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no index yet, or a merged segment
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
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
	dir := x.tenant.IndexDir()
	if dir == "" && x.config.OpenIndex == nil {
		x.fine("index", "rebuilt by each engine")
		return
	}
	content := x.tenant.Content()
	stored, err := content.Sequence(x.ctx)
	if x.failed("index", err) {
		return
	}
	ix, err := x.config.openIndex(x.ctx, x.tenant, dir)
	if x.failed("index", err) {
		return
	}
	var lost error
	if l, ok := ix.(loser); ok {
		lost = l.Lost()
	}
	switch held := ix.Sequence(); {
	case lost != nil:
		x.fine("index", "cannot be used, the next search reads the documents again: %v", lost)
	case held == stored:
		x.fine("index", "holds all changes, up to %d", stored)
	default:
		x.fine("index", "holds the changes up to %d of %d; the next search reads the rest", held, stored)
	}
	x.failed("index", ix.Close())
}

// vectors opens the encoder and counts its vectors. Missing vectors are not an error; they are
// made later.
func (x *examination) vectors() {
	if x.config.Encoders == nil {
		return
	}
	const name = "vectors"
	encoders := newEncoderCache(x.config.Encoders, time.Now)
	c := &encoderSelector{tenant: x.tenant, content: x.tenant.Content(), encoders: encoders, now: time.Now}
	s, err := c.status(x.ctx)
	if x.failed(name, errors.Join(err, encoders.close())) {
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
func (x *examination) reader() {
	const name = "reader"
	r, err := openReader(x.config)
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

// audit verifies an audit log with the checkpoints that are kept beside it, and compares the data with
// it. It trusts the key that the store has: only `assay audit verify` uses checkpoints and keys that
// are kept elsewhere.
func (x *examination) audit(name string, log store.Audit, registry store.Registry) {
	notes, err := audit.Published(x.ctx, registry)
	if x.failed(name, err) {
		return
	}
	keys, err := audit.AnnouncedKeys(x.ctx, log)
	if x.failed(name, err) {
		return
	}
	report, err := audit.VerifyStore(x.ctx, log, notes, keys)
	if x.failed(name, err) {
		return
	}
	const most = 10
	for _, f := range report.Findings[:min(len(report.Findings), most)] {
		x.failed(name, fmt.Errorf("%w: %s", assay.ErrDamaged, f))
	}
	switch more := len(report.Findings) - most; {
	case more > 0:
		x.failed(name, fmt.Errorf("%w: %d more differences: assay audit verify lists them", assay.ErrDamaged, more))
	case len(report.Findings) == 0:
		x.fine(name, "%d in the log, %s, nothing differs", report.Size, counted(len(report.Checkpoints), "checkpoint"))
	}
}

// system checks the log of the store itself, if there is one.
func (x *examination) system(s store.Store) {
	const name = "audit log of the store"
	if x.config.Dir != "" {
		if _, err := os.Stat(filepath.Join(x.config.Dir, "system.db")); errors.Is(err, fs.ErrNotExist) {
			return // Doctor creates nothing
		}
	}
	sys, err := s.System(x.ctx)
	if x.failed(name, err) {
		return
	}
	x.audit(name, sys.Audit(), sys.Registry())
	x.failed(name, sys.Close())
}
