package identity

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// Kinds of items in the system's registry. Both are created under the ID of the key. The item of a
// key never changes, and its revocation is an item of its own, so that no concurrent change of a key
// can undo its revocation.
const (
	kindKey        = store.KeyKind
	kindRevocation = store.RevocationKind
)

// MaxKeyAge is the longest time for which an API key can be made to be valid.
const MaxKeyAge = 10 * 366 * 24 * time.Hour

// usesEvery is the least time between two writes of when a key was last used.
const usesEvery = time.Minute

// A KeySpec is what a new API key is for.
type KeySpec struct {
	Tenant  string
	User    string // the principal that the key acts as; a person or a service
	Groups  []string
	Roles   []RoleIn  // at least one
	Expires time.Time // zero: never
}

// A Key is an API key without its secret.
type Key struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	User    string    `json:"user"`
	Groups  []string  `json:"groups,omitempty"`
	Roles   []string  `json:"roles"` // as ParseRole reads them
	Created time.Time `json:"created"`
	By      string    `json:"created_by"`
	Expires time.Time `json:"expires,omitzero"`  // zero: never
	Rotates string    `json:"rotates,omitempty"` // ID of the key that it replaces

	// What follows is stored apart.
	Revoked *Revocation `json:"revoked,omitempty"` // nil: not revoked
	Used    time.Time   `json:"used,omitzero"`     // to a minute or so; zero: never
}

