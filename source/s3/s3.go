// Package s3 reads a bucket of Amazon S3 or of a service with its API as a source.
package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/source"
)

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name: "s3", Short: "a bucket of Amazon S3 or of a service with its API", Target: "s3://BUCKET[/PREFIX]",
		Help: `Reads the objects below PREFIX. An object is fetched again if its ETag changes.
NAME.EXT.metadata.json beside NAME.EXT gives a document its metadata and ACL; the permissions
of the bucket itself are not read. Without access-key the credentials are those of the AWS
configuration: environment, profile or role.`,
		Options: []source.Option{
			{Name: "region", Default: "us-east-1", Help: "region of the bucket"},
			{Name: "endpoint", Help: "URL of a service other than AWS, such as https://minio.example.com"},
			{Name: "path-style", Default: "false", Help: "true: the bucket is in the path of the URL, not in the host"},
			{Name: "page-size", Default: "1000", Help: "objects of one listing request, 1 to 1000"},
			source.AllowPrivateOption,
		},
		Hosts: egress.AWSFixed().Strings(),
		Credentials: []source.Credential{
			{Name: "access-key", Env: "AWS_ACCESS_KEY_ID", Help: "access key ID", Optional: true},
			{Name: "secret-key", Env: "AWS_SECRET_ACCESS_KEY", Help: "secret access key", Optional: true},
			{Name: "session-token", Env: "AWS_SESSION_TOKEN", Help: "token of temporary keys", Optional: true},
		},
		SweepOnly: true,
		Open:      open,
	}
}

type bucket struct {
	config   source.Config
	client   *s3.Client
	name     string
	prefix   string
	pageSize int32
}

func open(ctx context.Context, c source.Config) (source.Source, error) {
	c = c.WithDefaults()
	rest, ok := strings.CutPrefix(c.Target, "s3://")
	name, prefix, _ := strings.Cut(rest, "/")
	if !ok || name == "" || strings.ContainsAny(name, "@:?#") {
		return nil, fmt.Errorf("target %q is not s3://BUCKET[/PREFIX]: %w", c.Target, assay.ErrInvalid)
	}
	size, err := strconv.ParseInt(c.Options["page-size"], 10, 32)
	if err != nil || size < 1 || size > 1000 {
		return nil, fmt.Errorf("option page-size is %q, want 1 to 1000: %w", c.Options["page-size"], assay.ErrInvalid)
	}
	endpoint := c.Options["endpoint"]
	if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Host == "" || u.User != nil) {
		return nil, fmt.Errorf("option endpoint is not the URL of a service: %w", assay.ErrInvalid)
	}
	provider, err := credentialsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	within := *c.HTTP
	within.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // net/http would send the session token to another host
	}
	client := s3.New(s3.Options{
		Region: c.Options["region"], Credentials: provider, HTTPClient: &within, Retryer: aws.NopRetryer{},
		UsePathStyle:               c.Options["path-style"] == "true",
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}, func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	})
	return &bucket{config: c, client: client, name: name, prefix: prefix, pageSize: int32(size)}, nil
}

// credentialsOf returns the keys of the source or, without one, those of the AWS configuration,
// which are read at the first request.
func credentialsOf(ctx context.Context, c source.Config) (aws.CredentialsProvider, error) {
	values := map[string]string{}
	for _, name := range []string{"access-key", "secret-key", "session-token"} {
		value, err := c.Credential(name)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	if values["access-key"] != "" {
		return credentials.NewStaticCredentialsProvider(values["access-key"], values["secret-key"], values["session-token"]), nil
	}
	within := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DialContext, t.Proxy = c.Dial, nil
		if own, ok := c.HTTP.Transport.(*http.Transport); ok {
			t.DialContext, t.Proxy = own.DialContext, own.Proxy
		}
	})
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(c.Options["region"]), config.WithHTTPClient(within))
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w: %w", err, assay.ErrInvalid)
	}
	return loaded.Credentials, nil
}

func (b *bucket) Changes(ctx context.Context, _ string) iter.Seq2[source.Change, error] {
	return source.ChangesOf(b.Sweep(ctx))
}

// An object is a listed object whose sidecar may still follow in the listing.
type object struct {
	key      string
	etag     string
	size     int64
	modified time.Time
	sidecar  bool
}

