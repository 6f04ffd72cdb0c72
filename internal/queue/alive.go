package queue

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// How often a worker proves that it lives, and looks for jobs of workers that do not.
const aliveEvery = 2 * time.Second

// announce takes the lock by which others see that a worker lives. The database releases it when the
// connection ends, however the process does.
func (q *Queue) announce(ctx context.Context, id string) (*pgxpool.Conn, error) {
	conn, err := q.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1, hashtext($2))`, lockWorker, id); err != nil {
		conn.Conn().Close(context.WithoutCancel(ctx)) //nolint:errcheck // so that the lock is released
		conn.Release()
		return nil, err
	}
	return conn, nil
}

// keepAlive holds the lock of a worker, and takes it again if its connection was lost, until ctx ends. It
// also gives the jobs of dead workers to the living.
func (q *Queue) keepAlive(ctx context.Context, id string, conn *pgxpool.Conn) {
	release := func() {
		conn.Conn().Close(context.WithoutCancel(ctx)) //nolint:errcheck // the lock ends with it
		conn.Release()
	}
	defer func() {
		if conn != nil {
			release()
		}
	}()
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		if conn == nil {
			conn, _ = q.announce(ctx, id) // tried again at the next tick
		} else if freed, err := q.reap(ctx, conn); err != nil && ctx.Err() == nil {
			q.log.Warn("the queue's database does not answer", "error", err)
			release()
			conn = nil
		} else if freed > 0 {
			q.log.Info("jobs of dead workers are taken over", "jobs", freed)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// reap makes the jobs of dead workers available. The death of a worker counts as a failed attempt, so that
// a document that kills its workers ends.
func (q *Queue) reap(ctx context.Context, conn *pgxpool.Conn) (int64, error) {
	tag, err := conn.Exec(ctx, `
UPDATE assay_queue.river_job j SET
	errors = array_append(errors, jsonb_build_object('at', now(), 'attempt', attempt, 'error', 'its worker has died', 'trace', '')),
	state = CASE WHEN attempt >= max_attempts THEN 'discarded' ELSE 'available' END::assay_queue.river_job_state,
	finalized_at = CASE WHEN attempt >= max_attempts THEN now() END,
	scheduled_at = now()
WHERE state = 'running' AND NOT EXISTS (
	SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.classid = $1::int::oid
	AND l.objid = hashtext(j.attempted_by[array_upper(j.attempted_by, 1)])::oid AND l.objsubid = 2
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))`, lockWorker)
	return tag.RowsAffected(), err
}
