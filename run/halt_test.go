package run

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-rag/assay"
)

// checkHalted checks that r takes no further step, for the given reason, and that j holds n
// records.
func checkHalted(t *testing.T, r *Run, want error, j *Memory, n int) {
	t.Helper()
	if _, err := Do(context.Background(), r.Scope(), search("later"), 0, never[int, int](t)); !errors.Is(err, want) {
		t.Errorf("a later step's error = %v, want %v", err, want)
	}
	if err := r.Finish(); !errors.Is(err, want) {
		t.Errorf("Finish() = %v, want %v", err, want)
	}
	if got := len(j.Records()); got != n {
		t.Errorf("%d records, want %d", got, n)
	}
}

func TestCancellationIsNotRecorded(t *testing.T) {
	cause := errors.New("the user has left")
	tests := []struct {
		name string
		fn   func(ctx context.Context, cancel func()) error // the function of the step
		want error
	}{
		{"before", nil, context.Canceled},
		{"during", func(ctx context.Context, cancel func()) error { cancel(); return ctx.Err() }, context.Canceled},
		{"another error after", func(_ context.Context, cancel func()) error { cancel(); return assay.ErrNotFound }, context.Canceled},
		{"some other context's", func(context.Context, func()) error { return fmt.Errorf("call: %w", context.Canceled) }, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			var j Memory
			r := start(t, &j)
			fn := never[int, int](t)
			if tt.fn == nil {
				cancel(cause)
			} else {
				fn = func(ctx context.Context, _ int) (int, assay.Usage, error) {
					return 0, assay.Usage{}, tt.fn(ctx, func() { cancel(cause) })
				}
			}
			_, err := Do(ctx, r.Scope(), search("one"), 1, fn)
			if !errors.Is(err, tt.want) || ctx.Err() != nil && !errors.Is(err, cause) {
				t.Errorf("error = %v, want %v and the cause", err, tt.want)
			}
			checkHalted(t, r, tt.want, &j, 0)

			resumed := start(t, &j)
			if got, err := Do(context.Background(), resumed.Scope(), search("one"), 1, answer[int](7)); got != 7 || err != nil {
				t.Errorf("resumed step = %v, %v", got, err)
			}
		})
	}
}

// TestCallersDeadlineIsNotRecorded checks that a deadline of the caller counts as a cancellation.
func TestCallersDeadlineIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var j Memory
		r := start(t, &j, withBudget(assay.Budget{Wall: time.Minute}))
		_, err := Do(ctx, r.Scope(), search("one"), 1, func(ctx context.Context, _ int) (int, assay.Usage, error) {
			<-ctx.Done()
			return 0, assay.Usage{}, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, assay.ErrDeadline) {
			t.Errorf("error = %v, want the context's", err)
		}
		checkHalted(t, r, context.DeadlineExceeded, &j, 0)
	})
}

// TestResultInSpiteOfCancellation checks that a result returned after a cancellation is kept, since
// it was paid for.
func TestResultInSpiteOfCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var j Memory
	r := start(t, &j)
	got, err := Do(ctx, r.Scope(), search("one"), 1, func(context.Context, int) (int, assay.Usage, error) {
		cancel()
		return 5, assay.Usage{}, nil
	})
	if got != 5 || err != nil || len(j.Records()) != 1 {
		t.Errorf("Do = %v, %v with %d records", got, err, len(j.Records()))
	}
	if _, err := Do(ctx, r.Scope(), search("two"), 1, never[int, int](t)); !errors.Is(err, context.Canceled) {
		t.Errorf("next step's error = %v, want Canceled", err)
	}
}

