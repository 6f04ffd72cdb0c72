package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/store"
)

// auditKeyVariable is the environment variable with the private key that signs checkpoints.
const auditKeyVariable = "ASSAY_AUDIT_KEY"

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Publish and check the audit log",
		Long: `Every step of every run, every change of documents and every act of an administrator is an
entry of the audit log, which only grows. A checkpoint is a signed hash of all entries up to
a size. With a checkpoint that is kept elsewhere, verify finds everything that was altered,
removed, inserted or restored since then.

The key that signs lies apart from the data: in a file, in $ASSAY_AUDIT_KEY, or behind a
command, as --key '!COMMAND'.`,
		Example: `  assay audit key new audit.key
  assay audit checkpoint --key audit.key --to /mnt/other/checkpoints
  assay audit verify --checkpoint /mnt/other/checkpoints --key 'assay-audit/…'
  assay audit export log.jsonl && assay audit verify --export log.jsonl --key 'assay-audit/…'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.auditKeyCommand(), a.auditCheckpointCommand(), a.auditVerifyCommand(), a.auditExportCommand(), a.auditLogCommand(),
		a.auditProveCommand(), a.auditCheckCommand(),
	)
	return cmd
}

// An openLog is the audit log of a tenant or, without a tenant, of the store.
type openLog struct {
	store    store.Store
	tenant   store.Tenant // nil: the log is the store's
	audit    store.Audit
	registry store.Registry
	origin   string
	close    func() error
}

// openLog opens the audit log of the data directory, which must exist. It changes nothing.
func (a *app) openLog(ctx context.Context, system bool) (*openLog, error) {
	at, err := a.location(ctx)
	if err != nil {
		return nil, err
	}
	if at.missing() {
		return nil, a.noData(at)
	}
	tenant, err := a.tenantName()
	if err != nil {
		return nil, err
	}
	s, err := at.openStore(ctx)
	if err != nil {
		return nil, err
	}
	l, err := openLogOf(ctx, s, system, tenant)
	if err != nil {
		if !system {
			err = a.hintTenant(err, tenant)
		}
		return nil, errors.Join(err, s.Close())
	}
	if l.origin, err = audit.Origin(ctx, l.audit); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// openLogOf opens the audit log of a tenant, which may be suspended, or that of the store.
func openLogOf(ctx context.Context, s store.Store, system bool, tenant string) (*openLog, error) {
	if system {
		sys, err := s.System(ctx)
		if err != nil {
			return nil, err
		}
		return &openLog{
			store: s, audit: sys.Audit(), registry: sys.Registry(),
			close: func() error { return errors.Join(sys.Close(), s.Close()) },
		}, nil
	}
	t, err := s.InspectTenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return &openLog{
		store: s, tenant: t, audit: t.Audit(), registry: t.Registry(),
		close: func() error { return errors.Join(t.Close(), s.Close()) },
	}, nil
}

// systemFlag adds --system to a command.
func systemFlag(cmd *cobra.Command, system *bool) {
	cmd.Flags().BoolVar(system, "system", false, "use the log of the store (tenants, keys) instead of the tenant's")
}

func (a *app) auditKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make the key that signs checkpoints",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.auditKeyNewCommand(), a.auditKeyShowCommand())
	return cmd
}

func (a *app) auditKeyNewCommand() *cobra.Command {
	var system bool
	cmd := &cobra.Command{
		Use:   "new FILE",
		Short: "Write a new private key to a file and print its verifier key",
		Long: `New writes a private Ed25519 key to FILE, which must not exist and which only its owner may
read, and prints the verifier key for the audit log of this data directory. The verifier
key is public: give it to everybody who is to check checkpoints. One private key may sign
several logs; each log has its own verifier key, which key show prints.

