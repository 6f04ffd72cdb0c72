package run

import (
	"encoding/json"
	"time"

	"github.com/assay-rag/assay"
)

// A Phase is the phase of a step that an event reports.
type Phase string

// The phases of a step.
const (
	StepStart Phase = "start"
	StepEnd   Phase = "end"
)

// An Event reports that a step starts or has ended. Each start is followed by one end with the same
// Path, even if the step is refused or panics.
type Event struct {
	Phase    Phase
	Path     string
	Kind     assay.StepKind
	Model    string
	Replayed bool            // the result comes from the journal
	Input    json.RawMessage // canonical JSON
	Started  time.Time

	// The remaining fields are set at the end of a step.

	Ordinal int             // in the journal; -1 if the step was not recorded
	Output  json.RawMessage // canonical JSON; nil if there is none
	Err     error           // as Do returns it
	Usage   assay.Usage
	Elapsed time.Duration // of its execution, without the journal
	Active  time.Duration // the run's active time when the step ended; 0: not recorded
}

// tell fills in e from rec and passes it to the observer.
func (r *Run) tell(e Event, rec assay.Record, err error) {
	if r.observe == nil {
		return
	}
	e.Path, e.Kind, e.Model, e.Input, e.Started = rec.Path, rec.Kind, rec.Model, rec.Input, rec.Started
	if e.Phase == StepEnd {
		e.Ordinal, e.Output, e.Err, e.Usage, e.Elapsed, e.Active = rec.Ordinal, rec.Output, err, rec.Usage, rec.Elapsed, rec.Active
	}
	r.observing.Lock()
	defer r.observing.Unlock()
	r.observe(e)
}
