// Package results makes what services say that the web holds into what the vocabulary
// calls results: no address but the web's, none twice, and text without anything in it
// that is not seen.
package results

import (
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Raw result is as a service has sent it.
type Raw struct{ URL, Title, Text string }

// What is kept of a result, in bytes. More is cut, and ends in an ellipsis.
const (
	maxURL   = 2048
	maxTitle = 300
	maxText  = 4000
)

// Clean returns the first n results that can be used, in their order. Those whose
// address is none of HTTP, or has a user in it, are left out, as are those without one
// and those of a page that is there already. Where none of several results has any
// address, the reply is not of the format.
func Clean(c *wire.Client, raw []Raw, n int) ([]assay.WebResult, error) {
	out := []assay.WebResult{}
	seen := map[string]bool{}
	if len(raw) > 0 && !slices.ContainsFunc(raw, func(r Raw) bool { return strings.TrimSpace(r.URL) != "" }) {
		return nil, c.Fail(llm.BadReply, "results without an address")
	}
	for _, r := range raw {
		address, ok := usable(r.URL)
		if !ok || seen[address] || len(out) >= n {
			continue
		}
		seen[address] = true
		out = append(out, assay.WebResult{URL: address, Title: plain(r.Title, maxTitle), Snippet: plain(r.Text, maxText)})
	}
	return out, nil
}

// usable returns the address of a page on the web, without what names a place in it.
func usable(address string) (string, bool) {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURL || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || visible.Line(address) != address {
		return "", false
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), true
}

// plain returns text on one line, with the characters that entities stand for.
func plain(text string, most int) string {
	text = visible.Line(html.UnescapeString(text))
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}
