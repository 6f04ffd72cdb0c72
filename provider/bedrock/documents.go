package bedrock

import (
	"cmp"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/internal/passage"
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

// passage converts a result of Bedrock. A passage without text has none.
func (k *Retriever) passage(content *types.RetrievalResultContent, location *types.RetrievalResultLocation, raw map[string]document.Interface, score *float64) passage.Passage {
	meta := metadataOf(raw)
	p := passage.Passage{
		ID: meta[metaChunk].String, Text: textOf(content), URI: cmp.Or(uriOf(location), meta[metaSource].String),
		Title: meta[assay.MetaTitle].String, Metadata: meta,
	}
	if n := meta[metaPage].Number; n >= 1 && n < math.MaxInt32 {
		p.Page = int(n)
	}
	if k.config.RerankModel != "" {
		p.Scores.Rerank = score
	} else {
		p.Scores.Managed = score
	}
	return p
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
	return text
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
