package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/limit"
)

// take takes a request from each bucket, or from none, by the clock of the server, so that those of the
// processes do not matter. KEYS are the buckets. A bucket is the time in microseconds at which it will
// be full again (the theoretical arrival time of the generic cell rate algorithm), and expires then. ARGV
// has, for each, the time in which it gains room for one request, and the time in which it fills. The
// script returns the index of the first bucket that has no room, from 1, and the microseconds until
// it has, or 0 and 0. All numbers are whole and below 2^53, so that Lua's are exact.
var take = goredis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local full = {}
for i, key in ipairs(KEYS) do
	local each, holds = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
	local at = math.max(tonumber(redis.call('GET', key) or '0'), now) + each
	if not (at - now <= holds) then
		return {i, string.format('%.0f', at - now - holds)}
	end
	full[i] = at
end
for i, key in ipairs(KEYS) do
	redis.call('SET', key, string.format('%.0f', full[i]), 'PX', string.format('%.0f', math.ceil((full[i] - now) / 1000) + 1))
end
return {0, '0'}
`)

var _ limit.Shared = (*Server)(nil)

// Take implements limit.Shared for the buckets of a tenant, by its name. The error is assay.ErrUnavailable,
// and the request must be refused, while the server cannot be reached or answers nonsense.
func (s *Server) Take(ctx context.Context, tenant string, bounds []limit.Bound) error {
	keys, args, taken := request(tenant, bounds)
	if len(keys) == 0 {
		return nil
	}
	for _, b := range taken {
		if b.Most <= 0 {
			return limit.Refused(b, time.Minute)
		}
	}
	asked, cancel := context.WithTimeout(ctx, s.config.wait)
	defer cancel()
	reply, err := take.Run(asked, s.client, keys, args...).Slice()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	index, room, err := decode(reply, err, taken)
	s.outcome(err)
	if err != nil { // the reason is reported, and is not for those who ask
		return fmt.Errorf("the limits of requests per second and minute cannot be checked, because the Redis server that counts them does not answer: %w", assay.ErrUnavailable)
	}
	if index > 0 {
		return limit.Refused(taken[index-1], room)
	}
	return nil
}

// request returns the keys and arguments of the script, and the bounds that they stand for. The keys
// hold hashes of names.
func request(tenant string, bounds []limit.Bound) (keys []string, args []any, taken []limit.Bound) {
	for _, b := range bounds {
		if !b.Measure.InMemory() {
			continue
		}
		period := time.Second
		if b.Measure == limit.RequestsPerMinute {
			period = time.Minute
		}
		most := max(b.Most, 1)
		each := (period.Microseconds() + most - 1) / most
		keys = append(keys, fmt.Sprintf("assay:limit:%s:%s:%s", hash(tenant), b.Measure, hash(b.Subject)))
		args = append(args, each, each*most)
		taken = append(taken, b)
	}
	return keys, args, taken
}

func hash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// decode reads the reply of the script to a request for buckets.
func decode(reply []any, err error, taken []limit.Bound) (index int, room time.Duration, _ error) {
	if err != nil {
		return 0, 0, err
	}
	if len(reply) != 2 {
		return 0, 0, errReply
	}
	i, isInt := reply[0].(int64)
	text, isText := reply[1].(string)
	micros, err := strconv.ParseInt(text, 10, 64)
	if !isInt || !isText || err != nil || i < 0 || i > int64(len(taken)) || micros < 0 {
		return 0, 0, errReply
	}
	// The clock of the server may have been set back since a bucket was written, which expires.
	room = time.Duration(min(micros, time.Minute.Microseconds())) * time.Microsecond
	return int(i), max(room, time.Microsecond), nil
}
