package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// A rig is servers on one database, all on this machine.
type rig struct {
	o        checkOptions
	dir      string // of all files
	binary   string
	server   string // URL of the PostgreSQL server
	database string // URL of the database
	postgres int    // its first process
	servers  []*process
	recorded surroundings // while questions were recorded
}

// A process is assay serve.
type process struct {
	cmd *exec.Cmd
	url string
	pid int
}

// newRig builds assay, creates a database, and ingests the documents of a data set. The rig must be closed.
func newRig(ctx context.Context, o checkOptions) (*rig, error) {
	dir, err := os.MkdirTemp("", "assay-scale-")
	if err != nil {
		return nil, err
	}
	r := &rig{o: o, dir: dir, server: o.database, binary: o.assay}
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *rig) prepare(ctx context.Context) error {
	if r.binary == "" {
		r.binary = filepath.Join(r.dir, "assay")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", r.binary, "./cmd/assay").CombinedOutput(); err != nil {
			return fmt.Errorf("build assay: %w\n%s", err, out)
		}
	}
	if err := r.createDatabase(ctx); err != nil {
		return err
	}
	docs := filepath.Join(r.dir, "docs")
	if err := writeDocuments(filepath.Join(r.o.set, "corpus.jsonl"), docs); err != nil {
		return err
	}
	out, err := r.command(ctx, 0, "ingest", "--wait", docs).CombinedOutput()
	if err != nil {
		return fmt.Errorf("assay ingest: %w\n%s", err, out)
	}
	return nil
}

// command returns a command of assay on a machine of its own with that number.
func (r *rig) command(ctx context.Context, machine int, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, args...)
	home := filepath.Join(r.dir, fmt.Sprintf("machine%d", machine))
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"ASSAY_DATA="+filepath.Join(home, "data"), "ASSAY_STORE="+r.database, "ASSAY_INDEX="+r.o.index)
	return cmd
}

// createDatabase creates an empty database, and finds the first process of the server.
func (r *rig) createDatabase(ctx context.Context) error {
	u, err := url.Parse(r.server)
	if err != nil || r.server == "" {
		return errors.New("no PostgreSQL server: run the command by scripts/postgres, or name one on this machine with -database")
	}
	name := "scale_" + strings.ToLower(rand.Text())
	conn, err := pgx.Connect(ctx, r.server)
	if err != nil {
		return errors.New("the PostgreSQL server of -database does not answer") // err may quote its password
	}
	defer conn.Close(ctx) //nolint:errcheck // it was read from
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return err
	}
	u.Path = "/" + name
	r.database = u.String()
	var backend int
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return err
	}
	r.postgres, err = parent(backend)
	return err
}

// start starts the servers, waits until they are ready, and asks each a few questions, so that its models are
// loaded.
func (r *rig) start(ctx context.Context, questions []string) error {
	for i := range r.o.servers {
		p, err := r.startServer(ctx, i+1)
		if err != nil {
			return err
		}
		r.servers = append(r.servers, p)
	}
	for _, p := range r.servers {
		for {
			resp, err := http.Get(p.url + "/readyz")
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, question := range questions {
			if _, err := ask(ctx, p.url, question, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rig) startServer(ctx context.Context, machine int) (*process, error) {
	cmd := r.command(ctx, machine, "serve", "--listen", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(log)
	said := ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if _, rest, ok := strings.Cut(lines.Text(), "assay serves\" url="); ok {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			address, _, _ := strings.Cut(rest, " ")
			return &process{cmd, address, cmd.Process.Pid}, nil
		}
	}
	return nil, fmt.Errorf("assay serve did not start: %w\n%s", cmd.Wait(), said)
}

// stop ends the servers.
func (r *rig) stop() error {
	var errs []error
	for _, p := range r.servers {
		errs = append(errs, p.cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, p := range r.servers {
		errs = append(errs, p.cmd.Wait())
	}
	r.servers = nil
	return errors.Join(errs...)
}

// clocks returns those of a server and the database, or of all servers and the database.
func (r *rig) clocks(servers ...*process) (clocks, error) {
	pids := family(r.postgres)
	for _, p := range servers {
		pids = append(pids, p.pid)
	}
	return clocksOf(pids...)
}

// close ends the servers and removes all that the rig has created.
func (r *rig) close() error {
	errs := []error{r.stop()}
	if u, err := url.Parse(r.database); err == nil && r.database != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if conn, err := pgx.Connect(ctx, r.server); err == nil {
			_, err = conn.Exec(ctx, "DROP DATABASE "+strings.TrimPrefix(u.Path, "/")+" WITH (FORCE)")
			errs = append(errs, err, conn.Close(ctx))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// writeDocuments writes each document of a corpus into a file of its own.
func writeDocuments(corpus, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	n := 0
	return eachLine(corpus, func(line []byte) error {
		var d struct{ Title, Text string }
		if err := json.Unmarshal(line, &d); err != nil {
			return err
		}
		n++
		return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.md", n)), []byte("# "+d.Title+"\n\n"+d.Text+"\n"), 0o600)
	})
}

// readQuestions returns the questions of a data set.
func readQuestions(file string) (questions []string, err error) {
	err = eachLine(file, func(line []byte) error {
		var q struct{ Text string }
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		questions = append(questions, q.Text)
		return nil
	})
	return questions, err
}

func eachLine(path string, fn func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("-set: %w", err)
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
