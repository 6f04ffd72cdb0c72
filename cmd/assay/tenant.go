package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/store"
)

// tenantName returns the tenant that the command works on. The store of --docs has only the default
// one.
func (a *app) tenantName() (string, error) {
	if len(a.docs) > 0 {
		if a.tenant != "" {
			return "", usagef("--docs and --tenant exclude each other")
		}
		return store.DefaultTenant, nil
	}
	return cmp.Or(a.namedTenant(), store.DefaultTenant), nil
}

// namedTenant returns the tenant that the flag or the environment names, or "".
func (a *app) namedTenant() string { return cmp.Or(a.tenant, a.getenv("ASSAY_TENANT")) }

// hintTenant adds a hint to the error of opening a tenant.
func (a *app) hintTenant(err error, name string) error {
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return hinted{fmt.Errorf("there is no tenant %s: %w", name, assay.ErrNotFound), "run: assay tenant create " + name + a.sameData()}
	case errors.Is(err, assay.ErrStopped):
		return hinted{fmt.Errorf("tenant %s is suspended: %w", name, assay.ErrStopped), "run: assay tenant resume " + name + a.sameData()}
	}
	return err
}

// hintNamedTenant adds a hint to the error of a tenant that is the argument of a command.
func (a *app) hintNamedTenant(err error, name string) error {
	if errors.Is(err, assay.ErrNotFound) {
		return hinted{fmt.Errorf("there is no tenant %s: %w", name, assay.ErrNotFound), "see: assay tenant list" + a.sameData()}
	}
	return err
}

// sameData returns the flags that name the same data again.
func (a *app) sameData() string {
	return a.sameLocation()
}

func (a *app) tenantCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Create, list, suspend and delete tenants",
		Long: `A data directory holds many tenants. Each has its own documents, runs, caches, keys and
audit log, and no command sees two of them. --tenant NAME or $ASSAY_TENANT selects one for
any command; without, it is "default", which needs no creation.`,
	}
	cmd.AddCommand(a.createTenantCommand(), a.listTenantsCommand(), a.showTenantCommand(),
		a.suspendTenantCommand(), a.resumeTenantCommand(), a.deleteTenantCommand())
	return cmd
}

// A tenantChange is a change of the named tenant, for a reason.
type tenantChange func(ctx context.Context, s tenantStore, name string, act store.Act) error

// A tenantStore is a store and what removes the shared indexes of its tenants; nil: they have none.
type tenantStore struct {
	store.Store
	removeIndex func(ctx context.Context, identity string) error
}

