package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

func (a *app) keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Create, list, rotate and revoke API keys",
		Long: `An API key lets a program act as a user of a tenant, with roles and until a date. It is
shown once, when it is created, and stored as a hash. A revoked key is refused by the next
request, in every process. Each change is in the audit log of the data directory.

docs/identity.md describes the roles. To see what a key allows: assay identity check -`,
		Example: `  assay key create --user ann --group finance --role reader > key.txt
  assay key list
  assay key revoke 7xk2m5qhd3vwbn4a --reason "left in a repository"`,
	}
	cmd.AddCommand(a.keyCreateCommand(), a.keyListCommand(), a.keyShowCommand(), a.keyRevokeCommand(), a.keyRotateCommand())
	return cmd
}

// openKeys opens the API keys of the data directory, which must exist.
func (a *app) openKeys(ctx context.Context) (keys *identity.Keys, closeAll func() error, err error) {
	at, err := a.location(ctx)
	if err != nil {
		return nil, nil, err
	}
	if at.missing() {
		return nil, nil, hinted{fmt.Errorf("no API keys yet in %s: %w", at, assay.ErrNotFound), "see: assay key create --help"}
	}
	s, err := at.openStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	return openKeysOf(ctx, s)
}

func openKeysOf(ctx context.Context, s store.Store) (keys *identity.Keys, closeAll func() error, err error) {
	sys, err := s.System(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return identity.NewKeys(sys, nil), func() error { return errors.Join(sys.Close(), s.Close()) }, nil
}

// withKeys calls fn with the API keys of the data directory.
func (a *app) withKeys(ctx context.Context, fn func(*identity.Keys) error) error {
	keys, closeAll, err := a.openKeys(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(keys), closeAll())
}

// expiry parses --expires.
func expiry(text string, now time.Time) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	after, err := daysOrHours(text)
	if err != nil {
		return time.Time{}, usagef("--expires %q: want a number of days or hours, as in 90d or 12h, or never", text)
	}
	return now.Add(after), nil
}

// A newKey is what create and rotate print with --json.
type newKey struct {
	identity.Key
	Text string `json:"text"`
}

// printNewKey prints the key alone, so that it can be piped, and everything else to standard error.
func (a *app) printNewKey(key identity.Key, text string, asJSON bool) error {
	if asJSON {
		return writeJSON(a.stdout, newKey{key, text})
	}
	expires := "it never expires"
	if !key.Expires.IsZero() {
		expires = "it expires at " + timeOrNever(key.Expires)
	}
	fmt.Fprintf(a.stderr, "key %s for %s in the tenant %s; %s. It is shown only now:\n", key.ID, key.User, key.Tenant, expires)
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}

// keyFlags are the flags of key create.
type keyFlags struct {
	user, expires string
	groups, roles []string
	json          bool
}

