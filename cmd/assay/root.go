package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// run runs one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if _, printed := errors.AsType[ended](err); (err == nil || printed) && a.stdout.err != nil {
		err = fmt.Errorf("print: %w", a.stdout.err)
	}
	if _, printed := errors.AsType[ended](err); err != nil && !printed {
		name, text := "assay: ", message(a.hintDoctor(err))
		if cmd != nil && cmd != root {
			name += cmd.Name() + ": "
			text = strings.TrimPrefix(text, cmd.Name()+": ") // the package of that name adds it too
		}
		fmt.Fprintln(a.stderr, name+text)
	}
	return exitCode(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "assay",
		Short: "Answer questions from your own documents, with checked citations",
		Long: `assay answers questions from your own documents and shows that the answer holds:
every sentence is cited, and each claim is checked against the words it cites.
When the documents do not hold the answer, it says so. It works offline; with a
language model (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_HOST, or a
configuration file) that model writes, and every claim is checked all the same.

` + exitTable,
		Example: `  # ask the documents in a folder; they are read the first time only
  assay ask --docs ./handbook "How many days of leave may I carry over?"

  # keep documents in a store of your own, then ask
  assay ingest ./handbook ./policies
  assay ask "Who approves travel to a customer?"

  # let a model write, and see which one does what
  OLLAMA_HOST=127.0.0.1 assay ask "Who approves travel to a customer?"
  assay doctor

  # what was asked, what each step did, and the same answer again from the journal
  assay runs
  assay show last
  assay replay last`,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			err := usagef("unknown command %q", args[0])
			if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
				return hinted{err, fmt.Sprintf("did you mean: assay %s", names[0])}
			}
			return hinted{err, "see: assay --help"}
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return hinted{usagef("%w", err), "see: " + cmd.CommandPath() + " --help"}
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.data, "data", "", "the data `directory` (default $ASSAY_DATA, or ./.assay)")
	flags.StringArrayVar(&a.docs, "docs", nil, "use the store that ask keeps for these documents: a file or folder `path`,\nor - for standard input; may be repeated")
	flags.StringVar(&a.config, "config", "", "the `file` that says which language models to ask (default $ASSAY_CONFIG,\nor assay/config.yaml in the user's folder of configuration)")
	root.AddCommand(
		a.askCommand(), a.ingestCommand(), a.searchCommand(), a.documentsCommand(),
		a.runsCommand(), a.statsCommand(), a.showCommand(), a.replayCommand(), a.resumeCommand(),
		a.doctorCommand(), a.modelsCommand(), a.evalCommand(), a.tuneCommand(), a.versionCommand(),
	)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() { // otherwise a misspelled subcommand prints help and succeeds
			cmd.Args = noArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// noArguments accepts a command line without arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return hinted{usagef("unexpected argument %q", args[0]), "see: " + cmd.CommandPath() + " --help"}
}

// oneArgument accepts a command line with exactly one argument, called name.
func oneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return hinted{usagef("got %s, want one: %s", count(len(args), "argument", "arguments"), name), "see: " + cmd.CommandPath() + " --help"}
	}
}
