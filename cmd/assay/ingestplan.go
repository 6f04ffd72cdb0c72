package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/assay-rag/assay/engine"
)

// plan prints what an ingest would do. It creates no data directory.
func (a *app) plan(ctx context.Context, f ingestFlags) (err error) {
	if len(f.request.Paths) == 0 || len(a.docs) > 0 {
		return usagef("--dry-run needs the paths to ingest as arguments")
	}
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	if at.missing() {
		dir, err := os.MkdirTemp("", "assay-dry-run-")
		if err != nil {
			return err
		}
		at = localDir(dir)
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	e, err := a.openEngine(ctx, at, searching)
	if err != nil {
		return err
	}
	defer e.Close()
	f.request.MaxFileBytes = f.maxMB << 20
	plan, err := e.PlanIngest(ctx, f.request)
	if err != nil && plan.Files+plan.Unchanged+len(plan.Skipped) == 0 {
		return err
	}
	if f.json {
		return errors.Join(writeJSON(a.stdout, plan), err)
	}
	writePlan(a.stdout, plan)
	return err
}

func writePlan(w io.Writer, p engine.IngestPlan) {
	for _, s := range p.Skipped {
		fmt.Fprintln(w, skippedLine(s))
	}
	for _, t := range p.Read {
		name := t.Type
		if name == "" {
			name = "no extension"
		}
		fmt.Fprintf(w, "%-12s  %s, %s\n", plainLine(name), count(t.Files, "file", "files"), megabytes(t.Bytes))
	}
	fmt.Fprintf(w, "%d to read (%s), %d unchanged, %d gone, %d skipped\n", p.Files, megabytes(p.Bytes), p.Unchanged, p.Gone, len(p.Skipped))
	if p.Vectors != nil && p.Files > 0 {
		fmt.Fprintln(w, vectorPlanLine(*p.Vectors, p.Bytes-p.TextBytes))
	}
}

// vectorPlanLine formats the estimate of the vectors. Other is how many bytes it does not cover.
func vectorPlanLine(v engine.VectorPlan, other int64) string {
	line := fmt.Sprintf("vectors of %s for about %s", v.Model, count(v.Passages, "passage", "passages"))
	switch {
	case v.Problem != "":
		line += ": none can be made: " + v.Problem
	case v.Remote && v.Priced:
		line += fmt.Sprintf(" (%d tokens): about %s at the configured price", v.Tokens, money(v.CostMicros))
	case v.Remote:
		line += fmt.Sprintf(" (%d tokens): unknown price", v.Tokens)
	case v.Rate > 0:
		line += fmt.Sprintf(": about %s at %.0f a second", duration(time.Duration(v.Seconds*float64(time.Second))), v.Rate)
	}
	if other > 0 {
		line += fmt.Sprintf("; without those of %s whose text has another size, such as PDF and archives", megabytes(other))
	}
	return line
}

// maxPasswordFile bounds the size of --password-file.
const maxPasswordFile = 1 << 20

// readPasswords reads --password-file. Other users must not be able to read it.
func (a *app) readPasswords(f *ingestFlags) error {
	if f.passwordFile == "" {
		return nil
	}
	file, err := os.Open(f.passwordFile)
	if err != nil {
		return fmt.Errorf("--password-file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("--password-file: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return hinted{usagef("--password-file %s can be read by other users", f.passwordFile), "run: chmod 600 " + shellQuote(f.passwordFile)}
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPasswordFile+1))
	if err != nil {
		return fmt.Errorf("--password-file: %w", err)
	}
	if len(data) > maxPasswordFile {
		return usagef("--password-file %s has more than %d bytes", f.passwordFile, maxPasswordFile)
	}
	for line := range bytes.Lines(data) {
		if password := strings.TrimRight(string(line), "\r\n"); password != "" {
			f.request.Passwords = append(f.request.Passwords, password)
		}
	}
	return nil
}