func (a *app) keyCreateCommand() *cobra.Command {
	var f keyFlags
	cmd := &cobra.Command{
		Use:   "create --user USER --role ROLE",
		Short: "Create an API key and print it",
		Long: `Create makes an API key and prints it, alone, on standard output. It cannot be shown again.
The key acts as the user, who sees the documents whose ACLs name the user or a group.

Roles are reader, editor, reviewer, auditor and admin. Reader, editor and reviewer may be
limited to collections, as in editor:handbook,policies.`,
		Example: `  assay key create --user ann --group finance --role reader > key.txt
  assay key create --user ci --role editor:handbook --expires 30d --tenant acme
  assay key create --user ops --role admin --expires 12h --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.keyCreate(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.user, "user", "", "`user` that the key acts as: a person or a service")
	flags.StringArrayVar(&f.groups, "group", nil, "`group` of the user; may be repeated")
	flags.StringArrayVar(&f.roles, "role", nil, "`role` of the key, as in reader or editor:handbook; may be repeated")
	flags.StringVar(&f.expires, "expires", "90d", "`age` at which the key expires, as in 90d or 12h, or never")
	flags.BoolVar(&f.json, "json", false, "print a JSON object with the key as text")
	return cmd
}

func (a *app) keyCreate(ctx context.Context, f keyFlags) (err error) {
	if f.user == "" || len(f.roles) == 0 {
		return hinted{usagef("--user and --role are required"), "for example: assay key create --user ann --role reader"}
	}
	tenant, err := a.tenantName()
	if err != nil {
		return err
	}
	spec := identity.KeySpec{Tenant: tenant, User: f.user, Groups: f.groups}
	if spec.Roles, err = identity.ParseRoles(f.roles...); err != nil {
		return fmt.Errorf("--role: %w", err)
	}
	if spec.Expires, err = expiry(f.expires, time.Now()); err != nil {
		return err
	}
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	s, err := at.openStore(ctx)
	if err != nil {
		return err
	}
	tenants, err := s.Tenants(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	if tenant != store.DefaultTenant && !slices.Contains(tenants, tenant) {
		return errors.Join(a.hintTenant(assay.ErrNotFound, tenant), s.Close())
	}
	keys, closeAll, err := openKeysOf(ctx, s)
	if err != nil {
		return err
	}
	key, text, err := keys.Create(ctx, assay.Local(), spec)
	if err = errors.Join(err, closeAll()); err != nil {
		return err
	}
	return a.printNewKey(key, text, f.json)
}

func (a *app) keyListCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List API keys",
		Long: `List prints the API keys that are valid, oldest first: ID, state, tenant, user, roles, when
it expires and when it was last used, to a minute or so. Without --tenant and $ASSAY_TENANT
the keys of all tenants are listed.`,
		Example: `  assay key list
  assay key list --all --tenant acme
  assay key list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withKeys(cmd.Context(), func(keys *identity.Keys) error { return a.keyList(cmd.Context(), keys, a.namedTenant(), all, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list expired and revoked keys too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

// A listedKey is a key with its state, as list and show print it with --json.
type listedKey struct {
	identity.Key
	State string `json:"state"`
}

func (a *app) keyList(ctx context.Context, keys *identity.Keys, tenant string, all, asJSON bool) error {
	found, err := keys.List(ctx, tenant)
	if err != nil {
		return err
	}
	now := time.Now()
	listed := []listedKey{}
	for _, k := range found {
		state := k.State(now)
		if all || state == "active" || state == "ending" {
			listed = append(listed, listedKey{k, state})
		}
	}
	if asJSON {
		return writeJSON(a.stdout, listed)
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, k := range listed {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\texpires %s\tused %s\n", k.ID, k.State, k.Tenant, plainLine(k.User),
			strings.Join(k.Roles, " "), timeOrNever(k.Expires), timeOrNever(k.Used))
	}
	return table.Flush()
}

func timeOrNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

func (a *app) keyShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an API key, without its secret",
		Long:    `Show prints what is stored of an API key: everything but its secret.`,
		Example: `  assay key show 7xk2m5qhd3vwbn4a`,
		Args:    oneArgument("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withKeys(cmd.Context(), func(keys *identity.Keys) error {
				key, err := findKey(cmd.Context(), keys, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.stdout, listedKey{key, key.State(time.Now())})
				}
				return a.writeKey(key)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// findKey returns the key with an ID. The ID may be given as the whole key, whose secret is then
// never printed.
func findKey(ctx context.Context, keys *identity.Keys, id string) (identity.Key, error) {
	if id = identity.KeyID(id); id == "" {
		return identity.Key{}, hinted{usagef("this is no ID of an API key"), "see: assay key list"}
	}
	key, err := keys.Key(ctx, id)
	if errors.Is(err, assay.ErrNotFound) {
		return key, hinted{err, "see: assay key list --all"}
	}
	return key, err
}

func (a *app) writeKey(k identity.Key) error {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, plainLine(value))
		}
	}
	row("ID", k.ID)
	row("State", k.State(time.Now()))
	row("Tenant", k.Tenant)
	row("User", k.User)
	row("Groups", strings.Join(k.Groups, ", "))
	row("Roles", strings.Join(k.Roles, ", "))
	row("Created", timeOrNever(k.Created)+" by "+k.By)
	row("Expires", timeOrNever(k.Expires))
	row("Used", timeOrNever(k.Used))
	row("Rotates", k.Rotates)
	if r := k.Revoked; r != nil {
		row("Revoked", timeOrNever(r.At)+" by "+r.By)
		if !r.From.IsZero() {
			row("From", timeOrNever(r.From))
		}
		row("Reason", r.Reason)
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

func (a *app) keyRevokeCommand() *cobra.Command {
	var reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "revoke ID --reason TEXT",
		Short: "Revoke an API key at once",
		Long: `Revoke makes an API key invalid. The next request with it is refused, in every process. It
cannot be made valid again. The reason is kept in the audit log.`,
		Example: `  assay key revoke 7xk2m5qhd3vwbn4a --reason "left in a repository"`,
		Args:    oneArgument("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return hinted{usagef("--reason is missing"), `for example: --reason "left in a repository"`}
			}
			return a.withKeys(cmd.Context(), func(keys *identity.Keys) error { return a.keyRevoke(cmd.Context(), keys, args[0], reason, asJSON) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the key as a JSON object")
	return cmd
}

func (a *app) keyRevoke(ctx context.Context, keys *identity.Keys, id, reason string, asJSON bool) error {
	key, err := findKey(ctx, keys, id)
	if err != nil {
		return err
	}
	if err := keys.Revoke(ctx, assay.Local(), key.ID, reason); err != nil {
		return err
	}
	if asJSON {
		if key, err = keys.Key(ctx, key.ID); err != nil {
			return err
		}
		return writeJSON(a.stdout, listedKey{key, key.State(time.Now())})
	}
	_, err = fmt.Fprintf(a.stdout, "key %s of %s is revoked\n", key.ID, plainLine(key.User))
	return err
}

func (a *app) keyRotateCommand() *cobra.Command {
	var grace, expires string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Replace an API key by a new one",
		Long: `Rotate creates a key for the same tenant, user, groups and roles, prints it like create, and
revokes the old one: at once, or after the time that --grace gives.`,
		Example: `  assay key rotate 7xk2m5qhd3vwbn4a > key.txt
  assay key rotate 7xk2m5qhd3vwbn4a --grace 24h --expires 30d`,
		Args: oneArgument("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			until, err := expiry(expires, time.Now())
			if err != nil {
				return err
			}
			var wait time.Duration
			if grace != "" {
				if wait, err = daysOrHours(grace); err != nil {
					return usagef("--grace %q: want a number of days or hours, as in 1d or 12h", grace)
				}
			}
			return a.withKeys(cmd.Context(), func(keys *identity.Keys) error {
				old, err := findKey(cmd.Context(), keys, args[0])
				if err != nil {
					return err
				}
				key, text, err := keys.Rotate(cmd.Context(), assay.Local(), old.ID, wait, until)
				if err != nil {
					return err
				}
				return a.printNewKey(key, text, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&grace, "grace", "", "`time` for which the old key stays valid, as in 1d or 12h (default: not at all)")
	cmd.Flags().StringVar(&expires, "expires", "90d", "`age` at which the new key expires, as in 90d or 12h, or never")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object with the key as text")
	return cmd
}
