package limit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestOfTakesTheSmallest(t *testing.T) {
	table := Table{
		Tenant:                {CostPerMonth: 100},
		Users:                 {RequestsPerDay: 50, Runs: 2},
		User("ann"):           {RequestsPerDay: 60, Runs: 0},
		User("bob"):           {RequestsPerDay: 10},
		Keys:                  {TokensPerDay: 5},
		Key("k1"):             {TokensPerDay: 3, RequestsPerSecond: 1},
		User("somebody else"): {CallsPerDay: 1},
	}
	for _, test := range []struct {
		p    assay.Principal
		want []Bound
	}{
		{assay.Principal{User: "ann"}, []Bound{{Tenant, CostPerMonth, 100}, {"user:ann", RequestsPerDay, 50}, {"user:ann", Runs, 0}}},
		{assay.Principal{User: "bob", Key: "k1"}, []Bound{
			{Tenant, CostPerMonth, 100}, {"user:bob", RequestsPerDay, 10}, {"user:bob", Runs, 2}, {"key:k1", RequestsPerSecond, 1}, {"key:k1", TokensPerDay, 3},
		}},
		{assay.Principal{User: "new", Key: "k2"}, []Bound{
			{Tenant, CostPerMonth, 100}, {"user:new", RequestsPerDay, 50}, {"user:new", Runs, 2}, {"key:k2", TokensPerDay, 5},
		}},
		{assay.Principal{}, []Bound{{Tenant, CostPerMonth, 100}}},
	} {
		if diff := cmp.Diff(test.want, table.Of(test.p)); diff != "" {
			t.Errorf("Of(%v) differs (-want +got):\n%s", test.p, diff)
		}
	}
	if got := (Table{}).Of(assay.Principal{User: "ann"}); got != nil {
		t.Errorf("Of without limits = %v", got)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		subject, value string
		ok             bool
	}{
		{"tenant", `{"requests/day": 10, "cost/month": 5000000}`, true},
		{"user:ann", `{"runs": 0}`, true},
		{"key:x", `{}`, true},
		{"user:", `{}`, false},
		{"key:", `{}`, false},
		{"group:x", `{}`, false},
		{"", `{}`, false},
		{"user:a\nb", `{}`, false},
		{"tenant", `{"requests/year": 1}`, false},
		{"tenant", `{"runs": -1}`, false},
		{"tenant", `{"runs": 1000000000000001}`, false},
		{"tenant", `{"runs": 1e300}`, false},
		{"tenant", `{"runs": 1.5}`, false},
		{"tenant", `[]`, false},
	} {
		err := Table{}.Parse(test.subject, json.RawMessage(test.value))
		if (err == nil) != test.ok || err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("Parse(%q, %s) = %v, want ok %v", test.subject, test.value, err, test.ok)
		}
	}
}

func TestRenews(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)) // 2027-01-01 in UTC
	for m, want := range map[Measure]string{
		RequestsPerDay: "2027-01-02T00:00:00Z", CostPerMonth: "2027-02-01T00:00:00Z", Runs: "0001-01-01T00:00:00Z",
	} {
		if got := m.Renews(now).Format(time.RFC3339); got != want {
			t.Errorf("%s renews at %s, want %s", m, got, want)
		}
	}
}

