package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// prepareSearch loads texts, questions and vectors.
func (b *bench) prepareSearch(ctx context.Context) (err error) {
	o := b.options
	if b.corpus, err = openCorpus(ctx, o.cache, o.chunks, b.testdata, o.fresh); err != nil {
		return err
	}
	b.report.Corpus = b.corpus.origin
	if b.questions, err = questions(ctx, b.corpus, o.queries, b.testdata); err != nil {
		return err
	}
	if b.encoder, err = openEncoder(ctx, o.model); err != nil {
		return err
	}
	var what string
	if b.vectors, b.vectorsPath, what, err = chunkVectors(o.cache, o.vectors, o.dimensions, o.chunks); err != nil {
		return err
	}
	b.note("%s chunks in %s documents, %.0f MB of text, corpus %x", thousands(float64(b.corpus.chunks)), thousands(float64(b.corpus.documents())), float64(b.corpus.textBytes())/1e6, b.corpus.hash)
	b.note("%s; they are not those of the chunks, so words and vectors hardly find the same: as many passages as can be have to be read and judged", what)
	return nil
}

// searchWhole measures `assay search` as a separate process, on a data directory that holds the
// corpus with its vectors.
func (b *bench) searchWhole(ctx context.Context) error {
	if b.options.model != "" {
		return nil // the binary has a different model
	}
	dir, err := b.dataDirectory(ctx)
	if err != nil {
		return err
	}
	binary := filepath.Join(b.dir, "assay")
	build := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", binary, "./cmd/assay") // with its own module's dependencies
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build assay: %w\n%s", err, out)
	}
	p := b.report.part("assay search, whole processes", "search", fmt.Sprintf("From start to end, one question each, %d questions; the kinds take turns. "+
		"Wall time, and processor time of all threads. All files are in the page cache.", len(b.questions)))
	runs := make([]processCosts, len(processKinds))
	for i := range len(b.questions) + 1 { // the first is a warm-up
		for k, kind := range processKinds {
			cost, err := runProcess(ctx, binary, kind.args(dir, b.questions[i%len(b.questions)])...)
			if err != nil {
				return err
			}
			if i > 0 {
				runs[k] = append(runs[k], cost)
			}
		}
		if i%50 == 0 {
			progress("processes: question %d of %d", i, len(b.questions))
		}
	}
	for k, kind := range processKinds {
		wall, cpu := runs[k].durations()
		p.addDuration(kind.name, "p50", milliseconds, percentile(wall, 0.5))
		p.addDuration(kind.name, "p95", milliseconds, percentile(wall, 0.95))
		p.addDuration(kind.name, "CPU, p50", milliseconds, percentile(cpu, 0.5))
		p.addDuration(kind.name, "CPU, p95", milliseconds, percentile(cpu, 0.95))
	}
	return nil
}

// A processKind is a command line to measure.
type processKind struct {
	name  string
	flags []string // of search; nil: no search
}

var processKinds = []processKind{
	{"nothing (`assay version`)", nil},
	{"words alone (`--mode text`)", []string{"--mode", "text"}},
	{"vectors alone (`--mode vector`)", []string{"--mode", "vector"}},
	{"as by default", []string{}},
}

func (k processKind) args(dir, question string) []string {
	if k.flags == nil {
		return []string{"version"}
	}
	return append(append([]string{"search", "--data", dir, "--json"}, k.flags...), "--", question)
}

// A processCost holds the times of one process.
type processCost struct{ wall, cpu time.Duration }

type processCosts []processCost

func (c processCosts) durations() (wall, cpu []time.Duration) {
	for _, one := range c {
		wall, cpu = append(wall, one.wall), append(cpu, one.cpu)
	}
	return wall, cpu
}