// TestOwnTimeoutIsRecorded checks that a step's own timeout is its failure and does not end the
// run.
func TestOwnTimeoutIsRecorded(t *testing.T) {
	var j Memory
	r := start(t, &j)
	_, err := Do(context.Background(), r.Scope(), search("one"), 1, fails(fmt.Errorf("call: %w", context.DeadlineExceeded)))
	var step *StepError
	if !errors.As(err, &step) || errors.Is(err, assay.ErrDeadline) || len(j.Records()) != 1 {
		t.Errorf("error = %v with %d records, want a recorded StepError", err, len(j.Records()))
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
}

func TestSuspended(t *testing.T) {
	ctx := context.Background()
	var j Memory
	decided := false
	decide := func(context.Context, int) (string, assay.Usage, error) {
		if !decided {
			return "", assay.Usage{}, fmt.Errorf("ask alice: %w", assay.ErrSuspended)
		}
		return "approved", assay.Usage{}, nil
	}
	strategy := func(r *Run) (string, error) {
		if _, err := Do(ctx, r.Scope(), search("one"), 1, answer[int](1)); err != nil {
			return "", err
		}
		return Do(ctx, r.Scope(), Step{Name: "review", Kind: assay.StepHuman}, 2, decide)
	}
	for range 2 {
		r := start(t, &j)
		if _, err := strategy(r); !errors.Is(err, assay.ErrSuspended) {
			t.Errorf("error = %v, want ErrSuspended", err)
		}
		checkHalted(t, r, assay.ErrSuspended, &j, 1)
	}
	decided = true
	r := start(t, &j)
	if got, err := strategy(r); got != "approved" || err != nil {
		t.Errorf("after the decision = %q, %v", got, err)
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
	if got, err := strategy(replay(t, j.Records())); got != "approved" || err != nil {
		t.Errorf("replay = %q, %v", got, err)
	}
}

func TestPanicInStep(t *testing.T) {
	var j Memory
	var ends []error
	r := start(t, &j, withObserver(func(e Event) {
		if e.Phase == StepEnd {
			ends = append(ends, e.Err)
		}
	}))
	func() {
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v, want boom", got)
			}
		}()
		Do(context.Background(), r.Scope(), search("one"), 1, func(context.Context, int) (int, assay.Usage, error) { panic("boom") })
	}()
	if len(ends) != 1 || ends[0] == nil {
		t.Errorf("observed ends %v, want one with an error", ends)
	}
	if err := r.Finish(); err == nil || len(j.Records()) != 0 {
		t.Errorf("Finish() = %v with %d records", err, len(j.Records()))
	}
	if got, err := Do(context.Background(), start(t, &j).Scope(), search("one"), 1, answer[int](1)); got != 1 || err != nil {
		t.Errorf("resumed step = %v, %v", got, err)
	}
}

// TestHostileJournals checks journals that fail, lie or hang.
func TestHostileJournals(t *testing.T) {
	ctx := context.Background()
	lie := func(change func(*assay.Record)) func(*Memory) Journal {
		return func(m *Memory) Journal {
			return journalFunc(func(ctx context.Context, rec assay.Record) (assay.Record, error) {
				rec, err := m.Append(ctx, rec)
				change(&rec)
				return rec, err
			})
		}
	}
	tests := []struct {
		name    string
		journal func(*Memory) Journal
		stored  int
		want    error
	}{
		{"full", func(*Memory) Journal {
			return journalFunc(func(context.Context, assay.Record) (assay.Record, error) { return assay.Record{}, assay.ErrFull })
		}, 0, assay.ErrFull},
		{"fails after storing", func(m *Memory) Journal {
			return journalFunc(func(ctx context.Context, rec assay.Record) (assay.Record, error) {
				rec, _ = m.Append(ctx, rec)
				return rec, assay.ErrLeased
			})
		}, 1, assay.ErrLeased},
		{"other output", lie(func(r *assay.Record) { r.Output = []byte(`8`) }), 1, assay.ErrDamaged},
		{"other input", lie(func(r *assay.Record) { r.Input = nil }), 1, assay.ErrDamaged},
		{"an error", lie(func(r *assay.Record) { r.Error = &assay.RecordedError{} }), 1, assay.ErrDamaged},
		{"other path", lie(func(r *assay.Record) { r.Path = "" }), 1, assay.ErrDamaged},
		{"other usage", lie(func(r *assay.Record) { r.Usage.Calls++ }), 1, assay.ErrDamaged},
		{"empty", lie(func(r *assay.Record) { *r = assay.Record{} }), 1, assay.ErrDamaged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j Memory
			r := start(t, &j, withJournal(tt.journal(&j)))
			if got, err := Do(ctx, r.Scope(), search("one"), 1, answer[int](7)); got != 0 || !errors.Is(err, tt.want) {
				t.Errorf("Do = %v, %v, want 0, %v", got, err, tt.want)
			}
			checkHalted(t, r, tt.want, &j, tt.stored)
		})
	}
}

// TestHangingJournal checks that a hanging journal gets appendGrace after a cancellation, and that
// the run then ends.
func TestHangingJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var j Memory
		r := start(t, &j, withJournal(journalFunc(func(ctx context.Context, rec assay.Record) (assay.Record, error) {
			<-ctx.Done()
			return rec, ctx.Err()
		})))
		time.AfterFunc(time.Minute, cancel)
		began := time.Now()
		if _, err := Do(ctx, r.Scope(), search("one"), 1, answer[int](7)); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want Canceled", err)
		}
		if got := time.Since(began); got != time.Minute+appendGrace {
			t.Errorf("Do returned after %v, want %v", got, time.Minute+appendGrace)
		}
		checkHalted(t, r, context.Canceled, &j, 0)
	})
}
