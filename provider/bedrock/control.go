package bedrock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/assay-rag/assay/provider/internal/awswire"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// This file makes three requests to Bedrock's control plane, all without a body. The SDK is used
// only to sign them: its package for the control plane has 2.7 MB of source, most of which would be
// unused.

// Models returns the models for conversations in the region: the IDs of foundation models that can
// be called directly, and of inference profiles. Failures are *llm.Error.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	var models struct {
		Summaries []struct {
			ID         string   `json:"modelId"`
			Inferences []string `json:"inferenceTypesSupported"`
			Lifecycle  struct {
				Status string `json:"status"`
			} `json:"modelLifecycle"`
		} `json:"modelSummaries"`
	}
	if err := p.control(ctx, "/foundation-models?byOutputModality=TEXT", &models); err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range models.Summaries {
		if slices.Contains(m.Inferences, "ON_DEMAND") && m.ID != "" {
			ids = append(ids, m.ID)
		}
	}
	profiles, err := p.profiles(ctx)
	if err != nil {
		return nil, err
	}
	ids = append(ids, profiles...)
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// maxProfilePages is the largest number of pages of inference profiles that are read. A page has up
// to a thousand, and a region has hundreds.
const maxProfilePages = 5

// profiles returns the IDs of the active inference profiles.
func (p *Provider) profiles(ctx context.Context) ([]string, error) {
	var ids []string
	path := "/inference-profiles?maxResults=1000"
	for range maxProfilePages {
		var page struct {
			Summaries []profile `json:"inferenceProfileSummaries"`
			Next      string    `json:"nextToken"`
		}
		if err := p.control(ctx, path, &page); err != nil {
			return nil, err
		}
		for _, s := range page.Summaries {
			if s.ID != "" && s.Status == "ACTIVE" {
				ids = append(ids, s.ID)
			}
		}
		if page.Next == "" {
			break
		}
		path = "/inference-profiles?maxResults=1000&nextToken=" + url.QueryEscape(page.Next)
	}
	return ids, nil
}

// A profile is Bedrock's description of an inference profile.
//
// Source: AWS, Amazon Bedrock API Reference, GetInferenceProfile.
type profile struct {
	ARN    string `json:"inferenceProfileArn"`
	ID     string `json:"inferenceProfileId"`
	Status string `json:"status"`
	Models []struct {
		ARN string `json:"modelArn"`
	} `json:"models"`
}

// profile returns the description of an inference profile.
func (p *Provider) profile(ctx context.Context, idOrARN string) (profile, error) {
	var out profile
	err := p.control(ctx, "/inference-profiles/"+url.PathEscape(idOrARN), &out)
	return out, err
}

// emptyHash is the payload hash of a request without a body.
var emptyHash = func() string { h := sha256.Sum256(nil); return hex.EncodeToString(h[:]) }()

// control makes a request to the control plane.
func (p *Provider) control(ctx context.Context, path string, out any) error {
	name := p.config.Name
	s, err := p.session(ctx)
	if err != nil {
		return awswire.Unopened(ctx, name, err)
	}
	secrets, err := s.Secrets(ctx, name)
	if err != nil {
		return err
	}
	sign, err := s.signature(ctx)
	if err != nil {
		return awswire.NoCredentials(ctx, name, err)
	}
	base := cmp.Or(p.config.ControlURL, "https://bedrock."+s.Region+"."+domain(s.Region))
	c := wire.Client{
		Name: name, HTTP: s.HTTP, Secrets: secrets, Idle: p.config.Idle, First: p.config.First, MaxBytes: p.config.MaxBytes,
		Header: sign,
		Explain: func(_ int, h http.Header, body []byte) wire.Fault {
			code := awswire.ErrorCode(h, body)
			f := wire.Fault{Kind: awswire.Kinds[code], Message: wire.Message(body)}
			if code != "" {
				f.Message = code + ": " + f.Message
			}
			if k, m := explainResource(strings.TrimPrefix(path, "/"), s.Region, code, f.Message); k != "" {
				f.Kind, f.Message = k, m
			}
			return f
		},
	}
	return c.JSON(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+path, nil, out)
}

// signature returns a function that signs a request without a body.
func (s *session) signature(ctx context.Context) (func(*http.Request), error) {
	if s.Bearer != nil {
		token, err := s.Bearer.RetrieveBearerToken(ctx)
		if err != nil {
			return nil, err
		}
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token.Value) }, nil
	}
	c, err := s.AWS.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) { sign(ctx, r, c, s.Region) }, nil
}

func sign(ctx context.Context, r *http.Request, c aws.Credentials, region string) {
	// Signing fails only without a random source or a valid URL. Bedrock then rejects the unsigned
	// request.
	_ = v4.NewSigner().SignHTTP(ctx, c, r, emptyHash, "bedrock", region, time.Now())
}

// domain returns the DNS suffix of a region's endpoints.
func domain(region string) string {
	switch partitionOf(region) {
	case "aws-cn":
		return "amazonaws.com.cn"
	case "aws-eusc":
		return "amazonaws.eu"
	}
	return "amazonaws.com"
}
