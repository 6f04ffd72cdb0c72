//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/pgtest"
)

// A cluster is a database, the servers and workers on it, and a model that they call.
type cluster struct {
	*sandbox
	database string
	model    *fakeModel
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{sandbox: newSandbox(t), database: pgtest.Database(t)}
	var err error
	if c.model, err = newFakeModel("ollama"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.model.CloseClientConnections()
		c.model.Close()
	})
	return c
}

// assay returns a command on the database, on a machine of its own.
func (c *cluster) assay(machine string, args ...string) *exec.Cmd {
	cmd := c.command(args...)
	cmd.Env = append(cmd.Env, "ASSAY_STORE="+c.database, "ASSAY_DATA="+filepath.Join(c.dir, machine), "OLLAMA_HOST="+c.model.URL)
	return cmd
}

// output runs a command and returns its standard output. The test fails unless it succeeds.
func (c *cluster) output(args ...string) string {
	c.t.Helper()
	out, err := c.assay("admin", args...).CombinedOutput()
	if err != nil {
		c.t.Errorf("assay %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A clusterProcess is a server or a worker.
type clusterProcess struct {
	*exec.Cmd
	url string // of a server
}

// start starts a server or a worker and returns when its log says that it is ready.
func (c *cluster) start(machine, ready string, args ...string) *clusterProcess {
	c.t.Helper()
	p := &clusterProcess{Cmd: c.assay(machine, args...)}
	out, err := p.StderrPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = p.Process.Kill() })
	lines := bufio.NewScanner(out)
	var said strings.Builder
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), ready) {
			p.url = servesURL.FindString(lines.Text())
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p
		}
	}
	c.t.Fatalf("assay %s did not start:\n%s", strings.Join(args, " "), said.String())
	return nil
}

func (c *cluster) server(machine string, args ...string) *clusterProcess {
	c.t.Helper()
	return c.start(machine, "assay serves", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
}

func (c *cluster) worker(machine string) *clusterProcess {
	c.t.Helper()
	return c.start(machine, "assay works", "worker", "--documents", "2")
}

// end ends a process with SIGTERM.
func (c *cluster) end(p *clusterProcess) {
	c.t.Helper()
	if err := errors.Join(p.Process.Signal(syscall.SIGTERM), p.Wait()); err != nil {
		c.t.Errorf("%v: %v", p.Args[1:], err)
	}
}

// kill kills a process.
func (c *cluster) kill(p *clusterProcess) {
	c.t.Helper()
	if err := p.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = p.Wait()
}

// put uploads a document and returns the status and the body of the response.
func (c *cluster) put(p *clusterProcess, name, text string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), "PUT", p.url+"/api/v1/collections/default/documents/"+name, strings.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// follow follows a run until it ends and returns its last event. A stream that says that it may be
// resumed is followed again.
func (c *cluster) follow(p *clusterProcess, run string) serverEvent {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 4*time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, "GET", p.url+"/api/v1/runs/"+run+"/events", nil)
		if err != nil {
			c.t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			c.t.Fatal(err)
		}
		var last serverEvent
		err = readEvents(resp.Body, func(ev serverEvent) error {
			last = ev
			if ev.event == "answer" || ev.event == "error" {
				return errRunEnded
			}
			return nil
		})
		resp.Body.Close()
		if ctx.Err() != nil {
			c.t.Fatalf("the run did not end: %v", err)
		}
		if last.event == "answer" || last.event == "error" && !strings.Contains(last.data, `"resumable":true`) {
			return last
		}
	}
}

// begin asks a question in the background and returns the run.
func (c *cluster) begin(p *clusterProcess) string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), "POST", p.url+"/api/v1/ask",
		strings.NewReader(`{"question": "Who approves travel to a customer?", "strategy": "corrective", "no_cache": true}`))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	run := ""
	err = readEvents(resp.Body, func(ev serverEvent) error {
		var body struct {
			Run string `json:"run"`
		}
		if err := json.Unmarshal([]byte(ev.data), &body); err != nil {
			return err
		}
		run = body.Run
		return errRunEnded
	})
	if run == "" {
		c.t.Fatalf("no run began: %v", err)
	}
	return run
}

