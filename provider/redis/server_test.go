package redis

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
)

const testKey = "a key of at least thirty-two bytes"

// open returns a client of the server that scripts/redis starts.
func open(t testing.TB) *Server {
	t.Helper()
	address := os.Getenv("ASSAY_TEST_REDIS")
	if address == "" {
		t.Skip("ASSAY_TEST_REDIS names no server; see scripts/redis")
	}
	return openConfig(t, Config{URL: address, Key: testKey})
}

func openConfig(t testing.TB, c Config) *Server {
	t.Helper()
	c.wait = cmp.Or(c.wait, time.Minute)
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// An ownServer is a Redis server of one test, at a socket.
type ownServer struct {
	t       *testing.T
	dir     string
	args    []string
	command *exec.Cmd
}

// startServer starts a server with further arguments.
func startServer(t *testing.T, args ...string) *ownServer {
	t.Helper()
	r := tryServer(t, args...)
	if r == nil {
		t.Fatal("the server does not start")
	}
	return r
}

// tryServer is startServer, which returns nil if the server does not start.
func tryServer(t *testing.T, args ...string) *ownServer {
	t.Helper()
	if os.Getenv("ASSAY_TEST_REDIS_SERVER") == "" {
		t.Skip("ASSAY_TEST_REDIS_SERVER names no program; see scripts/redis")
	}
	dir, err := os.MkdirTemp("", "redis") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	r := &ownServer{t: t, dir: dir, args: args}
	t.Cleanup(func() {
		r.kill()
		_ = os.RemoveAll(dir)
	})
	if !r.start() {
		return nil
	}
	return r
}

// start starts the server and waits until it can be called. It reports whether it can.
func (r *ownServer) start() bool {
	r.t.Helper()
	args := append([]string{"--port", "0", "--unixsocket", filepath.Join(r.dir, "s"), "--save", "", "--dir", r.dir}, r.args...)
	r.command = exec.Command(os.Getenv("ASSAY_TEST_REDIS_SERVER"), args...)
	out, err := r.command.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.command.Start(); err != nil {
		r.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "eady to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the server
			return true
		}
	}
	_ = r.command.Wait()
	r.command = nil
	return false
}

// kill ends the server at once.
func (r *ownServer) kill() {
	if r.command != nil {
		_ = r.command.Process.Kill()
		_ = r.command.Wait()
		r.command = nil
	}
}

func (r *ownServer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(r.dir, "s"))
}

// open returns a client of the server.
func (r *ownServer) open(password string, report func(error)) *Server {
	r.t.Helper()
	return openConfig(r.t, Config{URL: "redis://redis.invalid", Password: password, Key: testKey, Dial: r.dial, Report: report})
}

// reports collects what a server reports.
type reports struct {
	mu   sync.Mutex
	seen []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, err)
}

// take returns the reports since the last call.
func (r *reports) take() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// patient takes as long as the server was not reached in time, as on a busy machine.
func patient(t *testing.T, s *Server, tenant string, bounds ...limit.Bound) error {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := s.Take(t.Context(), tenant, bounds)
		if !errors.Is(err, assay.ErrUnavailable) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func refused(t *testing.T, err error) *limit.Error {
	t.Helper()
	e, ok := limit.AsError(err)
	if !ok {
		t.Fatalf("want a refusal, got %v", err)
	}
	return e
}

// TestPassword checks that a server asks for the password, and that no error has it.
func TestPassword(t *testing.T) {
	t.Parallel()
	r := startServer(t, "--requirepass", "open sesame 123")
	if about, err := r.open("open sesame 123", nil).Check(t.Context()); err != nil || !strings.Contains(about, "is ") && !strings.Contains(about, "ey ") {
		t.Errorf("Check = %q, %v", about, err)
	}
	for _, password := range []string{"", "guessed 98765"} {
		_, err := r.open(password, nil).Check(t.Context())
		if !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), "98765") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("password %q: %v", password, err)
		}
	}
}

