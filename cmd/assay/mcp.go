package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/mcpserver"
	"github.com/assay-rag/assay/server"
)

func (a *app) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve one MCP client on standard input and output",
		Long: `Mcp lets an assistant or editor use your documents by the Model Context Protocol. The client
starts it and speaks with it on standard input and output; messages go to standard error. It ends
with its input. The tools ask, get_run, search, fetch and get_document change no document, and
have the rights of the command line.

With --docs, mcp reads the documents first. Otherwise it uses the data directory that assay ingest
filled. Clients on other machines use assay serve. How to set up clients: docs/mcp.md.`,
		Example: `  assay mcp --docs ~/handbook
  claude mcp add assay -- assay mcp --data ~/.assay`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.mcp(cmd.Context()) },
	}
	a.modelFlag(cmd)
	return cmd
}

// mcp serves one client on standard input and output.
func (a *app) mcp(ctx context.Context) error {
	if a.readsDocument() {
		return usagef("--docs -: standard input carries the protocol")
	}
	shown := a.progress()
	e, err := a.openToAsk(ctx, shown, answering, false) // reads the documents of --docs
	shown.clear()
	if err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	host, tenant, err := a.openLocalHost(ctx)
	if err != nil {
		return err
	}
	session, err := host.Session(ctx, identity.Local(tenant))
	if err == nil {
		config := mcpserver.Config{Version: version(), Log: slog.New(slog.NewTextHandler(a.stderr, nil))}
		err = mcpserver.Serve(ctx, config, session, closer{Reader: a.stdin}, closer{Writer: a.stdout})
	}
	return errors.Join(err, host.Close())
}

// openLocalHost opens the data directory of the command for this machine's user.
func (a *app) openLocalHost(ctx context.Context) (host *engine.Host, tenant string, err error) {
	at, err := a.location(ctx)
	if err != nil {
		return nil, "", err
	}
	config, err := a.engineConfig(ctx, at, answering)
	if err != nil {
		return nil, "", err
	}
	config.NoBackground = false
	tenant, config.Tenant = config.Tenant, ""
	host, err = engine.OpenHost(ctx, engine.HostConfig{Config: config, AllowLocal: true})
	return host, tenant, err
}

// mountMCP adds the Model Context Protocol to the server.
func (s *service) mountMCP() (err error) {
	s.mcp, err = mcpserver.New(mcpserver.Config{Session: s.handler.Session, Version: version(), Log: s.log, NoteRun: server.NoteRun})
	if err != nil {
		return err
	}
	s.reloadMCP(s.settings)
	s.handler.Handle("/mcp", s.mcp)
	for _, path := range mcpserver.MetadataPaths {
		s.handler.Handle(path, s.mcp.Metadata())
	}
	return nil
}

func (s *service) reloadMCP(l serveSettings) {
	s.mcp.Reload(mcpserver.AuthorizationOf(l.config.Identity), l.server.Origins)
}

// A closer is a stream of this process, which stays open when the protocol ends.
type closer struct {
	io.Reader
	io.Writer
}

func (closer) Close() error { return nil }