Keep FILE on another machine or in a secret store, not in the data directory: whoever has
the data and the key can write a new history.`,
		Example: `  assay audit key new audit.key
  assay audit key show --key audit.key --system`,
		Args: oneArgument("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.newAuditKey(cmd.Context(), args[0], system) },
	}
	systemFlag(cmd, &system)
	return cmd
}

func (a *app) newAuditKey(ctx context.Context, path string, system bool) (err error) {
	l, err := a.openLog(ctx, system)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	k, err := audit.NewKey()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hinted{usagef("%s exists and is not replaced", path), "name another file"}
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, k.Secret())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	fmt.Fprintln(a.stdout, k.Public(l.origin))
	return nil
}

func (a *app) auditKeyShowCommand() *cobra.Command {
	var system bool
	var key string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the verifier key of a private key for a log",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			l, err := a.openLog(cmd.Context(), system)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, l.close()) }()
			k, err := a.auditKey(cmd.Context(), key)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, k.Public(l.origin))
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "private key: a `file`, or '!COMMAND' (default $ASSAY_AUDIT_KEY)")
	systemFlag(cmd, &system)
	return cmd
}

// auditKey reads a private key from a file, from the first line that a command prints, or from the
// environment.
func (a *app) auditKey(ctx context.Context, from string) (audit.Key, error) {
	var text string
	var err error
	switch command, isCommand := strings.CutPrefix(cmp.Or(from, a.getenv(auditKeyVariable)), "!"); {
	case isCommand:
		var printed secret.Secret
		printed, err = secret.Command(ctx, command)
		text = printed.Reveal()
	case from != "":
		var data []byte
		data, err = os.ReadFile(from)
		text = string(data)
	case command == "":
		return audit.Key{}, hinted{usagef("no key"), "name its file with --key, or set " + auditKeyVariable + "; assay audit key new makes one"}
	default:
		text = command
	}
	if err != nil {
		return audit.Key{}, fmt.Errorf("read the audit key: %w", err)
	}
	return audit.ParseKey(text)
}

// shell runs a command line of the user's with the given standard input and returns its standard
// output.
func (a *app) shell(ctx context.Context, line string, stdin []byte) ([]byte, error) {
	name, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		name, flag = "cmd", "/C"
	}
	cmd := exec.CommandContext(ctx, name, flag, line)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), a.stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	return out, nil
}

// auditLogFlags are the flags of audit log.
type auditLogFlags struct {
	system, json bool
	kind, since  string
}

func (a *app) auditLogCommand() *cobra.Command {
	var f auditLogFlags
	cmd := &cobra.Command{
		Use:   "log",
		Short: "List the entries of the audit log",
		Long: `Log lists the entries of the audit log, oldest first: number, time, what was done to what, by
whom and why. A payload that was erased is marked. It checks nothing; verify does.`,
		Example: `  assay audit log --since 2026-10-01
  assay audit log --kind run.deleted --json
  assay audit log --system`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listAuditLog(cmd.Context(), f) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object per line")
	cmd.Flags().StringVar(&f.kind, "kind", "", "list only acts of this `kind`, like run.deleted, or \"record\"")
	cmd.Flags().StringVar(&f.since, "since", "", "list only entries since this `time`, 2006-01-02 or RFC 3339")
	systemFlag(cmd, &f.system)
	return cmd
}

// A listedEntry is the JSON of an entry in a list.
type listedEntry struct {
	Sequence int64            `json:"sequence"`
	Time     time.Time        `json:"time"`
	Kind     string           `json:"kind"` // of the act, or "record"
	Subject  string           `json:"subject,omitempty"`
	Run      string           `json:"run,omitempty"`
	Step     string           `json:"step,omitempty"`
	Actor    *assay.Principal `json:"actor,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Detail   json.RawMessage  `json:"detail,omitempty"`
	Erased   bool             `json:"erased,omitempty"`
}

func listEntry(e store.LogEntry) (listedEntry, error) {
	if !journal.IsAct(e.Header) {
		h, err := journal.OpenHeader(e.Header, e.Leaf)
		return listedEntry{Sequence: e.Sequence, Time: h.Time, Kind: "record", Run: h.Run, Step: h.Path, Erased: e.Payload == nil}, err
	}
	act, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
	l := listedEntry{Sequence: e.Sequence, Time: act.Time, Kind: act.Kind, Subject: act.Subject, Reason: act.Reason, Detail: act.Detail, Erased: e.Payload == nil}
	if act.Actor.User != "" {
		l.Actor = &act.Actor
	}
	return l, err
}

