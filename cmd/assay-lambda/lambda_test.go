package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/standalone"
	"github.com/assay-rag/assay/stepfn"
	"github.com/assay-rag/assay/strategy"
)

// childEnv makes this process the program.
const childEnv = "ASSAY_TEST_LAMBDA"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// patience limits how long a test waits.
const patience = 5 * time.Minute

// withHandbook returns a data directory with the handbook.
func withHandbook(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	e, err := standalone.Open(t.Context(), dir, func(c *engine.Config) { c.NoBackground = true })
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{filepath.Join("..", "..", "engine", "testdata", "handbook")}, Wait: true})
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A runtimeAPI is the Lambda Runtime API of one function.
type runtimeAPI struct {
	events chan []byte
	posts  chan post
}

// A post is what the function reports.
type post struct {
	path, kind string // after /2018-06-01/runtime, and the type of an error
	body       []byte
}

func (a *runtimeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/2018-06-01/runtime")
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		a.posts <- post{path, r.Header.Get("Lambda-Runtime-Function-Error-Type"), body}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if path != "/invocation/next" {
		http.NotFound(w, r)
		return
	}
	select {
	case event := <-a.events:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "request")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(patience).UnixMilli()))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:reflect")
		_, _ = w.Write(event)
	case <-r.Context().Done():
	}
}

// call hands an event to the function and returns its response or error.
func (a *runtimeAPI) call(t testing.TB, event []byte) post {
	t.Helper()
	a.events <- event
	return a.report(t)
}

func (a *runtimeAPI) report(t testing.TB) post {
	t.Helper()
	select {
	case p := <-a.posts:
		return p
	case <-time.After(patience):
		t.Fatal("the function reports nothing")
		return post{}
	}
}

// startLambda starts this process's program as a function on a data directory. wait returns its exit code.
func startLambda(t testing.TB, dir string) (api *runtimeAPI, wait func() int) {
	t.Helper()
	api, cmd, ended := startProgram(t, os.Args[0], dir)
	return api, func() int {
		<-ended
		return cmd.ProcessState.ExitCode()
	}
}

// startProgram starts a program as a function on a data directory. The channel has its end.
func startProgram(t testing.TB, program, dir string) (*runtimeAPI, *exec.Cmd, <-chan error) {
	t.Helper()
	api := &runtimeAPI{events: make(chan []byte), posts: make(chan post, 1)}
	s := httptest.NewServer(api)
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), childEnv+"=1", runtimeVariable+"="+strings.TrimPrefix(s.URL, "http://"), "ASSAY_DATA="+dir)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		s.CloseClientConnections()
		s.Close()
		if t.Failed() {
			t.Logf("the function wrote:\n%s", log.String())
		}
	})
	return api, cmd, ended
}

// BenchmarkColdStart measures the program, with the embedded models and a small data directory, from its start
// until it asks for the first event and until the planner has answered, which opens the models. The file of the
// program is in memory already.
func BenchmarkColdStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "assay-lambda")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	dir := withHandbook(b)
	var asked, answered, used []time.Duration
	for i := range b.N {
		event := fmt.Appendf(nil, `{"node":"planner","execution":"%d-%d","state":{"request":{"question":"How long is parental leave?"}}}`, i, b.N)
		began := time.Now()
		api, cmd, ended := startProgram(b, program, dir)
		api.events <- event
		asked = append(asked, time.Since(began))
		if p := api.report(b); p.path != "/invocation/request/response" {
			b.Fatalf("%s %s", p.path, p.body)
		}
		answered = append(answered, time.Since(began))
		if err := cmd.Process.Kill(); err != nil {
			b.Fatal(err)
		}
		<-ended
		used = append(used, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	for unit, times := range map[string][]time.Duration{"ms-until-asked": asked, "ms-until-answered": answered, "ms-cpu": used} {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, unit)
	}
}

