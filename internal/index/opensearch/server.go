package opensearch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/assay-rag/assay"
)

// minVersion is the oldest version of OpenSearch that is supported.
const minVersion = "2.19.0"

// A Server is what a cluster says of itself.
type Server struct {
	Version string // of the node that answered
	Nodes   int    // 0: unknown
	Status  string // green, yellow or red; empty: unknown
}

// Server asks the cluster for its version and state. The error is assay.ErrInvalid if what answers is
// no OpenSearch of a supported version with the k-NN plugin, and assay.ErrUnavailable if nothing
// answers or the user is refused.
func (c *Cluster) Server(ctx context.Context) (Server, error) {
	var root struct {
		Version struct{ Distribution, Number string }
	}
	err := c.do(ctx, http.MethodGet, "/", nil, &root)
	if r, ok := errors.AsType[*refusal](err); ok && r.Unwrap() == nil || errors.Is(err, errAnswer) {
		return Server{}, fmt.Errorf("the server is no OpenSearch: %w: %w", err, assay.ErrInvalid)
	}
	if err != nil {
		return Server{}, err
	}
	s := Server{Version: root.Version.Number}
	switch {
	case root.Version.Distribution != "opensearch":
		return s, fmt.Errorf("the server is no OpenSearch: it does not say that it is one: %w", assay.ErrInvalid)
	case semver.Compare("v"+s.Version, "v"+minVersion) < 0:
		return s, fmt.Errorf("OpenSearch has the version %.20q, want %s or later: %w", s.Version, minVersion, assay.ErrInvalid)
	}
	if err := c.checkPlugins(ctx); err != nil {
		return s, err
	}
	var health struct {
		Status string
		Nodes  int `json:"number_of_nodes"`
	}
	if err := c.do(ctx, http.MethodGet, "/_cluster/health", nil, &health); err != nil && !refused(err, http.StatusForbidden) {
		return s, err
	}
	s.Status, s.Nodes = health.Status, health.Nodes
	return s, nil
}

// knnClass is the component of a k-NN plugin that is on the class path.
const knnClass = "org.opensearch.knn.plugin.KNNPlugin"

// checkPlugins checks that each node with a plugin has that for k-NN. A user who may not list the plugins
// learns it from the first Flush.
func (c *Cluster) checkPlugins(ctx context.Context) error {
	var plugins []struct{ Name, Component string }
	err := c.do(ctx, http.MethodGet, "/_cat/plugins?format=json&h=name,component", nil, &plugins)
	if refused(err, http.StatusForbidden) {
		return nil
	}
	if err != nil {
		return err
	}
	has, lacks := map[string]bool{}, ""
	for _, p := range plugins {
		has[p.Name] = has[p.Name] || p.Component == "opensearch-knn" || p.Component == knnClass
	}
	for node, knn := range has {
		if !knn {
			lacks = " on node " + strings.ToValidUTF8(node[:min(len(node), 60)], "")
		}
	}
	if len(has) == 0 || lacks != "" {
		return fmt.Errorf("OpenSearch has no plugin opensearch-knn%s: %w", lacks, assay.ErrInvalid)
	}
	return nil
}
