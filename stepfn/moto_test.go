package stepfn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/strategy"
)

// motoEnv names the address of moto's server, which scripts/moto sets.
const motoEnv = "ASSAY_TEST_MOTO"

// childEnv holds the child that this process is, as JSON.
const childEnv = "ASSAY_TEST_WORKER"

// A child is a worker process that a test kills.
type child struct {
	Moto, Queue, Dir string

	// Hang is the node that the worker does not finish. It makes the file Hanging when it is there.
	Hang    string
	Hanging string
}

// TestMain runs a worker if a test started this process in order to kill it.
func TestMain(m *testing.M) {
	spec := os.Getenv(childEnv)
	if spec == "" {
		os.Exit(m.Run())
	}
	var c child
	err := json.Unmarshal([]byte(spec), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (c child) run(ctx context.Context) error {
	go func() { // the test holds the other end
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	e, err := engine.Open(ctx, configuration(c.Dir, c.hang))
	if err != nil {
		return err
	}
	defer e.Close()
	w := workerFor(c.Moto, c.Queue, e)
	return w.Run(ctx)
}

// hang blocks at the child's node.
func (c child) hang(node strategy.Node) {
	if string(node) == c.Hang {
		_ = os.WriteFile(c.Hanging, nil, 0o644)
		select {}
	}
}

// A storedJudge is the local judge, whose reflector completes questions about passwords and badges never
// and those about leave in the second round.
type storedJudge struct {
	role.Judge
	at func(strategy.Node)
}

func (j storedJudge) Analyse(ctx context.Context, c role.Caller, in role.Reading) (role.Analysis, error) {
	j.at(strategy.AnalystNode)
	return j.Judge.Analyse(ctx, c, in)
}

func (j storedJudge) Reflect(ctx context.Context, c role.Caller, in role.ReflectInput) (role.Reflection, error) {
	j.at(strategy.ReflectorNode)
	question := strings.ToLower(in.Question)
	if strings.Contains(question, "password") || strings.Contains(question, "badge") || strings.Contains(question, "leave") && in.Rounds < 2 {
		return role.Reflection{Status: role.IncompleteStatus, Coverage: 0.5, Threshold: in.Threshold, Justification: "not all"}, nil
	}
	return j.Judge.Reflect(ctx, c, in)
}

// A storedRewriter proposes another query in each round, except for questions about badges.
type storedRewriter struct {
	role.Rewriter
	at func(strategy.Node)
}

func (r storedRewriter) Next(_ context.Context, _ role.Caller, in role.QueryInput) (role.NextQuery, error) {
	r.at(strategy.PlannerNode)
	if strings.Contains(in.Question, "badge") {
		return role.NextQuery{Reason: "there is no other"}, nil
	}
	queries := []string{"annual leave days", "hosts that may be reached", "limits of a user and a tenant"}
	return role.NextQuery{Query: queries[len(in.History)%len(queries)]}, nil
}

// configuration returns the configuration of the engines of all workers. at is called when a role begins
// a node.
func configuration(dir string, at func(strategy.Node)) engine.Config {
	return engine.Config{Dir: dir, NoBackground: true, NoCache: true, Roles: func(r strategy.Roles) strategy.Roles {
		r.Judge, r.Rewriter = storedJudge{r.Judge, at}, storedRewriter{r.Rewriter, at}
		return r
	}}
}

// visibility is short, so that messages of a killed worker come back soon.
const visibility = 3 * time.Second

func workerFor(moto, queue string, e Engine) *Worker {
	return &Worker{
		Functions: Functions{Engine: e, Principal: assay.Local()}, Queue: sqsClient(moto), Tokens: sfnClient(moto), QueueURL: queue, Visibility: visibility,
	}
}

var testCredentials = credentials.NewStaticCredentialsProvider("test", "test", "")

func sqsClient(moto string) *sqs.Client {
	return sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &moto, Credentials: testCredentials})
}

func sfnClient(moto string) *sfn.Client {
	return sfn.New(sfn.Options{Region: "us-east-1", BaseEndpoint: &moto, Credentials: testCredentials})
}

// documents are read before the questions.
var documents = []string{filepath.Join("..", "engine", "testdata", "handbook"), filepath.Join("..", "docs", "egress.md"), filepath.Join("..", "docs", "limits.md")}

// A rig is a state machine in moto with its queue and a data directory.
type rig struct {
	moto, queue, machine, dir string
	engine                    *engine.Engine
	states                    *sfn.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{moto: os.Getenv(motoEnv), dir: t.TempDir()}
	if r.moto == "" {
		t.Skipf("%s is not set; scripts/moto sets it", motoEnv)
	}
	post, err := http.Post(r.moto+"/moto-api/config", "application/json", strings.NewReader(`{"stepfunctions":{"execute_state_machine":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	post.Body.Close()
	name := fmt.Sprintf("reflect-%d", time.Now().UnixNano())
	queue, err := sqsClient(r.moto).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	r.queue, r.states = *queue.QueueUrl, sfnClient(r.moto)
	definition, err := os.ReadFile(filepath.Join(folder, "reflect-sqs.asl.json"))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := r.states.CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{
		Name: &name, RoleArn: aws.String("arn:aws:iam::123456789012:role/reflect"), Definition: aws.String(strings.ReplaceAll(string(definition), "${QueueUrl}", r.queue)),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.machine = *machine.StateMachineArn
	if r.engine, err = engine.Open(t.Context(), configuration(r.dir, func(strategy.Node) {})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.engine.Ingest(t.Context(), engine.IngestRequest{Paths: documents}); err != nil {
		t.Fatal(err)
	}
	return r
}

// A recorder is an engine that records its calls, and makes each twice.
type recorder struct {
	engine Engine

	mu     sync.Mutex
	calls  map[string][]string // by run: the node and the round
	faults []string
}

func (r *recorder) Node(ctx context.Context, who assay.Principal, c engine.NodeCall) (engine.NodeResult, error) {
	first, err := r.engine.Node(ctx, who, c)
	if err != nil {
		if !errors.Is(err, assay.ErrLeased) && ctx.Err() == nil {
			r.fault("%s: %s %d: %v", c.Run, c.Node, c.Round, err)
		}
		return first, err
	}
	again, err := r.engine.Node(ctx, who, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[string][]string{}
	}
	if call := fmt.Sprintf("%s %d", c.Node, c.Round); !slices.Contains(r.calls[c.Run], call) {
		r.calls[c.Run] = append(r.calls[c.Run], call)
	}
	if diff := cmp.Diff(first, again); err == nil && diff != "" {
		r.faults = append(r.faults, fmt.Sprintf("%s: the repeated %s has another result (-first +again):\n%s", c.Run, c.Node, diff))
	}
	return first, nil
}

func (r *recorder) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// A doubling is a queue that delivers each message twice.
type doubling struct{ *sqs.Client }

func (d doubling) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := d.Client.ReceiveMessage(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	for _, m := range out.Messages {
		if strings.HasPrefix(*m.Body, " ") { // it is a copy
			continue
		}
		if _, err := d.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: in.QueueUrl, MessageBody: aws.String(" " + *m.Body)}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// work runs workers until the test ends.
func (r *rig) work(t *testing.T, workers ...*Worker) {
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("a worker: %v", err)
			}
		})
	}
	t.Cleanup(func() { stop(); wg.Wait() })
}

// start starts an execution.
func (r *rig) start(t *testing.T, run, question string) string {
	t.Helper()
	input, err := json.Marshal(Start{Run: run, Request: Request{Question: question}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "start", input)
	out, err := r.states.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: &r.machine, Name: &run, Input: aws.String(string(input))})
	if err != nil {
		t.Fatal(err)
	}
	return *out.ExecutionArn
}

// patience is how long a test waits for an execution.
const patience = 10 * time.Minute

// wait waits for the end of an execution.
func (r *rig) wait(t *testing.T, execution string) *sfn.DescribeExecutionOutput {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Millisecond) {
		out, err := r.states.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &execution})
		if err != nil {
			t.Fatal(err)
		}
		if out.Status != sfntypes.ExecutionStatusRunning {
			return out
		}
	}
	t.Fatalf("the execution %s does not end", execution)
	return nil
}

// answered waits for an execution and returns its answer.
func (r *rig) answered(t *testing.T, execution string) Answer {
	t.Helper()
	out := r.wait(t, execution)
	if out.Status != sfntypes.ExecutionStatusSucceeded {
		t.Fatalf("%s: %s: %s: %s", execution, out.Status, aws.ToString(out.Error), aws.ToString(out.Cause))
	}
	check(t, "answer", []byte(*out.Output))
	var a Answer
	if err := json.Unmarshal([]byte(*out.Output), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// checkTrace checks that the run is in the store with the answer, that its journal leads to it, and that
// the audit log holds its steps and verifies.
func (r *rig) checkTrace(t *testing.T, a Answer) {
	t.Helper()
	if a.Answer == nil {
		t.Fatal("no answer")
	}
	stored, steps, err := r.engine.Run(t.Context(), assay.Local(), a.Run)
	if err != nil || stored.State != assay.RunDone || len(steps) != a.Steps || stored.Answer.Text != a.Answer.Text {
		t.Errorf("run %s is %s with %d steps, want %d: %v", a.Run, stored.State, len(steps), a.Steps, err)
	}
	if _, err := r.engine.Replay(t.Context(), assay.Local(), a.Run); err != nil {
		t.Errorf("replay of %s: %v", a.Run, err)
	}
	s, err := sqlite.Open(t.Context(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tenant, err := s.InspectTenant(t.Context(), engine.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	log := tenant.Audit()
	report, err := audit.VerifyStore(t.Context(), log, nil, nil)
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("audit of %s: %v, findings %v", a.Run, err, report.Findings)
	}
	logged := 0
	for e, err := range log.Entries(t.Context(), 0, report.Size) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Run == a.Run {
			logged++
		}
	}
	if logged != a.Steps {
		t.Errorf("the audit log has %d entries of run %s, want its %d steps", logged, a.Run, a.Steps)
	}
}

// rounds returns the calls of a number of rounds and those of the finaliser after a number of reflections.
func rounds(n, routes int) []string {
	var calls []string
	for round := range n {
		for _, node := range nodes[:4] {
			calls = append(calls, fmt.Sprintf("%s %d", node, round))
		}
	}
	return append(calls, fmt.Sprintf("finaliser %d", routes))
}

// TestMotoRoutes runs the published state machine in moto's interpreter: a question that is completed at
// once, one that is completed in the second round, one for whose second round there is no query, and one
// that is never completed. Two workers get each message
// twice, and call each function twice.
func TestMotoRoutes(t *testing.T) {
	r := newRig(t)
	seen := &recorder{engine: r.engine}
	var workers []*Worker
	for range 2 {
		w := workerFor(r.moto, r.queue, seen)
		w.Queue = doubling{sqsClient(r.moto)}
		workers = append(workers, w)
	}
	r.work(t, workers...)
	defer func() {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for _, fault := range seen.faults {
			t.Error(fault)
		}
	}()
	tests := []struct {
		run, question string
		rounds        int
		routes        int
		status        assay.Status
		stop          assay.Stop
		text          string
	}{
		{"at-once", "Who approves travel to a customer?", 1, 1, assay.Answered, assay.StopSufficient, "the head of the department"},
		{"again", "How long is parental leave?", 2, 2, assay.Answered, assay.StopSufficient, "26 weeks"},
		{"no-query", "Who wears a badge?", 2, 1, assay.Incomplete, assay.StopNoProgress, "badge"},
		{"never", "What must a password have?", 3, 3, assay.Incomplete, assay.StopIterationLimit, "14 characters"},
	}
	executions := map[string]string{}
	for _, tt := range tests {
		executions[tt.run] = r.start(t, tt.run, tt.question)
	}
	for _, tt := range tests {
		a := r.answered(t, executions[tt.run])
		if a.Run != tt.run || a.Status != tt.status || a.Stop != tt.stop || a.Answer == nil || !strings.Contains(a.Answer.Text, tt.text) {
			t.Errorf("%s: %s (%s), %+v; want %s (%s)", tt.run, a.Status, a.Stop, a.Answer, tt.status, tt.stop)
		}
		seen.mu.Lock()
		if diff := cmp.Diff(rounds(tt.rounds, tt.routes), seen.calls[tt.run]); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", tt.run, diff)
		}
		seen.mu.Unlock()
		r.checkTrace(t, a)
	}
}

// TestMotoFails checks that an error that no retry avoids ends the execution with its name.
func TestMotoFails(t *testing.T) {
	r := newRig(t)
	r.work(t, workerFor(r.moto, r.queue, r.engine))
	out := r.wait(t, r.start(t, "empty", "   "))
	if out.Status != sfntypes.ExecutionStatusFailed || aws.ToString(out.Error) != "assay.invalid" { // moto loses the cause

		t.Errorf("%s: %s: %s", out.Status, aws.ToString(out.Error), aws.ToString(out.Cause))
	}
}

// TestMotoKilled kills a worker in the middle of the planner, the analyst and the reflector. Another one
// gets the message again and continues the node after its last step.
func TestMotoKilled(t *testing.T) {
	for _, node := range []strategy.Node{strategy.PlannerNode, strategy.AnalystNode, strategy.ReflectorNode} {
		t.Run(string(node), func(t *testing.T) {
			r := newRig(t)
			c := child{Moto: r.moto, Queue: r.queue, Dir: r.dir, Hang: string(node), Hanging: filepath.Join(t.TempDir(), "hanging")}
			spec, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			worker := exec.CommandContext(t.Context(), os.Args[0])
			worker.Env = append(os.Environ(), childEnv+"="+string(spec))
			worker.Stderr = os.Stderr
			if _, err := worker.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			execution := r.start(t, "killed", "How long is parental leave?")
			for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
				if _, err := os.Stat(c.Hanging); err == nil {
					break
				}
				if time.Since(began) > patience {
					t.Fatal("the worker does not come to the node")
				}
			}
			_, before, err := r.engine.Run(t.Context(), assay.Local(), "killed")
			if err != nil {
				t.Fatal(err)
			}
			if err := worker.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = worker.Wait()
			r.work(t, workerFor(r.moto, r.queue, r.engine), workerFor(r.moto, r.queue, r.engine))
			a := r.answered(t, execution)
			if a.Status != assay.Answered || a.Answer == nil || !strings.Contains(a.Answer.Text, "26 weeks") {
				t.Errorf("%s: %+v", a.Status, a.Answer)
			}
			_, after, err := r.engine.Run(t.Context(), assay.Local(), "killed")
			if err != nil || len(after) < len(before) || len(before) == 0 {
				t.Fatalf("%d steps before, %d after: %v", len(before), len(after), err)
			}
			if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
				t.Errorf("the steps before the kill were taken again (-before +after):\n%s", diff)
			}
			r.checkTrace(t, a)
		})
	}
}
