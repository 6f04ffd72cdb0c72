// Command assay-lambda runs the functions of package stepfn: as an AWS Lambda function, as a container
// of Amazon Bedrock AgentCore, or as a worker of a queue.
//
//	assay-lambda lambda      answers the Lambda Runtime API; the default where AWS_LAMBDA_RUNTIME_API is set
//	assay-lambda agentcore   serves /invocations and /ping on port 8080
//	assay-lambda worker      reads the queue ASSAY_QUEUE_URL
//	assay-lambda licenses    prints the licences of the bundled modules and models
//
// It is configured by the environment:
//
//	ASSAY_DATA       the data directory (required); with ASSAY_STORE, a folder for caches and the index
//	ASSAY_STORE      the address of a PostgreSQL database that holds the data instead
//	ASSAY_INDEX      own (the default), pgvector in that database, or opensearch
//	ASSAY_INDEX_URL  the nodes of OpenSearch, see docs/scale.md
//	ASSAY_TENANT     the tenant; else the default one
//	ASSAY_USER       the user on whose behalf all questions are asked; else the local one, see assay.Local
//	ASSAY_GROUPS     the user's groups, separated by commas
//	ASSAY_QUEUE_URL  the address of the worker's queue
//
// AWS's own variables give region and credentials of the worker. The embedded models answer.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/index/shared"
	"github.com/assay-rag/assay/internal/notices"
	"github.com/assay-rag/assay/standalone"
	"github.com/assay-rag/assay/stepfn"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/postgres"
	"github.com/assay-rag/assay/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := &program{getenv: os.Getenv, out: os.Stdout, log: os.Stderr}
	if err := p.run(ctx, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "assay-lambda:", err)
		os.Exit(assay.ExitCode(err))
	}
}

// A program is the environment of this process.
type program struct {
	getenv   func(string) string
	out, log io.Writer
}

// runtimeVariable is set by Lambda.
const runtimeVariable = "AWS_LAMBDA_RUNTIME_API"

// run runs the program in the mode that args name.
func (p *program) run(ctx context.Context, args []string) error {
	modes := map[string]func(context.Context) error{"lambda": p.lambda, "agentcore": p.agentcore, "worker": p.worker, "licenses": p.licenses}
	if len(args) == 0 && p.getenv(runtimeVariable) != "" {
		args = []string{"lambda"}
	}
	if len(args) != 1 || modes[args[0]] == nil {
		return fmt.Errorf("want one of lambda, agentcore, worker and licenses: %w", assay.ErrInvalid)
	}
	return modes[args[0]](ctx)
}

// licenses prints the licences of the bundled modules and models.
func (p *program) licenses(context.Context) error {
	all, err := notices.All()
	if err != nil {
		return err
	}
	for _, n := range all {
		for _, t := range n.Texts {
			if _, err := fmt.Fprintf(p.out, "%s %s: %s\n\n%s\n\n", n.Name, n.Version, t.File, t.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// principal returns the user on whose behalf all questions are asked.
func (p *program) principal() assay.Principal {
	who := assay.Principal{User: cmp.Or(p.getenv("ASSAY_USER"), assay.Local().User)}
	for g := range strings.SplitSeq(p.getenv("ASSAY_GROUPS"), ",") {
		if g = strings.TrimSpace(g); g != "" {
			who.Groups = append(who.Groups, g)
		}
	}
	return who
}

// openStore opens the data: in a database, or in a directory if the address is empty.
func openStore(ctx context.Context, address, dir string) (store.Store, error) {
	if address == "" {
		s, err := sqlite.Open(ctx, dir)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := postgres.Open(ctx, address, postgres.WithFolder(dir))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openIndexes opens the indexes that the servers share; nil: this process has one of its own.
func (p *program) openIndexes(ctx context.Context) (shared.Indexes, error) {
	switch kind := p.getenv("ASSAY_INDEX"); {
	case kind == "" || kind == "own":
		return nil, nil
	case kind == "pgvector" && p.getenv("ASSAY_STORE") != "":
		return shared.Postgres(p.getenv("ASSAY_STORE"))
	case kind == "opensearch":
		c, err := shared.ParseCluster(p.getenv("ASSAY_INDEX_URL"))
		if err != nil {
			return nil, fmt.Errorf("ASSAY_INDEX_URL: %w: %w", err, assay.ErrInvalid)
		}
		return shared.OpenSearch(ctx, c)
	case kind == "pgvector":
		return nil, fmt.Errorf("ASSAY_INDEX is pgvector, and ASSAY_STORE is not set: %w", assay.ErrInvalid)
	}
	return nil, fmt.Errorf("ASSAY_INDEX: want own, pgvector or opensearch: %w", assay.ErrInvalid)
}

// An agent is the engine of this process.
type agent struct {
	*engine.Engine
	stepfn.Functions
	store   store.Store
	indexes shared.Indexes // nil: none
}

// open opens the data. The agent must be closed.
func (p *program) open(ctx context.Context) (*agent, error) {
	dir := p.getenv("ASSAY_DATA")
	if dir == "" {
		return nil, fmt.Errorf("ASSAY_DATA is not set: %w", assay.ErrInvalid)
	}
	indexes, err := p.openIndexes(ctx)
	if err != nil {
		return nil, err
	}
	a := &agent{indexes: indexes}
	if a.store, err = openStore(ctx, p.getenv("ASSAY_STORE"), dir); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.Engine, err = standalone.Open(ctx, "", func(c *engine.Config) {
		c.Store, c.Tenant, c.NoBackground = a.store, p.getenv("ASSAY_TENANT"), true
		if indexes != nil {
			c.OpenIndex = func(ctx context.Context, t store.Tenant) (engine.Index, error) { return indexes.Open(ctx, t.Content()) }
		}
	})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.Functions = stepfn.Functions{Engine: a.Engine, Principal: p.principal()}
	return a, nil
}

// Close closes the engine, its store and the indexes, those of them that are open.
func (a *agent) Close() error {
	var errs []error
	if a.Engine != nil {
		errs = append(errs, a.Engine.Close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	if a.indexes != nil {
		errs = append(errs, a.indexes.Close())
	}
	return errors.Join(errs...)
}
