package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/parse"
)

// ingestFlags are the flags of ingest.
type ingestFlags struct {
	json         bool
	dryRun       bool
	watch        bool
	maxMB        int64
	passwordFile string
	request      engine.IngestRequest
}

func (a *app) ingestCommand() *cobra.Command {
	var f ingestFlags
	cmd := &cobra.Command{
		Use:   "ingest [PATH...]",
		Short: "Add documents to the store, or update them",
		Long: `Ingest reads files and folders into the data directory: PDF, Word, Excel, PowerPoint,
OpenDocument, EPUB, RTF, HTML, XML, Markdown and other markup, notebooks, CSV, JSON, source
code, text; mail and archives with the documents inside; scans and images with tesseract.
The content decides, not the name. Unchanged files are skipped, documents whose files are
gone from a folder are removed, and files that it cannot read are listed. It honours
.gitignore and .assayignore; NAME.EXT.metadata.json beside a file has metadata and an ACL.

Text can be searched at once; --wait makes all vectors, also without a PATH. After Ctrl-C
run the same command again.
Chunkers: ` + chunkerNames() + ".",
		Example: `  assay ingest ./handbook ./policies
  assay ingest --collection legal --exclude 'drafts/' ./contracts
  curl -s https://example.com/terms.html | assay ingest - --name terms.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.watch && (len(args) == 0 || slices.Contains(args, "-")) {
				return usagef("--watch needs files or folders")
			}
			if len(args) == 0 && !f.request.Wait && !f.request.RetryFailed {
				return hinted{usagef("no path"), "for example: assay ingest ./handbook"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.request.Paths = args
			switch {
			case f.dryRun:
				return a.plan(cmd.Context(), f)
			case len(args) == 0 && !f.request.RetryFailed:
				return a.embed(cmd.Context(), f)
			}
			return a.ingest(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the report as one JSON object")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only list what would be read, and what the vectors would cost")
	flags.BoolVar(&f.request.RetryFailed, "retry-failed", false, "try files again that failed earlier; without a PATH all of them")
	flags.BoolVar(&f.request.DescribeImages, "describe-images", false, "have the generator's model describe figures and charts")
	flags.IntVar(&f.request.DescribeBudget.Tokens, "describe-tokens", 500_000, "spend at most `n` tokens on descriptions")
	flags.StringVar(&f.request.Chunker, "chunker", "", "chunker `name` of this collection, from now on (default structure)")
	flags.IntVar(&f.request.ChunkSize, "chunk-size", 0, "largest `tokens` of its chunks, from now on (default 200)")
	flags.IntVar(&f.request.ChunkOverlap, "chunk-overlap", 0, "`tokens` that its chunks repeat; -1: none (default 40)")
	flags.StringVar(&f.passwordFile, "password-file", "", "open encrypted files with the passwords in this `file`, one a line")
	flags.BoolVar(&f.request.Wait, "wait", false, "make the vectors of all passages before returning")
	flags.BoolVar(&f.watch, "watch", false, "ingest again when files change, until interrupted")
	flags.StringVar(&f.request.Collection, "collection", "", "add the documents to this `collection` (default \"default\")")
	flags.BoolVar(&f.request.RequireACL, "require-acl", false, "from now on, reject documents without an ACL in this collection")
	flags.StringArrayVar(&f.request.Exclude, "exclude", nil, "skip files that match this .gitignore `pattern`; may be repeated")
	flags.BoolVar(&f.request.Hidden, "hidden", false, "include files and folders whose names start with a dot")
	flags.Int64Var(&f.maxMB, "max-size", 0, "skip files larger than this many `MiB` (default 32)")
	flags.BoolVar(&f.request.Verify, "verify", false, "read unchanged files too, and repair damaged documents")
	flags.StringVar(&f.request.StdinName, "name", "", "`name` of the document on standard input, with an extension")
	return cmd
}

// chunkerNames lists the values of --chunker.
func chunkerNames() string {
	var names []string
	for _, c := range engine.Chunkers() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

func (a *app) ingest(ctx context.Context, f ingestFlags) error {
	if len(a.docs) > 0 {
		return usagef("--docs is for ask and search; give the paths to ingest as arguments")
	}
	if f.maxMB < 0 || f.maxMB > math.MaxInt64>>20 {
		return usagef("--max-size %d is negative or too large", f.maxMB)
	}
	if err := a.readPasswords(&f); err != nil {
		return err
	}
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	n := searching
	if f.request.DescribeImages {
		n = answering
	}
	e, err := a.openEngine(ctx, at, n)
	if err != nil {
		return err
	}
	defer e.Close()
	f.request.Stdin = a.stdin
	f.request.MaxFileBytes = f.maxMB << 20
	f.request.WaitFew = fewVectors
	if f.watch {
		return a.ingestWatching(ctx, e, f)
	}
	return a.ingestOnce(ctx, e, f)
}

func (a *app) ingestOnce(ctx context.Context, e *engine.Engine, f ingestFlags) error {
	shown := a.progress()
	defer shown.clear()
	f.request.Progress, f.request.Embedding = shown.ingest, shown.embed
	report, err := e.Ingest(ctx, f.request)
	shown.clear()
	if err != nil && report.Added+report.Updated+report.Unchanged+len(report.Skipped) == 0 {
		return err
	}
	if err := a.printReport(report, f); err != nil {
		return err
	}
	switch stored := report.Added + report.Updated + report.Unchanged + report.Duplicates; {
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
	writeReport(a.stdout, r, a.sameStore())
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

// writeReport prints the result of an ingest, the skipped files and the pages without text. flags
// select the store in the commands that it recommends.
func writeReport(w io.Writer, r ingest.Report, flags string) {
	earlier, noText := false, false
	for _, s := range r.Skipped {
		fmt.Fprintln(w, skippedLine(s))
		earlier = earlier || s.Retriable()
		noText = noText || s.Reason == ingest.NeedsProgram && strings.Contains(s.Detail, parse.NeedsOCR)
	}
	for _, p := range r.Pages {
		fmt.Fprintf(w, "%s: %s\n", shortPath(p.URI), pagesLine(p.PageCounts))
		noText = noText || p.NoText > 0
	}
	if earlier {
		fmt.Fprintln(w, "to try again what failed earlier, run: assay ingest --retry-failed"+flags)
	}
	if noText && r.OCR == "" {
		fmt.Fprintln(w, "to read images and pages without text, "+installTesseract()+"; the next ingest reads them")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "%s: %s\n", shortPath(n.URI), n.Text)
	}
	if r.RecognizedDocuments > 0 {
		fmt.Fprintln(w, recognizedLine(r))
	}
	if r.Images != nil {
		fmt.Fprintln(w, imagesLine(*r.Images))
	}
	fmt.Fprintln(w, reportLine(r))
}

// recognizedLine counts the documents with recognised text.
func recognizedLine(r ingest.Report) string {
	line := "text recognised in images of " + count(r.RecognizedDocuments, "document", "documents")
	if r.RecognizedPages > 0 {
		line += ", with " + count(r.RecognizedPages, "page", "pages") + " of no other text"
	}
	if r.OCR != "" {
		line += ", by " + r.OCR
	}
	return line
}

// imagesLine describes the images that a model described.
func imagesLine(r ingest.ImageReport) string {
	line := fmt.Sprintf("%s described by %s, %d described earlier, %d without a description", count(r.Described, "image", "images"), r.Model, r.Reused, r.Skipped)
	if r.Missing > 0 {
		line += fmt.Sprintf(", %d left: %s", r.Missing, r.Problem)
	}
	if r.Run != "" {
		line += "; run " + r.Run
	}
	return line
}

// installTesseract says how to install the program that recognises text.
func installTesseract() string {
	switch runtime.GOOS {
	case "darwin":
		return "install tesseract: brew install tesseract"
	case "windows":
		return "install tesseract: winget install UB-Mannheim.TesseractOCR"
	}
	return "install tesseract, such as with: apt install tesseract-ocr"
}

// pagesLine formats the number of pages of a document that have no text: "3 of 12 pages have no text".
func pagesLine(n assay.PageCounts) string {
	var parts []string
	if n.NoText > 0 || n.Failed == 0 {
		parts = append(parts, fmt.Sprintf("%d of %s no text", n.NoText, count(n.Total, "page has", "pages have")))
	}
	if n.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s not be read", n.Failed, count(n.Total, "page could", "pages could")))
	}
	return strings.Join(parts, ", ")
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
	case s.Earlier:
		return " (failed earlier, unchanged)"
	}
	return ""
}

func reportLine(r ingest.Report) string {
	line := fmt.Sprintf("%d added, %d updated, %d unchanged, %d removed, %d skipped", r.Added, r.Updated, r.Unchanged, r.Removed, len(r.Skipped))
	if r.Duplicates > 0 {
		line += ", " + count(r.Duplicates, "duplicate", "duplicates")
	}
	line += fmt.Sprintf("; %s in %s", megabytes(r.Bytes), duration(time.Duration(r.ElapsedMS)*time.Millisecond))
	if r.Interrupted {
		line += "; interrupted"
	}
	return line
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// ingest shows the progress of an ingest.
func (p *progress) ingest(at ingest.Progress) {
	if p.began.IsZero() {
		p.began = p.clock()
	}
	line := fmt.Sprintf("found %s so far, read %d", count(at.Found, "file", "files"), at.Done)
	switch {
	case at.Indexing:
		p.clear() // even if its last line was shown only briefly
		p.update("writing the index …")
		return
	case at.Current == "":
		return
	case at.Walked:
		line = fmt.Sprintf("reading %d of %s", at.Done, count(at.Found, "file", "files"))
	}
	if at.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped", at.Skipped)
	}
	p.update("%s%s: %s", line, p.pace(at), shortPath(at.Current))
}

// pace formats the rate of an ingest and the time left, once they mean something.
func (p *progress) pace(at ingest.Progress) string {
	took := p.clock().Sub(p.began)
	if took < time.Second || at.Done == 0 {
		return ""
	}
	text := fmt.Sprintf(", %.1f files a second", float64(at.Done)/took.Seconds())
	if at.Walked && at.DoneBytes > 0 && at.Done < at.Found {
		left := time.Duration(float64(took) * float64(at.FoundBytes-at.DoneBytes) / float64(at.DoneBytes))
		text += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	return text
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
