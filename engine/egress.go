package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// An Egress decides which hosts an engine's sources and pages may be reached at. Providers made with
// it are subject to it as well.
type Egress = egress.Guard

// EgressRules configure an Egress. docs/egress.md describes the form of rules.
type EgressRules struct {
	Offline bool     `json:"offline,omitempty"` // nothing leaves this machine, not even queries of DNS
	Allow   []string `json:"allow,omitempty"`   // nothing else is reached; nil: no list
	Also    []string `json:"also,omitempty"`    // reached besides the hosts that are configured
}

// NewEgress returns an Egress. A rule without a valid form is assay.ErrInvalid.
func NewEgress(r EgressRules) (*Egress, error) {
	allow, also, err := r.lists()
	if err != nil {
		return nil, err
	}
	return egress.New(egress.Config{Offline: r.Offline, Allow: allow, Also: also}), nil
}

func (r EgressRules) lists() (allow, also egress.List, err error) {
	if r.Allow != nil {
		if allow, err = egress.ParseRules(r.Allow); err != nil {
			return nil, nil, err
		}
	}
	also, err = egress.ParseRules(r.Also)
	return allow, also, err
}

// egressKind and egressName identify the tenant's own rules in the registry.
const (
	egressKind = "egress"
	egressName = "rules"
)

// RestrictEgress sets the tenant's own rules, which only narrow those of the Egress: a host must be
// admitted by both. Rules without a list and not Offline remove them. Also is assay.ErrInvalid.
func (e *Engine) RestrictEgress(ctx context.Context, principal assay.Principal, r EgressRules, reason string) error {
	if len(r.Also) > 0 {
		return fmt.Errorf("a tenant's egress rules only narrow those of the program: %w", assay.ErrInvalid)
	}
	if _, _, err := r.lists(); err != nil {
		return err
	}
	act := store.Act{Kind: "egress.set", Subject: egressName, Actor: principal, Reason: reason}
	if r.Allow == nil && !r.Offline {
		act.Kind = "egress.removed"
		err := e.tenant.Registry().Delete(ctx, egressKind, egressName, act)
		if errors.Is(err, assay.ErrNotFound) {
			return nil
		}
		return err
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return e.tenant.Registry().Set(ctx, store.RegistryItem{Kind: egressKind, Name: egressName, Value: value}, act)
}

// EgressRestriction returns the tenant's own rules; zero: there are none.
func (e *Engine) EgressRestriction(ctx context.Context) (EgressRules, error) {
	item, err := e.tenant.Registry().Item(ctx, egressKind, egressName)
	if errors.Is(err, assay.ErrNotFound) {
		return EgressRules{}, nil
	}
	var r EgressRules
	if err == nil {
		err = json.Unmarshal(item.Value, &r)
	}
	if err != nil {
		return EgressRules{}, fmt.Errorf("the tenant's egress rules: %w", err)
	}
	return r, nil
}

// egressCache holds the tenant's rules as of a version of the registry.
type egressCache struct {
	mu      sync.Mutex
	version int64
	read    bool
	list    egress.List
}

// egressList returns the tenant's list; nil: it has none.
func (e *Engine) egressList(ctx context.Context) (egress.List, error) {
	version, err := e.tenant.Registry().Version(ctx)
	if err != nil {
		return nil, err
	}
	c := &e.egressRules
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read && c.version == version {
		return c.list, nil
	}
	r, err := e.EgressRestriction(ctx)
	if err != nil {
		return nil, err
	}
	list, _, err := r.lists()
	if err != nil {
		return nil, err
	}
	if r.Offline {
		list = egress.MustRules("localhost", "127.0.0.0/8", "::1") // this machine
	}
	c.version, c.read, c.list = version, true, list
	return list, nil
}

// outgoing returns a context whose connections are made on behalf of the tenant.
func (e *Engine) outgoing(ctx context.Context) context.Context {
	return egress.WithTenant(ctx, &egress.Tenant{Allow: e.egressList, Refused: e.egressRefused})
}

// egressRefused appends a refused connection to the audit log, and raises an alarm.
func (e *Engine) egressRefused(ctx context.Context, refused *egress.RefusedError) error {
	more, due := e.refusals.due(refused.Purpose+" "+refused.Host, e.config.Now())
	if !due {
		return nil
	}
	detail, err := json.Marshal(map[string]any{"host": refused.Host, "purpose": refused.Purpose, "rule": refused.Rule, "not_logged": more})
	if err != nil {
		return err
	}
	return e.alarm(ctx, Alarm{Kind: AlarmEgress, Subject: refused.Purpose, Detail: detail})
}

// Refusals of one host are logged once a minute, and those of all hosts at most sixty times an hour.
const (
	refusalEvery = time.Minute
	refusalHour  = 60
)

// refusals limits how many refused connections are logged.
type refusals struct {
	mu      sync.Mutex
	last    map[string]time.Time // by purpose and host, of the current hour
	hour    time.Time            // its beginning
	logged  int                  // in it
	skipped int                  // since the last one that was logged
}

// due reports whether a refusal is to be logged, and how many were not since the last one.
func (r *refusals) due(key string, now time.Time) (skipped int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || now.Sub(r.hour) >= time.Hour || now.Before(r.hour) {
		r.last, r.hour, r.logged = map[string]time.Time{}, now, 0
	}
	at, before := r.last[key]
	if r.logged >= refusalHour || before && now.Sub(at) < refusalEvery {
		r.skipped++
		return 0, false
	}
	r.last[key] = now
	r.logged++
	skipped, r.skipped = r.skipped, 0
	return skipped, true
}

// sourceScope returns the right of a source to connect: to the hosts of its target, of its options
// that are addresses, and of its kind.
func (e *Engine) sourceScope(kind source.Kind, target string, options map[string]string) (*egress.Scope, error) {
	hosts := egress.List{}
	for _, address := range append([]string{target}, mapValues(options)...) {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			continue
		}
		if r, ok := egress.HostOf(address); ok {
			hosts = append(hosts, r)
		}
		if strings.EqualFold(u.Scheme, "sqlserver") { // whose instances have ports of their own
			if r, err := egress.ParseRule(u.Hostname()); err == nil {
				hosts = append(hosts, r)
			}
		}
	}
	fixed, err := egress.ParseRules(kind.Hosts)
	if err != nil {
		return nil, fmt.Errorf("hosts of the kind %s: %w", kind.Name, err)
	}
	return e.config.Egress.Scope(egress.Scope{
		Purpose: egress.Source, Hosts: hosts, Fixed: fixed, Private: options[source.AllowPrivate] == "true",
	}), nil
}

