//go:build unix

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A killedServer is a server that is killed and started again.
type killedServer struct {
	*sandbox
	url    atomic.Value // string
	cmd    *exec.Cmd
	events atomic.Int64 // that clients have got
}

var servesURL = regexp.MustCompile(`http://[0-9.:]+`)

// start starts the server and returns when it has said where it listens.
func (s *killedServer) start() {
	s.t.Helper()
	s.cmd = s.command("serve", "--data", "data", "--listen", "127.0.0.1:0")
	out, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said strings.Builder
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if url := servesURL.FindString(lines.Text()); url != "" {
			s.url.Store(url)
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	s.t.Fatalf("the server did not start:\n%s", said.String())
}

// stop ends the server with a signal.
func (s *killedServer) stop(signal syscall.Signal) error {
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	return s.cmd.Wait()
}

// A streamClient asks questions over HTTP, one after the other, and follows each to its end however often
// the connection breaks.
type streamClient struct {
	server *killedServer
	name   string
	asked  int

	failed    int // runs that ended honestly without an answer
	reconnect int
}

// A serverEvent is one server-sent event.
type serverEvent struct{ id, event, data string }

// readEvents calls fn for each event of a stream.
func readEvents(r io.Reader, fn func(serverEvent) error) error {
	lines := bufio.NewReader(r)
	var ev serverEvent
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n" && ev != (serverEvent{}):
			if err := fn(ev); err != nil {
				return err
			}
			ev = serverEvent{}
		case name == "id":
			ev.id = value
		case name == "event":
			ev.event = value
		case name == "data":
			ev.data += value
		}
	}
}

var errRunEnded = errors.New("the run has ended")

// ask asks one question and follows it to its end.
func (c *streamClient) ask(ctx context.Context) error {
	c.asked++
	key := fmt.Sprintf("%s-%d", c.name, c.asked)
	question := `{"question": "Who approves travel to a customer, and who is told of a lost laptop?", "strategy": "corrective", "no_cache": true}`
	run, after := "", -1
	event := func(ev serverEvent) error {
		c.server.events.Add(1)
		var body struct {
			Run  string `json:"run"`
			Step *struct{ Ordinal int }
			Resu bool `json:"resumable"`
		}
		if err := json.Unmarshal([]byte(ev.data), &body); err != nil {
			return fmt.Errorf("event %s: %w", ev.event, err)
		}
		if run = cmp.Or(run, body.Run); body.Run != "" && run != body.Run {
			return fmt.Errorf("the events are of the run %s and of %s", run, body.Run)
		}
		switch {
		case ev.event == "step":
			if ev.id != strconv.Itoa(after+1) || body.Step.Ordinal != after+1 {
				return fmt.Errorf("run %s: step %q comes after %d", run, ev.id, after)
			}
			after++
		case ev.event == "answer":
			return errRunEnded
		case ev.event == "error" && !body.Resu:
			c.failed++
			return errRunEnded
		}
		return nil
	}
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, "POST", c.server.url.Load().(string)+"/api/v1/ask", strings.NewReader(question))
		if run != "" {
			req, err = http.NewRequestWithContext(ctx, "GET", c.server.url.Load().(string)+"/api/v1/runs/"+run+"/events", nil)
		}
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		if run == "" {
			after = -1
		} else if after >= 0 {
			req.Header.Set("Last-Event-ID", strconv.Itoa(after))
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			c.reconnect++
			time.Sleep(10 * time.Millisecond) // the server is down
			continue
		}
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusBadGateway {
				time.Sleep(10 * time.Millisecond) // it is being stopped or resumed
				continue
			}
			if resp.StatusCode == http.StatusInternalServerError && run != "" && strings.Contains(string(text), run) {
				c.failed++
				return nil
			}
			return fmt.Errorf("%s %s: %s %s", req.Method, req.URL.Path, resp.Status, text)
		}
		err = readEvents(resp.Body, event)
		resp.Body.Close()
		if errors.Is(err, errRunEnded) {
			return nil
		}
		if c.reconnect++; !isBroken(err) {
			return err
		}
	}
	return nil
}

