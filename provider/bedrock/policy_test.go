package bedrock_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
)

const (
	account = "123456789012"
	haiku   = "anthropic.claude-haiku-4-5-20251001-v1:0"
)

// everything contains every kind of resource.
var everything = bedrock.Resources{
	Account:   account,
	Models:    []string{"amazon.nova-lite-v1:0", "eu." + haiku, "amazon.titan-embed-text-v2:0", "arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/abc123"},
	Rerankers: []string{"cohere.rerank-v3-5:0"},
	KnowledgeBases: []bedrock.KnowledgeBase{
		{ID: "KB12345678", ImplicitModel: "arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-pro-v1:0", Guardrail: bedrock.Guardrail{ID: "gr0"}},
		{ID: "arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/KB87654321"},
	},
	Answers:    map[string]string{"KB12345678": "eu." + haiku},
	Agents:     []string{"arn:aws:bedrock:eu-west-1:123456789012:agent-alias/AG12345678/AL12345678", "AG2/AL2"},
	Guardrails: []string{"gr1"},
	Profiles: map[string][]string{"eu." + haiku: {
		"arn:aws:bedrock:eu-west-1::foundation-model/" + haiku, "arn:aws:bedrock:eu-central-1::foundation-model/" + haiku,
	}},
}

type policyStatement struct {
	Sid, Effect      string
	Action, Resource []string
	Condition        map[string]map[string][]string
}

// policyOf returns the statements of a policy by name, after checking the invariants of policies.
func policyOf(t *testing.T, p *bedrock.Provider, r bedrock.Resources) (map[string]policyStatement, bedrock.Policy) {
	t.Helper()
	got, err := p.IAMPolicy(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Version   string
		Statement []policyStatement
	}
	if err := json.Unmarshal(got.Document, &doc); err != nil || doc.Version != "2012-10-17" {
		t.Fatalf("%s: %v", got.Document, err)
	}
	out := map[string]policyStatement{}
	for _, s := range doc.Statement {
		if _, twice := out[s.Sid]; twice || s.Effect != "Allow" || len(s.Action) == 0 || len(s.Resource) == 0 {
			t.Errorf("statement %+v", s)
		}
		for _, text := range slices.Concat(s.Action, s.Resource) {
			if strings.ContainsAny(text, "*?") {
				t.Errorf("%s has a wildcard: %s", s.Sid, text)
			}
		}
		for _, r := range s.Resource {
			if !strings.HasPrefix(r, "arn:aws:bedrock:") {
				t.Errorf("%s names %s", s.Sid, r)
			}
		}
		out[s.Sid] = s
	}
	return out, got
}

func TestIAMPolicy(t *testing.T) {
	got, policy := policyOf(t, bedrocktest.Open(t, "http://127.0.0.1:1"), everything)
	invoke := []string{"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}
	profile := "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu." + haiku
	want := map[string]policyStatement{
		"InvokeModels": {Action: invoke, Resource: []string{
			"arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/abc123",
			"arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0", "arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-pro-v1:0",
			"arn:aws:bedrock:eu-west-1::foundation-model/amazon.titan-embed-text-v2:0", "arn:aws:bedrock:eu-west-1::foundation-model/cohere.rerank-v3-5:0",
		}},
		"InvokeProfileeuanthropicclaudehaiku4520251001v10": {Action: invoke, Resource: []string{profile}},
		"InvokeThrougheuanthropicclaudehaiku4520251001v10": {Action: invoke, Resource: []string{
			"arn:aws:bedrock:eu-central-1::foundation-model/" + haiku, "arn:aws:bedrock:eu-west-1::foundation-model/" + haiku,
		}, Condition: map[string]map[string][]string{"StringEquals": {"bedrock:InferenceProfileArn": {profile}}}},
		"ReadProfiles": {Action: []string{"bedrock:GetInferenceProfile"}, Resource: []string{profile}},
		"SearchKnowledgeBases": {Action: []string{"bedrock:Retrieve"}, Resource: []string{
			"arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/KB12345678", "arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/KB87654321",
		}},
		"InvokeAgents": {Action: []string{"bedrock:InvokeAgent"}, Resource: []string{
			"arn:aws:bedrock:eu-west-1:123456789012:agent-alias/AG12345678/AL12345678", "arn:aws:bedrock:eu-west-1:123456789012:agent-alias/AG2/AL2",
		}},
		"ApplyGuardrails": {Action: []string{"bedrock:ApplyGuardrail"}, Resource: []string{
			"arn:aws:bedrock:eu-west-1:123456789012:guardrail/gr0", "arn:aws:bedrock:eu-west-1:123456789012:guardrail/gr1",
		}},
	}
	for sid, s := range want {
		s.Sid, s.Effect = sid, "Allow"
		want[sid] = s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
	notes := strings.Join(policy.Notes, "\n")
	if len(policy.Notes) != 2 || !strings.Contains(notes, "bedrock:Rerank") || !strings.Contains(notes, "bedrock:RetrieveAndGenerate") || !strings.Contains(notes, "cannot limit this action to resources") {
		t.Errorf("notes %q", policy.Notes)
	}
}

// profiles returns a provider whose control plane knows one profile.
//
// Source: AWS, Amazon Bedrock API Reference, GetInferenceProfile, ListInferenceProfiles,
// ListFoundationModels.
func profiles(t *testing.T) *bedrock.Provider {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := r.Header.Get("Authorization"); !strings.Contains(a, "/eu-west-1/bedrock/aws4_request") || r.Header.Get("X-Amz-Security-Token") != llmtest.Canary {
			t.Errorf("%s is signed %q", r.URL, a)
		}
		global := object{"inferenceProfileArn": "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/global.amazon.nova-2-lite-v1:0", "inferenceProfileId": "global.amazon.nova-2-lite-v1:0", "status": "ACTIVE", "type": "SYSTEM_DEFINED",
			"models": []any{object{"modelArn": "arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-2-lite-v1:0"}, object{"modelArn": "arn:aws:bedrock:::foundation-model/amazon.nova-2-lite-v1:0"}}}
		switch r.URL.Path {
		case "/inference-profiles/global.amazon.nova-2-lite-v1:0":
			_, _ = w.Write(llmtest.JSON(global))
		case "/inference-profiles":
			if r.URL.Query().Get("nextToken") == "" {
				_, _ = w.Write(llmtest.JSON(object{"inferenceProfileSummaries": []any{global}, "nextToken": "n/1"}))
				return
			}
			_, _ = w.Write(llmtest.JSON(object{"inferenceProfileSummaries": []any{object{"inferenceProfileId": "eu.x.y", "status": "ACTIVE"}}}))
		case "/foundation-models":
			_, _ = w.Write(llmtest.JSON(object{"modelSummaries": []any{
				object{"modelId": "amazon.nova-lite-v1:0", "inferenceTypesSupported": []string{"ON_DEMAND"}}, object{"modelId": "amazon.nova-2-lite-v1:0", "inferenceTypesSupported": []string{"INFERENCE_PROFILE"}},
			}}))
		default:
			bedrocktest.Refuse(w, 404, "ResourceNotFoundException", "no such profile, "+llmtest.Canary)
		}
	}))
	t.Cleanup(server.Close)
	return bedrocktest.Open(t, server.URL)
}