func TestError(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		err   *Error
		text  string
		retry time.Duration
	}{
		{
			NewError(Bound{User("ann"), RequestsPerDay, 10}, 10, 0, 1, now),
			"the limit of 10 requests a day for the user ann is reached: 0 left; it renews at 2026-11-23T00:00:00Z", 16 * time.Hour,
		},
		{
			NewError(Bound{Tenant, CostPerMonth, 2_500_000}, 2_000_000, 400_000, 200_000, now),
			"the limit of 2.5 of the currency a month for the tenant is reached: 0.1 left, up to 0.2 needed; it renews at 2026-12-01T00:00:00Z", 5 * time.Second,
		},
		{
			NewError(Bound{Key("k1"), Runs, 2}, 2, 0, 1, now),
			"the limit of 2 concurrent runs for the key k1 is reached: 0 left; try again in 5s", 5 * time.Second,
		},
	} {
		if test.err.Error() != test.text || test.err.RetryAfter != test.retry || !errors.Is(test.err, assay.ErrQuota) {
			t.Errorf("got %q, retry after %v, want %q, %v", test.err, test.err.RetryAfter, test.text, test.retry)
		}
	}
	got, err := json.Marshal(NewError(Bound{User("ann"), RequestsPerDay, 10}, 10, 0, 1, now))
	want := `{"error":"quota","message":"the limit of 10 requests a day for the user ann is reached: 0 left; it renews at 2026-11-23T00:00:00Z",` +
		`"subject":"user:ann","measure":"requests/day","limit":10,"need":1,"spent":10,"reserved":0,"left":0,"renews":"2026-11-23T00:00:00Z","retry_after":57600}`
	if err != nil || string(got) != want {
		t.Errorf("JSON %s, %v\nwant %s", got, err, want)
	}
	if e, ok := AsError(fmt.Errorf("ask: %w", test0)); !ok || e != test0 {
		t.Error("AsError does not find the error")
	}
}

var test0 = &Error{Subject: Tenant}

func TestBursts(t *testing.T) {
	var b Bursts
	now := time.Unix(1_000_000, 0)
	bounds := []Bound{{User("ann"), RequestsPerSecond, 2}, {Tenant, RequestsPerMinute, 3}, {Tenant, CostPerDay, 0}}
	for i := range 2 {
		if err := b.Allow(now, bounds); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	e, ok := AsError(b.Allow(now, bounds))
	if !ok || e.Measure != RequestsPerSecond || e.RetryAfter != 500*time.Millisecond {
		t.Fatalf("the third request in a second: %+v", e)
	}
	if err := b.Allow(now.Add(time.Second), bounds); err != nil { // the refused request took nothing
		t.Fatal(err)
	}
	if e, ok = AsError(b.Allow(now.Add(2*time.Second), bounds)); !ok || e.Measure != RequestsPerMinute || e.Subject != Tenant {
		t.Fatalf("the fourth request in a minute: %+v", e)
	}
	if err := b.Allow(now, []Bound{{User("bob"), RequestsPerSecond, 2}}); err != nil {
		t.Fatalf("another user: %v", err)
	}
	if e, ok = AsError(b.Allow(now, []Bound{{User("eve"), RequestsPerSecond, 0}})); !ok || e.RetryAfter <= 0 {
		t.Fatalf("a limit of 0: %+v", e)
	}
}

func TestBurstsAreBounded(t *testing.T) {
	b := Bursts{most: 3}
	now := time.Unix(1_000_000, 0)
	for i := range 100 {
		_ = b.Allow(now, []Bound{{User(fmt.Sprint(i)), RequestsPerSecond, 1}})
	}
	if len(b.buckets) != 3 || b.recent.Len() != 3 {
		t.Fatalf("%d buckets, %d in the list", len(b.buckets), b.recent.Len())
	}
	if err := b.Allow(now, []Bound{{User("99"), RequestsPerSecond, 1}}); err == nil {
		t.Error("the subject used last was forgotten")
	}
}

func TestMeasuresHaveUnitsAndPeriods(t *testing.T) {
	for _, m := range Measures {
		if m != Runs && !slices.Contains([]string{"second", "minute", "day", "month"}, m.Period()) {
			t.Errorf("%s has the period %q", m, m.Period())
		}
	}
	if got := len(OfUsage(all())) + len(OfRequests(all())) + 2; got != len(Measures) {
		t.Errorf("OfUsage, OfRequests and Bursts cover %d of %d measures", got, len(Measures))
	}
}

func all() []Bound {
	var list []Bound
	for _, m := range Measures {
		list = append(list, Bound{Tenant, m, 1})
	}
	return list
}
