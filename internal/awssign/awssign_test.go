package awssign_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/secret"
)

const (
	keyID   = "AKIAIOSFODNN7EXAMPLE"
	key     = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	session = "session-token"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func fixed(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: keyID, SecretAccessKey: key, SessionToken: session}, nil
}

// verify checks the signature of a request as AWS does, from the documentation alone.
func verify(t *testing.T, r *http.Request, body []byte, service, region string) {
	t.Helper()
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+keyID+"/20261122/"+region+"/"+service+"/aws4_request, SignedHeaders=")
	names, signature, ok2 := strings.Cut(rest, ", Signature=")
	if !ok || !ok2 {
		t.Fatalf("Authorization is %q", r.Header.Get("Authorization"))
	}
	signed := strings.Split(names, ";")
	for _, must := range []string{"host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(signed, must) {
			t.Errorf("%s is not signed: %s", must, names)
		}
	}
	if slices.Contains(signed, "content-length") {
		t.Errorf("content-length is signed, which OpenSearch Serverless refuses: %s", names)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if got := r.Header.Get("X-Amz-Content-Sha256"); got != hash {
		t.Errorf("X-Amz-Content-Sha256 is %s, want %s", got, hash)
	}
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.Query().Encode() + "\n"
	for _, name := range signed {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		canonical += name + ":" + value + "\n"
	}
	canonical += "\n" + names + "\n" + hash
	digest := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n20261122T120000Z\n20261122/" + region + "/" + service + "/aws4_request\n" + hex.EncodeToString(digest[:])
	mac := []byte("AWS4" + key)
	for _, part := range []string{"20261122", region, service, "aws4_request", text} {
		h := hmac.New(sha256.New, mac)
		h.Write([]byte(part))
		mac = h.Sum(nil)
	}
	if want := hex.EncodeToString(mac); signature != want {
		t.Errorf("the signature is %s, want %s of\n%s", signature, want, canonical)
	}
}

func TestTransport(t *testing.T) {
	t.Parallel()
	type received struct {
		r    *http.Request
		body []byte
	}
	var mu sync.Mutex
	var got []received
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, received{r, body})
		mu.Unlock()
	}))
	defer server.Close()
	client := http.Client{Transport: &awssign.Transport{
		Next: server.Client().Transport, Service: awssign.OpenSearchServerless, Region: "eu-west-1",
		Credentials: aws.CredentialsProviderFunc(fixed), Now: func() time.Time { return noon },
	}}
	for _, tt := range []struct{ method, path, body string }{
		{http.MethodGet, "/_cat/indices?v=true&format=json", ""},
		{http.MethodPost, "/chunks/_search", `{"query":{"match_all":{}}}`},
		{http.MethodPost, "/_bulk", strings.Repeat("{\"index\":{}}\n{}\n", 10_000)},
		{http.MethodDelete, "/chunks%2Fa/_doc/1", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		mu.Lock()
		last := got[len(got)-1]
		mu.Unlock()
		if string(last.body) != tt.body || last.r.ContentLength != int64(len(tt.body)) {
			t.Errorf("%s: %d bytes arrived with the length %d, want %d", tt.path, len(last.body), last.r.ContentLength, len(tt.body))
		}
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s: the caller's request was changed", tt.path)
		}
		if tt.path != "/chunks%2Fa/_doc/1" { // the path is escaped twice in its canonical form
			verify(t, last.r, last.body, "aoss", "eu-west-1")
		}
	}
}

// closing is a body that records that it was closed.
type closing struct {
	io.Reader
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

func TestTransportFails(t *testing.T) {
	t.Parallel()
	none := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("no provider in chain, tried secret_access_key=" + key)
	})
	unsent := func(*http.Request) (*http.Response, error) {
		t.Error("an unsigned request was sent")
		return nil, io.EOF
	}
	try := func(c aws.CredentialsProvider, ctx context.Context, body io.Reader) (bool, error) {
		closed := false
		tr := &awssign.Transport{Next: roundTrip(unsent), Service: "aoss", Region: "eu-west-1", Credentials: c}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://x.eu-west-1.aoss.amazonaws.com/", closing{body, &closed})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.RoundTrip(r)
		return closed, err
	}
	closed, err := try(none, t.Context(), strings.NewReader("x"))
	if !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), key) || !closed {
		t.Errorf("without credentials: %v, body closed: %v", err, closed)
	}
	closed, err = try(aws.CredentialsProviderFunc(fixed), t.Context(), io.LimitReader(zeros{}, awssign.MaxBody+1))
	if !errors.Is(err, assay.ErrInvalid) || !closed {
		t.Errorf("with a huge body: %v, body closed: %v", err, closed)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := try(none, ended, bytes.NewReader(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLoad(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	empty := t.TempDir() + "/none"
	t.Setenv("AWS_CONFIG_FILE", empty)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", empty)
	c := awssign.Credentials{AccessKeyID: keyID, SecretAccessKey: secret.New(key)}
	if _, err := awssign.Load(t.Context(), c); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), key) {
		t.Errorf("without a region: %v", err)
	}
	c.Region = "eu-west-1"
	loaded, err := awssign.Load(t.Context(), c)
	if err != nil || loaded.Region != "eu-west-1" {
		t.Fatalf("%+v, %v", loaded.Region, err)
	}
	if got, err := loaded.Credentials.Retrieve(t.Context()); err != nil || got.SecretAccessKey != key {
		t.Errorf("credentials of %s, %v", got.AccessKeyID, err)
	}
	c.Profile = "missing"
	if _, err := awssign.Load(t.Context(), c); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), key) {
		t.Errorf("with an unknown profile: %v", err)
	}
}
