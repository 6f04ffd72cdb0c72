package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store/sqlite"
)

// defaultData is the data directory if neither --data nor ASSAY_DATA names one.
const defaultData = "./.assay"

// dataDir returns the data directory that the command works on.
func (a *app) dataDir(ctx context.Context) (string, error) {
	if len(a.docs) == 0 {
		return cmp.Or(a.data, a.getenv("ASSAY_DATA"), defaultData), nil
	}
	if a.data != "" {
		return "", usagef("--docs and --data exclude each other")
	}
	return a.docsDir(ctx)
}

// docsDir returns the store for the documents of --docs. It is in the user's cache directory, and
// its name has a hash of the documents' absolute paths and, for readability, the last element of
// the first path. A document on standard input is identified by a hash of its content.
func (a *app) docsDir(ctx context.Context) (string, error) {
	cache, err := a.cacheDir()
	if err != nil {
		return "", hinted{fmt.Errorf("find the cache directory for --docs: %w", err), "use --data and assay ingest instead"}
	}
	names := make([]string, len(a.docs))
	for i, d := range a.docs {
		if d == "-" {
			sum, err := a.readDocument(ctx)
			if err != nil {
				return "", err
			}
			names[i] = "stdin:" + sum
			continue
		}
		if names[i], err = filepath.Abs(d); err != nil {
			return "", fmt.Errorf("--docs %s: %w", d, err)
		}
	}
	base := "stdin"
	if a.docs[0] != "-" {
		base = strings.Map(plainName, filepath.Base(names[0]))
	}
	slices.Sort(names)
	names = append(slices.Compact(names), sqlite.Layout()) // a store of another layout stays beside it
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return filepath.Join(cache, "assay", hex.EncodeToString(sum[:8])+"-"+base), nil
}

// plainName replaces characters that are not safe in file names on all systems.
func plainName(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		return r
	}
	return '_'
}

// readsDocument reports whether standard input is one of the documents.
func (a *app) readsDocument() bool { return slices.Contains(a.docs, "-") }

// readDocument reads the document on standard input into memory, so that its store can be named
// before it is ingested, and returns its hash. It reads one byte more than ingest accepts, so that
// ingest detects a document that is too large.
func (a *app) readDocument(ctx context.Context) (string, error) {
	data, err := a.readStdin(ctx, source.DefaultMaxFileBytes+1)
	if err != nil {
		return "", fmt.Errorf("read the document on standard input: %w", err)
	}
	a.stdin = bytes.NewReader(data)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// readStdin reads standard input to its end, but at most limit bytes. A blocked read cannot be
// canceled, so its goroutine is abandoned if ctx ends.
func (a *app) readStdin(ctx context.Context, limit int64) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(a.stdin, limit))
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// openExisting opens the data directory of the command, which must exist.
func (a *app) openExisting(ctx context.Context, n needs) (*engine.Engine, error) {
	at, err := a.location(ctx)
	if err != nil {
		return nil, err
	}
	if at.missing() {
		return nil, a.noData(at)
	}
	return a.openEngine(ctx, at, n)
}

// openSearchable opens the data of the command for a search. Without data it creates them if there are
// services to search, since runs are kept there.
func (a *app) openSearchable(ctx context.Context, n needs) (*engine.Engine, error) {
	set, err := a.settings()
	if err != nil || len(set.Config().Services) == 0 {
		return a.openExisting(ctx, n) // which reports the error
	}
	at, err := a.location(ctx)
	if err != nil {
		return nil, err
	}
	return a.openEngine(ctx, at, n)
}

// openEngine opens the data at a location.
func (a *app) openEngine(ctx context.Context, at location, n needs) (*engine.Engine, error) {
	c, err := a.engineConfig(ctx, at, n)
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, c)
	return e, a.hintTenant(err, c.Tenant)
}

// noData returns an error for a missing or empty store, with a command to create it.
func (a *app) noData(at location) error {
	if len(a.docs) > 0 {
		docs := make([]string, len(a.docs))
		for i, d := range a.docs {
			docs[i] = shellQuote(d)
		}
		return hinted{fmt.Errorf("no question has been asked of %s yet", strings.Join(a.docs, ", ")),
			"run: assay ask --docs " + strings.Join(docs, " --docs ") + ` "QUESTION"`}
	}
	command := "assay ingest PATH"
	command += a.sameLocation()
	if a.tenant != "" {
		command += " --tenant " + shellQuote(a.tenant)
	}
	return hinted{fmt.Errorf("no documents yet in %s", at), "run: " + command}
}

// openToAsk opens the data directory of the command for a question or a search. With --docs it
// first brings the documents up to date. Otherwise the directory must hold documents, or services must
// be configured.
func (a *app) openToAsk(ctx context.Context, shown *progress, n needs, trace bool) (*engine.Engine, error) {
	if len(a.docs) > 0 {
		return a.openDocs(ctx, shown, n, trace)
	}
	e, err := a.openSearchable(ctx, n)
	if err != nil {
		return nil, err
	}
	some, err := e.HoldsDocuments(ctx)
	if err == nil && (some || e.SearchesServices()) {
		return e, nil
	}
	at, dirErr := a.location(ctx)
	return nil, errors.Join(cmp.Or(err, dirErr, a.noData(at)), e.Close())
}

// openDocs opens the store of --docs and brings it up to date. It returns an error if none of the
// documents can be read.
func (a *app) openDocs(ctx context.Context, shown *progress, n needs, trace bool) (*engine.Engine, error) {
	for _, d := range a.docs { // before a misspelled path creates a store
		if _, err := os.Stat(d); d != "-" && errors.Is(err, fs.ErrNotExist) {
			return nil, hinted{usagef("--docs %s: no such file or folder", d), "put a question of several words in quotes"}
		}
	}
	at, err := a.location(ctx)
	if err != nil {
		return nil, err
	}
	if trace {
		fmt.Fprintf(a.stderr, "store of the documents: %s\n", at)
	}
	e, err := a.openEngine(ctx, at, n)
	if err != nil {
		return nil, err
	}
	report, err := a.ingestDocs(ctx, e, shown)
	shown.clear()
	if trace {
		writeReport(a.stderr, report, a.sameStore())
	}
	if err == nil {
		err = a.checkRead(ctx, e, report)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if !trace && report.Added+report.Updated+report.Removed > 0 {
		shown.note("read the documents: %s", reportLine(report))
		for _, s := range report.Skipped[:min(len(report.Skipped), notedSkips)] {
			shown.note("%s", skippedLine(s))
		}
		if more := len(report.Skipped) - notedSkips; more > 0 {
			shown.note("and %d more; --trace lists them", more)
		}
	}
	return e, nil
}

// notedSkips is the number of skipped files that are named when the documents of --docs are read.
const notedSkips = 5

// checkRead returns an error if all documents were skipped.
func (a *app) checkRead(ctx context.Context, e *engine.Engine, report ingest.Report) error {
	if len(report.Skipped) == 0 {
		return nil
	}
	some, err := e.HoldsDocuments(ctx)
	if err != nil || some {
		return err
	}
	reason := shortPath(report.Skipped[0].URI) + ": " + report.Skipped[0].Detail
	if more := len(report.Skipped) - 1; more > 0 {
		reason += fmt.Sprintf(" (and %d more; --trace lists them)", more)
	}
	return usagef("--docs %s: nothing could be read: %s", strings.Join(a.docs, ", "), reason)
}
