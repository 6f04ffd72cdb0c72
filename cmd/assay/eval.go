package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) evalCommand() *cobra.Command {
	var f answersFlags
	cmd := &cobra.Command{
		Use:   "eval [SET]",
		Short: "Measure retrieval and answers on labelled questions",
		Long: `Eval SET asks the questions of SET and measures the answers. It is short for assay eval
answers SET and takes the same flags.`,
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
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = true }) // the help of answers lists them
	cmd.AddCommand(
		a.evalAnswersCommand(), a.evalAbstentionCommand(), a.evalRetrievalCommand(), a.evalStrategiesCommand(),
		a.evalGroundCommand(), a.evalInitCommand(), a.evalReportCommand(),
	)
	return cmd
}