// TestPostgresCommands runs commands on a store in a database, which needs no data directory.
func TestPostgresCommands(t *testing.T) {
	c := newCluster(t)
	if out := c.output("ingest", "handbook"); !strings.Contains(out, "2 added") {
		t.Errorf("ingest prints %q", out)
	}
	for _, x := range []struct{ words, line string }{
		{"2 documents", "documents"},
		{"Approval", "search|approves travel"},
		{"head of the department", "ask|--local|Who approves travel to a customer?"},
		{"tenant acme created", "tenant|create|acme"},
		{"acme", "tenant|list"},
		{"primary with 0 replicas", "doctor|--offline"},
	} {
		if out := c.output(strings.Split(x.line, "|")...); !strings.Contains(out, x.words) {
			t.Errorf("assay %s prints %q, want %q", x.line, out, x.words)
		}
	}
	other := c.assay("another", "documents")
	if out, err := other.CombinedOutput(); err != nil || !strings.Contains(string(out), "2 documents") {
		t.Errorf("another machine sees %q, %v", out, err)
	}
	out, err := c.assay("admin", "backup", filepath.Join(c.dir, "backup")).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitUsage || !strings.Contains(string(out), "pg_dump") {
		t.Errorf("backup: %v\n%s", err, out)
	}
}

// TestPostgresPassword checks that no command accepts a password where others can read it, or prints it.
func TestPostgresPassword(t *testing.T) {
	s := newSandbox(t)
	const address = "postgres://assay:hunter2hunter2@127.0.0.1:1/none?connect_timeout=1"
	s.want(exitUsage, "set PGPASSWORD, PGPASSFILE or ASSAY_STORE", "documents", "--store", address)
	for _, command := range []string{"documents", "doctor", "worker", "queue list", "serve --listen 127.0.0.1:0"} {
		cmd := s.command(strings.Fields(command)...)
		cmd.Env = append(cmd.Env, "ASSAY_STORE="+address)
		out, err := cmd.CombinedOutput()
		if err == nil || strings.Contains(string(out), "hunter2") {
			t.Errorf("assay %s: %v\n%s", command, err, out)
		}
	}
}

// TestPostgresServers asks on one server, follows on another and kills the first. The second finishes the
// run, and the stream from it ends with the answer.
func TestPostgresServers(t *testing.T) {
	c := newCluster(t)
	c.output("ingest", "handbook")
	c.model.mu.Lock()
	c.model.hold = 0 // no call is answered
	c.model.mu.Unlock()
	a, b := c.server("a"), c.server("b")
	run := c.begin(a)
	c.await(func() bool {
		c.model.mu.Lock()
		defer c.model.mu.Unlock()
		return c.model.calls > 0
	})
	ended := make(chan serverEvent, 1)
	go func() { ended <- c.follow(b, run) }()
	c.kill(a)
	c.model.mu.Lock()
	c.model.hold = -1
	c.model.mu.Unlock()
	if ev := <-ended; ev.event != "answer" || !strings.Contains(ev.data, "head of the department") {
		t.Errorf("the stream ends with %+v", ev)
	}
	c.end(b)
	c.output("doctor", "--offline") // which verifies the audit log
}

// TestPostgresCancel cancels on one server a run that another drives.
func TestPostgresCancel(t *testing.T) {
	c := newCluster(t)
	c.output("ingest", "handbook")
	c.model.mu.Lock()
	c.model.hold = 0
	c.model.mu.Unlock()
	a, b := c.server("a"), c.server("b")
	run := c.begin(a)
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.url+"/api/v1/runs/"+run+"/cancel", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("cancel: %s", resp.Status)
	}
	if ev := c.follow(b, run); !strings.Contains(ev.data, "cancelled") {
		t.Errorf("the stream ends with %+v", ev)
	}
	c.end(a)
	c.end(b)
}

