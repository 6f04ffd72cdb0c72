// Package kendra searches an index of Amazon Kendra for passages (Retrieve). It uses the AWS SDK. No
// type of the SDK is part of the package's API.
//
// Sources: AWS, Amazon Kendra API Reference, Retrieve, AttributeFilter, DocumentAttributeValue,
// UserContext and ScoreAttributes; Amazon Kendra Developer Guide, "Retrieving passages" and "Filtering
// on user context".
package kendra

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kendra"
	"github.com/aws/aws-sdk-go-v2/service/kendra/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/internal/awswire"
	"github.com/assay-rag/assay/provider/internal/passage"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// The limits of a search.
//
// Source: AWS, Amazon Kendra API Reference, Retrieve, PageSize.
const (
	maxPage      = 100
	defaultPages = 10
)

// An Account configures access to AWS.
type Account = awswire.Config

// A Sharing controls access to an index.
type Sharing = passage.Sharing

// A Config configures access to an index. Index and a Sharing are required; without a Sharing no
// principal can see anything.
type Config struct {
	Account
	Name       string // of the service in errors; empty: "kendra"
	BaseURL    string // empty: AWS's endpoint for the region
	Index      string // ID
	Collection string // empty: Index

	// UserContext also sends the caller's name and groups, for an index whose data sources have access
	// control lists. Token returns a token that stands for the caller instead, which Kendra verifies.
	// Both restrict a search in addition to Sharing.
	UserContext bool
	Token       func(ctx context.Context, access assay.Access) (wire.Secret, error)

	Sharing Sharing
	Filter  assay.Filter // applied to every query
	Lists   []string     // attributes that hold lists of strings, besides those of Sharing
	Pages   int          // largest number of calls for one query; 0: 10
	Keep    int          // number of retrieved documents kept for citations; 0: 4096

	Guard *resilient.Guard // retries searches that are throttled; nil: each is made once
}

// A Retriever searches an index. It implements assay.Retriever.
//
// Kendra has no numeric scores. Its class of confidence (VERY_HIGH to LOW) is Scores.Confidence, and
// the hits are in its order.
type Retriever struct {
	*passage.Retriever
	config  Config
	name    string
	account *awswire.Account
}

// New returns a retriever for an index. It does not call AWS. An invalid configuration is
// assay.ErrInvalid.
func New(c Config) (*Retriever, error) {
	name := cmp.Or(c.Name, "kendra") + "/" + c.Index
	if c.Index == "" || strings.ContainsAny(c.Index, " /?#*\n") {
		return nil, fmt.Errorf("%q is not the ID of a Kendra index: %w", c.Index, assay.ErrInvalid)
	}
	if err := c.Account.Check(name); err != nil {
		return nil, err
	}
	c.Pages = cmp.Or(c.Pages, defaultPages)
	c.Endpoints = append(c.Endpoints, c.BaseURL)
	r := &Retriever{config: c, name: name, account: c.Account.Account()}
	var err error
	r.Retriever, err = passage.New(passage.Config{
		Name: name, Source: "kendra:" + c.Index, Collection: cmp.Or(c.Collection, c.Index), Pipeline: "kendra/1",
		Sharing: c.Sharing, Filter: c.Filter, Keep: c.Keep, Guard: c.Guard, Recheck: true, Search: r.find, Check: r.check,
	})
	return r, err
}

// find makes the search of a request.
func (r *Retriever) find(ctx context.Context, in passage.Request) (passage.Found, error) {
	if in.Query.Mode != assay.ModeHybrid {
		return passage.Found{}, fmt.Errorf("%s: Kendra cannot search in mode %q: %w", r.name, in.Query.Mode, assay.ErrInvalid)
	}
	filter, err := r.compile(in.Filter)
	if err != nil {
		return passage.Found{}, fmt.Errorf("%s: %w", r.name, err)
	}
	session, err := r.account.Session(ctx, r.name)
	if err != nil {
		return passage.Found{}, err
	}
	request := &kendra.RetrieveInput{
		IndexId: &r.config.Index, QueryText: &in.Query.Text, AttributeFilter: filter, PageSize: aws.Int32(int32(min(in.Query.Limit, maxPage))),
	}
	token, err := r.userContext(ctx, in.Access, request)
	if err != nil {
		return passage.Found{}, err
	}
	client := kendra.NewFromConfig(session.AWS, func(o *kendra.Options) {
		if r.config.BaseURL != "" {
			o.BaseEndpoint = &r.config.BaseURL
		}
	})
	var out passage.Found
	for page := 1; ; page++ {
		request.PageNumber = aws.Int32(int32(page))
		got, err := r.page(ctx, session, client, request, token)
		if err != nil {
			return passage.Found{}, err
		}
		for _, item := range got.ResultItems {
			out.Passages = append(out.Passages, passageOf(item))
		}
		switch { // Kendra does not say whether there is another page
		case len(got.ResultItems) < int(*request.PageSize) || len(out.Passages) >= in.Query.Limit:
			return out, nil
		case page == r.config.Pages:
			out.Notes = append(out.Notes, fmt.Sprintf("%s: stopped after %d pages; there may be more results", r.name, page))
			return out, nil
		}
	}
}

