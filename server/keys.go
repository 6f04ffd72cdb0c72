package server

import (
	"context"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
)

// keyRoutes are about API keys.
func keyRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/keys", "keys.list", "Keys", "List the tenant's API keys",
			func(ctx context.Context, s *engine.Session, _ none) (keyList, error) {
				all, err := s.Keys(ctx)
				return keyList{all}, err
			}),
		route("POST", "/api/v1/keys", "keys.create", "CreateKey", "Create an API key, which is shown only now", createKey),
		route("POST", "/api/v1/keys/{id}/rotate", "keys.rotate", "RotateKey", "Replace an API key", rotateKey),
		route("DELETE", "/api/v1/keys/{id}", "keys.revoke", "RevokeKey", "Revoke an API key", revokeKey),
	}
}

type keyList struct {
	Keys []identity.Key `json:"keys"` // also expired and revoked ones
}

type createKeyIn struct {
	Body newKey `body:"application/json"`
}

// A newKey is the request for an API key.
type newKey struct {
	User    string    `json:"user,omitempty"`   // empty: the caller
	Groups  []string  `json:"groups,omitempty"` // some of the caller's
	Roles   []string  `json:"roles"`            // such as "reader" or "editor:handbook,policies"; no more than the caller's
	Expires time.Time `json:"expires,omitzero"` // none: never
}

// A createdKey is an API key with its text.
type createdKey struct {
	identity.Key
	Text string `json:"text"` // the key itself, which is stored nowhere
}

func createKey(ctx context.Context, s *engine.Session, in createKeyIn) (createdKey, error) {
	roles, err := identity.ParseRoles(in.Body.Roles...)
	if err != nil {
		return createdKey{}, err
	}
	key, text, err := s.CreateKey(ctx, identity.KeySpec{User: in.Body.User, Groups: in.Body.Groups, Roles: roles, Expires: in.Body.Expires})
	return createdKey{key, text}, err
}

type rotateKeyIn struct {
	ID   string   `path:"id"`
	Body rotation `body:"application/json"`
}

// A rotation says how an API key is replaced.
type rotation struct {
	Grace   int       `json:"grace_seconds,omitempty"` // until the old key is revoked
	Expires time.Time `json:"expires,omitzero"`        // of the new key; none: never
}

func rotateKey(ctx context.Context, s *engine.Session, in rotateKeyIn) (createdKey, error) {
	grace, err := seconds("grace_seconds", in.Body.Grace)
	if err != nil {
		return createdKey{}, err
	}
	key, text, err := s.RotateKey(ctx, in.ID, grace, in.Body.Expires)
	return createdKey{key, text}, err
}

type revokeKeyIn struct {
	ID     string `path:"id"`
	Reason string `query:"reason"` // for the audit log
}

func revokeKey(ctx context.Context, s *engine.Session, in revokeKeyIn) (none, error) {
	return none{}, s.RevokeKey(ctx, in.ID, in.Reason)
}