func (b *bucket) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		var pending []object
		emit := func(until string) bool {
			for len(pending) > 0 && (until == "" || until > pending[0].key+source.SidecarSuffix) {
				item, err := b.item(ctx, pending[0])
				_, skipped := source.AsSkip(err)
				if !yield(item, err) || err != nil && !skipped {
					return false
				}
				pending = pending[1:]
			}
			return true
		}
		for o, err := range b.list(ctx) {
			if err != nil {
				yield(source.Item{}, err)
				return
			}
			document, isSidecar := strings.CutSuffix(o.key, source.SidecarSuffix)
			if isSidecar {
				for i := range pending {
					pending[i].sidecar = pending[i].sidecar || pending[i].key == document
				}
			} else if !strings.HasSuffix(o.key, "/") { // else a folder that a console made
				pending = append(pending, o)
			}
			if !emit(o.key) {
				return
			}
		}
		emit("")
	}
}

// maxEmptyPages bounds consecutive pages without objects. Services may skip over deleted ones.
const maxEmptyPages = 500

// list yields all objects below the prefix by key. A listing that is not in the order of keys is an
// error, because a sidecar is expected after its document and a repeated page has no end.
func (b *bucket) list(ctx context.Context) iter.Seq2[object, error] {
	return func(yield func(object, error) bool) {
		var token *string
		last, empty := "", 0
		for {
			page, err := b.page(ctx, token)
			var objects []object
			if err == nil {
				objects, err = listed(page, last)
			}
			if err != nil {
				yield(object{}, b.failed(ctx, err))
				return
			}
			for _, o := range objects {
				if !yield(o, nil) {
					return
				}
				last = o.key
			}
			if !aws.ToBool(page.IsTruncated) {
				return
			}
			if empty++; len(objects) > 0 {
				empty = 0
			}
			if token = page.NextContinuationToken; aws.ToString(token) == "" || empty > maxEmptyPages {
				yield(object{}, b.failed(ctx, errors.New("the listing of the service does not end")))
				return
			}
		}
	}
}

// page requests a page of the listing.
func (b *bucket) page(ctx context.Context, token *string) (page *s3.ListObjectsV2Output, err error) {
	err = b.config.Retry(ctx, func(ctx context.Context) error {
		page, err = b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
			Bucket: &b.name, Prefix: &b.prefix, ContinuationToken: token, MaxKeys: &b.pageSize,
			EncodingType: types.EncodingTypeUrl, // XML has no form for some characters of keys
		})
		return b.transient(ctx, err)
	})
	return page, err
}

// listed returns the objects of a page, whose keys must follow the last one of the page before.
func listed(page *s3.ListObjectsV2Output, last string) ([]object, error) {
	var objects []object
	for _, o := range page.Contents {
		key := aws.ToString(o.Key)
		if page.EncodingType == types.EncodingTypeUrl {
			var err error
			if key, err = url.QueryUnescape(key); err != nil {
				return nil, fmt.Errorf("a key in the listing: %w", err)
			}
		}
		if key <= last {
			return nil, fmt.Errorf("the service lists %q after %q, not in the order of keys", key, last)
		}
		next := object{key: key, etag: strings.Trim(aws.ToString(o.ETag), `"`), size: aws.ToInt64(o.Size)}
		if o.LastModified != nil && assay.ValidTime(*o.LastModified) {
			next.modified = o.LastModified.UTC()
		}
		objects, last = append(objects, next), key
	}
	return objects, nil
}

func (b *bucket) uri(key string) string { return "s3://" + b.name + "/" + source.EscapeName(key) }

// item describes an object. It reads its sidecar.
func (b *bucket) item(ctx context.Context, o object) (source.Item, error) {
	below := strings.TrimPrefix(strings.TrimPrefix(o.key, b.prefix), "/")
	item := source.Item{
		URI: b.uri(o.key), Name: path.Base(o.key), Version: o.etag, Ref: o.key, Size: o.size,
		Metadata: assay.Metadata{assay.MetaPath: assay.ListValue(strings.Split(cmp.Or(below, path.Base(o.key)), "/")...)},
	}
	if !o.modified.IsZero() {
		item.Metadata[assay.MetaModified] = assay.TimeValue(o.modified)
	}
	if !o.sidecar {
		return item, nil
	}
	content, err := b.get(ctx, o.key+source.SidecarSuffix, source.MaxSidecarBytes)
	if err == nil {
		var sidecar source.Sidecar
		if sidecar, err = source.ParseSidecar(content.Data); err == nil {
			item.ACL = sidecar.ACL
			for key, value := range sidecar.Metadata {
				item.Metadata[key] = value
			}
			return item, nil
		}
	}
	if _, skipped := source.AsSkip(err); !skipped && !errors.Is(err, assay.ErrInvalid) {
		return source.Item{}, err
	}
	return source.Item{}, &source.Skip{URI: item.URI, Reason: source.BadSidecar, Err: err,
		Detail: "its sidecar is not usable, so who may see it is not known: " + err.Error()}
}

