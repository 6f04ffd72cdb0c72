package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// The queues, each with workers of its own, so that long jobs do not delay short ones.
const (
	queueDocuments = "documents"
	queueVectors   = "vectors"
	queueSync      = "sync"
	queueControl   = "control" // KindRuns and KindPlan
)

// Times of jobs.
const (
	documentTime  = 15 * time.Minute // the longest time to store a document
	vectorsPause  = time.Second      // between a document and the making of its vectors
	lockedPause   = time.Second      // after which a document is tried again whose lock was taken
	stoppedPause  = 15 * time.Second // the same while an administrator has stopped the tenant
	longestPause  = 5 * time.Minute  // between two attempts
	maxAttempts   = 25
	keepDone      = 24 * time.Hour      // how long jobs are kept that are done
	keepFailed    = 90 * 24 * time.Hour // how long those that failed
	defaultResume = 3 * time.Second
	defaultPlan   = 5 * time.Minute
)

// A Host does the work of jobs. *engine.Host is one.
type Host interface {
	StoreQueued(ctx context.Context, u engine.QueuedUpload, fence func(context.Context) error) (engine.Uploaded, error)
	EmbedTenant(ctx context.Context, tenant string) (more bool, err error)
	SyncTenant(ctx context.Context, tenant, source string) (engine.SyncReport, error)
	ResumeInterrupted(ctx context.Context) error
	Work(ctx context.Context) ([]engine.TenantWork, error)
}

// Options configure a worker. Zero fields have defaults.
type Options struct {
	Documents int           // jobs of KindDocument at once; 0: one for each processor
	SyncEvery time.Duration // how often sources are synced; 0: never
	Grace     time.Duration // how long jobs may go on after Work's context has ended; 0: 20 seconds

	// Observe, if set, is called for each attempt of a job that has ended, by one goroutine at a time.
	Observe func(Attempt)
}

// An Attempt is an attempt of a job that has ended.
type Attempt struct {
	Job    Job
	Waited time.Duration // until it began
	Took   time.Duration
}

// A worker works off jobs.
type worker struct {
	q       *Queue
	host    Host
	options Options
	drain   context.Context // ends when no long work is to go on
}

// Work works off jobs until ctx ends. It then lets the documents that are being stored end, interrupts
// syncs and vectors at their next safe point, and returns. After Options.Grace it interrupts all.
func (q *Queue) Work(ctx context.Context, host Host, o Options) error {
	o.Documents, o.Grace = cmp.Or(o.Documents, runtime.GOMAXPROCS(0)), cmp.Or(o.Grace, 20*time.Second)
	w := &worker{q: q, host: host, options: o, drain: ctx}
	client, err := river.NewClient(riverpgxv5.New(q.pool), w.config())
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	alive, err := q.announce(ctx, client.ID())
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start a worker: %w", unavailable(err))
	}
	var background sync.WaitGroup
	defer background.Wait()
	living, die := context.WithCancel(context.WithoutCancel(ctx))
	defer die()
	background.Go(func() { q.keepAlive(living, client.ID(), alive) })
	events, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 10_000, Kinds: []river.EventKind{
		river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled, river.EventKindJobSnoozed,
	}})
	background.Go(func() { w.observe(events) })
	defer unsubscribe()
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start a worker: %w", unavailable(err))
	}
	<-ctx.Done()
	soft, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Grace)
	defer cancel()
	if err := client.Stop(soft); err == nil {
		return nil
	}
	hard, cancelHard := context.WithTimeout(context.WithoutCancel(ctx), o.Grace)
	defer cancelHard()
	if err := client.StopAndCancel(hard); err != nil {
		return fmt.Errorf("stop a worker: jobs did not end, and are taken up by others: %w", err)
	}
	return nil
}

// config returns the configuration of River's client.
func (w *worker) config() *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &documentWorker{worker: w})
	river.AddWorker(workers, &vectorsWorker{worker: w})
	river.AddWorker(workers, &syncWorker{worker: w})
	river.AddWorker(workers, &runsWorker{worker: w})
	river.AddWorker(workers, &planWorker{worker: w})
	periodic := []*river.PeriodicJob{
		every(defaultResume, runsArgs{}),
		every(defaultPlan, planArgs{Vectors: true}),
	}
	if w.options.SyncEvery > 0 {
		periodic = append(periodic, every(w.options.SyncEvery, planArgs{Sync: true}))
	}
	return &river.Config{
		Schema: schema, Logger: quiet(w.q.log), Workers: workers, PeriodicJobs: periodic,
		Queues: map[string]river.QueueConfig{
			queueDocuments: {MaxWorkers: w.options.Documents, FetchCooldown: 20 * time.Millisecond},
			queueVectors:   {MaxWorkers: 1},
			queueSync:      {MaxWorkers: 2},
			queueControl:   {MaxWorkers: 2},
		},
		CompletedJobRetentionPeriod: keepDone, CancelledJobRetentionPeriod: keepFailed, DiscardedJobRetentionPeriod: keepFailed,
		RetryPolicy: retryPolicy{},
	}
}

