//go:build unix

package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A server is a PostgreSQL server of a test.
type server struct {
	t    *testing.T
	bin  string
	dir  string
	port string
	args []string
	cmd  *exec.Cmd
}

// newServer returns a server that does not run yet. It has an own folder and port.
func newServer(t *testing.T, dir, name string, args ...string) *server {
	t.Helper()
	bin := os.Getenv("ASSAY_TEST_POSTGRES_BIN")
	if bin == "" {
		t.Skip("ASSAY_TEST_POSTGRES_BIN names no folder with PostgreSQL's programs; see scripts/postgres")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, bin: bin, dir: filepath.Join(dir, name), port: port, args: args}
	t.Cleanup(s.kill)
	return s
}

// serverFolder returns a folder in which the user of servers may write.
func serverFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "assay-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nobody is the user that runs servers for root, who may not.
const nobody = 65534

func (s *server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+filepath.Dir(s.dir))
	cmd.Dir = filepath.Dir(s.dir)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

func (s *server) run(program string, args ...string) {
	s.t.Helper()
	if out, err := s.command(program, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// start starts the server and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	args := append([]string{"-D", s.dir, "-p", s.port, "-k", filepath.Dir(s.dir), "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=32MB"}, s.args...)
	s.cmd = s.command("postgres", args...)
	log, err := os.OpenFile(s.dir+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		s.cmd.Stdout, s.cmd.Stderr = log, log
		err = errors.Join(s.cmd.Start(), log.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(context.Background(), s.url(s.port))
		if err == nil {
			_ = conn.Close(context.Background())
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(s.dir + ".log")
			s.t.Fatalf("the server does not start: %v\n%s", err, log)
		}
	}
}

func (s *server) url(ports ...string) string {
	hosts := make([]string, len(ports))
	for i, p := range ports {
		hosts[i] = "127.0.0.1:" + p
	}
	return "postgres://assay@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable"
}

// stop ends the server at once, as pg_ctl stop -m immediate does. It recovers when it starts again.
func (s *server) stop(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *server) kill() {
	if s.cmd != nil {
		s.stop(syscall.SIGQUIT)
	}
}

// A load puts documents and appends records until it is stopped, and counts what was acknowledged.
type load struct {
	t                  *testing.T
	s                  *Store
	stopped            chan struct{}
	wg                 sync.WaitGroup
	documents, records atomic.Int64
	failures           atomic.Int64 // calls that returned an error, after which they were repeated
}

// newLoad begins to write to the tenant "load".
func newLoad(t *testing.T, s *Store) *load {
	t.Helper()
	if err := s.CreateTenant(t.Context(), "load", store.Act{}); err != nil {
		t.Fatal(err)
	}
	l := &load{t: t, s: s, stopped: make(chan struct{})}
	l.wg.Go(l.put)
	l.wg.Go(l.appendRecords)
	return l
}

// retried calls fn until it succeeds or the load is stopped, which is false.
func (l *load) retried(fn func() error) bool {
	for {
		select {
		case <-l.stopped:
			return false
		default:
		}
		if err := fn(); err == nil {
			return true
		}
		l.failures.Add(1)
		time.Sleep(10 * time.Millisecond)
	}
}

func (l *load) put() {
	ctx := context.Background()
	var t store.Tenant
	var w store.Writer
	if !l.retried(func() (err error) { t, err = l.s.Tenant(ctx, "load"); return err }) {
		return
	}
	for n := 0; ; n++ {
		ok := l.retried(func() (err error) {
			if w == nil {
				if w, err = t.Writer(ctx); err != nil {
					return err
				}
			}
			_, err = w.Put(ctx, crashEntry(n, "a"), crashEntry(n, "b"))
			if errors.Is(err, assay.ErrLocked) { // another process may have written; there is none
				_ = w.Close()
				w = nil
			}
			return err
		})
		if !ok {
			break
		}
		l.documents.Add(1)
	}
	if w != nil {
		_ = w.Close()
	}
	_ = t.Close()
}

func (l *load) appendRecords() {
	ctx := context.Background()
	var t store.Tenant
	var lease store.Lease
	ok := l.retried(func() (err error) { t, err = l.s.Tenant(ctx, "load"); return err }) &&
		l.retried(func() (err error) {
			lease, err = t.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
			return err
		})
	for n := 0; ok; n++ {
		ok = l.retried(func() error {
			_, err := lease.Append(ctx, crashRecord(n))
			if errors.Is(err, assay.ErrInvalid) && strings.Contains(err.Error(), "holds this path already") {
				err = nil // the answer to an earlier attempt was lost
			}
			return err
		})
		if ok {
			l.records.Add(1)
		}
	}
	if lease != nil {
		_ = lease.Close()
	}
	_ = t.Close()
}

// wait waits until that many more documents and records are acknowledged.
func (l *load) wait(more int64) {
	l.t.Helper()
	documents, records := l.documents.Load()+more, l.records.Load()+more
	for deadline := time.Now().Add(8 * time.Minute); l.documents.Load() < documents || l.records.Load() < records; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d documents and %d records are acknowledged, want %d and %d", l.documents.Load(), l.records.Load(), documents, records)
		}
	}
}