// TestUser checks a user who may do what this package does, and nothing else.
func TestUser(t *testing.T) {
	t.Parallel()
	const rights = "assay on >secret1234567 ~assay:* resetchannels -@all +eval +evalsha +get +set +mget +time +select +ping"
	r := startServer(t, append([]string{"--user"}, strings.Fields(rights)...)...)
	s := openConfig(t, Config{URL: "redis://assay@redis.invalid", Password: "secret1234567", Key: testKey, Dial: r.dial})
	if err := patient(t, s, "acme", limit.Bound{Subject: limit.Tenant, Measure: limit.RequestsPerMinute, Most: 2}); err != nil {
		t.Error(err)
	}
	if about, err := s.Check(t.Context()); err != nil || about != "version unknown" {
		t.Errorf("Check = %q, %v", about, err)
	}
}

// TestKilled kills a server and starts it again: requests are refused meanwhile, and taken afterwards.
func TestKilled(t *testing.T) {
	t.Parallel()
	r := startServer(t)
	var said reports
	s := r.open("", said.add)
	b := limit.Bound{Subject: limit.Tenant, Measure: limit.RequestsPerMinute, Most: 1000}
	for range 3 {
		if err := patient(t, s, "acme", b); err != nil {
			t.Fatal(err)
		}
		_ = said.take()
		r.kill()
		for range 2 {
			err := s.Take(t.Context(), "acme", []limit.Bound{b})
			if _, isLimit := limit.AsError(err); isLimit || !errors.Is(err, assay.ErrUnavailable) || !strings.Contains(err.Error(), "cannot be checked") {
				t.Fatalf("without the server: %v", err)
			}
		}
		if seen := said.take(); len(seen) != 1 || !errors.Is(seen[0], assay.ErrUnavailable) {
			t.Errorf("reported %q, want the failure once", seen)
		}
		if _, err := s.Check(t.Context()); !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("Check = %v", err)
		}
		if !r.start() {
			t.Fatal("the server does not start again")
		}
		if err := patient(t, s, "acme", b); err != nil {
			t.Fatal(err)
		}
		if seen := said.take(); len(seen) != 1 || seen[0] != nil {
			t.Errorf("reported %q, want that it answers again", seen)
		}
	}
}

// TestTLS checks that the certificate of a server counts, and that its restart is survived.
func TestTLS(t *testing.T) {
	t.Parallel()
	certificate, trusted := writeCertificate(t)
	port, r := "", (*ownServer)(nil)
	for range 5 { // another program may take the port
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		l.Close()
		r = tryServer(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", certificate, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no")
		if r != nil {
			break
		}
	}
	if r == nil {
		t.Fatal("the server does not start")
	}
	address := "rediss://localhost:" + port
	s := openConfig(t, Config{URL: address, TLS: &tls.Config{RootCAs: trusted}})
	b := limit.Bound{Subject: limit.Tenant, Measure: limit.RequestsPerMinute, Most: 1000}
	for range 2 {
		var callers sync.WaitGroup // with a connection each
		for range connections {
			callers.Go(func() {
				if err := s.Take(t.Context(), "acme", []limit.Bound{b}); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		r.kill()
		if !r.start() {
			t.Fatal("the server does not start again")
		}
	}
	for name, c := range map[string]Config{
		"unknown certificate": {URL: address},
		"another name":        {URL: "rediss://127.0.0.1:" + port, TLS: &tls.Config{RootCAs: trusted}},
		"no TLS":              {URL: "redis://localhost:" + port},
	} {
		c.wait = 5 * time.Second
		if _, err := openConfig(t, c).Check(t.Context()); !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// writeCertificate returns a file with a certificate for localhost and its key, and a pool that has it.
func writeCertificate(t *testing.T) (string, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	file := filepath.Join(t.TempDir(), "server.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return file, pool
}

// TestReadOnly checks that a replica, which cannot count, refuses.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--replicaof", "127.0.0.1", "1").open("", nil)
	err := s.Take(t.Context(), "acme", []limit.Bound{{Subject: limit.Tenant, Measure: limit.RequestsPerMinute, Most: 2}})
	if !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("Take = %v", err)
	}
}