// userContext adds the caller to a request, and returns the token that stands for it, if any.
func (r *Retriever) userContext(ctx context.Context, access assay.Access, request *kendra.RetrieveInput) (wire.Secret, error) {
	if r.config.Token != nil {
		token, err := r.config.Token(ctx, access)
		if err == nil && token.Empty() {
			err = fmt.Errorf("the token is empty: %w", assay.ErrUnavailable)
		}
		if err != nil {
			return token, fmt.Errorf("%s: get the caller's token: %w", r.name, err)
		}
		request.UserContext = &types.UserContext{Token: aws.String(token.Reveal())}
		return token, nil
	}
	if !r.config.UserContext {
		return wire.Secret{}, nil
	}
	who := &types.UserContext{}
	for _, entry := range access.Names() {
		switch kind, name, _ := strings.Cut(entry, ":"); kind {
		case "user":
			who.UserId = &name
		case "group":
			who.Groups = append(who.Groups, name)
		}
	}
	request.UserContext = who
	return wire.Secret{}, nil
}

// page makes one request. token is removed from its errors.
func (r *Retriever) page(ctx context.Context, session *awswire.Session, client *kendra.Client, in *kendra.RetrieveInput, token wire.Secret) (*kendra.RetrieveOutput, error) {
	x, err := session.Begin(ctx, r.name)
	if err != nil {
		return nil, err
	}
	defer x.End()
	if !token.Empty() {
		x.Errors.Secrets = append(x.Errors.Secrets, token)
	}
	if err := llm.Room(ctx, assay.Usage{Calls: 1}); err != nil {
		return nil, err
	}
	defer llm.Report(ctx, assay.Usage{Calls: 1})
	out, err := client.Retrieve(x.Context, in, func(o *kendra.Options) { o.HTTPClient = x })
	if err != nil {
		return nil, x.Fail(err, nil)
	}
	return out, nil
}

// passageOf converts a result.
func passageOf(item types.RetrieveResultItem) passage.Passage {
	p := passage.Passage{
		ID: aws.ToString(item.DocumentId), Text: aws.ToString(item.Content), URI: aws.ToString(item.DocumentURI),
		Title: aws.ToString(item.DocumentTitle), Metadata: assay.Metadata{},
	}
	if item.ScoreAttributes != nil {
		p.Scores.Confidence = string(item.ScoreAttributes.ScoreConfidence)
	}
	for _, a := range item.DocumentAttributes {
		if v, ok := valueOf(a.Value); ok && aws.ToString(a.Key) != "" {
			p.Metadata[*a.Key] = v
		}
	}
	p.URI = cmp.Or(p.URI, p.Metadata["_source_uri"].String)
	if n := p.Metadata["_excerpt_page_number"].Number; n >= 1 && n < 1<<31 {
		p.Page = int(n)
	}
	return p
}

// valueOf converts the value of an attribute.
func valueOf(v *types.DocumentAttributeValue) (assay.Value, bool) {
	switch {
	case v == nil:
	case v.StringValue != nil:
		return assay.StringValue(*v.StringValue), true
	case v.StringListValue != nil:
		return assay.ListValue(v.StringListValue...), true
	case v.LongValue != nil:
		return assay.NumberValue(float64(*v.LongValue)), true
	case v.DateValue != nil && assay.ValidTime(*v.DateValue):
		return assay.TimeValue(*v.DateValue), true
	}
	return assay.Value{}, false
}
