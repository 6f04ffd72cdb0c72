package config

import (
	"cmp"
	"context"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/awssign"
	"github.com/assay-rag/assay/internal/index/neptune"
)

// fileGraph is the section graph: where the graph of the index is, if it is not in the index.
type fileGraph struct {
	Neptune *fileNeptune `yaml:"neptune"`
}

type fileNeptune struct {
	Provider string `yaml:"provider"` // of type bedrock, whose account is used
	ID       string `yaml:"id"`
	BaseURL  string `yaml:"base_url"`
}

// graph checks the section graph.
func (c *Config) graph() error {
	g := c.file.Graph
	if g == nil {
		return nil
	}
	if g.Neptune == nil || g.Neptune.ID == "" {
		return c.file.wrong([]string{"graph"}, "as in neptune: {id: g-12345abcde}", "names no graph of Neptune Analytics")
	}
	name := cmp.Or(g.Neptune.Provider, Bedrock)
	if p := c.Providers[name]; p == nil || p.Type != Bedrock {
		return c.file.wrong([]string{"graph", "neptune", "provider"}, "name a provider of type bedrock", "%s is not a provider of type bedrock", shown(name))
	}
	return nil
}

// Graph opens the graph of the section graph; nil: there is none. It sends no request.
func (s *Set) Graph(ctx context.Context) (*neptune.Graph, error) {
	if s.c.file.Graph == nil {
		return nil, nil
	}
	in := s.c.file.Graph.Neptune
	p := s.c.Providers[cmp.Or(in.Provider, Bedrock)]
	g, err := neptune.Connect(ctx, neptune.Config{
		Graph: in.ID, BaseURL: in.BaseURL, Credentials: awssign.Credentials{Region: p.AWS.Region, Profile: p.AWS.Profile, Egress: s.c.Egress},
	})
	if err != nil {
		return nil, s.c.file.wrong([]string{"graph", "neptune"}, "", "%s", strings.TrimSuffix(s.c.Secrets.Scrub(err.Error()), ": "+assay.ErrInvalid.Error()))
	}
	return g, nil
}
