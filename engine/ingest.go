package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// An IngestRequest selects the documents to ingest. Zero fields have the meaning that their
// comments state.
type IngestRequest struct {
	Paths      []string // required: files, folders, "-" for Stdin
	Collection string   // empty: "default"

	// RequireACL makes the collection reject documents without an ACL, from now on. False leaves
	// the collection unchanged.
	RequireACL bool

	Exclude      []string // patterns in .gitignore syntax, in addition to ignore files
	Hidden       bool     // include names that start with a dot
	MaxFileBytes int64    // larger files are skipped; 0: 32 MiB
	Verify       bool     // read every file, even if its size and time are unchanged

	Stdin     io.Reader // read for "-"; nil: os.Stdin
	StdinName string    // name of Stdin; its extension is a hint for the format

	// Progress, if set, is called at every step, by one goroutine at a time.
	Progress func(IngestProgress)

	// Wait makes Ingest return only when the vectors of the documents are stored as well.
	Wait bool

	// WaitFew makes Ingest embed the missing passages before it returns if there are at most this
	// many. It does so for at most fewTime and ignores errors. A small store is then complete at
	// once.
	WaitFew int

	// Embedding, if set, is called while Wait makes vectors.
	Embedding func(EmbedProgress)
}

// Ingest reads new and changed documents, and removes documents whose source is gone. Other
// processes can search a document once it is stored.
//
// Ingest returns when the text is stored and searchable. With Wait, the vectors are made before
// Ingest returns; otherwise they are made in the background or by Embed, and until then searches
// make those that they need. Report.Vectors states their coverage. With Wait, a failure to make
// vectors is an error.
//
// Problems with single files are listed in the report and are not errors. If a path does not
// exist, is not readable or contains nothing, Ingest returns assay.ErrInvalid after it has
// ingested the other paths. It returns assay.ErrLocked while another process ingests. If ctx
// ends, the stored documents stay and the next Ingest continues.
func (e *Engine) Ingest(ctx context.Context, req IngestRequest) (IngestReport, error) {
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

// fewTime is how long an ingest waits for the vectors of WaitFew.
const fewTime = 2 * time.Second

// embedFew embeds a few passages for at most fewTime. Errors are ignored, because the report
// counts the missing vectors and they are made later.
func (e *Engine) embedFew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fewTime)
	defer cancel()
	_, _ = e.Embed(ctx, nil)
}

// ingestText stores the documents without vectors.
func (e *Engine) ingestText(ctx context.Context, req IngestRequest) (IngestReport, error) {
	defer e.embedder.ingesting()()
	report := IngestReport{Skipped: []Skipped{}}
	err := e.write(ctx, writerPatience, func(w store.Writer) (err error) {
		report, err = e.ingest(ctx, w, req)
		return err
	})
	return report, err
}

func (e *Engine) ingest(ctx context.Context, w store.Writer, req IngestRequest) (IngestReport, error) {
	if req.RequireACL {
		name := req.Collection
		if name == "" {
			name = ingest.DefaultCollection
		}
		if err := w.SetCollection(ctx, store.Collection{Name: name, RequireACL: true}); err != nil {
			return IngestReport{Skipped: []Skipped{}}, fmt.Errorf("collection %s: %w", name, err)
		}
	}
	began := e.config.Now()
	var at IngestProgress
	report, err := ingest.Run(ctx, w, ingest.Options{
		Roots:      req.Paths,
		Collection: req.Collection,
		Source: source.Options{
			Exclude:      req.Exclude,
			ExcludePaths: e.ownPaths(),
			Hidden:       req.Hidden,
			MaxFileBytes: req.MaxFileBytes,
			Stdin:        req.Stdin,
			StdinName:    req.StdinName,
		},
		Verify: req.Verify,
		Progress: func(p IngestProgress) {
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

// ownPaths returns the folders of the engine's own files, which are never ingested.
func (e *Engine) ownPaths() []string {
	if e.config.Store == nil {
		return []string{e.config.Dir} // holds the index as well
	}
	return []string{e.indexDir.path}
}

func (r *IngestRequest) progress(p IngestProgress) {
	if r.Progress != nil {
		r.Progress(p)
	}
}

// flush writes pending changes to the index on disk, so that the next process need not repeat the
// work. It waits for segment merges to finish, because this process may be about to exit.
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
