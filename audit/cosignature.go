package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// algCosignature is the type byte of Ed25519 keys of witnesses.
const algCosignature = 4

// witnessVerifier checks signatures in the form cosignature/v1 (https://c2sp.org/tlog-cosignature)
// with Ed25519. It implements note.Verifier.
type witnessVerifier struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

// newWitnessVerifier reads a witness's verifier key, NAME+HASH+KEY. Type 4 and, as witnesses publish
// them too, type 1 are accepted; the signatures are of type 4 in both cases.
func newWitnessVerifier(text string) (witnessVerifier, error) {
	fail := func(problem string) (witnessVerifier, error) {
		return witnessVerifier{}, badKey("witness key", text, problem)
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(text), "+")
	hash, encoded, ok := strings.Cut(rest, "+")
	if !ok || checkName(name) != nil {
		return fail("want NAME+HASH+KEY")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) != 1+ed25519.PublicKeySize || key[0] != algEd25519 && key[0] != algCosignature {
		return fail("want an Ed25519 key")
	}
	if n, err := strconv.ParseUint(hash, 16, 32); err != nil || len(hash) != 8 || uint32(n) != keyHash(name, key) {
		return fail("its hash does not match")
	}
	key[0] = algCosignature
	return witnessVerifier{name, keyHash(name, key), ed25519.PublicKey(key[1:])}, nil
}

var _ note.Verifier = witnessVerifier{}

func (w witnessVerifier) Name() string    { return w.name }
func (w witnessVerifier) KeyHash() uint32 { return w.hash }

// Verify implements note.Verifier. A signature is a time, in seconds since 1970, and an Ed25519
// signature of it and the checkpoint's text.
func (w witnessVerifier) Verify(msg, sig []byte) bool {
	const timeSize = 8
	if len(sig) != timeSize+ed25519.SignatureSize {
		return false
	}
	signed := fmt.Sprintf("cosignature/v1\ntime %d\n%s", binary.BigEndian.Uint64(sig), msg)
	return ed25519.Verify(w.key, []byte(signed), sig[timeSize:])
}

// cosignedBy reports whether a note has a good signature of the witness.
func cosignedBy(data []byte, w witnessVerifier) bool {
	_, err := openNote(data, w)
	return err == nil
}
