package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
)

// embeddingModel is the name by which the tenant's encoder is always reached.
const embeddingModel = "assay-embedding"

// An embedRequest is the body of POST /v1/embeddings.
type embedRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	EncodingFormat string          `json:"encoding_format,omitempty"`
	Dimensions     int             `json:"dimensions,omitempty"`
	InputType      string          `json:"input_type,omitempty"`
}

// decodeBody implements bodyDecoder. See decodeParameters.
func (r *embedRequest) decodeBody(data []byte) error {
	type plain embedRequest
	_, err := decodeParameters(data, embedParameters, (*plain)(r))
	return err
}

type embedIn struct {
	Body embedRequest `body:"application/json"`
}

// An embeddingList is the response with vectors.
type embeddingList struct {
	Object string         `json:"object"`
	Data   []embedding    `json:"data"`
	Model  string         `json:"model"`
	Usage  embeddingUsage `json:"usage"`
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // numbers, or a string in base64
}

// An embeddingUsage counts the tokens that the encoder read; 0: it does not count them.
type embeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// embedTexts makes the vectors of texts.
func embedTexts(ctx context.Context, s *engine.Session, in embedIn) (embeddingList, error) {
	r := in.Body
	texts, err := r.texts()
	if err != nil {
		return embeddingList{}, err
	}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			return embeddingList{}, invalidParameter("input", "text %d of input is empty", i)
		}
	}
	packed := r.EncodingFormat == "base64"
	if !packed && r.EncodingFormat != "" && r.EncodingFormat != "float" {
		return embeddingList{}, invalidParameter("encoding_format", "encoding_format is %.20q, want float or base64", r.EncodingFormat)
	}
	req := engine.EmbedRequest{Texts: texts}
	switch r.InputType {
	case "query":
		req.Purpose = llm.Query
	case "", "passage":
	default:
		return embeddingList{}, invalidParameter("input_type", "input_type is %.20q, want passage or query", r.InputType)
	}
	switch r.Model {
	case "":
		return embeddingList{}, invalidParameter("model", "there is no model; %s is the tenant's encoder", embeddingModel)
	case embeddingModel:
	default:
		req.Model = r.Model
	}
	made, err := s.EmbedTexts(ctx, req)
	if errors.Is(err, assay.ErrNotFound) && req.Model != "" {
		err = &parameterError{
			param: "model", code: "model_not_found", kind: assay.ErrNotFound,
			text: fmt.Sprintf("The model %q is not the tenant's encoder, which is %s.", r.Model, embeddingModel),
		}
	}
	if err != nil {
		return embeddingList{}, err
	}
	if n := len(made.Vectors[0]); r.Dimensions != 0 && r.Dimensions != n {
		return embeddingList{}, invalidParameter("dimensions", "%s makes vectors of %d dimensions, and no others", made.Model, n)
	}
	list := embeddingList{Object: "list", Model: made.Model, Usage: embeddingUsage{made.Tokens, made.Tokens}}
	for i, v := range made.Vectors {
		e := embedding{Object: "embedding", Index: i, Embedding: v}
		if packed {
			e.Embedding = base64Floats(v)
		}
		list.Data = append(list.Data, e)
	}
	return list, nil
}

// texts returns the texts of the input.
func (r embedRequest) texts() ([]string, error) {
	if len(r.Input) == 0 {
		return nil, invalidParameter("input", "there is no input")
	}
	var text string
	if json.Unmarshal(r.Input, &text) == nil && typeOf(r.Input) == "string" {
		return []string{text}, nil
	}
	var texts []string
	if json.Unmarshal(r.Input, &texts) == nil && len(texts) > 0 {
		if len(texts) > engine.MaxEmbedTexts {
			return nil, invalidParameter("input", "input has %d texts, at most %d are taken", len(texts), engine.MaxEmbedTexts)
		}
		return texts, nil
	}
	var tokens []int
	var lists [][]int
	if json.Unmarshal(r.Input, &tokens) == nil && len(tokens) > 0 || json.Unmarshal(r.Input, &lists) == nil && len(lists) > 0 {
		return nil, invalidParameter("input", "input has token numbers of another model. Send texts; with LangChain for Python set check_embedding_ctx_length=False.")
	}
	return nil, invalidParameter("input", "input must be a text or a list of texts")
}

// base64Floats returns a vector as base64 of its little-endian float32 numbers.
func base64Floats(v llm.Vector) string {
	data := make([]byte, 0, 4*len(v))
	for _, f := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(data)
}
