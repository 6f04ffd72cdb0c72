package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// An Act is an entry of the audit log that is no record of a run.
type Act struct {
	Sequence int64
	Kind     string
	Subject  string
	Time     time.Time // UTC
	Registry bool      // it changed the registry; set from Item

	// The payload; zero if it was erased.
	Actor  assay.Principal
	Reason string
	Detail json.RawMessage // canonical JSON; nil: none
	Item   *Item           // of the registry, that the act changed; nil: none
}

// An Item identifies a value that an act gave to an item of the registry.
type Item struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Value   string `json:"value"`   // SHA-256 of the value in lower-case hexadecimal; empty: deleted
	Updated int64  `json:"updated"` // nanoseconds since 1970; 0: deleted
}

// actHeader is the JSON form of an act without its payload. Its member "act" tells it from the header
// of a record.
type actHeader struct {
	Format   int       `json:"format"`
	Sequence int64     `json:"sequence"`
	Act      string    `json:"act"`
	Subject  string    `json:"subject"`
	Time     time.Time `json:"time"`
	Registry bool      `json:"registry,omitempty"`
	Payload  string    `json:"payload"` // SHA-256 of the salt and the payload, hexadecimal
}

type actPayload struct {
	Actor  assay.Principal `json:"actor"`
	Reason string          `json:"reason"`
	Detail json.RawMessage `json:"detail,omitempty"`
	Item   *Item           `json:"item,omitempty"`
}

var actKind = lazyregexp.New(`^[a-z_]+(\.[a-z_]+)+$`)

// SealAct turns an act into bytes. salt must have SaltSize bytes and be used for this act only. The
// error is assay.ErrInvalid for a kind that is no words joined by dots, text that is not UTF-8, or a
// detail that is not JSON.
func SealAct(a Act, salt []byte) (Sealed, error) {
	switch {
	case len(salt) != SaltSize:
		return Sealed{}, fmt.Errorf("salt of %d bytes, want %d: %w", len(salt), SaltSize, assay.ErrInvalid)
	case !actKind.MatchString(a.Kind):
		return Sealed{}, fmt.Errorf("act %q: want an object and a participle, like \"key.revoked\": %w", a.Kind, assay.ErrInvalid)
	case !utf8.ValidString(a.Subject) || !utf8.ValidString(a.Reason):
		return Sealed{}, fmt.Errorf("act %s: its subject or reason is not UTF-8: %w", a.Kind, assay.ErrInvalid)
	case a.Item != nil && (!utf8.ValidString(a.Item.Kind) || !utf8.ValidString(a.Item.Name)):
		return Sealed{}, fmt.Errorf("act %s: the name of its item is not UTF-8: %w", a.Kind, assay.ErrInvalid)
	case a.Detail != nil && !json.Valid(a.Detail):
		return Sealed{}, fmt.Errorf("act %s: its detail is not JSON: %w", a.Kind, assay.ErrInvalid)
	}
	payload, err := Canonical(actPayload{a.Actor, a.Reason, a.Detail, a.Item})
	if err != nil {
		return Sealed{}, fmt.Errorf("act %s: %w: %w", a.Kind, assay.ErrInvalid, err)
	}
	head, err := Canonical(actHeader{
		Format: format, Sequence: a.Sequence, Act: a.Kind, Subject: a.Subject, Time: a.Time.UTC(), Registry: a.Item != nil, Payload: payloadHash(salt, payload),
	})
	if err != nil {
		return Sealed{}, fmt.Errorf("act %s: %w", a.Kind, err)
	}
	return Sealed{Header: head, Payload: payload, Leaf: leafHash(head)}, nil
}

// IsAct reports whether a leaf's header is that of an act. It checks nothing else.
func IsAct(header []byte) bool { return bytes.HasPrefix(header, []byte(`{"act":`)) }

// OpenAct is the inverse of SealAct. A nil payload was erased, and the act then has only what its
// header holds. The error is assay.ErrDamaged if a hash does not match, and assay.ErrNewer for an
// act sealed by a newer version.
func OpenAct(header, payload, salt []byte, leaf [32]byte) (Act, error) {
	a, h, err := openActHeader(header, leaf)
	if err != nil || payload == nil {
		return a, err
	}
	if len(salt) != SaltSize || payloadHash(salt, payload) != h.Payload {
		return Act{}, fmt.Errorf("payload of the act %s does not match its hash: %w", h.Act, assay.ErrDamaged)
	}
	var p actPayload
	if err := decodeStrictly(payload, &p); err != nil {
		return Act{}, fmt.Errorf("payload of the act %s: %w: %w", h.Act, assay.ErrDamaged, err)
	}
	if h.Registry != (p.Item != nil) {
		return Act{}, fmt.Errorf("payload of the act %s does not say what its header says of the registry: %w", h.Act, assay.ErrDamaged)
	}
	a.Actor, a.Reason, a.Detail, a.Item = p.Actor, p.Reason, p.Detail, p.Item
	return a, nil
}

// openActHeader returns the act without its payload.
func openActHeader(header []byte, leaf [32]byte) (Act, actHeader, error) {
	if leafHash(header) != leaf {
		return Act{}, actHeader{}, fmt.Errorf("header of an act does not match its leaf hash: %w", assay.ErrDamaged)
	}
	var version struct{ Format int }
	if err := json.Unmarshal(header, &version); err != nil {
		return Act{}, actHeader{}, fmt.Errorf("header of an act: %w: %w", assay.ErrDamaged, err)
	}
	if version.Format > format {
		return Act{}, actHeader{}, fmt.Errorf("header of an act of format %d, this version reads %d: %w", version.Format, format, assay.ErrNewer)
	}
	var h actHeader
	if err := decodeStrictly(header, &h); err != nil {
		return Act{}, actHeader{}, fmt.Errorf("header of an act: %w: %w", assay.ErrDamaged, err)
	}
	return Act{Sequence: h.Sequence, Kind: h.Act, Subject: h.Subject, Time: h.Time.UTC(), Registry: h.Registry}, h, nil
}

// decodeStrictly decodes one JSON value without unknown members.
func decodeStrictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("followed by more")
	}
	return nil
}

// A Header is the part of a leaf that is never erased.
type Header struct {
	Sequence int64
	Act      string // kind of an act; empty: a record
	Subject  string // of an act
	Run      string // of a record
	Ordinal  int    // of a record
	Path     string // of a record
	Time     time.Time
	payload  string
}

// OpenHeader reads the header of an act or a record. The error is assay.ErrDamaged if the header
// does not match the leaf hash or has another form, and assay.ErrNewer for one of a newer version.
func OpenHeader(header []byte, leaf [32]byte) (Header, error) {
	if IsAct(header) {
		a, h, err := openActHeader(header, leaf)
		return Header{Sequence: a.Sequence, Act: a.Kind, Subject: a.Subject, Time: a.Time, payload: h.Payload}, err
	}
	if leafHash(header) != leaf {
		return Header{}, fmt.Errorf("header of a record does not match its leaf hash: %w", assay.ErrDamaged)
	}
	rec, payload, err := openHeader(header)
	return Header{Sequence: rec.Sequence, Run: rec.Run, Ordinal: rec.Ordinal, Path: rec.Path, Time: rec.Started, payload: payload}, err
}

// CheckPayload returns an error of kind assay.ErrDamaged unless the payload and the salt are those
// whose hash the header has.
func (h Header) CheckPayload(payload, salt []byte) error {
	if len(salt) != SaltSize || payloadHash(salt, payload) != h.payload {
		return fmt.Errorf("payload does not match its hash: %w", assay.ErrDamaged)
	}
	return nil
}