// TestWorker uploads documents through two servers. A worker that is killed and another store them.
func TestWorker(t *testing.T) {
	const documents = 40
	c := newCluster(t)
	a, b := c.server("a", "--queue", "store"), c.server("b", "--queue", "store")
	first := c.worker("first")
	for i := range documents {
		server := a
		if i%2 == 1 {
			server = b
		}
		status, body := c.put(server, fmt.Sprintf("note-%d.txt", i), fmt.Sprintf("Note %d says that locker %d is green.\n", i, i))
		if status != http.StatusAccepted || !strings.Contains(body, `"queued"`) {
			t.Fatalf("upload: %d %s", status, body)
		}
		if i == documents/2 {
			c.kill(first)
		}
	}
	second := c.worker("second")
	c.await(func() bool { return strings.Contains(c.output("documents"), fmt.Sprintf("%d documents", documents)) })
	if status, _ := c.put(a, "broken.pdf", "%PDF-1.7 no PDF"); status != http.StatusAccepted {
		t.Errorf("upload of a broken document: %d", status)
	}
	c.await(func() bool { return strings.Contains(c.output("queue", "list", "--state", "failed"), "broken.pdf") })
	var jobs []struct {
		ID    int64
		Error string
	}
	if err := json.Unmarshal([]byte(c.output("queue", "list", "--state", "failed", "--json")), &jobs); err != nil || len(jobs) != 1 || jobs[0].Error == "" {
		t.Fatalf("failed jobs: %+v, %v", jobs, err)
	}
	if out := c.output("queue", "drop", fmt.Sprint(jobs[0].ID)); !strings.Contains(out, "is dropped") {
		t.Errorf("drop prints %q", out)
	}
	c.end(second)
	c.end(a)
	c.end(b)
	c.output("doctor", "--offline") // which verifies the audit log
}

// TestQueuedUpload uploads documents to a server with a queue and asks it what became of them, as several users.
func TestQueuedUpload(t *testing.T) {
	c := newCluster(t)
	c.output("tenant", "create", "other")
	key := func(args ...string) string {
		out, err := c.assay("admin", append([]string{"key", "create"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	ann, bob := key("--user", "ann", "--role", "editor"), key("--user", "bob", "--role", "editor")
	admin, reader := key("--user", "eve", "--role", "admin"), key("--user", "ann", "--role", "reader")
	foreign := key("--user", "ann", "--role", "admin", "--tenant", "other")
	server := c.server("a", "--queue", "store", "--keys")
	call := func(key, method, path, body string) (*http.Response, map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, server.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		values := map[string]any{}
		if err := json.NewDecoder(resp.Body).Decode(&values); err != nil {
			t.Fatal(err)
		}
		return resp, values
	}
	upload := func(name, text string) string {
		t.Helper()
		resp, values := call(ann, "PUT", "/api/v1/collections/default/documents/"+name, text)
		job := resp.Header.Get("Location")
		if resp.StatusCode != http.StatusAccepted || job != fmt.Sprintf("/api/v1/jobs/%s", values["job"]) {
			t.Fatalf("upload of %s: %s, %s, %v", name, resp.Status, job, values)
		}
		return job
	}
	good, broken := upload("note.txt", "Locker 7 is green."), upload("broken.pdf", "%PDF-1.7 no PDF")
	if _, values := call(ann, "GET", good, ""); values["state"] != "queued" || values["uri"] != "upload:note.txt" {
		t.Errorf("before a worker: %v", values)
	}
	worker := c.worker("worker")
	ended := func(job, state string) (values map[string]any) {
		c.await(func() bool {
			_, values = call(ann, "GET", job, "")
			return values["state"] == "done" || values["state"] == "failed"
		})
		if values["state"] != state {
			t.Errorf("%s is %v, want %s", job, values, state)
		}
		return values
	}
	done := ended(good, "done")
	if resp, values := call(ann, "GET", fmt.Sprintf("/api/v1/documents/%s", done["document"]), ""); resp.StatusCode != http.StatusOK {
		t.Errorf("the document of a job that is done: %v", values)
	}
	failed := ended(broken, "failed")
	if reason := fmt.Sprint(failed["reason"]); !strings.Contains(reason, "PDF") || strings.Contains(reason, "Cancel") {
		t.Errorf("the reason of %v", failed)
	}
	for _, x := range []struct {
		who, key, job string
		status        int
	}{
		{"the uploader", ann, broken, http.StatusOK}, {"an administrator", admin, broken, http.StatusOK},
		{"another user", bob, broken, http.StatusNotFound}, {"another tenant", foreign, broken, http.StatusNotFound},
		{"a reader", reader, broken, http.StatusForbidden}, {"nobody", "x", broken, http.StatusUnauthorized},
		{"the uploader", ann, "/api/v1/jobs/4711", http.StatusNotFound}, {"the uploader", ann, "/api/v1/jobs/none", http.StatusNotFound},
	} {
		if resp, values := call(x.key, "GET", x.job, ""); resp.StatusCode != x.status {
			t.Errorf("%s asks for %s: %s %v, want %d", x.who, x.job, resp.Status, values, x.status)
		}
	}
	c.end(worker)
	c.end(server)
}