// runProcess runs a process until it exits. Exit code 3, for no results, is not an error.
func runProcess(ctx context.Context, binary string, args ...string) (processCost, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	took := processCost{wall: time.Since(began)}
	const nothingFound = 3
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != nothingFound) {
		return took, fmt.Errorf("assay %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	took.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return took, nil
}

// dataDirectory returns an assay data directory in the cache, with the corpus, its vectors and the
// index. If it does not exist it is made first, which takes some minutes.
func (b *bench) dataDirectory(ctx context.Context) (string, error) {
	name := strings.NewReplacer("/", "-", "@", "-").Replace(b.encoder.Model())
	dir := filepath.Join(b.options.cache, fmt.Sprintf("data-1-%d-%x-%s", b.corpus.chunks, b.corpus.hash, name))
	if _, err := os.Stat(dir); err == nil {
		return dir, b.catchUp(ctx, dir)
	}
	progress("making a data directory of %d chunks (once; kept as %s)", b.corpus.chunks, dir)
	unfinished, err := os.MkdirTemp(b.options.cache, "data-*.tmp")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(unfinished) // no effect after the rename
	if err := b.fill(ctx, unfinished); err != nil {
		return "", err
	}
	if err := b.catchUp(ctx, unfinished); err != nil {
		return "", err
	}
	return dir, os.Rename(unfinished, dir)
}

// fill stores the corpus and its vectors.
func (b *bench) fill(ctx context.Context, dir string) (err error) {
	w, done, err := openWriter(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	const batch = 500
	var entries []store.Entry
	var vectors []store.Vector
	put := func() error {
		if _, err := w.Put(ctx, entries...); err != nil {
			return err
		}
		_, err := w.PutVectors(ctx, b.encoder.Model(), vectors...)
		entries, vectors = entries[:0], vectors[:0]
		return err
	}
	chunk := 0
	for change, err := range newSource(b.corpus, b.vectors).Changes(ctx, 0) {
		if err != nil {
			return err
		}
		e := stored(change)
		for _, c := range e.Chunks {
			p := assay.Passage{Chunk: c, Title: e.Document.Title, Text: e.Document.Text[c.Start:c.End]}
			vectors = append(vectors, store.Vector{Hash: p.Hash(), Values: b.vectors.row(chunk)})
			chunk++
		}
		if entries = append(entries, e); len(entries) == batch {
			if err := put(); err != nil {
				return err
			}
			if chunk/20_000 != (chunk-batch)/20_000 {
				progress("    %s chunks stored", thousands(float64(chunk)))
			}
		}
	}
	return put()
}

// stored returns a document in the form that a store takes. It belongs to a collection, on whose
// name its ID and those of its chunks depend.
func stored(change assay.Change) store.Entry {
	d := *change.Document
	d.Collection = "default"
	d.ID = assay.DocumentID(d.Collection, d.URI)
	e := store.Entry{Document: d}
	for i, c := range change.Chunks {
		c.Document, c.ID = d.ID, assay.ChunkID(d.ID, d.Version, i)
		e.Chunks = append(e.Chunks, c)
	}
	return e
}

// catchUp indexes stored documents that are not yet in the index.
func (b *bench) catchUp(ctx context.Context, dir string) (err error) {
	w, done, err := openWriter(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ix, err := index.Open(ctx, w.tenant.IndexDir(), w.tenant.Content())
	if err != nil {
		return err
	}
	progress("    index")
	return errors.Join(ix.Flush(ctx), ix.Settle(ctx), ix.Close())
}

// A tenantWriter writes the only tenant of a data directory.
type tenantWriter struct {
	store.Writer
	tenant store.Tenant
}

func openWriter(ctx context.Context, dir string) (w tenantWriter, done func() error, err error) {
	s, err := sqlite.Open(ctx, dir)
	if err != nil {
		return w, nil, err
	}
	tenant, err := s.Tenant(ctx, "default")
	if err != nil {
		return w, nil, err
	}
	writer, err := tenant.Writer(ctx)
	if err != nil {
		return w, nil, errors.Join(err, tenant.Close())
	}
	return tenantWriter{writer, tenant}, func() error { return errors.Join(writer.Close(), tenant.Close()) }, nil
}
