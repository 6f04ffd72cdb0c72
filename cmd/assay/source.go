package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/kinds"
)

func (a *app) sourceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "source",
		Short: "Sync documents from where they live: folders, buckets, wikis, databases",
		Long: `Source keeps a collection in step with a place where documents live. Add a source once, and
sync it as often as you like: a sync reads what changed, applies changed permissions, and
removes the documents that are gone.`,
		Example: `  assay source add folder handbook ./handbook
  assay source add s3 contracts s3://legal/contracts --set region=eu-west-1 --collection legal
  assay source sync
  assay source kinds s3`,
	}
	cmd.AddCommand(a.sourceAddCommand(), a.sourceListCommand(), a.sourceSyncCommand(), a.sourceRemoveCommand(), a.sourceKindsCommand())
	return cmd
}

func (a *app) sourceAddCommand() *cobra.Command {
	var n engine.NewSource
	cmd := &cobra.Command{
		Use:   "add KIND NAME TARGET",
		Short: "Add a source",
		Long: `Add stores where a source is and how it is read. It does not connect; the first sync does.

Credentials are read at every sync from an environment variable, a file or a command of the
configuration, and are never stored. assay source kinds KIND lists the options and credentials
of a kind.`,
		Example: `  assay source add folder handbook ./handbook
  assay source add git docs https://example.com/docs.git --credential token=env:DOCS_TOKEN
  assay source add s3 contracts s3://legal --credential secret-key=file:/run/secrets/s3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 {
				return nil
			}
			return hinted{usagef("got %s, want KIND NAME TARGET", count(len(args), "argument", "arguments")), "see: assay source kinds"}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n.Kind, n.Name, n.Target = args[0], args[1], args[2]
			return a.addSource(cmd.Context(), n)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&n.Collection, "collection", "", "sync into this `collection` (default \"default\")")
	pairs(cmd, &n.Options, "set", "set an option of the kind: `key=value`; may be repeated")
	pairs(cmd, &n.Credentials, "credential", "read one: `name=from`, env:VARIABLE, file:PATH or command:NAME")
	return cmd
}

// pairs adds a repeatable flag of the form name=value, whose value may contain commas.
func pairs(cmd *cobra.Command, into *map[string]string, name, usage string) {
	var list []string
	cmd.Flags().StringArrayVar(&list, name, nil, usage)
	parse := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		*into = map[string]string{}
		for _, pair := range list {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return usagef("--%s: want name=value", name) // the text may be a credential
			}
			if _, twice := (*into)[key]; twice {
				return usagef("--%s: %s is given twice", name, key)
			}
			(*into)[key] = value
		}
		if parse != nil {
			return parse(cmd, args)
		}
		return nil
	}
}

// sourceNeeds returns the part of the configuration that adding a source uses: its commands, if it
// names one.
func (a *app) sourceNeeds(n engine.NewSource) needs {
	for _, from := range n.Credentials {
		if strings.HasPrefix(from, "command:") {
			return searching
		}
	}
	return looking
}

func (a *app) addSource(ctx context.Context, n engine.NewSource) error {
	if len(a.docs) > 0 {
		return usagef("--docs is for ask and search")
	}
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	e, err := a.openEngine(ctx, at, a.sourceNeeds(n))
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.AddSource(ctx, n); err != nil {
		return hinted{err, "see: assay source kinds"}
	}
	_, err = fmt.Fprintf(a.stdout, "added %s; to read it, run: assay source sync %s\n", n.Name, n.Name)
	return err
}

// listedSource is the JSON of a source in a list.
type listedSource struct {
	Name        string            `json:"name"`
	Kind        string            `json:"kind"`
	Target      string            `json:"target"`
	Collection  string            `json:"collection"`
	Options     map[string]string `json:"options"`
	Credentials map[string]string `json:"credentials"` // where they are read from
	State       string            `json:"state"`       // new, synced or failed
	SweepDue    bool              `json:"sweep_due"`
	LastSync    *time.Time        `json:"last_sync"` // the last complete one
	LastTry     *time.Time        `json:"last_try"`
	LastError   string            `json:"last_error,omitempty"`
	Report      json.RawMessage   `json:"report"` // of the last sync
}

func listedSourceOf(s engine.SourceState) listedSource {
	l := listedSource{
		Name: s.Name, Kind: s.Kind, Target: s.Target, Collection: s.Collection, Options: s.Options, Credentials: s.Credentials,
		State: "synced", SweepDue: s.SweepDue, LastError: s.LastError, Report: s.Report,
	}
	switch {
	case s.LastTry.IsZero():
		l.State = "new"
	case s.LastError != "":
		l.State = "failed"
	}
	if !s.LastSync.IsZero() {
		l.LastSync = &s.LastSync
	}
	if !s.LastTry.IsZero() {
		l.LastTry = &s.LastTry
	}
	return l
}

func (a *app) sourceListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the sources with the result of their last sync",
		Long:    `List shows each source with its state, its documents, and what went wrong.`,
		Example: `  assay source list --json`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listSources(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) listSources(ctx context.Context, asJSON bool) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	states, err := e.Sources(ctx)
	if err != nil {
		return err
	}
	list := []listedSource{}
	for _, s := range states {
		list = append(list, listedSourceOf(s))
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	for _, s := range list {
		fmt.Fprintf(a.stdout, "%-16s  %-10s  %-6s  %s into %s\n", s.Name, s.Kind, s.State, shortPath(s.Target), s.Collection)
		if s.LastTry != nil {
			fmt.Fprintf(a.stdout, "    %s%s\n", s.LastTry.Local().Format(time.DateTime), lastCounts(s.Report))
		}
		if s.LastError != "" {
			fmt.Fprintf(a.stdout, "    %s\n", plainLine(s.LastError))
		}
	}
	_, err = fmt.Fprintln(a.stdout, count(len(list), "source", "sources"))
	return err
}

// lastCounts describes the report of the last sync.
func lastCounts(report []byte) string {
	var r engine.SyncReport
	if json.Unmarshal(report, &r) != nil {
		return ""
	}
	line := ": " + count(r.Documents, "document", "documents")
	if r.Retry > 0 {
		line += fmt.Sprintf(", %s to be retried", count(r.Retry, "item", "items"))
	}
	return line
}

func (a *app) sourceRemoveCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a source and its documents",
		Long:    `Remove forgets a source and removes its documents from the collection.`,
		Example: `  assay source remove handbook --keep-documents`,
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.openExisting(cmd.Context(), looking)
			if err != nil {
				return err
			}
			defer e.Close()
			n, err := e.RemoveSource(cmd.Context(), args[0], keep)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "removed %s and %s\n", args[0], count(n, "document", "documents"))
			return err
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-documents", false, "keep its documents in the collection")
	return cmd
}

func (a *app) sourceKindsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "kinds [KIND]",
		Short:   "List the kinds of source, or describe one",
		Long:    `Kinds lists the kinds of source. With a KIND it describes its target, options and credentials.`,
		Example: `  assay source kinds s3`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.describeKind(args[0])
			}
			for _, k := range kinds.All() {
				fmt.Fprintf(a.stdout, "%-12s  %s\n", k.Name, k.Short)
			}
			_, err := fmt.Fprintln(a.stdout, "For the options and credentials of one, run: assay source kinds KIND")
			return err
		},
	}
}

func (a *app) describeKind(name string) error {
	var kind source.Kind
	names := []string{}
	for _, k := range kinds.All() {
		if names = append(names, k.Name); k.Name == name {
			kind = k
		}
	}
	if kind.Name == "" {
		return hinted{usagef("no kind of source is called %q", name), "the kinds are " + strings.Join(names, ", ")}
	}
	fmt.Fprintf(a.stdout, "%s: %s\n\n%s\n\nassay source add %s NAME %s\n", kind.Name, kind.Short, strings.TrimSpace(kind.Help), kind.Name, kind.Target)
	if len(kind.Options) > 0 {
		fmt.Fprintln(a.stdout, "\nOptions, for --set:")
	}
	for _, o := range kind.Options {
		text := o.Help
		if o.Default != "" {
			text += fmt.Sprintf(" (default %q)", o.Default)
		}
		fmt.Fprintf(a.stdout, "  %-16s  %s\n", o.Name, text)
	}
	if len(kind.Credentials) > 0 {
		fmt.Fprintln(a.stdout, "\nCredentials, for --credential:")
	}
	for _, c := range kind.Credentials {
		need := "required"
		if c.Optional {
			need = "optional"
		}
		fmt.Fprintf(a.stdout, "  %-16s  %s (%s; default env:%s)\n", c.Name, c.Help, need, c.Env)
	}
	return nil
}

// openSources opens the data directory, which must exist.
func (a *app) openSources(ctx context.Context) (*engine.Engine, error) {
	at, err := a.location(ctx)
	if err != nil {
		return nil, err
	}
	if at.missing() {
		return nil, noDirectory(at, "sources", "see: assay source add --help")
	}
	return a.openEngine(ctx, at, searching)
}
