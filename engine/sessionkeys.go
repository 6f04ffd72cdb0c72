package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// Keys returns the API keys of the tenant by their time of creation, also expired and revoked ones.
func (s *Session) Keys(ctx context.Context) ([]identity.Key, error) {
	return call(ctx, s, "Keys", func(*sessionCall) ([]identity.Key, error) { return s.host.keys.List(ctx, s.grant.Tenant) })
}

// CreateKey makes an API key of the tenant that allows no more than the session's grant: its user is
// that of the grant (also if spec names none), its groups are some of the user's, and its roles give
// no right that the grant lacks. A grant of an API key that expires makes no key that expires later.
// Keys for other users are made on the command line, because they give sight of the documents of
// those users. More is assay.ErrForbidden; see identity.Keys.Create for the rest.
func (s *Session) CreateKey(ctx context.Context, spec identity.KeySpec) (key identity.Key, text string, err error) {
	err = do(ctx, s, "CreateKey", func(c *sessionCall) error {
		spec.Tenant, spec.User = s.grant.Tenant, cmp.Or(spec.User, s.grant.Principal.User)
		if err := s.checkKey(spec); err != nil {
			return err
		}
		key, text, err = s.host.keys.Create(ctx, c.acting, spec)
		return err
	})
	return key, text, err
}

// RotateKey is identity.Keys.Rotate for a key that CreateKey could make.
func (s *Session) RotateKey(ctx context.Context, id string, grace time.Duration, expires time.Time) (key identity.Key, text string, err error) {
	err = do(ctx, s, "RotateKey", func(c *sessionCall) error {
		old, err := s.tenantKey(ctx, id)
		if err != nil {
			return err
		}
		roles, err := identity.ParseRoles(old.Roles...)
		if err != nil {
			return err
		}
		if err := s.checkKey(identity.KeySpec{Tenant: old.Tenant, User: old.User, Groups: old.Groups, Roles: roles, Expires: expires}); err != nil {
			return err
		}
		key, text, err = s.host.keys.Rotate(ctx, c.acting, id, grace, expires)
		return err
	})
	return key, text, err
}

// RevokeKey is identity.Keys.Revoke for a key of the tenant, whoever uses it.
func (s *Session) RevokeKey(ctx context.Context, id, reason string) error {
	return act(ctx, s, "RevokeKey", id, reason, func(c *sessionCall) error {
		if _, err := s.tenantKey(ctx, id); err != nil {
			return err
		}
		return s.host.keys.Revoke(ctx, c.acting, id, reason)
	})
}

// tenantKey returns an API key of the tenant. The error is the same whether there is no such key or it
// is another tenant's.
func (s *Session) tenantKey(ctx context.Context, id string) (identity.Key, error) {
	key, err := s.host.keys.Key(ctx, id)
	if err == nil && key.Tenant != s.grant.Tenant || errors.Is(err, assay.ErrNotFound) {
		return identity.Key{}, fmt.Errorf("API key %q: %w", id, assay.ErrNotFound)
	}
	return key, err
}

// checkKey returns assay.ErrForbidden for a key that would allow more than the grant. The command line
// has all rights on this machine.
func (s *Session) checkKey(spec identity.KeySpec) error {
	own := s.grant.Principal
	if own.User == assay.Local().User {
		return nil
	}
	if spec.User != own.User {
		return fmt.Errorf("a session makes keys for its own user only: %w", assay.ErrForbidden)
	}
	for _, group := range spec.Groups {
		if !slices.Contains(own.Groups, group) {
			return fmt.Errorf("a key may have your own groups only: %w", assay.ErrForbidden)
		}
	}
	if !s.grant.Covers(spec.Roles...) {
		return fmt.Errorf("a key may have your own rights only: %w", assay.ErrForbidden)
	}
	ends := s.grant.Expires
	if own.Key != "" && !ends.IsZero() && (spec.Expires.IsZero() || spec.Expires.After(ends)) {
		return fmt.Errorf("a key that is made with a key expires no later than that, %s: %w", ends.UTC().Format(time.RFC3339), assay.ErrForbidden)
	}
	return nil
}
