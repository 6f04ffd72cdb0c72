package stepfn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// A desk is a queue with one message, and the state machine that waits for its result. It notes what the
// worker does.
type desk struct {
	body string
	gone error // of each report of a result
	late error // of each heartbeat
	done func(did []string) bool
	stop context.CancelFunc

	mu    sync.Mutex
	given bool
	did   []string
}

func (d *desk) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, fmt.Sprintf(format, args...))
	if d.done(d.did) {
		d.stop()
	}
}

func (d *desk) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	d.mu.Lock()
	given := d.given
	d.given = true
	d.mu.Unlock()
	if given {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &sqs.ReceiveMessageOutput{Messages: []sqstypes.Message{{Body: &d.body, ReceiptHandle: aws.String("r"), MessageId: aws.String("m")}}}, nil
}

func (d *desk) DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	d.note("delete")
	return &sqs.DeleteMessageOutput{}, nil
}

func (d *desk) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	d.note("hide %d", in.VisibilityTimeout)
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (d *desk) SendTaskSuccess(_ context.Context, in *sfn.SendTaskSuccessInput, _ ...func(*sfn.Options)) (*sfn.SendTaskSuccessOutput, error) {
	d.note("success %s", *in.TaskToken)
	return &sfn.SendTaskSuccessOutput{}, d.gone
}

func (d *desk) SendTaskFailure(_ context.Context, in *sfn.SendTaskFailureInput, _ ...func(*sfn.Options)) (*sfn.SendTaskFailureOutput, error) {
	d.note("failure %s: %s", *in.Error, *in.Cause)
	return &sfn.SendTaskFailureOutput{}, d.gone
}

func (d *desk) SendTaskHeartbeat(context.Context, *sfn.SendTaskHeartbeatInput, ...func(*sfn.Options)) (*sfn.SendTaskHeartbeatOutput, error) {
	d.note("heartbeat")
	return &sfn.SendTaskHeartbeatOutput{}, d.late
}

// A slowEngine waits until its context ends.
type slowEngine struct{ began func() }

func (s slowEngine) Node(ctx context.Context, _ assay.Principal, _ engine.NodeCall) (engine.NodeResult, error) {
	s.began()
	<-ctx.Done()
	return engine.NodeResult{}, ctx.Err()
}

// TestWorker checks what a worker does with its message after each result of its function.
func TestWorker(t *testing.T) {
	const message = `{"node":"planner","token":"t","state":{"run":"a","request":{"question":"q"}}}`
	planned := engine.NodeResult{Progress: strategy.Progress{Node: strategy.PlannerNode}}
	busy := errors.New("the service is busy")
	tests := []struct {
		name   string
		body   string
		engine fixedEngine
		gone   error
		want   []string
	}{
		{"a result", message, fixedEngine{result: planned}, nil, []string{"success t", "delete"}},
		{"a failure", message, fixedEngine{err: fmt.Errorf("no: %w", assay.ErrDamaged)}, nil, []string{"failure assay.damaged: no: " + assay.ErrDamaged.Error(), "delete"}},
		{"a wrong call", strings.Replace(message, "planner", "router", 1), fixedEngine{}, nil, []string{`failure assay.invalid: there is no function "router": ` + assay.ErrInvalid.Error(), "delete"}},
		{"another worker drives the run", message, fixedEngine{err: assay.ErrLeased}, nil, []string{"hide 1"}},
		{"a task that has timed out", message, fixedEngine{result: planned}, &sfntypes.TaskTimedOut{}, []string{"success t", "delete"}},
		{"a token that is not valid", message, fixedEngine{result: planned}, &sfntypes.InvalidToken{}, []string{"success t", "delete"}},
		{"a result that cannot be reported", message, fixedEngine{result: planned}, busy, []string{"success t", "hide 1"}},
	}
	for _, tt := range tests {
		ctx, stop := context.WithCancel(t.Context())
		d := &desk{body: tt.body, gone: tt.gone, stop: stop, done: func(did []string) bool { return len(did) == len(tt.want) }}
		w := &Worker{Functions: Functions{Engine: &tt.engine, Principal: assay.Local()}, Queue: d, Tokens: d}
		if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Run: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, d.did); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestWorkerLeaves checks that a message without a token stays in the queue and is reported.
func TestWorkerLeaves(t *testing.T) {
	for _, body := range []string{"hello", `{"node":"planner","state":{}}`} {
		ctx, stop := context.WithCancel(t.Context())
		d := &desk{body: body, done: func([]string) bool { return false }}
		var logged error
		w := &Worker{Queue: d, Tokens: d, Log: func(err error) { logged = err; stop() }}
		if err := w.Run(ctx); !errors.Is(err, context.Canceled) || !errors.Is(logged, assay.ErrInvalid) || len(d.did) > 0 {
			t.Errorf("%s: %v, logged %v, did %q", body, err, logged, d.did)
		}
	}
}

// TestWorkerStops checks that a worker that is being stopped gives its message back at once, and that one
// whose task has ended stops its function.
func TestWorkerStops(t *testing.T) {
	const message = `{"node":"planner","token":"t","state":{"run":"a","request":{"question":"q"}}}`
	ctx, stop := context.WithCancel(t.Context())
	d := &desk{body: message, done: func([]string) bool { return false }}
	w := &Worker{Functions: Functions{Engine: slowEngine{stop}}, Queue: d, Tokens: d}
	if err := w.Run(ctx); !errors.Is(err, context.Canceled) || !slices.Equal(d.did, []string{"hide 0"}) {
		t.Errorf("a worker that is stopped: %v, did %q", err, d.did)
	}

	ctx, stop = context.WithCancel(t.Context())
	d = &desk{body: message, late: &sfntypes.TaskTimedOut{}, stop: stop, done: func(did []string) bool { return did[len(did)-1] == "delete" }}
	w = &Worker{Functions: Functions{Engine: slowEngine{func() {}}}, Queue: d, Tokens: d, Visibility: 1}
	if err := w.Run(ctx); !errors.Is(err, context.Canceled) || !slices.Equal(d.did, []string{"heartbeat", "delete"}) {
		t.Errorf("a worker whose task has timed out: %v, did %q", err, d.did)
	}
}
