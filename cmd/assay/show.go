package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) showCommand() *cobra.Command {
	var asJSON, inputs bool
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run: question, answer and steps",
		Long: `Show prints the question and the answer of a run, and each step of its journal with its
time and result. RUN is a run ID, a unique prefix of one, or "last".`,
		Example: `  assay show last
  assay show last --inputs         # with the input and output of each step
  assay show last --json | jq '.steps[].path'`,
		Args:              oneArgument("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.show(cmd.Context(), args[0], asJSON, inputs)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the run and its steps as one JSON object")
	cmd.Flags().BoolVar(&inputs, "inputs", false, "print the complete input and output of each step")
	return cmd
}

// shownRun is the JSON of show.
type shownRun struct {
	Run   assay.Run     `json:"run"`
	Steps []engine.Step `json:"steps"`
}

func (a *app) show(ctx context.Context, name string, asJSON, inputs bool) error {
	e, id, err := a.openRun(ctx, name, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	run, steps, err := e.Run(ctx, assay.Local(), id)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, shownRun{run, steps})
	}
	return writeRun(a.stdout, run, steps, inputs, a.width)
}

// writeRun prints a run for people.
func writeRun(w io.Writer, r assay.Run, steps []engine.Step, inputs bool, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Run       %s\n", r.ID)
	fmt.Fprintf(&b, "Asked     %s by %s\n", r.Created.Local().Format(time.DateTime), r.Principal.User)
	b.WriteString(howAsked(r))
	status := assay.Status("")
	if r.Answer != nil {
		status = r.Answer.Status
	}
	fmt.Fprintf(&b, "Outcome   %s\n", outcome(r.State, status, r.Live))
	if r.Error != "" {
		fmt.Fprintf(&b, "Error     %s\n", r.Error)
	}
	if r.Answer != nil {
		if r.Answer.Stop != "" {
			fmt.Fprintf(&b, "Stopped   %s\n", r.Answer.Stop)
		}
		fmt.Fprintf(&b, "Because   %s\n", r.Answer.Justification)
		if r.Answer.Relevance != nil {
			fmt.Fprintf(&b, "Relevance %.2f\n", *r.Answer.Relevance)
		}
		if line := oversightLine(r.Answer.Oversight); line != "" {
			fmt.Fprintf(&b, "Reviewed  %s\n", line)
		}
		if line := reviewLine(r.Answer.Review); line != "" {
			fmt.Fprintf(&b, "Review    %s\n", line)
		}
	}
	question := r.Question
	if r.State == assay.RunErased {
		question = "(erased; the audit log has the reason)"
	}
	b.WriteString("\nQuestion\n" + wrap(question, "  ", width))
	if r.Answer != nil {
		b.WriteString("\nAnswer\n")
		var answer strings.Builder
		if err := writeAnswer(&answer, *r.Answer, width-2); err != nil {
			return err
		}
		if by := byLine(*r.Answer); by != "" {
			answer.WriteString("\n" + wrap(by, "", width-2))
		}
		for line := range strings.Lines(answer.String()) {
			b.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
		}
	}
	b.WriteString("\nSteps\n")
	for i, s := range steps {
		fmt.Fprintf(&b, "%4d %s\n", i+1, traceLine(s))
		if inputs {
			writePayload(&b, "in ", s.Input)
			writePayload(&b, "out", s.Output)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reviewLine formats a strategy's review of its answer. It is empty if there is none.
func reviewLine(r *assay.Review) string {
	if r == nil {
		return ""
	}
	var parts []string
	if r.RetrievalQuality != "" {
		parts = append(parts, "retrieval "+strings.ReplaceAll(r.RetrievalQuality, "_", " "), "draft "+strings.ReplaceAll(r.GenerationQuality, "_", " "))
	}
	if r.Verdict != "" {
		parts = append(parts, r.Verdict)
	}
	if r.Coverage != nil {
		parts = append(parts, fmt.Sprintf("coverage %.2f", *r.Coverage))
	}
	line := fmt.Sprintf("%s after %d", strings.Join(parts, ", "), r.Iterations)
	switch {
	case r.Justification != "" && r.ByModel:
		line += "; the model says: " + r.Justification
	case r.Justification != "":
		line += "; " + r.Justification
	}
	return line
}

// oversightLine formats the decision of reviewers about an answer. It is empty if there is none.
func oversightLine(o *assay.Oversight) string {
	switch {
	case o == nil:
		return ""
	case o.Decision == assay.DecisionPending && o.Deadline.IsZero():
		return "not yet"
	case o.Decision == assay.DecisionPending:
		return "not yet; expected by " + o.Deadline.Local().Format(time.DateTime)
	}
	line := string(o.Decision)
	if len(o.By) > 0 {
		line += " by " + strings.Join(o.By, " and ")
	}
	return line + " " + o.At.Local().Format(time.DateTime)
}

// howAsked formats the strategy and mode of a run and the run that it follows, if they are stored.
func howAsked(r assay.Run) string {
	var req struct {
		Strategy, Mode, Follows string
		ForkedFrom              *engine.ForkedFrom `json:"forked_from"`
	}
	if json.Unmarshal(r.Request, &req) != nil {
		return "" // perhaps of another version; the steps show the same
	}
	text := ""
	if req.Strategy != "" {
		text = "Strategy  " + req.Strategy
		if req.Mode != "" {
			text += ", " + req.Mode
		}
		text += "\n"
	}
	if req.Follows != "" {
		text += "Follows   " + req.Follows + "\n"
	}
	if req.ForkedFrom != nil {
		text += "Forked    from " + req.ForkedFrom.Run + " at " + req.ForkedFrom.Step + "\n"
	}
	return text
}

func writePayload(b *strings.Builder, name string, data json.RawMessage) {
	if len(data) > 0 {
		fmt.Fprintf(b, "           %s %s\n", name, data)
	}
}
