package shared

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/opensearch"
	"github.com/assay-rag/assay/internal/secret"
)

// A Cluster configures an OpenSearch cluster. Its zero value is none.
type Cluster struct {
	Addresses []string // URLs of nodes, without credentials
	Username  string   // of basic authentication; empty: none
	Password  secret.Secret
	CA        string // a file of certificates in PEM that sign those of the nodes; empty: the system's

	Prefix   string // of the names of indexes; empty: "assay"
	Shards   int    // of a tenant's index; 0: 1
	Replicas *int   // of each shard; nil: 1

	AWS *AWS // requests are signed for a domain of Amazon OpenSearch Service; nil: they are not

	Offline bool // only nodes on this machine are reached
}

// AWS configures the signature of requests.
type AWS struct {
	Region, Profile string // empty: found as AWS's own tools do
}

// answerTimeout is how long a node may take until it begins to answer a request.
const answerTimeout = 2 * time.Minute

// Check returns an error, which wraps assay.ErrInvalid and names the wrong setting, if c is not valid. It
// connects to nothing.
func (c Cluster) Check() error {
	if len(c.Addresses) == 0 {
		return wrong("addresses", "name at least one node, as in https://search.example.com:9200")
	}
	for _, address := range c.Addresses {
		u, err := url.Parse(address)
		web := err == nil && (u.Scheme == "http" || u.Scheme == "https")
		switch {
		case !web || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
			return wrong("addresses", "want URLs of nodes, as in https://search.example.com:9200")
		case u.User != nil:
			return wrong("addresses", "an address must not have a user or a password")
		case u.Scheme == "http" && !c.Password.Empty() && !loopback(u):
			return wrong("addresses", "the password would cross the network in the clear; use https")
		}
	}
	switch {
	case c.Username == "" && !c.Password.Empty():
		return wrong("username", "there is a password without a user")
	case c.Username != "" && c.Password.Empty():
		return wrong("password", "there is a user without a password")
	case c.AWS != nil && c.Username != "":
		return wrong("aws", "requests have a signature or a password, not both")
	case c.Shards < 0 || c.Shards > 1024:
		return wrong("shards", "want 1 to 1024")
	case c.Replicas != nil && (*c.Replicas < 0 || *c.Replicas > 100):
		return wrong("replicas", "want 0 to 100")
	case strings.Trim(c.Prefix, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.HasPrefix(c.Prefix, "-") || len(c.Prefix) > 100:
		return wrong("prefix", "want lower-case letters, digits and hyphens")
	}
	return nil
}

// A SettingError names the setting of a Cluster that is not valid. It wraps assay.ErrInvalid.
type SettingError struct{ Setting, Detail string }

func wrong(setting, detail string) error { return &SettingError{setting, detail} }

// Error implements error.
func (e *SettingError) Error() string { return e.Setting + ": " + e.Detail }

// Unwrap returns assay.ErrInvalid.
func (e *SettingError) Unwrap() error { return assay.ErrInvalid }

// OnThisMachine reports whether all nodes are at loopback addresses.
func (c Cluster) OnThisMachine() bool {
	for _, address := range c.Addresses {
		if u, err := url.Parse(address); err != nil || !loopback(u) {
			return false
		}
	}
	return true
}

// loopback reports whether a URL is one of this machine.
func loopback(u *url.URL) bool {
	local := egress.New(egress.Config{Offline: true}).Scope(egress.Scope{Purpose: egress.Index, Hosts: rules(u.String()), Private: true})
	return local.Check(context.Background(), u) == nil
}

// rules returns the rules for the hosts of addresses.
func rules(addresses ...string) egress.List {
	var l egress.List
	for _, a := range addresses {
		if r, ok := egress.HostOf(a); ok {
			l = append(l, r)
		}
	}
	return l
}

// ParseCluster reads a Cluster from one text, as an environment variable has it: URLs of nodes, separated
// by commas, the first with the user and the password, and parameters after the last (shards, replicas,
// prefix, and aws with a region or true). No error has a part of the text.
func ParseCluster(text string) (Cluster, error) {
	var c Cluster
	list, parameters, _ := strings.Cut(text, "?")
	for i, address := range strings.Split(list, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil {
			return c, wrong("addresses", "want URLs of nodes, as in https://search.example.com:9200")
		}
		if i == 0 && u.User != nil {
			password, _ := u.User.Password()
			c.Username, c.Password, u.User = u.User.Username(), secret.New(password), nil
		}
		c.Addresses = append(c.Addresses, u.String())
	}
	values, err := url.ParseQuery(parameters)
	if err != nil {
		return c, wrong("parameters", "want NAME=VALUE, separated by &")
	}
	for name, list := range values {
		value := list[len(list)-1]
		n, err := strconv.Atoi(value)
		switch {
		case name == "shards" && err == nil:
			c.Shards = n
		case name == "replicas" && err == nil:
			c.Replicas = &n
		case name == "prefix":
			c.Prefix = value
		case name == "aws":
			c.AWS = &AWS{Region: strings.TrimPrefix(value, "true")}
		default:
			return c, wrong("parameters", "want shards, replicas, prefix or aws")
		}
	}
	return c, c.Check()
}

// nodes are an OpenSearch cluster.
type nodes struct {
	cluster *opensearch.Cluster
	idle    func() // closes idle connections
	checked atomic.Bool
}

// OpenSearch returns the indexes in a cluster, in which package opensearch keeps them. It connects to
// nothing. The nodes are the operator's own, so that the rules of package egress do not hold for them,
// except Offline; but nothing else is reached, and no redirect is followed. An invalid Cluster is
// assay.ErrInvalid.
func OpenSearch(ctx context.Context, c Cluster) (Indexes, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("index in OpenSearch: %w", err)
	}
	scope := egress.New(egress.Config{Offline: c.Offline}).Scope(egress.Scope{Purpose: egress.Index, Hosts: rules(c.Addresses...), Private: true})
	for _, address := range c.Addresses {
		u, err := url.Parse(address)
		if err == nil {
			err = scope.Check(ctx, u)
		}
		if err != nil {
			return nil, fmt.Errorf("index in OpenSearch: %w", err)
		}
	}
	transport := scope.Transport()
	transport.ResponseHeaderTimeout = answerTimeout
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("index in OpenSearch: read the certificates: %w", errors.Join(err, assay.ErrInvalid))
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("index in OpenSearch: %w", wrong("ca", "the file has no certificate in PEM"))
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	var signed http.RoundTripper = transport
	if c.AWS != nil {
		loaded, err := awssign.Load(ctx, awssign.Credentials{Region: c.AWS.Region, Profile: c.AWS.Profile, Egress: scope.Guard})
		if err != nil {
			return nil, fmt.Errorf("index in OpenSearch: %w", err)
		}
		signed = &awssign.Transport{Next: transport, Service: awssign.OpenSearchDomain, Region: loaded.Region, Credentials: loaded.Credentials}
	}
	replicas := 0 // the default
	if c.Replicas != nil {
		replicas = *c.Replicas
		if replicas == 0 {
			replicas = -1
		}
	}
	cluster, err := opensearch.Connect(opensearch.Config{
		Addresses: c.Addresses, Username: c.Username, Password: c.Password.Reveal(), Transport: signed,
		Prefix: c.Prefix, Shards: c.Shards, Replicas: replicas,
	})
	if err != nil {
		return nil, err
	}
	return &nodes{cluster: cluster, idle: transport.CloseIdleConnections}, nil
}