// tenantChangeCommand completes a command that changes a tenant.
func (a *app) tenantChangeCommand(cmd *cobra.Command, done string, change tenantChange) *cobra.Command {
	var reason string
	var asJSON bool
	cmd.Args = oneArgument("the tenant's name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.openTenants(cmd.Context(), cmd.Name() == "create")
		if err != nil {
			return err
		}
		if err := engine.RemoveIndexes(cmd.Context(), s, s.removeIndex); err != nil { // of tenants deleted before
			fmt.Fprintf(a.stderr, "%s\n", message(err))
		}
		name, act := args[0], store.Act{Actor: assay.Local(), Reason: reason}
		if err := errors.Join(change(cmd.Context(), s, name, act), s.Close()); err != nil {
			return a.hintNamedTenant(err, name)
		}
		if asJSON {
			return writeJSON(a.stdout, map[string]string{"tenant": name, "done": done})
		}
		_, err = fmt.Fprintf(a.stdout, "tenant %s %s\n", name, done)
		return err
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// openStore opens the data directory of the command for an administrator. Only create may create it.
func (a *app) openStore(ctx context.Context, create bool) (store.Store, error) {
	s, err := a.openTenants(ctx, create)
	return s.Store, err
}

// openTenants is openStore with the shared indexes.
func (a *app) openTenants(ctx context.Context, create bool) (tenantStore, error) {
	if len(a.docs) > 0 {
		return tenantStore{}, usagef("tenants are of a data directory, not of --docs")
	}
	at, err := a.location(ctx)
	if err != nil {
		return tenantStore{}, err
	}
	if !create && at.missing() {
		return tenantStore{}, a.noData(at)
	}
	s, err := at.openStore(ctx)
	if err != nil || !at.shared() {
		return tenantStore{Store: s}, err
	}
	return tenantStore{s, at.removeIndex}, nil
}

func (a *app) createTenantCommand() *cobra.Command {
	return a.tenantChangeCommand(&cobra.Command{
		Use:   "create NAME",
		Short: "Create an empty tenant",
		Long: `Create creates an empty tenant. A name has up to 64 of a-z, 0-9, '-', '_' and '.'. A tenant that
is created under the name of a deleted one has nothing of it.`,
		Example: `  assay tenant create acme
  assay ingest ./handbook --tenant acme`,
	}, "created", func(ctx context.Context, s tenantStore, name string, act store.Act) error {
		return s.CreateTenant(ctx, name, act)
	})
}

func (a *app) suspendTenantCommand() *cobra.Command {
	return a.tenantChangeCommand(&cobra.Command{
		Use:   "suspend NAME",
		Short: "Refuse every use of a tenant until it is resumed",
		Long: `Suspend makes every command refuse the tenant with exit code 10, except tenant resume, tenant
delete, audit and backup. Its data stays. A command that is running already ends normally.`,
		Example: `  assay tenant suspend acme --reason "contract ended"`,
	}, "suspended", func(ctx context.Context, s tenantStore, name string, act store.Act) error {
		return s.SuspendTenant(ctx, name, act)
	})
}

func (a *app) resumeTenantCommand() *cobra.Command {
	return a.tenantChangeCommand(&cobra.Command{
		Use:     "resume NAME",
		Short:   "Allow the use of a suspended tenant again",
		Example: `  assay tenant resume acme`,
	}, "resumed", func(ctx context.Context, s tenantStore, name string, act store.Act) error {
		return s.ResumeTenant(ctx, name, act)
	})
}

func (a *app) deleteTenantCommand() *cobra.Command {
	var yes, force bool
	cmd := a.tenantChangeCommand(&cobra.Command{
		Use:   "delete NAME --yes",
		Short: "Remove a tenant with all of its data",
		Long: `Delete removes a tenant: documents, vectors, runs, caches, index, settings, audit log and API keys.
Nothing of it can be restored without a backup. If the command is interrupted, the tenant is either
complete or gone, and the next command removes the rest. The system's audit log keeps the fact, the
reason, and the size and root of the tenant's audit log. An index in pgvector or OpenSearch is
removed with it, or later if its server cannot be reached. While a process writes the tenant's
documents or drives a run, --force is needed; the run then fails.`,
		Example: `  assay tenant delete acme --yes --reason "request of the customer"`,
	}, "deleted", func(ctx context.Context, s tenantStore, name string, act store.Act) error {
		if !yes {
			return hinted{usagef("this removes all documents and runs of tenant %s for good", name), "add --yes"}
		}
		err := engine.DeleteTenant(ctx, s.Store, s.removeIndex, name, force, act)
		if errors.Is(err, engine.ErrIndexRemains) {
			return hinted{err, "it is removed by assay serve, or by the next assay tenant create, suspend, resume or delete"}
		}
		if !force && (errors.Is(err, assay.ErrLocked) || errors.Is(err, assay.ErrLeased)) {
			err = hinted{err, "wait until it has finished, or add --force"}
		}
		return err
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&force, "force", false, "also while it is in use")
	return cmd
}

// shownTenant is a tenant as list and show print it.
type shownTenant struct {
	Name     string            `json:"name"`
	State    store.TenantState `json:"state"`
	Identity string            `json:"identity"`
	Created  time.Time         `json:"created"`

	// Set by show.
	Bytes *store.Size `json:"bytes,omitempty"`
	Log   *int64      `json:"log_entries,omitempty"`
}

func (a *app) listTenantsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tenants",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.tenants(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.stdout, list)
			}
			for _, t := range list {
				fmt.Fprintf(a.stdout, "%-20s  %-9s  %s\n", t.Name, t.State, t.Created.Local().Format(time.DateTime))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

// tenants returns the tenants by name.
func (a *app) tenants(ctx context.Context) (list []shownTenant, err error) {
	s, err := a.openStore(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	sys, err := s.System(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sys.Close()) }()
	infos, err := store.ListTenants(ctx, sys.Registry())
	list = []shownTenant{}
	for _, t := range infos {
		list = append(list, shownTenant{Name: t.Name, State: t.State, Identity: t.Identity, Created: t.Created})
	}
	return list, err
}

func (a *app) showTenantCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show the state and the size of a tenant",
		Example: `  assay tenant show acme`,
		Args:    oneArgument("the tenant's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.showTenant(cmd.Context(), args[0])
			if err != nil {
				return a.hintNamedTenant(err, args[0])
			}
			if asJSON {
				return writeJSON(a.stdout, t)
			}
			_, err = fmt.Fprintf(a.stdout, "Name       %s\nState      %s\nIdentity   %s\nCreated    %s\nDocuments  %d KiB\nRuns       %d KiB\nAudit log  %s\n",
				t.Name, t.State, t.Identity, t.Created.Local().Format(time.DateTime), t.Bytes.Content>>10, t.Bytes.Runs>>10, count(int(*t.Log), "entry", "entries"))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (a *app) showTenant(ctx context.Context, name string) (shown shownTenant, err error) {
	list, err := a.tenants(ctx)
	if err != nil {
		return shown, err
	}
	for _, t := range list {
		if t.Name == name {
			shown = t
		}
	}
	if shown.Name == "" {
		return shown, fmt.Errorf("tenant %s: %w", name, assay.ErrNotFound)
	}
	s, err := a.openStore(ctx, false)
	if err != nil {
		return shown, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t, err := s.InspectTenant(ctx, name)
	if err != nil {
		return shown, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	size, err := t.Size(ctx)
	if err != nil {
		return shown, err
	}
	entries, err := t.Audit().Size(ctx)
	shown.Bytes, shown.Log = &size, &entries
	return shown, err
}
