// Package redis lets several servers share limits of requests and the vectors of passages in Redis or
// Valkey. A [Server] implements limit.Shared and engine.SharedVectors.
//
// Nothing here is the only copy of anything: a bucket that is lost is full again, a vector that is lost
// is made again. The two differ in what happens while Redis cannot be reached. A limit that cannot be
// checked refuses (see [Server.Take]); a vector that cannot be read is a miss (see [Server.Vectors]).
//
// The replies are bounded in size and number, and each call in time, so that a server that is slow,
// broken or hostile costs no more than that.
package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/secret"
)

const (
	// defaultWait bounds a call, with its connection and all its attempts.
	defaultWait = 2 * time.Second
	// attempts is how often a call is repeated on another connection. A script that ran twice took two
	// requests, so that a limit is never exceeded by it.
	attempts = 3
	// connections is how many a process has at most.
	connections = 8
)

// MinKey is the least number of bytes of Config.Key.
const MinKey = 32

// A Config names a Redis server.
type Config struct {
	// URL is redis://HOST:PORT/DATABASE or, with TLS, rediss://USER@HOST:PORT/DATABASE, without a password
	// and parameters. The port is 6379 and the database 0 if there is none.
	URL      string
	Password string // empty: none

	// Key is a secret that all servers which share vectors have, at least MinKey bytes; empty: vectors
	// are not shared.
	Key string

	TLS  *tls.Config                                                       // nil: the certificates that the system trusts
	Dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil: a net.Dialer

	// Report is told when the server cannot be used any more (once, with the reason), when it can be used
	// again (nil), and, at most once a minute, of a value that another program has written. It must not
	// block. It may be nil.
	Report func(error)

	wait time.Duration // in tests, that a busy machine does not fail; 0: defaultWait
}

// A Server is a Redis server. It is safe for concurrent use.
type Server struct {
	client *goredis.Client
	config Config

	mu       sync.Mutex
	down     bool
	rested   time.Time // until when no vectors are asked for
	tampered time.Time // of the last report
	now      func() time.Time
}

// databaseForm is the form of the path of a URL.
var databaseForm = lazyregexp.New(`^/?(\d{1,4})?$`)

// CheckURL returns assay.ErrInvalid unless an address has the form of Config.URL. The error does not
// contain the address.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || !databaseForm.MatchString(u.Path) {
		return fmt.Errorf("the address of the Redis server: want redis://HOST:PORT or rediss://HOST:PORT: %w", assay.ErrInvalid)
	}
	if _, has := u.User.Password(); has {
		return fmt.Errorf("the address of the Redis server: a password does not belong there: %w", assay.ErrInvalid)
	}
	return nil
}

// Open returns a server. It does not connect. The error is assay.ErrInvalid.
func Open(c Config) (*Server, error) {
	if err := CheckURL(c.URL); err != nil {
		return nil, err
	}
	if c.Key != "" && len(c.Key) < MinKey {
		return nil, fmt.Errorf("the key of shared vectors has %d bytes, want at least %d: %w", len(c.Key), MinKey, assay.ErrInvalid)
	}
	o, err := goredis.ParseURL(c.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of the Redis server cannot be read: %w", assay.ErrInvalid)
	}
	logging.Disable() // it would write to standard error
	if c.Report == nil {
		c.Report = func(error) {}
	}
	c.wait = cmp.Or(c.wait, defaultWait)
	o.Dialer = dialer(o, c)
	o.TLSConfig = nil // the dialer has it
	o.Password = c.Password
	o.Protocol = 2
	o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = attempts, time.Millisecond, 50*time.Millisecond
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.wait, c.wait, c.wait, c.wait
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.PoolSize, o.MaxActiveConns, o.PipelinePoolSize = connections, connections, -1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &Server{client: goredis.NewClient(o), config: c, now: time.Now}, nil
}

// Close closes the connections.
func (s *Server) Close() error { return s.client.Close() }

// Check calls the server and returns its version and how it makes room, for people. The error is
// assay.ErrUnavailable and contains no password.
func (s *Server) Check(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.wait)
	defer cancel()
	if _, err := take.Run(ctx, s.client, nil).Slice(); err != nil {
		return "", s.failed(err)
	}
	info, err := s.client.Info(ctx).Result()
	if err != nil { // its user may not read this
		return "version unknown", nil
	}
	about := "Redis " + field(info, "redis_version")
	if v := field(info, "valkey_version"); v != "" {
		about = "Valkey " + v
	}
	if field(info, "maxmemory") == "0" {
		return about + ", memory unlimited", nil
	}
	return about + ", memory limited, " + field(info, "maxmemory_policy"), nil
}

// field returns a value of the reply to INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok && len(value) < 40 {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// failed returns an error of a call, without the password.
func (s *Server) failed(err error) error {
	text := strings.TrimPrefix(err.Error(), "redis: ")
	return fmt.Errorf("redis: %s: %w", secret.Redact(text, secret.New(s.config.Password), secret.New(s.config.Key)), assay.ErrUnavailable)
}

// outcome notes the error of a call; nil: it succeeded. It reports a change.
func (s *Server) outcome(err error) {
	s.mu.Lock()
	changed := s.down != (err != nil)
	s.down = err != nil
	s.mu.Unlock()
	switch {
	case changed && err != nil:
		s.config.Report(s.failed(err))
	case changed:
		s.config.Report(nil)
	}
}

// errReply is a reply that the commands of this package do not get from Redis.
var errReply = errors.New("the reply is not that of Redis")
