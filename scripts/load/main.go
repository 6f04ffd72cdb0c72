// Command load measures what serving costs beside the engine's own calls, on one machine:
//
//   - many clients that ask and stream over HTTP, beside as many goroutines that call Session.Ask in the
//     server's process: throughput, time to the first event and to the answer, memory, errors
//   - the same while a fifth of the clients read one byte a second
//   - streams that wait: their memory
//
// Usage:
//
//	go run ./scripts/load [-clients 200] [-duration 20s] [-idle 1000] -set FOLDER
//
// The folder is a data set in the layout of BEIR, with corpus.jsonl and queries.jsonl. The server is a
// process of its own, which the program starts.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/server"
)

type options struct {
	clients, idle int
	duration      time.Duration
	set           string
	child         string
}

func main() {
	var o options
	flag.IntVar(&o.clients, "clients", 200, "streaming clients")
	flag.IntVar(&o.idle, "idle", 1000, "streams that wait")
	flag.DurationVar(&o.duration, "duration", 20*time.Second, "time of each measurement")
	flag.StringVar(&o.set, "set", "", "folder with corpus.jsonl and queries.jsonl")
	flag.StringVar(&o.child, "child", "", "serve this data directory (for internal use)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := measureAll
	if o.child != "" {
		run = serve
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// A hold lets searches wait while it is closed.
type hold struct {
	assay.Retriever
	state *atomic.Pointer[chan struct{}]
}

func (h hold) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	if wait := h.state.Load(); wait != nil {
		select {
		case <-*wait:
		case <-ctx.Done():
			return assay.Results{}, ctx.Err()
		}
	}
	return h.Retriever.Retrieve(ctx, access, q)
}

// serve is the server's process. It obeys commands on standard input: "hold" makes searches wait, "open"
// lets them go on, and "engine" with a JSON load measures calls of Session.Ask.
func serve(ctx context.Context, o options) error {
	var held atomic.Pointer[chan struct{}]
	host, err := engine.OpenHost(ctx, engine.HostConfig{
		Config:     engine.Config{Dir: o.child, NoBackground: true, Retriever: func(builtin assay.Retriever) assay.Retriever { return hold{builtin, &held} }},
		AllowLocal: true, MaxWaiting: 10_000,
	})
	if err != nil {
		return err
	}
	grant := identity.Local("default")
	handler, err := server.New(server.Config{Host: host, Local: grant, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	session, err := host.Session(ctx, grant)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, handler) }()
	fmt.Printf("http://%s\n", listener.Addr())
	commands := bufio.NewScanner(os.Stdin)
	commands.Buffer(nil, 16<<20)
	for commands.Scan() {
		name, rest, _ := strings.Cut(commands.Text(), " ")
		switch name {
		case "hold":
			wait := make(chan struct{})
			held.Store(&wait)
		case "open":
			if wait := held.Swap(nil); wait != nil {
				close(*wait)
			}
		case "engine":
			var l load
			if err := json.Unmarshal([]byte(rest), &l); err != nil {
				return err
			}
			result := l.run(ctx, func(ctx context.Context, req engine.Request, first func()) error {
				for _, err := range session.Ask(ctx, req) {
					if err != nil {
						return err
					}
					first()
				}
				return nil
			})
			if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
				return err
			}
		}
	}
	return host.Close()
}

// A load asks questions for a time from several clients, each as soon as it has an answer.
type load struct {
	Clients   int
	Duration  time.Duration
	Questions []string
}

// A result is what was measured.
type result struct {
	Answers     int
	Errors      map[string]int
	Took        time.Duration
	First, Last []time.Duration // to the first event and to the answer, sorted
}

func (l load) run(ctx context.Context, ask func(ctx context.Context, req engine.Request, first func()) error) result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := result{Errors: map[string]int{}}
	began := time.Now()
	var mu sync.Mutex
	var next atomic.Int64
	var group sync.WaitGroup
	for range l.Clients {
		group.Go(func() {
			for time.Since(began) < l.Duration && ctx.Err() == nil {
				question := l.Questions[int(next.Add(1))%len(l.Questions)]
				req := engine.Request{Question: question, NoCache: true, Budget: assay.Budget{Wall: 10 * time.Minute}}
				asked, first := time.Now(), time.Duration(0)
				err := ask(ctx, req, func() {
					if first == 0 {
						first = time.Since(asked)
					}
				})
				mu.Lock()
				if err != nil {
					r.Errors[err.Error()]++
				} else {
					r.Answers++
					r.First, r.Last = append(r.First, first), append(r.Last, time.Since(asked))
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	r.Took = time.Since(began)
	slices.Sort(r.First)
	slices.Sort(r.Last)
	return r
}

func (r result) rate() float64 { return float64(r.Answers) / r.Took.Seconds() }

func (r result) String() string {
	at := func(times []time.Duration, share float64) time.Duration {
		if len(times) == 0 {
			return 0
		}
		return times[int(share*float64(len(times)-1))].Round(time.Millisecond)
	}
	failed := 0
	for _, n := range r.Errors {
		failed += n
	}
	return fmt.Sprintf("%6.1f answers/s, first event p50 %v p95 %v, answer p50 %v p95 %v, %d answers, %d errors %v",
		r.rate(), at(r.First, 0.5), at(r.First, 0.95), at(r.Last, 0.5), at(r.Last, 0.95), r.Answers, failed, r.Errors)
}

// A child is the server's process.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	url string
}

func startChild(ctx context.Context, dir string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self, "-child", dir)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := c.out.ReadString('\n')
	c.url = strings.TrimSpace(line)
	return c, err
}

// memory returns the resident memory of the process in MiB; 0: unknown.
func (c *child) memory() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib float64
	_, _ = fmt.Sscan(rest, &kib)
	return kib / 1024
}

// cpu returns the processor time that the process has used; 0: unknown.
func (c *child) cpu() time.Duration {
	const fieldsBefore, perSecond = 11, 100 // fields between the name and utime; USER_HZ
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < fieldsBefore+2 {
		return 0
	}
	var user, system int64
	_, _ = fmt.Sscan(fields[fieldsBefore]+" "+fields[fieldsBefore+1], &user, &system)
	return time.Duration(user+system) * time.Second / perSecond
}

// engine measures Session.Ask in the server's process.
func (c *child) engine(l load) (r result, err error) {
	data, err := json.Marshal(l)
	if err != nil {
		return r, err
	}
	if _, err := fmt.Fprintf(c.in, "engine %s\n", data); err != nil {
		return r, err
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(line, &r)
}

// client has a connection for each stream.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}

// ask asks over HTTP and reads the stream to the answer.
func (c *child) ask(ctx context.Context, req engine.Request, first func()) error {
	body, err := c.begin(ctx, req)
	if err != nil {
		return err
	}
	defer body.Close()
	return readStream(body, first)
}

func (c *child) begin(ctx context.Context, req engine.Request) (io.ReadCloser, error) {
	data, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", c.url+"/api/v1/ask", bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, errors.New(resp.Status)
	}
	return resp.Body, nil
}

// readStream reads events until the answer.
func readStream(r io.Reader, first func()) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	event := ""
	for {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil {
			return fmt.Errorf("the stream broke off: %w", err)
		}
		if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			event = strings.TrimSpace(string(name))
			first()
		}
		if len(bytes.TrimSpace(line)) > 0 {
			continue
		}
		switch event {
		case "answer":
			_, _ = io.Copy(io.Discard, lines) // so that the connection is used again
			return nil
		case "error":
			return errors.New("an error event")
		}
	}
}