func mapValues(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// databaseScope is s for the connections to databases, which are usually private.
func databaseScope(s *egress.Scope) *egress.Scope {
	private := *s
	private.Private = true
	return &private
}

// An EgressVerdict says whether a host may be reached, as far as its name decides.
type EgressVerdict struct {
	Purpose string `json:"purpose"`
	Name    string `json:"name"` // of the provider or source; empty: any
	Host    string `json:"host"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"` // that decides
}

// EgressScope is the right to connect for one purpose.
type EgressScope = egress.Scope

// VerdictOf returns the verdict on an address. It appends nothing to the audit log.
func VerdictOf(ctx context.Context, s *EgressScope, name string, u *url.URL) EgressVerdict {
	v := EgressVerdict{Purpose: s.Purpose, Name: name, Host: HostPort(u)}
	rule, err := s.Explain(ctx, u)
	v.Allowed, v.Rule = err == nil, rule
	if refused, ok := errors.AsType[*egress.RefusedError](err); ok {
		v.Rule = refused.Rule
	} else if err != nil {
		v.Rule = err.Error()
	}
	return v
}

// HostPort returns HOST:PORT of an address, or HOST if it has no port that is known.
func HostPort(u *url.URL) string { return egress.HostPort(u) }

// EgressContext returns a context in which VerdictOf takes the tenant's rules into account.
func (e *Engine) EgressContext(ctx context.Context) context.Context {
	return egress.WithTenant(ctx, &egress.Tenant{Allow: e.egressList})
}

// EgressVerdicts returns the verdicts on an address that no configuration names.
func EgressVerdicts(ctx context.Context, g *Egress, u *url.URL) []EgressVerdict {
	return []EgressVerdict{
		VerdictOf(ctx, g.Scope(egress.Scope{Purpose: egress.Page, Public: true}), "", u),
		VerdictOf(ctx, g.Scope(egress.Scope{Purpose: egress.Source}), "redirects", u),
	}
}

// SourceEgress returns the verdicts on the hosts of the tenant's sources.
func (e *Engine) SourceEgress(ctx context.Context) ([]EgressVerdict, error) {
	states, err := e.Sources(ctx)
	if err != nil {
		return nil, err
	}
	var out []EgressVerdict
	for _, s := range states {
		kind, err := e.kind(s.Kind)
		if err != nil {
			return nil, err
		}
		options, err := kind.Complete(s.Options)
		if err != nil {
			return nil, err
		}
		scope, err := e.sourceScope(kind, s.Target, options)
		if err != nil {
			return nil, err
		}
		for _, r := range append(scope.Hosts, scope.Fixed...) {
			u := &url.URL{Scheme: "https", Host: strings.Replace(r.String(), "*.", "any.", 1)}
			if v := VerdictOf(ctx, scope, s.Name, u); !strings.Contains(r.String(), "/") {
				v.Host = r.String()
				out = append(out, v)
			}
		}
	}
	return out, nil
}
