package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/queue"
	"github.com/assay-rag/assay/server"
)

// workerFlags are the flags of worker.
type workerFlags struct {
	documents int
	metrics   string
}

func (a *app) workerCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Work off the queue: documents, vectors, syncs, and runs whose server has died",
		Long: `Worker works off the queue in a PostgreSQL database until SIGTERM or Ctrl-C. Any number of
workers may run, on any machines, with the same configuration as the servers:

  document  stores what was uploaded to a server with --queue
  vectors   makes the vectors of new passages
  sync      syncs each source, one sync at a time (queue.sync_every)
  runs      resumes runs whose server or worker has died

A job of a worker that dies is taken over by another within seconds, and its effect happens
once. A job that fails is tried again after a growing pause; see: assay queue list.

The first signal lets documents in progress end and interrupts the rest where it can go on
later. A second one ends at once. --metrics serves /metrics, /healthz and /readyz.`,
		Example: `  export ASSAY_STORE=postgres://assay@db.example.com/assay
  assay worker
  assay worker --documents 8 --metrics 127.0.0.1:9485`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.worker(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	a.queueFlag(cmd)
	flags.IntVar(&f.documents, "documents", 0, fmt.Sprintf("store `n` documents at once (default the number of processors, here %d)", runtime.GOMAXPROCS(0)))
	flags.StringVar(&f.metrics, "metrics", "", "`address` that serves metrics and health (default none)")
	return cmd
}

// queueFlag adds --queue to a command.
func (a *app) queueFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.queue, "queue", "", "`url` of the queue's database, or store (default $ASSAY_QUEUE)")
}

// openQueue opens the queue of a command that needs one. By default it is in the database of the store.
func (a *app) openQueue(ctx context.Context, s config.Store, connections int) (*queue.Queue, error) {
	if s.Queue == "" && s.Remote() {
		s.Queue = config.StoreQueue
	}
	if s.Queue == "" {
		return nil, hinted{usagef("there is no queue"), "name a PostgreSQL database with --store, or with --queue for a data directory (docs/scale.md)"}
	}
	return queue.Open(ctx, s.QueueAddress(), connections, a.queueLog())
}

func (a *app) worker(ctx context.Context, f workerFlags) (err error) {
	if f.documents < 0 {
		return usagef("--documents %d is negative", f.documents)
	}
	s := &service{app: a, options: serveOptions{keys: true}, out: newLogWriter(a.stderr.w)}
	if s.log, err = a.serveTelemetry(ctx, s.out); err != nil {
		return err
	}
	a.redis.report = s.logRedis
	if s.settings, err = s.load(ctx); err != nil {
		return err
	}
	documents := f.documents
	if documents == 0 {
		documents = runtime.GOMAXPROCS(0)
	}
	q, err := a.openQueue(ctx, s.settings.store, documents+12)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	c := s.hostConfig(s.settings)
	c.NoBackground, c.AllowLocal, c.Webhooks.Background = true, true, false
	if s.host, err = engine.OpenHost(ctx, c); err != nil {
		return a.hintTenant(err, s.settings.tenant)
	}
	defer func() { err = errors.Join(err, s.host.Close()) }()
	auth, err := s.authenticator(s.settings)
	if err != nil {
		return err
	}
	s.auth.Store(auth)
	stop, err := s.serveHealth(ctx, f.metrics, q)
	if err != nil {
		return err
	}
	defer stop()
	s.log.Info("assay works", "store", s.settings.at.String(), "documents", documents, "version", version())
	s.notify("READY=1\nSTATUS=Working")
	err = q.Work(ctx, s.host, queue.Options{
		Documents: documents, SyncEvery: s.settings.store.SyncEvery, Grace: s.settings.server.Grace, Observe: s.worked,
	})
	s.notify("STOPPING=1")
	s.log.Info("shut down")
	return err
}

// worked logs an attempt of a job that failed, and counts all.
func (s *service) worked(attempt queue.Attempt) {
	s.app.telemetry.CountJob(attempt.Job.Kind, attempt.Job.State, attempt.Waited, attempt.Took)
	switch attempt.Job.State {
	case queue.Retrying:
		s.log.Warn("a job failed and is tried again", "job", attempt)
	case queue.Failed:
		s.log.Error("a job failed", "job", attempt)
	case queue.Done:
		s.log.Debug("a job is done", "job", attempt)
	}
}

// serveHealth serves the metrics and health of a worker until stop is called. An empty address serves
// nothing.
func (s *service) serveHealth(ctx context.Context, address string, q *queue.Queue) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	network, at, wrong := config.SplitListen(address)
	if wrong != "" || network == "unix" {
		return nil, hinted{usagef("--metrics %s: want HOST:PORT", address), "as in 127.0.0.1:9485"}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, at)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.app.telemetry.MetricsHandler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"alive"}`) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		limited, cancel := context.WithTimeout(r.Context(), healthTime)
		defer cancel()
		if _, err := q.Counts(limited); err != nil {
			s.log.Warn("not ready", "error", err)
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, `{"status":"not ready","checks":{"queue":"failed"}}`)
			return
		}
		fmt.Fprintln(w, `{"status":"ready","checks":{"queue":"ok"}}`)
	})
	health := server.NewHTTP(mux, s.settings.limits(), s.log)
	var serving sync.WaitGroup
	serving.Go(func() { _ = health.Serve(l) })
	s.log.Info("assay serves metrics", "url", "http://"+l.Addr().String()+"/metrics")
	return func() {
		_ = shutdown(health.Shutdown, time.Second)
		_ = health.Close()
		serving.Wait()
	}, nil
}
