package opensearch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/opensearch-project/opensearch-go/v4/opensearchtransport"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
)

// A Config describes a cluster.
type Config struct {
	Addresses []string // URLs of the nodes, at least one, without credentials
	Username  string   // of basic authentication; empty: none
	Password  string
	Transport http.RoundTripper // makes the connections; required

	// Prefix starts the names of the indexes. It has lower-case letters, digits and hyphens. Empty:
	// "assay".
	Prefix   string
	Shards   int // of a tenant's index; 0: 1
	Replicas int // of each shard; 0: 1, negative: none
}

// A Cluster is a connection to an OpenSearch cluster. It is safe for concurrent use.
type Cluster struct {
	config Config
	client *opensearchtransport.Client
	end    context.CancelFunc

	secrets []secret.Secret // that no error contains
}

// maxBackoff is the longest pause between two attempts of a request.
const maxBackoff = 2 * time.Second

// backoff returns the pause after a number of failed attempts, from 50 ms, with jitter.
func backoff(attempt int) time.Duration {
	pause := min(maxBackoff, 50*time.Millisecond<<min(attempt, 10))
	return pause/2 + rand.N(pause/2)
}

// Connect returns a connection to a cluster. It sends no request. Requests that a node cannot take
// are repeated, at another node if there is one, with growing pauses. An invalid Config is
// ErrInvalid.
func Connect(c Config) (*Cluster, error) {
	if c.Transport == nil || len(c.Addresses) == 0 {
		return nil, fmt.Errorf("connect to OpenSearch: neither the transport nor the addresses may be missing: %w", assay.ErrInvalid)
	}
	if c.Prefix == "" {
		c.Prefix = "assay"
	}
	if strings.Trim(c.Prefix, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || c.Prefix[0] == '-' {
		return nil, fmt.Errorf("connect to OpenSearch: prefix %q has other characters than lower-case letters, digits and hyphens: %w", c.Prefix, assay.ErrInvalid)
	}
	c.Shards = max(c.Shards, 1)
	switch {
	case c.Replicas == 0:
		c.Replicas = 1
	case c.Replicas < 0:
		c.Replicas = 0
	}
	var urls []*url.URL
	for _, address := range c.Addresses {
		u, err := url.Parse(strings.TrimRight(address, "/"))
		web := err == nil && (u.Scheme == "http" || u.Scheme == "https")
		if !web || u.Host == "" || u.User != nil {
			return nil, fmt.Errorf("connect to OpenSearch: an address is no URL of http or https without credentials: %w", assay.ErrInvalid)
		}
		urls = append(urls, u)
	}
	ctx, end := context.WithCancel(context.Background())
	client, err := opensearchtransport.New(opensearchtransport.Config{
		URLs: urls, Username: c.Username, Password: c.Password, Transport: c.Transport, Context: ctx,
		MaxRetries: 8, RetryBackoff: backoff,
		RetryOnStatus:     []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout},
		NodeStatsInterval: -1, MaxRetryClusterHealth: -1,
	})
	if err != nil {
		end()
		return nil, fmt.Errorf("connect to OpenSearch: %w: %w", assay.ErrInvalid, err)
	}
	basic := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	return &Cluster{config: c, client: client, end: end, secrets: []secret.Secret{secret.New(c.Password), secret.New(basic)}}, nil
}

// Close ends the connection. The indexes of the cluster cannot be used afterwards.
func (c *Cluster) Close() error {
	c.end()
	return c.client.Close()
}

// alias returns the name of a tenant's alias. Indexes behind it have the name with a suffix.
func (c *Cluster) alias(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return c.config.Prefix + "-" + hex.EncodeToString(sum[:16])
}

// object is a JSON object.
type object = map[string]any

// A refusal is an error that OpenSearch returned.
type refusal struct {
	status int
	reason string // "type: reason"
}

