//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A served is a process of assay serve.
type served struct {
	s   *sandbox
	cmd *exec.Cmd
	url string

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced at each line
	read  chan struct{} // closed at the end of the log
}

// serve starts assay serve with flags, on a port of its own unless they name an address, and waits
// until it serves.
func (s *sandbox) serve(env []string, flags ...string) *served {
	s.t.Helper()
	if !strings.Contains(strings.Join(flags, " "), "--listen") {
		flags = append(flags, "--listen", "127.0.0.1:0")
	}
	cmd := s.command(append([]string{"serve"}, flags...)...)
	cmd.Env = append(cmd.Env, env...)
	return s.serveBy(cmd)
}

func (s *sandbox) serveBy(cmd *exec.Cmd) *served {
	s.t.Helper()
	p := &served{s: s, cmd: cmd, more: make(chan struct{}), read: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(p.read)
		for scan := bufio.NewScanner(stderr); scan.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, scan.Text())
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
	}()
	s.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line := p.await("assay serves")
	p.url = regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(line)[1]
	return p
}

// await waits for a line of the log with the words, and returns it.
func (p *served) await(words string) string {
	p.s.t.Helper()
	deadline := time.After(10 * time.Minute)
	for i := 0; ; {
		p.mu.Lock()
		lines, more := p.lines, p.more
		p.mu.Unlock()
		for ; i < len(lines); i++ {
			if strings.Contains(lines[i], words) {
				return lines[i]
			}
		}
		select {
		case <-more:
		case <-p.read:
			p.mu.Lock()
			ended := len(p.lines) == i
			p.mu.Unlock()
			if ended {
				p.s.t.Fatalf("it ended without %q:\n%s", words, p.log())
			}
		case <-deadline:
			p.s.t.Fatalf("waited for %q in vain:\n%s", words, p.log())
		}
	}
}

func (p *served) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

func (p *served) signal(sig os.Signal) {
	p.s.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.s.t.Fatal(err)
	}
}

// ends waits for the end of the process, which must have the exit code and no panic.
func (p *served) ends(code int) {
	p.s.t.Helper()
	<-p.read
	err := p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.s.t.Errorf("serve ended with %d (%v), want %d:\n%s", got, err, code, p.log())
	}
	if strings.Contains(p.log(), "panic") || strings.Contains(p.log(), "goroutine ") {
		p.s.t.Errorf("a panic:\n%s", p.log())
	}
}

// stop ends the process with SIGTERM.
func (p *served) stop() {
	p.s.t.Helper()
	p.signal(syscall.SIGTERM)
	p.ends(exitAnswered)
}

// A reply is the response to a request.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request. Headers are names and values in turn.
func (p *served) send(method, path, body string, headers ...string) reply {
	p.s.t.Helper()
	return p.sendBy(http.DefaultClient, method, path, body, headers...)
}

