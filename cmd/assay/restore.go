package main

import (
	"context"
	"fmt"
	"os"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/backup"
)

// restoreFlags are the flags of restore.
type restoreFlags struct {
	identities []string
	verify     bool
	json       bool
}

func (a *app) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Make a backup a data directory again",
		Long: `Restore makes the backup in the folder DIR the data directory of --data, which must not
exist or be empty. It verifies every checksum before it writes anything, and every page
of the databases before the data directory appears. Only the owner can read the files.

The audit logs get an entry about the restore. Whatever happened after the backup is
not in the data: assay audit verify reports that as a rollback if a checkpoint was
published since.

--verify only compares the checksums, which needs no identity.`,
		Example: `  assay restore /mnt/backups/2026-11-22 --data /srv/assay
  assay restore /mnt/backups/today --data /srv/assay --identity key.txt
  assay restore /mnt/backups/today --verify`,
		Args: oneArgument("the folder of the backup"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.identities, "identity", nil, "decrypt with the age identities in this `file`; may be repeated")
	flags.BoolVar(&f.verify, "verify", false, "compare the checksums and restore nothing")
	flags.BoolVar(&f.json, "json", false, "print the manifest")
	return cmd
}

func (a *app) restore(ctx context.Context, from string, f restoreFlags) error {
	if len(a.docs) > 0 {
		return usagef("restore needs --data, not --docs")
	}
	identities, err := readIdentities(f.identities)
	if err != nil {
		return err
	}
	shown := a.progress()
	done, verb := "verified", "verified"
	var m backup.Manifest
	to := ""
	if f.verify {
		m, err = backup.Verify(ctx, from, showBytes(shown, done))
	} else {
		at, locationErr := a.location(ctx)
		if locationErr == nil {
			locationErr = at.needsFiles("restore", "restore the database with pg_restore, or name a data directory with --store local --data DIR")
		}
		if locationErr != nil {
			return locationErr
		}
		to = at.dir
		verb = "restored to " + shortPath(to)
		m, err = backup.Restore(ctx, from, to, backup.RestoreOptions{
			Identities: identities, Actor: assay.Local(), Progress: showBytes(shown, "done"),
		})
	}
	shown.clear()
	if err != nil {
		return hintBytes(err, "use another backup")
	}
	if f.json {
		return writeJSON(a.stdout, m)
	}
	fmt.Fprintf(a.stdout, "%s, %s, %s %s\n", count(len(m.Tenants), "tenant", "tenants"), count(len(m.Files), "file", "files"), megabytes(m.Bytes()), verb)
	return nil
}

// readIdentities reads the age identities in files.
func readIdentities(files []string) ([]age.Identity, error) {
	var all []age.Identity
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, usagef("--identity: %v", err)
		}
		ids, err := age.ParseIdentities(f)
		f.Close()
		if err != nil {
			return nil, usagef("--identity %s: %v", file, err)
		}
		all = append(all, ids...)
	}
	return all, nil
}