// check stops the load and checks that everything that was acknowledged is stored once, with the audit log.
func (l *load) check() {
	l.t.Helper()
	close(l.stopped)
	l.wg.Wait()
	tenant, err := l.s.Tenant(l.t.Context(), "load")
	if err != nil {
		l.t.Fatal(err)
	}
	defer tenant.Close()
	found := map[string]bool{}
	for d, err := range tenant.Content().Documents(l.t.Context()) {
		if err != nil {
			l.t.Fatal(err)
		}
		if found[d.URI] {
			l.t.Errorf("%s is there twice", d.URI)
		}
		found[d.URI] = true
	}
	pairs, records := int(l.documents.Load()), int(l.records.Load())
	for i := range pairs {
		for _, half := range []string{"a", "b"} {
			if e := crashEntry(i, half); !found[e.Document.URI] {
				l.t.Errorf("%s was acknowledged and is lost", e.Document.URI)
			}
		}
	}
	journal, err := tenant.Runs().Records(l.t.Context(), "run")
	if err != nil {
		l.t.Fatal(err)
	}
	if n := len(journal); n != records && n != records+1 {
		l.t.Errorf("%d records are stored, %d were acknowledged", n, records)
	}
	for i, rec := range journal {
		if rec.Path != crashRecord(i).Path {
			l.t.Errorf("record %d is %s", i, rec.Path)
		}
	}
	if all := findings(l.t, tenant.Audit()); len(all) > 0 {
		l.t.Errorf("compared with the audit log: %v", all)
	}
	l.t.Logf("%d pairs of documents and %d records acknowledged, %d calls repeated", pairs, records, l.failures.Load())
}

// TestRestart ends the server at once under load, several times. Nothing that was acknowledged is lost or
// doubled, and the writer and the lease go on.
func TestRestart(t *testing.T) {
	s := newServer(t, serverFolder(t), "data")
	s.run("initdb", "-N", "-D", s.dir, "-U", "assay", "-A", "trust", "-E", "UTF8")
	s.start()
	l := newLoad(t, mustOpen(t, s.url(s.port), WithFolder(t.TempDir())))
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		l.wait(20)
		s.stop(syscall.SIGQUIT)
		s.start()
	}
	l.wait(20)
	l.check()
}

// TestFailover kills the primary under load, and promotes its synchronous replica. Nothing that was
// acknowledged is lost or doubled.
func TestFailover(t *testing.T) {
	dir := serverFolder(t)
	primary := newServer(t, dir, "primary", "-c", "synchronous_standby_names=*", "-c", "synchronous_commit=remote_apply")
	replica := newServer(t, dir, "replica")
	primary.run("initdb", "-N", "-D", primary.dir, "-U", "assay", "-A", "trust", "-E", "UTF8")
	synchronous := primary.args
	primary.args = nil
	primary.start()
	primary.run("pg_basebackup", "-D", replica.dir, "-R", "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-p", primary.port, "-U", "assay")
	replica.start()
	primary.stop(syscall.SIGINT)
	primary.args = synchronous
	primary.start()

	s := mustOpen(t, primary.url(primary.port, replica.port)+"&target_session_attrs=read-write", WithFolder(t.TempDir()))
	l := newLoad(t, s)
	l.wait(20)
	checkReplica(t, replica.url(replica.port))
	primary.stop(syscall.SIGKILL)
	began := time.Now()
	admin(t, replica.url(replica.port), `SELECT pg_promote(true, 120)`)
	promoted := time.Since(began)
	l.wait(1)
	t.Logf("promoted in %v, writing again after %v", promoted, time.Since(began))
	l.wait(20)
	l.check()
}

// checkReplica opens a replica, which can be read and not written.
func checkReplica(t *testing.T, address string) {
	t.Helper()
	s := mustOpen(t, address, WithFolder(t.TempDir()))
	tenant, err := s.Tenant(t.Context(), "load")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	if n, err := tenant.Content().Sequence(t.Context()); err != nil || n == 0 || !tenant.ReadOnly() {
		t.Errorf("a replica: sequence %d, read-only %t, %v", n, tenant.ReadOnly(), err)
	}
	_, writerErr := tenant.Writer(t.Context())
	_, runErr := tenant.Runs().Create(t.Context(), assay.Run{ID: "new"})
	for what, err := range map[string]error{
		"Writer": writerErr, "Create": runErr, "CreateTenant": s.CreateTenant(t.Context(), "new", store.Act{}),
		"SetSetting": tenant.SetSetting(t.Context(), "x", []byte("x")),
	} {
		if !errors.Is(err, assay.ErrReadOnly) {
			t.Errorf("%s of a replica: %v", what, err)
		}
	}
}

// TestPowerfulRole prepares a new server as a user who may create roles and owns the database, and refuses the
// server where the application's role may bypass row-level security.
func TestPowerfulRole(t *testing.T) {
	s := newServer(t, serverFolder(t), "data")
	s.run("initdb", "-N", "-D", s.dir, "-U", "assay", "-A", "trust", "-E", "UTF8")
	s.start()
	address := s.url(s.port)
	admin(t, address, `CREATE ROLE creator LOGIN CREATEROLE`, `CREATE DATABASE own OWNER creator`)
	own := mustOpen(t, strings.NewReplacer("assay@", "creator@", "/postgres?", "/own?").Replace(address), WithFolder(t.TempDir()))
	if err := own.CreateTenant(t.Context(), "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	for _, with := range []string{"ALTER ROLE %s BYPASSRLS", "ALTER ROLE %s NOBYPASSRLS SUPERUSER", "ALTER ROLE %s NOSUPERUSER; GRANT " + ownerRole + " TO %s"} {
		for _, statement := range strings.Split(strings.ReplaceAll(with, "%s", appRole), "; ") {
			admin(t, address, statement)
		}
		if _, err := Open(t.Context(), address, WithFolder(t.TempDir())); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("after %s Open = %v", with, err)
		}
	}
}
