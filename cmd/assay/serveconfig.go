package main

import (
	"context"
	"maps"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/assay-rag/assay/cmd/assay/internal/config"
)

// A shownConfig is what --print-config prints. It has no secret.
type shownConfig struct {
	File        string            `json:"file" yaml:"file"` // empty: none
	Data        string            `json:"data" yaml:"data"`
	Tenant      string            `json:"tenant" yaml:"tenant"`           // of requests without a credential
	Credentials bool              `json:"credentials" yaml:"credentials"` // requests need one
	Server      shownServer       `json:"server" yaml:"server"`
	Identity    shownIdentity     `json:"identity" yaml:"identity"`
	Models      map[string]string `json:"models" yaml:"models"` // by role
	Embedding   string            `json:"embedding" yaml:"embedding"`
	Rerank      string            `json:"rerank" yaml:"rerank"`
	Redis       shownRedis        `json:"redis" yaml:"redis"`
	Offline     bool              `json:"offline" yaml:"offline"`
	Warnings    []string          `json:"warnings" yaml:"warnings"`
}

type shownServer struct {
	config.Server `yaml:",inline"`
	Grace         string `json:"grace" yaml:"grace"`
}

type shownIdentity struct {
	Audience string            `json:"audience" yaml:"audience"`
	Issuers  map[string]string `json:"issuers" yaml:"issuers"` // URLs by name
}

type shownRedis struct {
	URL      string `json:"url" yaml:"url"`           // empty: none
	Password string `json:"password" yaml:"password"` // where it comes from
	Key      string `json:"key" yaml:"key"`           // where it comes from; empty: vectors are not shared
}

// printServeConfig prints the configuration that serve would use.
func (a *app) printServeConfig(ctx context.Context, o serveOptions) error {
	l, err := a.serveSettings(ctx, o, nil)
	if err != nil {
		return err
	}
	c := l.config
	shown := shownConfig{
		File: c.Path, Data: l.at.String(), Tenant: l.tenant, Credentials: l.identified,
		Server:   shownServer{l.server, l.server.Grace.String()},
		Identity: shownIdentity{Audience: c.Identity.Audience, Issuers: map[string]string{}},
		Models:   map[string]string{"verifier": c.Verifier.Name()}, Embedding: c.Embedding.Name(), Rerank: c.Rerank.Name(),
		Redis:   shownRedis{URL: c.Redis.URL, Password: c.Redis.Password.From, Key: c.Redis.Key.From},
		Offline: c.Egress.Offline(), Warnings: append([]string{}, c.Warnings...),
	}
	for _, issuer := range c.Identity.Issuers {
		shown.Identity.Issuers[issuer.Name] = issuer.URL
	}
	for _, role := range slices.Sorted(maps.Keys(c.Roles)) {
		shown.Models[role] = c.Roles[role].Name()
	}
	if o.json {
		return writeJSON(a.stdout, shown)
	}
	text, err := yaml.Marshal(shown)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}
