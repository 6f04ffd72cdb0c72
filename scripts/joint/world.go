//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// The kinds of processes that are killed, in their order.
const (
	kindServer   = "server"
	kindWorker   = "worker"
	kindDatabase = "primary"
	kindNode     = "node"
)

// readyTime is how long a process may take to be ready again.
const readyTime = 10 * time.Minute

// A world is everything that runs.
type world struct {
	o        options
	database *database
	nodes    *nodes // nil: the index is not in a cluster
	servers  []*process
	workers  []*process
	tenants  []*tenant
}

// A tenant has a key, and a word that is in each of its documents.
type tenant struct {
	name, canary, key string
}

// start starts everything and creates two tenants.
func start(ctx context.Context, o options) (w *world, err error) {
	w = &world{o: o}
	if w.nodes, err = findNodes(o.index); err != nil {
		return w, err
	}
	o.log("starting PostgreSQL with a synchronous replica")
	if w.database, err = newDatabase(ctx, filepath.Join(o.dir, "postgres"), o.log); err != nil {
		return w, err
	}
	for _, name := range []string{"acme", "globex"} {
		t := &tenant{name: name, canary: "canary" + name + strings.ToLower(rand.Text()[:8])}
		if _, err := w.assay(ctx, "tenant", "create", name); err != nil {
			return w, err
		}
		key, err := w.assay(ctx, "key", "create", "--tenant", name, "--user", "load", "--role", "editor", "--role", "reader", "--json")
		if err != nil {
			return w, err
		}
		var made struct{ Text string }
		if err := json.Unmarshal(key, &made); err != nil || made.Text == "" {
			return w, fmt.Errorf("key create: %w: %s", err, key)
		}
		t.key = made.Text
		w.tenants = append(w.tenants, t)
	}
	if err := w.checkpoint(ctx); err != nil {
		return w, err
	}
	o.log("starting three servers and two workers")
	for i := range 3 {
		w.servers = append(w.servers, w.process(fmt.Sprint("server", i+1), "assay serves", "serve", "--listen", "127.0.0.1:0", "--keys"))
	}
	for i := range 2 {
		w.workers = append(w.workers, w.process(fmt.Sprint("worker", i+1), "assay works", "worker", "--documents", "2"))
	}
	for _, p := range append(slices.Clone(w.servers), w.workers...) {
		if err := p.ready(ctx); err != nil {
			return w, err
		}
	}
	return w, nil
}

// command returns a command on the database, on a machine of its own.
func (w *world) command(machine string, args ...string) *exec.Cmd {
	cmd := exec.Command(w.o.binary, args...)
	cmd.Dir = w.o.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program alone
	cmd.Env = append(os.Environ(), "HOME="+w.o.dir, "ASSAY_STORE="+w.database.url(), "ASSAY_QUEUE=store",
		"ASSAY_DATA="+filepath.Join(w.o.dir, machine), "ASSAY_INDEX="+w.o.index)
	if w.nodes != nil {
		cmd.Env = append(cmd.Env, "ASSAY_INDEX_URL="+strings.Join(w.nodes.addresses, ",")+"?shards=3&replicas=1")
	}
	return cmd
}

// assay runs a command to its end and returns its standard output.
func (w *world) assay(ctx context.Context, args ...string) ([]byte, error) {
	cmd := w.command("admin", args...)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return out, errors.Join(fmt.Errorf("assay %s: %w\n%s%s", strings.Join(args, " "), err, out, failed.Bytes()), ctx.Err())
	}
	return out, nil
}

// logsOf are the arguments that name each audit log, and the file with its checkpoint.
func (w *world) logsOf() map[string][]string {
	logs := map[string][]string{filepath.Join(w.o.dir, "system.checkpoint"): {"--system"}}
	for _, t := range w.tenants {
		logs[filepath.Join(w.o.dir, t.name+".checkpoint")] = []string{"--tenant", t.name}
	}
	return logs
}

// auditKey is the file of the key that signs checkpoints.
func (w *world) auditKey() string { return filepath.Join(w.o.dir, "verifier.key") }

// verify verifies an audit log with its checkpoint.
func (w *world) verify(ctx context.Context, file string, log []string) error {
	key, err := w.assay(ctx, append([]string{"audit", "key", "show", "--key", w.auditKey()}, log...)...)
	if err == nil {
		_, err = w.assay(ctx, append([]string{"audit", "verify", "--key", strings.TrimSpace(string(key)), "--checkpoint", file}, log...)...)
	}
	return err
}

