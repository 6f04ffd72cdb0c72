package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/index/shared"
)

// The kinds of index.
const (
	OwnIndex   = "own"        // derived on this machine from the store's changes
	PGVector   = "pgvector"   // in the store's database
	OpenSearch = "opensearch" // in a cluster
)

// The variables that take precedence over the section index.
const (
	indexVariable   = "ASSAY_INDEX"
	clusterVariable = "ASSAY_INDEX_URL"
)

// fileIndex is the section index. docs/scale.md describes each key.
type fileIndex struct {
	Kind      string        `yaml:"kind"`
	Addresses []string      `yaml:"addresses"`
	Username  string        `yaml:"username"`
	Password  string        `yaml:"password"`
	CA        string        `yaml:"ca"`
	Prefix    string        `yaml:"prefix"`
	Shards    int           `yaml:"shards"`
	Replicas  *int          `yaml:"replicas"`
	AWS       *fileIndexAWS `yaml:"aws"`
}

type fileIndexAWS struct {
	Region  string `yaml:"region"`
	Profile string `yaml:"profile"`
	Service string `yaml:"service"`
}

// index reads the kind of the index and the cluster of one in OpenSearch.
func (c *Config) index(s *Store, flag string) error {
	in := c.file.Index
	if in == nil {
		in = &fileIndex{}
	}
	kinds := []string{OwnIndex, PGVector, OpenSearch}
	detail := "want one of " + strings.Join(kinds, ", ")
	for _, x := range []struct{ value, where string }{{flag, "--index"}, {c.getenv(indexVariable), indexVariable}, {in.Kind, ""}} {
		switch {
		case x.value == "":
			continue
		case !slices.Contains(kinds, x.value) && x.where == "":
			return c.file.wrong([]string{"index", "kind"}, "", "%s", detail)
		case !slices.Contains(kinds, x.value):
			return &Error{Where: x.where, Detail: detail}
		}
		s.Index = x.value
		break
	}
	switch {
	case s.Index == PGVector && !s.Remote():
		return &Error{Where: "index", Detail: "pgvector is an index in the database of the store, which is a data directory", Hint: "name a database with --store, or use the index own"}
	case s.Index == OpenSearch:
		return c.cluster(s, in)
	}
	return nil
}

// cluster reads the cluster of an index in OpenSearch.
func (c *Config) cluster(s *Store, in *fileIndex) error {
	if text := c.getenv(clusterVariable); text != "" {
		var err error
		s.Cluster, err = shared.ParseCluster(text)
		c.Secrets.add(s.Cluster.Password)
		if found, ok := errors.AsType[*shared.SettingError](err); ok {
			return &Error{Where: clusterVariable, Detail: found.Error()}
		}
		if err != nil {
			return err
		}
		return c.reachable(s)
	}
	if len(in.Addresses) == 0 {
		return &Error{Where: "index", Detail: "no node of the OpenSearch cluster is named", Hint: "set " + clusterVariable + ", or addresses in the section index of the configuration"}
	}
	s.Cluster = shared.Cluster{
		Addresses: in.Addresses, Username: in.Username, Prefix: in.Prefix, Shards: in.Shards, Replicas: in.Replicas,
	}
	if in.CA != "" {
		s.Cluster.CA = c.beside(in.CA)
	}
	if in.Password != "" {
		key, command, err := c.credential(in.Password, "index", "password")
		if err == nil && command != "" {
			key, err = c.runCommand(command, "index", "password")
		}
		if err != nil {
			return err
		}
		if key.Empty() {
			return c.file.wrong([]string{"index", "password"}, "", "it is empty or not set")
		}
		s.Cluster.Password = key.Secret
		c.Secrets.add(key.Secret)
	}
	if in.AWS != nil {
		if err := c.signature(s, in.AWS); err != nil {
			return err
		}
	}
	err := s.Cluster.Check()
	if found, ok := errors.AsType[*shared.SettingError](err); ok {
		return c.file.wrong([]string{"index", found.Setting}, "", "%s", found.Detail)
	}
	if err != nil {
		return err
	}
	return c.reachable(s)
}

// reachable returns an error if the cluster is not on this machine and nothing may leave it.
func (c *Config) reachable(s *Store) error {
	if s.Cluster.Offline = c.Egress.Offline(); s.Cluster.Offline && !s.Cluster.OnThisMachine() {
		return &Error{Where: "index", Detail: "the OpenSearch cluster is not on this machine, and offline nothing leaves it", Hint: "leave offline out, or use another index"}
	}
	return nil
}

// signature reads how requests to Amazon OpenSearch Service are signed.
func (c *Config) signature(s *Store, in *fileIndexAWS) error {
	path := []string{"index", "aws", "service"}
	switch in.Service {
	case "", "es":
	case "aoss":
		return c.file.wrong(path, "use a domain of Amazon OpenSearch Service (es)", "a collection of OpenSearch Serverless cannot hold the index, because it has no _refresh and no _delete_by_query")
	default:
		return c.file.wrong(path, "", "want es")
	}
	s.Cluster.AWS = &shared.AWS{Region: in.Region, Profile: in.Profile}
	return nil
}
