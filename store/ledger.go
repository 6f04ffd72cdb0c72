package store

import (
	"context"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
)

// A Ledger counts what a tenant, its users and its API keys have spent, by UTC day and month, and
// keeps limits on it for all processes that use the tenant.
//
// The spending of a run is counted for the subjects of its principal (limit.SubjectsOf): Runs.Create
// counts a request, and Lease.Append the usage of its record, each in its own transaction. So the
// ledger equals the sum of the journals at every moment, also after a crash. Records that Create
// copies from another run are not counted again.
//
// A Reserver sets the most that a call may spend aside before it is made. Append ends the reservation
// of the step that it records. A reservation belongs to the process that made it. If that process
// dies, or gives the reservation up, then no record says what the call has cost; it may have reached
// the provider. The whole reservation is then counted as spent, once, in [Amount]'s part Other. A run
// that is resumed makes the call again and pays again, which is counted as well.
//
// A call is counted in the day in which it was reserved.
type Ledger interface {
	// Admit takes the right to do one thing within the bounds on requests and concurrent runs. An
	// error that wraps a *limit.Error says which bound it would exceed. The rights of dead processes
	// are free at once on the same machine, and after they expire on others.
	Admit(ctx context.Context, a Admission) (Account, error)

	// Spending returns what the subjects, or all if none is given, have spent in the day and the
	// month that hold now, sorted by subject. A subject without spending is left out.
	Spending(ctx context.Context, subjects ...string) ([]Spending, error)

	// Forget removes what was spent in days and months that ended before a time, and returns the
	// number of sums that it removed. The day and the month that hold now stay.
	Forget(ctx context.Context, before time.Time) (int, error)
}

// An Admission describes what is to be admitted.
type Admission struct {
	Principal assay.Principal

	// Run is the ID of the run. One that does not exist counts as a request from now on, and for good
	// once it is created. Empty: the calls are outside runs, and the bounds are ignored.
	Run string

	Bounds []limit.Bound // other measures than requests per day and month and runs are ignored
}

// An Account is an admission that was granted. It counts as a concurrent run until it is closed.
// Its reservations are for calls outside runs, which have no record.
type Account interface {
	Reserver

	// Close ends the admission. What is still reserved is counted as spent.
	Close() error
}

// A Reserver sets usage aside before it is spent. It is safe for concurrent use.
type Reserver interface {
	// Reserve sets up to most aside for the step at path, in addition to what is set aside for it
	// already. If that exceeds a bound, nothing is set aside, and the error wraps a *limit.Error.
	// Bounds of other measures than calls, tokens and cost are ignored, and so are those of which most
	// needs none. All reservations and all spending together never exceed a bound, unless a call
	// costs more than was set aside for it.
	Reserve(ctx context.Context, path string, most assay.Usage, bounds []limit.Bound) error

	// Settle ends the reservation of a step that gets no record, and counts used as spent.
	Settle(ctx context.Context, path string, used assay.Usage) error
}

// An Amount is what was spent or set aside.
type Amount struct {
	Requests   int64 `json:"requests"`
	Calls      int64 `json:"calls"`
	Tokens     int64 `json:"tokens"`
	CostMicros int64 `json:"cost_micros"`
}

// A Spending is what one subject has spent.
type Spending struct {
	Subject    string `json:"subject"` // see package limit
	Day        Amount `json:"day"`
	Month      Amount `json:"month"`
	OtherDay   Amount `json:"other_day"`   // the part of Day of which no journal has a record
	OtherMonth Amount `json:"other_month"` // the part of Month
	Held       Amount `json:"reserved"`    // for calls in progress, and requests whose run is not created yet
	Runs       int64  `json:"runs"`        // admitted and in progress
}

// Add returns the sum of a and b.
func (a Amount) Add(b Amount) Amount {
	return Amount{a.Requests + b.Requests, a.Calls + b.Calls, a.Tokens + b.Tokens, a.CostMicros + b.CostMicros}
}
