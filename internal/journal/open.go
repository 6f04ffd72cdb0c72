package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// Open is the inverse of Seal. It calls value for every reference to get the text with the given
// hash. Open checks the leaf, the payload's hash and each value's hash. If one does not match, or
// is missing (value returns assay.ErrNotFound), the error is assay.ErrDamaged and names the header,
// the payload or the value. Other errors of value are returned unchanged. A record sealed by a
// newer version gives assay.ErrNewer.
//
// The returned record has header as its Bytes and leaf as its Leaf; Started is in UTC.
func Open(header, payload, salt []byte, leaf [32]byte, value func(hash string) ([]byte, error)) (assay.Record, error) {
	if leafHash(header) != leaf {
		return assay.Record{}, fmt.Errorf("record header does not match its leaf hash: %w", assay.ErrDamaged)
	}
	rec, want, err := openHeader(header)
	if err != nil {
		return assay.Record{}, err
	}
	if len(salt) != SaltSize || payloadHash(salt, payload) != want {
		return assay.Record{}, fmt.Errorf("payload of step %q does not match its hash: %w", rec.Path, assay.ErrDamaged)
	}
	if err := openPayload(&rec, payload, value); err != nil {
		return assay.Record{}, fmt.Errorf("payload of step %q: %w", rec.Path, err)
	}
	rec.Bytes, rec.Leaf = header, leaf
	return rec, nil
}

// OpenErased returns a record whose payload was erased: what its header holds. The error is
// assay.ErrDamaged if the header does not match the leaf, and assay.ErrNewer as for Open.
func OpenErased(header []byte, leaf [32]byte) (assay.Record, error) {
	if leafHash(header) != leaf {
		return assay.Record{}, fmt.Errorf("record header does not match its leaf hash: %w", assay.ErrDamaged)
	}
	rec, _, err := openHeader(header)
	if err != nil {
		return assay.Record{}, err
	}
	rec.Bytes, rec.Leaf = header, leaf
	return rec, nil
}

// openHeader returns the record and the hash of its payload.
func openHeader(data []byte) (assay.Record, string, error) {
	var version struct{ Format int }
	if err := json.Unmarshal(data, &version); err != nil {
		return assay.Record{}, "", fmt.Errorf("record header: %w: %w", assay.ErrDamaged, err)
	}
	if version.Format > format {
		return assay.Record{}, "", fmt.Errorf("record header of format %d, this version reads %d: %w", version.Format, format, assay.ErrNewer)
	}
	var h header
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return assay.Record{}, "", fmt.Errorf("record header: %w: %w", assay.ErrDamaged, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return assay.Record{}, "", fmt.Errorf("record header is followed by more: %w", assay.ErrDamaged)
	}
	return assay.Record{
		Sequence: h.Sequence, Run: h.Run, Ordinal: h.Ordinal, Path: h.Path, Kind: h.Kind, Model: h.Model,
		Usage: h.Usage, Started: h.Started.UTC(), Elapsed: h.Elapsed, Active: h.Active,
	}, h.Payload, nil
}

// openPayload sets the record's Input, Output and Error.
func openPayload(rec *assay.Record, payload []byte, value func(hash string) ([]byte, error)) error {
	if string(payload) == "{}" {
		return nil
	}
	t := transcoder{src: payload, fill: func(hash string) ([]byte, error) { return openValue(hash, value) }}
	if t.next() != '{' {
		return damaged(t.fail("no object"))
	}
	for more := true; more; {
		t.pos++
		if err := openPart(rec, &t); err != nil {
			return damaged(err)
		}
		c := t.next()
		if c != ',' && c != '}' {
			return damaged(t.fail("an object member is followed by neither , nor }"))
		}
		more = c == ','
	}
	t.pos++
	if t.space(); t.pos < len(payload) {
		return damaged(t.fail("more after the object"))
	}
	return nil
}

// openPart reads one member of the payload.
func openPart(rec *assay.Record, t *transcoder) error {
	if t.next() != '"' {
		return t.fail("an object key is missing")
	}
	key, _, err := t.token()
	if err != nil {
		return err
	}
	if t.next() != ':' {
		return t.fail("an object key is followed by no :")
	}
	t.pos++
	t.dst = make([]byte, 0, len(t.src)-t.pos)
	if err := t.value(); err != nil {
		return err
	}
	return setPart(rec, string(key), t.dst)
}

func setPart(rec *assay.Record, key string, data []byte) error {
	switch {
	case key == "input" && rec.Input == nil:
		rec.Input = data
	case key == "output" && rec.Output == nil:
		rec.Output = data
	case key == "error" && rec.Error == nil:
		return json.Unmarshal(data, &rec.Error)
	default:
		return fmt.Errorf("unexpected key %q", key)
	}
	return nil
}

// A valueError is an error about a value rather than the bytes that refer to it.
type valueError struct{ error }

func (e valueError) Unwrap() error { return e.error }

func openValue(hash string, value func(hash string) ([]byte, error)) ([]byte, error) {
	if b, err := hex.DecodeString(hash); err != nil || len(b) != sha256.Size || strings.ToLower(hash) != hash {
		return nil, fmt.Errorf("a reference holds %q, no hash", hash)
	}
	data, err := value(hash)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return nil, valueError{fmt.Errorf("value %s is missing: %w", hash, assay.ErrDamaged)}
	case err != nil:
		return nil, valueError{fmt.Errorf("value %s: %w", hash, err)}
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return nil, valueError{fmt.Errorf("value %s does not match its hash: %w", hash, assay.ErrDamaged)}
	}
	if !utf8.Valid(data) {
		return nil, valueError{fmt.Errorf("value %s is not UTF-8: %w", hash, assay.ErrDamaged)}
	}
	return data, nil
}

// damaged wraps err in assay.ErrDamaged, unless it is a valueError.
func damaged(err error) error {
	var v valueError
	if errors.As(err, &v) {
		return v.error
	}
	return fmt.Errorf("%w: %w", assay.ErrDamaged, err)
}