func (p *served) sendBy(client *http.Client, method, path, body string, headers ...string) reply {
	p.s.t.Helper()
	r, err := http.NewRequestWithContext(p.s.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		p.s.t.Fatalf("%s %s: %v\n%s", method, path, err, p.log())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

const askBody = `{"question": "Who approves travel to a customer?"}`

// asks asks a question, which must be answered.
func (p *served) asks(headers ...string) {
	p.s.t.Helper()
	if r := p.send("POST", "/api/v1/ask", askBody, headers...); r.status != 200 || !strings.Contains(r.body, "head of the department") {
		p.s.t.Errorf("ask: %d %s\n%s", r.status, r.body, p.log())
	}
}

// ready waits until the server is ready.
func (p *served) ready() {
	p.s.t.Helper()
	p.s.await(func() bool { return p.send("GET", "/readyz", "").status == 200 })
}

func TestServe(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	p := s.serve(nil)
	p.asks()
	p.ready()
	if r := p.send("GET", "/healthz", ""); r.status != 200 || r.header.Get("Server") != "" {
		t.Errorf("health: %d, Server %q", r.status, r.header.Get("Server"))
	}
	if r := p.send("POST", "/api/v1/ask", askBody, "Origin", "https://evil.example"); r.status != 403 {
		t.Errorf("a foreign page: %d %s", r.status, r.body)
	}
	if r := p.send("POST", "/api/v1/ask", askBody, "Authorization", "Bearer x"); r.status != 401 {
		t.Errorf("a credential without identity: %d", r.status)
	}
	p.stop()
	if log := p.log(); !strings.Contains(log, "shut down") || strings.Contains(log, "customer") {
		t.Errorf("the log does not say that it shut down, or has a question:\n%s", log)
	}
	s.want(exitAnswered, "the same answer", "replay", "last")
}

// TestServeRefuses checks addresses that others reach, and ports that are taken.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitUsage, "no identity is configured; accept API keys with --keys", "serve", "--listen", "0.0.0.0:0")
	s.want(exitUsage, "no identity is configured", "serve", "--listen", ":0")
	s.want(exitUsage, "no identity is configured", "serve", "--listen", "[::]:0")
	s.want(exitUsage, "want HOST:PORT", "serve", "--listen", "8484")
	s.want(exitUsage, "one of certificate and key is missing", "serve", "--tls-cert", "x")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.want(exitError, "another program uses it; use: assay serve --listen 127.0.0.1:", "serve", "--listen", l.Addr().String())
}

// TestServeUnix checks the mode of a Unix socket, and that one that a killed process left is replaced.
func TestServeUnix(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	socket := filepath.Join(s.dir, "s")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	start := func() *served {
		p := s.serve(nil, "--listen", "unix:"+socket)
		p.url = "http://localhost"
		if r := p.sendBy(client, "GET", "/healthz", ""); r.status != 200 {
			t.Errorf("health: %d", r.status)
		}
		return p
	}
	p := start()
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	s.want(exitError, "another program uses it", "serve", "--listen", "unix:"+socket)
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	start().stop()
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	s.write("file", "")
	s.want(exitUsage, "is no socket", "serve", "--listen", "unix:"+filepath.Join(s.dir, "file"))
}

// TestServeShutdown interrupts a run by a signal. Its stream tells the client to reconnect, its waiting
// client learns that the run goes on, and the next process finishes it.
func TestServeShutdown(t *testing.T) {
	t.Parallel()
	model, err := newFakeModel("openai")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		model.holdAfter(-1)
		model.CloseClientConnections()
		model.Close()
	})
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	s.write("config.yaml", "server:\n  grace: 100ms\n")
	env := []string{"OPENAI_BASE_URL=" + model.URL + "/v1", "ASSAY_MODEL=openai/gpt-6-luna", "ASSAY_CONFIG=" + filepath.Join(s.dir, "config.yaml")}
	model.holdAfter(1) // the next call never ends
	p := s.serve(env)
	r, err := http.NewRequest("POST", p.url+"/api/v1/ask", strings.NewReader(`{"question": "Who approves travel to a customer?", "strategy": "corrective"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	run := response.Header.Get("Location")
	s.await(func() bool { return model.count() == 2 })
	waiting := make(chan struct{})
	go func() { // a follower, which may come too late
		defer close(waiting)
		if response, err := http.Get(p.url + run + "/events"); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	p.signal(syscall.SIGTERM)
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasSuffix(string(text), "event: restart\ndata: {}\n\n") {
		t.Errorf("the stream ends with %v:\n%s", err, text)
	}
	<-waiting
	p.ends(exitAnswered)
	model.holdAfter(-1)
	p = s.serve(env)
	if r := p.send("GET", run+"/events", "", "Accept", "text/event-stream"); r.status != 200 || !strings.Contains(r.body, "head of the department") {
		t.Errorf("the run after a restart: %d %s", r.status, r.body)
	}
	p.stop()
}

// TestServeSecondSignal checks that a second signal ends a process that waits for a request.
func TestServeSecondSignal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	p := s.serve(nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The server asks for the body once it handles the request. One that it has not accepted by the signal
	// is dropped, and nothing holds up its end.
	fmt.Fprint(c, "POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("the server replies %q, %v", line, err)
	}
	fmt.Fprint(c, "{")
	p.signal(syscall.SIGTERM)
	p.await("shutting down")
	s.await(func() bool { // until the listener is closed
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	s.await(func() bool { // the handler of the first signal may not be gone yet
		select {
		case <-p.read:
			return true
		default:
			p.signal(syscall.SIGTERM)
			return false
		}
	})
	_ = p.cmd.Wait()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("it ended with %v:\n%s", p.cmd.ProcessState, p.log())
	}
}

// newKey creates an API key and returns it.
func (s *sandbox) newKey(args ...string) string {
	s.t.Helper()
	out, err := s.command(append([]string{"key", "create", "--user", "ann"}, args...)...).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestServeReload changes the configuration while requests go on.
func TestServeReload(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	key := s.newKey("--role", "reader")
	file := filepath.Join(s.dir, "config.yaml")
	s.write("config.yaml", "server:\n  hosts: [a.example]\n")
	p := s.serve(nil, "--config", file)
	p.asks()
	reloads := 0
	reload := func(words string) {
		t.Helper()
		p.signal(syscall.SIGHUP)
		reloads++
		s.await(func() bool { return strings.Count(p.log(), "the configuration is ") >= reloads })
		p.await(words)
	}
	s.write("config.yaml", "server:\n  keyz: true\n")
	reload("unknown key")
	p.asks()
	s.write("config.yaml", "server:\n  keys: true\n  metrics: 127.0.0.1:1\n")
	reload("is reloaded")
	p.await("the change needs a restart")
	if r := p.send("POST", "/api/v1/ask", askBody); r.status != 401 {
		t.Errorf("without a credential: %d %s", r.status, r.body)
	}
	p.asks("Authorization", "Bearer "+key)
	s.write("config.yaml", "")
	reload("is reloaded")
	p.asks()
	if r := p.send("POST", "/api/v1/ask", askBody, "Authorization", "Bearer "+key); r.status != 401 {
		t.Errorf("a key that is not accepted any more: %d %s", r.status, r.body)
	}
	if strings.Contains(p.log(), key) {
		t.Error("the log has a key")
	}
	p.stop()
}

// TestServeKeys serves on all addresses with keys. The identity may not be removed by a reload.
func TestServeKeys(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	file := filepath.Join(s.dir, "config.yaml")
	s.write("config.yaml", "server:\n  keys: true\n")
	p := s.serve(nil, "--config", file, "--listen", "0.0.0.0:0")
	p.await("not encrypted")
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.url, "http://"))
	p.url = "http://127.0.0.1:" + port
	key := s.newKey("--role", "reader") // while it serves
	p.asks("X-API-Key", key)
	s.write("config.yaml", "")
	p.signal(syscall.SIGHUP)
	p.await("the configuration is not reloaded")
	if r := p.send("POST", "/api/v1/ask", askBody); r.status != 401 {
		t.Errorf("without a credential: %d", r.status)
	}
	id := strings.Split(key, "_")[1]
	s.want(exitAnswered, "revoked", "key", "revoke", id, "--reason", "test")
	if r := p.send("POST", "/api/v1/ask", askBody, "X-API-Key", key); r.status != 401 {
		t.Errorf("a revoked key: %d", r.status)
	}
	p.await("key=" + id)
	p.stop()
}

// writeCertificate writes a certificate for localhost and returns it.
func (s *sandbox) writeCertificate(serial int64) *x509.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	s.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return certificate
}

// TestServeTLS serves HTTP/2, and changes the certificate.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	serial := func(p *served, want int64) {
		t.Helper()
		c, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		state := c.ConnectionState()
		if got := state.PeerCertificates[0].SerialNumber.Int64(); got != want || state.NegotiatedProtocol != "h2" {
			t.Errorf("certificate %d over %q, want %d over h2", got, state.NegotiatedProtocol, want)
		}
	}
	first := s.writeCertificate(1)
	p := s.serve(nil, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	roots := x509.NewCertPool()
	roots.AddCert(first)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	if r := p.sendBy(client, "GET", "/healthz", ""); r.status != 200 {
		t.Errorf("health: %d", r.status)
	}
	client.CloseIdleConnections()
	if c, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is accepted")
	}
	serial(p, 1)
	s.write("cert.pem", "not a certificate")
	p.signal(syscall.SIGHUP)
	p.await("the configuration is not reloaded")
	serial(p, 1)
	s.writeCertificate(2)
	p.signal(syscall.SIGHUP)
	p.await("the configuration is reloaded")
	serial(p, 2)
	p.stop()
}

// TestServeSystemd checks activation by a socket and every notification of systemd's protocol.
func TestServeSystemd(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	messages, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(s.dir, "n"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Close()
	next := func(want string) string {
		t.Helper()
		if err := messages.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		for data := make([]byte, 4096); ; {
			n, err := messages.Read(data)
			if err != nil {
				t.Fatalf("no message %q: %v", want, err)
			}
			if text := string(data[:n]); strings.HasPrefix(text, want) {
				return text
			} else if text != "WATCHDOG=1" {
				t.Fatalf("the message is %q, want %q", text, want)
			}
		}
	}
	file := func() (string, *os.File) {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		return "http://" + l.Addr().String(), f
	}
	main, mainFile := file()
	metrics, metricsFile := file()
	defer mainFile.Close()
	defer metricsFile.Close()
	cmd := s.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" serve`, s.binary}
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+messages.LocalAddr().String(), "LISTEN_FDS=2", "LISTEN_FDNAMES=http:metrics", "WATCHDOG_USEC=200000")
	cmd.ExtraFiles = []*os.File{mainFile, metricsFile}
	p := s.serveBy(cmd)
	if p.url != main {
		t.Errorf("it serves %s, want %s", p.url, main)
	}
	p.await("url=" + metrics + "/metrics")
	if got := next("READY=1"); !strings.Contains(got, "STATUS=Serving "+main) {
		t.Errorf("the message is %q", got)
	}
	if r := p.send("GET", "/healthz", ""); r.status != 200 {
		t.Errorf("health: %d", r.status)
	}
	next("WATCHDOG=1")
	p.signal(syscall.SIGHUP)
	if got := next("RELOADING=1"); !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=\d+\n$`).MatchString(got) {
		t.Errorf("the message is %q", got)
	}
	next("READY=1")
	p.signal(syscall.SIGTERM)
	next("STOPPING=1")
	go func() { // the process would wait in vain for room for further messages
		if err := messages.SetReadDeadline(time.Time{}); err == nil {
			_, _ = io.Copy(io.Discard, messages) // until the socket is closed
		}
	}()
	p.ends(exitAnswered)
}

// TestServeTwice serves one data directory by two processes, while a third one writes to it.
func TestServeTwice(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	first, second := s.serve(nil), s.serve(nil)
	first.asks()
	second.asks()
	r := first.send("POST", "/api/v1/ask", `{"question": "What do visitors wear?"}`)
	var answer struct{ Run string }
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || answer.Run == "" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := second.send("GET", "/api/v1/runs/"+answer.Run, ""); r.status != 200 || !strings.Contains(r.body, "badge") {
		t.Errorf("the run of the other process: %d %s", r.status, r.body)
	}
	var list struct{ Documents []struct{ ID string } }
	if r = second.send("GET", "/api/v1/documents", ""); json.Unmarshal([]byte(r.body), &list) != nil || len(list.Documents) != 2 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	writer := s.command("ingest", "-", "--name", "note.md") // it waits for standard input
	in, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	s.await(func() bool {
		holder, err := os.ReadFile(filepath.Join(s.dir, ".assay/tenants/default/writer.lock"))
		return err == nil && strings.TrimSpace(string(holder)) == fmt.Sprint(writer.Process.Pid)
	})
	for _, p := range []*served{first, second} {
		p.asks()
		r := p.send("DELETE", "/api/v1/documents/"+list.Documents[0].ID, "")
		if r.status != 409 || !strings.Contains(r.body, fmt.Sprintf("process %d", writer.Process.Pid)) || r.header.Get("Retry-After") == "" {
			t.Errorf("a write while another process writes: %d %s, Retry-After %q", r.status, r.body, r.header.Get("Retry-After"))
		}
	}
	if _, err := io.WriteString(in, "# Note\n\nA note.\n"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(in.Close(), writer.Wait()); err != nil {
		t.Errorf("the writer: %v", err)
	}
	if r := first.send("DELETE", "/api/v1/documents/"+list.Documents[0].ID, ""); r.status != 204 {
		t.Errorf("a write afterwards: %d %s", r.status, r.body)
	}
	if r := second.send("GET", "/api/v1/documents/"+list.Documents[0].ID, ""); r.status != 404 {
		t.Errorf("the document that the other process deleted: %d %s", r.status, r.body)
	}
	first.stop()
	second.asks()
	second.stop()
}

// TestServeHostile sends random bytes to the process while questions are asked.
func TestServeHostile(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	p := s.serve(nil)
	address := strings.TrimPrefix(p.url, "http://")
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for i := range 250 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				data := make([]byte, 100*(i%20))
				_, _ = rand.Read(data) // it does not fail
				_, _ = fmt.Fprintf(c, "POST /api/v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(data), data)
				if i%3 == 0 {
					_, _ = io.Copy(io.Discard, io.LimitReader(c, 10))
				}
				c.Close()
			}
		})
	}
	p.asks()
	work.Wait()
	p.asks()
	p.stop()
	if bytes.Contains([]byte(p.log()), []byte("status=500")) {
		t.Errorf("a request was the server's own failure:\n%s", p.log())
	}
}