// askSlowly reads one byte a second until ctx ends.
func (c *child) askSlowly(ctx context.Context, req engine.Request) {
	body, err := c.begin(ctx, req)
	if err != nil {
		return
	}
	defer body.Close()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for one := make([]byte, 1); ; {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if _, err := body.Read(one); err != nil {
			return
		}
	}
}

func measureAll(ctx context.Context, o options) error {
	if o.set == "" {
		return errors.New("name a data set with -set")
	}
	dir, err := os.MkdirTemp("", "assay-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	questions, err := prepare(ctx, o.set, dir)
	if err != nil {
		return err
	}
	loadavg, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d questions, %d clients, %v each; load average before: %s", len(questions), o.clients, o.duration, loadavg)
	c, err := startChild(ctx, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	defer func() { c.in.Close(); _ = c.cmd.Wait() }()
	warm := load{Clients: 4, Duration: 2 * time.Second, Questions: questions}
	if _, err := c.engine(warm); err != nil {
		return err
	}
	warm.run(ctx, c.ask)
	l := load{Clients: o.clients, Duration: o.duration, Questions: questions}
	// Each way is measured twice and in turn, because other programs disturb both.
	var ways [2][]result
	var answers [2]int
	var used [2]time.Duration
	for range 2 {
		began := c.cpu()
		own, err := c.engine(l)
		if err != nil {
			return err
		}
		fmt.Printf("engine        %s\n", own)
		between := c.cpu()
		stop := c.watch("  memory over time, MiB:")
		over := l.run(ctx, c.ask)
		stop()
		fmt.Printf("HTTP          %s\n", over)
		ways[0], ways[1] = append(ways[0], own), append(ways[1], over)
		answers[0], answers[1] = answers[0]+own.Answers, answers[1]+over.Answers
		used[0], used[1] = used[0]+between-began, used[1]+c.cpu()-between
	}
	own, over := ways[0][0].rate()+ways[0][1].rate(), ways[1][0].rate()+ways[1][1].rate()
	fmt.Printf("the door costs %.1f %% of the throughput\n", 100*(own-over)/own)
	a, b := used[0].Seconds()/float64(answers[0]), used[1].Seconds()/float64(answers[1])
	fmt.Printf("processor time of an answer: engine %.1f ms, HTTP %.1f ms: the door costs %.1f %%\n", 1000*a, 1000*b, 100*(b-a)/a)
	c.slow(ctx, l)
	return c.idle(ctx, o.idle, questions[0])
}

// slow measures while a fifth of the clients read slowly.
func (c *child) slow(ctx context.Context, l load) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range l.Clients / 5 {
		go c.askSlowly(ctx, engine.Request{Question: l.Questions[i%len(l.Questions)], NoCache: true})
	}
	l.Clients -= l.Clients / 5
	fmt.Printf("beside slow   %s\n", l.run(ctx, c.ask))
}

// idle measures the memory of streams that wait for a run.
func (c *child) idle(ctx context.Context, streams int, question string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := fmt.Fprintln(c.in, "hold"); err != nil {
		return err
	}
	before := c.memory()
	var group sync.WaitGroup
	var opened, failed atomic.Int64
	run := make(chan string, 1)
	for i := range streams {
		if i == 0 {
			body, err := c.begin(ctx, engine.Request{Question: question, NoCache: true, Budget: assay.Budget{Wall: time.Hour}})
			if err != nil {
				return err
			}
			var ev struct{ Run string }
			lines := bufio.NewScanner(body)
			for lines.Scan() && ev.Run == "" {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					_ = json.Unmarshal([]byte(data), &ev)
				}
			}
			run <- ev.Run
			defer body.Close()
		}
	}
	url := c.url + "/api/v1/runs/" + <-run + "/events"
	for range streams {
		group.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
			if err != nil {
				return
			}
			req.Header.Set("Accept", "text/event-stream")
			resp, err := client.Do(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				failed.Add(1)
				return
			}
			defer resp.Body.Close()
			one := make([]byte, 1)
			if _, err := resp.Body.Read(one); err != nil {
				failed.Add(1)
				return
			}
			opened.Add(1)
			_, _ = io.Copy(io.Discard, resp.Body)
		})
	}
	for opened.Load()+failed.Load() < int64(streams) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	fmt.Printf("%d idle streams (%d failed): %.1f MiB before, %.1f MiB with them\n", opened.Load(), failed.Load(), before, c.memory())
	_, err := fmt.Fprintln(c.in, "open")
	cancel()
	group.Wait()
	return err
}

