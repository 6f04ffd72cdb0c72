package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
)

// A Checkpoint is a tree head: it fixes the first Size entries of one log. Its text has the form of
// C2SP tlog-checkpoint (https://c2sp.org/tlog-checkpoint), without extension lines.
type Checkpoint struct {
	Origin string    `json:"origin"` // identifies the log; see Origin
	Size   int64     `json:"size"`   // number of entries
	Root   tlog.Hash `json:"root"`   // of the RFC 6962 tree over them
}

// Text returns the checkpoint's text: origin, size and root, a line each.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
}

// ParseCheckpoint is the inverse of Text. It accepts only what Text can produce, so no extension
// lines. The error is assay.ErrInvalid.
func ParseCheckpoint(text string) (Checkpoint, error) {
	c, err := parseCheckpoint(text)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w: %w", assay.ErrInvalid, err)
	}
	return c, nil
}

func parseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return c, errors.New("want three lines")
	}
	if err := checkName(lines[0]); err != nil {
		return c, err
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || size == math.MaxInt64 || lines[1] != strconv.FormatInt(size, 10) {
		return c, fmt.Errorf("size %q", lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return c, fmt.Errorf("root %q", lines[2])
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: tlog.Hash(root)}, nil
}

// checkName checks an origin, which is also the name of the keys that sign its checkpoints.
func checkName(name string) error {
	const most = 255
	ok := name != "" && len(name) <= most && utf8.ValidString(name) && !strings.Contains(name, "+")
	if !ok || strings.ContainsFunc(name, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return fmt.Errorf("name %q: want 1 to %d bytes of UTF-8 without spaces, control characters and +", name, most)
	}
	return nil
}

// A Signed is a checkpoint with signatures that were verified.
type Signed struct {
	Checkpoint
	Note []byte // the signed note

	// Keys are the verifier keys whose signatures were found and are good, in the order in which
	// the Verifier has them.
	Keys []string
}

// Sign signs a checkpoint with each of the keys. One key is usual, two mark a rotation.
func Sign(c Checkpoint, keys ...Key) (Signed, error) {
	if len(keys) == 0 {
		return Signed{}, fmt.Errorf("sign a checkpoint: no key: %w", assay.ErrInvalid)
	}
	if _, err := ParseCheckpoint(c.Text()); err != nil {
		return Signed{}, err
	}
	signed := Signed{Checkpoint: c}
	signers := make([]note.Signer, len(keys))
	for i, k := range keys {
		signers[i] = k.signer(c.Origin)
		signed.Keys = append(signed.Keys, k.Public(c.Origin))
	}
	var err error
	signed.Note, err = note.Sign(&note.Note{Text: c.Text()}, signers...)
	if err != nil {
		return Signed{}, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return signed, nil
}

// maxNote bounds a signed note in bytes. One with 100 signatures has about 15,000.
const maxNote = 1 << 20

// Open parses a signed checkpoint and verifies its signatures. At least one must be of a key of the
// verifier whose name is the checkpoint's origin. Signatures of other keys are ignored. The error is
// assay.ErrDamaged if the signature of a known key is wrong or there is none of a known key, and
// assay.ErrInvalid for a note of another form.
func (v *Verifier) Open(data []byte) (Signed, error) {
	if len(data) > maxNote {
		return Signed{}, fmt.Errorf("checkpoint of %d bytes: %w", len(data), assay.ErrInvalid)
	}
	n, err := openNote(data, v.verifiers()...)
	if err != nil {
		kind := assay.ErrInvalid
		var unverified *note.UnverifiedNoteError
		var wrong *note.InvalidSignatureError
		if errors.As(err, &unverified) || errors.As(err, &wrong) {
			kind = assay.ErrDamaged
		}
		return Signed{}, fmt.Errorf("checkpoint: %w: %w", kind, err)
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return Signed{}, err
	}
	s := Signed{Checkpoint: c, Note: bytes.Clone(data)}
	for _, k := range v.keys {
		for _, sig := range n.Sigs {
			if sig.Name == k.Name() && sig.Hash == k.KeyHash() {
				if k.Name() != c.Origin {
					return Signed{}, fmt.Errorf("checkpoint of %s is signed by a key of %s: %w", c.Origin, k.Name(), assay.ErrDamaged)
				}
				s.Keys = append(s.Keys, k.text)
			}
		}
	}
	return s, nil
}

// openNote is note.Open for a note whose signatures are encoded in the one way that Sign writes. Package
// note ignores the last bits of their base64, which do not belong to the signature.
func openNote(data []byte, verifiers ...note.Verifier) (*note.Note, error) {
	n, err := note.Open(data, note.VerifierList(verifiers...))
	if err != nil {
		return nil, err
	}
	for _, sig := range slices.Concat(n.Sigs, n.UnverifiedSigs) {
		if _, err := base64.StdEncoding.Strict().DecodeString(sig.Base64); err != nil {
			return nil, fmt.Errorf("signature of %s: %w", sig.Name, err)
		}
	}
	return n, nil
}

// Newest returns the largest of several checkpoints that a key of v signed. The error is that of the
// last one that none did, if none is left.
func (v *Verifier) Newest(notes [][]byte) (Signed, error) {
	var newest Signed
	unknown := fmt.Errorf("no checkpoint: %w", assay.ErrNotFound)
	for _, note := range notes {
		s, err := v.Open(note)
		if err != nil {
			unknown = err
		} else if newest.Note == nil || s.Size > newest.Size {
			newest = s
		}
	}
	if newest.Note == nil {
		return newest, unknown
	}
	return newest, nil
}
