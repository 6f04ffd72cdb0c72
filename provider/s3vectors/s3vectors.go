// Package s3vectors searches an index of Amazon S3 Vectors by meaning, and keeps chunks in one as a cold
// tier below a hot index. It uses the AWS SDK. No type of the SDK is part of the package's API.
//
// Sources: AWS, Amazon S3 API Reference, QueryVectors, PutVectors and DeleteVectors (S3 Vectors); Amazon
// S3 User Guide, "Metadata filtering" and "Limitations and restrictions" of S3 Vectors.
package s3vectors

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors/document"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/internal/awswire"
	"github.com/assay-rag/assay/provider/internal/passage"
)

// The keys of a vector's metadata with its passage. The index must name KeyText as non-filterable,
// because filterable metadata is limited to 2 KB.
const (
	KeyText  = "text"
	KeyURI   = "uri"
	KeyTitle = "title"
)

// The limits of a request.
//
// Source: AWS, Amazon S3 User Guide, "Limitations and restrictions" of S3 Vectors.
const (
	maxResults = 100
	maxBatch   = 500
)

// An Account configures access to AWS.
type Account = awswire.Config

// A Sharing controls access to an index.
type Sharing = passage.Sharing

// A Config configures access to an index. Bucket, Index, Embedder and a Sharing are required; without a
// Sharing no principal can see anything.
type Config struct {
	Account
	Name       string // of the service in errors; empty: "s3-vectors"
	BaseURL    string // empty: AWS's endpoint for the region
	Bucket     string // of vectors
	Index      string
	Collection string       // empty: Index
	Embedder   llm.Embedder // the model of the index

	Sharing Sharing
	Filter  assay.Filter // applied to every query
	Keep    int          // number of retrieved documents kept for citations; 0: 4096

	Guard *resilient.Guard // retries calls that are throttled; nil: each is made once
}

// A Retriever searches an index. It implements assay.Retriever.
//
// In an index with the cosine metric the similarity is Scores.Vector. Otherwise Scores.Managed is the
// negative of the distance.
type Retriever struct {
	*passage.Retriever
	config  Config
	name    string
	account *awswire.Account
}

// New returns a retriever for an index. It does not call AWS. An invalid configuration is
// assay.ErrInvalid.
func New(c Config) (*Retriever, error) {
	name := cmp.Or(c.Name, "s3-vectors") + "/" + c.Bucket + "/" + c.Index
	if c.Bucket == "" || c.Index == "" || strings.ContainsAny(c.Bucket+c.Index, " /?#*\n") || c.Embedder == nil {
		return nil, fmt.Errorf("%s needs a vector bucket, an index and an embedder: %w", name, assay.ErrInvalid)
	}
	if err := c.Account.Check(name); err != nil {
		return nil, err
	}
	c.Endpoints = append(c.Endpoints, c.BaseURL)
	r := &Retriever{config: c, name: name, account: c.Account.Account()}
	var err error
	r.Retriever, err = passage.New(passage.Config{
		Name: name, Source: "s3-vectors:" + c.Bucket + "/" + c.Index, Collection: cmp.Or(c.Collection, c.Index), Pipeline: "s3-vectors/1",
		Sharing: c.Sharing, Filter: c.Filter, Keep: c.Keep, Guard: c.Guard, Recheck: true, Search: r.find, Check: checkFilter,
	})
	return r, err
}

// find makes the search of a request.
func (r *Retriever) find(ctx context.Context, in passage.Request) (passage.Found, error) {
	if in.Query.Mode == assay.ModeText {
		return passage.Found{}, fmt.Errorf("%s: S3 Vectors cannot search in mode %q: %w", r.name, in.Query.Mode, assay.ErrInvalid)
	}
	got, notes, err := r.query(ctx, in.Query, in.Filter)
	if err != nil {
		return passage.Found{}, err
	}
	out := passage.Found{Notes: notes}
	for _, v := range got.Vectors {
		meta := metadataOf(v.Metadata)
		p := passage.Passage{
			ID: aws.ToString(v.Key), Text: meta[KeyText].String, URI: meta[KeyURI].String, Title: meta[KeyTitle].String,
			Metadata: meta, Scores: scores(got.DistanceMetric, v.Distance),
		}
		delete(meta, KeyText) // it is the passage itself
		out.Passages = append(out.Passages, p)
	}
	if in.Query.Limit > maxResults {
		out.Notes = append(out.Notes, fmt.Sprintf("%s: returns at most %d results", r.name, maxResults))
	}
	return out, nil
}

