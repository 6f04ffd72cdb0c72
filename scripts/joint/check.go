//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/internal/queue"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/postgres"
)

// How long documents that were acknowledged may wait until they are stored, and then until they are found.
const (
	storeTime = 30 * time.Minute
	findTime  = 10 * time.Minute
)

// A root is the root of a log of some size. An empty tenant is the system.
type root struct {
	tenant string
	size   int64
	hash   tlog.Hash
}

// A tenantLog is an audit log with the handle that has it open.
type tenantLog struct {
	tenant string
	audit  store.Audit
	close  func() error
}

// logs opens the logs of the tenants and of the system.
func (l *load) logs(ctx context.Context, s *postgres.Store) (all []tenantLog, err error) {
	for _, t := range l.w.tenants {
		opened, err := s.InspectTenant(ctx, t.name)
		if err != nil {
			return all, err
		}
		all = append(all, tenantLog{t.name, opened.Audit(), opened.Close})
	}
	system, err := s.System(ctx)
	if err != nil {
		return all, err
	}
	return append(all, tenantLog{"", system.Audit(), system.Close}), nil
}

// heads returns the present roots of the logs.
func (l *load) heads(ctx context.Context, s *postgres.Store) (heads []root, err error) {
	all, err := l.logs(ctx, s)
	for _, log := range all {
		if err == nil {
			h := root{tenant: log.tenant}
			if h.size, err = log.audit.Size(ctx); err == nil {
				h.hash, err = audit.RootAt(ctx, log.audit, h.size)
			}
			heads = append(heads, h)
		}
		err = errors.Join(err, log.close())
	}
	return heads, err
}

