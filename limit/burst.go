package limit

import (
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets is the number of subjects that Bursts remembers.
const maxBuckets = 10_000

// Bursts limits requests per second and minute, in the memory of this process. It remembers the
// subjects used last, maxBuckets of them; one that was forgotten starts anew with a full bucket. The
// zero Bursts is ready to use. It is safe for concurrent use.
type Bursts struct {
	mu      sync.Mutex
	buckets map[bucketKey]*list.Element // of *bucket
	recent  list.List                   // least recently used last
	most    int                         // 0: maxBuckets
}

type bucketKey struct {
	subject string
	measure Measure
}

type bucket struct {
	key     bucketKey
	limit   int64
	limiter *rate.Limiter
}

// Allow takes one request at the time now from each bucket that the bounds name, or from none. Bounds
// of other measures are ignored. The error is an *Error. A bucket holds as many requests as its limit
// and is filled evenly over its period.
func (b *Bursts) Allow(now time.Time, bounds []Bound) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var taken []*rate.Reservation
	for _, bound := range bounds {
		if !bound.Measure.InMemory() {
			continue
		}
		r := b.limiter(bound).ReserveN(now, 1)
		wait := time.Minute // of a bucket that never has room
		if r.OK() {
			wait = r.DelayFrom(now)
		}
		if wait > 0 {
			for _, earlier := range append(taken, r) {
				earlier.CancelAt(now)
			}
			return Refused(bound, wait)
		}
		taken = append(taken, r)
	}
	return nil
}

// Refused returns the error of a bucket that has room after a time.
func Refused(bound Bound, wait time.Duration) *Error {
	return &Error{Subject: bound.Subject, Measure: bound.Measure, Limit: bound.Most, Need: 1, Spent: bound.Most, RetryAfter: wait}
}

// Shared are buckets that several processes share.
type Shared interface {
	// Take is Bursts.Allow for the buckets of a tenant, by its name, with a clock of their own. An error
	// that is no *Error means that it is not known whether there is room, so that the request must be
	// refused.
	Take(ctx context.Context, tenant string, bounds []Bound) error
}

// limiter returns the bucket of a bound. A bucket whose limit has changed starts anew.
func (b *Bursts) limiter(bound Bound) *rate.Limiter {
	if b.buckets == nil {
		b.buckets = map[bucketKey]*list.Element{}
	}
	if b.most == 0 {
		b.most = maxBuckets
	}
	key := bucketKey{bound.Subject, bound.Measure}
	if e, ok := b.buckets[key]; ok {
		if known := e.Value.(*bucket); known.limit == bound.Most {
			b.recent.MoveToFront(e)
			return known.limiter
		}
		b.recent.Remove(e)
	} else if len(b.buckets) >= b.most {
		oldest := b.recent.Back()
		b.recent.Remove(oldest)
		delete(b.buckets, oldest.Value.(*bucket).key)
	}
	period := time.Second
	if bound.Measure == RequestsPerMinute {
		period = time.Minute
	}
	limiter := rate.NewLimiter(rate.Limit(float64(bound.Most)/period.Seconds()), int(bound.Most))
	b.buckets[key] = b.recent.PushFront(&bucket{key: key, limit: bound.Most, limiter: limiter})
	return limiter
}