// query makes the request of a search.
func (r *Retriever) query(ctx context.Context, q assay.Query, f assay.Filter) (*s3vectors.QueryVectorsOutput, []string, error) {
	filter, notes, err := compile(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.name, err)
	}
	vectors, err := llm.Embed(ctx, r.config.Embedder, llm.Query, []string{q.Text})
	if err != nil {
		return nil, nil, err
	}
	in := &s3vectors.QueryVectorsInput{
		VectorBucketName: &r.config.Bucket, IndexName: &r.config.Index, QueryVector: &types.VectorDataMemberFloat32{Value: vectors[0]},
		TopK: aws.Int32(int32(min(q.Limit, maxResults))), ReturnDistance: true, ReturnMetadata: true,
	}
	if filter != nil {
		in.Filter = document.NewLazyDocument(filter)
	}
	var out *s3vectors.QueryVectorsOutput
	err = r.call(ctx, func(ctx context.Context, c *s3vectors.Client, http func(*s3vectors.Options)) (err error) {
		out, err = c.QueryVectors(ctx, in, http)
		return err
	})
	return out, notes, err
}

// call makes one request.
func (r *Retriever) call(ctx context.Context, do func(context.Context, *s3vectors.Client, func(*s3vectors.Options)) error) error {
	session, err := r.account.Session(ctx, r.name)
	if err != nil {
		return err
	}
	x, err := session.Begin(ctx, r.name)
	if err != nil {
		return err
	}
	defer x.End()
	if err := llm.Room(ctx, assay.Usage{Calls: 1}); err != nil {
		return err
	}
	defer llm.Report(ctx, assay.Usage{Calls: 1})
	client := s3vectors.NewFromConfig(session.AWS, func(o *s3vectors.Options) {
		if r.config.BaseURL != "" {
			o.BaseEndpoint = &r.config.BaseURL
		}
	})
	if err := do(x.Context, client, func(o *s3vectors.Options) { o.HTTPClient = x }); err != nil {
		return x.Fail(err, nil)
	}
	return nil
}

// scores returns the scores of a distance.
func scores(m types.DistanceMetric, distance *float32) assay.Scores {
	if distance == nil || math.IsNaN(float64(*distance)) {
		return assay.Scores{}
	}
	if m == types.DistanceMetricCosine {
		s := max(-1, min(1, 1-float64(*distance)))
		return assay.Scores{Vector: &s}
	}
	s := -float64(*distance)
	return assay.Scores{Managed: &s}
}

// metadataOf converts metadata. It drops values of kinds that assay does not have.
func metadataOf(doc document.Interface) assay.Metadata {
	meta := assay.Metadata{}
	var raw map[string]any
	if doc == nil || doc.UnmarshalSmithyDocument(&raw) != nil {
		return meta
	}
	for key, v := range raw {
		if value, ok := valueOf(v); ok {
			meta[key] = value
		}
	}
	return meta
}

// valueOf converts a value of metadata.
func valueOf(v any) (assay.Value, bool) {
	switch v := v.(type) {
	case string:
		return assay.StringValue(v), true
	case bool:
		return assay.BooleanValue(v), true
	case float64:
		return assay.NumberValue(v), !math.IsNaN(v) && !math.IsInf(v, 0)
	case interface{ Float64() (float64, error) }: // the SDK's numbers
		n, err := v.Float64()
		return assay.NumberValue(n), err == nil && !math.IsInf(n, 0)
	case interface{ String() string }:
		return assay.Value{}, false
	case []any:
		list := make([]string, 0, len(v))
		for _, m := range v {
			s, ok := m.(string)
			if !ok {
				return assay.Value{}, false
			}
			list = append(list, s)
		}
		return assay.ListValue(list...), true
	}
	return assay.Value{}, false
}
