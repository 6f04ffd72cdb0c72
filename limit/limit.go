// Package limit defines limits on what a tenant, its users and its API keys may spend: requests and
// concurrent runs, and model calls, tokens and money per UTC day and month. A store keeps the counts
// (see store.Ledger), the engine applies the limits, and [Bursts] limits requests per second and
// minute in memory.
package limit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// A Measure is something that a limit bounds.
type Measure string

// The measures. Days and months are those of UTC.
const (
	RequestsPerSecond Measure = "requests/second" // in memory of each process, see Bursts, or shared, see Shared
	RequestsPerMinute Measure = "requests/minute"
	RequestsPerDay    Measure = "requests/day" // questions that became a run
	RequestsPerMonth  Measure = "requests/month"
	Runs              Measure = "runs" // at the same time
	CallsPerDay       Measure = "calls/day"
	CallsPerMonth     Measure = "calls/month"
	TokensPerDay      Measure = "tokens/day" // input and output together
	TokensPerMonth    Measure = "tokens/month"
	CostPerDay        Measure = "cost/day" // millionths of the configured currency
	CostPerMonth      Measure = "cost/month"
)

// Measures lists all measures.
var Measures = []Measure{
	RequestsPerSecond, RequestsPerMinute, RequestsPerDay, RequestsPerMonth, Runs,
	CallsPerDay, CallsPerMonth, TokensPerDay, TokensPerMonth, CostPerDay, CostPerMonth,
}

// Period returns the part of a measure after the slash: "day", "month", "minute", "second", or "" for
// Runs.
func (m Measure) Period() string {
	_, period, _ := strings.Cut(string(m), "/")
	return period
}

// Unit returns the part of a measure before the slash.
func (m Measure) Unit() string {
	unit, _, _ := strings.Cut(string(m), "/")
	return unit
}

// InMemory reports whether a measure is counted in memory and not in the store.
func (m Measure) InMemory() bool { return m == RequestsPerSecond || m == RequestsPerMinute }

// Renews returns when the period of a measure that holds now ends; zero: the measure has none.
func (m Measure) Renews(now time.Time) time.Time {
	now = now.UTC()
	switch m.Period() {
	case "day":
		return time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	case "month":
		return time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}

// Most is the highest value of a limit.
const Most = 1_000_000_000_000_000

// Limits are the limits of one subject. A limit of 0 allows nothing; a missing measure has no limit.
type Limits map[Measure]int64

// Check returns an error that wraps assay.ErrInvalid for an unknown measure or a value outside
// [0, Most].
func (l Limits) Check() error {
	for _, m := range slices.Sorted(maps.Keys(l)) {
		if !slices.Contains(Measures, m) {
			return fmt.Errorf("unknown measure %q, want one of %s: %w", m, names(), assay.ErrInvalid)
		}
		if l[m] < 0 || l[m] > Most {
			return fmt.Errorf("the limit of %s is %d, want 0 to %d: %w", m, l[m], int64(Most), assay.ErrInvalid)
		}
	}
	return nil
}

func names() string {
	list := make([]string, len(Measures))
	for i, m := range Measures {
		list[i] = string(m)
	}
	return strings.Join(list, ", ")
}

// The subjects that stand for several, and the prefixes of the others. The limits of Users hold for
// each user by itself, those of Keys for each API key.
const (
	Tenant = "tenant"
	Users  = "users"
	Keys   = "keys"

	userPrefix = "user:"
	keyPrefix  = "key:"
)

// User returns the subject for a user.
func User(name string) string { return userPrefix + name }

// Key returns the subject for an API key.
func Key(id string) string { return keyPrefix + id }

// CheckSubject returns an error that wraps assay.ErrInvalid if s is no subject.
func CheckSubject(s string) error {
	const most = 256
	prefixed := strings.HasPrefix(s, userPrefix) && len(s) > len(userPrefix) || strings.HasPrefix(s, keyPrefix) && len(s) > len(keyPrefix)
	control := strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s)
	if !prefixed && s != Tenant && s != Users && s != Keys || control || len(s) > most {
		return fmt.Errorf("%q is no subject of a limit, want tenant, users, keys, user:NAME or key:ID of at most %d bytes: %w", s, most, assay.ErrInvalid)
	}
	return nil
}

// ActSubject returns the name of a subject in the audit log, which names no person.
func ActSubject(s string) string {
	if strings.HasPrefix(s, userPrefix) {
		return "user"
	}
	return s
}

// SubjectsOf returns the subjects that spending of p is counted for: the tenant, the user and, if the
// principal has one, the key.
func SubjectsOf(p assay.Principal) []string {
	subjects := []string{Tenant}
	if p.User != "" {
		subjects = append(subjects, User(p.User))
	}
	if p.Key != "" {
		subjects = append(subjects, Key(p.Key))
	}
	return subjects
}

// A Bound is one limit of one counted subject.
type Bound struct {
	Subject string // one of SubjectsOf
	Measure Measure
	Most    int64
}

// A Table is the limits of a tenant by subject.
type Table map[string]Limits

// Parse adds the limits of a subject from their JSON form, an object of measures and numbers.
func (t Table) Parse(subject string, value json.RawMessage) error {
	if err := CheckSubject(subject); err != nil {
		return err
	}
	var l Limits
	if err := json.Unmarshal(value, &l); err != nil {
		return fmt.Errorf("limits of %s: %w: %w", subject, assay.ErrInvalid, err)
	}
	if err := l.Check(); err != nil {
		return fmt.Errorf("limits of %s: %w", subject, err)
	}
	t[subject] = l
	return nil
}

