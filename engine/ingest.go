package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// An IngestRequest selects the documents to ingest. Zero fields have the meaning that their
// comments state.
type IngestRequest struct {
	Paths      []string // files, folders, "-" for Stdin; required except with RetryFailed
	Collection string   // empty: "default"

	// RequireACL makes the collection reject documents without an ACL, from now on. False leaves
	// the collection unchanged.
	RequireACL bool

	Exclude      []string // patterns in .gitignore syntax, in addition to ignore files
	Hidden       bool     // include names that start with a dot
	MaxFileBytes int64    // larger files are skipped; 0: 32 MiB
	Verify       bool     // read every file, even if its size and time are unchanged

	// RetryFailed also parses the files that failed earlier and are unchanged. Without Paths it
	// tries those of all collections, and leaves everything else alone.
	RetryFailed bool

	// Passwords are tried in order on encrypted files. They are not stored.
	Passwords []string

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

	// Chunker, ChunkSize and ChunkOverlap set how the collection's documents are divided, from now
	// on: the name of one of Chunkers, and sizes in tokens. After a change this ingest divides the
	// documents of Paths again; other documents of the collection are divided again when their own
	// paths are ingested. Zero values keep the collection's settings.
	Chunker      string
	ChunkSize    int // 16 to 2000
	ChunkOverlap int // up to half of the size; -1: none

	// DescribeImages has the generator's model describe the figures of the documents that are
	// parsed, within DescribeBudget. The descriptions are marked as the model's words. The error is
	// assay.ErrInvalid if no model is the generator.
	DescribeImages bool
	DescribeBudget assay.Budget

	// Embedding, if set, is called while Wait makes vectors.
	Embedding func(EmbedProgress)

	onlyFailed bool // leave all files alone except those that failed

	// access, if set, is that of a caller who sends Stdin. No document that it does not allow is then
	// replaced or deleted.
	access *assay.Access
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
// ends, the stored documents stay and the next Ingest continues. An administrator's stop ends it in
// the same way, with assay.ErrStopped.
func (e *Engine) Ingest(ctx context.Context, req IngestRequest) (report IngestReport, err error) {
	report.Skipped = []Skipped{}
	err = e.unlessStopped(e.outgoing(ctx), func(ctx context.Context) (err error) {
		report, err = e.ingestAll(ctx, req)
		return err
	})
	return report, err
}

// ingestAll implements Ingest.
func (e *Engine) ingestAll(ctx context.Context, req IngestRequest) (IngestReport, error) {
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
	ctx, cancel := context.WithTimeout(ctx, e.fewTime)
	defer cancel()
	_, _ = e.Embed(ctx, nil)
}

// ingestText stores the documents without vectors.
func (e *Engine) ingestText(ctx context.Context, req IngestRequest) (IngestReport, error) {
	defer e.embedder.ingesting()()
	report := IngestReport{Skipped: []Skipped{}}
	err := e.write(ctx, e.patience, func(w store.Writer) (err error) {
		if req.RetryFailed && len(req.Paths) == 0 {
			report, err = e.retryFailed(ctx, w, req)
		} else {
			report, err = e.ingest(ctx, w, req)
		}
		return err
	})
	return report, err
}

// retryFailed tries the failed files of all collections again.
func (e *Engine) retryFailed(ctx context.Context, w store.Writer, req IngestRequest) (IngestReport, error) {
	report := IngestReport{Skipped: []Skipped{}}
	roots, err := ingest.FailedRoots(ctx, w)
	if err != nil {
		return report, err
	}
	var errs []error
	for _, collection := range slices.Sorted(maps.Keys(roots)) {
		again := req
		again.Paths, again.Collection, again.Hidden, again.onlyFailed = roots[collection], collection, true, true
		r, err := e.ingest(ctx, w, again)
		report.Add(r)
		if errs = append(errs, err); err != nil && !errors.As(err, new(*source.RootError)) {
			break
		}
	}
	return report, errors.Join(errs...)
}

func (e *Engine) ingest(ctx context.Context, w store.Writer, req IngestRequest) (IngestReport, error) {
	col, changed, err := e.collection(ctx, req)
	if err == nil && changed {
		err = w.SetCollection(ctx, col)
	}
	if err != nil {
		return IngestReport{Skipped: []Skipped{}}, err
	}
	began := e.config.Now()
	var at IngestProgress
	opts, err := e.ingestOptions(ctx, req)
	if err != nil {
		return IngestReport{Skipped: []Skipped{}}, err
	}
	opts.Progress = func(p IngestProgress) {
		at = p
		req.progress(p)
	}
	report, err := e.runIngest(ctx, w, req, opts)
	if err != nil && !errors.As(err, new(*source.RootError)) {
		return report, err
	}
	at.Committed, at.Indexing = nil, true
	req.progress(at)
	err = errors.Join(err, e.flush(ctx))
	report.ElapsedMS = e.config.Now().Sub(began).Milliseconds()
	return report, err
}

// runIngest runs an ingest and, if the request asks for it, describes the images of its documents.
func (e *Engine) runIngest(ctx context.Context, w store.Writer, req IngestRequest, opts ingest.Options) (IngestReport, error) {
	to := ingest.Store(w)
	if req.access != nil {
		to = &guardedStore{Store: w, access: *req.access, collection: cmp.Or(req.Collection, ingest.DefaultCollection)}
	}
	if !req.DescribeImages {
		return ingest.Run(ctx, to, opts)
	}
	d, err := e.newDescriber(ctx, req.DescribeBudget)
	if err != nil {
		return IngestReport{Skipped: []Skipped{}}, err
	}
	opts.Describe, opts.Describer = d.describe, d.identity()
	report, err := ingest.Run(ctx, to, opts)
	images, ended := d.close(ctx)
	report.Images = &images
	return report, errors.Join(err, ended)
}

// ingestOptions returns the options of an ingest, without its progress.
func (e *Engine) ingestOptions(ctx context.Context, req IngestRequest) (ingest.Options, error) {
	var ocr *parse.OCR
	if e.config.OCR != nil {
		var err error
		if ocr, err = e.config.OCR(ctx); err != nil {
			return ingest.Options{}, fmt.Errorf("look for tesseract: %w", err)
		}
	}
	col, _, err := e.collection(ctx, req)
	if err != nil {
		return ingest.Options{}, err
	}
	chunking, err := e.chunking(ctx, col)
	if err != nil {
		return ingest.Options{}, err
	}
	return ingest.Options{
		Roots:      req.Paths,
		Collection: req.Collection,
		Chunk:      chunking,
		Source: source.Options{
			Exclude:      req.Exclude,
			ExcludePaths: e.ownPaths(),
			Hidden:       req.Hidden,
			MaxFileBytes: req.MaxFileBytes,
			Stdin:        req.Stdin,
			StdinName:    req.StdinName,
		},
		Verify:     req.Verify,
		Retry:      req.RetryFailed,
		RetryOnly:  req.onlyFailed,
		Walk:       e.config.Walk,
		Parser:     e.config.Parser,
		OCR:        ocr,
		Passwords:  req.Passwords,
		Redescribe: e.redescriber(),
		Now:        e.config.Now,
	}, nil
}

// ownPaths returns the folders of the engine's own files, which are never ingested.
func (e *Engine) ownPaths() []string {
	if e.config.Dir != "" {
		return []string{e.config.Dir} // holds the index as well
	}
	if e.indexDir.path == "" {
		return nil
	}
	return []string{e.indexDir.path}
}

func (r *IngestRequest) progress(p IngestProgress) {
	if r.Progress != nil {
		r.Progress(p)
	}
}
