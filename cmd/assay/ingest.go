package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/ingest"
)

// ingestFlags are the flags of ingest.
type ingestFlags struct {
	json    bool
	maxMB   int64
	request engine.IngestRequest
}

func (a *app) ingestCommand() *cobra.Command {
	var f ingestFlags
	cmd := &cobra.Command{
		Use:   "ingest [PATH...]",
		Short: "Add documents to the store, or update them",
		Long: `Ingest reads files and folders into the data directory: Markdown, HTML, plain text,
reStructuredText, source code, CSV, JSON and JSONL, detected by content. It skips files
that have not changed and removes documents whose files are gone from a folder. Files
that it cannot read are listed with the reason; all others are ingested.

It honours .gitignore and .assayignore. A sidecar file, NAME.EXT.metadata.json beside
NAME.EXT, gives a document metadata and an ACL. PATH may be - for standard input.

Documents can be searched as soon as they are stored. Vectors for large sets are made
later, when searches need them. --wait makes all vectors before ingest ends; without a
PATH it makes the missing vectors of the store, or of the store of --docs.

Ctrl-C keeps everything stored so far. Run the same command again to continue.`,
		Example: `  assay ingest ./handbook ./policies
  assay ingest --wait ./handbook
  assay ingest --wait --docs ./handbook
  assay ingest --collection legal --exclude 'drafts/' ./contracts
  curl -s https://example.com/terms.html | assay ingest - --name terms.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !f.request.Wait {
				return hinted{usagef("no path"), "for example: assay ingest ./handbook"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.request.Paths = args
			if len(args) == 0 {
				return a.embed(cmd.Context(), f)
			}
			return a.ingest(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the report as one JSON object")
	flags.BoolVar(&f.request.Wait, "wait", false, "make the vectors of all passages before returning")
	flags.StringVar(&f.request.Collection, "collection", "", "add the documents to this `collection` (default \"default\")")
	flags.BoolVar(&f.request.RequireACL, "require-acl", false, "from now on, reject documents without an ACL in this collection")
	flags.StringArrayVar(&f.request.Exclude, "exclude", nil, "skip files that match this .gitignore `pattern`; may be repeated")
	flags.BoolVar(&f.request.Hidden, "hidden", false, "include files and folders whose names start with a dot")
	flags.Int64Var(&f.maxMB, "max-size", 0, "skip files larger than this many `MiB` (default 32)")
	flags.BoolVar(&f.request.Verify, "verify", false, "read every file, even if its size and time have not changed,\nand repair documents whose stored text is damaged")
	flags.StringVar(&f.request.StdinName, "name", "", "`name` of the document on standard input, with an extension")
	return cmd
}

func (a *app) ingest(ctx context.Context, f ingestFlags) error {
	if len(a.docs) > 0 {
		return usagef("--docs is for ask and search; give the paths to ingest as arguments")
	}
	if f.maxMB < 0 || f.maxMB > math.MaxInt64>>20 {
		return usagef("--max-size %d is negative or too large", f.maxMB)
	}
	dir, err := a.dataDir(ctx)
	if err != nil {
		return err
	}
	e, err := a.openEngine(ctx, dir, searching)
	if err != nil {
		return err
	}
	defer e.Close()
	shown := a.progress()
	defer shown.clear()
	f.request.Stdin = a.stdin
	f.request.MaxFileBytes = f.maxMB << 20
	f.request.WaitFew = fewVectors
	f.request.Progress, f.request.Embedding = shown.ingest, shown.embed
	report, err := e.Ingest(ctx, f.request)
	shown.clear()
	if err != nil && report.Added+report.Updated+report.Unchanged+len(report.Skipped) == 0 {
		return err
	}
	if err := a.printReport(report, f); err != nil {
		return err
	}
	switch stored := report.Added + report.Updated + report.Unchanged; {
	case report.Interrupted, errors.Is(err, context.Canceled):
		return hinted{err, "everything stored so far is kept; run the same command to continue"}
	case err == nil && stored == 0 && len(report.Skipped) > 0:
		return usagef("nothing was ingested: every file was skipped")
	}
	return err
}

// embed makes the vectors of documents that were ingested before. With --docs it first brings the
// documents up to date.
func (a *app) embed(ctx context.Context, f ingestFlags) error {
	shown := a.progress()
	defer shown.clear()
	e, err := a.openToAsk(ctx, shown, searching, false)
	if err != nil {
		return err
	}
	defer e.Close()
	vectors, err := e.Embed(ctx, shown.embed)
	shown.clear()
	if err != nil && vectors.Stored == 0 {
		return err
	}
	if f.json {
		report := ingest.Report{Skipped: []ingest.Skipped{}, Vectors: &vectors, Interrupted: ctx.Err() != nil}
		if err := writeJSON(a.stdout, report); err != nil {
			return err
		}
	} else {
		a.writeVectors(vectors, true)
	}
	if errors.Is(err, context.Canceled) {
		return hinted{err, "everything stored so far is kept; run the same command to continue"}
	}
	return err
}

// printReport prints the result of an ingest and the state of the vectors.
func (a *app) printReport(r ingest.Report, f ingestFlags) error {
	if f.json {
		return writeJSON(a.stdout, r)
	}
	writeReport(a.stdout, r)
	if r.Vectors != nil {
		a.writeVectors(*r.Vectors, f.request.Wait)
	}
	return nil
}

// writeVectors prints the state of the vectors and how the missing ones are made. After a wait it
// prints a line even if no vector was missing.
func (a *app) writeVectors(v ingest.VectorReport, waited bool) {
	for _, f := range v.Failed {
		fmt.Fprintf(a.stdout, "no vector for %s: %s\n", place(f.URI, f.Line, 0), f.Detail)
	}
	line := fmt.Sprintf("%d of %s with vectors of %s", v.Embedded, count(v.Chunks, "passage", "passages"), v.Model)
	switch took := time.Duration(v.ElapsedMS) * time.Millisecond; {
	case waited:
		line = fmt.Sprintf("%s made in %s%s; %s", count(v.Stored, "vector", "vectors"), duration(took), perSecond(v.Stored, took), line)
	case v.Problem != "":
		line = "no encoder, so searches use text alone: " + v.Problem
	case v.Missing() == 0:
		return
	default:
		line += fmt.Sprintf("; searches make the vectors they need; to make all now, run: assay ingest --wait%s", a.sameStore())
	}
	fmt.Fprintln(a.stdout, line)
}

// perSecond formats a rate in parentheses, or returns "" if it is meaningless.
func perSecond(n int, took time.Duration) string {
	if n == 0 || took <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f a second)", float64(n)/took.Seconds())
}

// writeReport prints the result of an ingest and the skipped files.
func writeReport(w io.Writer, r ingest.Report) {
	for _, s := range r.Skipped {
		fmt.Fprintln(w, skippedLine(s))
	}
	fmt.Fprintln(w, reportLine(r))
}

func skippedLine(s ingest.Skipped) string {
	return fmt.Sprintf("skipped %s: %s%s", shortPath(s.URI), s.Detail, became(s))
}

// became describes the fate of stored documents that were skipped.
func became(s ingest.Skipped) string {
	switch {
	case s.Removed:
		return " (its stored version was removed)"
	case s.Kept > 0:
		return fmt.Sprintf(" (%s stored earlier kept)", count(s.Kept, "document", "documents"))
	}
	return ""
}

func reportLine(r ingest.Report) string {
	line := fmt.Sprintf("%d added, %d updated, %d unchanged, %d removed, %d skipped; %.1f MB in %s", r.Added, r.Updated,
		r.Unchanged, r.Removed, len(r.Skipped), float64(r.Bytes)/1e6, duration(time.Duration(r.ElapsedMS)*time.Millisecond))
	if r.Interrupted {
		line += "; interrupted"
	}
	return line
}

// ingest shows the progress of an ingest.
func (p *progress) ingest(at ingest.Progress) {
	switch {
	case at.Indexing:
		p.clear() // even if its last line was shown only briefly
		p.update("writing the index …")
	case at.Walked && at.Current != "":
		p.update("reading %d of %s: %s", at.Done, count(at.Found, "file", "files"), shortPath(at.Current))
	case at.Current != "":
		p.update("found %s so far, read %d: %s", count(at.Found, "file", "files"), at.Done, shortPath(at.Current))
	}
}

// embed shows the progress of making vectors.
func (p *progress) embed(at ingest.EmbedProgress) {
	switch {
	case at.Rate == 0:
		p.update("making vectors of %s …", count(at.Left, "passage", "passages"))
	case at.Left == 0:
		p.update("%s made, %.0f a second", count(at.Stored, "vector", "vectors"), at.Rate)
	default:
		p.update("%s made, %.0f a second; %d to go, about %s", count(at.Stored, "vector", "vectors"), at.Rate,
			at.Left, at.ETA.Round(time.Second))
	}
}

// fewVectors is the number of vectors that an ingest makes before it ends, even without --wait. It
// takes less than a second.
const fewVectors = 64

// lockWait is how long ask --docs waits for another process that reads the same documents.
// lockRetry is the interval between its attempts.
const (
	lockWait  = 30 * time.Second
	lockRetry = 100 * time.Millisecond
)

// ingestDocs brings the store of --docs up to date. If another process holds the lock, it waits up
// to lockWait.
func (a *app) ingestDocs(ctx context.Context, e *engine.Engine, shown *progress) (ingest.Report, error) {
	req := engine.IngestRequest{Paths: a.docs, Stdin: a.stdin, Progress: shown.ingest, WaitFew: fewVectors}
	for waited := time.Duration(0); ; waited += lockRetry {
		report, err := e.Ingest(ctx, req)
		if !errors.Is(err, assay.ErrLocked) || waited >= lockWait {
			return report, err
		}
		shown.update("waiting: %v", err)
		select {
		case <-ctx.Done():
			return report, ctx.Err()
		case <-time.After(lockRetry):
		}
	}
}
