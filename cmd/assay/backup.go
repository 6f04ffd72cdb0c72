package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/backup"
	"github.com/assay-rag/assay/store/sqlite"
)

// backupFlags are the flags of backup.
type backupFlags struct {
	tenant     string
	recipients []string
	json       bool
}

func (a *app) backupCommand() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the data directory while it is in use",
		Long: `Backup copies the data directory to the folder DIR, which must not exist or be empty.
Other processes may ask and ingest meanwhile. DIR appears only when the copy is complete,
so a backup that was interrupted leaves none.

DIR holds the databases and settings of all tenants, or of the one that --tenant or
$ASSAY_TENANT names, and a manifest with a checksum for each file. The index is left out,
because it is rebuilt. Keys that sign checkpoints, secrets and age identities are not in a
data directory and so not in the backup: keep them elsewhere.

With --recipient the files are encrypted with age. The manifest stays readable: it names
the tenants, the files and their sizes.`,
		Example: `  assay backup /mnt/backups/2026-11-22
  assay backup /mnt/backups/today --recipient age1…
  assay restore /mnt/backups/2026-11-22 --data /srv/assay`,
		Args: oneArgument("the folder of the backup"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "back up this `tenant` alone, without the store's API keys")
	flags.StringArrayVar(&f.recipients, "recipient", nil, "encrypt to this age `recipient`; may be repeated")
	flags.BoolVar(&f.json, "json", false, "print the manifest")
	return cmd
}

func (a *app) backup(ctx context.Context, to string, f backupFlags) error {
	var recipients []age.Recipient
	for _, text := range f.recipients {
		parsed, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return usagef("--recipient: want the public key of an age recipient, age1…") // the text may be a private key
		}
		recipients = append(recipients, parsed...)
	}
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	if err := at.needsFiles("backup", "copy the database with pg_dump, or with pg_basebackup and an archive of its log (docs/scale.md)"); err != nil {
		return err
	}
	if at.missing() {
		return a.noData(at)
	}
	s, err := sqlite.Open(ctx, at.dir)
	if err != nil {
		return err
	}
	defer s.Close()
	f.tenant = cmp.Or(f.tenant, a.namedTenant())
	shown := a.progress()
	m, err := backup.Make(ctx, s, to, backup.Options{
		Tenant: f.tenant, Recipients: recipients, Actor: assay.Local(), Progress: showBytes(shown, "copied"),
	})
	shown.clear()
	if f.tenant != "" && errors.Is(err, assay.ErrNotFound) {
		return a.hintNamedTenant(err, f.tenant)
	}
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(a.stdout, m)
	}
	fmt.Fprintf(a.stdout, "%s, %s, %s in %s\n", count(len(m.Tenants), "tenant", "tenants"), count(len(m.Files), "file", "files"), megabytes(m.Bytes()), shortPath(to))
	return nil
}

// showBytes returns a function that shows how many bytes are done.
func showBytes(shown *progress, done string) backup.Progress {
	return func(file string, n, total int64) {
		if total > 0 {
			shown.update("%s of %s %s: %s", megabytes(n), megabytes(total), done, file)
			return
		}
		shown.update("%s %s: %s", megabytes(n), done, file)
	}
}
