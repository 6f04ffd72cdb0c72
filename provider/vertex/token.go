package vertex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// Hosts of the services that issue tokens.
const (
	MetadataHost = "metadata.google.internal"
	TokenHost    = "oauth2.googleapis.com"
)

// scope is the right that tokens have.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// early is how long before its end a token is replaced.
const early = time.Minute

// maxCredentials is the largest size of a file with credentials, and of a reply of the metadata server.
const maxCredentials = 64 << 10

// Credentials are Google's application default credentials: the file that GOOGLE_APPLICATION_CREDENTIALS
// names, of a service account or of a user; else that of gcloud; else the metadata server of the
// machine. They are safe for concurrent use.
//
// Source: Google Cloud, "How Application Default Credentials works"; "View and query VM metadata".
type Credentials struct {
	Getenv   func(string) string // nil: os.Getenv
	Home     string              // where gcloud keeps its file; empty: the user's configuration folder
	HTTP     *http.Client        // reaches MetadataHost and TokenHost; required
	Metadata string              // address of the metadata server; empty: http:// MetadataHost

	mu     sync.Mutex
	source func(ctx context.Context) (*oauth2.Token, error)
	token  *oauth2.Token
}

// Token returns an access token. It is kept until a minute before it ends. Credentials that cannot be
// read are assay.ErrInvalid, and a service that fails is assay.ErrUnavailable. No error contains a
// credential.
func (c *Credentials) Token(ctx context.Context) (wire.Secret, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != nil && time.Until(c.token.Expiry) > early {
		return wire.NewSecret(c.token.AccessToken), nil
	}
	if c.source == nil {
		var err error
		if c.source, err = c.find(); err != nil {
			return wire.Secret{}, err
		}
	}
	token, err := c.source(context.WithValue(ctx, oauth2.HTTPClient, c.HTTP))
	if err != nil {
		if ctx.Err() != nil {
			return wire.Secret{}, ctx.Err()
		}
		return wire.Secret{}, fmt.Errorf("get an access token: %s: %w", refusal(err), assay.ErrUnavailable)
	}
	c.token = token
	return wire.NewSecret(token.AccessToken), nil
}

// refusal describes an error of a token service without its text, which may quote the credential.
func refusal(err error) string {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		return fmt.Sprintf("the token service answered HTTP %d", refused.Response.StatusCode)
	}
	return wire.Redact(err.Error())
}

// find returns the source of tokens.
func (c *Credentials) find() (func(context.Context) (*oauth2.Token, error), error) {
	getenv := c.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	path := getenv("GOOGLE_APPLICATION_CREDENTIALS")
	if path != "" {
		return fromFile(path)
	}
	home := c.Home
	if home == "" {
		home, _ = os.UserConfigDir() // without a home there is no file
	}
	path = filepath.Join(home, "gcloud", "application_default_credentials.json")
	if _, err := os.Stat(path); home != "" && err == nil {
		return fromFile(path)
	}
	return c.fromMetadata, nil
}

// A credentialFile is a file with credentials.
type credentialFile struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	TokenURI     string `json:"token_uri"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
}

// fromFile returns the source of tokens of a file.
func fromFile(path string) (func(context.Context) (*oauth2.Token, error), error) {
	data, err := readSmall(path)
	var f credentialFile
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		if _, ok := errors.AsType[*os.PathError](err); !ok {
			err = errors.New("it is no JSON of credentials") // without its text
		}
		return nil, fmt.Errorf("read the Google credentials in %s: %w: %w", path, err, assay.ErrInvalid)
	}
	uri := cmp.Or(f.TokenURI, "https://"+TokenHost+"/token")
	switch f.Type {
	case "service_account":
		config := jwt.Config{Email: f.ClientEmail, PrivateKey: []byte(f.PrivateKey), PrivateKeyID: f.PrivateKeyID, Scopes: []string{scope}, TokenURL: uri}
		return func(ctx context.Context) (*oauth2.Token, error) { return config.TokenSource(ctx).Token() }, nil
	case "authorized_user":
		config := oauth2.Config{ClientID: f.ClientID, ClientSecret: f.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: uri, AuthStyle: oauth2.AuthStyleInParams}}
		return func(ctx context.Context) (*oauth2.Token, error) {
			return config.TokenSource(ctx, &oauth2.Token{RefreshToken: f.RefreshToken}).Token()
		}, nil
	}
	return nil, fmt.Errorf("the Google credentials in %s are of the type %q, want service_account or authorized_user: %w", path, f.Type, assay.ErrInvalid)
}

// readSmall reads a file of at most maxCredentials bytes.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err = errors.Join(err, f.Close()); err == nil && len(data) > maxCredentials {
		err = errors.New("the file is too large")
	}
	return data, err
}

// fromMetadata gets a token of the machine's service account.
func (c *Credentials) fromMetadata(ctx context.Context) (*oauth2.Token, error) {
	address := cmp.Or(c.Metadata, "http://"+MetadataHost) + "/computeMetadata/v1/instance/service-accounts/default/token"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Metadata-Flavor", "Google")
	res, err := c.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("no credentials are configured, and the metadata server is not reached: %w", err)
	}
	defer res.Body.Close()
	var token struct {
		Access  string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the metadata server answered HTTP %d", res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxCredentials)).Decode(&token); err != nil || token.Access == "" {
		return nil, errors.New("the reply of the metadata server is no token")
	}
	return &oauth2.Token{AccessToken: token.Access, Expiry: time.Now().Add(time.Duration(token.Seconds) * time.Second)}, nil
}
