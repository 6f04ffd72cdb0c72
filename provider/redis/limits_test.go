package redis

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
)

// TestTake has the cases of limit.Bursts: requests are taken from each bucket or from none. It is
// repeated if it took so long that a bucket had room again.
func TestTake(t *testing.T) {
	t.Parallel()
	s := open(t)
	for range 10 {
		began := time.Now()
		err := takes(t.Context(), s, rand.Text())
		if err == nil {
			return
		}
		if time.Since(began) < 15*time.Second {
			t.Fatal(err)
		}
	}
	t.Skip("this machine is too slow")
}

func takes(ctx context.Context, s *Server, tenant string) error {
	minute := func(subject string, most int64) limit.Bound {
		return limit.Bound{Subject: subject, Measure: limit.RequestsPerMinute, Most: most}
	}
	all, ann, bob := minute(limit.Tenant, 3), minute(limit.User("ann"), 2), minute(limit.User("bob"), 2)
	cost := limit.Bound{Subject: limit.Tenant, Measure: limit.CostPerDay}
	most := limit.Bound{Subject: limit.Tenant, Measure: limit.RequestsPerSecond, Most: limit.Most}
	for i, step := range []struct {
		tenant string
		bounds []limit.Bound
		by     limit.Bound // that refuses; zero: none
	}{
		{tenant, []limit.Bound{all, ann, cost}, limit.Bound{}},
		{tenant, []limit.Bound{all, ann, cost}, limit.Bound{}},
		{tenant, []limit.Bound{all, ann, cost}, ann},
		{tenant, []limit.Bound{all, bob}, limit.Bound{}}, // the refused request took nothing from all
		{tenant, []limit.Bound{all, bob}, all},
		{tenant + "x", []limit.Bound{all, ann}, limit.Bound{}},
		{tenant, []limit.Bound{minute(limit.Key("k"), 0)}, minute(limit.Key("k"), 0)},
		{tenant, []limit.Bound{most}, limit.Bound{}},
		{tenant, []limit.Bound{most}, limit.Bound{}},
		{tenant, []limit.Bound{minute(limit.Tenant, 2)}, minute(limit.Tenant, 2)}, // a lower limit holds at once
		{tenant, nil, limit.Bound{}},
	} {
		err := s.Take(ctx, step.tenant, step.bounds)
		if step.by == (limit.Bound{}) {
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			continue
		}
		e, ok := limit.AsError(err)
		if !ok || e.Subject != step.by.Subject || e.Measure != step.by.Measure || e.Limit != step.by.Most || e.RetryAfter <= 0 || e.RetryAfter > time.Minute {
			return fmt.Errorf("step %d: %+v, %v; want a refusal by %v", i, e, err, step.by)
		}
	}
	return nil
}

// TestCapacity checks that a bucket holds what its limit says, also where the time of one request is
// no whole number of microseconds.
func TestCapacity(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, most := range []int64{1, 3, 7, 11, 13} {
		began, tenant, taken := time.Now(), rand.Text(), int64(0)
		b := limit.Bound{Subject: limit.Tenant, Measure: limit.RequestsPerMinute, Most: most}
		for range most {
			if err := patient(t, s, tenant, b); err != nil {
				t.Fatalf("%d a minute: the request %d: %v", most, taken+1, err)
			}
			taken++
		}
		err := patient(t, s, tenant, b)
		if time.Since(began) < time.Minute/time.Duration(most) && err == nil {
			t.Errorf("%d a minute: one more is taken", most)
		}
	}
}