// A Revocation ends a key.
type Revocation struct {
	At     time.Time `json:"at"`            // when it was decided
	From   time.Time `json:"from,omitzero"` // when it takes effect; zero: at once, whatever a clock says
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// holds reports whether the key is refused.
func (r *Revocation) holds(now time.Time) bool {
	return r != nil && (r.From.IsZero() || !now.Before(r.From))
}

// State returns "active", "expired", "revoked" or, before a revocation that lies ahead, "ending".
func (k Key) State(now time.Time) string {
	switch {
	case k.Revoked.holds(now):
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	case k.Revoked != nil:
		return "ending"
	}
	return "active"
}

// A storedKey is the item of a key in the registry.
type storedKey struct {
	Key
	Hash string `json:"hash,omitempty"` // SHA-256 of hashKey, hexadecimal; empty in an act
}

// Keys are the API keys of a store. They are not cached, so that a revocation holds at once, in every
// process. Keys is safe for concurrent use.
type Keys struct {
	system store.System
	now    func() time.Time

	mu   sync.Mutex
	used map[string]time.Time // when this process last recorded the use of a key
}

// NewKeys returns the API keys in a store's system. now is the clock; nil: time.Now.
func NewKeys(system store.System, now func() time.Time) *Keys {
	if now == nil {
		now = time.Now
	}
	return &Keys{system: system, now: now, used: map[string]time.Time{}}
}

// Create makes a key. text is the key itself, which is stored nowhere and cannot be had again. The
// error is assay.ErrInvalid for a spec with an invalid or missing part.
func (k *Keys) Create(ctx context.Context, actor assay.Principal, spec KeySpec) (key Key, text string, err error) {
	key, text, err = k.create(ctx, actor, spec, "")
	if err != nil {
		return Key{}, "", fmt.Errorf("create an API key: %w", err)
	}
	return key, text, nil
}

func (k *Keys) create(ctx context.Context, actor assay.Principal, spec KeySpec, rotates string) (Key, string, error) {
	now := k.now().UTC().Truncate(time.Second)
	if err := spec.check(now); err != nil {
		return Key{}, "", err
	}
	id, text := newKeyText()
	_, secret, _ := splitKey(text)
	hash := hashKey(id, secret)
	key := Key{
		ID: id, Tenant: spec.Tenant, User: spec.User, Groups: slices.Compact(slices.Sorted(slices.Values(spec.Groups))),
		Created: now, By: actor.User, Rotates: rotates,
	}
	if !spec.Expires.IsZero() {
		key.Expires = spec.Expires.UTC().Truncate(time.Second)
	}
	for _, r := range spec.Roles {
		key.Roles = append(key.Roles, r.String())
	}
	value, err := json.Marshal(storedKey{key, hex.EncodeToString(hash[:])})
	if err != nil {
		return Key{}, "", err
	}
	detail, err := json.Marshal(key)
	if err != nil {
		return Key{}, "", err
	}
	act := store.Act{Kind: "key.created", Subject: id, Actor: actor, Detail: detail}
	if err := k.system.Registry().Create(ctx, store.RegistryItem{Kind: kindKey, Name: id, Value: value}, act); err != nil {
		return Key{}, "", err
	}
	return key, text, nil
}

func (s KeySpec) check(now time.Time) error {
	if err := checkTenant(s.Tenant); err != nil {
		return err
	}
	if err := checkUser(s.User); err != nil {
		return err
	}
	for _, g := range s.Groups {
		if err := checkName("group", g); err != nil {
			return err
		}
	}
	if len(s.Roles) == 0 {
		return fmt.Errorf("a key needs a role: %w", assay.ErrInvalid)
	}
	for _, r := range s.Roles { // also those that ParseRole has not made
		if _, err := ParseRole(r.String()); err != nil {
			return err
		}
	}
	if !s.Expires.IsZero() && (!s.Expires.After(now) || s.Expires.Sub(now) > MaxKeyAge) {
		return fmt.Errorf("a key expires in the future and within ten years: %w", assay.ErrInvalid)
	}
	return nil
}

// List returns all keys by their time of creation, also expired and revoked ones. An empty tenant
// means those of all tenants.
func (k *Keys) List(ctx context.Context, tenant string) ([]Key, error) {
	items, err := k.system.Registry().Items(ctx, kindKey)
	if err != nil {
		return nil, err
	}
	revocations, err := k.system.Registry().Items(ctx, kindRevocation) // after the keys, so that none is missed
	if err != nil {
		return nil, err
	}
	used, err := k.system.Uses().Last(ctx)
	if err != nil {
		return nil, err
	}
	var keys []Key
	for _, item := range items {
		stored, err := openKey(item)
		if err != nil {
			return nil, err
		}
		if tenant != "" && stored.Tenant != tenant {
			continue
		}
		if i, found := slices.BinarySearchFunc(revocations, item.Name, func(r store.RegistryItem, id string) int { return cmpText(r.Name, id) }); found {
			if stored.Revoked, err = openRevocation(revocations[i]); err != nil {
				return nil, err
			}
		}
		stored.Used = used[stored.ID]
		keys = append(keys, stored.Key)
	}
	slices.SortStableFunc(keys, func(a, b Key) int { return a.Created.Compare(b.Created) })
	return keys, nil
}

func cmpText(a, b string) int { return bytes.Compare([]byte(a), []byte(b)) }

// Key returns the key with an ID, or assay.ErrNotFound.
func (k *Keys) Key(ctx context.Context, id string) (Key, error) {
	stored, err := k.load(ctx, id)
	if err != nil {
		return Key{}, err
	}
	used, err := k.system.Uses().Last(ctx)
	stored.Used = used[id]
	return stored.Key, err
}

// load returns a key with its revocation, which it reads last.
func (k *Keys) load(ctx context.Context, id string) (storedKey, error) {
	item, err := k.system.Registry().Item(ctx, kindKey, id)
	if err != nil {
		return storedKey{}, err
	}
	stored, err := openKey(item)
	if err != nil {
		return storedKey{}, err
	}
	revocation, err := k.system.Registry().Item(ctx, kindRevocation, id)
	switch {
	case err == nil:
		stored.Revoked, err = openRevocation(revocation)
	case errors.Is(err, assay.ErrNotFound):
		err = nil
	}
	return stored, err
}

func openKey(item store.RegistryItem) (storedKey, error) {
	var stored storedKey
	err := decodeStrictly(item.Value, &stored)
	if err == nil && (stored.ID != item.Name || stored.Revoked != nil) {
		err = errors.New("it is another key's")
	}
	if err != nil {
		return storedKey{}, fmt.Errorf("API key %q: %w: %w", item.Name, err, assay.ErrDamaged)
	}
	return stored, nil
}

func openRevocation(item store.RegistryItem) (*Revocation, error) {
	var r Revocation
	if err := decodeStrictly(item.Value, &r); err != nil {
		return nil, fmt.Errorf("revocation of the API key %q: %w: %w", item.Name, err, assay.ErrDamaged)
	}
	return &r, nil
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

// Revoke makes a key invalid at once, in every process. Revoking it again changes nothing. The error
// is assay.ErrNotFound if there is no such key.
func (k *Keys) Revoke(ctx context.Context, actor assay.Principal, id, reason string) error {
	stored, err := k.load(ctx, id)
	if err != nil {
		return fmt.Errorf("revoke an API key: %w", err)
	}
	if stored.Revoked.holds(k.now()) {
		return nil
	}
	if err := k.revoke(ctx, k.system.Registry().Set, actor, id, Revocation{Reason: reason}); err != nil {
		return fmt.Errorf("revoke an API key: %w", err)
	}
	return nil
}

type setItem = func(context.Context, store.RegistryItem, store.Act) error

// revoke stores a revocation with set, which is Set or Create.
func (k *Keys) revoke(ctx context.Context, set setItem, actor assay.Principal, id string, r Revocation) error {
	r.At, r.By = k.now().UTC().Truncate(time.Second), actor.User
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	act := store.Act{Kind: "key.revoked", Subject: id, Actor: actor, Reason: r.Reason}
	return set(ctx, store.RegistryItem{Kind: kindRevocation, Name: id, Value: value}, act)
}

// Rotate makes a key that allows what another does, and revokes the other one after grace, which
// may be zero. If it fails between the two, both keys are valid, both are in the log, and Rotate can be
// repeated. The error is assay.ErrInvalid if the key has expired or was revoked.
func (k *Keys) Rotate(ctx context.Context, actor assay.Principal, id string, grace time.Duration, expires time.Time) (key Key, text string, err error) {
	old, err := k.load(ctx, id)
	now := k.now().UTC()
	switch {
	case err != nil:
	case grace < 0:
		err = fmt.Errorf("the time until the old key is revoked is negative: %w", assay.ErrInvalid)
	case old.State(now) != "active":
		err = fmt.Errorf("key %s is %s: %w", id, old.State(now), assay.ErrInvalid)
	}
	if err != nil {
		return Key{}, "", fmt.Errorf("rotate an API key: %w", err)
	}
	roles, err := ParseRoles(old.Roles...)
	if err != nil {
		return Key{}, "", fmt.Errorf("rotate the API key %q: %w", id, err)
	}
	key, text, err = k.create(ctx, actor, KeySpec{Tenant: old.Tenant, User: old.User, Groups: old.Groups, Roles: roles, Expires: expires}, id)
	if err != nil {
		return Key{}, "", fmt.Errorf("rotate an API key: %w", err)
	}
	// Create fails if the key was revoked meanwhile, so that a grace never extends its life.
	r := Revocation{Reason: "rotated to " + key.ID}
	if grace > 0 {
		r.From = now.Add(grace).Truncate(time.Second)
	}
	if err := k.revoke(ctx, k.system.Registry().Create, actor, id, r); err != nil {
		revokeErr := k.Revoke(context.WithoutCancel(ctx), actor, key.ID, "the rotation failed")
		return Key{}, "", errors.Join(fmt.Errorf("rotate an API key: revoke the old one: %w", err), revokeErr)
	}
	return key, text, nil
}

// DeleteTenant removes all keys of a tenant that is deleted, each with an act. It may be repeated
// after an error.
func (k *Keys) DeleteTenant(ctx context.Context, actor assay.Principal, tenant, reason string) error {
	items, err := k.system.Registry().Items(ctx, kindKey)
	if err != nil {
		return fmt.Errorf("delete the API keys of a tenant: %w", err)
	}
	for _, item := range items {
		stored, err := openKey(item)
		if err != nil {
			return fmt.Errorf("delete the API keys of a tenant: %w", err)
		}
		if stored.Tenant != tenant {
			continue
		}
		if err := k.delete(ctx, actor, item.Name, reason); err != nil {
			return fmt.Errorf("delete the API keys of a tenant: %w", err)
		}
	}
	return nil
}

// delete removes a key first, so that it is refused however far this comes.
func (k *Keys) delete(ctx context.Context, actor assay.Principal, id, reason string) error {
	act := store.Act{Kind: "key.deleted", Subject: id, Actor: actor, Reason: reason}
	if err := k.system.Registry().Delete(ctx, kindKey, id, act); err != nil {
		return err
	}
	act.Kind = "key.revocation_deleted"
	if err := k.system.Registry().Delete(ctx, kindRevocation, id, act); err != nil && !errors.Is(err, assay.ErrNotFound) {
		return err
	}
	return k.system.Uses().Forget(ctx, id)
}

// noHash stands for the stored hash of an unknown key, so that the comparison takes as long. It is
// random.
var noHash = sync.OnceValue(func() (h [sha256.Size]byte) {
	_, _ = rand.Read(h[:]) // never fails
	return h
})

// grant returns what a key allows.
func (k *Keys) grant(ctx context.Context, text string) (Grant, *Refusal) {
	id, secret, ok := splitKey(text)
	if !ok {
		return Grant{}, refuse(Malformed, "the API key is mistyped or cut off")
	}
	g, refusal := k.verify(ctx, id, secret)
	if refusal != nil {
		refusal.Key = id
	}
	return g, refusal
}

func (k *Keys) verify(ctx context.Context, id, secret string) (Grant, *Refusal) {
	stored, err := k.load(ctx, id)
	missing := errors.Is(err, assay.ErrNotFound)
	if err != nil && !missing {
		if r := interrupted(ctx); r != nil {
			return Grant{}, r
		}
		return Grant{}, refuse(StoreFailed, err.Error())
	}
	want := noHash()
	if !missing {
		b, err := hex.DecodeString(stored.Hash)
		if err != nil || len(b) != len(want) {
			return Grant{}, refuse(StoreFailed, "the stored hash has no valid form")
		}
		want = [sha256.Size]byte(b)
	}
	got := hashKey(id, secret)
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || missing {
		return Grant{}, refuse(UnknownKey, "")
	}
	if err := checkUser(stored.User); err != nil {
		return Grant{}, refuse(StoreFailed, err.Error())
	}
	switch stored.State(k.now()) {
	case "revoked":
		return Grant{}, refuse(Revoked, "")
	case "expired":
		return Grant{}, refuse(Expired, "")
	}
	roles, err := ParseRoles(stored.Roles...)
	if err != nil {
		return Grant{}, refuse(StoreFailed, err.Error())
	}
	g := Grant{
		Tenant:    stored.Tenant,
		Principal: assay.Principal{User: stored.User, Groups: stored.Groups, Roles: namesOf(roles), Key: id},
		Rights:    rightsOf(roles), Expires: stored.Expires,
	}
	if r := stored.Revoked; r != nil && (g.Expires.IsZero() || r.From.Before(g.Expires)) {
		g.Expires = r.From
	}
	return g, nil
}

// Recheck returns an error if the grant was given by an API key that is not valid any more: it was
// revoked, has expired or was deleted. Grants of other credentials end with their expiry only.
func (k *Keys) Recheck(ctx context.Context, g Grant) error {
	if g.Principal.Key == "" {
		return nil
	}
	stored, err := k.load(ctx, g.Principal.Key)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return refuse(UnknownKey, "")
	case err != nil:
		return err
	case stored.Tenant != g.Tenant || stored.User != g.Principal.User:
		return refuse(UnknownKey, "")
	}
	switch stored.State(k.now()) {
	case "revoked":
		return refuse(Revoked, "")
	case "expired":
		return refuse(Expired, "")
	}
	return nil
}

// touch records that a key was used, at most once a minute.
func (k *Keys) touch(ctx context.Context, id string) error {
	now := k.now()
	k.mu.Lock()
	last, seen := k.used[id]
	due := !seen || now.Sub(last) >= usesEvery || now.Before(last)
	if due {
		k.used[id] = now
	}
	k.mu.Unlock()
	if !due {
		return nil
	}
	return k.system.Uses().Touch(ctx, id, now, usesEvery)
}
