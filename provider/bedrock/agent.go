package bedrock

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
)

// An Agent names an agent of Bedrock's, by the ARN of its alias or by the IDs of both.
//
// An agent acts with rights of its own, and may tell whoever asks it whatever it can
// see. So it is asked only for those whom OpenTo names; nobody by default. Knowledge
// bases that are attached to it are narrowed to what the asker may see where they are
// named in KnowledgeBases; an asker who may see nothing of one of these may not ask
// the agent.
type Agent struct {
	AliasARN  string // arn:aws:bedrock:REGION:ACCOUNT:agent-alias/AGENT/ALIAS; or ID and Alias
	ID, Alias string

	OpenTo         []string     // entries of an ACL: "*", "user:NAME", "group:NAME"
	KnowledgeBases []*Retriever // attached to the agent
	Collection     string       // what assay calls what it cites; empty: the agent's ID
}

// An AgentClient asks an agent.
type AgentClient struct {
	provider  *Provider
	id, alias string
	open      assay.ACL
	bases     []*Retriever
	other     *Retriever // makes documents of what comes from no base that is named
	name      string
}

// Agent returns a client for an agent. A config that cannot be is ErrInvalid.
func (p *Provider) Agent(a Agent) (*AgentClient, error) {
	if a.AliasARN != "" {
		id, err := idOf(a.AliasARN, "agent-alias")
		if err != nil {
			return nil, err
		}
		a.ID, a.Alias, _ = strings.Cut(id, "/")
	}
	for _, id := range []string{a.ID, a.Alias} {
		if _, err := idOf(id, "agent"); err != nil {
			return nil, fmt.Errorf("agent %q with alias %q: %w", a.ID, a.Alias, err)
		}
	}
	open, err := assay.RestrictTo(a.OpenTo...)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", a.ID, err)
	}
	// What the agent cites of elsewhere is seen by those who may ask it.
	other, err := p.KnowledgeBase(KnowledgeBase{ID: a.ID, Collection: a.Collection, Sharing: Sharing{OpenTo: a.OpenTo}})
	if err != nil {
		return nil, err
	}
	c := &AgentClient{provider: p, id: a.ID, alias: a.Alias, open: open, bases: a.KnowledgeBases, other: other, name: p.config.Name + "/agent/" + a.ID + "/" + a.Alias}
	other.name = c.name
	return c, nil
}

// Model names the agent as errors and budgets do: "bedrock/agent/ABCDEFGHIJ/KLMNOPQRST".
func (c *AgentClient) Model() string { return c.name }

// sessionID is what Bedrock takes as the ID of a session.
//
// Source: AWS, Amazon Bedrock API Reference, InvokeAgent, sessionId.
var sessionID = lazyregexp.New(`^[0-9a-zA-Z._:-]{2,100}$`)

// Answer asks the agent, in one call (InvokeAgent). q.Session is required: whoever
// calls makes it up. q.Limit has no meaning. text, where it is not nil, is told the
// text as it arrives.
//
// An agent that wants its caller to act for it (return of control) is refused: the
// error says so. Files that it makes are left out with a note. Otherwise Answer is as
// that of a Retriever.
func (c *AgentClient) Answer(ctx context.Context, access assay.Access, q Question, text func(string)) (Answer, error) {
	switch {
	case strings.TrimSpace(q.Text) == "":
		return Answer{}, fmt.Errorf("ask %s: an empty question: %w", c.name, assay.ErrInvalid)
	case !sessionID.MatchString(q.Session):
		return Answer{}, fmt.Errorf("ask %s: session %q: want 2 to 100 letters, digits, \".\", \"_\", \":\" or \"-\": %w", c.name, q.Session, assay.ErrInvalid)
	case !access.Allows(c.open):
		return Answer{}, fmt.Errorf("ask %s: it is not open to whoever asks: %w", c.name, assay.ErrNotFound)
	}
	state, notes, err := c.state(access, q)
	if err != nil {
		return Answer{}, err
	}
	x, err := c.provider.exchange(ctx, c.name)
	if err != nil {
		return Answer{}, err
	}
	defer x.end()
	r := &managed{x: x, text: text, source: c.source(access), answer: Answer{Notes: notes, Session: q.Session, Usage: assay.Usage{Calls: 1}}}
	if err := c.ask(x, r, state, q); err != nil {
		return Answer{}, err
	}
	return r.finish()
}

