package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
)

// Sizes of a page of a list.
const (
	defaultPage = 50
	maxPage     = 500
)

// pageSize returns the size of a page; 0: the default. One that is out of range is assay.ErrInvalid.
func pageSize(limit int) (int, error) {
	switch {
	case limit == 0:
		return defaultPage, nil
	case limit < 1 || limit > maxPage:
		return 0, fieldErrors{{Parameter: "limit", Detail: fmt.Sprintf("%d is not from 1 to %d", limit, maxPage)}}
	}
	return limit, nil
}

// A cursor is the place in a list after which a page begins. It belongs to one list: to a route with
// the same parameters. It has a checksum, so that a damaged one, or that of another list, is refused
// and does not skip anything. It needs no signature, because a place in the caller's own list gives
// no rights.
const checksumBytes = 8

// cursor returns the cursor of a place in the list that the request asks for.
func (x *exchange) cursor(place any) (string, error) {
	data, err := json.Marshal(place)
	if err != nil {
		return "", fmt.Errorf("encode a cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(x.checksum(data), data...)), nil
}

// place decodes a cursor into a place. The empty cursor leaves it alone.
func (x *exchange) place(cursor string, place any) error {
	if cursor == "" {
		return nil
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil && len(data) > checksumBytes && string(data[:checksumBytes]) == string(x.checksum(data[checksumBytes:])) {
		err = json.Unmarshal(data[checksumBytes:], place)
		if err == nil {
			return nil
		}
	}
	return fieldErrors{{Parameter: "cursor", Detail: "it is not a cursor of this list: begin again without one"}}
}

// checksum returns the checksum of a place in the list that the request asks for.
func (x *exchange) checksum(place []byte) []byte {
	list := x.r.URL.Query()
	list.Del("cursor")
	list.Del("limit")
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s?%s\n%s", x.route.Name, x.r.URL.Path, list.Encode(), place))
	return sum[:checksumBytes]
}

// linkNext adds the header Link to the next page (RFC 8288).
func (x *exchange) linkNext(cursor string) {
	if cursor == "" {
		return
	}
	next := url.URL{Path: x.r.URL.Path}
	query := x.r.URL.Query()
	query.Set("cursor", cursor)
	next.RawQuery = query.Encode()
	x.w.Header().Set("Link", "<"+next.String()+`>; rel="next"`)
}
