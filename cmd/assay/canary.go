package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) canaryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "canary",
		Short: "Place documents whose text raises an alarm wherever it appears",
		Long: `A canary is a document whose text occurs nowhere else. If its text is about to appear in an
answer, in a request to a service or in another tenant's answer, the request is not sent, the
answer is withheld, and an alarm is raised (docs/egress.md).

Place canaries in large collections: in a small one, ordinary questions read every document.`,
		Example: `  assay canary add --collection contracts
  assay canary list
  assay canary remove k3v9x2m1q8w7e6r5`,
	}
	cmd.AddCommand(a.canaryAddCommand(), a.canaryListCommand(), a.canaryRemoveCommand())
	return cmd
}

// addedCanary is the JSON of a canary that was added.
type addedCanary struct {
	engine.Canary
	Text string `json:"text"`
}

func (a *app) canaryAddCommand() *cobra.Command {
	var n engine.NewCanary
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a canary document",
		Long: `Add ingests a canary document and prints its text, which is stored in the document alone. A
generated text reads like an internal note. A text of your own must have 12 to 2000 words that
occur nowhere else.`,
		Example: `  assay canary add --collection contracts
  assay canary add --text "The Tresovand depot keeps form KQX-4821 for …"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withEngine(cmd.Context(), func(e *engine.Engine) error {
				c, text, err := e.AddCanary(cmd.Context(), assay.Local(), n)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.stdout, addedCanary{c, text})
				}
				_, err = fmt.Fprintf(a.stdout, "added canary %s as %s in %s:\n%s\n", c.Name, plainLine(c.URI), c.Collection, text)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&n.Collection, "collection", "", "put it into this `collection` (default \"default\")")
	cmd.Flags().StringVar(&n.Text, "text", "", "its `text` (default: one is generated)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (a *app) canaryListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the canaries, without their texts",
		Long:    `List shows each canary with its document and collection.`,
		Example: `  assay canary list --json`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withEngine(cmd.Context(), func(e *engine.Engine) error {
				all, err := e.Canaries(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.stdout, all)
				}
				for _, c := range all {
					fmt.Fprintf(a.stdout, "%-16s  %s  %s in %s\n", c.Name, c.Added.Local().Format(time.DateOnly), plainLine(c.URI), c.Collection)
				}
				_, err = fmt.Fprintln(a.stdout, count(len(all), "canary", "canaries"))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) canaryRemoveCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a canary and its document",
		Long:    `Remove deletes the document of a canary and stops looking for its text.`,
		Example: `  assay canary remove k3v9x2m1q8w7e6r5 --reason "found in a test"`,
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEngine(cmd.Context(), func(e *engine.Engine) error {
				if err := e.RemoveCanary(cmd.Context(), assay.Local(), args[0], reason); err != nil {
					return hintList(err, "assay canary list")
				}
				_, err := fmt.Fprintf(a.stdout, "removed canary %s\n", args[0])
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

// withEngine calls use with the opened data directory of the command.
func (a *app) withEngine(ctx context.Context, use func(e *engine.Engine) error) (err error) {
	if len(a.docs) > 0 {
		return usagef("--docs is for ask and search")
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, e.Close()) }()
	return use(e)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
