package config

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay/identity"
)

// A SignIn is the OpenID provider at which users of the web pages sign in.
type SignIn struct {
	Name       string // shown to users
	Issuer     string // URL
	ClientID   string
	Secret     Key // may be empty
	Scopes     []string
	Parameters map[string]string // further parameters of requests
}

// fileSignIn is the section sign_in of the section server.
type fileSignIn struct {
	Issuer       string            `yaml:"issuer"` // name in the section identity
	Name         string            `yaml:"name"`
	ClientID     string            `yaml:"client_id"`
	ClientSecret string            `yaml:"client_secret"`
	Scopes       []string          `yaml:"scopes"`
	Parameters   map[string]string `yaml:"parameters"`
}

// signIn reads the section sign_in. It must be called after server and identity.
func (c *Config) signIn() error {
	if c.file.Server == nil || c.file.Server.SignIn == nil {
		return nil
	}
	in := c.file.Server.SignIn
	at := func(key string) []string { return []string{"server", "sign_in", key} }
	i := slices.IndexFunc(c.Identity.Issuers, func(i identity.Issuer) bool { return i.Name == in.Issuer })
	switch {
	case i < 0:
		return c.file.wrong(at("issuer"), "the name of an issuer in the section identity, as in corp", "there is no issuer %s", shown(in.Issuer))
	case in.ClientID == "":
		return c.file.wrong([]string{"server", "sign_in"}, "as in client_id: assay, with which the pages are registered at the provider", "client_id is missing")
	case c.Server.URL == "":
		return c.file.wrong([]string{"server", "sign_in"}, "set server.url, as in https://assay.example.com; the provider sends browsers back there", "the URL of the server is not known")
	}
	s := SignIn{Name: cmp.Or(in.Name, in.Issuer), Issuer: c.Identity.Issuers[i].URL, ClientID: in.ClientID, Scopes: in.Scopes, Parameters: in.Parameters}
	if in.ClientSecret != "" {
		k, command, err := c.credential(in.ClientSecret, at("client_secret")...)
		if err != nil {
			return err
		}
		if command != "" || k.Empty() {
			return c.file.wrong(at("client_secret"), "write !env NAME of a variable that is set, or !file PATH", "the secret cannot be read")
		}
		c.Secrets.add(k.Secret)
		s.Secret = k
	}
	c.SignIn = &s
	return nil
}
