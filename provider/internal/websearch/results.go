package websearch

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

// A Result is a result as sent by a service.
type Result struct{ URL, Title, Text string }

// The size limits of a result, in bytes. Longer titles and texts are truncated with an ellipsis.
const (
	maxURL   = 2048
	maxTitle = 300
	maxText  = 4000
)

// clean returns the first n usable results, in order. It drops results without an HTTP address,
// with a user in it, and of a page that is already included. If none of several results has any
// address, the reply is invalid.
func clean(c *wire.Client, raw []Result, n int) ([]assay.WebResult, error) {
	out := []assay.WebResult{}
	seen := map[string]bool{}
	if len(raw) > 0 && !slices.ContainsFunc(raw, func(r Result) bool { return strings.TrimSpace(r.URL) != "" }) {
		return nil, c.Fail(llm.BadReply, "results without a URL")
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

// usable returns a web address without its fragment, and reports whether it is valid.
func usable(address string) (string, bool) {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURL || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || visible.Line(address) != address {
		return "", false
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), true
}

// plain returns text on one line, with its entities decoded.
func plain(text string, most int) string {
	text = visible.Line(html.UnescapeString(text))
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}