// remember keeps the roots that the logs have now. The logs of the promoted replica must continue them.
func (l *load) remember(ctx context.Context) error {
	heads, err := l.heads(ctx, l.store)
	if err != nil {
		return fmt.Errorf("read the audit logs: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roots = append(l.roots, heads...)
	return nil
}

// waiting returns how many documents wait in the queue.
func (l *load) waiting(ctx context.Context) (n int, err error) {
	conn, err := pgx.Connect(ctx, l.w.database.url())
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was only read
	err = conn.QueryRow(ctx, `SELECT count(*) FROM assay_queue.upload`).Scan(&n)
	return n, err
}

// check checks everything after the load, and ends the servers and workers on the way.
func (l *load) check(ctx context.Context) error {
	l.o.log("all documents and questions are acknowledged; waiting for the queue")
	began := time.Now()
	if err := l.settle(ctx); err != nil {
		return err
	}
	l.report.StoreSecs = time.Since(began).Seconds()
	for i := range l.w.tenants {
		l.o.log("checking the documents of %s", l.w.tenants[i].name)
		if err := l.checkDocuments(ctx, i); err != nil {
			return err
		}
		if err := l.checkSearches(ctx, i); err != nil {
			return err
		}
		if err := l.checkRuns(ctx, i); err != nil {
			return err
		}
	}
	l.gather()
	l.report.Ended = l.w.ended()
	for _, end := range l.report.Ended {
		if !strings.Contains(end, assay.ErrUnavailable.Error()) { // it was started while the database was away
			l.report.fail("%s", end)
		}
	}
	for _, p := range append(slices.Clone(l.w.servers), l.w.workers...) {
		p.close()
	}
	l.w.servers, l.w.workers = nil, nil
	l.o.log("checking ledgers, journals and audit logs")
	for i := range l.w.tenants {
		if err := l.checkTenant(ctx, i); err != nil {
			return err
		}
	}
	if err := l.checkQueue(ctx); err != nil {
		return err
	}
	return l.checkLogs(ctx)
}

// settle waits until the queue holds no document. A job that was given up keeps its document.
func (l *load) settle(ctx context.Context) error {
	shown := time.Now()
	return eventually(ctx, storeTime, "documents wait in the queue", func() bool {
		n, err := l.waiting(ctx)
		if time.Since(shown) > 10*time.Second {
			shown = time.Now()
			l.o.log("%d documents wait", n)
		}
		failed := 0
		if jobs, err := l.failedJobs(ctx); err == nil {
			for _, j := range jobs {
				if j.Kind == queue.KindDocument {
					failed++
				}
			}
		}
		return err == nil && n <= failed
	})
}

// failedJobs returns the jobs that were given up.
func (l *load) failedJobs(ctx context.Context) ([]queue.Job, error) {
	q, err := queue.Open(ctx, l.w.database.url(), 4, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	jobs, err := q.List(ctx, queue.Filter{State: queue.Failed, Most: 1000})
	return jobs, errors.Join(err, q.Close())
}

func (l *load) checkQueue(ctx context.Context) error {
	jobs, err := l.failedJobs(ctx)
	for _, j := range jobs {
		l.report.fail("job %d (%s %s %s) failed: %s", j.ID, j.Kind, j.Tenant, j.Name, j.Error)
	}
	return err
}

// checkDocuments compares the list of a tenant's documents with what was acknowledged.
func (l *load) checkDocuments(ctx context.Context, i int) error {
	c, want := l.clients[i], l.acknowledged[i]
	titles := map[string][]string{}
	for path := "/api/v1/documents?limit=500"; path != ""; {
		var page struct {
			Documents []struct{ URI, Title string }
			Next      string
		}
		if err := c.get(ctx, path, &page); err != nil {
			return err
		}
		for _, d := range page.Documents {
			titles[d.URI] = append(titles[d.URI], d.Title)
		}
		if path = ""; page.Next != "" {
			path = "/api/v1/documents?limit=500&cursor=" + url.QueryEscape(page.Next)
		}
	}
	for number, version := range want {
		d := document{number: number, version: version}
		got := titles["upload:"+d.name()]
		switch {
		case len(got) == 0:
			l.report.Lost++
			l.report.fail("%s of %s was acknowledged and is lost", d.name(), c.tenant.name)
		case len(got) > 1:
			l.report.Doubled++
			l.report.fail("%s of %s is there %d times", d.name(), c.tenant.name, len(got))
		case got[0] != d.title(c.tenant):
			l.report.Old++
			l.report.fail("%s of %s is %q, not version %d", d.name(), c.tenant.name, got[0], version)
		}
		if version > 1 {
			l.report.Replaced++
		}
	}
	l.report.Documents += len(want)
	if len(titles) > len(want) {
		l.report.fail("%s has %d documents, and %d were uploaded", c.tenant.name, len(titles), len(want))
	}
	return nil
}

// checkSearches searches for some documents by the word that only they have. The index may be behind the
// documents, so that the first search waits.
func (l *load) checkSearches(ctx context.Context, i int) error {
	c, want := l.clients[i], l.acknowledged[i]
	numbers := make([]int, 0, len(want))
	for n, version := range want {
		if numbers = append(numbers, n); version > 1 && len(numbers) > 1 { // those first that have an old version
			numbers[0], numbers[len(numbers)-1] = numbers[len(numbers)-1], numbers[0]
		}
	}
	slices.Sort(numbers)
	rand.Shuffle(len(numbers), func(a, b int) { numbers[a], numbers[b] = numbers[b], numbers[a] })
	slices.SortStableFunc(numbers, func(a, b int) int { return want[b] - want[a] })
	for _, n := range numbers[:min(len(numbers), l.o.sample)] {
		d := document{number: n, version: want[n]}
		found, shown := 0, time.Now()
		err := eventually(ctx, findTime, fmt.Sprintf("version %d of %s of %s is not found once", d.version, d.name(), c.tenant.name), func() bool {
			found = l.search(ctx, c, d)
			if time.Since(shown) > 10*time.Second {
				shown = time.Now()
				l.o.log("version %d of %s of %s is found %d times", d.version, d.name(), c.tenant.name, found)
			}
			return found == 1
		})
		if err != nil {
			l.report.fail("%v", err)
			return ctx.Err()
		}
		l.report.Searches++
		if d.version == 1 {
			continue
		}
		d.version = 1
		if found := l.search(ctx, c, d); found != 0 {
			l.report.fail("the old version of %s of %s is found %d times", d.name(), c.tenant.name, found)
		}
	}
	return nil
}

// search returns how many hits have the word of a document's version. They must be of the document. It is negative
// if the search failed.
func (l *load) search(ctx context.Context, c *client, d document) (found int) {
	word := d.token(c.tenant)
	var results struct {
		Hits []struct{ URI, Text string }
	}
	if err := c.get(ctx, "/api/v1/search?mode=text&limit=20&q="+word, &results); err != nil {
		l.report.fail("search: %v", err)
		return -1
	}
	for _, hit := range results.Hits {
		if !slices.Contains(strings.FieldsFunc(hit.Text, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }), word) {
			continue
		}
		if found++; hit.URI != "upload:"+d.name() {
			l.report.fail("%s is found in %s of %s", word, hit.URI, c.tenant.name)
		}
	}
	return found
}

// checkRuns compares the list of a tenant's runs with those that its client has seen, and tries to read some as
// the other tenant.
func (l *load) checkRuns(ctx context.Context, i int) error {
	c, other, want := l.clients[i], l.clients[(i+1)%len(l.clients)], l.runs[i]
	listed := map[string]int{}
	for path := "/api/v1/runs?limit=500"; path != ""; {
		var page struct {
			Runs []struct{ ID, State string }
			Next string
		}
		if err := c.get(ctx, path, &page); err != nil {
			return err
		}
		for _, run := range page.Runs {
			listed[run.ID]++
		}
		if path = ""; page.Next != "" {
			path = "/api/v1/runs?limit=500&cursor=" + url.QueryEscape(page.Next)
		}
	}
	tried := 0
	for id, seen := range want {
		if listed[id] != 1 {
			l.report.fail("run %s of %s is listed %d times", id, c.tenant.name, listed[id])
		}
		l.report.Statuses[seen.status]++
		if seen.status == "failed" {
			l.report.Reasons[seen.reason]++
		}
		if seen.status == "" || seen.status == "failed" && seen.reason == "" {
			l.report.fail("run %s of %s ended with %+v", id, c.tenant.name, seen)
		}
		if tried++; tried > 20 {
			continue
		}
		r, err := other.call(ctx, "GET", "/api/v1/runs/"+id, nil, "")
		if err != nil {
			return err
		}
		if r.status != 404 {
			l.report.fail("%s may read the run %s of %s: %d", other.tenant.name, id, c.tenant.name, r.status)
		}
	}
	l.report.Questions += len(want)
	if len(listed) != len(want) {
		l.report.fail("%s has %d runs, and %d were accepted", c.tenant.name, len(listed), len(want))
	}
	return nil
}

// gather adds what the clients have counted.
func (l *load) gather() {
	for _, c := range l.clients {
		l.report.Responses += c.responses
		l.report.Leaks += len(c.leaks)
		for why, n := range c.repeated {
			l.report.Repeated[why] += n
		}
		for _, leak := range c.leaks {
			l.report.fail("leak: %s", leak)
		}
		for _, u := range c.unexpected {
			l.report.fail("internal error: %s", u)
		}
	}
	l.report.Upload, l.report.Answer = quantilesOf(l.uploads), quantilesOf(l.answers)
}

// checkTenant reads all of a tenant, and compares its ledger with the journals of its runs.
func (l *load) checkTenant(ctx context.Context, i int) error {
	name := l.w.tenants[i].name
	t, err := l.store.Tenant(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := t.Check(ctx); err != nil {
		l.report.fail("check of %s: %v", name, err)
	}
	runs, err := t.Runs().List(ctx, 0)
	if err != nil {
		return err
	}
	want := store.Amount{Requests: int64(len(runs))}
	for _, r := range runs {
		if r.Live || r.State == assay.RunActive {
			l.report.fail("run %s of %s is %s, live %t", r.ID, name, r.State, r.Live)
		}
		records, err := t.Runs().Records(ctx, r.ID) // checks that there is no gap
		if err != nil {
			l.report.fail("journal of run %s of %s: %v", r.ID, name, err)
		}
		for _, rec := range records {
			want = want.Add(store.Amount{Calls: int64(rec.Usage.Calls), Tokens: int64(rec.Usage.InputTokens + rec.Usage.OutputTokens), CostMicros: rec.Usage.CostMicros})
		}
	}
	spent, err := t.Ledger().Spending(ctx, limit.Tenant)
	if err != nil {
		return err
	}
	if len(spent) != 1 {
		l.report.fail("the ledger of %s has %d entries", name, len(spent))
		return nil
	}
	if got := spent[0]; want.Add(got.OtherMonth) != got.Month || got.Held != (store.Amount{}) || got.Runs != 0 {
		l.report.fail("%s: the journals have %+v, the ledger has %+v", name, want, got)
		return nil
	}
	l.report.Ledgers++
	return nil
}

// checkLogs verifies the audit logs and compares the data with them, on the primary. The replica must have the
// same logs, and both those that earlier primaries had.
func (l *load) checkLogs(ctx context.Context) error {
	for file, log := range l.w.logsOf() {
		if err := l.w.verify(ctx, file, log); err != nil {
			l.report.fail("%v", err)
		}
	}
	heads, err := l.heads(ctx, l.store)
	if err != nil {
		return err
	}
	replica, err := postgres.Open(ctx, l.w.database.pair[1-l.w.database.primary].url(), postgres.WithFolder(l.w.o.dir))
	if err != nil {
		return err
	}
	err = eventually(ctx, readyTime, "the replica's audit logs are not those of the primary", func() bool {
		copies, err := l.heads(ctx, replica)
		return err == nil && slices.Equal(copies, heads)
	})
	if err != nil {
		l.report.fail("%v", err)
	}
	for _, h := range heads {
		l.report.Logs["entries of "+map[bool]string{true: "the system", false: h.tenant}[h.tenant == ""]] = int(h.size)
	}
	logs, err := l.logs(ctx, replica)
	for _, log := range logs {
		for _, r := range l.roots {
			if r.tenant != log.tenant || err != nil {
				continue
			}
			var now tlog.Hash
			if now, err = audit.RootAt(ctx, log.audit, r.size); err == nil && now != r.hash {
				l.report.fail("the log of %q had another root with %d entries before a primary was killed", r.tenant, r.size)
			}
			l.report.Roots++
		}
		err = errors.Join(err, log.close())
	}
	return errors.Join(err, replica.Close(), l.store.Close())
}