// every returns a periodic job of which no second one is queued while one waits or runs.
func every(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
		return args, once(queueControl)
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// once returns options for a job that is queued unless an equal one waits or runs.
func once(queue string) *river.InsertOpts {
	return &river.InsertOpts{Queue: queue, MaxAttempts: maxAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}}
}

// soon returns options for a job that makes vectors a moment later, so that it makes those of many
// documents at once.
func soon() *river.InsertOpts {
	o := once(queueVectors)
	o.ScheduledAt = time.Now().Add(vectorsPause)
	return o
}

// retryPolicy doubles the pause after each attempt.
type retryPolicy struct{}

// NextRetry implements river.ClientRetryPolicy.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	pause := min(time.Second<<min(len(job.Errors), 16), longestPause)
	return time.Now().Add(pause + rand.N(pause/4))
}

// observe reports the attempts that have ended, until the channel is closed.
func (w *worker) observe(events <-chan *river.Event) {
	for ev := range events {
		if w.options.Observe != nil {
			w.options.Observe(Attempt{Job: jobOf(ev.Job), Waited: ev.JobStats.QueueWaitDuration, Took: ev.JobStats.RunDuration})
		}
	}
}

// verdict turns the error of an attempt into what River does about it: nothing, try again later without
// counting, try again after a pause, or give up.
func verdict(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, assay.ErrStopped):
		return river.JobSnooze(stoppedPause)
	case errors.Is(err, assay.ErrLocked), errors.Is(err, assay.ErrBusy), errors.Is(err, assay.ErrLeased):
		return river.JobSnooze(lockedPause + rand.N(lockedPause))
	case errors.Is(err, assay.ErrInvalid), errors.Is(err, assay.ErrNotFound), errors.Is(err, assay.ErrForbidden), errors.Is(err, assay.ErrDamaged):
		return river.JobCancel(err)
	}
	return err
}

// long runs work that can go on later, which ends when the worker is to end.
func (w *worker) long(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.drain, cancel)()
	err := fn(ctx)
	if err != nil && w.drain.Err() != nil {
		return river.JobSnooze(0)
	}
	return verdict(err)
}

type documentWorker struct {
	river.WorkerDefaults[documentArgs]
	*worker
}

// Timeout implements river.Worker.
func (w *documentWorker) Timeout(*river.Job[documentArgs]) time.Duration { return documentTime }

// Work implements river.Worker. The transaction holds the document's lock, and ends the job.
func (w *documentWorker) Work(ctx context.Context, job *river.Job[documentArgs]) error {
	tx, err := w.q.pool.Begin(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit it does nothing
	var locked bool
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1, hashtext($2))`, lockDocument, job.Args.lockName()).Scan(&locked)
	if err != nil {
		return unavailable(err)
	}
	if !locked {
		return river.JobSnooze(lockedPause)
	}
	u, wanted, err := w.read(ctx, tx, job)
	if err != nil {
		return unavailable(err)
	}
	if wanted {
		_, err := w.host.StoreQueued(ctx, u, func(ctx context.Context) error {
			_, err := tx.Exec(ctx, `SELECT 1`) // fails if the lock was lost
			return unavailable(err)
		})
		if err != nil {
			return verdict(err)
		}
	}
	return unavailable(w.finish(ctx, tx, job))
}

// read returns the document of a job. It is not wanted if a later version is stored.
func (w *documentWorker) read(ctx context.Context, tx pgx.Tx, job *river.Job[documentArgs]) (u engine.QueuedUpload, wanted bool, err error) {
	var meta []byte
	err = tx.QueryRow(ctx, `
SELECT u.meta, u.data FROM assay_queue.upload u JOIN assay_queue.document d USING (tenant, collection, uri)
WHERE u.job = $1 AND d.done < $2`, job.ID, job.Args.Version).Scan(&meta, &u.Data)
	if errors.Is(err, pgx.ErrNoRows) {
		return u, false, nil
	}
	if err == nil {
		err = json.Unmarshal(meta, &u)
	}
	return u, err == nil, err
}

// finish ends a job whose document is stored, and queues the making of its vectors.
func (w *documentWorker) finish(ctx context.Context, tx pgx.Tx, job *river.Job[documentArgs]) error {
	const document = ` WHERE tenant = $1 AND collection = $2 AND uri = $3`
	a := job.Args
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE assay_queue.document SET done = GREATEST(done, $4)`+document, a.Identity, a.Collection, a.URI, a.Version)
	batch.Queue(`DELETE FROM assay_queue.document`+document+` AND latest = $4`, a.Identity, a.Collection, a.URI, a.Version)
	batch.Queue(`DELETE FROM assay_queue.upload WHERE job = $1`, job.ID)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	client := river.ClientFromContext[pgx.Tx](ctx)
	if _, err := client.InsertTx(ctx, tx, vectorsArgs{Tenant: a.Tenant}, soon()); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