// TestRefills waits until a bucket has room again.
func TestRefills(t *testing.T) {
	t.Parallel()
	s, tenant := open(t), rand.Text()
	b := limit.Bound{Subject: limit.Tenant, Measure: limit.RequestsPerSecond, Most: 4}
	deadline := time.Now().Add(2 * time.Minute)
	for taken := 0; taken < 12; {
		err := patient(t, s, tenant, b)
		if err == nil {
			taken++
			continue
		}
		if e := refused(t, err); e.RetryAfter > 250*time.Millisecond {
			t.Fatalf("4 a second: room after %v", e.RetryAfter)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests were taken", taken)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestMain takes requests in a process of its own for TestProcesses.
func TestMain(m *testing.M) {
	if tenant := os.Getenv("REDIS_TEST_TENANT"); tenant != "" {
		takeInProcess(tenant)
		return
	}
	os.Exit(m.Run())
}

const inProcess = 40 // requests of a process

// takeInProcess prints how many of inProcess requests were taken.
func takeInProcess(tenant string) {
	s, err := Open(Config{URL: os.Getenv("ASSAY_TEST_REDIS")})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	taken := 0
	for range inProcess {
		for {
			err := s.Take(context.Background(), tenant, []limit.Bound{{Subject: limit.Tenant, Measure: limit.RequestsPerMinute, Most: 30}})
			if err == nil {
				taken++
			}
			if !errors.Is(err, assay.ErrUnavailable) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	fmt.Print(taken)
}

// TestProcesses takes from one bucket in three processes at once: no more than it holds.
func TestProcesses(t *testing.T) {
	t.Parallel()
	open(t)
	tenant, began := rand.Text(), time.Now()
	var outs [3]bytes.Buffer
	var children [3]*exec.Cmd
	for i := range children {
		children[i] = exec.CommandContext(t.Context(), os.Args[0])
		children[i].Env = append(os.Environ(), "REDIS_TEST_TENANT="+tenant)
		children[i].Stdout, children[i].Stderr = &outs[i], os.Stderr
		if err := children[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for i, child := range children {
		if err := child.Wait(); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(outs[i].String())
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	refilled := int(time.Since(began)/(2*time.Second)) + 1
	if total < 30 || total > 30+refilled {
		t.Errorf("%d requests were taken of a bucket of 30, into which at most %d came", total, refilled)
	}
}

// TestJunk checks that a bucket which another program has overwritten allows nothing.
func TestJunk(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, junk := range []string{"nan", "-nan", "inf", "1e300", "x", ""} {
		tenant := rand.Text()
		b := limit.Bound{Subject: limit.Tenant, Measure: limit.RequestsPerMinute, Most: 2}
		keys, _, _ := request(tenant, []limit.Bound{b})
		if err := s.client.Set(t.Context(), keys[0], junk, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.Take(t.Context(), tenant, []limit.Bound{b}); err == nil {
			t.Errorf("%q: the request is taken", junk)
		}
	}
}

// TestHostile asks servers that close, are silent, or send nonsense. Each is an error that is no refusal
// and has no password, and none makes the process use the memory that it announces.
func TestHostile(t *testing.T) {
	t.Parallel()
	const password = "open-sesame-12345"
	many := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			piece := []byte(strings.Repeat(text, 1+(64<<10)/len(text)))
			for {
				if _, err := c.Write(piece); err != nil {
					return
				}
			}
		}
	}
	for name, serve := range map[string]func(net.Conn){
		"closes":      func(c net.Conn) { c.Close() },
		"silent":      func(net.Conn) {},
		"nonsense":    many("*2\r\n:7\r\n$1\r\nx\r\n"),
		"HTTP":        func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
		"large text":  many("$2000000000\r\n"),
		"large list":  many("*200000000\r\n"),
		"deep":        many("*1\r\n"),
		"endless":     many("+x"),
		"other types": many("%1000000000\r\n"),
		"echo":        many("-ERR wrong password " + password + "\r\n"),
		"true":        many("+OK\r\n"),
		"integers":    many(":0\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var said reports
			s := openConfig(t, Config{URL: "redis://redis.invalid", Password: password, Report: said.add, Dial: pipe(serve), wait: time.Second})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := s.Take(t.Context(), "acme", []limit.Bound{{Subject: limit.Tenant, Measure: limit.RequestsPerSecond, Most: 4}})
			runtime.ReadMemStats(&after)
			if _, isLimit := limit.AsError(err); isLimit || !errors.Is(err, assay.ErrUnavailable) {
				t.Errorf("Take = %v", err)
			}
			_, checked := s.Check(t.Context())
			for _, err := range append(said.take(), err, checked) {
				if !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "sesame") {
					t.Errorf("error %q", err)
				}
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 500<<20 {
				t.Errorf("%d MB were used", used>>20)
			}
		})
	}
}

// pipe returns a dialer of a server that reads everything, and that serve writes for.
func pipe(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go serve(theirs)
		go func() {
			b := make([]byte, 4096)
			for {
				if _, err := theirs.Read(b); err != nil {
					theirs.Close()
					return
				}
			}
		}()
		return ours, nil
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "http://x", "redis://", "redis://:secret@%zz", "redis://:secret@x", "rediss://x?skip_verify=true", "x", "redis://x/one", "redis://x/1/2"} {
		if _, err := Open(Config{URL: address}); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): %v", address, err)
		}
	}
	if _, err := Open(Config{URL: "redis://x", Key: "too short"}); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), "too short") {
		t.Errorf("a short key: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(int64(1), "200")
	f.Fuzz(func(t *testing.T, i int64, text string) {
		index, room, err := decode([]any{i, text}, nil, make([]limit.Bound, 3))
		if err == nil && (index < 0 || index > 3 || room <= 0 || room > time.Minute) {
			t.Errorf("%d, %q: %d, %v", i, text, index, room)
		}
	})
}

// FuzzScan checks that it does not matter in which pieces replies arrive, and that no length is beyond
// the bounds.
func FuzzScan(f *testing.F) {
	f.Add([]byte("*2\r\n:7\r\n$1\r\nx\r\n+OK\r\n$-1\r\n"), 3)
	f.Add([]byte("$70000\r\n"), 1)
	f.Fuzz(func(t *testing.T, replies []byte, size int) {
		var whole, pieces replyScan
		want := whole.scan(replies)
		var got error
		for rest := replies; len(rest) > 0 && got == nil; {
			n := min(max(1, size), len(rest))
			got, rest = pieces.scan(rest[:n]), rest[n:]
		}
		if (got == nil) != (want == nil) {
			t.Errorf("whole: %v, in pieces: %v", want, got)
		}
		if whole.skip > maxBulk+2 || whole.parts > maxParts+1 {
			t.Errorf("skip %d, parts %d", whole.skip, whole.parts)
		}
	})
}