func (b *bucket) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	return b.get(ctx, item.Ref, b.config.MaxBytes)
}

// get reads an object of at most limit bytes.
func (b *bucket) get(ctx context.Context, key string, limit int64) (source.Content, error) {
	var c source.Content
	err := b.config.Retry(ctx, func(ctx context.Context) error {
		c = source.Content{Read: b.config.Now(), Metadata: assay.Metadata{}}
		out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
		if err != nil {
			return b.transient(ctx, err)
		}
		defer out.Body.Close()
		if c.Data, err = io.ReadAll(io.LimitReader(out.Body, limit+1)); err != nil {
			return b.transient(ctx, err)
		}
		if t := aws.ToString(out.ContentType); t != "" && t != "application/octet-stream" && t != "binary/octet-stream" {
			c.Type, _, _ = strings.Cut(t, ";")
		}
		if out.LastModified != nil && assay.ValidTime(*out.LastModified) {
			c.Modified = out.LastModified.UTC()
		}
		for name, value := range out.Metadata {
			c.Metadata[strings.ToLower(name)] = assay.StringValue(strings.ToValidUTF8(value, "\uFFFD"))
		}
		return nil
	})
	if err == nil && int64(len(c.Data)) > limit {
		return source.Content{}, source.Config{MaxBytes: limit}.TooLarge(b.uri(key), -1)
	}
	if err != nil {
		return source.Content{}, b.failedObject(ctx, key, err)
	}
	return c, nil
}

// transient marks the errors that may not happen again.
func (b *bucket) transient(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return cmp.Or(ctx.Err(), err)
	}
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	hasResponse := errors.As(err, &response)
	switch {
	case hasResponse && (response.HTTPStatusCode() == http.StatusTooManyRequests || response.HTTPStatusCode() >= 500):
	case errors.As(err, &api) && (api.ErrorCode() == "SlowDown" || api.ErrorCode() == "RequestTimeout"):
	case hasResponse || errors.As(err, &api):
		return err
	}
	again := &source.TransientError{Err: err}
	if hasResponse {
		again.After = b.config.RetryAfter(response.Response.Header)
	}
	return again
}

// failed returns the error of a listing.
func (b *bucket) failed(ctx context.Context, err error) error {
	var api smithy.APIError
	code := ""
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case code == "NoSuchBucket":
		return fmt.Errorf("bucket %s: %s: %w", b.name, code, assay.ErrNotFound)
	case refusals[code]:
		return fmt.Errorf("bucket %s: %s: %w", b.name, code, source.ErrCredentials)
	case errors.Is(err, assay.ErrUnavailable):
		return fmt.Errorf("bucket %s: %w", b.name, err)
	}
	return fmt.Errorf("bucket %s: %w: %w", b.name, err, assay.ErrUnavailable)
}

// refusals are the codes of refused credentials.
//
// Source: Amazon S3 API reference, "Error responses".
var refusals = map[string]bool{
	"AccessDenied": true, "InvalidAccessKeyId": true, "SignatureDoesNotMatch": true, "ExpiredToken": true,
	"InvalidToken": true, "Forbidden": true, "AllAccessDisabled": true, "AccountProblem": true,
}

// failedObject returns the error of reading an object.
func (b *bucket) failedObject(ctx context.Context, key string, err error) error {
	var api smithy.APIError
	if ctx.Err() != nil || !errors.As(err, &api) || errors.Is(err, assay.ErrUnavailable) {
		return b.failed(ctx, err)
	}
	skip := &source.Skip{URI: b.uri(key), Reason: source.Unreadable, Detail: "cannot be read: " + api.ErrorCode(), Err: err}
	switch api.ErrorCode() {
	case "NoSuchKey", "NotFound":
		skip.Reason, skip.Detail = source.Vanished, "was removed before it could be read"
	case "InvalidObjectState":
		skip.Reason, skip.Detail = source.Unsupported, "is in an archive storage class and must be restored first"
	}
	return skip
}

func (b *bucket) Close() error { return nil }