// isBroken reports whether an error says that a connection broke.
func isBroken(err error) bool {
	broken := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	return broken || errors.Is(err, context.Canceled)
}

// TestServeKilled kills a server at random moments while clients stream. Every run whose ID a client got
// ends with an answer or as failed, every client sees each step once, and no request makes two runs.
// ASSAY_LONG=1 kills it 100 times.
func TestServeKilled(t *testing.T) {
	kills, clients := 4, 6
	if os.Getenv("ASSAY_LONG") != "" {
		kills, clients = 100, 12
	}
	model, err := newFakeModel("openai")
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	t.Setenv("OPENAI_BASE_URL", model.URL)
	t.Setenv("OPENAI_API_KEY", "sk-a-key-of-a-test-0123")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &killedServer{sandbox: newSandbox(t)}
	s.want(0, "", "ingest", "--data", "data", "handbook")
	s.start()
	ctx, last := context.WithCancel(t.Context())
	all := make([]*streamClient, clients)
	var group sync.WaitGroup
	var asking atomic.Bool
	asking.Store(true)
	for i := range all {
		c := &streamClient{server: s, name: fmt.Sprintf("client%d", i)}
		all[i] = c
		group.Go(func() {
			for asking.Load() {
				if err := c.ask(ctx); err != nil {
					t.Errorf("%s: %v", c.name, err)
					return
				}
			}
		})
	}
	for range kills {
		due := s.events.Load() + 1 + rng.Int64N(200)
		s.await(func() bool { return s.events.Load() >= due || t.Failed() })
		_ = s.stop(syscall.SIGKILL)
		s.start()
	}
	asking.Store(false)
	timer := time.AfterFunc(10*time.Minute, last) // no question is asked after that, and those in progress are answered
	group.Wait()
	if !timer.Stop() {
		t.Error("clients still wait for their runs")
	}
	last()
	asked, failed, reconnects := 0, 0, 0
	for _, c := range all {
		asked, failed, reconnects = asked+c.asked, failed+c.failed, reconnects+c.reconnect
	}
	if err := s.stop(syscall.SIGINT); err != nil {
		t.Errorf("the last server ended with %v", err)
	}
	states := checkServed(t, filepath.Join(s.dir, "data"))
	t.Logf("%d kills, %d requests, %d reconnects, %d failed, runs %v", kills, asked, reconnects, failed, states)
	if n := states[assay.RunDone] + states[assay.RunFailed]; n != asked || states[assay.RunFailed] != failed {
		t.Errorf("%d requests, %d of which failed, made the runs %v", asked, failed, states)
	}
}

// checkServed checks a data directory after its servers have ended and returns the number of runs by state.
func checkServed(t *testing.T, dir string) map[assay.RunState]int {
	t.Helper()
	opened, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	tenant, err := opened.Tenant(t.Context(), store.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	if err := tenant.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	runs, err := tenant.Runs().List(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	states := map[assay.RunState]int{}
	want := store.Amount{Requests: int64(len(runs))}
	for _, r := range runs {
		if states[r.State]++; r.Live {
			t.Errorf("run %s is live", r.ID)
		}
		records, err := tenant.Runs().Records(t.Context(), r.ID) // checks that there is no gap
		if err != nil {
			t.Error(err)
		}
		for _, rec := range records {
			want = want.Add(store.Amount{Calls: int64(rec.Usage.Calls), Tokens: int64(rec.Usage.InputTokens + rec.Usage.OutputTokens), CostMicros: rec.Usage.CostMicros})
		}
	}
	spent, err := tenant.Ledger().Spending(t.Context(), limit.Tenant)
	if err != nil || len(spent) != 1 {
		t.Fatalf("Spending = %v, %v", spent, err)
	}
	if got := spent[0]; want.Add(got.OtherMonth) != got.Month || got.Held != (store.Amount{}) || got.Runs != 0 {
		t.Errorf("the journals have %+v, the ledger has %+v", want, got)
	}
	return states
}
