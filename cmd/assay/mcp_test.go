//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A copied is a stream whose text is kept.
type copied struct {
	io.ReadCloser
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p[:n])
	return n, err
}

// An mcpProcess is assay mcp with the SDK's client.
type mcpProcess struct {
	cmd    *exec.Cmd
	client *mcp.ClientSession
	in     io.WriteCloser
	out    *copied // standard output
	errors bytes.Buffer
}

// startMCP starts assay mcp in the sandbox and connects to it.
func (s *sandbox) startMCP(revision string, arguments ...string) *mcpProcess {
	s.t.Helper()
	p := &mcpProcess{cmd: s.command(append([]string{"mcp"}, arguments...)...)}
	p.cmd.Stderr = &p.errors
	in, err := p.cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p.in, p.out = in, &copied{ReadCloser: out}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "Who approves travel to a customer?"}}, nil
		},
	})
	p.client, err = client.Connect(s.t.Context(), &mcp.IOTransport{Reader: p.out, Writer: in}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		s.t.Fatalf("connect: %v: %s", err, &p.errors)
	}
	return p
}

func (p *mcpProcess) ask(t *testing.T, question string) string {
	t.Helper()
	r, err := p.client.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"question": question}})
	if err != nil || r.IsError {
		t.Fatalf("ask: %v: %+v: %s", err, r, &p.errors)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// TestMCPProcess serves clients on standard input and output, two at once from one data directory,
// until their input ends or they are interrupted.
func TestMCPProcess(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		p := s.startMCP(revision, "--docs", "handbook")
		other := s.startMCP(revision, "--docs", "handbook")
		for _, question := range []string{"Who approves travel to a customer?", "Why?"} { // the second is asked back
			if text := p.ask(t, question); !strings.Contains(text, "head of the department") {
				t.Errorf("%s: %s: %s", revision, question, text)
			}
		}
		if text := other.ask(t, "Whom do I tell about a lost laptop?"); !strings.Contains(text, "platform team") {
			t.Errorf("%s: %s", revision, text)
		}
		if i%2 == 0 {
			if err := p.in.Close(); err != nil {
				t.Error(err)
			}
		} else if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		if err := other.in.Close(); err != nil {
			t.Error(err)
		}
		for _, one := range []*mcpProcess{p, other} {
			_ = one.client.Wait() // until the end of its standard output
			if err := one.cmd.Wait(); err != nil {
				t.Errorf("%s: %v: %s", revision, err, &one.errors)
			}
			for line := range strings.Lines(one.out.text.String()) {
				var m struct{ JSONRPC string }
				if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" {
					t.Errorf("%s: a line of standard output is no message: %q", revision, line)
				}
			}
		}
	}
}

// TestMCPServe connects to assay serve with an API key, and checks that open sessions do not hold up
// its end.
func TestMCPServe(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	key, err := s.command("key", "create", "--user", "ann", "--role", "reader").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command("serve", "--keys", "--listen", "127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	lines := bufio.NewScanner(log)
	for url == "" && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "url="); ok {
			url, _, _ = strings.Cut(rest, " ")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		transport := &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: keyed(strings.TrimSpace(string(key)))}, MaxRetries: -1}
		cs, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatalf("%s at %q: %v", revision, url, err)
		}
		defer cs.Close()
		p := &mcpProcess{client: cs}
		if text := p.ask(t, "Who approves travel to a customer?"); !strings.Contains(text, "head of the department") {
			t.Errorf("%s: %s", revision, text)
		}
	}
	if resp, err := http.Get(url + "/mcp"); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %v, %v", resp, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("assay serve: %v", err)
	}
}

// A keyed transport sends an API key.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", string(k))
	return http.DefaultTransport.RoundTrip(r)
}
