//go:build unix

// Command joint runs everything that assay can be spread over at once, and kills it piece by piece: three
// servers, two workers, a PostgreSQL primary with a synchronous replica, and an OpenSearch cluster of three
// nodes. Two tenants store documents and ask questions over HTTP while processes of each kind are killed
// (-9) in turn at random moments. Then it checks that nothing that was acknowledged is lost or doubled, that
// every accepted run has ended, that no response had anything of the other tenant, and that audit logs and
// ledgers agree with what is stored.
//
//	scripts/opensearch scripts/postgres go run ./scripts/joint -index opensearch -documents 10000 -questions 2000 -kills 60
//
// ASSAY_TEST_POSTGRES_BIN names the folder of PostgreSQL's programs, and ASSAY_TEST_OPENSEARCH and
// ASSAY_TEST_OPENSEARCH_RIG the nodes, which are killed only if the index is in them. The report is on standard
// output. The exit status is 1 if a check failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	documents, questions, kills int
	uploads, asks               int           // at once
	sample                      int           // documents of a tenant that are searched for at the end
	limit                       time.Duration // after which nothing more is begun; 0: none
	index, strategy             string
	data, binary, dir           string
	seed                        uint64
	log                         func(format string, args ...any)
}

func main() {
	var o options
	var asJSON bool
	flag.IntVar(&o.documents, "documents", 10_000, "documents of both tenants together")
	flag.IntVar(&o.questions, "questions", 2_000, "questions of both tenants together")
	flag.IntVar(&o.kills, "kills", 60, "processes that are killed")
	flag.IntVar(&o.uploads, "uploads", 8, "uploads at once")
	flag.IntVar(&o.asks, "asks", 3, "questions at once")
	flag.IntVar(&o.sample, "sample", 200, "documents of each tenant that are searched for at the end")
	flag.DurationVar(&o.limit, "limit", 0, "time after which no document, question or kill is begun, and what was done is checked (default none)")
	flag.StringVar(&o.index, "index", "own", "index of the servers: own, pgvector or opensearch")
	flag.StringVar(&o.strategy, "strategy", "static", "strategy of the questions")
	flag.StringVar(&o.data, "data", "../shared/data/retrieval", "folder with data sets in the layout of BEIR")
	flag.StringVar(&o.binary, "assay", "", "the program (default: it is built)")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the random choices")
	flag.BoolVar(&asJSON, "json", false, "print the report as a JSON object")
	flag.Parse()
	began := time.Now()
	o.log = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1fs %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "joint:", err)
	}
	if r == nil {
		os.Exit(1)
	}
	if err != nil {
		r.fail("it ended early: %v", err)
	}
	if asJSON {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else {
		err = r.write(os.Stdout)
	}
	if err != nil || len(r.Failures) > 0 {
		os.Exit(1)
	}
}

// run starts everything, loads it, kills it, checks it and ends it.
func run(ctx context.Context, o options) (r *report, err error) {
	began := time.Now()
	dir, err := workFolder()
	if err != nil {
		return nil, err
	}
	o.dir = dir
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.binary == "" {
		o.binary = filepath.Join(dir, "assay")
		o.log("building assay")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.binary, "./cmd/assay").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build assay: %w\n%s", err, out)
		}
	}
	world, err := start(ctx, o)
	if world != nil {
		defer world.close()
	}
	if err != nil {
		return nil, err
	}
	l, err := newLoad(world)
	if err != nil {
		return nil, err
	}
	if err := l.run(ctx); err != nil {
		return l.report, err
	}
	l.report.LoadSeconds = time.Since(l.began).Seconds()
	if err := l.check(ctx); err != nil {
		return l.report, err
	}
	l.report.Seconds = time.Since(began).Seconds()
	return l.report, nil
}

// workFolder returns a new folder, in which the user of PostgreSQL may write.
func workFolder() (string, error) {
	dir, err := os.MkdirTemp("", "assay-joint-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}