type vectorsArgs struct {
	Tenant string `json:"tenant"`
}

// Kind implements river.JobArgs.
func (vectorsArgs) Kind() string { return KindVectors }

type vectorsWorker struct {
	river.WorkerDefaults[vectorsArgs]
	*worker
}

// Timeout implements river.Worker.
func (*vectorsWorker) Timeout(*river.Job[vectorsArgs]) time.Duration { return -1 }

// Work implements river.Worker. It goes on while documents are added.
func (w *vectorsWorker) Work(ctx context.Context, job *river.Job[vectorsArgs]) error {
	return w.long(ctx, func(ctx context.Context) error {
		for more := true; more; {
			var err error
			if more, err = w.host.EmbedTenant(ctx, job.Args.Tenant); err != nil {
				return err
			}
		}
		return nil
	})
}

type syncArgs struct {
	Tenant string `json:"tenant"`
	Source string `json:"source"`
}

// Kind implements river.JobArgs.
func (syncArgs) Kind() string { return KindSync }

type syncWorker struct {
	river.WorkerDefaults[syncArgs]
	*worker
}

// Timeout implements river.Worker.
func (*syncWorker) Timeout(*river.Job[syncArgs]) time.Duration { return -1 }

// Work implements river.Worker. A sync that would delete too much waits for a person, as in the command,
// and is tried again with the next plan.
func (w *syncWorker) Work(ctx context.Context, job *river.Job[syncArgs]) error {
	return w.long(ctx, func(ctx context.Context) error {
		report, err := w.host.SyncTenant(ctx, job.Args.Tenant, job.Args.Source)
		if errors.Is(err, assay.ErrSuspended) {
			return river.JobCancel(err)
		}
		if err == nil && report.Added+report.Updated+report.Removed > 0 {
			w.q.log.Info("synced", "tenant", job.Args.Tenant, "source", job.Args.Source,
				"added", report.Added, "updated", report.Updated, "removed", report.Removed)
			_, err = w.q.client.Insert(ctx, vectorsArgs{Tenant: job.Args.Tenant}, once(queueVectors))
		}
		return err
	})
}

type runsArgs struct{}

// Kind implements river.JobArgs.
func (runsArgs) Kind() string { return KindRuns }

type runsWorker struct {
	river.WorkerDefaults[runsArgs]
	*worker
}

// Work implements river.Worker. The runs go on in the background of this process.
func (w *runsWorker) Work(ctx context.Context, _ *river.Job[runsArgs]) error {
	if err := w.host.ResumeInterrupted(ctx); err != nil {
		w.q.log.Warn("interrupted runs are not resumed", "error", err)
	}
	return nil // the next one comes in seconds
}

type planArgs struct {
	Sync    bool `json:"sync,omitempty"`
	Vectors bool `json:"vectors,omitempty"`
}

// Kind implements river.JobArgs.
func (planArgs) Kind() string { return KindPlan }

type planWorker struct {
	river.WorkerDefaults[planArgs]
	*worker
}

// Timeout implements river.Worker.
func (*planWorker) Timeout(*river.Job[planArgs]) time.Duration { return documentTime }

// Work implements river.Worker.
func (w *planWorker) Work(ctx context.Context, job *river.Job[planArgs]) error {
	all, err := w.host.Work(ctx)
	if err != nil {
		return verdict(err)
	}
	var jobs []river.InsertManyParams
	for _, work := range all {
		for _, source := range work.Sources {
			if job.Args.Sync {
				jobs = append(jobs, river.InsertManyParams{Args: syncArgs{Tenant: work.Tenant, Source: source}, InsertOpts: once(queueSync)})
			}
		}
		if job.Args.Vectors && work.Vectors {
			jobs = append(jobs, river.InsertManyParams{Args: vectorsArgs{Tenant: work.Tenant}, InsertOpts: once(queueVectors)})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	_, err = w.q.client.InsertMany(ctx, jobs)
	return unavailable(err)
}

// LogValue implements slog.LogValuer.
func (a Attempt) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("id", a.Job.ID), slog.String("kind", a.Job.Kind), slog.String("state", a.Job.State),
		slog.String("tenant", a.Job.Tenant), slog.Int("attempt", a.Job.Attempt), slog.Duration("took", a.Took), slog.String("error", a.Job.Error))
}
