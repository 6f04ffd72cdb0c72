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
		Long: `assay answers questions from your own documents, offline or with a language model. Every sentence
of an answer is cited, and each claim is verified against the cited words. To use a model, set
OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST, or write a --config file.

` + exitTable,
		Example: `  assay ask --docs ./handbook "How many days of leave may I carry over?"
  assay ingest ./handbook ./policies && assay ask "Who approves travel?"`,
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
	flags.StringVar(&a.data, "data", "", "data `directory` (default $ASSAY_DATA, or ./.assay)")
	flags.StringArrayVar(&a.docs, "docs", nil, "use the store of this `path`, or - for standard input; may be repeated")
	flags.StringVar(&a.config, "config", "", "configuration `file` (default $ASSAY_CONFIG, or the user's assay/config.yaml)")
	root.AddCommand(
		a.askCommand(), a.ingestCommand(), a.searchCommand(), a.documentsCommand(),
		a.runsCommand(), a.statsCommand(), a.showCommand(), a.replayCommand(), a.resumeCommand(),
		a.doctorCommand(), a.modelsCommand(), a.evalCommand(), a.tuneCommand(), a.versionCommand(),
	)
	root.SetUsageTemplate(usageTemplate)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() { // otherwise a misspelled subcommand prints help and succeeds
			cmd.Args = noArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// usageTemplate is cobra's template without blank lines and, in subcommands, without the
// descriptions of the global flags, so that the help of a command fits on one screen. The root has only subcommands.
const usageTemplate = `Usage:{{if and .Runnable .HasParent}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}
Global flags, described by assay --help: --config, --data, --docs{{end}}
`

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
