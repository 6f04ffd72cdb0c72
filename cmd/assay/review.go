package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/review"
)

// commandLineKey is the credential of reviewers whom the command line's user names.
const commandLineKey = "command-line"

// A reviewerFlags names who reviews on the command line.
type reviewerFlags struct {
	as     string
	groups []string
}

// principal returns the principal that reviews: the user of --as or, by default, the local principal.
// The latter sees every review but cannot decide reviews of its own questions.
func (f reviewerFlags) principal() assay.Principal {
	if f.as == "" {
		return assay.Local()
	}
	return assay.Principal{User: f.as, Groups: f.groups, Roles: []string{string(identity.Reviewer)}, Key: commandLineKey}
}

func (a *app) reviewCommand() *cobra.Command {
	var f reviewerFlags
	cmd := &cobra.Command{
		Use:   "review",
		Short: "Decide about answers that wait for a person",
		Long: `Review lists the answers that wait for a person, shows what they rest on, and records the
decision. A reviewer claims an answer for some minutes, then approves, edits or rejects it.
No one reviews their own question. assay review policy decides which answers wait. RUN is a run
ID, a unique prefix of one, or "next" for the oldest that you can claim.

Name the person who decides with --as. The command line takes your word for it, and the
audit log says so; a server knows its users.`,
		Example: `  assay review list
  assay review claim next --as mara && assay review show next --as mara
  assay review approve next --as mara
  assay review policy set legal --collection contracts --approvals 2`,
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.as, "as", "", "act as this `user`, with the role of a reviewer")
	flags.StringArrayVar(&f.groups, "group", nil, "a `group` of that user; may be repeated")
	cmd.AddCommand(
		a.reviewListCommand(&f), a.reviewShowCommand(&f), a.reviewClaimCommand(&f), a.reviewReleaseCommand(&f),
		a.reviewApproveCommand(&f), a.reviewEditCommand(&f), a.reviewRejectCommand(&f), a.reviewPolicyCommand(),
	)
	return cmd
}