func TestIAMPolicyAsks(t *testing.T) {
	p := profiles(t)
	got, _ := policyOf(t, p, bedrock.Resources{Models: []string{"global.amazon.nova-2-lite-v1:0"}, Account: account})
	if s := got["InvokeThroughglobalamazonnova2litev10"]; !slices.Equal(s.Resource, []string{"arn:aws:bedrock:::foundation-model/amazon.nova-2-lite-v1:0", "arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-2-lite-v1:0"}) {
		t.Errorf("%+v", got)
	}
	_, err := p.IAMPolicy(t.Context(), bedrock.Resources{Models: []string{"us.amazon.nova-2-lite-v1:0"}, Account: account})
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.NoModel || !strings.Contains(err.Error(), "GetInferenceProfile") || !strings.Contains(err.Error(), "eu-west-1") || strings.Contains(err.Error(), llmtest.Canary) {
		t.Errorf("%v", err)
	}
	models, err := p.Models(t.Context())
	if diff := cmp.Diff([]string{"amazon.nova-lite-v1:0", "eu.x.y", "global.amazon.nova-2-lite-v1:0"}, models); err != nil || diff != "" {
		t.Errorf("models (-want +got):\n%s%v", diff, err)
	}
}

func TestIAMPolicyRefused(t *testing.T) {
	p := bedrocktest.Open(t, "http://127.0.0.1:1")
	for name, r := range map[string]bedrock.Resources{
		"nothing":          {},
		"no account":       {Guardrails: []string{"gr1"}},
		"account":          {Account: "12", Guardrails: []string{"gr1"}},
		"wildcard":         {Account: account, Models: []string{"anthropic.*"}},
		"wildcard ARN":     {Account: account, Models: []string{"arn:aws:bedrock:*::foundation-model/*"}},
		"any guardrail":    {Account: account, Guardrails: []string{"*"}},
		"any base":         {Account: account, KnowledgeBases: []bedrock.KnowledgeBase{{ID: "arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/*"}}},
		"another kind":     {Account: account, Guardrails: []string{"arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/KB1"}},
		"another service":  {Account: account, Agents: []string{"arn:aws:lambda:eu-west-1:123456789012:function/f"}},
		"profile to all":   {Account: account, Models: []string{"eu." + haiku}, Profiles: map[string][]string{"eu." + haiku: {"arn:aws:bedrock:*::foundation-model/*"}}},
		"profile to bases": {Account: account, Models: []string{"eu." + haiku}, Profiles: map[string][]string{"eu." + haiku: {"arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/KB1"}}},
	} {
		if got, err := p.IAMPolicy(t.Context(), r); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %s, %v", name, got.Document, err)
		}
	}
}

// TestIAMPolicyAccount checks that the account can come from an ARN, and the partition from the
// region.
func TestIAMPolicyAccount(t *testing.T) {
	c := bedrocktest.Bare()
	c.Region = "us-gov-west-1"
	p, err := bedrock.New(c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.IAMPolicy(t.Context(), bedrock.Resources{Agents: []string{"arn:aws-us-gov:bedrock:us-gov-west-1:123456789012:agent-alias/A/B"}, Guardrails: []string{"gr1"}, Models: []string{"amazon.nova-pro-v1:0"}})
	if err != nil || !strings.Contains(string(got.Document), `"arn:aws-us-gov:bedrock:us-gov-west-1:123456789012:guardrail/gr1"`) || !strings.Contains(string(got.Document), `"arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/amazon.nova-pro-v1:0"`) {
		t.Errorf("%s, %v", got.Document, err)
	}
}