// Of returns the bounds that hold for a principal. If several limits of a measure apply to a subject,
// as those of Users and of the user, the smallest holds.
func (t Table) Of(p assay.Principal) []Bound {
	if len(t) == 0 {
		return nil
	}
	var bounds []Bound
	for _, s := range SubjectsOf(p) {
		limits := t.OfSubject(s)
		for _, m := range Measures {
			if most, ok := limits[m]; ok {
				bounds = append(bounds, Bound{Subject: s, Measure: m, Most: most})
			}
		}
	}
	return bounds
}

// OfSubject returns the limits that hold for one user, key or the tenant.
func (t Table) OfSubject(subject string) Limits {
	limits := maps.Clone(t[subject])
	var all Limits
	switch {
	case strings.HasPrefix(subject, userPrefix):
		all = t[Users]
	case strings.HasPrefix(subject, keyPrefix):
		all = t[Keys]
	}
	for m, most := range all {
		if own, ok := limits[m]; !ok || most < own {
			if limits == nil {
				limits = Limits{}
			}
			limits[m] = most
		}
	}
	return limits
}

// OfUsage returns the bounds on calls, tokens and cost.
func OfUsage(bounds []Bound) []Bound {
	return keep(bounds, func(b Bound) bool {
		unit := b.Measure.Unit()
		return unit == "calls" || unit == "tokens" || unit == "cost"
	})
}

// OfRequests returns the bounds on requests per day and month and on concurrent runs.
func OfRequests(bounds []Bound) []Bound {
	return keep(bounds, func(b Bound) bool {
		return b.Measure == Runs || b.Measure.Unit() == "requests" && !b.Measure.InMemory()
	})
}

func keep(bounds []Bound, want func(Bound) bool) []Bound {
	var out []Bound
	for _, b := range bounds {
		if want(b) {
			out = append(out, b)
		}
	}
	return out
}

// An Error reports a limit that is reached. It wraps assay.ErrQuota.
type Error struct {
	Subject string  `json:"subject"`
	Measure Measure `json:"measure"`
	Limit   int64   `json:"limit"`
	Need    int64   `json:"need"`     // the most that the refused step may spend; 1 for requests and runs
	Spent   int64   `json:"spent"`    // in the period; for Runs those in progress
	Held    int64   `json:"reserved"` // by calls in progress
	Left    int64   `json:"left"`     // Limit less Spent and Held, at least 0

	Renews     time.Time     `json:"renews,omitzero"` // zero: when a run or call in progress ends
	RetryAfter time.Duration `json:"-"`               // how long to wait before another attempt, at least
}

// NewError returns the error for a bound whose rest does not cover need at the time now.
func NewError(b Bound, spent, held, need int64, now time.Time) *Error {
	e := &Error{Subject: b.Subject, Measure: b.Measure, Limit: b.Most, Need: need, Spent: spent, Held: held, Left: max(0, b.Most-spent-held)}
	e.Renews = b.Measure.Renews(now)
	switch {
	case held > 0 && spent+need <= b.Most, e.Renews.IsZero(): // a call or run in progress may leave enough
		e.RetryAfter = retryRun
	default:
		e.RetryAfter = e.Renews.Sub(now)
	}
	return e
}

// retryRun is how long a caller should wait for a run or call in progress.
const retryRun = 5 * time.Second

// Error returns a sentence without the words of assay.ErrQuota, which it would repeat.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Measure == Runs:
		fmt.Fprintf(&b, "the limit of %d concurrent runs", e.Limit)
	default:
		fmt.Fprintf(&b, "the limit of %s %s a %s", amount(e.Measure, e.Limit), noun(e.Measure), e.Measure.Period())
	}
	fmt.Fprintf(&b, " for %s is reached: %s left", spoken(e.Subject), amount(e.Measure, e.Left))
	if e.Need > 1 {
		fmt.Fprintf(&b, ", up to %s needed", amount(e.Measure, e.Need))
	}
	if !e.Renews.IsZero() {
		fmt.Fprintf(&b, "; it renews at %s", e.Renews.Format(time.RFC3339))
	} else {
		fmt.Fprintf(&b, "; try again in %s", cmp.Or(e.RetryAfter.Round(time.Millisecond), time.Second))
	}
	return b.String()
}

// Unwrap returns assay.ErrQuota.
func (e *Error) Unwrap() error { return assay.ErrQuota }

// MarshalJSON adds the kind of error, the text and the time to wait in seconds, rounded up.
func (e *Error) MarshalJSON() ([]byte, error) {
	type plain Error
	return json.Marshal(struct {
		Error   string `json:"error"`
		Message string `json:"message"`
		plain
		RetryAfter int64 `json:"retry_after"`
	}{"quota", e.Error(), plain(*e), int64(math.Ceil(e.RetryAfter.Seconds()))})
}

func noun(m Measure) string {
	switch m.Unit() {
	case "cost":
		return "of the currency"
	case "calls":
		return "model calls"
	}
	return m.Unit()
}

// amount returns a number of a measure, with money in units of the currency.
func amount(m Measure, n int64) string {
	if m.Unit() != "cost" {
		return fmt.Sprint(n)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", n/1e6, n%1e6), "0"), ".")
}

func spoken(subject string) string {
	switch {
	case subject == Tenant:
		return "the tenant"
	case strings.HasPrefix(subject, userPrefix):
		return "the user " + subject[len(userPrefix):]
	case strings.HasPrefix(subject, keyPrefix):
		return "the key " + subject[len(keyPrefix):]
	}
	return subject
}

// AsError returns the *Error in err's chain.
func AsError(err error) (*Error, bool) { return errors.AsType[*Error](err) }
