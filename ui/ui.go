// Package ui serves the web pages of an engine: asking and runs with their evidence, documents,
// reviews, evaluations, governance and administration.
//
// Pages are rendered on the server from html/template and work without JavaScript. Modules of
// JavaScript, which are small and embedded, add live steps, the keyboard and drag and drop. The
// Content-Security-Policy allows no inline script, no inline style and no other origin. Texts of users,
// documents and models are only ever escaped text: offsets of claims and quotes are cut in Go.
//
// Package ui is a door like package server, which it is mounted on: a handler calls methods of
// engine.Session, which check the rights, and has no logic of its own.
package ui

import (
	"fmt"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/server"
)

// A Config configures Pages.
type Config struct {
	Server  *server.Server // required; Mount adds the pages to it
	Log     *slog.Logger   // required; no text of a question, document or answer is logged
	Version string         // of the program

	Provider *Provider // at which users sign in; nil: with a key or a token only
}

// Pages are the web pages of a server. They are safe for concurrent use.
type Pages struct {
	config    Config
	assets    *assets
	templates map[string]*template.Template
	sessions  *sessions
	secrets   *secrets
	provider  *provider // nil: none
}

// Mount adds the pages to a server. It must be called before the server's first request.
func Mount(c Config) (*Pages, error) {
	if c.Server == nil || c.Log == nil {
		return nil, fmt.Errorf("ui: no server or no log: %w", assay.ErrInvalid)
	}
	p := &Pages{config: c, sessions: newSessions(), secrets: newSecrets()}
	var err error
	if p.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if p.templates, err = p.parseTemplates(); err != nil {
		return nil, err
	}
	if c.Provider != nil {
		if p.provider, err = newProvider(*c.Provider); err != nil {
			return nil, err
		}
	}
	c.Server.UseBrowser(p.sessions.credential)
	c.Server.HandlePage("GET "+assetsPath+"{file...}", "ui.assets", false, p.assets)
	for _, r := range Routes() {
		c.Server.HandlePage(r.Method+" "+r.Path, "ui."+r.Name, r.Stream, p.handler(r))
	}
	c.Server.HandleUnknown(http.HandlerFunc(p.unknown))
	return p, nil
}
