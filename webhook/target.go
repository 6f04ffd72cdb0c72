package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/store"
)

// Kind is the kind of the registry's items that are targets.
const Kind = "webhook"

// A Form is the form of the messages to a target.
type Form string

// The forms.
const (
	Standard Form = "standard" // Standard Webhooks: signed JSON
	Slack    Form = "slack"    // a message for a channel, unsigned: the address is the credential
)

// A Target is a receiver of messages. It is the value of an item of the registry, whose name is the
// target's.
type Target struct {
	// URL is the address, or a reference to where it is read from if it is a credential itself.
	// The scheme is https; http is allowed for this machine only.
	URL string `json:"url"`

	// Events are the kinds of act to tell about: a kind, a prefix with ".*", or "*".
	Events []string `json:"events"`

	Form Form `json:"form"`

	// Secrets are references to signing secrets: env:NAME, file:PATH or command:PROGRAM ARGUMENTS.
	// While a secret is replaced there are two, and every message is signed by both.
	Secrets []string `json:"secrets,omitempty"`

	// Link is the base URL of the pages that messages link to; empty: they name a command.
	Link string `json:"link,omitempty"`

	Active bool `json:"active"`

	// Since is the sequence of the last act of the log when the target was set. It gets messages
	// about later acts.
	Since int64 `json:"since"`
}

// Check reports why a target cannot be used, or nil. The error is assay.ErrInvalid and repeats no
// part of the target that may be a credential.
func (t Target) Check() error {
	if err := t.checkURL(); err != nil {
		return err
	}
	if len(t.Events) == 0 {
		return invalid("it has no events")
	}
	for _, e := range t.Events {
		if !eventPattern.MatchString(e) {
			return invalid("event %q: want a kind such as review.needed, a prefix such as review.*, or *", e)
		}
	}
	for _, s := range t.Secrets {
		if !isReference(s) {
			return invalid("secret: want env:NAME, file:PATH or command:PROGRAM, not the value itself")
		}
	}
	switch {
	case t.Form != Standard && t.Form != Slack:
		return invalid("form %q: want %s or %s", string(t.Form), Standard, Slack)
	case t.Form == Standard && len(t.Secrets) == 0:
		return invalid("a target of the standard form needs a secret")
	case t.Form == Slack && len(t.Secrets) > 0:
		return invalid("a target of the form slack has no secret besides its address")
	case len(t.Secrets) > 4:
		return invalid("more than 4 secrets")
	}
	if t.Link == "" {
		return nil
	}
	u, err := url.Parse(t.Link)
	if err != nil || !web(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return invalid("link: want an address such as https://assay.example.com")
	}
	return nil
}

func (t Target) checkURL() error {
	if isReference(t.URL) {
		return nil
	}
	if u, err := url.Parse(t.URL); t.Form == Slack || err == nil && u.Hostname() == "hooks.slack.com" {
		return invalid("an address of Slack is a credential: give env:NAME or file:PATH, where it is read from")
	}
	return checkAddress(t.URL)
}

// checkAddress checks the address of a receiver. The error does not repeat it.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || !web(u):
		return invalid("address: want https://HOST/PATH; http is for this machine only")
	case u.User != nil:
		return invalid("address: it contains a user name or a password")
	}
	return nil
}

// web reports whether u is an address that messages may be sent to.
func web(u *url.URL) bool {
	if u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && here
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, assay.ErrInvalid)...)
}

