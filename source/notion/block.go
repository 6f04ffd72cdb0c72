package notion

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/assay-rag/assay/source/internal/rest"
)

// Limits of a page.
const (
	maxBlocks   = 50_000
	maxRequests = 5_000 // one for each block with children
	maxNesting  = 100
)

// A block is a part of a page.
type block struct {
	ID             string
	Type           string
	LastEditedTime string
	HasChildren    bool
	Trashed        bool
	body           map[string]any // of the type
	children       []block
}

// UnmarshalJSON reads a block. Its body is in a field with the name of its type.
func (b *block) UnmarshalJSON(data []byte) error {
	var head struct {
		ID             string
		Type           string
		LastEditedTime string `json:"last_edited_time"`
		HasChildren    bool   `json:"has_children"`
		InTrash        bool   `json:"in_trash"`
		Archived       bool
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*b = block{ID: head.ID, Type: head.Type, LastEditedTime: head.LastEditedTime, HasChildren: head.HasChildren, Trashed: head.InTrash || head.Archived}
	b.body, _ = all[head.Type].(map[string]any)
	return nil
}

// A reading counts the blocks and requests of one page.
type reading struct {
	s                *notion
	blocks, requests int
}

// blocks reads all blocks of a page. Pages and databases inside are documents of their own.
func (s *notion) blocks(ctx context.Context, id string) ([]block, error) {
	r := &reading{s: s}
	return r.children(ctx, id, 0)
}

func (r *reading) children(ctx context.Context, id string, depth int) ([]block, error) {
	var all []block
	query := url.Values{"page_size": {"100"}}
	pager := r.s.client.Pager()
	for {
		r.requests++
		if r.requests > maxRequests || r.blocks > maxBlocks || depth > maxNesting {
			return nil, &rest.Error{Source: name, TooLarge: true,
				Message: fmt.Sprintf("a page with more than %d blocks, %d blocks with children, or %d levels", maxBlocks, maxRequests, maxNesting)}
		}
		var found list[block]
		if err := r.s.client.Get(ctx, "/v1/blocks/"+url.PathEscape(id)+"/children", query, &found); err != nil {
			return nil, err
		}
		if found.Results == nil {
			return nil, r.s.client.Malformed("a list without blocks")
		}
		r.blocks += len(*found.Results)
		all = append(all, *found.Results...)
		if !found.HasMore || found.NextCursor == "" {
			break
		}
		if err := pager.Next(found.NextCursor, len(*found.Results)); err != nil {
			return nil, err
		}
		query.Set("start_cursor", found.NextCursor)
	}
	for i := range all {
		b := &all[i]
		if !b.HasChildren || b.Type == "child_page" || b.Type == "child_database" {
			continue
		}
		children, err := r.children(ctx, b.ID, depth+1)
		if rest.Gone(err) && b.Type == "synced_block" {
			continue // a copy of a block that is not shared with the integration
		}
		if err != nil {
			return nil, err
		}
		b.children = children
	}
	return all, nil
}

// file returns the address of a file that Notion holds, or of one elsewhere. Videos and sounds are
// not read.
func (b block) file() (held, external string) {
	switch b.Type {
	case "file", "pdf", "image":
		return fileAddress(b.body)
	}
	return "", ""
}

// fileAddress returns the address of a file object.
//
// Source: "File object": the types file, file_upload and external.
func fileAddress(object map[string]any) (held, external string) {
	for _, kind := range []string{"file", "file_upload"} {
		if inner, ok := object[kind].(map[string]any); ok {
			held = cmp.Or(held, text(inner, "url"))
		}
	}
	if inner, ok := object["external"].(map[string]any); ok {
		external = text(inner, "url")
	}
	return held, external
}

func (b block) fileName() string {
	held, _ := b.file()
	return cmp.Or(text(b.body, "name"), fileNameOf(held))
}

// A propertyFile is a file in a property of a page.
type propertyFile struct {
	property, name, address string
	index                   int
}

// propertyFiles returns the files that Notion holds in properties.
func propertyFiles(properties map[string]any) []propertyFile {
	var out []propertyFile
	for _, key := range sortedKeys(properties) {
		p, _ := properties[key].(map[string]any)
		files, _ := p["files"].([]any)
		for i, f := range files {
			object, _ := f.(map[string]any)
			if held, _ := fileAddress(object); held != "" {
				out = append(out, propertyFile{cmp.Or(text(p, "id"), key), cmp.Or(text(object, "name"), fileNameOf(held)), held, i})
			}
		}
	}
	return out
}

func text(object map[string]any, key string) string {
	s, _ := object[key].(string)
	return s
}
