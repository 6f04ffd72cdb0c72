package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/sqlite"
)

const (
	manifestName = "manifest.json"
	program      = "assay backup"
	format       = 1

	// encryptedSuffix ends the name of a file in the age format (C2SP age).
	encryptedSuffix = ".age"

	// maxManifest is the most bytes of a manifest, which has some 200 for each file.
	maxManifest = 64 << 20
)

// A Manifest describes a backup. Its JSON form is deterministic.
type Manifest struct {
	Program string    `json:"program"` // "assay backup"
	Format  int       `json:"format"`  // 1
	Created time.Time `json:"created"` // when the backup began, UTC

	Encrypted bool     `json:"encrypted"` // the files are in the age format
	System    bool     `json:"system"`    // with the API keys and the log of the store itself
	Tenants   []Tenant `json:"tenants"`   // by name
	Files     []File   `json:"files"`     // by path

	// Checksum is the SHA-256 of the manifest's JSON with an empty Checksum, hexadecimal.
	Checksum string `json:"checksum"`
}

// A Tenant is a tenant of a backup.
type Tenant struct {
	Name     string `json:"name"`
	Identity string `json:"identity"` // the word in its databases, see formats.md
}

// A File is a file of a backup.
type File struct {
	Path   string `json:"path"`   // with slashes, below the backup's folder
	Size   int64  `json:"size"`   // bytes, as in the backup
	SHA256 string `json:"sha256"` // hexadecimal, as in the backup
}

// plain returns the path of the file in a data directory.
func (f File) plain() string { return strings.TrimSuffix(f.Path, encryptedSuffix) }

// Bytes returns the size of all files.
func (m Manifest) Bytes() int64 {
	var sum int64
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// sealed returns m with its checksum, and its JSON.
func (m Manifest) sealed() (Manifest, []byte, error) {
	m.Checksum = ""
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, nil, err
	}
	sum := sha256.Sum256(data)
	m.Checksum = hex.EncodeToString(sum[:])
	data, err = json.MarshalIndent(m, "", "  ")
	return m, append(data, '\n'), err
}

// ReadManifest reads and checks the manifest of the backup in a folder. It does not read the other
// files; see Verify. The error is assay.ErrForeign if the folder is no complete backup,
// assay.ErrNewer if a later version of the program wrote it, and assay.ErrDamaged if the manifest was
// altered.
func ReadManifest(dir string) (Manifest, error) {
	m, err := readManifest(dir)
	if err != nil {
		return Manifest{}, fmt.Errorf("backup %s: %w", dir, err)
	}
	return m, nil
}

func readManifest(dir string) (Manifest, error) {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("it has no %s, so it is no complete backup: %w", manifestName, assay.ErrForeign)
	}
	if err != nil {
		return Manifest{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return Manifest{}, err
	}
	if len(data) > maxManifest {
		return Manifest{}, fmt.Errorf("its %s has more than %d MiB: %w", manifestName, maxManifest>>20, assay.ErrDamaged)
	}
	return parseManifest(data)
}

// parseManifest reads the bytes of a manifest and checks everything but the files.
func parseManifest(data []byte) (Manifest, error) {
	var head struct {
		Program string
		Format  int
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Manifest{}, fmt.Errorf("%s is not JSON: %w", manifestName, assay.ErrDamaged)
	}
	if head.Program != program {
		return Manifest{}, fmt.Errorf("%s names the program %q: %w", manifestName, head.Program, assay.ErrForeign)
	}
	if head.Format > format {
		return Manifest{}, fmt.Errorf("its format is %d, this program reads %d: %w", head.Format, format, assay.ErrNewer)
	}
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w: %w", manifestName, assay.ErrDamaged, err)
	}
	_, again, err := m.sealed()
	if err != nil || !bytes.Equal(again, data) {
		return Manifest{}, fmt.Errorf("%s does not match its checksum: %w", manifestName, assay.ErrDamaged)
	}
	return m, m.check()
}

// check checks that the files are those of the tenants, each once.
func (m Manifest) check() error {
	missing := map[string]bool{}
	for _, t := range m.Tenants {
		for _, db := range []string{"content.db", "runs.db"} {
			missing["tenants/"+t.Name+"/"+db] = true
		}
	}
	if m.System {
		missing["system.db"] = true
	}
	last := ""
	for _, f := range m.Files {
		tenant, err := sqlite.CheckCopyName(f.plain())
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w: %w", manifestName, assay.ErrDamaged, err)
		case tenant == "" && !m.System, tenant != "" && !slices.ContainsFunc(m.Tenants, func(t Tenant) bool { return t.Name == tenant }):
			return fmt.Errorf("%s lists %s, which belongs to no part of the backup: %w", manifestName, f.Path, assay.ErrDamaged)
		case f.Path <= last, (f.Path != f.plain()) != m.Encrypted, f.Size < 0:
			return fmt.Errorf("%s lists %s wrongly: %w", manifestName, f.Path, assay.ErrDamaged)
		}
		last = f.Path
		delete(missing, f.plain())
	}
	for path := range missing {
		return fmt.Errorf("%s does not list %s: %w", manifestName, path, assay.ErrDamaged)
	}
	return nil
}
