package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/stepfn"
)

// lambda answers the calls of the Lambda Runtime API until the process ends. If the data cannot be opened,
// the API is told before the error is returned.
func (p *program) lambda(ctx context.Context) error {
	a, err := p.open(ctx)
	if err != nil {
		return errors.Join(err, p.reportInit(ctx, err))
	}
	defer a.Close()
	lambda.StartWithOptions(a.invoke, lambda.WithContext(ctx))
	return nil
}

// invoke calls a function. Its errors have the names of the state machine.
func (a *agent) invoke(ctx context.Context, event json.RawMessage) (json.RawMessage, error) {
	result, err := a.Handle(ctx, event)
	if err != nil {
		f := stepfn.FailureOf(err)
		return nil, messages.InvokeResponse_Error{Type: f.Name, Message: f.Cause}
	}
	return result, nil
}

// reportInit tells the Runtime API why the function cannot start.
func (p *program) reportInit(ctx context.Context, why error) error {
	f := stepfn.FailureOf(why)
	body, err := json.Marshal(map[string]any{"errorType": f.Name, "errorMessage": f.Cause, "stackTrace": []string{}})
	if err != nil {
		return err
	}
	url := "http://" + p.getenv(runtimeVariable) + "/2018-06-01/runtime/init/error"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Lambda-Runtime-Function-Error-Type", f.Name)
	resp, err := client(url).Do(req)
	if err != nil {
		return fmt.Errorf("report the error of the start: %w", err)
	}
	return resp.Body.Close()
}

// client returns an HTTP client that reaches AWS and the hosts of some addresses.
func client(addresses ...string) *awshttp.BuildableClient {
	hosts := egress.AWSHosts()
	for _, a := range addresses {
		if r, ok := egress.HostOf(a); ok {
			hosts = append(hosts, r)
		}
	}
	var guard *egress.Guard // the default rules
	scope := guard.Scope(egress.Scope{Purpose: egress.Provider, Hosts: hosts, Fixed: egress.AWSFixed(), Private: true, Proxy: true})
	return awshttp.NewBuildableClient().WithTransportOptions(scope.Apply)
}
