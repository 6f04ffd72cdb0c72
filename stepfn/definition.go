package stepfn

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// A Target is the way in which a state machine calls the functions.
type Target string

// The targets.
const (
	Lambda Target = "lambda" // an AWS Lambda function, ${Function}
	SQS    Target = "sqs"    // messages with a task token to the queue ${QueueUrl}
)

// Limits of the state machine, in seconds.
const (
	executionTimeout = 1800
	taskTimeout      = 300
	heartbeatTimeout = 60
)

// Definition returns the state machine in the Amazon States Language. Its parameters, in the form of
// DefinitionSubstitutions, are those of the target.
func Definition(t Target) ([]byte, error) {
	next := map[strategy.Node]string{
		strategy.PlannerNode: "Retriever", strategy.RetrieverNode: "Analyst", strategy.AnalystNode: "Reflector", strategy.ReflectorNode: "Router",
	}
	var states ordered
	for _, node := range nodes {
		if node == strategy.FinaliserNode {
			states = append(states, field{"Router", router()})
		}
		states = append(states, field{stateName(node), task(t, node, next[node])})
	}
	states = append(states, field{"Failed", ordered{
		{"Type", "Fail"}, {"Comment", "The run stays in the store as it is and can be resumed there."},
		{"ErrorPath", "$.error.Error"}, {"CausePath", "$.error.Cause"},
	}})
	machine := ordered{
		{"Comment", "assay's strategy reflect: planner, retriever, analyst, reflector, router, finaliser. Written by go test ./stepfn -update."},
		{"StartAt", "Planner"}, {"TimeoutSeconds", executionTimeout}, {"States", states},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(machine); err != nil {
		return nil, fmt.Errorf("definition of the state machine: %w: %w", assay.ErrInvalid, err)
	}
	return out.Bytes(), nil
}

// stateName returns the name of a node's state.
func stateName(node strategy.Node) string {
	return string(bytes.ToUpper([]byte(node[:1]))) + string(node[1:])
}

// task returns the state of a node. An empty next ends the machine.
func task(t Target, node strategy.Node, next string) ordered {
	call := ordered{{"node", node}, {"execution.$", "$$.Execution.Name"}, {"state.$", "$"}}
	s := ordered{{"Type", "Task"}}
	if t == SQS {
		call = append(call, field{"token.$", "$$.Task.Token"})
		s = append(s, field{"Resource", "arn:aws:states:::sqs:sendMessage.waitForTaskToken"},
			field{"Parameters", ordered{{"QueueUrl", "${QueueUrl}"}, {"MessageBody", call}}},
			field{"TimeoutSeconds", taskTimeout}, field{"HeartbeatSeconds", heartbeatTimeout})
	} else {
		s = append(s, field{"Resource", "arn:aws:states:::lambda:invoke"},
			field{"Parameters", ordered{{"FunctionName", "${Function}"}, {"Payload", call}}},
			field{"OutputPath", "$.Payload"}, field{"TimeoutSeconds", taskTimeout})
	}
	s = append(s,
		field{"Retry", []ordered{
			{{"ErrorEquals", finalNames()}, {"MaxAttempts", 0}},
			{{"ErrorEquals", []string{"States.ALL"}}, {"IntervalSeconds", 2}, {"MaxAttempts", 6}, {"BackoffRate", 2}, {"MaxDelaySeconds", 60}, {"JitterStrategy", "FULL"}},
		}},
		field{"Catch", []ordered{{{"ErrorEquals", []string{"States.ALL"}}, {"ResultPath", "$.error"}, {"Next", "Failed"}}}})
	if next == "" {
		return append(s, field{"End", true})
	}
	return append(s, field{"Next", next})
}

// router returns the Choice state, whose rules are those of strategy.Route. Its default is for rounds that
// ended without a verdict.
func router() ordered {
	verdict := func(v Verdict) ordered { return ordered{{"Variable", "$.verdict"}, {"StringEquals", v}} }
	routes := func(op string) ordered { return ordered{{"Variable", "$.route_count"}, {op, strategy.MaxRoutes}} }
	return ordered{
		{"Type", "Choice"},
		{"Choices", []ordered{
			{{"Or", []ordered{verdict(Completed), routes("NumericGreaterThanEquals")}}, {"Next", stateName(strategy.FinaliserNode)}},
			{{"And", []ordered{verdict(Incomplete), routes("NumericLessThan")}}, {"Next", stateName(strategy.PlannerNode)}},
		}},
		{"Default", stateName(strategy.FinaliserNode)},
	}
}

// ordered is a JSON object whose fields keep their order.
type ordered []field

type field struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o ordered) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:", f.name)
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
