package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/review"
)

func (a *app) reviewPolicyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Decide which answers wait for a person",
		Long: `Policy manages the policies that make answers wait. An answer waits if all conditions of one
policy hold. A policy that cannot be evaluated makes the answer wait too.`,
		Example: `  assay review policy set weak --score-below 0.6
  assay review policy set legal --collection contracts --approvals 2 --deadline 24h
  assay review policy test "May we end the contract early?"`,
	}
	cmd.AddCommand(a.policySetCommand(), a.policyListCommand(), a.policyRemoveCommand(), a.policyTestCommand())
	return cmd
}

// A policyFlags holds the flags of a policy whose zero value is a value.
type policyFlags struct {
	policy           review.Policy
	statuses         []string
	score, relevance float64
	cost             int64
	reason           string
}

func (a *app) policySetCommand() *cobra.Command {
	var f policyFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Create or replace a policy",
		Long:  `Set creates or replaces a policy. It applies at once, to every answer that is finished later.`,
		Example: `  assay review policy set sample --sample 2
  assay review policy set legal --collection contracts --approvals 2 --deadline 24h --escalate heads
  assay review policy set hr --topic "dismissal and discipline of employees" --mandatory`,
		Args: oneArgument("NAME"),
	}
	flags := cmd.Flags()
	p := &f.policy
	flags.BoolVar(&p.Always, "always", false, "every answer waits")
	flags.StringArrayVar(&p.Collections, "collection", nil, "it cites this `collection`; like all lists, may be repeated")
	pairs(cmd, &p.Tags, "tag", "it cites a document with this `key=value`")
	flags.StringArrayVar(&p.Strategies, "strategy", nil, "this `strategy` produced it")
	flags.StringArrayVar(&f.statuses, "status", nil, "its `status`: answered, incomplete, conflicting or not_found")
	flags.Float64Var(&f.score, "score-below", 0, "a statement has a lower score than `x`")
	flags.Float64Var(&f.relevance, "relevance-below", 0, "its relevance is lower than `x`, or was not judged")
	flags.Int64Var(&f.cost, "cost-above", 0, "it cost more than `n` millionths of the currency")
	flags.StringArrayVar(&p.Groups, "asker-group", nil, "the asker is in this `group`")
	flags.StringArrayVar(&p.Roles, "asker-role", nil, "the asker has this `role`")
	flags.StringArrayVar(&p.Topics, "topic", nil, "question and answer are about this `topic`, described in words")
	flags.Float64Var(&p.TopicThreshold, "topic-threshold", 0, "least `score` of a topic (default 0.17)")
	flags.Float64Var(&p.Sample, "sample", 0, "it is in a sample of `x` percent of all runs")
	flags.BoolVar(&p.Mandatory, "mandatory", false, "also with --review never")
	flags.IntVar(&p.Approvals, "approvals", 1, "`n` different reviewers must approve, 1 or 2")
	flags.StringVar(&p.Reviewers, "reviewers", "", "reviewers are in this `group` (default: all reviewers)")
	flags.DurationVar(&p.Deadline, "deadline", 0, "`time` for a decision, such as 24h")
	flags.StringVar(&p.EscalateTo, "escalate", "", "after the deadline this `group` may review too")
	flags.BoolVar(&p.Reject, "reject", false, "after the deadline the answer is rejected")
	flags.StringVar(&f.reason, "reason", "", "`why`, for the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.Name = args[0]
		for name, set := range map[string]func(){
			"score-below":     func() { p.ScoreBelow = &f.score },
			"relevance-below": func() { p.RelevanceBelow = &f.relevance },
			"cost-above":      func() { p.CostAbove = &f.cost },
		} {
			if cmd.Flags().Changed(name) {
				set()
			}
		}
		for _, s := range f.statuses {
			p.Statuses = append(p.Statuses, assay.Status(s))
		}
		return a.withPolicies(cmd.Context(), func(e *engine.Engine) error {
			if err := e.SetPolicy(cmd.Context(), assay.Local(), *p, f.reason); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.stdout, "policy %s is set\n", p.Name)
			return err
		})
	}
	return cmd
}

// withPolicies opens the store, which is created if it does not exist.
func (a *app) withPolicies(ctx context.Context, fn func(*engine.Engine) error) error {
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	e, err := a.openEngine(ctx, at, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	return fn(e)
}

func (a *app) policyListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the policies", Example: `  assay review policy list --json`, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.openExisting(cmd.Context(), looking)
			if err != nil {
				return err
			}
			defer e.Close()
			all, err := e.Policies(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				if all == nil {
					all = []review.Policy{}
				}
				return writeJSON(a.stdout, all)
			}
			for _, p := range all {
				text, err := policyText(p)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "%s: %s\n", p.Name, text)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// policyText formats the settings of a policy, in the order of its JSON.
func policyText(p review.Policy) (string, error) {
	deadline := p.Deadline
	p.Name, p.Deadline = "", 0
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil { // the opening brace
		return "", err
	}
	var parts []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return "", err
		}
		if name != "name" {
			parts = append(parts, fmt.Sprintf("%s %s", name, value))
		}
	}
	if deadline > 0 {
		parts = append(parts, "deadline "+deadline.Round(time.Second).String())
	}
	return strings.Join(parts, "; "), nil
}

func (a *app) policyRemoveCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a policy",
		Long:    `Remove removes a policy. Answers that wait because of it go on waiting.`,
		Example: `  assay review policy remove sample`,
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPolicies(cmd.Context(), func(e *engine.Engine) error {
				if err := e.RemovePolicy(cmd.Context(), assay.Local(), args[0], reason); err != nil {
					return hintList(err, "assay review policy list")
				}
				_, err := fmt.Fprintf(a.stdout, "policy %s is removed\n", args[0])
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

func (a *app) policyTestCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test \"QUESTION\"",
		Short: "Ask a question and print the policies that match",
		Long: `Test answers a question and prints the policies that would make the answer wait, and why. The
answer waits only if a mandatory policy matches.`,
		Example: `  assay review policy test "May we end the contract early?"`,
		Args:    oneArgument("QUESTION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.openExisting(cmd.Context(), answering)
			if err != nil {
				return err
			}
			defer e.Close()
			answer, matches, err := e.TestPolicies(cmd.Context(), assay.Local(), engine.Request{Question: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.stdout, struct {
					Run     string         `json:"run"`
					Status  assay.Status   `json:"status"`
					Matches []review.Match `json:"policies"`
				}{answer.Run, answer.Status, append([]review.Match{}, matches...)})
			}
			fmt.Fprintf(a.stdout, "%s (run %s)\n", answer.Status, answer.Run)
			for _, m := range matches {
				fmt.Fprintf(a.stdout, "waits for %s: %s\n", m.Policy, m.Why)
			}
			if len(matches) == 0 {
				fmt.Fprintln(a.stdout, "no policy matches")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
