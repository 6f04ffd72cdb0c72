// Package queue keeps work for later in a PostgreSQL database and works it off: uploaded documents,
// vectors, syncs of sources, and runs whose server has died. The queue is River's; this package adds
// what assay promises on top of it.
//
// A job is delivered at least once, and its effect happens once. The versions of a document have
// numbers in the order of their arrival. A worker holds the document's advisory lock in the
// transaction that ends the job, proves with each write that it still holds it, and leaves out a
// version that is older than one that was stored. Storing the same content again changes nothing.
package queue

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// A Queue is the queue in a database. It is safe for concurrent use.
type Queue struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // inserts and administers
	log    *slog.Logger
}

// Open opens the queue in the database with a URL, whose tables it creates or migrates if necessary. It
// uses at most the given number of connections (0: 4). The queue must be closed.
func Open(ctx context.Context, url string, connections int, log *slog.Logger) (*Queue, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the queue: the URL of its database is not valid: %w", assay.ErrInvalid) // err may quote it
	}
	config.MaxConns = int32(max(connections, 4))
	config.ConnConfig.RuntimeParams["application_name"] = "assay queue"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, opening(err)
	}
	q := &Queue{pool: pool, log: log}
	if err := migrate(ctx, pool, log); err != nil {
		pool.Close()
		return nil, opening(err)
	}
	if q.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: schema, Logger: quiet(log)}); err != nil {
		pool.Close()
		return nil, opening(err)
	}
	return q, nil
}

func opening(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, assay.ErrNewer) {
		return fmt.Errorf("open the queue: %w", err)
	}
	return fmt.Errorf("open the queue: %w: %w", err, assay.ErrUnavailable)
}

// Close releases the connections.
func (q *Queue) Close() error {
	q.pool.Close()
	return nil
}

// documentArgs are the arguments of the job that stores a document.
type documentArgs struct {
	Tenant     string `json:"tenant"`
	Identity   string `json:"identity"` // of the tenant
	Collection string `json:"collection"`
	URI        string `json:"uri"`
	User       string `json:"user"` // who has uploaded it
	Version    int64  `json:"version"`
}

// Kind implements river.JobArgs.
func (documentArgs) Kind() string { return KindDocument }

// lockName is the name of the document's lock.
func (a documentArgs) lockName() string {
	return fmt.Sprintf("%q", []string{a.Identity, a.Collection, a.URI})
}

// Add implements engine.UploadQueue. The document and its job are stored in one transaction.
func (q *Queue) Add(ctx context.Context, u engine.QueuedUpload) (job string, err error) {
	meta, err := json.Marshal(u)
	if err != nil {
		return "", fmt.Errorf("queue document %s: %w", u.URI, err)
	}
	sum := sha256.New()
	sum.Write(meta)
	sum.Write([]byte{0})
	sum.Write(u.Data)
	var id int64
	err = pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		id, err = q.add(ctx, tx, u, meta, sum.Sum(nil))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("queue document %s: %w", u.URI, unavailable(err))
	}
	return strconv.FormatInt(id, 10), nil
}