func (a *app) reviewListCommand(f *reviewerFlags) *cobra.Command {
	var asJSON bool
	var filter engine.ReviewFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the answers that wait, the oldest first",
		Long: `List prints each answer that waits: its run, age, deadline, policies, claim and question. It
also does what follows deadlines that have passed.`,
		Example: `  assay review list
  assay review list --policy legal --all --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listReviews(cmd.Context(), f.principal(), filter, asJSON)
		},
	}
	cmd.Flags().BoolVar(&filter.Decided, "all", false, "also those that are decided")
	cmd.Flags().StringVar(&filter.Policy, "policy", "", "only those of this `policy`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) listReviews(ctx context.Context, by assay.Principal, filter engine.ReviewFilter, asJSON bool) error {
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	list, err := e.Reviews(ctx, by, filter)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	now := time.Now()
	for _, s := range list {
		fmt.Fprintf(a.stdout, "%s  %-8s  %-10s  %-24s  %s\n", s.Run, roughly(now.Sub(s.Created)), dueLine(s, now), oneLine(stateLine(s), 24), oneLine(s.Question, 60))
	}
	return nil
}

// roughly formats a duration in its largest unit: "3 d".
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d d", int(d.Hours())/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
}

func dueLine(s engine.ReviewSummary, now time.Time) string {
	switch {
	case s.Decision != assay.DecisionPending || s.Deadline.IsZero():
		return ""
	case !now.Before(s.Deadline):
		return "overdue"
	}
	return "in " + roughly(s.Deadline.Sub(now))
}

// stateLine describes the state of a review, and its policies.
func stateLine(s engine.ReviewSummary) string {
	if s.Decision != assay.DecisionPending {
		return string(s.Decision) + " " + strings.Join(s.By, ", ")
	}
	line := policyLine(s.Policies)
	if len(s.Approved) > 0 {
		line += fmt.Sprintf(", %d of %d", len(s.Approved), s.Needed)
	}
	if s.ClaimedBy != "" {
		line += ", claimed by " + s.ClaimedBy
	}
	return line
}

// policyLine names the policies that match.
func policyLine(matches []review.Match) string {
	var names []string
	for _, m := range matches {
		if m.Policy == "" {
			m.Policy = "(asked for)"
		}
		names = append(names, m.Policy)
	}
	return strings.Join(names, ", ")
}

// nextReview is the name of the oldest review that a reviewer can claim.
const nextReview = "next"

// withReview opens the store and finds the review that name, an ID, a unique prefix or nextReview,
// names.
func (a *app) withReview(ctx context.Context, by assay.Principal, name string, n needs, fn func(*engine.Engine, string) error) error {
	e, err := a.openExisting(ctx, n)
	if err != nil {
		return err
	}
	defer e.Close()
	list, err := e.Reviews(ctx, assay.Local(), engine.ReviewFilter{Decided: true})
	if err != nil {
		return err
	}
	var found []string
	for _, s := range list {
		if name == nextReview && claimable(s, by) || s.Run == name {
			found = []string{s.Run}
			break
		}
		if name != "" && strings.HasPrefix(s.Run, name) {
			found = append(found, s.Run)
		}
	}
	switch len(found) {
	case 0:
		if name == nextReview {
			return a.hintReviewer(by, fmt.Errorf("no answer waits that %s can review: %w", by.User, assay.ErrNotFound))
		}
		return hinted{fmt.Errorf("review %q: %w", name, assay.ErrNotFound), "see: assay review list"}
	case 1:
		return a.hintReviewer(by, fn(e, found[0]))
	}
	return usagef("review %q is ambiguous: it is a prefix of %d runs, such as %s and %s", name, len(found), found[0], found[1])
}

// claimable reports whether a reviewer can claim an answer, as far as a list shows.
func claimable(s engine.ReviewSummary, by assay.Principal) bool {
	free := s.ClaimedBy == "" || s.ClaimedBy == by.User
	return free && s.Decision == assay.DecisionPending && s.Asker != by.User && !slices.Contains(s.Approved, by.User)
}

// hintReviewer adds --as to the error of a decision about one's own question.
func (a *app) hintReviewer(by assay.Principal, err error) error {
	mayBeOwn := errors.Is(err, assay.ErrForbidden) || errors.Is(err, assay.ErrNotFound)
	if mayBeOwn && by.User == assay.Local().User {
		return hinted{err, "name the person who reviews with --as"}
	}
	return err
}

func (a *app) reviewShowCommand(f *reviewerFlags) *cobra.Command {
	var asJSON, steps bool
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show what to decide by: draft, verdicts, evidence, steps",
		Long: `Show prints the question, why the answer waits, the draft with the verdict on each statement,
what is missing, and the passages that the run found, by the numbers that an edit can cite.
It records that you have seen them; an answer cannot be approved before.

If the run read documents that you may not see, nothing of the answer is shown.`,
		Example: `  assay review show RUN --as mara
  assay review show RUN --as mara --json | jq .draft.claims`,
		Args: oneArgument("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			by := f.principal()
			return a.withReview(cmd.Context(), by, args[0], looking, func(e *engine.Engine, id string) error {
				view, err := e.Review(cmd.Context(), by, id)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(a.stdout, view)
				}
				return writeReview(a.stdout, view, steps, a.width)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&steps, "steps", false, "also print each step of the run")
	return cmd
}

// writeReview prints a review for people.
func writeReview(w io.Writer, v engine.ReviewView, steps bool, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Run       %s\nAsked     %s by %s\n", v.Run, v.Created.Local().Format(time.DateTime), v.Asker)
	for _, m := range v.Policies {
		fmt.Fprintf(&b, "Waits     %s: %s\n", policyLine([]review.Match{m}), m.Why)
	}
	if !v.Deadline.IsZero() {
		fmt.Fprintf(&b, "Deadline  %s\n", v.Deadline.Local().Format(time.DateTime))
	}
	fmt.Fprintf(&b, "State     %s\n", reviewState(v.ReviewSummary))
	b.WriteString("\nQuestion\n" + wrap(v.Question, "  ", width))
	if v.Hidden > 0 {
		b.WriteString("\n" + wrap(fmt.Sprintf("The run read %s that you may not see, so the answer is not shown and you cannot decide about it.", count(v.Hidden, "document", "documents")), "", width))
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "\nDraft (%s: %s)\n%s", v.Draft.Status, v.Draft.Justification, wrap(v.Draft.Text, "  ", width))
	writeStatements(&b, *v.Draft, width)
	if len(v.Draft.Missing) > 0 {
		b.WriteString("\nMissing\n")
		for _, m := range v.Draft.Missing {
			b.WriteString(wrap("- "+m.Text+byModel(m.ByModel), "  ", width))
		}
	}
	if len(v.Changes) > 0 {
		b.WriteString("\nChanges\n")
		for _, c := range v.Changes {
			b.WriteString(wrap(map[string]string{"same": "  ", "removed": "- ", "added": "+ "}[c.Op]+strings.TrimSpace(c.Text), "  ", width))
		}
	}
	b.WriteString("\nEvidence\n")
	for _, ev := range v.Evidence {
		if ev.Hit.Text != "" {
			fmt.Fprintf(&b, "[%d] %s%s\n", ev.Number, title(ev.Hit.Title, ev.Hit.Chunk.Headings), from(ev.Hit.Origin))
			writeQuote(&b, ev.Hit.Text, width)
		}
	}
	if steps {
		b.WriteString("\nSteps\n")
		for i, s := range v.Steps {
			fmt.Fprintf(&b, "%4d %s\n", i+1, traceLine(s))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeStatements prints the verdict on each statement of a draft with the words that it cites.
func writeStatements(b *strings.Builder, a assay.Answer, width int) {
	if len(a.Claims) == 0 {
		return
	}
	b.WriteString("\nStatements\n")
	for i, c := range a.Claims {
		of := fmt.Sprintf("%d. %s, score %.2f", i+1, c.Verdict, c.Score)
		if c.Reviewer != "" {
			of += ", statement of " + c.Reviewer
		}
		b.WriteString(wrap(of+": "+a.Text[c.Start:c.End], "  ", width))
		for _, cit := range a.Citations {
			if cit.Claim == i {
				b.WriteString(wrap(fmt.Sprintf("[%d] %s: %q", cit.Number, place(cit.URI, cit.Line, cit.Page), cit.Quote), "     ", width))
			}
		}
	}
}

func reviewState(s engine.ReviewSummary) string {
	if s.Decision != assay.DecisionPending {
		line := fmt.Sprintf("%s %s", s.Decision, s.Decided.Local().Format(time.DateTime))
		if len(s.By) > 0 {
			line += " by " + strings.Join(s.By, ", ")
		}
		if s.Reason != "" {
			line += ": " + s.Reason
		}
		return line
	}
	line := fmt.Sprintf("waits; %d of %s", len(s.Approved), count(s.Needed, "approval", "approvals"))
	if s.ClaimedBy != "" {
		line += fmt.Sprintf("; claimed by %s until %s", s.ClaimedBy, s.Expires.Local().Format(time.TimeOnly))
	}
	if !s.Escalated.IsZero() {
		line += "; escalated"
	}
	return line
}

func (a *app) reviewClaimCommand(f *reviewerFlags) *cobra.Command {
	var lease time.Duration
	cmd := &cobra.Command{
		Use:   "claim RUN",
		Short: "Claim an answer, so that no one else decides meanwhile",
		Long: `Claim reserves an answer for you. The claim expires by itself; claim again to renew it. You
cannot claim the answer to your own question, one that you have approved, or one that read
documents that you may not see.`,
		Example: `  assay review claim RUN --as mara --for 30m`,
	}
	a.decision(cmd, f, looking, func(ctx context.Context, e *engine.Engine, by assay.Principal, id string) (engine.ReviewSummary, error) {
		return e.Claim(ctx, by, id, lease)
	})
	cmd.Flags().DurationVar(&lease, "for", review.DefaultLease, "how long the claim lasts, at most 8h")
	return cmd
}

func (a *app) reviewReleaseCommand(f *reviewerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "release RUN", Short: "Give a claim back", Example: `  assay review release RUN --as mara`,
	}
	a.decision(cmd, f, looking, func(ctx context.Context, e *engine.Engine, by assay.Principal, id string) (engine.ReviewSummary, error) {
		return e.Release(ctx, by, id)
	})
	return cmd
}

func (a *app) reviewApproveCommand(f *reviewerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve RUN",
		Short: "Approve an answer as it is",
		Long: `Approve releases the answer to its asker. If its policy needs two reviewers, the first
approval waits for another reviewer's. Claim the answer and look at it first.`,
		Example: `  assay review approve RUN --as mara`,
	}
	a.decision(cmd, f, looking, func(ctx context.Context, e *engine.Engine, by assay.Principal, id string) (engine.ReviewSummary, error) {
		return e.Approve(ctx, by, id)
	})
	return cmd
}