// TestLambda drives a run through all functions, each a call of the Runtime API, and checks that an error
// has the name of the state machine and does not end the function.
func TestLambda(t *testing.T) {
	t.Parallel()
	api, _ := startLambda(t, withHandbook(t))
	p := api.call(t, []byte(`{"node":"retriever","state":{"run":"a","node":"planner"}}`))
	var failure struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(p.body, &failure); err != nil || p.path != "/invocation/request/error" || failure.ErrorType != "assay.not_found" {
		t.Errorf("a run that does not exist: %s %s: %v", p.path, p.body, err)
	}
	state := []byte(`{"request":{"question":"How long is parental leave?"}}`)
	nodes := []strategy.Node{strategy.PlannerNode, strategy.RetrieverNode, strategy.AnalystNode, strategy.ReflectorNode, strategy.FinaliserNode}
	for _, node := range nodes {
		event := fmt.Appendf(nil, `{"node":%q,"execution":"leave","state":%s}`, node, state)
		if p = api.call(t, event); p.path != "/invocation/request/response" {
			t.Fatalf("%s: %s %s", node, p.path, p.body)
		}
		if again := api.call(t, event); !bytes.Equal(p.body, again.body) {
			t.Errorf("%s: repeated: %s, first %s", node, again.body, p.body)
		}
		state = p.body
	}
	var a stepfn.Answer
	if err := json.Unmarshal(state, &a); err != nil || a.Status != assay.Answered || !strings.Contains(a.Answer.Text, "26 weeks") {
		t.Errorf("the answer is %s: %v", state, err)
	}
}

// TestLambdaInitError checks that a function that cannot open its data says so to the Runtime API and
// ends.
func TestLambdaInitError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ dir, kind string }{
		"no data":      {"", "assay.invalid"},
		"another data": {dir, "assay.foreign"},
	} {
		api, wait := startLambda(t, test.dir)
		p := api.report(t)
		if p.path != "/init/error" || p.kind != test.kind || !strings.Contains(string(p.body), test.kind) {
			t.Errorf("%s: %s %s %s, want %s", name, p.path, p.kind, p.body, test.kind)
		}
		if code := wait(); code == 0 {
			t.Errorf("%s: the function ends with 0", name)
		}
	}
}

// TestAgentCore checks the HTTP protocol of AgentCore's containers: health, a question, the functions and
// errors.
func TestAgentCore(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ASSAY_DATA": withHandbook(t), "ASSAY_USER": "ann", "ASSAY_GROUPS": "staff, legal"}
	p := &program{getenv: func(name string) string { return env[name] }, log: io.Discard}
	if who := p.principal(); who.User != "ann" || len(who.Groups) != 2 || who.Groups[1] != "legal" {
		t.Errorf("the principal is %+v", who)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.serve(ctx, l) }()
	base := "http://" + l.Addr().String()

	ping := exchange(t, http.MethodGet, base+"/ping", "", http.StatusOK)
	if ping["status"] != "Healthy" || ping["time_of_last_update"].(float64) <= 0 {
		t.Errorf("ping: %v", ping)
	}
	got := exchange(t, http.MethodPost, base+"/invocations", `{"prompt":"How long is parental leave?"}`, http.StatusOK)
	if got["status"] != "success" || !strings.Contains(got["response"].(string), "26 weeks") || got["answer"].(map[string]any)["strategy"] != "reflect" {
		t.Errorf("a question: %v", got)
	}
	got = exchange(t, http.MethodPost, base+"/invocations", `{"node":"planner","execution":"e","state":{"request":{"question":"Who approves travel?"}}}`, http.StatusOK)
	if got["run"] != "e" || got["node"] != "planner" || got["steps"].(float64) < 1 {
		t.Errorf("the planner: %v", got)
	}
	for body, want := range map[string]int{
		`{"prompt":""}`: http.StatusBadRequest, `hello`: http.StatusBadRequest, `{"node":"router","state":{}}`: http.StatusBadRequest,
		`{"prompt":"x","strategy":"none"}`:                             http.StatusBadRequest,
		`{"prompt":"` + strings.Repeat("x", maxInvocation) + `"}`:      http.StatusRequestEntityTooLarge,
		`{"node":"retriever","state":{"run":"none","node":"planner"}}`: http.StatusNotFound,
	} {
		if got := exchange(t, http.MethodPost, base+"/invocations", body, want); got["status"] != "error" || got["message"] == "" {
			t.Errorf("%.40s: %v", body, got)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// exchange makes a request and returns the JSON of its response.
func exchange(t *testing.T, method, url, body string, status int) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var v map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil || resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s %s: %s, want %d: %v: %v", method, url, resp.Status, status, v, err)
	}
	return v
}

// TestLicenses checks that the licences of the program are part of it.
func TestLicenses(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := (&program{out: &out}).run(t.Context(), []string{"licenses"}); err != nil || !strings.Contains(out.String(), "github.com/aws/aws-lambda-go") {
		t.Errorf("%d bytes of licences: %v", out.Len(), err)
	}
}

// TestModes checks that the program rejects a missing, unknown or ambiguous mode.
func TestModes(t *testing.T) {
	t.Parallel()
	p := &program{getenv: func(string) string { return "" }, log: io.Discard}
	for _, args := range [][]string{nil, {"serve"}, {"lambda", "worker"}, {"worker"}} {
		if err := p.run(t.Context(), args); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
