package engine

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// TestEvaluations checks the states of evaluations, whom they are shown to, and that there is one at a
// time.
func TestEvaluations(t *testing.T) {
	t.Parallel()
	config := HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}
	h, err := OpenHost(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := assay.Principal{User: "ann"}, assay.Principal{User: "bob"}
	auditor := mustSession(t, h, roleGrant(DefaultTenant, ann, identity.Auditor))
	other := mustSession(t, h, roleGrant(DefaultTenant, bob, identity.Auditor))
	admin := mustSession(t, h, roleGrant(DefaultTenant, bob, identity.Admin))
	begin := func(work EvaluationWork) Evaluation {
		t.Helper()
		e, err := auditor.StartEvaluation(t.Context(), "set", 3, work)
		if err != nil || e.State != EvaluationRunning || e.By != "ann" {
			t.Fatalf("StartEvaluation = %+v, %v", e, err)
		}
		return e
	}
	state := func(s *Session, id string) Evaluation {
		t.Helper()
		e, err := s.Evaluation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	await := func(id string) (e Evaluation) {
		t.Helper()
		for e = state(auditor, id); e.State == EvaluationRunning; {
			e = state(auditor, id)
		}
		return e
	}
	progressed := make(chan struct{}, 2)
	waits := func(ctx context.Context, progress func(done, all int)) (json.RawMessage, error) {
		progress(1, 3)
		progressed <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}

	done := begin(func(_ context.Context, progress func(done, all int)) (json.RawMessage, error) {
		progress(3, 3)
		return json.RawMessage(`{"right":3}`), nil
	})
	if e := await(done.ID); e.State != EvaluationDone || e.Done != 3 || string(e.Result) != `{"right":3}` {
		t.Errorf("a complete evaluation is %+v", e)
	}
	failed := begin(func(context.Context, func(done, all int)) (json.RawMessage, error) { return nil, errors.New("no luck") })
	if e := await(failed.ID); e.State != EvaluationFailed || e.Error != "no luck" {
		t.Errorf("a failed evaluation is %+v", e)
	}
	large := begin(func(context.Context, func(done, all int)) (json.RawMessage, error) {
		return make(json.RawMessage, MaxEvaluationResult+1), nil
	})
	if e := await(large.ID); e.State != EvaluationFailed {
		t.Errorf("an evaluation with a large result is %+v", e)
	}

	running := begin(waits)
	<-progressed
	if _, err := admin.StartEvaluation(t.Context(), "set", 3, waits); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("a second evaluation: %v, want ErrLocked", err)
	}
	if _, err := other.Evaluation(t.Context(), running.ID); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("an evaluation of another user: %v", err)
	}
	if err := other.CancelEvaluation(t.Context(), running.ID); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("CancelEvaluation of another user: %v", err)
	}
	if all, err := other.Evaluations(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("Evaluations of another user = %+v, %v", all, err)
	}
	if all, err := admin.Evaluations(t.Context()); err != nil || len(all) != 4 || all[0].ID != running.ID || all[3].Result != nil {
		t.Errorf("Evaluations of an administrator = %+v, %v", all, err)
	}
	if err := admin.CancelEvaluation(t.Context(), running.ID); err != nil {
		t.Error(err)
	}
	if e := await(running.ID); e.State != EvaluationCancelled || e.Done != 1 {
		t.Errorf("a cancelled evaluation is %+v", e)
	}
	if err := admin.CancelEvaluation(t.Context(), running.ID); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("CancelEvaluation of one that has ended: %v", err)
	}

	interrupted := begin(waits)
	lost := Evaluation{ID: "lost", By: "ann", State: EvaluationRunning} // as after a crash
	c, err := auditor.enter(t.Context(), "Evaluations")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.storeEvaluation(t.Context(), lost, "evaluation.started"); err != nil {
		t.Fatal(err)
	}
	c.done()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err = OpenHost(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	auditor = mustSession(t, h, roleGrant(DefaultTenant, ann, identity.Auditor))
	for _, id := range []string{interrupted.ID, lost.ID} {
		if e := state(auditor, id); e.State != EvaluationInterrupted {
			t.Errorf("after a restart, %s is %+v", id, e)
		}
	}
}

// TestEvaluationsKept checks that the oldest evaluations make room.
func TestEvaluationsKept(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}})
	s := mustSession(t, h, roleGrant(DefaultTenant, assay.Principal{User: "ann"}, identity.Auditor))
	first := ""
	for range maxEvaluations + 2 {
		e, err := s.StartEvaluation(t.Context(), "set", 1, func(context.Context, func(done, all int)) (json.RawMessage, error) { return nil, nil })
		for err == nil && e.State == EvaluationRunning {
			e, err = s.Evaluation(t.Context(), e.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = e.ID
		}
	}
	all, err := s.Evaluations(t.Context())
	if err != nil || len(all) != maxEvaluations {
		t.Errorf("%d evaluations are kept, %v", len(all), err)
	}
	if _, err := s.Evaluation(t.Context(), first); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("the first evaluation: %v", err)
	}
}