// watch prints the memory of the server about ten times until the returned function is called.
func (c *child) watch(title string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var seen []string
		again := time.NewTicker(2 * time.Second)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				seen = append(seen, fmt.Sprintf("%.0f", c.memory()))
			case <-done:
				step := max(1, len(seen)/10)
				var shown []string
				for i := 0; i < len(seen); i += step {
					shown = append(shown, seen[i])
				}
				fmt.Println(title, strings.Join(shown, " "))
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// prepare ingests the corpus of a data set and returns its questions.
func prepare(ctx context.Context, set, dir string) (questions []string, err error) {
	docs := filepath.Join(dir, "docs")
	if err := os.Mkdir(docs, 0o700); err != nil {
		return nil, err
	}
	n := 0
	err = eachLine(filepath.Join(set, "corpus.jsonl"), func(line []byte) error {
		var d struct{ Title, Text string }
		if err := json.Unmarshal(line, &d); err != nil {
			return err
		}
		n++
		return os.WriteFile(filepath.Join(docs, fmt.Sprintf("%06d.md", n)), []byte("# "+d.Title+"\n\n"+d.Text+"\n"), 0o600)
	})
	if err != nil {
		return nil, err
	}
	err = eachLine(filepath.Join(set, "queries.jsonl"), func(line []byte) error {
		var q struct{ Text string }
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		questions = append(questions, q.Text)
		return nil
	})
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, engine.Config{Dir: filepath.Join(dir, "data"), NoBackground: true})
	if err != nil {
		return nil, err
	}
	_, err = e.Ingest(ctx, engine.IngestRequest{Paths: []string{docs}})
	return questions, errors.Join(err, e.Close())
}

func eachLine(path string, fn func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := fn(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}
