package assay

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// PageLink returns a URL that opens the document at a page, from 1: the "#page=" fragment of
// RFC 8118, which browsers and PDF viewers follow. It is empty if the page is not known, or the URI
// does not end in ".pdf", or the document is inside another file.
func PageLink(uri string, page int) string {
	if page < 1 || strings.Contains(uri, "!/") {
		return ""
	}
	u := &url.URL{Scheme: "file", Path: uri}
	switch {
	case strings.HasPrefix(uri, "http://"), strings.HasPrefix(uri, "https://"):
		parsed, err := url.Parse(uri)
		if err != nil {
			return ""
		}
		u = parsed
	case strings.HasPrefix(uri, "/"):
	case len(uri) > 3 && uri[1:3] == ":/": // an absolute path on Windows
		u.Path = "/" + uri
	default:
		return ""
	}
	if !strings.EqualFold(path.Ext(u.Path), ".pdf") {
		return ""
	}
	u.Fragment, u.RawFragment = fmt.Sprintf("page=%d", page), ""
	return u.String()
}