func (a *app) reviewRejectCommand(f *reviewerFlags) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "reject RUN --reason TEXT",
		Short:   "Reject an answer",
		Long:    `Reject ends the run without its answer. The asker sees the reason.`,
		Example: `  assay review reject RUN --as mara --reason "the policy changes next week"`,
	}
	a.decision(cmd, f, looking, func(ctx context.Context, e *engine.Engine, by assay.Principal, id string) (engine.ReviewSummary, error) {
		if strings.TrimSpace(reason) == "" {
			return engine.ReviewSummary{}, usagef("--reason is missing; the asker sees it")
		}
		return e.Reject(ctx, by, id, reason)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, in `words` for the asker")
	return cmd
}

func (a *app) reviewEditCommand(f *reviewerFlags) *cobra.Command {
	var text, file string
	cmd := &cobra.Command{
		Use:   "edit RUN",
		Short: "Replace the text of an answer; it is verified again",
		Long: `Edit opens the draft in $VISUAL or $EDITOR, or takes the new text from --text or --file. Each
statement is verified by the evidence that it cites as [1]; one that is left as it was keeps
its citations. A statement that the documents do not support stays in the answer, marked as
yours with your name. An edit is your approval of the new text.`,
		Example: `  assay review edit RUN --as mara
  assay review edit RUN --as mara --text "Travel is approved by the head of the department. [1]"`,
	}
	a.decision(cmd, f, answering, func(ctx context.Context, e *engine.Engine, by assay.Principal, id string) (engine.ReviewSummary, error) {
		given, err := a.editedText(ctx, e, by, id, text, file)
		if err != nil {
			return engine.ReviewSummary{}, err
		}
		return e.Edit(ctx, by, id, given)
	})
	cmd.Flags().StringVar(&text, "text", "", "the new `text`")
	cmd.Flags().StringVar(&file, "file", "", "read the new text from this `file`; -: standard input")
	return cmd
}

// editedText returns the new text of an answer from a flag, a file or an editor.
func (a *app) editedText(ctx context.Context, e *engine.Engine, by assay.Principal, id, text, file string) (string, error) {
	switch {
	case text != "" && file != "":
		return "", usagef("--text and --file exclude each other")
	case text != "":
		return text, nil
	case file == "-":
		data, err := a.readStdin(ctx, engine.MaxReviewText+1)
		return string(data), err
	case file != "":
		data, err := os.ReadFile(file)
		return string(data), err
	}
	editor := strings.Fields(cmp.Or(a.getenv("VISUAL"), a.getenv("EDITOR")))
	if len(editor) == 0 {
		return "", hinted{usagef("$EDITOR is not set"), "give the text with --text or --file"}
	}
	view, err := e.Review(ctx, by, id)
	if err != nil {
		return "", err
	}
	if view.Draft == nil {
		return "", fmt.Errorf("run %s read documents that you may not see: %w", id, assay.ErrForbidden)
	}
	return edit(ctx, editor, view.Draft.Text)
}

// edit lets the user edit a text with an editor.
func edit(ctx context.Context, editor []string, text string) (string, error) {
	dir, err := os.MkdirTemp("", "assay-review-*") // only for the user
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	name := dir + "/answer.md"
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, editor[0], append(slices.Clone(editor[1:]), name)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the editor %s: %w", editor[0], err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(data)) == strings.TrimSpace(text) {
		return "", hinted{usagef("the text was not changed"), "to release it as it is: assay review approve"}
	}
	return string(data), nil
}

// decision completes a command that changes the state of one review, and prints the new state.
func (a *app) decision(cmd *cobra.Command, f *reviewerFlags, n needs, fn func(context.Context, *engine.Engine, assay.Principal, string) (engine.ReviewSummary, error)) {
	var asJSON bool
	cmd.Args = oneArgument("RUN")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		by := f.principal()
		return a.withReview(cmd.Context(), by, args[0], n, func(e *engine.Engine, id string) error {
			s, err := fn(cmd.Context(), e, by, id)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.stdout, s)
			}
			_, err = fmt.Fprintf(a.stdout, "%s %s\n", s.Run, reviewState(s))
			return err
		})
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the review as one JSON object")
}
