package main

import (
	"github.com/spf13/cobra"
)

func (a *app) evalCommand() *cobra.Command {
	var f answersFlags
	cmd := &cobra.Command{
		Use:   "eval [SET]",
		Short: "Measure retrieval and answers on labelled questions",
		Long: `Eval SET asks whole questions and measures the answers: it is short for assay eval
answers SET, which says what a SET is and what is measured. The other commands measure
the parts, and learn what is in the program from labelled sets.`,
		Example: `  assay eval ./scifact
  assay eval questions.jsonl --out ./evaluation --report report.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArgument("SET, or the name of a command")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return a.evalAnswers(cmd.Context(), f.of(cmd), args[0])
		},
	}
	f.add(cmd)
	cmd.AddCommand(a.evalRetrievalCommand(), a.evalCoverageCommand(), a.evalAnswersCommand(), a.evalInitCommand(), a.evalCalibrateCommand(), a.evalTrainCommand(), a.evalStrategiesCommand(), a.evalCostCommand())
	cmd.AddCommand(a.evalGroundCommand(), a.evalFiguresCommand())
	cmd.AddCommand(a.evalReportCommand(), a.evalAbstentionCommand(), a.evalFitAbstentionCommand(), a.evalFitReadingCommand())
	return cmd
}