func (a *app) listAuditLog(ctx context.Context, f auditLogFlags) (err error) {
	var since time.Time
	if f.since != "" {
		if since, err = parseDay(f.since); err != nil {
			return err
		}
	}
	l, err := a.openLog(ctx, f.system)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	size, err := l.audit.Size(ctx)
	if err != nil {
		return err
	}
	for e, err := range l.audit.Entries(ctx, 0, size) {
		if err != nil {
			return err
		}
		line, err := listEntry(e)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.Sequence, err)
		}
		if f.kind != "" && line.Kind != f.kind || line.Time.Before(since) {
			continue
		}
		if err := a.writeEntry(line, f.json); err != nil {
			return err
		}
	}
	return nil
}

// parseDay reads a day in local time, or a time in RFC 3339.
func parseDay(text string) (time.Time, error) {
	if t, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usagef("time %q: want 2006-01-02 or 2006-01-02T15:04:05Z", text)
	}
	return t, nil
}

func (a *app) writeEntry(e listedEntry, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(e)
	}
	about := strings.TrimSpace(e.Subject + " " + e.Run + " " + e.Step)
	if e.Actor != nil {
		about += "  by " + e.Actor.User
	}
	if e.Reason != "" {
		about += "  (" + oneLine(e.Reason, 60) + ")"
	}
	if e.Erased {
		about += "  erased"
	}
	_, err := fmt.Fprintf(a.stdout, "%6d  %s  %-20s  %s\n", e.Sequence, e.Time.Local().Format(time.DateTime), e.Kind, plainLine(about))
	return err
}

// auditExportFlags are the flags of audit export.
type auditExportFlags struct{ system, noPayloads bool }

func (a *app) auditExportCommand() *cobra.Command {
	var f auditExportFlags
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the audit log to a file that verify reads anywhere",
		Long: `Export writes the whole audit log with its checkpoints and public keys to FILE, or into the
folder FILE as log.jsonl; - is standard output. verify --export reads it on any machine.

Payloads hold who did what and why, and the inputs and outputs of steps; strings of 256
bytes or more are included as their SHA-256 only. Without payloads the file names no person.`,
		Example: `  assay audit export log.jsonl
  assay audit export --no-payloads - | gzip > log.jsonl.gz`,
		Args: oneArgument("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.exportAuditLog(cmd.Context(), args[0], f) },
	}
	cmd.Flags().BoolVar(&f.noPayloads, "no-payloads", false, "leave out the payloads, keep the headers with their hashes")
	systemFlag(cmd, &f.system)
	return cmd
}

func (a *app) exportAuditLog(ctx context.Context, path string, f auditExportFlags) (err error) {
	l, err := a.openLog(ctx, f.system)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	notes, err := audit.Published(ctx, l.registry)
	if err != nil {
		return err
	}
	keys, err := audit.AnnouncedKeys(ctx, l.audit)
	if err != nil {
		return err
	}
	size, err := l.audit.Size(ctx)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error {
		return audit.WriteExport(ctx, w, l.audit, size, notes, keys, !f.noPayloads)
	}
	if path == "-" {
		return write(a.stdout.w)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "log.jsonl")
	}
	if err := isExport(path); err != nil {
		return err
	}
	if err := writePrivate(path, write); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s: %s, %s of %s\n", path, count(int(size), "entry", "entries"), count(len(notes), "checkpoint", "checkpoints"), l.origin)
	return nil
}

// isExport refuses a file with anything but an exported log, such as a key: an export replaces it.
func isExport(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // there is none, or writing it says why
	}
	defer f.Close()
	want := []byte(`{"assay_audit_export":`)
	head := make([]byte, len(want))
	if n, _ := io.ReadFull(f, head); n == 0 || bytes.Equal(head, want) {
		return nil
	}
	return usagef("%s exists and is no exported log; name another file", path)
}

