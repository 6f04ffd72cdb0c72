package main

import (
	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/internal/parseworker"
)

// parseWorkerName is the hidden command that parses documents for another process of assay.
const parseWorkerName = "parse-worker"

func (a *app) parseWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     parseWorkerName,
		Short:   "Parse documents for another process",
		Long:    "Parse-worker parses the documents that another assay process sends it. It is not for people.",
		Example: "  assay ingest ./handbook  # starts it",
		Hidden:  true,
		Args:    noArguments,
		Run:     func(*cobra.Command, []string) { parseworker.Serve() },
	}
}

// newParsers returns a pool of processes of this program that parse documents. Close ends them.
func newParsers() *parseworker.Pool {
	return &parseworker.Pool{Command: []string{"", parseWorkerName}}
}