var (
	eventPattern = lazyregexp.New(`^(\*|[a-z_]+(\.[a-z_]+)*(\.\*)?)$`)
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// wants reports whether the target is told about acts of a kind.
func (t Target) wants(kind string) bool {
	return slices.ContainsFunc(t.Events, func(e string) bool {
		prefix, open := strings.CutSuffix(e, "*")
		return e == kind || open && strings.HasPrefix(kind, prefix)
	})
}

// isReference reports whether text names where a credential is read from.
func isReference(text string) bool {
	way, where, _ := strings.Cut(text, ":")
	switch way {
	case "env":
		return variableName.MatchString(where)
	case "file", "command":
		return strings.TrimSpace(where) != ""
	}
	return false
}

// mostCredential is the largest number of bytes of a file with a credential.
const mostCredential = 64 << 10

// Resolve returns a function that reads credentials from where a reference names them: env:NAME
// from getenv, file:PATH, or command:PROGRAM ARGUMENTS from the first line of the program's output.
// White space separates arguments, and quotes group them; no shell is involved. The program and its
// children are killed after 30 seconds. White space around a credential is removed.
func Resolve(getenv func(string) string) func(ctx context.Context, reference string) (string, error) {
	return func(ctx context.Context, reference string) (string, error) {
		value, err := read(ctx, getenv, reference)
		if err != nil {
			return "", fmt.Errorf("read a credential: %w", err)
		}
		if value = strings.TrimSpace(value); value == "" {
			return "", fmt.Errorf("the credential of %s is empty", reference)
		}
		return value, nil
	}
}

func read(ctx context.Context, getenv func(string) string, reference string) (string, error) {
	if !isReference(reference) {
		return "", invalid("want env:NAME, file:PATH or command:PROGRAM, not the value itself")
	}
	way, where, _ := strings.Cut(reference, ":")
	switch way {
	case "env":
		return getenv(where), nil
	case "file":
		f, err := os.Open(where)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return bounded(f)
	}
	value, err := secret.Command(ctx, where)
	return value.Reveal(), err
}

func bounded(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostCredential+1))
	if err == nil && len(data) > mostCredential {
		err = invalid("more than %d bytes", mostCredential)
	}
	return string(data), err
}

// A Named is a target with its name.
type Named struct {
	Name string `json:"name"`
	Target
}

// Targets returns the targets of a registry by name.
func Targets(ctx context.Context, r store.Registry) ([]Named, error) {
	items, err := r.Items(ctx, Kind)
	if err != nil {
		return nil, err
	}
	var all []Named
	for _, item := range items {
		n := Named{Name: item.Name}
		if err := json.Unmarshal(item.Value, &n.Target); err != nil {
			return nil, fmt.Errorf("webhook %q: %w: %w", item.Name, assay.ErrDamaged, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// targetName matches the names of targets.
var targetName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// Add stores a target under a name and replaces one of that name. It becomes active, and gets
// messages about the acts after now. by is the administrator.
func Add(ctx context.Context, tenant store.Tenant, name string, t Target, by assay.Principal, reason string) error {
	if !targetName.MatchString(name) {
		return invalid("name %q: want 1 to 64 letters, digits, '.', '_' and '-'", name)
	}
	if err := t.Check(); err != nil {
		return fmt.Errorf("webhook %s: %w", name, err)
	}
	size, err := tenant.Audit().Size(ctx)
	if err != nil {
		return err
	}
	t.Active, t.Since = true, size
	item, err := registryItem(name, t)
	if err != nil {
		return err
	}
	return tenant.Registry().Set(ctx, item,
		store.Act{Kind: "webhook.set", Subject: name, Actor: by, Reason: reason, Detail: t.detail()})
}

func registryItem(name string, t Target) (store.RegistryItem, error) {
	value, err := json.Marshal(t)
	return store.RegistryItem{Kind: Kind, Name: name, Value: value}, err
}

// detail is the part of a target that the audit log shows: an address may contain a credential.
func (t Target) detail() json.RawMessage {
	address := t.URL
	if !isReference(address) {
		address = "(none)"
		if u, err := url.Parse(t.URL); err == nil {
			address = u.Scheme + "://" + u.Host
		}
	}
	t.URL = address
	data, err := json.Marshal(t)
	if err != nil {
		return nil // a target has a JSON form: Add has made it
	}
	return data
}

// Remove removes a target and the messages that wait for it. The error is assay.ErrNotFound if
// there is no such target.
func Remove(ctx context.Context, tenant store.Tenant, name string, by assay.Principal, reason string) error {
	err := tenant.Registry().Delete(ctx, Kind, name, store.Act{Kind: "webhook.removed", Subject: name, Actor: by, Reason: reason})
	if err != nil {
		return err
	}
	return tenant.Outbox().Forget(ctx, name)
}
