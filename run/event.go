package run

import (
	"encoding/json"
	"time"

	"github.com/assay-rag/assay"
)

// A Phase is what an event tells about a step.
type Phase string

// The phases of a step.
const (
	StepStart Phase = "start"
	StepEnd   Phase = "end"
)

// An Event tells that a step starts or has ended. Each start is followed by one
// end with the same Path, also when the step is refused or panics.
type Event struct {
	Phase    Phase
	Path     string
	Kind     assay.StepKind
	Model    string
	Replayed bool            // the result comes from the journal
	Input    json.RawMessage // canonical JSON
	Started  time.Time

	// The rest is set at the end of a step.

	Output  json.RawMessage // canonical JSON; nil when there is none
	Err     error           // as Do returns it
	Usage   assay.Usage
	Elapsed time.Duration // when it was performed, journal not included
	Active  time.Duration // how long the run had been active when it ended; 0: not recorded
}

// tell completes e with what it says about rec and hands it to the observer.
func (r *Run) tell(e Event, rec assay.Record, err error) {
	if r.observe == nil {
		return
	}
	e.Path, e.Kind, e.Model, e.Input, e.Started = rec.Path, rec.Kind, rec.Model, rec.Input, rec.Started
	if e.Phase == StepEnd {
		e.Output, e.Err, e.Usage, e.Elapsed, e.Active = rec.Output, err, rec.Usage, rec.Elapsed, rec.Active
	}
	r.observing.Lock()
	defer r.observing.Unlock()
	r.observe(e)
}