// Error implements error.
func (r *refusal) Error() string {
	switch {
	case r.status == http.StatusUnauthorized:
		return fmt.Sprintf("OpenSearch refuses the user or the password: it answers %d, %s", r.status, r.reason)
	case r.status == http.StatusForbidden:
		return fmt.Sprintf("OpenSearch does not give its user this right: it answers %d, %s", r.status, r.reason)
	case r.status < 400:
		return fmt.Sprintf("OpenSearch answers %d, a redirect, which is not followed", r.status)
	}
	return fmt.Sprintf("OpenSearch answers %d, %s", r.status, r.reason)
}

// lostNode reports whether the node that answers could not reach another one.
func (r *refusal) lostNode() bool {
	kind, _, _ := strings.Cut(r.reason, ":")
	switch kind {
	case "node_not_connected_exception", "node_disconnected_exception", "node_closed_exception", "connect_transport_exception":
		return r.status >= 500
	}
	return false
}

// Unwrap returns the kind of the error. The user and the rights are those of the Config and not of who
// searches, so that 401 and 403 are assay.ErrUnavailable too.
func (r *refusal) Unwrap() error {
	switch {
	case r.status < 400 || r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		return assay.ErrUnavailable
	case r.status == http.StatusTooManyRequests || r.status >= 500:
		return assay.ErrUnavailable
	}
	return nil
}

// refused reports whether err is a refusal with this status.
func refused(err error, status int) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == status
}

// nodeRetries is how often a request is repeated that met a lost node.
const nodeRetries = 8

// do sends a request and decodes the answer into out, which may be nil. body may be nil, and is sent
// as it is if it is a []byte (newline-delimited JSON), otherwise as JSON. A read that the node could not pass
// on, because the cluster has lost another node a moment ago, is repeated.
func (c *Cluster) do(ctx context.Context, method, path string, body, out any) error {
	read := method == http.MethodGet || strings.Contains(path, "/_search")
	for attempt := 0; ; attempt++ {
		err := c.once(ctx, method, path, body, out)
		if r, ok := errors.AsType[*refusal](err); !ok || !read || !r.lostNode() || attempt >= nodeRetries {
			return err
		}
		if err := pause(ctx, backoff(attempt)); err != nil {
			return err
		}
	}
}

// once sends a request as do does, once.
func (c *Cluster) once(ctx context.Context, method, path string, body, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var reader io.Reader
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		reader, contentType = bytes.NewReader(b), "application/x-ndjson"
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("request to OpenSearch: %w", err)
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, path, reader)
	if err != nil {
		return fmt.Errorf("request to OpenSearch: %w", err)
	}
	if reader != nil {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.client.Stream(request)
	if response != nil {
		defer response.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case response == nil:
		return fmt.Errorf("reach OpenSearch: %w: %w", assay.ErrUnavailable, err)
	}
	err = decode(ctx, response, out)
	if r, ok := errors.AsType[*refusal](err); ok {
		r.reason = secret.Redact(r.reason, c.secrets...)
	}
	return err
}

// maxAnswer bounds the bytes of an answer. A full page of hits takes 4 MB.
const maxAnswer = 512 << 20

func decode(ctx context.Context, response *http.Response, out any) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("read from OpenSearch: %w: %w", assay.ErrUnavailable, err)
	}
	if response.StatusCode >= 300 {
		return refusalOf(response.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%w: %w: %w", errAnswer, assay.ErrUnavailable, err)
	}
	return nil
}

// errAnswer means that an answer is not the JSON that was expected.
var errAnswer = errors.New("read the answer of OpenSearch")

// refusalOf returns the error of an answer. The cause of a failed search is that of its first shard.
func refusalOf(status int, data []byte) error {
	var answer struct {
		Error struct {
			Type, Reason string
			RootCause    []struct{ Type, Reason string } `json:"root_cause"`
		}
	}
	r := &refusal{status: status, reason: http.StatusText(status)}
	if json.Unmarshal(data, &answer) == nil && answer.Error.Type != "" {
		r.reason = answer.Error.Type + ": " + answer.Error.Reason
		if root := answer.Error.RootCause; len(root) > 0 {
			r.reason = root[0].Type + ": " + root[0].Reason
		}
	}
	return r
}

// pause waits before another attempt, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