// auditVerifyFlags are the flags of audit verify.
type auditVerifyFlags struct {
	system, json bool
	checkpoints  []string
	keys         []string
	export       string
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var f auditVerifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the audit log, and the data against it",
		Long: `Verify checks every entry of the audit log, that the log continues every checkpoint, and that
the checkpoints are signed. On a data directory it also compares runs, answers, documents,
access lists, the registry and everything else that an answer or a right rests on with the
log. With --export it reads an exported log and needs no data directory.

Checkpoints are read from the files of --checkpoint and from the log's own store. Those of
the store prove nothing against somebody who could write there and removed the last ones:
keep a copy elsewhere. Keys are verifier keys or files with one a line. A key that a log
announces under a checkpoint of a trusted key is trusted for later checkpoints.

It exits with 8 if anything differs.`,
		Example: `  assay audit verify --checkpoint /mnt/other/checkpoints --key audit.pub
  assay audit verify --export log.jsonl --key audit.pub --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verifyAudit(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.checkpoints, "checkpoint", nil, "`file` with checkpoints; may be repeated")
	flags.StringArrayVar(&f.keys, "key", nil, "verifier `key`, or a file with some; may be repeated")
	flags.StringVar(&f.export, "export", "", "check this exported log `file`")
	flags.BoolVar(&f.json, "json", false, "print a JSON object")
	systemFlag(cmd, &f.system)
	return cmd
}

// verifierKeys reads the values of --key.
func verifierKeys(values []string) ([]string, error) {
	var keys []string
	for _, v := range values {
		if strings.Count(v, "+") >= 2 && !strings.ContainsAny(v, "\n") {
			if _, err := os.Stat(v); errors.Is(err, fs.ErrNotExist) {
				keys = append(keys, v)
				continue
			}
		}
		data, err := os.ReadFile(v)
		if err != nil {
			return nil, fmt.Errorf("verifier key: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				keys = append(keys, line)
			}
		}
	}
	return keys, nil
}

// readNotes reads files of checkpoints.
func readNotes(paths []string) ([][]byte, error) {
	var notes [][]byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		some, err := audit.SplitNotes(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(some) == 0 {
			return nil, fmt.Errorf("%s: %w: it has no checkpoint", path, assay.ErrInvalid)
		}
		notes = append(notes, some...)
	}
	return notes, nil
}

func (a *app) verifyAudit(ctx context.Context, f auditVerifyFlags) error {
	keys, err := verifierKeys(f.keys)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return hinted{usagef("no verifier key"), "give the key that assay audit key new printed with --key"}
	}
	notes, err := readNotes(f.checkpoints)
	if err != nil {
		return err
	}
	report, err := a.auditReport(ctx, f, notes, keys)
	if err != nil {
		return err
	}
	if len(report.Checkpoints) == 0 {
		report.Findings = append(report.Findings, store.Finding{Object: "log", Problem: "no checkpoint of a trusted key covers any entry"})
	}
	if f.json {
		err = writeJSON(a.stdout, report)
	} else {
		err = writeReportOf(a.stdout, report, len(notes) > 0)
	}
	if err == nil && len(report.Findings) > 0 {
		return end(exitDamaged)
	}
	return err
}

// auditReport verifies an exported log or that of the data directory.
func (a *app) auditReport(ctx context.Context, f auditVerifyFlags, notes [][]byte, keys []string) (r audit.Report, err error) {
	if f.export != "" {
		x, err := audit.OpenExport(f.export)
		if err != nil {
			return r, err
		}
		return x.Verify(ctx, notes, keys)
	}
	l, err := a.openLog(ctx, f.system)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	kept, err := audit.Published(ctx, l.registry)
	if err != nil {
		return r, err
	}
	return audit.VerifyStore(ctx, l.audit, slices.Concat(kept, notes), keys)
}

func writeReportOf(w io.Writer, r audit.Report, elsewhere bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "log          %s\n", r.Origin)
	fmt.Fprintf(&b, "entries      %d", r.Size)
	if r.Erased > 0 {
		fmt.Fprintf(&b, ", of which %d erased", r.Erased)
	}
	fmt.Fprintf(&b, "\ncheckpoints  %d that match", len(r.Checkpoints))
	if n := len(r.Checkpoints); n > 0 {
		fmt.Fprintf(&b, "; the last covers %d, so %d are not covered yet", r.Covered(), r.Size-r.Covered())
	}
	b.WriteByte('\n')
	if !elsewhere {
		b.WriteString("note         no checkpoint that was kept elsewhere was given; see --checkpoint\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "DIFFERS      %s\n", plainLine(f.String()))
	}
	if len(r.Findings) == 0 {
		b.WriteString("nothing differs\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