// Open implements Indexes. The first one checks that the server is an OpenSearch that can be used.
func (n *nodes) Open(ctx context.Context, source index.Source) (index.Follower, error) {
	named, ok := source.(index.Identified)
	if !ok {
		return nil, fmt.Errorf("open the index in OpenSearch: the source has no identity: %w", assay.ErrInvalid)
	}
	identity, err := named.Identity(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the index in OpenSearch: %w", err)
	}
	if !n.checked.Load() {
		if _, err := n.cluster.Server(ctx); err != nil {
			return nil, fmt.Errorf("open the index in OpenSearch: %w", err)
		}
		n.checked.Store(true)
	}
	x, err := n.cluster.Open(ctx, identity, source)
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Remove implements Indexes.
func (n *nodes) Remove(ctx context.Context, identity string) error {
	return n.cluster.Remove(ctx, identity)
}

// Describe implements Indexes.
func (n *nodes) Describe(ctx context.Context) (string, error) {
	s, err := n.cluster.Server(ctx)
	if err != nil {
		return "", err
	}
	text := "OpenSearch " + s.Version
	if s.Nodes > 0 {
		text += fmt.Sprintf(", %d nodes, %s", s.Nodes, s.Status)
	}
	return text, nil
}

// Close implements Indexes.
func (n *nodes) Close() error {
	err := n.cluster.Close()
	n.idle()
	return err
}
