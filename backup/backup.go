// Package backup copies a data directory while other processes use it, and restores the copy.
//
// A backup is a folder:
//
//	manifest.json                what the backup holds, with a checksum for each file and for itself
//	system.db                    the store's own registry and log
//	tenants/NAME/content.db      documents, versions, chunks, vectors
//	tenants/NAME/runs.db         runs, journals, the audit log and the registry
//	tenants/NAME/SETTING.json    a setting
//
// An encrypted one has ".age" after the name of each file but the manifest. There is no index, which
// is derived from the content, and no lock and no lease. Keys that sign, secrets and identities that
// decrypt are never in a data directory, so they are in no backup.
//
// The folder has its name only once it is complete and durable.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// Progress is called now and then with the number of bytes done and, if it is known, of all bytes;
// 0: not known. It may be called from another goroutine.
type Progress func(file string, done, total int64)

// Options configure Make.
type Options struct {
	Tenant     string          // backs up this tenant alone, without system.db; empty: everything
	Recipients []age.Recipient // encrypts the files to them; nil: no encryption
	Actor      assay.Principal // of the act "backup.made" in the store's log
	Now        func() time.Time
	Progress   Progress // may be nil
}

// Make backs up the data directory of s to the folder dir, which must not exist or be empty. Other
// processes may ask and ingest meanwhile; see sqlite.Store.CopyTenant. The store's log gets an act
// "backup.made", unless the store is read-only. An encrypted backup needs room for the largest
// database in the data directory, so that no plain text reaches the place of the backup.
//
// The error is assay.ErrInvalid if dir holds something, assay.ErrNotFound if the tenant does not
// exist, and assay.ErrFull if the disk is full. If there is an error, or the process is killed, dir
// does not exist afterwards.
func Make(ctx context.Context, s *sqlite.Store, dir string, o Options) (Manifest, error) {
	m, err := makeBackup(ctx, s, dir, o)
	if err != nil {
		return Manifest{}, fmt.Errorf("back up %s to %s: %w", s.Dir(), dir, kind(err))
	}
	return m, nil
}

func makeBackup(ctx context.Context, s *sqlite.Store, dir string, o Options) (m Manifest, err error) {
	if err := checkTarget(s, dir); err != nil {
		return Manifest{}, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return Manifest{}, err
	}
	target, err := newStaging(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, target.remove()) }()
	c := &copier{store: s, dir: target.path, plain: target.path, recipients: o.Recipients, progress: o.Progress}
	if len(o.Recipients) > 0 {
		plain, err := newStaging(s.Dir(), "new-backup")
		if err != nil {
			return Manifest{}, err
		}
		defer func() { err = errors.Join(err, plain.remove()) }()
		c.plain = plain.path
	}
	c.manifest = Manifest{Program: program, Format: format, Created: o.Now().UTC(), Encrypted: len(o.Recipients) > 0}
	if o.Tenant != "" {
		err = c.tenant(ctx, o.Tenant)
	} else {
		err = c.everything(ctx)
	}
	if err != nil {
		return Manifest{}, err
	}
	m, data, err := c.manifest.sealed()
	if err != nil {
		return Manifest{}, err
	}
	err = writeFile(filepath.Join(target.path, manifestName), func(w io.Writer) error { _, err := w.Write(data); return err })
	if err == nil {
		err = syncTree(target.path)
	}
	if err == nil {
		err = recordMade(ctx, s, m, o.Actor)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Manifest{}, err
	}
	return m, target.commit(dir)
}

// checkTarget checks that a backup can be made at dir.
func checkTarget(s *sqlite.Store, dir string) error {
	if dir == "" {
		return fmt.Errorf("no folder is named: %w", assay.ErrInvalid)
	}
	if err := checkAbsent(dir); err != nil {
		return err
	}
	data, err := filepath.Abs(s.Dir())
	if err != nil {
		return err
	}
	to, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(data, to); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("it is inside the data directory: %w", assay.ErrInvalid)
	}
	return nil
}

// recordMade appends the act of a backup to the store's log.
func recordMade(ctx context.Context, s *sqlite.Store, m Manifest, actor assay.Principal) error {
	detail, err := json.Marshal(map[string]any{"checksum": m.Checksum, "tenants": len(m.Tenants), "encrypted": m.Encrypted})
	if err != nil {
		return err
	}
	system, err := s.System(ctx)
	if errors.Is(err, assay.ErrReadOnly) {
		return nil
	}
	if err != nil {
		return err
	}
	err = system.Audit().Append(ctx, store.Act{Kind: "backup.made", Subject: "store", Actor: actor, Detail: detail})
	if errors.Is(err, assay.ErrReadOnly) {
		err = nil
	}
	return errors.Join(err, system.Close())
}

// A copier fills the folder of a backup.
type copier struct {
	store      *sqlite.Store
	dir        string // of the backup
	plain      string // where files are written that are still to be encrypted; dir without encryption
	recipients []age.Recipient
	progress   Progress
	done       int64
	manifest   Manifest
}

