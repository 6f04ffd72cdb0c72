package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/assay-rag/assay"
)

// keyPrefix begins the text form of a private key.
const keyPrefix = "ASSAY-AUDIT-KEY-1 "

// algEd25519 is the type byte of Ed25519 keys in signed notes.
const algEd25519 = 1

// A Key is a private Ed25519 key that signs checkpoints. The same key may sign those of several logs.
// In signatures and verifier keys its name is the log's origin.
type Key struct{ private ed25519.PrivateKey }

// NewKey returns a random key.
func NewKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return Key{private}, err
}

// ParseKey reads the text form of a key. The error is assay.ErrInvalid and never contains the text.
func ParseKey(text string) (Key, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), keyPrefix)
	seed, err := base64.StdEncoding.Strict().DecodeString(rest)
	if !ok || err != nil || len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("audit key: want one line that begins with %q, as assay audit key new writes it: %w", keyPrefix, assay.ErrInvalid)
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// Secret returns the text form of the private key, one line.
func (k Key) Secret() string {
	return keyPrefix + base64.StdEncoding.EncodeToString(k.private.Seed()) + "\n"
}

// String hides the key.
func (k Key) String() string { return "audit key" }

// GoString hides the key.
func (k Key) GoString() string { return "audit.Key{}" }

// Public returns the verifier key for a log, in the form of signed notes
// (https://c2sp.org/signed-note): NAME+HASH+KEY, with the log's origin as its name.
func (k Key) Public(origin string) string {
	public := k.public()
	return fmt.Sprintf("%s+%08x+%s", origin, keyHash(origin, public), base64.StdEncoding.EncodeToString(public))
}

// public returns the public key after its type byte.
func (k Key) public() []byte {
	return append([]byte{algEd25519}, k.private.Public().(ed25519.PublicKey)...)
}

// keyHash returns the ID of a key: the first bytes of the SHA-256 of its name, a newline, its type and
// its bytes.
func keyHash(name string, key []byte) uint32 {
	h := sha256.New()
	h.Write([]byte(name + "\n"))
	h.Write(key)
	return binary.BigEndian.Uint32(h.Sum(nil))
}

func (k Key) signer(origin string) note.Signer { return signer{k, origin} }

// A signer implements note.Signer.
type signer struct {
	key    Key
	origin string
}

func (s signer) Name() string    { return s.origin }
func (s signer) KeyHash() uint32 { return keyHash(s.origin, s.key.public()) }

func (s signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.key.private, msg), nil }

// A Verifier has the public keys that a reader trusts. It is immutable.
type Verifier struct{ keys []verifierKey }

type verifierKey struct {
	note.Verifier
	text string
}

// NewVerifier returns a verifier for verifier keys as Key.Public returns them, one at least. The
// error is assay.ErrInvalid.
func NewVerifier(keys ...string) (*Verifier, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("no verifier key: %w", assay.ErrInvalid)
	}
	v := &Verifier{}
	for _, text := range keys {
		text = strings.TrimSpace(text)
		k, err := note.NewVerifier(text)
		if err != nil {
			return nil, badKey("verifier key", text, "want NAME+HASH+KEY, as assay audit key show prints it")
		}
		v.keys = append(v.keys, verifierKey{k, text})
	}
	return v, nil
}

// badKey returns the error for a text that is no public key. It does not contain the text, which may be
// a private key.
func badKey(what, text, problem string) error {
	if strings.HasPrefix(text, strings.TrimSpace(keyPrefix)) {
		problem = "it is the private key; " + problem
	}
	return fmt.Errorf("%s: %s: %w", what, problem, assay.ErrInvalid)
}

// Keys returns the verifier keys.
func (v *Verifier) Keys() []string {
	var keys []string
	for _, k := range v.keys {
		keys = append(keys, k.text)
	}
	return keys
}

func (v *Verifier) verifiers() []note.Verifier {
	list := make([]note.Verifier, len(v.keys))
	for i, k := range v.keys {
		list[i] = k
	}
	return list
}
