package telemetry

import "time"

// The kinds and states of jobs that have labels.
var (
	jobKinds  = newBounded("document", "vectors", "sync", "runs", "plan")
	jobStates = newBounded("queued", "retrying", "failed", "done")
)

// CountJob records an attempt of a job of the queue: its kind, the state of the job afterwards, and how long
// it waited and took. A nil Telemetry does nothing.
func (t *Telemetry) CountJob(kind, state string, waited, took time.Duration) {
	if t == nil {
		return
	}
	name := label(labelKind, jobKinds.of(kind))
	t.meters.add(metricJobs, 1, name, label(labelState, jobStates.of(state)))
	t.meters.record(metricJobTime, took.Seconds(), name)
	t.meters.record(metricJobWait, waited.Seconds(), name)
}
