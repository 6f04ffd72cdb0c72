package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// Kinds of items in the registry.
const (
	checkpointItems = "checkpoint" // by size with leading zeros
	keyItems        = "audit-key"  // "current"
	currentKey      = "current"
)

// An Authority signs the checkpoints of one log. Several may do so at once, in several processes:
// they append to one tree, so their checkpoints are consistent.
type Authority struct {
	Audit    store.Audit
	Registry store.Registry
	Actor    assay.Principal // who signs; it goes into the log
	Key      Key

	// Old is the key that Key takes the place of; the next checkpoint is signed by both. Nil: Key is
	// the key of the log already, or its first.
	Old *Key

	// Lost is the reason why Key takes the place of a key that cannot sign any more. Empty: it was
	// not lost.
	Lost string

	// Known are signed checkpoints of this log that are kept elsewhere. The log must continue them.
	Known [][]byte
}

// storedCheckpoint is the value of an item of the registry.
type storedCheckpoint struct {
	Note string `json:"note"`
}

// Published returns the signed checkpoints that are kept beside the log, by size. Whoever can alter
// the store can remove them; copies kept elsewhere count.
func Published(ctx context.Context, r store.Registry) ([][]byte, error) {
	items, err := r.Items(ctx, checkpointItems)
	if err != nil {
		return nil, err
	}
	var notes [][]byte
	for _, item := range items {
		var c storedCheckpoint
		if err := json.Unmarshal(item.Value, &c); err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w: %w", item.Name, assay.ErrDamaged, err)
		}
		notes = append(notes, []byte(c.Note))
	}
	return notes, nil
}

// PublishedAt returns when the published checkpoint of a size was kept, or got its last cosignature.
// The error is assay.ErrNotFound if there is none.
func PublishedAt(ctx context.Context, r store.Registry, size int64) (time.Time, error) {
	item, err := r.Item(ctx, checkpointItems, checkpointName(size))
	return item.Updated, err
}

