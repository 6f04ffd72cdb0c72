package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/webhook"
)

func (a *app) webhookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Tell other programs that a review is needed, or that an alarm was raised",
		Long: `Webhook sends messages about acts of the audit log to receivers: signed JSON in the form of
Standard Webhooks, or a message to a Slack channel. Messages name runs and policies and hold no
text of a question, an answer or a document. Every message is sent at least once, always with
the same ID, for up to three days.

Other commands send nothing, so that no receiver slows them down: run assay webhook deliver
--watch as a service, or assay webhook deliver from time to time.`,
		Example: `  assay webhook add ops https://ops.example.com/assay --event "review.*" --secret env:OPS_SECRET
  assay webhook add team env:SLACK_URL --form slack --event review.needed
  assay webhook deliver --watch`,
	}
	cmd.AddCommand(a.webhookAddCommand(), a.webhookListCommand(), a.webhookRemoveCommand(), a.webhookTestCommand(),
		a.webhookDeliverCommand(), a.webhookFailedCommand(), a.webhookRetryCommand())
	return cmd
}

func (a *app) webhookAddCommand() *cobra.Command {
	var t webhook.Target
	var form, reason string
	cmd := &cobra.Command{
		Use:   "add NAME URL",
		Short: "Add a receiver, or replace one of that name",
		Long: `Add stores a receiver, which gets messages about later acts. URL is https://…, http:// for
this machine only, or where the address is read from at each delivery if it is a credential, as
Slack's is. Secrets are never stored, only where they are read from:

  env:NAME          an environment variable
  file:PATH         a file
  command:PROGRAM   the first line that a program prints; arguments follow, and quotes group words

A secret is whsec_ and 24 to 64 random bytes in base64. To replace one, give --secret twice,
the new and the old one, until the receiver knows the new one.

Kinds of act are, for example, review.needed, review.decided, review.escalated, canary.alarm,
egress.refused, stop.set, run.ended; "review.*" is all of a prefix and "*" all of them.
docs/audit.md lists all kinds.`,
		Example: `  assay webhook add ops https://ops.example.com/assay --event "review.*" --secret env:OPS_SECRET
  assay webhook add team file:/run/secrets/slack --form slack --event review.needed`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return hinted{usagef("got %s, want NAME URL", count(len(args), "argument", "arguments")), "see: " + cmd.CommandPath() + " --help"}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t.URL, t.Form = args[1], webhook.Form(form)
			return a.addWebhook(cmd.Context(), args[0], t, reason)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&t.Events, "event", nil, "tell about this `kind` of act; may be repeated")
	flags.StringArrayVar(&t.Secrets, "secret", nil, "sign with the secret of this `reference`; may be repeated")
	flags.StringVar(&form, "form", string(webhook.Standard), "`form` of the messages: standard or slack")
	flags.StringVar(&t.Link, "link", "", "base `URL` of the pages that messages link to")
	flags.StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

func (a *app) addWebhook(ctx context.Context, name string, t webhook.Target, reason string) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.SetWebhook(ctx, assay.Local(), name, t, reason); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "added %s; to try it out, run: assay webhook test %s\n", name, name)
	return err
}

// listedWebhook is the JSON of a webhook in a list. It has no address that may be a credential.
type listedWebhook struct {
	Name      string       `json:"name"`
	URL       string       `json:"url"` // scheme and host, or the reference to the address
	Form      webhook.Form `json:"form"`
	Events    []string     `json:"events"`
	Secrets   []string     `json:"secrets"` // where they are read from
	Link      string       `json:"link,omitempty"`
	Active    bool         `json:"active"`
	Waiting   int          `json:"waiting"`
	Failed    int          `json:"given_up"`
	Removed   int          `json:"removed"` // not delivered: too old, too many, or erased
	Delivered int          `json:"delivered"`
	Last      *time.Time   `json:"last_delivered"`
}

func listedWebhookOf(s engine.WebhookState) listedWebhook {
	l := listedWebhook{
		Name: s.Name, URL: shownAddress(s.URL), Form: s.Form, Events: s.Events, Secrets: append([]string{}, s.Secrets...), Link: s.Link,
		Active: s.Active, Waiting: s.Waiting, Failed: s.Dead, Removed: s.Removed, Delivered: s.Delivered,
	}
	if !s.Last.IsZero() {
		l.Last = &s.Last
	}
	return l
}

// shownAddress returns the scheme and host of an address, or a reference to an address.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	return u.Scheme + "://" + u.Host
}

func (a *app) webhookListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the receivers with their messages",
		Long:    `List shows each receiver with the messages that were delivered, wait, and were given up.`,
		Example: `  assay webhook list --json`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listWebhooks(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) listWebhooks(ctx context.Context, asJSON bool) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	states, err := e.Webhooks(ctx)
	if err != nil {
		return err
	}
	list := []listedWebhook{}
	for _, s := range states {
		list = append(list, listedWebhookOf(s))
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	for _, l := range list {
		state := "active"
		if !l.Active {
			state = "disabled"
		}
		fmt.Fprintf(a.stdout, "%-12s  %-8s  %-8s  %s  %s\n", l.Name, l.Form, state, plainLine(l.URL), strings.Join(l.Events, " "))
		fmt.Fprintf(a.stdout, "    %d delivered, %d waiting, %d given up%s\n", l.Delivered, l.Waiting, l.Failed, removedText(l.Removed))
	}
	_, err = fmt.Fprintln(a.stdout, count(len(list), "webhook", "webhooks"))
	return err
}

