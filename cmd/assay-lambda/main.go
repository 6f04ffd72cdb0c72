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
		return sqlite.Open(ctx, dir)
	}
	s, err := postgres.Open(ctx, address, postgres.WithFolder(dir))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// An agent is the engine of this process.
type agent struct {
	*engine.Engine
	stepfn.Functions
	store store.Store
}

// open opens the data. The agent must be closed.
func (p *program) open(ctx context.Context) (*agent, error) {
	dir := p.getenv("ASSAY_DATA")
	if dir == "" {
		return nil, fmt.Errorf("ASSAY_DATA is not set: %w", assay.ErrInvalid)
	}
	s, err := openStore(ctx, p.getenv("ASSAY_STORE"), dir)
	if err != nil {
		return nil, err
	}
	e, err := standalone.Open(ctx, "", func(c *engine.Config) {
		c.Store, c.Tenant, c.NoBackground = s, p.getenv("ASSAY_TENANT"), true
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &agent{e, stepfn.Functions{Engine: e, Principal: p.principal()}, s}, nil
}

// Close closes the engine and its store.
func (a *agent) Close() error { return errors.Join(a.Engine.Close(), a.store.Close()) }
