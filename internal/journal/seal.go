package journal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

const (
	// SaltSize is the length of a salt in bytes. It is fixed, so that no byte can move between a
	// salt and the payload after it.
	SaltSize = 16

	// longString is the least length in bytes of a string that is moved out of the payload. A
	// reference takes 77 bytes.
	longString = 256

	referenceKey = "$value"

	// format is the version of the sealed form. Open rejects newer ones.
	format = 1
)

// NewSalt returns a random salt for one record.
func NewSalt() []byte {
	salt := make([]byte, SaltSize)
	rand.Read(salt) // never fails
	return salt
}

// Sealed is a record in its byte form.
type Sealed struct {
	Header  []byte   // canonical JSON
	Payload []byte   // canonical JSON
	Leaf    [32]byte // SHA-256 of a zero byte and Header
	Values  []Value  // referred to by Payload: distinct, in the order of first use
}

// A Value is a long string stored outside the payload.
type Value struct {
	Hash string // SHA-256 of Data in lower-case hexadecimal
	Data []byte // UTF-8; it may share memory with the record and must not be changed
}

// header is the JSON form of a record without its payload.
type header struct {
	Format   int            `json:"format"`
	Sequence int64          `json:"sequence"`
	Run      string         `json:"run"`
	Ordinal  int            `json:"ordinal"`
	Path     string         `json:"path"`
	Kind     assay.StepKind `json:"kind"`
	Model    string         `json:"model"`
	Usage    assay.Usage    `json:"usage"`
	Started  time.Time      `json:"started"` // UTC
	Elapsed  time.Duration  `json:"elapsed"` // nanoseconds, as in Active
	Active   time.Duration  `json:"active"`
	Payload  string         `json:"payload"` // SHA-256 of the salt and the payload, hexadecimal
}

// Seal turns a record, without its Bytes and Leaf, into bytes. Input and Output may be any JSON and
// become canonical; an empty one counts as absent. salt must have SaltSize bytes and be used for
// this record only. The error is assay.ErrInvalid for data without a JSON form, or a header field
// that is not UTF-8.
func Seal(rec assay.Record, salt []byte) (Sealed, error) {
	if err := checkSealable(rec, salt); err != nil {
		return Sealed{}, fmt.Errorf("seal step %q: %w", rec.Path, err)
	}
	payload, values, err := sealPayload(rec)
	if err != nil {
		return Sealed{}, fmt.Errorf("seal step %q: %w", rec.Path, err)
	}
	head, err := Canonical(header{
		Format: format, Sequence: rec.Sequence, Run: rec.Run, Ordinal: rec.Ordinal, Path: rec.Path,
		Kind: rec.Kind, Model: rec.Model, Usage: rec.Usage,
		Started: rec.Started.UTC(), Elapsed: rec.Elapsed, Active: rec.Active,
		Payload: payloadHash(salt, payload),
	})
	if err != nil {
		return Sealed{}, fmt.Errorf("seal step %q: %w", rec.Path, err)
	}
	return Sealed{Header: head, Payload: payload, Leaf: leafHash(head), Values: values}, nil
}

func checkSealable(rec assay.Record, salt []byte) error {
	if len(salt) != SaltSize {
		return fmt.Errorf("salt of %d bytes, want %d: %w", len(salt), SaltSize, assay.ErrInvalid)
	}
	for _, s := range []string{rec.Run, rec.Path, string(rec.Kind), rec.Model} {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8: %w", s, assay.ErrInvalid)
		}
	}
	return nil
}

// sealPayload returns the payload and the values extracted from it.
func sealPayload(rec assay.Record) ([]byte, []Value, error) {
	var values []Value
	seen := map[string]bool{}
	t := transcoder{
		dst: make([]byte, 0, min(len(rec.Input)+len(rec.Output), 8<<10)+64),
		cut: func(text []byte) string {
			sum := sha256.Sum256(text)
			hash := hex.EncodeToString(sum[:])
			if !seen[hash] {
				seen[hash] = true
				values = append(values, Value{Hash: hash, Data: text})
			}
			return hash
		},
	}
	t.dst = append(t.dst, '{')
	part := func(name string, src []byte) error {
		if len(src) == 0 {
			return nil
		}
		if len(t.dst) > 1 {
			t.dst = append(t.dst, ',')
		}
		t.dst = append(append(append(t.dst, '"'), name...), `":`...)
		t.src, t.pos = src, 0
		if err := t.whole(); err != nil {
			return fmt.Errorf("%s: %w: %w", name, assay.ErrInvalid, err)
		}
		return nil
	}
	if rec.Error != nil {
		src, err := Canonical(rec.Error)
		if err != nil {
			return nil, nil, err
		}
		if err := part("error", src); err != nil {
			return nil, nil, err
		}
	}
	if err := part("input", rec.Input); err != nil {
		return nil, nil, err
	}
	if err := part("output", rec.Output); err != nil {
		return nil, nil, err
	}
	return append(t.dst, '}'), values, nil
}

func payloadHash(salt, payload []byte) string {
	h := sha256.New()
	h.Write(salt)
	h.Write(payload)
	return hex.EncodeToString(h.Sum(nil))
}

func leafHash(header []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(header)
	return [32]byte(h.Sum(nil))
}

// appendReference appends the object that replaces a value.
func appendReference(dst []byte, hash string) []byte {
	dst = append(dst, `{"`+referenceKey+`":"`...)
	return append(append(dst, hash...), `"}`...)
}

// isReferenceKey reports whether the only key of an object, in canonical form,
// makes it a reference or an escaped one: $value, $$value, ...
func isReferenceKey(key []byte) bool {
	rest := bytes.TrimLeft(key, "$")
	return len(rest) < len(key) && string(rest) == strings.TrimLeft(referenceKey, "$")
}

// reference handles the object at dst[start], whose only member m has a key like that of a
// reference. Sealing escapes the key. Opening removes the escape or restores the value.
func (t *transcoder) reference(start int, m member) error {
	switch {
	case t.cut != nil:
		t.dst = append(t.dst, 0)
		copy(t.dst[m.key+1:], t.dst[m.key:])
		t.dst[m.key] = '$'
	case t.fill == nil: // plain canonical JSON
	case string(t.key(m)) != referenceKey:
		t.dst = append(t.dst[:m.key], t.dst[m.key+1:]...)
	default:
		const quotes = len(`":""`)
		if !m.text || m.end-m.keyEnd != quotes+2*sha256.Size {
			return t.fail("a reference without a hash")
		}
		hash := string(t.dst[m.end-1-2*sha256.Size : m.end-1])
		text, err := t.fill(hash)
		if err != nil {
			return err
		}
		t.dst = appendString(t.dst[:start], text, false)
	}
	return nil
}
