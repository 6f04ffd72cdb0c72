package bedrock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
)

// pipeline is the version of the conversion of passages to documents. It is part of the documents'
// versions.
const pipeline = "bedrock/1"

// Bedrock's own metadata keys.
//
// Source: AWS, Amazon Bedrock User Guide, "Query a knowledge base and retrieve data", metadata of
// the response.
const (
	metaSource = "x-amz-bedrock-kb-source-uri"
	metaPage   = "x-amz-bedrock-kb-document-page-number"
	metaChunk  = "x-amz-bedrock-kb-chunk-id"
)

// document returns a retrieved passage as a document version, and its page. The document of a
// passage without text has no text.
func (k *Retriever) document(content *types.RetrievalResultContent, location *types.RetrievalResultLocation, raw map[string]document.Interface) (assay.Document, int) {
	text := textOf(content)
	meta := metadataOf(raw)
	d := assay.Document{
		Collection: k.config.Collection, URI: uriOf(location), Text: text, Metadata: meta, ACL: k.config.Sharing.acl(meta),
		Source: assay.SourceInfo{SizeBytes: int64(len(text))},
	}
	if d.URI == "" {
		d.URI = meta[metaSource].String
	}
	if d.URI == "" {
		d.URI = "bedrock:" + k.id + "/" + meta[metaChunk].String
		if meta[metaChunk].String == "" { // otherwise two passages would be one document
			d.URI, d.Title = d.URI+hashOf(text), k.id
		}
	}
	d.Title = cmp.Or(meta[assay.MetaTitle].String, d.Title, path.Base(strings.TrimRight(d.URI, "/")))
	page := 0
	if n := meta[metaPage].Number; n >= 1 && n < math.MaxInt32 {
		page = int(n)
	}
	if text != "" {
		d.Anchors = []assay.Anchor{{Page: page}}
	}
	d.ID = assay.DocumentID(d.Collection, d.URI)
	d.Version = assay.DocumentVersion(d.Text, d.Metadata, pipeline)
	return d, page
}

// hashOf returns a hash that identifies a text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// textOf returns the text of a passage. A table row is returned as "column: value" lines.
func textOf(c *types.RetrievalResultContent) string {
	if c == nil {
		return ""
	}
	text := aws.ToString(c.Text)
	if text == "" && len(c.Row) > 0 {
		var lines []string
		for _, col := range c.Row {
			lines = append(lines, aws.ToString(col.ColumnName)+": "+aws.ToString(col.ColumnValue))
		}
		text = strings.Join(lines, "\n")
	}
	return strings.TrimSpace(visible.Text(strings.ReplaceAll(text, "\r\n", "\n")))
}

// uriOf returns the source of a passage, or "" if Bedrock does not report it.
func uriOf(l *types.RetrievalResultLocation) string {
	if l == nil {
		return ""
	}
	switch {
	case l.S3Location != nil:
		return aws.ToString(l.S3Location.Uri)
	case l.WebLocation != nil:
		return aws.ToString(l.WebLocation.Url)
	case l.ConfluenceLocation != nil:
		return aws.ToString(l.ConfluenceLocation.Url)
	case l.SalesforceLocation != nil:
		return aws.ToString(l.SalesforceLocation.Url)
	case l.SharePointLocation != nil:
		return aws.ToString(l.SharePointLocation.Url)
	case l.CustomDocumentLocation != nil && aws.ToString(l.CustomDocumentLocation.Id) != "":
		return "custom:" + *l.CustomDocumentLocation.Id
	case l.KendraDocumentLocation != nil:
		return aws.ToString(l.KendraDocumentLocation.Uri)
	case l.SqlLocation != nil && aws.ToString(l.SqlLocation.Query) != "":
		return "sql:" + *l.SqlLocation.Query
	}
	return ""
}

// metadataOf converts Bedrock's metadata. It drops values of kinds that assay does not have.
func metadataOf(raw map[string]document.Interface) assay.Metadata {
	meta := assay.Metadata{}
	for key, doc := range raw {
		if doc == nil {
			continue
		}
		data, err := doc.MarshalSmithyDocument()
		if err != nil {
			continue
		}
		var v assay.Value
		if v.UnmarshalJSON(data) == nil && v.Kind != assay.KindTime {
			meta[key] = v
		}
	}
	return meta
}

// keep stores a document. If the store is full, it replaces the oldest one.
func (k *Retriever) keep(d assay.Document) {
	key := d.ID + "/" + d.Version
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acls[d.ID] = d.ACL
	if _, ok := k.texts[key]; ok {
		return
	}
	k.texts[key] = d
	k.order = append(k.order, key)
	if len(k.order) <= k.config.Keep {
		return
	}
	old := k.order[0]
	k.order = k.order[1:]
	delete(k.texts, old)
	id, _, _ := strings.Cut(old, "/")
	for _, key := range k.order {
		if strings.HasPrefix(key, id+"/") {
			return
		}
	}
	delete(k.acls, id)
}

// ACL returns the ACL of a document according to the latest retrieval. It returns assay.ErrNotFound
// if the document is not kept.
func (k *Retriever) ACL(_ context.Context, id string) (assay.ACL, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	acl, ok := k.acls[id]
	if !ok {
		return assay.ACL{}, fmt.Errorf("document %s of %s: %w", id, k.name, assay.ErrNotFound)
	}
	return acl, nil
}

// Version returns a retrieved document version. It returns assay.ErrNotFound if the version is not
// kept.
func (k *Retriever) Version(_ context.Context, id, version string) (assay.Document, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, ok := k.texts[id+"/"+version]
	if !ok {
		return assay.Document{}, fmt.Errorf("version %s of document %s of %s: %w", version, id, k.name, assay.ErrNotFound)
	}
	return d, nil
}
