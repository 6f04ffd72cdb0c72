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
	a.redis = &sharedRedis{report: a.warnRedis}
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	a.closeTelemetry(ctx)
	err = errors.Join(err, a.indexes.close(), a.redis.close())
	if _, printed := errors.AsType[ended](err); (err == nil || printed) && a.stdout.err != nil {
		err = fmt.Errorf("print: %w", a.stdout.err)
	}
	if _, printed := errors.AsType[ended](err); err != nil && !printed {
		name, text := "assay: ", message(a.hintDoctor(err))
		if cmd != nil && cmd != root {
			name += strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ") + ": "
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
		Long: `assay answers questions from your own documents and verifies each cited claim. To use a language
model, set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_HOST or write a --config file.

` + exitTable,
		Example:       `  assay ask --docs ./handbook "How many days of leave may I carry over?"`,
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
	flags.StringVar(&a.store, "store", "", "`url` of a PostgreSQL store in place of the directory (default $ASSAY_STORE)")
	flags.StringVar(&a.index, "index", "", "`kind` of index: own, pgvector or opensearch (default $ASSAY_INDEX, or own)")
	flags.StringVar(&a.tenant, "tenant", "", "`name` of the tenant (default $ASSAY_TENANT, or default)")
	flags.StringArrayVar(&a.docs, "docs", nil, "use the store of this `path`, or - for standard input; may be repeated")
	flags.StringVar(&a.config, "config", "", "configuration `file` (default $ASSAY_CONFIG, or the user's assay/config.yaml)")
	flags.BoolVar(&a.offline, "offline", false, "let nothing leave this machine (also ASSAY_OFFLINE=1)")
	root.AddCommand(
		a.askCommand(), a.ingestCommand(), a.sourceCommand(), a.searchCommand(), a.documentsCommand(),
		a.runsCommand(), a.showCommand(),
		a.doctorCommand(), a.evalCommand(), a.parseWorkerCommand(),
	)
	more := []*cobra.Command{
		a.auditCommand(), a.backupCommand(), a.canaryCommand(), a.egressCommand(), a.governanceCommand(), a.healthCommand(), a.holdCommand(), a.identityCommand(), a.keyCommand(),
		a.licensesCommand(), a.limitCommand(), a.mcpCommand(), a.modelsCommand(), a.queueCommand(), a.replayCommand(), a.restoreCommand(), a.resumeCommand(), a.retentionCommand(), a.reviewCommand(),
		a.serveCommand(), a.statsCommand(), a.stopCommand(), a.storeCommand(), a.tenantCommand(), a.tuneCommand(), a.versionCommand(), a.webhookCommand(), a.workerCommand(),
	}
	names := make([]string, len(more))
	for i, cmd := range more {
		cmd.GroupID = moreGroup
		names[i] = cmd.Name()
	}
	root.AddGroup(&cobra.Group{ID: moreGroup, Title: "More commands:"})
	root.AddCommand(more...)
	root.SetUsageTemplate(strings.Replace(usageTemplate, "MORE", strings.TrimRight(wrap(strings.Join(names, ", "), "  ", 96), "\n"), 1))
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

// moreGroup is the group of commands that the root's help lists by their names alone.
const moreGroup = "more"

// usageTemplate is cobra's template without blank lines and, in subcommands, without the
// descriptions of the global flags, so that the help of a command fits on one screen. The root has only subcommands.
const usageTemplate = `Usage:{{if and .Runnable .HasParent}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}
{{if .HasParent}}
{{end}}Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if and .IsAvailableCommand (eq .GroupID "")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{if not .HasParent}}
More commands, each with --help:
MORE{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}
Global flags, see assay --help: --config, --data, --docs, --index, --offline, --store, --tenant{{end}}
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
