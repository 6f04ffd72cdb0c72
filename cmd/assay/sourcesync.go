package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/watch"
)

// syncFlags are the flags of source sync.
type syncFlags struct {
	json    bool
	every   time.Duration
	watch   bool
	request engine.SyncRequest
}

// watchEvery is the interval of syncs while folders are watched, because a watch may miss changes.
const watchEvery = 10 * time.Minute

func (a *app) sourceSyncCommand() *cobra.Command {
	var f syncFlags
	cmd := &cobra.Command{
		Use:   "sync [NAME...]",
		Short: "Bring the documents of the sources up to date",
		Long: `Sync reads what changed in the named sources, or in all, since their last sync. Items that
cannot be read are listed with the reason; their stored documents stay, and the next sync
tries again. Documents whose permissions are not known are removed.

If a source no longer lists more than a tenth of its documents, nothing is deleted and the
exit code is 6, because the source may be misconfigured. --yes deletes them.

Ctrl-C keeps everything stored so far. Run the same command again to continue.`,
		Example: `  assay source sync
  assay source sync contracts --dry-run
  assay source sync --every 10m
  assay source sync handbook --watch`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.syncSources(cmd.Context(), args, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the report of each source as one line of JSON")
	flags.DurationVar(&f.every, "every", 0, "sync again after each `interval`, such as 10m, until interrupted")
	flags.BoolVar(&f.watch, "watch", false, "also sync folders as soon as their files change; implies --every 10m")
	flags.BoolVar(&f.request.Yes, "yes", false, "delete the documents that a source no longer lists, however many")
	flags.BoolVar(&f.request.DryRun, "dry-run", false, "show what would change; change nothing and fetch nothing")
	flags.BoolVar(&f.request.Full, "full", false, "list and fetch everything again")
	return cmd
}

func (a *app) syncSources(ctx context.Context, names []string, f syncFlags) error {
	if f.every != 0 && f.every < engine.MinSyncInterval {
		return usagef("--every %v is less than %v", f.every, engine.MinSyncInterval)
	}
	if f.watch && f.every == 0 {
		f.every = watchEvery
	}
	e, err := a.openSources(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	all, err := e.Sources(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if len(all) == 0 {
			return hinted{usagef("there are no sources"), "see: assay source add --help"}
		}
		for _, s := range all {
			names = append(names, s.Name)
		}
	}
	if f.every == 0 {
		return a.syncEach(ctx, e, names, f)
	}
	return a.syncEvery(ctx, e, names, f)
}

// syncEvery syncs at intervals and, with --watch, when files change, until ctx ends. Errors are
// printed and do not end it.
func (a *app) syncEvery(ctx context.Context, e *engine.Engine, names []string, f syncFlags) error {
	schedule := newSyncSchedule(names, f.every)
	defer schedule.ticker.Stop()
	var watchers sync.WaitGroup
	defer watchers.Wait()
	if f.watch {
		for _, name := range names {
			watchers.Go(func() { schedule.failed <- watchSource(ctx, e, name, schedule.changed) })
		}
	}
	due := names
	for {
		if err := a.syncEach(ctx, e, due, f); err != nil && ctx.Err() == nil {
			fmt.Fprintln(a.stderr, "assay: sync: "+message(err))
		}
		f.request.Full = false // once is enough
		var err error
		if due, err = schedule.next(ctx); ctx.Err() != nil {
			return hinted{ctx.Err(), "everything stored so far is kept; run the same command to continue"}
		} else if err != nil {
			fmt.Fprintln(a.stderr, "assay: watch: "+message(err))
		}
	}
}

// A syncSchedule is the order of the syncs of syncEvery.
type syncSchedule struct {
	names   []string
	ticker  *time.Ticker // all sources are due
	changed chan string  // a source whose files changed
	failed  chan error   // the end of a watch
}

func newSyncSchedule(names []string, every time.Duration) *syncSchedule {
	return &syncSchedule{
		names: names, ticker: time.NewTicker(every),
		changed: make(chan string, len(names)), failed: make(chan error, len(names)),
	}
}

// next waits for the next sources to be synced. The error is ctx's or that of a watch that ended.
func (s *syncSchedule) next(ctx context.Context) ([]string, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case name := <-s.changed:
		return []string{name}, nil
	case err := <-s.failed:
		return nil, err
	case <-s.ticker.C:
		return s.names, nil
	}
}

// watchSource sends the name of a source when its files change, until ctx ends. Sources that cannot
// be watched are left to the interval.
func watchSource(ctx context.Context, e *engine.Engine, name string, changed chan<- string) error {
	err := e.WatchSource(ctx, name, func() {
		select {
		case changed <- name:
		case <-ctx.Done():
		}
	})
	if errors.Is(err, assay.ErrInvalid) {
		return nil
	}
	return err
}

// ingestWatching ingests whenever files change, and at intervals, until ctx ends. Errors are printed
// and do not end it.
func (a *app) ingestWatching(ctx context.Context, e *engine.Engine, f ingestFlags) error {
	roots := make([]string, len(f.request.Paths))
	for i, path := range f.request.Paths {
		var err error
		if roots[i], err = filepath.Abs(path); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	changed, failed := make(chan struct{}, 1), make(chan error, 1)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer stop()
	watcher.Go(func() {
		failed <- watch.Folders(ctx, roots, func() {
			select {
			case changed <- struct{}{}:
			default: // an ingest is due already
			}
		})
	})
	for {
		if err := a.ingestOnce(ctx, e, f); err != nil && ctx.Err() == nil {
			fmt.Fprintln(a.stderr, "assay: ingest: "+message(err))
		}
		select {
		case <-ctx.Done():
			return hinted{ctx.Err(), "everything stored so far is kept; run the same command to continue"}
		case err := <-failed:
			return err
		case <-changed:
		case <-time.After(watchEvery):
		}
	}
}

// syncEach syncs the sources one after the other. An error of one does not keep the others.
func (a *app) syncEach(ctx context.Context, e *engine.Engine, names []string, f syncFlags) error {
	var errs []error
	for _, name := range names {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		if err := a.syncOne(ctx, e, name, f); err != nil {
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	if errors.Is(err, context.Canceled) {
		return hinted{err, "everything stored so far is kept; run the same command to continue"}
	}
	return err
}

func (a *app) syncOne(ctx context.Context, e *engine.Engine, name string, f syncFlags) error {
	shown := a.progress()
	defer shown.clear()
	f.request.Name, f.request.Progress = name, shown.ingest
	report, err := e.Sync(ctx, f.request)
	shown.clear()
	if f.json {
		return errors.Join(a.printSyncJSON(report, err), err)
	}
	if err != nil && report.Collection == "" {
		return err // it did not begin
	}
	for _, s := range report.Skipped {
		fmt.Fprintf(a.stdout, "%s: %s\n", name, skippedLine(s))
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", name, syncLine(report))
	return err
}

// printSyncJSON prints a report with its error on one line.
func (a *app) printSyncJSON(report engine.SyncReport, err error) error {
	line := struct {
		engine.SyncReport
		Error string `json:"error,omitempty"`
	}{SyncReport: report}
	if err != nil {
		line.Error = message(err)
	}
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", data)
	return err
}

func syncLine(r engine.SyncReport) string {
	line := reportLine(r.Report) + fmt.Sprintf("; %s", count(r.Documents, "document", "documents"))
	if r.DryRun {
		line = "would be: " + line
	}
	if r.Retry > 0 {
		line += fmt.Sprintf("; %s to be retried", count(r.Retry, "item", "items"))
	}
	if r.Missing > 0 {
		line += fmt.Sprintf("; %s no longer listed and kept", count(r.Missing, "document", "documents"))
	}
	return line
}
