package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/assay-rag/assay/ingest"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// An IngestRequest says which documents to bring in. Zero fields mean what their
// comments say.
type IngestRequest struct {
	Paths      []string // required: files, folders, "-" for Stdin
	Collection string   // empty: "default"

	// RequireACL makes the collection refuse documents without an ACL, now and
	// from now on. False leaves the collection as it is.
	RequireACL bool

	Exclude      []string // patterns in .gitignore's syntax, beside the ignore files
	Hidden       bool     // include names that start with a dot
	MaxFileBytes int64    // larger files are skipped; 0: 32 MiB
	Verify       bool     // read every file, even where size and time have not changed

	Stdin     io.Reader // what "-" reads; nil: os.Stdin
	StdinName string    // its name; the extension is a hint for the format

	// Progress, when set, is called at every step, by one goroutine at a time.
	Progress func(ingest.Progress)

	// Wait goes on, once the documents are stored, until their vectors are, too.
	Wait bool

	// WaitFew makes vectors before Ingest returns if at most so many passages lack
	// one, in at most fewTime, and as far as that can be done: a small store is
	// complete at once.
	WaitFew int

	// Embedding, when set, is called while Wait makes vectors.
	Embedding func(ingest.EmbedProgress)
}

// Ingest brings documents in: what is new or has changed is read, what has
// disappeared is removed, and the rest is left alone. Questions asked meanwhile,
// by any process, see each document as soon as it is stored.
//
// It returns when the text is stored, and searched. Vectors catch up with it: with
// Wait before Ingest returns, else in the background or when Embed is called; until
// then searches make those that they need. Report.Vectors says how far they are.
// With Wait, what keeps vectors from being made is an error.
//
// What is wrong with single files is in the report and no error. A path that
// does not exist, may not be read or holds nothing is assay.ErrInvalid; the
// others are ingested. While another process ingests it is assay.ErrLocked. When
// ctx ends, what was stored stays, and the next Ingest goes on.
func (e *Engine) Ingest(ctx context.Context, req IngestRequest) (ingest.Report, error) {
	report, err := e.ingestText(ctx, req)
	if err != nil && !errors.As(err, new(*source.RootError)) {
		return report, err
	}
	if req.Wait {
		vectors, embedErr := e.Embed(ctx, req.Embedding)
		report.Vectors = &vectors
		report.Interrupted = report.Interrupted || ctx.Err() != nil && errors.Is(embedErr, ctx.Err())
		return report, errors.Join(err, embedErr)
	}
	vectors, statusErr := e.vectorReport(ctx)
	if statusErr == nil && vectors != nil && vectors.Problem == "" && 0 < vectors.Missing() && vectors.Missing() <= req.WaitFew {
		e.embedFew(ctx)
		vectors, statusErr = e.vectorReport(ctx)
	}
	report.Vectors = vectors
	return report, errors.Join(err, statusErr)
}

// fewTime is how long an ingest waits for a few vectors.
const fewTime = 2 * time.Second

// embedFew makes the vectors of a few passages. What it cannot make is made later,
// like those of many: the report says that they are missing.
func (e *Engine) embedFew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fewTime)
	defer cancel()
	_, _ = e.Embed(ctx, nil)
}

// ingestText is Ingest without the vectors.
func (e *Engine) ingestText(ctx context.Context, req IngestRequest) (ingest.Report, error) {
	defer e.catching.ingesting()()
	report := ingest.Report{Skipped: []ingest.Skipped{}}
	err := e.write(ctx, writerPatience, func(w store.Writer) (err error) {
		report, err = e.ingest(ctx, w, req)
		return err
	})
	return report, err
}

func (e *Engine) ingest(ctx context.Context, w store.Writer, req IngestRequest) (ingest.Report, error) {
	if req.RequireACL {
		name := req.Collection
		if name == "" {
			name = ingest.DefaultCollection
		}
		if err := w.SetCollection(ctx, store.Collection{Name: name, RequireACL: true}); err != nil {
			return ingest.Report{Skipped: []ingest.Skipped{}}, fmt.Errorf("collection %s: %w", name, err)
		}
	}
	began := e.config.Now()
	var at ingest.Progress
	report, err := ingest.Run(ctx, w, ingest.Options{
		Roots:      req.Paths,
		Collection: req.Collection,
		Source: source.Options{
			Exclude:      req.Exclude,
			ExcludePaths: []string{e.config.Dir},
			Hidden:       req.Hidden,
			MaxFileBytes: req.MaxFileBytes,
			Stdin:        req.Stdin,
			StdinName:    req.StdinName,
		},
		Verify: req.Verify,
		Progress: func(p ingest.Progress) {
			at = p
			req.progress(p)
		},
		Now: e.config.Now,
	})
	if err != nil && !errors.As(err, new(*source.RootError)) {
		return report, err
	}
	at.Committed, at.Indexing = nil, true
	req.progress(at)
	err = errors.Join(err, e.flush(ctx))
	report.ElapsedMS = e.config.Now().Sub(began).Milliseconds()
	return report, err
}

func (r *IngestRequest) progress(p ingest.Progress) {
	if r.Progress != nil {
		r.Progress(p)
	}
}

// flush writes what the index has learned, so that the next process need not
// learn it again, and waits until its segments are merged: this process may be
// about to end.
func (e *Engine) flush(ctx context.Context) error {
	if _, err := e.search(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	ix := e.index
	e.mu.Unlock()
	err := ix.Flush(ctx)
	if err == nil {
		err = ix.Settle(ctx)
	}
	if err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	return nil
}
