package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/internal/durable"
)

// proveFlags are the flags of audit prove.
type proveFlags struct {
	checkpoints, keys []string
	out               string
}

func (a *app) auditProveCommand() *cobra.Command {
	var f proveFlags
	cmd := &cobra.Command{
		Use:   "prove RUN",
		Short: "Write a proof of one run that anyone can check",
		Long: `Prove writes one file with everything that the audit log has about a run: the question,
the request, all steps with the evidence that they read, the answer, and the acts about
the run, such as a reviewer's decision. Each entry is proved to be under a signed
checkpoint. Who has the verifier key can check it without the data.

The checkpoint is the newest of the published ones, or of the files of --checkpoint, and
must be newer than the run. The proof is as confidential as the documents that the run
read. Erased parts are missing from it, and it still holds for the rest.`,
		Example: `  assay audit prove last > proof.json
  assay audit prove 7nqy2ilgu34wcppt --checkpoint /mnt/other/checkpoints --out proof.json`,
		Args:              oneArgument("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.prove(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.checkpoints, "checkpoint", nil, "use a checkpoint in this `file` too; may be repeated")
	flags.StringArrayVar(&f.keys, "key", nil, "verifier `key` of the checkpoint, or a file with it (default: the log's)")
	flags.StringVar(&f.out, "out", "", "write to this `file` (default: standard output)")
	return cmd
}

func (a *app) prove(ctx context.Context, name string, f proveFlags) (err error) {
	l, err := a.openLog(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	signed, err := newestCheckpoint(ctx, l, f)
	if err != nil {
		return err
	}
	e, err := a.openExisting(ctx, looking)
	if err != nil {
		return err
	}
	defer e.Close()
	id, err := findRunOf(ctx, e, name)
	if err != nil {
		id = name // it may have been deleted
	}
	proof, proveErr := e.Prove(ctx, assay.Local(), id, signed)
	if proveErr != nil {
		return cmp.Or(err, proveErr)
	}
	data, err := proof.Bytes()
	if err != nil {
		return err
	}
	if f.out == "" {
		_, err = a.stdout.Write(data)
		return err
	}
	return durable.Write(f.out, 0o600, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// newestCheckpoint returns the largest checkpoint that a known key signed.
func newestCheckpoint(ctx context.Context, l *openLog, f proveFlags) (audit.Signed, error) {
	var newest audit.Signed
	notes, err := audit.Published(ctx, l.registry)
	if err != nil {
		return newest, err
	}
	more, err := readNotes(f.checkpoints)
	if err != nil {
		return newest, err
	}
	notes = append(notes, more...)
	keys, err := verifierKeys(f.keys)
	if err == nil && len(keys) == 0 {
		var current string
		if current, err = audit.CurrentKey(ctx, l.registry); current != "" {
			keys = []string{current}
		}
	}
	if err != nil {
		return newest, err
	}
	if len(notes) == 0 || len(keys) == 0 {
		return newest, hinted{fmt.Errorf("no checkpoint was published yet: %w", assay.ErrNotFound), "run: assay audit checkpoint --key FILE"}
	}
	v, err := audit.NewVerifier(keys...)
	if err != nil {
		return newest, err
	}
	return v.Newest(notes)
}

func (a *app) auditCheckCommand() *cobra.Command {
	var keys []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check PROOF --key KEY",
		Short: "Check a proof of one run, without its data",
		Long: `Check verifies a proof of assay audit prove: the signature of the checkpoint, that each
entry is under it, the hashes of all inputs, outputs and long texts, that no step is
missing, that question and answer are those that the log recorded, and that the quote of
each citation is in text that a recorded step returned. Then it prints what was proved.

It needs no data directory and no network, only the verifier key, which comes from
whoever signs the checkpoints and not from the proof. It names the first thing that does
not hold and exits with 8.`,
		Example: `  assay audit check proof.json --key audit.pub
  assay audit check - --key assay-audit/…+1c2d3e4f+AX… < proof.json`,
		Args: oneArgument("the file of the proof, or -"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.checkProof(cmd.Context(), args[0], keys, asJSON)
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "verifier `key` that you trust, or a file with it; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was proved as a JSON object")
	return cmd
}

func (a *app) checkProof(ctx context.Context, file string, args []string, asJSON bool) error {
	keys, err := verifierKeys(args)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return usagef("--key is missing: the verifier key that you trust")
	}
	v, err := audit.NewVerifier(keys...)
	if err != nil {
		return err
	}
	data, err := a.readProof(ctx, file)
	if err != nil {
		return err
	}
	account, err := audit.CheckProof(data, v)
	if err != nil {
		return hintBytes(err, "the proof proves nothing; ask for another one")
	}
	if asJSON {
		return writeJSON(a.stdout, shownProof(account))
	}
	return writeAccount(a.stdout, account, a.width)
}

// readProof reads a file, or standard input for "-".
func (a *app) readProof(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return a.readStdin(ctx, audit.MaxProof+1)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("%v", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, audit.MaxProof+1))
	return data, errors.Join(err, f.Close())
}

// provedRun is the JSON of audit check.
type (
	provedStep struct {
		Sequence int64           `json:"sequence"`
		Path     string          `json:"path"`
		Kind     assay.StepKind  `json:"kind"`
		Model    string          `json:"model,omitempty"`
		Started  time.Time       `json:"started"`
		Elapsed  time.Duration   `json:"elapsed_ns"`
		Usage    assay.Usage     `json:"usage"`
		Input    json.RawMessage `json:"input,omitempty"`
		Output   json.RawMessage `json:"output,omitempty"`
	}
	provedRun struct {
		audit.Account
		Steps []provedStep `json:"steps"`
	}
)

func shownProof(account audit.Account) provedRun {
	shown := provedRun{Account: account, Steps: []provedStep{}}
	for _, r := range account.Records {
		shown.Steps = append(shown.Steps, provedStep{r.Sequence, r.Path, r.Kind, r.Model, r.Started, r.Elapsed, r.Usage, r.Input, r.Output})
	}
	return shown
}

// writeAccount prints what a proof shows for people.
func writeAccount(w io.Writer, p audit.Account, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Run       %s\n", p.Run)
	fmt.Fprintf(&b, "Log       %s, checkpoint of %s\n", p.Origin, count(int(p.Size), "entry", "entries"))
	fmt.Fprintf(&b, "Signed    by %s\n", strings.Join(p.Keys, " and "))
	if p.Principal != nil {
		fmt.Fprintf(&b, "Asked by  %s\n", p.Principal.User)
	}
	fmt.Fprintf(&b, "State     %s\n", cmp.Or(string(p.State), "not known"))
	for _, part := range []struct {
		there bool
		text  string
	}{
		{!p.Stored, "The run was deleted."},
		{p.Erased, "Parts were erased; the acts say when and why."},
		{p.Withheld, "Inputs, outputs and the answer were withheld by whoever made the proof."},
	} {
		if part.there {
			b.WriteString(wrap(part.text, "          ", width))
		}
	}
	if p.Question != nil {
		b.WriteString("\nQuestion\n" + wrap(*p.Question, "  ", width))
	}
	if p.Answer != nil {
		fmt.Fprintf(&b, "\nAnswer (%s)\n%s", p.Answer.Status, wrap(p.Answer.Text, "  ", width))
	}
	writeProven(&b, p.Evidence, width)
	b.WriteString("\nActs (times in UTC)\n")
	for _, act := range p.Acts {
		fmt.Fprintf(&b, "%6d  %s  %s%s\n", act.Sequence, act.Time.UTC().Format(time.DateTime), act.Kind, byWhom(act.Actor, act.Reason))
	}
	b.WriteString("\nSteps\n")
	for _, r := range p.Records {
		fmt.Fprintf(&b, "%6d  %s  %-9s %s\n", r.Sequence, r.Started.UTC().Format(time.DateTime), r.Kind, r.Path)
	}
	entries := len(p.Acts) + len(p.Records)
	fmt.Fprintf(&b, "\nThe proof holds: %s of the log, %s.\n", count(entries, "entry", "entries"), count(len(p.Evidence), "citation", "citations"))
	_, err := io.WriteString(w, b.String())
	return err
}

// writeProven prints the citations with the steps that read them.
func writeProven(b *strings.Builder, evidence []audit.ProvenCitation, width int) {
	if len(evidence) == 0 {
		return
	}
	b.WriteString("\nEvidence\n")
	for _, e := range evidence {
		c := e.Citation
		fmt.Fprintf(b, "  [%d] %s, read by step %s, entry %d\n", c.Number, shortPath(c.URI), e.Step, e.Sequence)
		if c.Origin == assay.FromDocuments {
			fmt.Fprintf(b, "      document %s, version %s, bytes %d to %d\n", c.Document, c.Version, c.Start, c.End)
		}
		b.WriteString(wrap(c.Quote, "      ", width))
	}
}

func byWhom(actor assay.Principal, reason string) string {
	text := ""
	if actor.User != "" {
		text = " by " + actor.User
	}
	if reason != "" {
		text += ": " + oneLine(reason, 60)
	}
	return text
}
