package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// strategyHelp is the strategy name that lists all strategies.
const strategyHelp = "help"

// listStrategies prints the strategies with a summary of each.
func (a *app) listStrategies() error {
	for i, spec := range strategy.Specs() {
		text := spec.Summary
		if i == 0 {
			text += " (the default)"
		}
		if _, err := fmt.Fprintf(a.stdout, "%-11s  %s\n", spec.Name, text); err != nil {
			return fmt.Errorf("print the strategies: %w", err)
		}
	}
	return nil
}

// strategyCompletions offers the strategies to the shell.
func strategyCompletions() []cobra.Completion {
	var all []cobra.Completion
	for _, spec := range strategy.Specs() {
		all = append(all, cobra.CompletionWithDesc(spec.Name, spec.Summary))
	}
	return append(all, cobra.CompletionWithDesc(strategyHelp, "list them, with what each does"))
}

// followLine returns a hint for the next question if the answer asks back or standard output is a
// terminal. It is empty otherwise.
func (a *app) followLine(answer assay.Answer) string {
	switch {
	case answer.Run == "":
		return ""
	case answer.Status == assay.PendingReview:
		return "Run " + answer.Run + "; to see the decision, run: assay show " + answer.Run + a.sameStore()
	case answer.Status == assay.Rejected:
		return ""
	case answer.AskBack != "":
		return fmt.Sprintf("Say which: assay ask --follow %s%s \"…\"", answer.Run, a.sameStore())
	case a.faintOut:
		return "Run " + answer.Run + "; to continue, run: assay ask --follow last" + a.sameStore() + " \"…\""
	}
	return ""
}
