package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look the data directory over",
		Long: `Doctor checks the data directory: that it is there and may be written, that its
databases are assay's and of a version this program knows, who writes to it, that
the index is up to date, that the encoder can be used and how many passages have
vectors, that no journal is damaged, and that there is room on the disk. It changes
nothing. It exits with 0 when all is well, and otherwise with the code of the first
thing that is not.`,
		Example: `  assay doctor
  assay doctor --data /srv/assay --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

// hintDoctor adds to the error of damaged data how to look closer. What --docs
// keeps is made again from the documents.
func (a *app) hintDoctor(err error) error {
	if _, has := errors.AsType[hinted](err); has || !errors.Is(err, assay.ErrDamaged) {
		return err
	}
	hint := "see: assay doctor" + a.sameStore()
	if len(a.docs) > 0 {
		hint += "; once the folder is removed, the documents are read again"
	}
	return hinted{err, hint}
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	dir, err := a.dataDir(ctx)
	if err != nil {
		return err
	}
	checks := append(engine.Doctor(ctx, a.engineConfig(dir)), a.checkCache())
	if err := ctx.Err(); err != nil {
		return err
	}
	if asJSON {
		err = writeJSON(a.stdout, checks)
	} else {
		for _, c := range checks {
			mark := "ok  "
			if !c.OK {
				mark = "FAIL"
			}
			fmt.Fprintf(a.stdout, "%s  %-18s  %s\n", mark, c.Name, c.Detail)
		}
	}
	if err != nil {
		return err
	}
	for _, c := range checks {
		if !c.OK {
			return end(exitCode(c.Err))
		}
	}
	return nil
}

// checkCache checks that ask --docs can keep its stores: in the cache directory,
// or in the nearest folder above it that is there to make it in.
func (a *app) checkCache() engine.Check {
	const name = "cache directory"
	dir, err := a.cacheDir()
	there := dir
	for err == nil {
		if _, statErr := os.Stat(there); !errors.Is(statErr, fs.ErrNotExist) || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	var probe *os.File
	if err == nil {
		probe, err = os.CreateTemp(there, "assay-doctor-*")
	}
	if err != nil {
		return engine.Check{Name: name, Detail: "ask --docs cannot keep its documents: " + err.Error(), Err: err}
	}
	probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return engine.Check{Name: name, Detail: err.Error(), Err: err}
	}
	return engine.Check{Name: name, OK: true, Detail: dir + " can be written"}
}
