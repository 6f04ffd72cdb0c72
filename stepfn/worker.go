package stepfn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/assay-rag/assay"
)

// A Queue holds the calls of a state machine. *sqs.Client implements it.
type Queue interface {
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, options ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, options ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// Tokens receives the results of tasks. *sfn.Client implements it.
type Tokens interface {
	SendTaskSuccess(ctx context.Context, in *sfn.SendTaskSuccessInput, options ...func(*sfn.Options)) (*sfn.SendTaskSuccessOutput, error)
	SendTaskFailure(ctx context.Context, in *sfn.SendTaskFailureInput, options ...func(*sfn.Options)) (*sfn.SendTaskFailureOutput, error)
	SendTaskHeartbeat(ctx context.Context, in *sfn.SendTaskHeartbeatInput, options ...func(*sfn.Options)) (*sfn.SendTaskHeartbeatOutput, error)
}

// DefaultVisibility is the time after which the message of a worker that died is delivered again.
const DefaultVisibility = 30 * time.Second

// A Worker calls the functions for messages of a queue. Any number of workers may read one queue. A
// message is deleted when its task has a result; one whose worker dies is delivered again.
//
// A message without a token cannot be answered and stays in the queue: its redrive policy should move it
// to a dead-letter queue.
type Worker struct {
	Functions Functions
	Queue     Queue
	QueueURL  string
	Tokens    Tokens

	// Visibility is how long a message stays hidden from other workers, renewed while its function
	// runs; 0: DefaultVisibility. It is at least a second.
	Visibility time.Duration

	// Log, if not nil, is called with errors of the queue and of the state machine, which Run survives.
	Log func(error)
}

// retryAfter is the time between attempts to reach a queue that fails.
const retryAfter = time.Second

// Run reads messages until ctx ends, one at a time, and returns ctx's error. The function of the last
// message is cancelled and its message given back.
func (w *Worker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		out, err := w.Queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &w.QueueURL, MaxNumberOfMessages: 1, WaitTimeSeconds: 20, VisibilityTimeout: seconds(w.visibility()),
		})
		if err != nil {
			w.report(ctx, fmt.Errorf("receive from %s: %w", w.QueueURL, err))
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
			}
			continue
		}
		for _, m := range out.Messages {
			w.handle(ctx, m)
		}
	}
	return ctx.Err()
}

func (w *Worker) visibility() time.Duration {
	if w.Visibility == 0 {
		return DefaultVisibility
	}
	return max(w.Visibility, time.Second)
}

// seconds returns d in whole seconds.
func seconds(d time.Duration) int32 { return int32(d / time.Second) }

// report logs an error, unless it is that of a worker that is being stopped.
func (w *Worker) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && w.Log != nil {
		w.Log(err)
	}
}

// handle calls the function of a message and reports its result to the state machine.
func (w *Worker) handle(ctx context.Context, m sqstypes.Message) {
	body := []byte(aws.ToString(m.Body))
	var c Call
	if err := json.Unmarshal(body, &c); err != nil || c.Token == "" {
		w.report(ctx, fmt.Errorf("message %s has no task token: %w", aws.ToString(m.MessageId), assay.ErrInvalid))
		return
	}
	working, stop := context.WithCancelCause(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { w.beat(working, stop, m, c.Token) })
	result, err := w.Functions.Handle(working, body)
	cause := context.Cause(working)
	stop(nil)
	beats.Wait()
	switch {
	case errors.Is(cause, errGone): // nobody waits for the result
		w.delete(ctx, m)
	case ctx.Err() != nil || errors.Is(err, assay.ErrLeased): // another worker does it, now or later
		w.release(ctx, m)
	default:
		w.answer(ctx, m, c.Token, result, err)
	}
}

// answer sends the result or the failure of a function, and deletes its message.
func (w *Worker) answer(ctx context.Context, m sqstypes.Message, token string, result json.RawMessage, failed error) {
	var err error
	if failed == nil {
		_, err = w.Tokens.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String(string(result))})
	} else {
		f := FailureOf(failed)
		_, err = w.Tokens.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{TaskToken: &token, Error: &f.Name, Cause: &f.Cause})
	}
	if err != nil && !gone(err) {
		w.report(ctx, fmt.Errorf("report the result of a task: %w", err))
		w.release(ctx, m)
		return
	}
	w.delete(ctx, m)
}

// errGone cancels a function whose task has ended.
var errGone = errors.New("the task has ended")

// gone reports whether the state machine waits for a token no more: the task was answered, has timed out
// or its execution has ended.
func gone(err error) bool {
	_, timedOut := errors.AsType[*sfntypes.TaskTimedOut](err)
	_, missing := errors.AsType[*sfntypes.TaskDoesNotExist](err)
	_, invalid := errors.AsType[*sfntypes.InvalidToken](err)
	return timedOut || missing || invalid
}

// beat keeps a message hidden and its task alive until ctx ends. If the task has ended, it stops the
// function.
func (w *Worker) beat(ctx context.Context, stop context.CancelCauseFunc, m sqstypes.Message, token string) {
	ticker := time.NewTicker(w.visibility() / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, err := w.Tokens.SendTaskHeartbeat(ctx, &sfn.SendTaskHeartbeatInput{TaskToken: &token})
		if gone(err) {
			stop(errGone)
			return
		}
		w.report(ctx, err)
		w.hide(ctx, m, w.visibility())
	}
}

// hide hides a message from other workers for a time.
func (w *Worker) hide(ctx context.Context, m sqstypes.Message, d time.Duration) {
	_, err := w.Queue.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &w.QueueURL, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds(d)})
	w.report(ctx, err)
}

// partingTime limits the calls for the last message of a worker that is being stopped.
const partingTime = 5 * time.Second

// release gives a message back: at once if the worker is being stopped, else after a second.
func (w *Worker) release(ctx context.Context, m sqstypes.Message) {
	after := time.Second
	if ctx.Err() != nil {
		after = 0
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer cancel()
	w.hide(parting, m, after)
}

// delete removes a message.
func (w *Worker) delete(ctx context.Context, m sqstypes.Message) {
	_, err := w.Queue.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &w.QueueURL, ReceiptHandle: m.ReceiptHandle})
	w.report(ctx, err)
}
