package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/move"
)

func (a *app) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Move tenants between stores",
		Long: `A store holds tenants: a data directory, or a database of PostgreSQL. In these commands a
store is named by its folder, or by its URL.`,
	}
	cmd.AddCommand(a.moveCommand())
	return cmd
}

// moveFlags are the flags of store move.
type moveFlags struct {
	all      bool
	searches int
	reason   string
	json     bool
}

func (a *app) moveCommand() *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "move FROM TO",
		Short: "Copy a tenant, or all, from one store to another",
		Long: `Move copies the tenant of --tenant with everything that it has: documents with all kept
versions, vectors, runs, journals, ledgers, settings and API keys, and the audit log byte
for byte, so that proofs and checkpoints made before verify afterwards. --all copies all
tenants and the log of the store itself into a new store.

A tenant that is in use is refused, and nothing can change it while it is copied. FROM is
never changed. To replace it, suspend the tenant first, resume it in TO, and delete it in
FROM once nobody needs it there.

The copy appears only when it is complete. Before, each table is compared with its
original by number and hash, the audit log is verified, and --searches searches must find
the same in both. What an interrupted move left, the next one removes.`,
		Example: `  assay store move ./.assay /srv/assay --tenant acme
  assay store move /srv/assay postgres://assay@db.example.com/assay --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return hinted{usagef("got %s, want two: FROM and TO", count(len(args), "argument", "arguments")), "see: " + cmd.CommandPath() + " --help"}
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.move(cmd.Context(), args[0], args[1], f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "copy all tenants, into a new store")
	flags.IntVar(&f.searches, "searches", 20, "compare the hits of searches for `n` passages; 0: build no index")
	flags.StringVar(&f.reason, "reason", "", "`why`, for the log of TO")
	flags.BoolVar(&f.json, "json", false, "print a JSON object")
	return cmd
}

func (a *app) move(ctx context.Context, from, to string, f moveFlags) (err error) {
	needsData := isURL(from) || isURL(to) // for the index of a database
	switch {
	case len(a.docs) > 0 || a.store != "" || a.data != "" && !needsData:
		return usagef("FROM and TO name the stores, not --data, --docs or --store")
	case f.all && a.tenant != "":
		return usagef("--all and --tenant exclude each other")
	case f.searches < 0:
		return usagef("--searches: want 0 or more")
	}
	tenant := ""
	if !f.all {
		if tenant = a.namedTenant(); tenant == "" {
			return hinted{usagef("no tenant is named"), "add --tenant NAME, or --all"}
		}
	}
	source, err := a.openNamed(ctx, from, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := a.openNamed(ctx, to, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	shown := a.progress()
	r, err := move.Move(ctx, source, target, move.Options{
		Tenant: tenant, Actor: assay.Local(), Reason: f.reason, Searches: f.searches,
		Progress: func(tenant, doing string, bytes int64) {
			shown.update("%s copied: %s", megabytes(bytes), strings.TrimSpace(tenant+" "+doing))
		},
	})
	shown.clear()
	if err != nil {
		return hintMove(err, from)
	}
	if f.json {
		return writeJSON(a.stdout, r)
	}
	return a.writeMove(r, to)
}

// hintMove adds a hint to an error of a move, to which the hints of its kind would not apply.
func hintMove(err error, from string) error {
	switch {
	case errors.Is(err, assay.ErrDamaged):
		return hinted{err, "see: assay audit verify" + flagFor("--data", from)}
	case errors.Is(err, assay.ErrNotFound):
		return hinted{err, "see: assay tenant list" + flagFor("--data", from)}
	case errors.Is(err, assay.ErrLocked), errors.Is(err, assay.ErrLeased):
		return hinted{err, "wait until it has finished, or stop it; assay tenant suspend keeps others out"}
	}
	return err
}

// flagFor returns a flag that names a data directory; of another store it is empty.
func flagFor(flag, name string) string {
	if isURL(name) {
		return ""
	}
	return " " + flag + " " + shellQuote(name)
}

func (a *app) writeMove(r move.Report, to string) error {
	for _, t := range r.Tenants {
		rows := int64(0)
		for _, table := range t.Tables {
			rows += table.Rows
		}
		fmt.Fprintf(a.stdout, "tenant %s (%s): %d rows in %s, log of %s with root %.16s, %s\n", t.Name, t.State, rows,
			count(len(t.Tables), "table", "tables"), count(int(t.Log.Size), "entry", "entries"), t.Log.Root, count(t.Searches, "equal search", "equal searches"))
	}
	_, err := fmt.Fprintf(a.stdout, "%s, %s moved to %s\n", count(len(r.Tenants), "tenant", "tenants"), megabytes(r.Bytes), storeName(to))
	return err
}

func isURL(name string) bool { return strings.Contains(name, "://") }

// storeName returns the name of a store without a password.
func storeName(name string) string {
	if !isURL(name) {
		return shortPath(name)
	}
	u, err := url.Parse(name)
	if err != nil {
		return "the database"
	}
	u.RawQuery = "" // it may hold one too
	return u.Redacted()
}

// openNamed opens the store in a folder or at a URL. Only create may create it.
func (a *app) openNamed(ctx context.Context, name string, create bool) (store.Store, error) {
	if isURL(name) {
		return a.openURL(ctx, name)
	}
	_, err := os.Stat(filepath.Join(name, "assay.json"))
	if !create && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no data directory: %w", shortPath(name), assay.ErrNotFound)
	}
	return localDir(name).openStore(ctx)
}

// openURL opens the database at a URL, with the password of the configuration if that names the same
// one.
func (a *app) openURL(ctx context.Context, address string) (store.Store, error) {
	dir, err := a.dataDir(ctx)
	if err != nil {
		return nil, err
	}
	remote, err := a.storeSettings()
	if err != nil || remote.URL != address {
		if remote, err = config.LoadStore(a.sources(), config.StoreFlags{Store: address}); err != nil {
			return nil, err
		}
		a.hide(remote.Secrets)
	}
	return remoteAt(dir, remote).openStore(ctx)
}