// add adds a document in a transaction, unless its last version has the same content and waits.
func (q *Queue) add(ctx context.Context, tx pgx.Tx, u engine.QueuedUpload, meta, hash []byte) (int64, error) {
	const document = ` WHERE tenant = $1 AND collection = $2 AND uri = $3`
	// The row is locked first, so that versions are numbered in the order in which they are stored.
	_, err := tx.Exec(ctx, `
INSERT INTO assay_queue.document (tenant, collection, uri, latest, done, hash) VALUES ($1, $2, $3, 0, 0, '')
ON CONFLICT (tenant, collection, uri) DO UPDATE SET uri = excluded.uri`, u.Identity, u.Collection, u.URI)
	if err != nil {
		return 0, err
	}
	var waiting int64
	err = tx.QueryRow(ctx, `
SELECT j.id FROM assay_queue.document d JOIN assay_queue.river_job j ON j.id = d.job`+document+`
AND d.hash = $4 AND j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled')`, u.Identity, u.Collection, u.URI, hash).Scan(&waiting)
	if !errors.Is(err, pgx.ErrNoRows) {
		return waiting, err
	}
	args := documentArgs{Tenant: u.Tenant, Identity: u.Identity, Collection: u.Collection, URI: u.URI, User: u.Principal.User}
	err = tx.QueryRow(ctx, `
UPDATE assay_queue.document SET latest = n, done = CASE WHEN latest = 0 THEN n - 1 ELSE done END, hash = $4
FROM (SELECT nextval('assay_queue.version') AS n) AS next`+document+` RETURNING latest`, u.Identity, u.Collection, u.URI, hash).Scan(&args.Version)
	if err != nil {
		return 0, err
	}
	inserted, err := q.client.InsertTx(ctx, tx, args, &river.InsertOpts{Queue: queueDocuments, MaxAttempts: maxAttempts})
	if err != nil {
		return 0, err
	}
	id := inserted.Job.ID
	_, err = tx.Exec(ctx, `UPDATE assay_queue.document SET job = $4`+document, u.Identity, u.Collection, u.URI, id)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO assay_queue.upload (job, tenant, collection, uri, meta, data) VALUES ($1, $2, $3, $4, $5, $6)`,
		id, u.Identity, u.Collection, u.URI, meta, u.Data)
	return id, err
}

// Upload implements engine.UploadQueue. Only the failure of an attempt that no other follows because of the document is
// told as it is: others may be about this program's machines.
func (q *Queue) Upload(ctx context.Context, job string) (engine.UploadState, error) {
	none := engine.UploadState{}
	id, err := strconv.ParseInt(job, 10, 64)
	if err != nil {
		return none, fmt.Errorf("job %q: %w", job, assay.ErrNotFound)
	}
	row, err := q.client.JobGet(ctx, id)
	if err != nil {
		return none, jobError(id, err)
	}
	var args documentArgs
	if row.Kind != KindDocument || json.Unmarshal(row.EncodedArgs, &args) != nil {
		return none, fmt.Errorf("job %d: %w", id, assay.ErrNotFound)
	}
	j := jobOf(row)
	u := engine.UploadState{
		Job: job, State: j.State, Collection: args.Collection, URI: args.URI, Attempts: j.Attempt,
		Queued: j.Created, Next: j.Next, Ended: j.Ended, Identity: args.Identity, User: args.User,
	}
	switch row.State {
	case rivertype.JobStateRetryable:
		u.State = Queued
	case rivertype.JobStateCancelled:
		u.Reason = j.Error
	case rivertype.JobStateDiscarded:
		u.Reason = fmt.Sprintf("%d attempts failed", j.Attempt)
	}
	return u, nil
}

// unavailable adds assay.ErrUnavailable to an error of the database.
func unavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", err, assay.ErrUnavailable)
}

// The kinds of jobs.
const (
	KindDocument = "document" // stores an uploaded document
	KindVectors  = "vectors"  // makes the vectors of a tenant's passages
	KindSync     = "sync"     // syncs a source
	KindRuns     = "runs"     // resumes runs whose process has died
	KindPlan     = "plan"     // queues syncs and vectors
)

// The states of jobs.
const (
	Queued   = "queued"
	Running  = "running"
	Retrying = "retrying" // it failed and is tried again at Job.Next
	Failed   = "failed"   // it is not tried again
	Done     = "done"
)

// A Job is a job as it is shown to administrators.
type Job struct {
	ID         int64     `json:"id"`
	Kind       string    `json:"kind"`
	State      string    `json:"state"`
	Tenant     string    `json:"tenant,omitempty"`
	Collection string    `json:"collection,omitempty"`
	Name       string    `json:"name,omitempty"` // of the document or source
	Attempt    int       `json:"attempt"`
	Created    time.Time `json:"created"`
	Next       time.Time `json:"next,omitzero"`   // of the next attempt
	Ended      time.Time `json:"ended,omitzero"`  //
	Error      string    `json:"error,omitempty"` // of the last attempt that failed
}

// riverStates maps the states to those of River.
var riverStates = map[string][]rivertype.JobState{
	Queued:   {rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateScheduled},
	Running:  {rivertype.JobStateRunning},
	Retrying: {rivertype.JobStateRetryable},
	Failed:   {rivertype.JobStateDiscarded, rivertype.JobStateCancelled},
	Done:     {rivertype.JobStateCompleted},
}

// cancelled is what River writes before the error of a job that is not tried again.
const cancelled = "JobCancelError: "

// jobOf returns a row of River's table as it is shown.
func jobOf(row *rivertype.JobRow) Job {
	j := Job{ID: row.ID, Kind: row.Kind, Attempt: row.Attempt, Created: row.CreatedAt}
	for state, list := range riverStates {
		for _, s := range list {
			if s == row.State {
				j.State = state
			}
		}
	}
	var args struct{ Tenant, Collection, URI, Source string }
	if json.Unmarshal(row.EncodedArgs, &args) == nil {
		j.Tenant, j.Collection, j.Name = args.Tenant, args.Collection, args.URI+args.Source
	}
	if j.State == Retrying || j.State == Queued {
		j.Next = row.ScheduledAt
	}
	if row.FinalizedAt != nil {
		j.Ended = *row.FinalizedAt
	}
	if n := len(row.Errors); n > 0 {
		j.Error = strings.TrimPrefix(row.Errors[n-1].Error, cancelled)
	}
	return j
}

// A Filter selects jobs.
type Filter struct {
	State  string // empty: all but done
	Tenant string // empty: all
	Most   int    // 0: 100
}

// List returns jobs, the oldest first. An unknown state is assay.ErrInvalid.
func (q *Queue) List(ctx context.Context, f Filter) ([]Job, error) {
	if f.Most <= 0 {
		f.Most = 100
	}
	params := river.NewJobListParams().First(min(f.Most, 10_000)).OrderBy(river.JobListOrderByID, river.SortOrderAsc)
	states := riverStates[f.State]
	if f.State == "" {
		for _, name := range []string{Queued, Running, Retrying, Failed} {
			states = append(states, riverStates[name]...)
		}
	}
	if len(states) == 0 {
		return nil, fmt.Errorf("list jobs: no state is called %q: %w", f.State, assay.ErrInvalid)
	}
	params = params.States(states...)
	if f.Tenant != "" {
		params = params.Where("args->>'tenant' = @tenant", river.NamedArgs{"tenant": f.Tenant})
	}
	found, err := q.client.JobList(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", unavailable(err))
	}
	jobs := []Job{}
	for _, row := range found.Jobs {
		jobs = append(jobs, jobOf(row))
	}
	return jobs, nil
}

// Job returns a job. The error is assay.ErrNotFound if there is none.
func (q *Queue) Job(ctx context.Context, id int64) (Job, error) {
	row, err := q.client.JobGet(ctx, id)
	if err != nil {
		return Job{}, jobError(id, err)
	}
	return jobOf(row), nil
}

func jobError(id int64, err error) error {
	switch {
	case errors.Is(err, rivertype.ErrNotFound):
		err = assay.ErrNotFound
	case errors.Is(err, rivertype.ErrJobRunning):
		err = fmt.Errorf("a worker is at it: %w", assay.ErrLocked)
	default:
		err = unavailable(err)
	}
	return fmt.Errorf("job %d: %w", id, err)
}

// Retry makes a job be tried again now. A job that is running or done stays as it is, which is
// assay.ErrInvalid.
func (q *Queue) Retry(ctx context.Context, id int64) (Job, error) {
	j, err := q.Job(ctx, id)
	if err != nil {
		return j, err
	}
	if j.State == Running || j.State == Done {
		return j, fmt.Errorf("job %d is %s: %w", id, j.State, assay.ErrInvalid)
	}
	row, err := q.client.JobRetry(ctx, id)
	if err != nil {
		return j, jobError(id, err)
	}
	return jobOf(row), nil
}

// Drop removes a job and the document that it would store. The error is assay.ErrLocked while it is
// running.
func (q *Queue) Drop(ctx context.Context, id int64) error {
	if _, err := q.client.JobDelete(ctx, id); err != nil {
		return jobError(id, err)
	}
	return nil
}

// Counts returns how many jobs are in each state.
func (q *Queue) Counts(ctx context.Context) (map[string]int, error) {
	rows, err := q.pool.Query(ctx, `SELECT state::text, count(*) FROM assay_queue.river_job GROUP BY 1`)
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", unavailable(err))
	}
	counts := map[string]int{Queued: 0, Running: 0, Retrying: 0, Failed: 0, Done: 0}
	var state rivertype.JobState
	var n int
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		for name, list := range riverStates {
			for _, s := range list {
				if s == state {
					counts[name] += n
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", unavailable(err))
	}
	return counts, nil
}
