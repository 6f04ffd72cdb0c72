package source

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
)

// AllowPrivate is the name of the option that lets the client of a source reach addresses outside
// the public internet, such as a server in the own network.
const AllowPrivate = "allow-private"

// AllowPrivateOption is the Option of AllowPrivate, for the kinds that have it.
var AllowPrivateOption = Option{Name: AllowPrivate, Default: "false",
	Help: "true: also connect to private addresses, such as a server in the own network"}

// RequestTimeout bounds one request of a source, including its body.
const RequestTimeout = 2 * time.Minute

// WithDefaults returns c with HTTP, Dial, MaxBytes, Now, Sleep and Credential set.
func (c Config) WithDefaults() Config {
	if c.HTTP == nil || c.Dial == nil {
		c = c.connected()
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxFileBytes)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Credential == nil {
		c.Credential = func(string) (string, error) { return "", nil }
	}
	return c
}

// connected returns c with HTTP and Dial by the default egress rules: the host of the target, and
// for HTTP all public addresses.
func (c Config) connected() Config {
	var guard *egress.Guard
	hosts := egress.List{}
	if r, ok := egress.HostOf(c.Target); ok {
		hosts = append(hosts, r)
	}
	if c.HTTP == nil {
		scope := guard.Scope(egress.Scope{Purpose: egress.Source, Hosts: hosts, Public: true, Private: c.Options[AllowPrivate] == "true"})
		c.HTTP = scope.Client(RequestTimeout)
	}
	if c.Dial == nil {
		c.Dial = guard.Scope(egress.Scope{Purpose: egress.Source, Hosts: hosts, Private: true}).DialContext
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TooLarge returns the skip of an item with more than MaxBytes.
func (c Config) TooLarge(uri string, size int64) *Skip {
	return &Skip{URI: uri, Reason: TooLarge, Detail: sizeError{size, c.MaxBytes}.Error()}
}

// WebAddress parses the address of a page or feed. It has a host, no user, and the scheme http or
// https.
func WebAddress(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, false
	}
	return u, u.Scheme == "http" || u.Scheme == "https"
}

// Complete returns the options of a source of kind k: those given, and the defaults of the others.
// The error is assay.ErrInvalid for an option that k does not have.
func (k Kind) Complete(given map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for _, o := range k.Options {
		all[o.Name] = o.Default
	}
	for name, value := range given {
		if _, ok := all[name]; !ok {
			return nil, fmt.Errorf("a source of kind %s has no option %q, only %s: %w", k.Name, name, optionNames(k), assay.ErrInvalid)
		}
		all[name] = value
	}
	return all, nil
}

func optionNames(k Kind) string {
	names := []string{}
	for _, o := range k.Options {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// ChangesOf yields the items of a sweep as changes, and then a cursor. It implements Changes of a
// kind that is SweepOnly.
func ChangesOf(sweep iter.Seq2[Item, error]) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for item, err := range sweep {
			if !yield(Change{Item: item}, err) {
				return
			}
			if _, skipped := AsSkip(err); err != nil && !skipped {
				return
			}
		}
		yield(Change{Cursor: "swept"}, nil)
	}
}
