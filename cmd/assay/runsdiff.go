package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) diffRunsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs: requests, answers and steps",
		Long: `Diff prints the differences between two runs: the fields of their requests and answers,
and their steps by path. Run IDs, usage and times are ignored. A and B are run IDs,
unique prefixes, or "last". The exit code is 0 whether or not the runs differ.`,
		Example: `  assay runs diff 3k5m last
  assay runs diff 3k5m last --json | jq '.steps[].path'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("want two runs: A B")
			}
			return nil
		},
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diffRuns(cmd.Context(), args[0], args[1], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object with complete fields and steps")
	return cmd
}

func (a *app) diffRuns(ctx context.Context, first, second string, asJSON bool) error {
	e, id, err := a.openRun(ctx, first, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	other, err := findRun(ctx, e, second)
	if err != nil {
		return err
	}
	diff, err := e.Diff(ctx, assay.Local(), id, other)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, diff)
	}
	_, err = fmt.Fprint(a.stdout, diffText(diff))
	return err
}

// diffText renders a diff for people: values and steps of A after "-", those of B after "+".
func diffText(d engine.RunDiff) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s\n+ %s\n", d.A, d.B)
	of := ""
	for _, f := range d.Fields {
		if f.Of != of {
			of = f.Of
			b.WriteString("\n" + strings.ToUpper(of[:1]) + of[1:] + "\n")
		}
		b.WriteString("  " + f.Name + "\n")
		for _, side := range []struct {
			sign  string
			value json.RawMessage
		}{{"-", f.A}, {"+", f.B}} {
			if side.value != nil {
				fmt.Fprintf(&b, "    %s %s\n", side.sign, fieldText(side.value))
			}
		}
	}
	fmt.Fprintf(&b, "\nSteps: %d equal\n", d.Same)
	for _, s := range d.Steps {
		switch {
		case s.B == nil:
			fmt.Fprintf(&b, "  - %-32s  %s\n", s.Path, s.A.Summary)
		case s.A == nil:
			fmt.Fprintf(&b, "  + %-32s  %s\n", s.Path, s.B.Summary)
		default:
			fmt.Fprintf(&b, "  ~ %-32s  %s\n", s.Path, strings.Join(s.Differs, ", "))
			if s.A.Summary != s.B.Summary {
				fmt.Fprintf(&b, "    - %s\n    + %s\n", s.A.Summary, s.B.Summary)
			}
		}
	}
	return b.String()
}

// fieldText returns a JSON value for people: a string without quotes, anything else in one
// line, cut if it is long.
func fieldText(value json.RawMessage) string {
	const most = 400
	var text string
	if json.Unmarshal(value, &text) == nil {
		return oneLine(text, most)
	}
	return oneLine(string(value), most)
}
