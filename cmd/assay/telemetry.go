package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/telemetry"
)

// observeRuns makes the configured telemetry the observer of an engine. It must be called before the
// engine's models are opened, and know when they are.
func (a *app) observeRuns(ctx context.Context, set *config.Set, c *engine.Config) error {
	if a.telemetry == nil {
		if !set.Config().Telemetry.On() {
			return nil
		}
		if err := a.openTelemetry(ctx, set.Config(), nil); err != nil {
			return err
		}
	}
	set.Config().Outgoing = a.telemetry.Transport
	c.Observer = a.telemetry
	return nil
}

// openTelemetry opens the telemetry of this process. log receives records of runs and requests, as
// serve writes them; nil: a command writes none.
func (a *app) openTelemetry(ctx context.Context, c *config.Config, log *slog.Logger) error {
	t := c.Telemetry
	emf, err := a.openEMF(t.EMF, log != nil)
	if err != nil {
		return err
	}
	a.telemetry, err = telemetry.New(ctx, telemetry.Config{
		Service: t.Service, Version: version(), Traces: t.Traces, Metrics: t.Metrics, Headers: t.Plain(), Client: c.TelemetryClient(),
		Sampling: t.Sampling, Texts: t.Texts, OpenInference: t.OpenInference, EMF: emf, Logger: log,
	})
	return err
}

// openEMF opens the file for CloudWatch's metrics. Standard output is for serve alone, since that of
// other commands is their result.
func (a *app) openEMF(name string, serving bool) (io.Writer, error) {
	switch {
	case name == "", name == config.EMFStdout && !serving:
		return nil, nil
	case name == config.EMFStdout:
		return a.stdout, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the file of telemetry.cloudwatch_emf: %w", err)
	}
	a.emf = f
	return f, nil
}

// closeTelemetry exports the spans and metrics that are not exported yet, within five seconds. A
// failure is noted and does not fail the command.
func (a *app) closeTelemetry(ctx context.Context) {
	if err := a.telemetry.Close(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(a.stderr, "note:", err)
	}
	if a.emf != nil {
		if err := a.emf.Close(); err != nil {
			fmt.Fprintln(a.stderr, "note: telemetry:", err)
		}
	}
}

// serveTelemetry opens the telemetry of a server, which has metrics for Prometheus and records in its
// log even if nothing is exported. It returns the log, which is written to w.
func (a *app) serveTelemetry(ctx context.Context, w io.Writer) (*slog.Logger, error) {
	set, err := a.settings()
	if err != nil {
		return nil, err
	}
	log, err := telemetry.NewLogger(w, set.Config().Telemetry.Logs)
	if err != nil {
		return nil, err
	}
	return log, a.openTelemetry(ctx, set.Config(), log)
}