// everything copies all tenants and then system.db, so that a key revoked meanwhile is revoked in
// the copy. It begins again for tenants that were created or deleted meanwhile.
func (c *copier) everything(ctx context.Context) error {
	for {
		names, err := c.store.Tenants(ctx)
		if err != nil {
			return err
		}
		if c.manifest.System && slices.Equal(names, c.names()) {
			return nil
		}
		for _, name := range c.names() {
			if !slices.Contains(names, name) {
				if err := c.drop(name); err != nil {
					return err
				}
			}
		}
		for _, name := range names {
			if slices.Contains(c.names(), name) {
				continue
			}
			if err := c.tenant(ctx, name); err != nil && !errors.Is(err, assay.ErrNotFound) {
				return err
			}
		}
		if err := c.system(ctx); err != nil {
			return err
		}
	}
}

func (c *copier) names() []string {
	names := []string{}
	for _, t := range c.manifest.Tenants {
		names = append(names, t.Name)
	}
	return names
}

// drop removes a tenant that was deleted meanwhile from the copy.
func (c *copier) drop(name string) error {
	c.manifest.Tenants = slices.DeleteFunc(c.manifest.Tenants, func(t Tenant) bool { return t.Name == name })
	c.manifest.Files = slices.DeleteFunc(c.manifest.Files, func(f File) bool { return strings.HasPrefix(f.Path, "tenants/"+name+"/") })
	return os.RemoveAll(filepath.Join(c.dir, "tenants", name))
}

// tenant copies one tenant.
func (c *copier) tenant(ctx context.Context, name string) error {
	folder := filepath.Join(c.plain, "tenants", name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	word, files, err := c.store.CopyTenant(ctx, name, folder, c.copied(name))
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	for _, f := range files {
		if err := c.add(ctx, "tenants/"+name+"/"+f); err != nil {
			return err
		}
	}
	c.manifest.Tenants = append(c.manifest.Tenants, Tenant{Name: name, Identity: word})
	slices.SortFunc(c.manifest.Tenants, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// system copies system.db, again if it was copied before.
func (c *copier) system(ctx context.Context) error {
	c.manifest.Files = slices.DeleteFunc(c.manifest.Files, func(f File) bool { return f.plain() == "system.db" })
	opened, err := c.store.System(ctx) // creates it
	if err == nil {
		err = opened.Close()
	}
	if err != nil && !errors.Is(err, assay.ErrReadOnly) {
		return err
	}
	c.manifest.System, err = c.store.CopySystem(ctx, c.plain, c.copied("system.db"))
	if err != nil {
		return err
	}
	if !c.manifest.System {
		return fmt.Errorf("there is no system.db, and it cannot be created: %w", assay.ErrReadOnly)
	}
	return c.add(ctx, "system.db")
}

func (c *copier) copied(file string) sqlite.CopyProgress {
	return func(bytes int64) {
		c.done += bytes
		if c.progress != nil {
			c.progress(file, c.done, 0)
		}
	}
}

// add encrypts a copied file, if that is wanted, and enters it in the manifest.
func (c *copier) add(ctx context.Context, path string) error {
	f := File{Path: path}
	var err error
	if len(c.recipients) == 0 {
		f.Size, f.SHA256, err = hashFile(ctx, filepath.Join(c.dir, filepath.FromSlash(path)))
	} else {
		f.Path += encryptedSuffix
		f.Size, f.SHA256, err = c.encrypt(ctx, path, f.Path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c.manifest.Files = append(c.manifest.Files, f)
	slices.SortFunc(c.manifest.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// encrypt writes a plain file encrypted to the backup and removes it.
func (c *copier) encrypt(ctx context.Context, from, to string) (size int64, sum string, err error) {
	plain := filepath.Join(c.plain, filepath.FromSlash(from))
	target := filepath.Join(c.dir, filepath.FromSlash(to))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return 0, "", err
	}
	in, err := os.Open(plain)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n := new(counter)
	err = writeFile(target, func(w io.Writer) error {
		out, err := age.Encrypt(io.MultiWriter(w, h, n), c.recipients...)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, contextReader{ctx, in})
		return errors.Join(err, out.Close())
	})
	err = errors.Join(err, in.Close(), os.Remove(plain))
	return n.bytes, hex.EncodeToString(h.Sum(nil)), err
}

// A counter counts the bytes that are written to it.
type counter struct{ bytes int64 }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// A contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// hashFile returns the size of a file and its SHA-256 in hexadecimal.
func hashFile(ctx context.Context, path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err := io.Copy(h, contextReader{ctx, f})
	return n, hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// writeFile durably writes a new file that only its owner may read.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Sync(), f.Close())
}

// kind adds assay's kind to an error of the system that has none.
func kind(err error) error {
	if errors.Is(err, syscall.ENOSPC) && !errors.Is(err, assay.ErrFull) {
		return fmt.Errorf("%w: %w", assay.ErrFull, err)
	}
	return err
}
