//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// nobody is the user that runs PostgreSQL for root, who may not.
const nobody = 65534

// A database is a primary with a synchronous replica. If the primary is killed, the replica is promoted and
// a new replica is made in the place of the old primary, so that two ports are enough.
type database struct {
	bin, dir string
	log      func(format string, args ...any)
	pair     [2]*instance
	primary  int // index in pair
}

// An instance is a PostgreSQL server.
type instance struct {
	d    *database
	dir  string
	port string
	cmd  *exec.Cmd
}

// newDatabase starts a primary and a synchronous replica in a folder.
func newDatabase(ctx context.Context, dir string, log func(string, ...any)) (*database, error) {
	d := &database{bin: os.Getenv("ASSAY_TEST_POSTGRES_BIN"), dir: dir, log: log}
	if d.bin == "" {
		return nil, errors.New("ASSAY_TEST_POSTGRES_BIN names no folder with PostgreSQL's programs; see scripts/postgres")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return nil, err
		}
	}
	for i := range d.pair {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if err := l.Close(); err != nil {
			return nil, err
		}
		d.pair[i] = &instance{d: d, dir: filepath.Join(dir, fmt.Sprint("data", i)), port: port}
	}
	first := d.pair[0]
	if err := d.run(ctx, "initdb", "-D", first.dir, "-U", "assay", "-A", "trust", "-E", "UTF8"); err != nil {
		return nil, err
	}
	if err := first.start(ctx); err != nil {
		return d, err
	}
	return d, d.addReplica(ctx)
}

// url is the address for clients, which is that of whichever server is the primary.
func (d *database) url() string {
	return fmt.Sprintf("postgres://assay@127.0.0.1:%s,127.0.0.1:%s/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=5",
		d.pair[0].port, d.pair[1].port)
}

func (p *instance) url() string {
	return "postgres://assay@127.0.0.1:" + p.port + "/postgres?sslmode=disable&connect_timeout=5"
}

func (d *database) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(d.bin, program), args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+d.dir)
	cmd.Dir = d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program alone
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

func (d *database) run(ctx context.Context, program string, args ...string) error {
	if out, err := d.command(program, args...).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("%s: %w\n%s", program, err, out), ctx.Err())
	}
	return nil
}

// execute runs statements on a server, each in a transaction of its own.
func (p *instance) execute(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, p.url())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// start starts a server and waits until it answers.
func (p *instance) start(ctx context.Context) error {
	p.cmd = p.d.command("postgres", "-D", p.dir, "-p", p.port, "-k", p.d.dir, "-c", "listen_addresses=127.0.0.1",
		"-c", "shared_buffers=256MB", "-c", "max_connections=400", "-c", "max_wal_size=4GB")
	log, err := os.OpenFile(p.dir+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := errors.Join(p.cmd.Start(), log.Close()); err != nil {
		p.cmd = nil
		return err
	}
	return eventually(ctx, 5*time.Minute, "PostgreSQL does not answer, see "+p.dir+".log", func() bool { return p.execute(ctx, "SELECT 1") == nil })
}

// kill kills a server with all its processes, as the end of its machine would.
func (p *instance) kill() {
	if p.cmd == nil {
		return
	}
	all := append(children(p.cmd.Process.Pid), p.cmd.Process.Pid)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = p.cmd.Wait()
	p.cmd = nil
}

// children returns the processes that a process has started, where the system tells them.
func children(pid int) []int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var all []int
	for word := range strings.FieldsSeq(string(data)) {
		if child, err := strconv.Atoi(word); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// failOver kills the primary, promotes the replica and makes a new one.
func (d *database) failOver(ctx context.Context) error {
	old, next := d.pair[d.primary], d.pair[1-d.primary]
	old.kill()
	began := time.Now()
	if err := next.promote(ctx); err != nil {
		return err
	}
	d.primary = 1 - d.primary
	d.log("the replica is promoted after %.2f s", time.Since(began).Seconds())
	if err := os.RemoveAll(old.dir); err != nil {
		return err
	}
	return d.addReplica(ctx)
}

// promote makes a replica the primary. A statement that waits for that may be cancelled by what is replayed
// meanwhile.
func (p *instance) promote(ctx context.Context) error {
	if err := p.d.run(ctx, "pg_ctl", "promote", "-D", p.dir, "-W"); err != nil {
		return err
	}
	return eventually(ctx, 5*time.Minute, "the replica is not promoted", func() bool {
		return p.execute(ctx, `SELECT 1 / (NOT pg_is_in_recovery())::int`) == nil
	})
}

// addReplica makes the server that is not the primary a replica of it, for which the primary waits from then on.
// The replica does not get that setting, so that it takes writes as soon as it is promoted.
func (d *database) addReplica(ctx context.Context) error {
	primary, replica := d.pair[d.primary], d.pair[1-d.primary]
	err := d.run(ctx, "pg_basebackup", "-D", replica.dir, "-R", "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-p", primary.port, "-U", "assay")
	if err == nil {
		err = replica.start(ctx)
	}
	if err == nil {
		err = primary.execute(ctx, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	}
	if err != nil {
		return err
	}
	return eventually(ctx, 5*time.Minute, "the replica does not follow", func() bool {
		return primary.execute(ctx, `SELECT 1 / count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'`) == nil
	})
}

func (d *database) close() {
	for _, p := range d.pair {
		p.kill()
	}
}

// eventually waits until a condition holds.
func eventually(ctx context.Context, limit time.Duration, otherwise string, condition func() bool) error {
	for deadline := time.Now().Add(limit); !condition(); {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s within %v", otherwise, limit)
		}
	}
	return nil
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
