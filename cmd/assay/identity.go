package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/identity"
)

func (a *app) identityCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "identity",
		Short: "Check who a credential is, and with which rights",
		Long: `Credentials are API keys (assay key) and access tokens of the issuers in the section identity
of the configuration file. docs/identity.md describes both.`,
		Example: `  assay identity check - < key.txt`,
	}
	cmd.AddCommand(a.identityCheckCommand())
	return cmd
}

func (a *app) identityCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [TOKEN|-]",
		Short: "Show what a credential is granted, or why it is refused",
		Long: `Check verifies an access token or an API key as a request with it would be, and prints the
tenant, the user and the rights that it gives, or the reason for which it is refused. It never
prints the credential. Other users can see the arguments of a command, so give it on standard
input. The keys of a token's issuer are fetched. The use of an API key is not recorded.

The exit code is 0 if the credential is accepted and 10 if it is refused.`,
		Example: `  assay identity check - < key.txt
  jq -r .access_token token.json | assay identity check -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return hinted{usagef("got %d arguments, want one: TOKEN", len(args)), "see: assay identity check --help"}
			}
			return a.identityCheck(cmd.Context(), args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (a *app) identityCheck(ctx context.Context, args []string, asJSON bool) error {
	text, err := a.credentialText(ctx, args)
	if err != nil {
		return err
	}
	auth, closeAll, err := a.authenticator(ctx)
	if err != nil {
		return err
	}
	credential, err := identity.FromString(text)
	var g identity.Grant
	if err == nil {
		g, err = auth.Authenticate(ctx, credential)
	}
	if closeErr := closeAll(); closeErr != nil {
		return closeErr
	}
	refusal, refused := errors.AsType[*identity.Refusal](err)
	if err != nil && (!refused || ctx.Err() != nil) {
		return err
	}
	if asJSON {
		err = writeJSON(a.stdout, checkedOf(g, refusal))
	} else {
		err = a.writeChecked(checkedOf(g, refusal))
	}
	if err != nil || refusal == nil {
		return err
	}
	return end(exitCode(refusal))
}

// credentialText returns the credential in the argument, or on standard input.
func (a *app) credentialText(ctx context.Context, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	if len(args) == 0 && !a.piped {
		return "", hinted{usagef("no credential"), "for example: assay identity check - < key.txt"}
	}
	data, err := a.readStdin(ctx, identity.MaxCredential+2) // more is refused as too long
	if err != nil {
		return "", fmt.Errorf("read the credential: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// authenticator returns the authenticator of the data directory and the configuration.
func (a *app) authenticator(ctx context.Context) (auth *identity.Authenticator, closeAll func() error, err error) {
	set, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	o := identity.Options{Tokens: set.Config().Identity, Client: set.Config().IdentityClient(), Untracked: true}
	closeAll = func() error { return nil }
	at, err := a.location(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !at.missing() {
		if o.Keys, closeAll, err = a.openKeys(ctx); err != nil {
			return nil, nil, err
		}
	}
	if auth, err = identity.New(o); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return auth, closeAll, nil
}

// A checked is the result of identity check, as --json prints it.
type checked struct {
	Granted bool             `json:"granted"`
	Tenant  string           `json:"tenant,omitempty"`
	User    string           `json:"user,omitempty"`
	Groups  []string         `json:"groups,omitempty"`
	Roles   []string         `json:"roles,omitempty"`
	Rights  []identity.Right `json:"rights,omitempty"`
	Expires time.Time        `json:"expires,omitzero"`

	Key    string          `json:"key,omitempty"`    // ID
	Issuer string          `json:"issuer,omitempty"` // name in the configuration
	Error  string          `json:"error,omitempty"`  // what a caller is told
	Reason identity.Reason `json:"reason,omitempty"`
	Means  string          `json:"means,omitempty"`
	Detail string          `json:"detail,omitempty"`
}

func checkedOf(g identity.Grant, r *identity.Refusal) checked {
	if r != nil {
		return checked{User: r.User, Key: r.Key, Issuer: r.Issuer, Error: r.Error(), Reason: r.Reason, Means: r.Means(), Detail: r.Detail}
	}
	p := g.Principal
	return checked{Granted: true, Tenant: g.Tenant, User: p.User, Groups: p.Groups, Roles: p.Roles, Rights: g.Rights, Expires: g.Expires, Key: p.Key}
}

func (a *app) writeChecked(c checked) error {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", name, plainLine(value))
		}
	}
	if !c.Granted {
		row("Refused", c.Means)
		row("Reason", string(c.Reason))
		row("Detail", c.Detail)
	}
	row("Tenant", c.Tenant)
	row("User", c.User)
	row("Groups", strings.Join(c.Groups, ", "))
	row("Roles", strings.Join(c.Roles, ", "))
	for i, r := range c.Rights {
		name := ""
		if i == 0 {
			name = "Rights"
		}
		value := string(r.Scope)
		if r.Collections != nil {
			value += " in " + strings.Join(r.Collections, ", ")
		}
		row(name, value)
	}
	row("Key", c.Key)
	row("Issuer", c.Issuer)
	if c.Granted {
		row("Expires", timeOrNever(c.Expires))
	} else {
		row("Caller", "is told: "+c.Error)
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}
