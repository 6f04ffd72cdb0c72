package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/internal/notices"
)

func (a *app) licensesCommand() *cobra.Command {
	var full string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "licenses",
		Short: "List the licences of everything that this program contains",
		Long: `Licenses lists the modules, data and programs that are part of this program with their
versions and licences (SPDX identifiers). The texts are part of the program too.`,
		Example: `  assay licenses
  assay licenses --full PDFium
  assay licenses --full all > THIRD-PARTY-NOTICES`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.licenses(full, asJSON) },
	}
	cmd.Flags().StringVar(&full, "full", "", "print the texts of what has this `name`, or all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list with the texts")
	return cmd
}

func (a *app) licenses(full string, asJSON bool) error {
	all, err := notices.All()
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, all)
	}
	if full == "" {
		table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		for _, n := range all {
			fmt.Fprintf(table, "%s\t%s\t%s\n", n.Name, n.Version, n.License)
		}
		return table.Flush()
	}
	found := false
	for _, n := range all {
		if full != "all" && !strings.Contains(strings.ToLower(n.Name), strings.ToLower(full)) {
			continue
		}
		found = true
		for _, t := range n.Texts {
			head := strings.TrimSpace(n.Name + " " + n.Version)
			if _, err := io.WriteString(a.stdout, head+": "+t.File+"\n\n"+plain(t.Text)+"\n\n"); err != nil {
				return err
			}
		}
	}
	if !found {
		return hinted{usagef("nothing is called %q", full), "see: assay licenses"}
	}
	return nil
}
