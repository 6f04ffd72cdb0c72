package sharepoint

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// batchSize is the largest number of requests in a batch.
//
// Source: "Combine multiple HTTP requests using JSON batching" of Microsoft Graph.
const batchSize = 20

// A lister returns the permissions of items of one drive. It holds those of one page of a listing,
// which were read in batches.
type lister struct {
	s     *sharepoint
	drive string
	known map[string]listed // by item
}

// listed is the answer to a request for permissions.
type listed struct {
	permissions []permission
	err         error
}

// batched reads the permissions of the files among items, in batches.
func (s *sharepoint) batched(ctx context.Context, drive string, items []driveItem) (*lister, error) {
	l := &lister{s: s, drive: drive, known: map[string]listed{}}
	var ids []string
	for _, d := range items {
		if d.ID != "" && d.File != nil && d.Deleted == nil {
			ids = append(ids, d.ID)
		}
	}
	for part := range slices.Chunk(ids, batchSize) {
		if err := l.read(ctx, part); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// read reads the permissions of at most batchSize items. Requests that need to be repeated or
// continued are left to permissions.
func (l *lister) read(ctx context.Context, ids []string) error {
	type request struct {
		ID     string `json:"id"`
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	var requests []request
	for i, id := range ids {
		requests = append(requests, request{strconv.Itoa(i), http.MethodGet, "/drives/" + url.PathEscape(l.drive) + "/items/" + url.PathEscape(id) + "/permissions"})
	}
	var reply struct {
		Responses []struct {
			ID     string
			Status int
			Body   json.RawMessage
		}
	}
	if err := l.s.client.Post(ctx, "/v1.0/$batch", map[string]any{"requests": requests}, &reply); err != nil {
		return err
	}
	for _, r := range reply.Responses {
		i, err := strconv.Atoi(r.ID)
		if err != nil || i < 0 || i >= len(ids) {
			return l.s.client.Malformed("a batch with a response to no request")
		}
		switch r.Status {
		case http.StatusForbidden, http.StatusNotFound:
			l.known[ids[i]] = listed{err: l.s.client.Failed(r.Status, "the permissions of an item: HTTP %d", r.Status)}
		case http.StatusOK:
			var p page[permission]
			if err := json.Unmarshal(r.Body, &p); err != nil || p.Value == nil {
				return l.s.client.Malformed("a batch with a list that cannot be read")
			}
			if p.NextLink == "" {
				l.known[ids[i]] = listed{permissions: *p.Value}
			}
		}
	}
	return nil
}

// permissions returns the permissions of an item.
func (l *lister) permissions(ctx context.Context, id string) ([]permission, error) {
	if found, ok := l.known[id]; ok {
		return found.permissions, found.err
	}
	return all[permission](ctx, l.s, itemPath(l.drive, id)+"/permissions")
}
