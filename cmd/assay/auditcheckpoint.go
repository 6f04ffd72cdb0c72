package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/internal/durable"
)

// checkpointFlags are the flags of audit checkpoint.
type checkpointFlags struct {
	system, yes          bool
	key, oldKey, lost    string
	to, commands         []string
	witnesses, witnessID []string
}

func (a *app) auditCheckpointCommand() *cobra.Command {
	var f checkpointFlags
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Sign a checkpoint of the audit log and publish it",
		Long: `Checkpoint checks the log since the last checkpoint, signs a new one and publishes it: it
appends it to the files of --to, gives it to the commands of --command on standard input,
and has it cosigned by the witnesses of --witness. Without any of these it prints it. If
the log differs from itself or from the last checkpoint, nothing is signed.

To change the key, sign once with both: --key NEW --old-key OLD. If the old key is lost,
give the reason with --lost-key; readers then need the new verifier key from you.`,
		Example: `  assay audit checkpoint --key audit.key --to /mnt/other/checkpoints
  assay audit checkpoint --command 'ssh other "cat >> checkpoints"'
  assay audit checkpoint --witness https://witness.example/ --witness-key witness.pub
  assay audit checkpoint --key new.key --old-key audit.key --to checkpoints`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.checkpoint(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "private key: a `file`, or '!COMMAND' (default $ASSAY_AUDIT_KEY)")
	flags.StringVar(&f.oldKey, "old-key", "", "private `key` that --key takes the place of")
	flags.StringVar(&f.lost, "lost-key", "", "`reason` why the key before --key cannot sign; needs --yes")
	flags.StringArrayVar(&f.to, "to", nil, "append the checkpoint to this `file`; may be repeated")
	flags.StringArrayVar(&f.commands, "command", nil, "give the checkpoint to this `command`; may be repeated")
	flags.StringArrayVar(&f.witnesses, "witness", nil, "have it cosigned by the witness at this `URL`; may be repeated")
	flags.StringArrayVar(&f.witnessID, "witness-key", nil, "verifier `key` of each --witness, or a file with it, in their order")
	flags.BoolVar(&f.yes, "yes", false, "do it without asking")
	systemFlag(cmd, &f.system)
	return cmd
}

// signers returns the keys of the flags in an authority without a log.
func (a *app) signers(ctx context.Context, f checkpointFlags) (x audit.Authority, err error) {
	if f.lost != "" && !f.yes {
		return x, hinted{usagef("--lost-key breaks the chain of keys"), "every reader needs the new verifier key; if you mean it, add --yes"}
	}
	if f.lost != "" && f.oldKey != "" {
		return x, usagef("--old-key and --lost-key exclude each other")
	}
	x.Actor, x.Lost = assay.Local(), f.lost
	if x.Key, err = a.auditKey(ctx, f.key); err != nil || f.oldKey == "" {
		return x, err
	}
	old, err := a.auditKey(ctx, f.oldKey)
	x.Old = &old
	return x, err
}

func (a *app) checkpoint(ctx context.Context, f checkpointFlags) (err error) {
	witnesses, err := a.witnessesOf(f)
	if err != nil {
		return err
	}
	x, err := a.signers(ctx, f)
	if err != nil {
		return err
	}
	for _, path := range f.to {
		notes, err := readNotes([]string{path})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		x.Known = append(x.Known, notes...)
	}
	l, err := a.openLog(ctx, f.system)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	x.Audit, x.Registry = l.audit, l.registry
	signed, err := x.Checkpoint(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if len(witnesses) > 0 {
		signed, err = x.Cosign(ctx, signed, witnesses...)
		errs = append(errs, err)
	}
	for _, path := range f.to {
		errs = append(errs, appendNote(path, signed.Note))
	}
	for _, line := range f.commands {
		_, err := a.shell(ctx, line, signed.Note)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the checkpoint of %d entries is signed and kept, but was not published everywhere: %w", signed.Size, err)
	}
	if len(f.to)+len(f.commands)+len(f.witnesses) == 0 {
		_, err = a.stdout.Write(signed.Note)
		return err
	}
	fmt.Fprintf(a.stdout, "checkpoint of %s of %s\n", count(int(signed.Size), "entry", "entries"), signed.Origin)
	return nil
}

// witnessesOf returns the witnesses of the flags.
func (a *app) witnessesOf(f checkpointFlags) ([]*audit.Witness, error) {
	if len(f.witnesses) != len(f.witnessID) {
		return nil, usagef("%d times --witness, but %d times --witness-key", len(f.witnesses), len(f.witnessID))
	}
	if len(f.witnesses) == 0 {
		return nil, nil
	}
	set, err := a.settings()
	if err != nil {
		return nil, err
	}
	var all []*audit.Witness
	for i, prefix := range f.witnesses {
		keys, err := verifierKeys(f.witnessID[i : i+1])
		if err != nil {
			return nil, err
		}
		if len(keys) != 1 {
			return nil, usagef("--witness-key %s: want one key, got %d", f.witnessID[i], len(keys))
		}
		w, err := audit.NewWitness(prefix, keys[0], set.Config().WitnessClient())
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// appendNote appends a signed note to a file, with an empty line after it, unless the file has it
// already. Several processes may do so at once.
func appendNote(path string, note []byte) (err error) {
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(f)
	if err != nil || bytes.Contains(data, note) {
		return err
	}
	text := string(note) + "\n"
	if len(data) > 0 && !strings.HasSuffix(string(data), "\n\n") {
		text = "\n" + text
	}
	if _, err := io.WriteString(f, text); err != nil {
		return err
	}
	return f.Sync()
}

// writePrivate writes a file that only its owner may read, as a whole.
func writePrivate(path string, write func(io.Writer) error) error {
	return durable.Write(path, 0o600, write)
}
