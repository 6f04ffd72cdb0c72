// Package atlassian computes who may read an item of Jira or Confluence, where several conditions
// must all hold.
package atlassian

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/rest"
)

// Readers is one condition: the reader is one of the users or in one of the groups.
type Readers struct {
	Everyone bool
	Users    map[string]string // principal by account
	Groups   map[string]string // principal by group
	Unknown  bool              // there are more readers, who cannot be named
}

// AddUser adds a user by the account's id, with the e-mail address if it is known. A user without
// an id is Unknown.
func (r *Readers) AddUser(id, email string) {
	if id == "" {
		r.Unknown = true
		return
	}
	if r.Users == nil {
		r.Users = map[string]string{}
	}
	r.Users[id] = rest.User(email, id)
}

// AddGroup adds a group by its id. A group without an id is Unknown.
func (r *Readers) AddGroup(id string) {
	if id == "" {
		r.Unknown = true
		return
	}
	if r.Groups == nil {
		r.Groups = map[string]string{}
	}
	r.Groups[id] = rest.Group("", id)
}

// Stated reports whether the condition has any reader.
func (r Readers) Stated() bool {
	return r.Everyone || r.Unknown || len(r.Users) > 0 || len(r.Groups) > 0
}

// Members returns the members of a group as principals by account.
type Members func(ctx context.Context, group string) (map[string]string, error)

// ACL returns the ACL for readers who meet all conditions. Groups that occur in all of them stay
// groups; of the others, the members are compared. A group whose members may not be listed has none,
// so that it lets nobody read.
func ACL(ctx context.Context, members Members, conditions ...Readers) (assay.ACL, error) {
	conditions = slices.DeleteFunc(slices.Clone(conditions), func(r Readers) bool { return r.Everyone })
	if len(conditions) == 0 {
		return assay.RestrictTo("*")
	}
	first, rest := conditions[0], conditions[1:]
	if len(rest) == 0 {
		return assay.RestrictTo(append(slices.Collect(maps.Values(first.Users)), slices.Collect(maps.Values(first.Groups))...)...)
	}
	common := maps.Clone(first.Groups)
	for _, r := range rest {
		maps.DeleteFunc(common, func(id, _ string) bool { _, ok := r.Groups[id]; return !ok })
	}
	users, err := expand(ctx, members, first, common)
	if err != nil {
		return assay.ACL{}, err
	}
	for _, r := range rest {
		if len(users) == 0 {
			break
		}
		also, err := expand(ctx, members, r, common)
		if err != nil {
			return assay.ACL{}, err
		}
		for id := range users {
			principal, ok := also[id]
			if !ok {
				delete(users, id)
			} else if strings.Contains(principal, "@") {
				users[id] = principal
			}
		}
	}
	return assay.RestrictTo(append(slices.Collect(maps.Values(users)), slices.Collect(maps.Values(common))...)...)
}

// expand returns the users of a condition and the members of its groups, except those in common.
func expand(ctx context.Context, members Members, r Readers, common map[string]string) (map[string]string, error) {
	users := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(r.Groups)) {
		if _, ok := common[id]; ok {
			continue
		}
		in, err := members(ctx, id)
		switch s := rest.Status(err); {
		case err == nil:
			maps.Copy(users, in)
		case s != http.StatusForbidden && s != http.StatusNotFound:
			return nil, err
		}
	}
	for id, principal := range r.Users {
		if known := users[id]; strings.Contains(known, "@") {
			principal = known
		}
		users[id] = principal
	}
	return users, nil
}

// Denied reports whether an error of a request for permissions means that they may not be read,
// so that an item's ACL is unknown. Other errors concern the source.
func Denied(err error) bool {
	s := rest.Status(err)
	failed, ok := errors.AsType[*rest.Error](err)
	return s == http.StatusForbidden || s == http.StatusNotFound || s == http.StatusBadRequest || ok && failed.Malformed
}

// A Cache holds replies and refusals by key. It is not safe for concurrent use.
type Cache[T any] map[string]answer[T]

type answer[T any] struct {
	value T
	err   error
}

// Get returns the reply for a key, or asks for it. An error that ends the listing is not kept.
func (c Cache[T]) Get(key string, ask func() (T, error)) (T, error) {
	if a, ok := c[key]; ok {
		return a.value, a.err
	}
	value, err := ask()
	if err == nil || Denied(err) {
		c[key] = answer[T]{value, err}
	}
	return value, err
}

// Set keeps a reply or a refusal.
func (c Cache[T]) Set(key string, value T, err error) { c[key] = answer[T]{value, err} }

// Credentials are those of both kinds.
var Credentials = []source.Credential{
	{Name: "user", Env: "ATLASSIAN_USER", Help: "e-mail address of the account; none for a personal access token of Data Center", Optional: true},
	{Name: "token", Env: "ATLASSIAN_TOKEN", Help: "API token of the account, or a personal access token"},
}

// Authorize returns the function that sets the credentials of a request: Basic authorization with a
// user, and otherwise a bearer token. secrets are to be masked in errors.
func Authorize(kind string, c source.Config) (set func(context.Context, *http.Request) error, secrets []string, err error) {
	user, err := rest.Secret(kind, c, "user")
	if err != nil {
		return nil, nil, err
	}
	token, err := rest.Required(kind, c, "token")
	if err != nil {
		return nil, nil, err
	}
	value := "Bearer " + token
	if user != "" {
		value = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+token))
	}
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", value)
		return nil
	}, []string{token}, nil
}