// state returns the session's state, in which the knowledge bases are narrowed.
func (c *AgentClient) state(access assay.Access, q Question) (*types.SessionState, []string, error) {
	if len(c.bases) == 0 {
		if !q.Filter.IsZero() {
			return nil, nil, fmt.Errorf("ask %s: a filter needs the knowledge bases that it is for, and none is named: %w", c.name, assay.ErrInvalid)
		}
		return nil, nil, nil
	}
	state, notes := new(types.SessionState), []string(nil)
	for _, k := range c.bases {
		limits, ok := k.config.Sharing.filter(access)
		if !ok {
			return nil, nil, fmt.Errorf("ask %s: %s: %w", c.name, hidden(k.name), assay.ErrNotFound)
		}
		vector, more, err := k.vector(assay.And(q.Filter, limits), maxResults, k.config.Search)
		if err != nil {
			return nil, nil, err
		}
		vector.NumberOfResults = nil
		notes = append(notes, more...)
		state.KnowledgeBaseConfigurations = append(state.KnowledgeBaseConfigurations, types.KnowledgeBaseConfiguration{
			KnowledgeBaseId:        &k.id,
			RetrievalConfiguration: &types.KnowledgeBaseRetrievalConfiguration{VectorSearchConfiguration: vector},
		})
	}
	return state, notes, nil
}

// source returns what makes hits of references. Which knowledge base one is from,
// Bedrock does not say: where some are named, it has to be one that one of them shows
// to whoever asks.
func (c *AgentClient) source(access assay.Access) func(types.RetrievedReference) (assay.Hit, bool) {
	if len(c.bases) == 0 {
		return c.other.source(access)
	}
	return func(ref types.RetrievedReference) (assay.Hit, bool) {
		for _, k := range c.bases {
			if h, ok := k.source(access)(ref); ok {
				return h, true
			}
		}
		return assay.Hit{}, false
	}
}

func (c *AgentClient) ask(x *exchange, r *managed, state *types.SessionState, q Question) error {
	out, err := x.session.agent.InvokeAgent(x.ctx, &bedrockagentruntime.InvokeAgentInput{
		AgentId: &c.id, AgentAliasId: &c.alias, SessionId: &q.Session, InputText: &q.Text, SessionState: state,
	}, func(o *bedrockagentruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return x.fail(err, c.explain)
	}
	events := out.GetStream()
	defer closeStream(events, events.Reader)
	for event := range events.Events() {
		switch e := event.(type) {
		case *types.ResponseStreamMemberChunk:
			c.chunk(r, e.Value)
		case *types.ResponseStreamMemberFiles:
			for _, f := range e.Value.Files {
				r.note(fmt.Sprintf("the agent made a file, %q, which is left out", x.errors.Scrub(aws.ToString(f.Name))))
			}
		case *types.ResponseStreamMemberReturnControl:
			return x.errors.Fail(llm.BadRequest, "the agent wants an action done by its caller (return of control): assay does none; configure the agent to answer by itself")
		}
	}
	return r.ended(events.Err(), c.explain)
}

// chunk reads a part of the answer.
func (c *AgentClient) chunk(r *managed, part types.PayloadPart) {
	r.write(string(part.Bytes))
	if part.Attribution != nil {
		r.citations = append(r.citations, part.Attribution.Citations...)
	}
}

func (c *AgentClient) explain(code, message string) (llm.ErrorKind, string) {
	return explainResource("agent "+c.id+" with the alias "+c.alias, c.provider.knownRegion(), code, message)
}

// ACL and Version tell of what the agent has cited that is of no knowledge base named,
// as those of a Retriever do.
func (c *AgentClient) ACL(ctx context.Context, id string) (assay.ACL, error) {
	return c.other.ACL(ctx, id)
}

// Version is described with ACL.
func (c *AgentClient) Version(ctx context.Context, id, version string) (assay.Document, error) {
	return c.other.Version(ctx, id, version)
}
