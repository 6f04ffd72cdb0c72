package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/provider/local"
)

// An encoder is the embedder that an engine searches with.
type encoder struct{ llm.Embedder }

// openEncoder opens the model in a folder, or the embedded one if folder is empty.
func openEncoder(ctx context.Context, folder string) (encoder, error) {
	if folder == "" {
		e, err := embedded.Open()
		return encoder{e}, err
	}
	e, err := local.OpenDir(ctx, folder, local.Config{})
	return encoder{e}, err
}

// Default implements engine.Encoders.
func (e encoder) Default() string { return e.Model() }

// Open implements engine.Encoders.
func (e encoder) Open(_ context.Context, name string) (llm.Embedder, error) {
	if name != e.Model() {
		return nil, fmt.Errorf("encoder %s: %w", name, assay.ErrNotFound)
	}
	return e.Embedder, nil
}

// searchStages measures searches in an open engine, and their stages.
func (b *bench) searchStages(ctx context.Context) (err error) {
	dir, err := b.dataDirectory(ctx)
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Config{Dir: dir, Encoders: b.encoder, NoBackground: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	p := b.report.part("assay search in an engine that is open", "stage", fmt.Sprintf("Wall time of %d questions, one after the other, the ten best asked for, after each was asked once. "+
		"CPU is that of the process, all threads.", len(b.questions)))
	var names []string
	took := map[string][]time.Duration{}
	add := func(name string, d time.Duration) {
		if took[name] == nil {
			names = append(names, name)
		}
		took[name] = append(took[name], d)
	}
	var cpu []time.Duration
	for round := range 2 {
		for _, q := range b.questions {
			if round == 1 {
				runtime.GC()
			}
			before, began := cpuTime(), time.Now()
			found, err := e.Explain(ctx, assay.Local(), assay.Query{Text: q, Limit: 10})
			if err != nil {
				return err
			}
			if round == 0 {
				continue
			}
			add("all", time.Since(began))
			cpu = append(cpu, cpuTime()-before)
			for _, s := range found.Stages {
				add(s.Name, time.Duration(s.Micros)*time.Microsecond)
			}
		}
	}
	for _, name := range names {
		p.addDuration(name, "p50", milliseconds, percentile(took[name], 0.5))
		p.addDuration(name, "p95", milliseconds, percentile(took[name], 0.95))
	}
	p.addDuration("CPU of all", "p50", milliseconds, percentile(cpu, 0.5))
	p.addDuration("CPU of all", "p95", milliseconds, percentile(cpu, 0.95))
	return nil
}