// checkpoint signs a checkpoint of each audit log, which is kept apart from the database.
func (w *world) checkpoint(ctx context.Context) error {
	key := w.auditKey()
	if _, err := w.assay(ctx, "audit", "key", "new", key); err != nil {
		return err
	}
	for file, log := range w.logsOf() {
		if _, err := w.assay(ctx, append([]string{"audit", "checkpoint", "--key", key, "--to", file}, log...)...); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) close() {
	for _, p := range append(slices.Clone(w.servers), w.workers...) {
		p.close()
	}
	if w.database != nil {
		w.database.close()
	}
}

// A process is a server or a worker, which is started again whenever it ends, as an init system does.
type process struct {
	w       *world
	name    string
	started string // what its log says when it is ready
	args    []string
	url     atomic.Pointer[string] // of a server
	stopped chan struct{}
	kept    sync.WaitGroup

	mu     sync.Mutex
	cmd    *exec.Cmd
	begun  int      // how often it was started
	up     int      // the last start that was ready
	killed bool     // the present one
	ends   []string // by itself, with the end of its log
}

var servesURL = lazyregexp.New(`http://[0-9.:]+`)

// process starts a process.
func (w *world) process(name, started string, args ...string) *process {
	p := &process{w: w, name: name, started: started, args: args, stopped: make(chan struct{})}
	p.kept.Go(func() {
		for p.once() {
			select {
			case <-time.After(500 * time.Millisecond):
			case <-p.stopped:
				return
			}
		}
	})
	return p
}

// once runs the process until it ends, and reports whether it is to be started again.
func (p *process) once() bool {
	p.mu.Lock()
	select {
	case <-p.stopped:
		p.mu.Unlock()
		return false
	default:
	}
	cmd := p.w.command(p.name, p.args...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.ends = append(p.ends, err.Error())
		p.mu.Unlock()
		return true
	}
	p.cmd, p.killed = cmd, false
	p.begun++
	p.mu.Unlock()
	last := p.read(out)
	err = cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil
	select {
	case <-p.stopped:
		return false
	default:
	}
	if !p.killed {
		p.ends = append(p.ends, fmt.Sprintf("%s ended by itself: %v: %s", p.name, err, strings.Join(last, " / ")))
	}
	return true
}

// read reads the log of the process, also into a file, and returns its last lines.
func (p *process) read(out io.Reader) (last []string) {
	log, err := os.OpenFile(filepath.Join(p.w.o.dir, p.name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		defer log.Close()
		out = io.TeeReader(out, log)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if last = append(last, lines.Text()); len(last) > 5 {
			last = last[1:]
		}
		if strings.Contains(lines.Text(), p.started) {
			if url := servesURL.FindString(lines.Text()); url != "" {
				p.url.Store(&url)
			}
			p.mu.Lock()
			p.up = p.begun
			p.mu.Unlock()
		}
	}
	_, _ = io.Copy(io.Discard, out)
	return last
}

// kill kills the process and waits until it is ready again.
func (p *process) kill(ctx context.Context) error {
	p.mu.Lock()
	begun := p.begun
	if p.cmd != nil {
		p.killed = true
		_ = p.cmd.Process.Kill()
	}
	p.mu.Unlock()
	err := eventually(ctx, readyTime, p.name+" is not started again", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.begun > begun
	})
	if err != nil {
		return err
	}
	return p.ready(ctx)
}

// ready waits until the log says that the process is ready.
func (p *process) ready(ctx context.Context) error {
	return eventually(ctx, readyTime, p.name+" is not ready", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.cmd != nil && p.up == p.begun
	})
}

// close ends the process for good.
func (p *process) close() {
	close(p.stopped)
	p.mu.Lock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
	}
	p.mu.Unlock()
	p.kept.Wait()
}

// nodes are those of an OpenSearch cluster that something else keeps running, see scripts/opensearch.
type nodes struct {
	addresses []string
	rig       string
}

// findNodes returns the nodes of an index that is in a cluster.
func findNodes(index string) (*nodes, error) {
	if index != "opensearch" {
		return nil, nil
	}
	addresses, rig := os.Getenv("ASSAY_TEST_OPENSEARCH"), os.Getenv("ASSAY_TEST_OPENSEARCH_RIG")
	if addresses == "" || rig == "" {
		return nil, errors.New("ASSAY_TEST_OPENSEARCH names no nodes; see scripts/opensearch")
	}
	return &nodes{addresses: strings.Split(addresses, ","), rig: rig}, nil
}

// kill kills a node and waits until it is there again and each shard has all its copies.
func (n *nodes) kill(ctx context.Context, i int) error {
	path := filepath.Join(n.rig, fmt.Sprintf("n%d.pid", i+1))
	read := func() int {
		data, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		return pid
	}
	pid := read()
	if pid == 0 {
		return fmt.Errorf("%s names no process", path)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill node %d: %w", i+1, err)
	}
	err := eventually(ctx, readyTime, fmt.Sprintf("node %d is not started again", i+1), func() bool { now := read(); return now != 0 && now != pid })
	if err != nil {
		return err
	}
	return eventually(ctx, readyTime, "the cluster is not green", func() bool { return green(ctx, n.addresses[i]) })
}

// green reports whether a node sees three nodes and all copies of all shards.
func green(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/_cluster/health", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var health struct {
		Status string
		Nodes  int `json:"number_of_nodes"`
	}
	return json.NewDecoder(resp.Body).Decode(&health) == nil && health.Status == "green" && health.Nodes == 3
}

// killers returns the kinds of processes that can be killed, in turn.
func (w *world) killers() []string {
	kinds := []string{kindServer, kindWorker, kindDatabase}
	if w.nodes != nil {
		kinds = append(kinds, kindNode)
	}
	return kinds
}

// kill kills the n-th process of a kind and waits until it is replaced.
func (w *world) kill(ctx context.Context, kind string, n int) error {
	switch kind {
	case kindServer:
		return w.servers[n%len(w.servers)].kill(ctx)
	case kindWorker:
		return w.workers[n%len(w.workers)].kill(ctx)
	case kindDatabase:
		return w.database.failOver(ctx)
	}
	return w.nodes.kill(ctx, n%len(w.nodes.addresses))
}

// ended returns how processes ended by themselves.
func (w *world) ended() []string {
	all := map[string]bool{}
	for _, p := range append(slices.Clone(w.servers), w.workers...) {
		p.mu.Lock()
		for _, end := range p.ends {
			all[end] = true
		}
		p.mu.Unlock()
	}
	return slices.Sorted(maps.Keys(all))
}