func (a *app) webhookRemoveCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a receiver and its messages",
		Long:    `Remove forgets a receiver and the messages that wait for it. Messages sent stay sent.`,
		Example: `  assay webhook remove ops --reason "moved to the new system"`,
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.openExisting(cmd.Context(), looking)
			if err != nil {
				return err
			}
			defer e.Close()
			if err := e.RemoveWebhook(cmd.Context(), assay.Local(), args[0], reason); err != nil {
				return hintList(err, "assay webhook list")
			}
			_, err = fmt.Fprintf(a.stdout, "removed %s\n", args[0])
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the audit log")
	return cmd
}

func (a *app) webhookTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME",
		Short: "Send one message to a receiver now",
		Long: `Test sends a message of the type webhook.test to a receiver and waits for its response. The
message is not stored and not sent again.`,
		Example: `  assay webhook test ops`,
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.openExisting(cmd.Context(), delivering)
			if err != nil {
				return err
			}
			defer e.Close()
			if err := e.TestWebhook(cmd.Context(), args[0]); err != nil {
				return hintList(err, "assay webhook list")
			}
			_, err = fmt.Fprintf(a.stdout, "%s accepted the message\n", args[0])
			return err
		},
	}
}

func (a *app) webhookDeliverCommand() *cobra.Command {
	var watch, asJSON bool
	cmd := &cobra.Command{
		Use:   "deliver",
		Short: "Send the messages that are due",
		Long: `Deliver makes the messages of new acts and sends all that are due. A receiver that fails gets
them again after 5 seconds, then four times as long after each attempt, at most 12 hours, for
three days. One that answers 410 is disabled. One process delivers at a time.

A failing receiver is no error. With --watch, deliver goes on until it is interrupted.`,
		Example: `  assay webhook deliver
  assay webhook deliver --watch`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.deliverWebhooks(cmd.Context(), watch, asJSON) },
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "deliver until interrupted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each report as a line of JSON")
	return cmd
}

func (a *app) deliverWebhooks(ctx context.Context, watch, asJSON bool) error {
	e, err := a.openExisting(ctx, delivering)
	if err != nil {
		return err
	}
	defer e.Close()
	if !watch {
		r, err := e.DeliverWebhooks(ctx)
		if err != nil {
			return err
		}
		return writeDelivery(a.stdout, r, asJSON)
	}
	var printing error
	err = e.WatchWebhooks(ctx, func(r webhook.Report, err error) {
		if err != nil {
			fmt.Fprintln(a.stderr, "assay: deliver: "+message(err))
			return
		}
		if printing == nil {
			printing = writeDelivery(a.stdout, r, asJSON)
		}
	})
	if printing != nil {
		return printing
	}
	return err
}

// removedText says how many messages were removed, if any were.
func removedText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d removed", n)
}

func writeDelivery(w io.Writer, r webhook.Report, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		return e.Encode(r)
	}
	_, err := fmt.Fprintf(w, "%d new, %d delivered, %d failed, %d given up%s\n", r.Made, r.Delivered, r.Failed, r.Dead, removedText(r.Removed))
	if err == nil && !r.Next.IsZero() {
		_, err = fmt.Fprintf(w, "next attempt: %s\n", r.Next.Local().Format(time.DateTime))
	}
	return err
}

// listedMessage is the JSON of a message that was given up.
type listedMessage struct {
	ID       string    `json:"id"`
	Webhook  string    `json:"webhook"`
	Event    string    `json:"event"`
	Sequence int64     `json:"sequence"` // of the act in the audit log
	Made     time.Time `json:"made"`
	Attempts int       `json:"attempts"`
	Error    string    `json:"error"`
}

func listedMessageOf(m store.Message) listedMessage {
	return listedMessage{m.ID, m.Target, m.Kind, m.Act, m.Made, m.Attempts, m.Error}
}

func (a *app) webhookFailedCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "failed",
		Short: "List the messages that were given up",
		Long: `Failed lists the messages that no receiver accepted for three days, and those to a receiver
that is disabled, with the last error of each. They are kept for 30 days.`,
		Example: `  assay webhook failed --json`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.openExisting(cmd.Context(), looking)
			if err != nil {
				return err
			}
			defer e.Close()
			dead, err := e.DeadWebhooks(cmd.Context())
			if err != nil {
				return err
			}
			list := []listedMessage{}
			for _, m := range dead {
				list = append(list, listedMessageOf(m))
			}
			if asJSON {
				return writeJSON(a.stdout, list)
			}
			for _, l := range list {
				fmt.Fprintf(a.stdout, "%s  %s  %s  %s: %s\n", l.ID, l.Webhook, l.Event, count(l.Attempts, "attempt", "attempts"), plainLine(l.Error))
			}
			_, err = fmt.Fprintln(a.stdout, count(len(list), "message", "messages"))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func (a *app) webhookRetryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry [ID]...",
		Short: "Make messages due again that were given up",
		Long:  `Retry makes messages due again that were given up, with three more days. Without an ID: all.`,
		Example: `  assay webhook retry
  assay webhook retry msg_elftnjcigt6vggrolrmuh6v35y`,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.openExisting(cmd.Context(), looking)
			if err != nil {
				return err
			}
			defer e.Close()
			n, err := e.RetryWebhooks(cmd.Context(), args...)
			if err != nil {
				return hinted{err, "see: assay webhook failed"}
			}
			_, err = fmt.Fprintf(a.stdout, "%s due; to send, run: assay webhook deliver\n", count(n, "message is", "messages are"))
			return err
		},
	}
}
