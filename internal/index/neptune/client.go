package neptune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/neptunegraph"
	"github.com/aws/aws-sdk-go-v2/service/neptunegraph/document"
	"github.com/aws/aws-sdk-go-v2/service/neptunegraph/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/secret"
)

// maxReply is the size above which a reply is refused, in bytes.
const maxReply = 16 << 20

// A Config says which graph of Neptune Analytics is used. Graph is required.
type Config struct {
	Credentials awssign.Credentials
	Graph       string       // ID, such as g-12345abcde
	BaseURL     string       // of the data plane, without the graph's ID; empty: AWS's for the region
	HTTP        *http.Client // nil: one that connects by the rules of egress
}

// graphID matches the ID of a graph, which becomes part of a host name.
//
// Source: AWS, Neptune Analytics API Reference, ExecuteQuery, graphIdentifier.
var graphID = lazyregexp.New(`^g-[a-z0-9]{10}$`)

// A Graph is a connection to a graph of Neptune Analytics. It is safe for concurrent use.
type Graph struct {
	config      Config
	client      *neptunegraph.Client
	credentials aws.CredentialsProvider
	pause       func(ctx context.Context, attempt int) error
}

// Connect returns a connection to a graph. It sends no request, but may ask AWS for credentials later.
// An invalid configuration is assay.ErrInvalid.
func Connect(ctx context.Context, c Config) (*Graph, error) {
	if !graphID.MatchString(c.Graph) {
		return nil, fmt.Errorf("%q is not the ID of a Neptune Analytics graph, such as g-12345abcde: %w", c.Graph, assay.ErrInvalid)
	}
	if u, err := url.Parse(c.BaseURL); c.BaseURL != "" && (err != nil || u.Host == "" || u.User != nil) {
		return nil, fmt.Errorf("the base URL of Neptune is not the URL of a service: %w", assay.ErrInvalid)
	}
	sdk, err := awssign.Load(ctx, c.Credentials)
	if err != nil {
		return nil, fmt.Errorf("connect to Neptune graph %s: %w", c.Graph, err)
	}
	client := c.httpClient(sdk)
	return &Graph{config: c, credentials: sdk.Credentials, pause: pause, client: neptunegraph.NewFromConfig(sdk, func(o *neptunegraph.Options) {
		o.HTTPClient, o.Retryer, o.ClientLogMode = awssign.Client{HTTP: client, MaxBytes: maxReply}, aws.NopRetryer{}, 0
		if c.BaseURL != "" {
			o.BaseEndpoint = &c.BaseURL
		}
	})}, nil
}

// httpClient returns the configured client, or one with the certificates and proxies of AWS's
// configuration that reaches AWS and BaseURL. It does not follow redirects.
func (c Config) httpClient(sdk aws.Config) *http.Client {
	var h http.Client
	if c.HTTP != nil {
		h = *c.HTTP
	} else {
		hosts := egress.AWSHosts()
		if u, err := url.Parse(c.BaseURL); err == nil && u.Host != "" {
			u.Host = c.Graph + "." + u.Host
			if r, ok := egress.HostOf(u.String()); ok {
				hosts = append(hosts, r)
			}
		}
		scope := c.Credentials.Egress.Scope(egress.Scope{Purpose: egress.Provider, Hosts: hosts, Fixed: egress.AWSFixed(), Private: true, Proxy: true})
		t := scope.Transport()
		if b, ok := sdk.HTTPClient.(interface{ GetTransport() *http.Transport }); ok {
			t = b.GetTransport()
			scope.Apply(t)
		}
		h.Transport = t
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

// parameters are the values of a statement's parameters.
type parameters map[string]any

// run sends a statement and returns the rows of its result.
func run[T any](ctx context.Context, g *Graph, statement string, p parameters) ([]T, error) {
	data, err := g.execute(ctx, statement, p)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Results *[]T `json:"results"`
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return nil, fmt.Errorf("read a reply of Neptune: %s: %w", secret.Redact(err.Error()), assay.ErrUnavailable)
	}
	if reply.Results == nil {
		return nil, fmt.Errorf("a reply of Neptune has no results: %w", assay.ErrUnavailable)
	}
	return *reply.Results, nil
}

// Limits of a statement. A search waits for those that read, so they give up early.
const (
	readAttempts  = 3
	readTimeout   = 10 * time.Second // of one attempt
	writeAttempts = 8                // with the pauses between, about ten seconds
	writeTimeout  = time.Minute
)

// writes reports whether a statement writes.
func writes(statement string) bool {
	return strings.Contains(statement, " SET ") || strings.Contains(statement, " DELETE ")
}

// execute sends a statement. It does so again after failures that may not happen again, because every
// statement may be executed several times.
func (g *Graph) execute(ctx context.Context, statement string, p parameters) ([]byte, error) {
	values := make(map[string]document.Interface, len(p))
	for name, v := range p {
		values[name] = document.NewLazyDocument(v)
	}
	attempts, timeout := readAttempts, readTimeout
	if writes(statement) {
		attempts, timeout = writeAttempts, writeTimeout
	}
	in := &neptunegraph.ExecuteQueryInput{
		GraphIdentifier: &g.config.Graph, Language: types.QueryLanguageOpenCypher, QueryString: &statement, Parameters: values,
		QueryTimeoutMilliseconds: aws.Int32(int32(timeout.Milliseconds())),
	}
	for attempt := 1; ; attempt++ {
		data, again, err := g.send(ctx, in, timeout)
		if err == nil || !again || attempt == attempts {
			return data, err
		}
		if err := g.pause(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// send sends a request once. again reports whether a failure may not happen again.
func (g *Graph) send(ctx context.Context, in *neptunegraph.ExecuteQueryInput, timeout time.Duration) (data []byte, again bool, err error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := g.client.ExecuteQuery(within, in)
	if err == nil {
		defer out.Payload.Close()
		data, err = io.ReadAll(out.Payload)
	}
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case err != nil:
		return nil, isTransient(err), g.failed(ctx, err)
	}
	return data, false, nil
}

// isTransient reports whether a failure may not happen again: a conflict, a throttled request, a failure
// of the service, or of the connection.
//
// Source: AWS, Neptune Analytics User Guide, "Exceptions".
func isTransient(err error) bool {
	reply, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if ok && reply.HTTPStatusCode() != 0 { // 0: there is no reply
		status := reply.HTTPStatusCode()
		return status == http.StatusConflict || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

// failed returns the error of a request. It contains no credential.
func (g *Graph) failed(ctx context.Context, err error) error {
	text := err.Error()
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		text = api.ErrorCode() + ": " + api.ErrorMessage()
	} else if u, ok := errors.AsType[*url.Error](err); ok {
		text = u.Err.Error() // without the URL
	} else {
		for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(next) {
			text = next.Error() // the SDK repeats its message on each level
		}
	}
	var secrets []secret.Secret
	if c, err := g.credentials.Retrieve(ctx); err == nil {
		secrets = append(secrets, secret.New(c.SecretAccessKey), secret.New(c.SessionToken), secret.New(c.AccessKeyID))
	}
	return fmt.Errorf("ask Neptune graph %s: %s: %w", g.config.Graph, secret.Redact(strings.TrimSpace(text), secrets...), assay.ErrUnavailable)
}

// pause waits before the attempt after the given one: 0.1 s, 0.2 s and so on, up to 3 s, and a random
// part of it less.
func pause(ctx context.Context, attempt int) error {
	d := min(100*time.Millisecond<<(attempt-1), 3*time.Second)
	t := time.NewTimer(d/2 + rand.N(d/2))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
