package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func (a *app) egressCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "egress",
		Short: "Show and restrict which hosts may be reached",
		Long: `Egress shows which hosts assay may connect to, and why. The rules are in the section egress of
the configuration file; without it, the hosts of the configured providers and sources are
reached, and the public internet for the pages of a web search (docs/egress.md).`,
		Example: `  assay egress list
  assay egress check https://api.openai.com/v1
  assay egress restrict api.openai.com "*.example.com"`,
	}
	cmd.AddCommand(a.egressListCommand(), a.egressCheckCommand(), a.egressRestrictCommand())
	return cmd
}

// egressState is the JSON of the rules.
type egressState struct {
	Offline bool                   `json:"offline"`
	Allow   []string               `json:"allow"` // null: no list
	Also    []string               `json:"also"`
	Tenant  engine.EgressRules     `json:"tenant"`
	Hosts   []engine.EgressVerdict `json:"hosts"`
}

func (a *app) egressListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the rules and the configured hosts",
		Long:    `List shows the rules, and whether each configured host may be reached. It connects to none.`,
		Example: `  assay egress list --json`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := a.egressState(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.stdout, state)
			}
			return a.writeEgress(state)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// egressState reads the rules. A data directory adds its sources and its own rules, if there is one.
func (a *app) egressState(cmd *cobra.Command) (egressState, error) {
	set, err := a.settings()
	if err != nil {
		return egressState{}, err
	}
	c := set.Config()
	state := egressState{Offline: c.Egress.Offline(), Also: c.Egress.Also().Strings(), Hosts: []engine.EgressVerdict{}}
	if l := c.Egress.Allow(); l != nil {
		state.Allow = l.Strings()
	}
	e, err := a.egressEngine(cmd)
	if err != nil {
		return state, err
	}
	ctx := cmd.Context()
	if e != nil {
		defer e.Close()
		if state.Tenant, err = e.EgressRestriction(ctx); err != nil {
			return state, err
		}
		ctx = e.EgressContext(ctx)
	}
	for _, d := range c.Destinations() {
		u, err := url.Parse(d.Address)
		if err != nil {
			return state, err
		}
		state.Hosts = append(state.Hosts, engine.VerdictOf(ctx, d.Scope, d.Name, u))
	}
	if e == nil {
		return state, nil
	}
	sources, err := e.SourceEgress(ctx)
	state.Hosts = append(state.Hosts, sources...)
	return state, err
}

// egressEngine opens the data directory with the configured rules; nil: there is none.
func (a *app) egressEngine(cmd *cobra.Command) (*engine.Engine, error) {
	at, err := a.location(cmd.Context())
	if err != nil {
		return nil, err
	}
	if at.missing() {
		return nil, nil
	}
	c, err := a.engineConfig(cmd.Context(), at, looking)
	if err != nil {
		return nil, err
	}
	set, err := a.settings()
	if err != nil {
		return nil, err
	}
	c.Egress = set.Config().Egress
	e, err := engine.Open(cmd.Context(), c)
	return e, a.hintTenant(err, c.Tenant)
}

func (a *app) writeEgress(s egressState) error {
	switch {
	case s.Offline:
		fmt.Fprintln(a.stdout, "offline: nothing leaves this machine")
	case s.Allow == nil:
		fmt.Fprintln(a.stdout, "no list: configured hosts, and the public internet for pages of a web search")
	default:
		fmt.Fprintf(a.stdout, "allowed, and nothing else: %s\n", strings.Join(s.Allow, ", "))
	}
	if len(s.Also) > 0 {
		fmt.Fprintf(a.stdout, "besides configured hosts: %s\n", strings.Join(s.Also, ", "))
	}
	if s.Tenant.Offline {
		fmt.Fprintln(a.stdout, "this tenant: offline")
	} else if s.Tenant.Allow != nil {
		fmt.Fprintf(a.stdout, "this tenant, of these: %s\n", strings.Join(s.Tenant.Allow, ", "))
	}
	var err error
	for _, h := range s.Hosts {
		verdict := "yes"
		if !h.Allowed {
			verdict = "no"
		}
		_, err = fmt.Fprintf(a.stdout, "%-3s  %-9s %-12s %s: %s\n", verdict, h.Purpose, h.Name, h.Host, h.Rule)
	}
	return err
}

func (a *app) egressCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Say whether an address may be reached, and why",
		Long: `Check names the rule that lets an address be reached, or refuses it, for each purpose. It checks
the host by its name, and connects to nothing. The exit code is 0 if a purpose may reach it.`,
		Example: `  assay egress check https://api.openai.com/v1
  assay egress check http://169.254.169.254/`,
		Args: oneArgument("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := args[0]
			if !strings.Contains(text, "://") {
				if _, _, err := net.SplitHostPort(text); err == nil {
					text = "tcp://" + text
				} else {
					text = "https://" + text
				}
			}
			u, err := url.Parse(text)
			if err != nil || u.Host == "" {
				return usagef("%q is not an address", args[0])
			}
			return a.checkEgress(cmd, u, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) checkEgress(cmd *cobra.Command, u *url.URL, asJSON bool) error {
	state, err := a.egressState(cmd)
	if err != nil {
		return err
	}
	set, err := a.settings()
	if err != nil {
		return err
	}
	e, err := a.egressEngine(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if e != nil {
		defer e.Close()
		ctx = e.EgressContext(ctx)
	}
	verdicts := engine.EgressVerdicts(ctx, set.Config().Egress, u)
	for _, d := range set.Config().Destinations() {
		verdicts = append(verdicts, engine.VerdictOf(ctx, d.Scope, d.Name, u))
	}
	allowed := false
	for _, v := range verdicts {
		allowed = allowed || v.Allowed
	}
	for _, h := range state.Hosts { // of sources
		if h.Purpose == "source" && h.Host == engine.HostPort(u) {
			verdicts, allowed = append(verdicts, h), allowed || h.Allowed
		}
	}
	if asJSON {
		err = writeJSON(a.stdout, verdicts)
	} else {
		err = a.writeEgress(egressState{Offline: state.Offline, Allow: state.Allow, Also: state.Also, Tenant: state.Tenant, Hosts: verdicts})
	}
	if err == nil && !allowed {
		return fmt.Errorf("%s may not be reached: %w", engine.HostPort(u), assay.ErrInvalid)
	}
	return err
}

func (a *app) egressRestrictCommand() *cobra.Command {
	var off, clearAll bool
	var reason string
	cmd := &cobra.Command{
		Use:   "restrict [RULE...]",
		Short: "Set the tenant's own rules, which only narrow the configured ones",
		Long: `Restrict sets which hosts connections on behalf of this tenant may reach, of those that the
configuration allows. --off lets none leave this machine, and --clear removes the rules.`,
		Example: `  assay egress restrict api.openai.com "*.example.com"
  assay egress restrict --off --reason "incident 12"
  assay egress restrict --clear`,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, x := range []bool{len(args) > 0, off, clearAll} {
				if x {
					given++
				}
			}
			if given != 1 {
				return usagef("want rules, --off or --clear")
			}
			rules := engine.EgressRules{Offline: off}
			if len(args) > 0 {
				rules.Allow = args
			}
			return a.withEngine(cmd.Context(), func(e *engine.Engine) error {
				return e.RestrictEgress(cmd.Context(), assay.Local(), rules, reason)
			})
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "let nothing leave this machine")
	cmd.Flags().BoolVar(&clearAll, "clear", false, "remove the tenant's rules")
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}
