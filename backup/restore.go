package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// RestoreOptions configure Restore.
type RestoreOptions struct {
	Identities []age.Identity  // decrypt an encrypted backup
	Actor      assay.Principal // of the act "backup.restored" in every log
	Progress   Progress        // may be nil
}

// Verify checks that the files of a backup are there and match their checksums. It needs no identity,
// because the checksums are those of the encrypted files. The error is assay.ErrDamaged and names
// the file.
func Verify(ctx context.Context, dir string, progress Progress) (Manifest, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return Manifest{}, err
	}
	var done int64
	for _, f := range m.Files {
		if progress != nil {
			progress(f.Path, done, m.Bytes())
		}
		if err := verifyFile(ctx, dir, f); err != nil {
			return Manifest{}, fmt.Errorf("backup %s: %s: %w", dir, f.Path, err)
		}
		done += f.Size
	}
	return m, nil
}

func verifyFile(ctx context.Context, dir string, f File) error {
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("it is missing: %w", assay.ErrDamaged)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is no regular file: %w", assay.ErrDamaged)
	case info.Size() != f.Size:
		return fmt.Errorf("it has %d bytes, want %d: %w", info.Size(), f.Size, assay.ErrDamaged)
	}
	_, sum, err := hashFile(ctx, path)
	if err == nil && sum != f.SHA256 {
		err = fmt.Errorf("it does not match its checksum: %w", assay.ErrDamaged)
	}
	return err
}

// Restore makes the backup in a folder the data directory at data, which must not exist or be empty.
// It verifies all checksums before it writes anything, and the databases before data exists. The logs
// get an act "backup.restored". The index is built by the next search or ingest.
//
// The error is assay.ErrInvalid if data holds something or an identity is missing, assay.ErrForeign
// if the folder is no backup, assay.ErrNewer if a later version made it, assay.ErrDamaged if a file
// was altered, and assay.ErrFull if the disk is full. If there is an error, or the process is killed,
// data does not exist afterwards.
func Restore(ctx context.Context, dir, data string, o RestoreOptions) (Manifest, error) {
	if err := checkAbsent(data); err != nil {
		return Manifest{}, fmt.Errorf("restore to %s: %w", data, err)
	}
	m, err := Verify(ctx, dir, o.Progress)
	if err != nil {
		return Manifest{}, err
	}
	if m.Encrypted && len(o.Identities) == 0 {
		return Manifest{}, fmt.Errorf("backup %s is encrypted, and no identity is given: %w", dir, assay.ErrInvalid)
	}
	if err := restore(ctx, m, dir, data, o); err != nil {
		return Manifest{}, fmt.Errorf("restore %s to %s: %w", dir, data, kind(err))
	}
	return m, nil
}

func restore(ctx context.Context, m Manifest, dir, data string, o RestoreOptions) (err error) {
	if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
		return err
	}
	target, err := newStaging(filepath.Dir(data), filepath.Base(data))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.remove()) }()
	var done int64
	for _, f := range m.Files {
		if o.Progress != nil {
			o.Progress(f.Path, done, m.Bytes())
		}
		if err := restoreFile(ctx, dir, target.path, f, o.Identities); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		done += f.Size
	}
	tenants := make([]sqlite.CopiedTenant, len(m.Tenants))
	for i, t := range m.Tenants {
		tenants[i] = sqlite.CopiedTenant{Name: t.Name, Word: t.Identity}
	}
	detail, err := json.Marshal(map[string]any{"checksum": m.Checksum, "created": m.Created})
	if err != nil {
		return err
	}
	act := store.Act{Kind: "backup.restored", Subject: "store", Actor: o.Actor, Detail: detail}
	if err := sqlite.AdoptCopy(ctx, target.path, tenants, act); err != nil {
		return err
	}
	if err := syncTree(target.path); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return target.commit(data)
}

// restoreFile copies one file, decrypted, and compares its checksum once more.
func restoreFile(ctx context.Context, dir, to string, f File, identities []age.Identity) error {
	target := filepath.Join(to, filepath.FromSlash(f.plain()))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	in, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	var plain io.Reader = io.TeeReader(contextReader{ctx, in}, h)
	if f.Path != f.plain() {
		plain, err = age.Decrypt(plain, identities...)
		if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
			return fmt.Errorf("no identity decrypts it: %w", assay.ErrInvalid)
		}
		if err != nil {
			return fmt.Errorf("decrypt: %w: %w", assay.ErrDamaged, err)
		}
	}
	err = writeFile(target, func(w io.Writer) error { _, err := io.Copy(w, plain); return err })
	if err == nil && hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		err = fmt.Errorf("it changed while it was read: %w", assay.ErrDamaged)
	}
	return err
}
