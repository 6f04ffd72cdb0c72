// Package awssign signs HTTP requests to services of AWS that have no client in the SDK, such as the
// data plane of OpenSearch Serverless, with Signature Version 4.
//
// Sources: AWS, "Authenticating Requests (AWS Signature Version 4)"; AWS, Amazon OpenSearch Service
// Developer Guide, "Signing HTTP requests with other clients" of OpenSearch Serverless.
package awssign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/secret"
)

// The names of services in signatures.
const (
	OpenSearchServerless = "aoss" // collections of OpenSearch Serverless
	OpenSearchDomain     = "es"   // domains of OpenSearch Service
)

// MaxBody is the largest body of a request, in bytes. All of it is read before it is sent, because
// its hash is part of the signature.
const MaxBody = 128 << 20

// A Transport signs each request and hands it to Next. It is safe for concurrent use if Next and
// Credentials are.
//
// Content-Length is not signed, because OpenSearch Serverless refuses signatures that cover it.
// X-Amz-Content-Sha256 is always sent, because it refuses those without.
type Transport struct {
	Next        http.RoundTripper // required
	Service     string            // such as OpenSearchServerless
	Region      string
	Credentials aws.CredentialsProvider
	Now         func() time.Time // nil: time.Now
}

// RoundTrip implements http.RoundTripper. Without credentials the error is assay.ErrUnavailable, and
// with a body over MaxBody assay.ErrInvalid. No error contains a credential.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	c, err := t.Credentials.Retrieve(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("sign a request to %s: no AWS credentials: %s: %w", r.URL.Host, secret.Redact(innermost(err).Error()), assay.ErrUnavailable)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	signed := r.Clone(ctx)
	signed.Body, signed.ContentLength = nil, 0
	signed.Header.Del("Content-Length")
	signed.Header.Set("X-Amz-Content-Sha256", hash)
	now := time.Now
	if t.Now != nil {
		now = t.Now
	}
	if err := v4.NewSigner().SignHTTP(ctx, c, signed, hash, t.Service, t.Region, now()); err != nil {
		return nil, fmt.Errorf("sign a request to %s: %s: %w", r.URL.Host, secret.Redact(err.Error(), secret.New(c.SecretAccessKey), secret.New(c.SessionToken)), assay.ErrUnavailable)
	}
	if len(body) > 0 {
		signed.ContentLength = int64(len(body))
		signed.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		signed.Body, _ = signed.GetBody()
	}
	return t.Next.RoundTrip(signed)
}

// readBody returns the body of a request and closes it.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the body of a request to %s: %w", r.URL.Host, err)
	}
	if len(body) > MaxBody {
		return nil, fmt.Errorf("a request to %s has over %d bytes: %w", r.URL.Host, MaxBody, assay.ErrInvalid)
	}
	return body, nil
}

// innermost returns the last error of a chain, since the SDK repeats its message on each level.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// Credentials configure Load. The zero value uses the configuration of AWS's own tools.
type Credentials struct {
	Region  string // empty: from AWS's configuration
	Profile string // of the shared configuration; empty: the SDK's choice

	// A fixed credential. Empty: the SDK's chain of providers.
	AccessKeyID     string
	SecretAccessKey secret.Secret
	SessionToken    secret.Secret

	Egress *egress.Guard // for the services that issue credentials; nil: the default one
}

// Load reads AWS's configuration: files, environment and metadata service. The SDK's retries are
// disabled. A missing region is assay.ErrInvalid.
func Load(ctx context.Context, c Credentials) (aws.Config, error) {
	scope := c.Egress.Scope(egress.Scope{Purpose: egress.Provider, Hosts: egress.AWSHosts(), Fixed: egress.AWSFixed(), Private: true, Proxy: true})
	options := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithLogger(logging.Nop{}),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(scope.Apply)),
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.Profile))
	}
	if c.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey.Reveal(), c.SessionToken.Reveal())))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	switch {
	case err != nil && ctx.Err() != nil:
		return aws.Config{}, fmt.Errorf("read the AWS configuration: %w", ctx.Err())
	case err != nil:
		return aws.Config{}, fmt.Errorf("read the AWS configuration: %s: %w", secret.Redact(err.Error(), c.SecretAccessKey, c.SessionToken), assay.ErrInvalid)
	case loaded.Region == "":
		return aws.Config{}, fmt.Errorf("no AWS region is configured; set the region, AWS_REGION or the profile's region: %w", assay.ErrInvalid)
	}
	return loaded, nil
}
