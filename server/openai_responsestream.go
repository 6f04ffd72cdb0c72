package server

import (
	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// A responseStream sends the events of a response, which are numbered.
type responseStream struct {
	openaiStream
	next int   // sequence number
	err  error // of the first event that could not be sent
}

// A responseEvent holds the members common to all events of a response.
type responseEvent struct {
	Type     string `json:"type"`
	Sequence int    `json:"sequence_number"`
}

// emit sends an event with its name, number and other members. After an error it does nothing.
func (s *responseStream) emit(name string, members map[string]any) {
	if s.err != nil {
		return
	}
	members["type"], members["sequence_number"] = name, s.next
	s.next++
	s.err = s.event(name, members)
}

// stream sends a response: its searches as they happen, and its message when the answer is verified.
func (o *response) stream(x *exchange, skipped []string) error {
	s := &responseStream{openaiStream: x.openOpenAI()}
	defer s.out.stop()
	s.emit("response.created", map[string]any{"response": o})
	s.emit("response.in_progress", map[string]any{"response": o})
	item := fileSearch{Type: "file_search_call", ID: "fs_" + o.run, Status: "in_progress", Queries: []string{}}
	s.emit("response.output_item.added", map[string]any{"output_index": 0, "item": item})
	at := func() map[string]any { return map[string]any{"output_index": 0, "item_id": item.ID} }
	s.emit("response.file_search_call.in_progress", at())
	searching := false
	answer, err := s.follow(o.run, func(ev engine.Event) error {
		if !searching && ev.Step != nil && ev.Step.Kind == assay.StepSearch {
			searching = true
			s.emit("response.file_search_call.searching", at())
		}
		if text := progressOf(ev); text != "" && s.err == nil {
			s.err = s.comment(text)
		}
		return s.err
	})
	if err != nil {
		return o.streamFailure(s, err)
	}
	if !searching { // the answer of an earlier run
		s.emit("response.file_search_call.searching", at())
	}
	o.finish(x, answer, skipped)
	s.emit("response.file_search_call.completed", at())
	s.emit("response.output_item.done", map[string]any{"output_index": 0, "item": o.Output[0]})
	s.message(o.Output[1].(outputMessage))
	s.emit("response."+messageStatus(o.Status), map[string]any{"response": o}) // there is no event for cancelled
	return s.err
}

// message sends the item with the answer.
func (s *responseStream) message(m outputMessage) {
	at := func(members map[string]any) map[string]any {
		members["output_index"], members["content_index"], members["item_id"] = 1, 0, m.ID
		return members
	}
	part := m.Content[0]
	empty := m
	empty.Status, empty.Content = "in_progress", []outputText{}
	s.emit("response.output_item.added", map[string]any{"output_index": 1, "item": empty})
	s.emit("response.content_part.added", at(map[string]any{"part": outputText{Type: part.Type, Annotations: []any{}, LogProbs: []any{}}}))
	for _, piece := range pieces(part.Text) {
		s.emit("response.output_text.delta", at(map[string]any{"delta": piece, "logprobs": []any{}}))
	}
	for i, a := range part.Annotations {
		s.emit("response.output_text.annotation.added", at(map[string]any{"annotation_index": i, "annotation": a}))
	}
	s.emit("response.output_text.done", at(map[string]any{"text": part.Text, "logprobs": []any{}}))
	s.emit("response.content_part.done", at(map[string]any{"part": part}))
	s.emit("response.output_item.done", map[string]any{"output_index": 1, "item": m})
}

// streamFailure ends a stream with an error. The event has the members of both forms that clients read.
func (o *response) streamFailure(s *responseStream, err error) error {
	_, e := s.x.openaiErrorOf(err)
	s.emit("error", map[string]any{"message": e.Message, "code": e.Code, "param": e.Param, "error": e})
	return s.err
}