// CurrentKey returns the verifier key that the store has for its log, or the empty string if no
// checkpoint was signed yet. It is a convenience: whoever can alter the store can alter it.
func CurrentKey(ctx context.Context, r store.Registry) (string, error) {
	item, err := r.Item(ctx, keyItems, currentKey)
	if errors.Is(err, assay.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var k keyChange
	if err := json.Unmarshal(item.Value, &k); err != nil {
		return "", fmt.Errorf("key of the audit log: %w: %w", assay.ErrDamaged, err)
	}
	return k.Key, nil
}

// Checkpoint checks the log since the last checkpoint, signs a new one, and keeps it in the registry.
// If nothing but earlier checkpoints was appended since the last, it returns that. The error is
// assay.ErrDamaged if the log differs from itself or from a known checkpoint, and
// assay.ErrForbidden if the key is not that of the log.
func (x *Authority) Checkpoint(ctx context.Context) (Signed, error) {
	signed, err := x.checkpoint(ctx)
	if errors.Is(err, errNoLast) { // another process may have kept its first one meanwhile
		signed, err = x.checkpoint(ctx)
	}
	return signed, err
}

func (x *Authority) checkpoint(ctx context.Context) (Signed, error) {
	origin, err := Origin(ctx, x.Audit)
	if err != nil {
		return Signed{}, err
	}
	last, err := x.last(ctx, origin)
	if err != nil {
		return Signed{}, err
	}
	var base *Checkpoint
	if last != nil {
		base = &last.Checkpoint
	}
	if _, err := Head(ctx, x.Audit, base); err != nil { // before anything is appended
		return Signed{}, err
	}
	changed, err := x.useKey(ctx, origin)
	if err != nil {
		return Signed{}, err
	}
	if last != nil && !changed {
		same, err := x.onlyCheckpoints(ctx, last.Size)
		if err != nil || same {
			return *last, err
		}
	}
	head, err := Head(ctx, x.Audit, base)
	if err != nil {
		return Signed{}, err
	}
	keys := []Key{x.Key}
	if x.Old != nil && changed {
		keys = append(keys, *x.Old)
	}
	signed, err := Sign(head, keys...)
	if err != nil {
		return Signed{}, err
	}
	err = x.keep(ctx, signed, KindPublished)
	if errors.Is(err, assay.ErrInvalid) { // another process has kept one of this size
		return x.kept(ctx, signed)
	}
	return signed, err
}

// kept returns the checkpoint that is kept of the same size, which must have the same root.
func (x *Authority) kept(ctx context.Context, s Signed) (Signed, error) {
	item, err := x.Registry.Item(ctx, checkpointItems, checkpointName(s.Size))
	if err != nil {
		return Signed{}, err
	}
	var c storedCheckpoint
	if err := json.Unmarshal(item.Value, &c); err != nil {
		return Signed{}, fmt.Errorf("checkpoint %s: %w: %w", item.Name, assay.ErrDamaged, err)
	}
	v, err := NewVerifier(s.Keys...)
	if err != nil {
		return Signed{}, err
	}
	other, err := v.Open([]byte(c.Note))
	if err == nil && other.Checkpoint != s.Checkpoint {
		err = fmt.Errorf("another root over %d entries was signed: %w", s.Size, assay.ErrDamaged)
	}
	return other, err
}

func checkpointName(size int64) string { return fmt.Sprintf("%020d", size) }

// last returns the largest of the checkpoints in the registry and those known otherwise, which must
// be of this log and signed by its key, or nil if there is none.
func (x *Authority) last(ctx context.Context, origin string) (*Signed, error) {
	stored, err := Published(ctx, x.Registry)
	if err != nil {
		return nil, err
	}
	keys := []string{x.Key.Public(origin)}
	if x.Old != nil {
		keys = append(keys, x.Old.Public(origin))
	}
	if x.Lost != "" {
		current, err := CurrentKey(ctx, x.Registry)
		if err != nil {
			return nil, err
		}
		if current != "" {
			keys = append(keys, current)
		}
	}
	verifier, err := NewVerifier(slices.Compact(keys)...)
	if err != nil {
		return nil, err
	}
	var last *Signed
	for _, data := range append(x.newest(stored), x.newest(x.Known)...) {
		s, err := verifier.Open(data)
		if err != nil {
			return nil, fmt.Errorf("the last checkpoint cannot be continued: %w", err)
		}
		if last == nil || s.Size > last.Size || s.Size == last.Size && len(s.Note) > len(last.Note) {
			last = &s
		}
	}
	return last, nil
}

// newest returns the note with the largest size, which was not verified.
func (x *Authority) newest(notes [][]byte) [][]byte {
	var best []byte
	size := int64(-1)
	for _, data := range notes {
		text, _, _ := cutNote(data)
		c, err := ParseCheckpoint(text)
		if err != nil || c.Size >= size { // a note of another form fails when it is opened
			best, size = data, c.Size
		}
		if err != nil {
			break
		}
	}
	if best == nil {
		return nil
	}
	return [][]byte{best}
}

// useKey makes the key that of the log, with an act, and reports whether it was not before.
func (x *Authority) useKey(ctx context.Context, origin string) (changed bool, err error) {
	current, err := CurrentKey(ctx, x.Registry)
	if err != nil {
		return false, err
	}
	change := keyChange{Key: x.Key.Public(origin), Replaces: current}
	act := store.Act{Kind: KindKeyAdded, Actor: x.Actor}
	switch {
	case current == change.Key:
		return false, nil
	case current == "":
	case x.Old != nil && x.Old.Public(origin) == current:
		act.Kind = KindKeyRotated
	case x.Lost != "":
		act.Kind, act.Reason = KindKeyLost, x.Lost
	default:
		return false, fmt.Errorf("the log's key is %s, this is another: sign with both to change it: %w", current, assay.ErrForbidden)
	}
	value, err := json.Marshal(change)
	if err != nil {
		return false, err
	}
	act.Subject = keyID(change.Key)
	item := store.RegistryItem{Kind: keyItems, Name: currentKey, Value: value}
	if current != "" {
		return true, x.Registry.Set(ctx, item, act)
	}
	if err = x.Registry.Create(ctx, item, act); !errors.Is(err, assay.ErrInvalid) {
		return true, err
	}
	if now, nowErr := CurrentKey(ctx, x.Registry); nowErr == nil && now == change.Key {
		return false, nil // another process was faster
	}
	return false, err
}

// keyID returns the hash of a verifier key, its second part.
func keyID(key string) string {
	_, rest, _ := strings.Cut(key, "+")
	id, _, _ := strings.Cut(rest, "+")
	return id
}

// onlyCheckpoints reports whether nothing but acts that keep checkpoints was appended after size.
func (x *Authority) onlyCheckpoints(ctx context.Context, size int64) (bool, error) {
	now, err := x.Audit.Size(ctx)
	if err != nil {
		return false, err
	}
	for e, err := range x.Audit.Entries(ctx, size, now) {
		if err != nil {
			return false, err
		}
		h, err := journal.OpenHeader(e.Header, e.Leaf)
		if err != nil || h.Act != KindPublished && h.Act != KindWitnessed {
			return false, err
		}
	}
	return true, nil
}

// keep stores a checkpoint in the registry.
func (x *Authority) keep(ctx context.Context, s Signed, kind string) error {
	value, err := json.Marshal(storedCheckpoint{string(s.Note)})
	if err != nil {
		return err
	}
	detail, err := json.Marshal(struct {
		Size    int64    `json:"size"`
		Root    string   `json:"root"`
		Signers []string `json:"signers"`
	}{s.Size, s.Root.String(), signers(s.Note)})
	if err != nil {
		return err
	}
	item := store.RegistryItem{Kind: checkpointItems, Name: checkpointName(s.Size), Value: value}
	act := store.Act{Kind: kind, Subject: item.Name, Actor: x.Actor, Detail: detail}
	if kind == KindPublished {
		return x.Registry.Create(ctx, item, act)
	}
	return x.Registry.Set(ctx, item, act)
}

// signers returns the names and key hashes of a note's signatures, unverified.
func signers(data []byte) []string {
	var all []string
	_, err := note.Open(data, note.VerifierList())
	var unverified *note.UnverifiedNoteError
	if errors.As(err, &unverified) {
		for _, s := range unverified.Note.UnverifiedSigs {
			all = append(all, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
		}
	}
	return all
}

// Cosign submits a checkpoint to the witnesses and keeps the cosignatures with it. If some fail, it
// returns the note with those of the others, and the errors joined.
func (x *Authority) Cosign(ctx context.Context, s Signed, witnesses ...*Witness) (Signed, error) {
	stored, err := Published(ctx, x.Registry)
	if err != nil {
		return s, err
	}
	cosigned := s
	var errs []error
	for _, w := range witnesses {
		if cosignedBy(cosigned.Note, w.key) {
			continue
		}
		merged, err := w.Add(ctx, x.Audit, Signed{Checkpoint: s.Checkpoint, Note: cosigned.Note}, lastCosigned(stored, w, s.Size))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		cosigned.Note = merged
	}
	if !bytes.Equal(cosigned.Note, s.Note) {
		errs = append(errs, x.keep(ctx, cosigned, KindWitnessed))
	}
	return cosigned, errors.Join(errs...)
}

// lastCosigned returns the size of the largest stored checkpoint up to size that the witness has
// cosigned, or 0.
func lastCosigned(stored [][]byte, w *Witness, size int64) int64 {
	for _, data := range slices.Backward(stored) {
		text, _, _ := cutNote(data)
		c, err := ParseCheckpoint(text)
		if err == nil && c.Size <= size && cosignedBy(data, w.key) {
			return c.Size
		}
	}
	return 0
}

// AnnouncedKeys returns the verifier keys that acts in the log announce, in their order. Acts that
// were erased announce none.
func AnnouncedKeys(ctx context.Context, a store.Audit) ([]string, error) {
	size, err := a.Size(ctx)
	if err != nil {
		return nil, err
	}
	var keys []string
	for e, err := range a.Entries(ctx, 0, size) {
		if err != nil {
			return nil, err
		}
		if e.Payload == nil || !bytes.Contains(e.Header, []byte(`"act":"audit.key_`)) {
			continue
		}
		act, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", e.Sequence, err)
		}
		var k keyChange
		if err := json.Unmarshal(act.Detail, &k); err != nil {
			return nil, fmt.Errorf("entry %d: %w: %w", e.Sequence, assay.ErrDamaged, err)
		}
		keys = append(keys, k.Key)
	}
	return keys, nil
}
