package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/internal/queue"
)

func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "List, retry and drop the jobs of the queue",
		Long: `The queue holds what workers do later: documents that were uploaded to a server with --queue,
vectors, syncs of sources and interrupted runs. A job that fails is tried again after a growing
pause, from 2 seconds to 5 minutes, and fails for good after 25 attempts, or at once if trying
again cannot help, as with a document that cannot be parsed. Jobs that failed are kept for 90
days, and the others for a day after they are done.`,
		Example: `  assay queue list
  assay queue list --state failed --json
  assay queue retry 4711
  assay queue drop 4711`,
	}
	cmd.AddCommand(a.queueListCommand(), a.queueRetryCommand(), a.queueDropCommand())
	return cmd
}

// queueLog returns the log of a queue, which has warnings alone.
func (a *app) queueLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(newLogWriter(a.stderr.w), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// withQueue calls fn with the queue.
func (a *app) withQueue(ctx context.Context, fn func(*queue.Queue) error) error {
	s, err := a.storeSettings()
	if err != nil {
		return err
	}
	q, err := a.openQueue(ctx, s, 0)
	if err != nil {
		return err
	}
	return errors.Join(fn(q), q.Close())
}

func (a *app) queueListCommand() *cobra.Command {
	var f queue.Filter
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs that are not done",
		Long: `List prints the jobs that are not done, oldest first: ID, state, kind, tenant, document or source,
attempts, and the error of the last one. The states are queued, running, retrying, failed and done.
With --tenant or $ASSAY_TENANT only that tenant's are listed.`,
		Example: `  assay queue list
  assay queue list --state failed`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Tenant = a.namedTenant()
			return a.withQueue(cmd.Context(), func(q *queue.Queue) error {
				jobs, err := q.List(cmd.Context(), f)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.stdout, jobs)
				}
				return a.writeJobs(jobs)
			})
		},
	}
	cmd.Flags().StringVar(&f.State, "state", "", "list the jobs in this `state` (default all but done)")
	cmd.Flags().IntVar(&f.Most, "most", 100, "list at most `n` jobs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	a.queueFlag(cmd)
	return cmd
}

// writeJobs prints jobs for people.
func (a *app) writeJobs(jobs []queue.Job) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, j := range jobs {
		when := ""
		if j.State == queue.Retrying {
			when = "next " + j.Next.Local().Format(time.DateTime) + " "
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s%s\n", j.ID, j.State, j.Kind, plainLine(j.Tenant), plainLine(j.Name),
			count(j.Attempt, "attempt", "attempts"), when, plainLine(j.Error))
	}
	return table.Flush()
}

// jobCommand completes a command that changes a job.
func (a *app) jobCommand(cmd *cobra.Command, done string, change func(context.Context, *queue.Queue, int64) error) *cobra.Command {
	cmd.Args = oneArgument("the ID of a job")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return hinted{usagef("%q is no ID of a job", args[0]), "see: assay queue list"}
		}
		err = a.withQueue(cmd.Context(), func(q *queue.Queue) error { return change(cmd.Context(), q, id) })
		if err != nil {
			return hintList(err, "assay queue list")
		}
		_, err = fmt.Fprintf(a.stdout, "job %d %s\n", id, done)
		return err
	}
	a.queueFlag(cmd)
	return cmd
}

func (a *app) queueRetryCommand() *cobra.Command {
	return a.jobCommand(&cobra.Command{
		Use:     "retry ID",
		Short:   "Try a job again now",
		Long:    `Retry makes a job that failed, or waits for its next attempt, be tried now.`,
		Example: `  assay queue retry 4711`,
	}, "is tried again", func(ctx context.Context, q *queue.Queue, id int64) error {
		_, err := q.Retry(ctx, id)
		return err
	})
}

func (a *app) queueDropCommand() *cobra.Command {
	return a.jobCommand(&cobra.Command{
		Use:   "drop ID",
		Short: "Remove a job, and the document that it would store",
		Long: `Drop removes a job that is not running. A document that it would have stored is removed from the
queue; a version of the document that is stored already stays.`,
		Example: `  assay queue drop 4711`,
	}, "is dropped", func(ctx context.Context, q *queue.Queue, id int64) error { return q.Drop(ctx, id) })
}
