package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// The text of an API key is "assay_ID_SECRET": an ID of 80 random bits, and 256 random bits
// followed by a checksum of everything before it, each in lower-case base32. The fixed start and the
// checksum let scanners find lost keys and let a mistyped key be told from an unknown one.
const keyPrefix = "assay_"

var (
	keyForm   = lazyregexp.New(`^assay_([a-z2-7]{16})_([a-z2-7]{52})([a-z2-7]{7})$`)
	keyBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// isKey reports whether a credential is meant to be an API key. No JSON web token begins this way.
func isKey(text string) bool { return strings.HasPrefix(text, keyPrefix) }

// newKeyText returns a new key's ID and text.
func newKeyText() (id, text string) {
	var random [10 + 32]byte
	_, _ = rand.Read(random[:]) // never fails
	id = keyBase32.EncodeToString(random[:10])
	text = keyPrefix + id + "_" + keyBase32.EncodeToString(random[10:])
	return id, text + checksum(text)
}

// checksum returns the CRC-32 (IEEE) of text in base32.
func checksum(text string) string {
	return keyBase32.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

// splitKey returns the ID and the secret of a key. ok is false if text has another form or its
// checksum is wrong.
func splitKey(text string) (id, secret string, ok bool) {
	m := keyForm.FindStringSubmatch(text)
	if m == nil || checksum(strings.TrimSuffix(text, m[3])) != m[3] {
		return "", "", false
	}
	return m[1], m[2], true
}

// hashKey returns the hash that is stored for a key. The secret has 256 random bits, so a fast hash
// suffices; the ID in it keeps a hash from being moved to another key.
func hashKey(id, secret string) [sha256.Size]byte {
	return sha256.Sum256([]byte("assay api key\x00" + id + "\x00" + secret))
}

var keyID = lazyregexp.New(`^[a-z2-7]{16}$`)

// KeyID returns the ID in text, which is an ID or a whole API key. It is empty if text is neither.
func KeyID(text string) string {
	if id, _, ok := splitKey(text); ok {
		return id
	}
	return keyID.FindString(text)
}
