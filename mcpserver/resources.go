package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// The URIs of resources.
const (
	collectionsURI   = "assay://collections"
	documentsURI     = "assay://documents/"
	documentTemplate = documentsURI + "{id}"
)

func documentResource(id string) string { return documentsURI + id }

// pageSize is the most resources in a page of a list, and mostCollections of collections in their
// resource.
const (
	pageSize        = 100
	mostCollections = 1000
)

func (s *service) addResources(m *mcp.Server) {
	m.AddResource(collectionsResource(), s.readCollections)
	m.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: documentTemplate, Name: "document", Title: "A document", MIMEType: "text/plain",
		Description: "The text of a document, or of a part of it: nextUri in the metadata of a long one is the rest.",
	}, s.readDocument)
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if r, ok := req.(*mcp.ListResourcesRequest); ok && method == "resources/list" {
				return s.listResources(ctx, r)
			}
			return next(ctx, method, req)
		}
	})
}

func collectionsResource() *mcp.Resource {
	return &mcp.Resource{
		URI: collectionsURI, Name: "collections", Title: "Collections", MIMEType: "application/json",
		Description: "The collections in which the user may see documents, with their numbers.",
	}
}

// listResources lists the collections and the documents that the caller may see, in pages.
func (s *service) listResources(ctx context.Context, req *mcp.ListResourcesRequest) (mcp.Result, error) {
	session, err := s.session(req.Extra)
	if err != nil {
		return nil, s.protocolError(ctx, "resources/list", err)
	}
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, invalid("cursor")
	}
	result := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
	setCacheable(ctx, req, &result.Cacheable)
	if len(after) == 0 {
		result.Resources = append(result.Resources, collectionsResource())
	}
	last := ""
	for d, err := range session.Documents(ctx) {
		if err != nil {
			return nil, s.protocolError(ctx, "resources/list", err)
		}
		key := d.Collection + "\x00" + d.URI
		if key <= string(after) {
			continue
		}
		if len(result.Resources) == pageSize {
			result.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		last = key
		result.Resources = append(result.Resources, &mcp.Resource{
			URI: documentResource(d.ID), Name: d.URI, Title: titleOf(d.Title, d.URI), MIMEType: "text/plain",
			Description: "in the collection " + d.Collection,
		})
	}
	return result, nil
}

func (s *service) readCollections(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	session, err := s.session(req.Extra)
	if err != nil {
		return nil, s.protocolError(ctx, "resources/read", err)
	}
	all, err := session.Collections(ctx)
	if err != nil {
		return nil, s.protocolError(ctx, "resources/read", err)
	}
	list := struct {
		Collections []engine.CollectionSummary `json:"collections"`
		More        int                        `json:"more,omitempty"` // left out
	}{Collections: all}
	if len(all) > mostCollections {
		list.Collections, list.More = all[:mostCollections], len(all)-mostCollections
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, s.protocolError(ctx, "resources/read", err)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: collectionsURI, MIMEType: "application/json", Text: string(data)}}}, nil
}

func (s *service) readDocument(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	session, err := s.session(req.Extra)
	if err != nil {
		return nil, s.protocolError(ctx, "resources/read", err)
	}
	id, ok := strings.CutPrefix(req.Params.URI, documentsURI)
	if !ok || id == "" {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	p, err := readPart(ctx, session, id)
	if errors.Is(err, assay.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		return nil, s.protocolError(ctx, "resources/read", err)
	}
	meta := mcp.Meta{untrusted: true, "io.github.assay-rag/start": p.start, "io.github.assay-rag/end": p.end, "io.github.assay-rag/length": len(p.document.Text)}
	if p.next != "" {
		meta["io.github.assay-rag/nextUri"] = documentResource(p.next)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: p.text, Meta: meta}}}, nil
}

// protocolError returns an error of the protocol, for methods whose results have no errors.
func (s *service) protocolError(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := int64(jsonrpc.CodeInternalError)
	if errors.Is(err, assay.ErrInvalid) || errors.Is(err, assay.ErrNotFound) {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: s.tell(ctx, method, err).Error()}
}

// invalid returns the error for a parameter that is wrong.
func invalid(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("invalid %s", what)}
}
