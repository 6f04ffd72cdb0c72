package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/stepfn"
)

// worker reads the queue until ctx ends.
func (p *program) worker(ctx context.Context) error {
	queue := p.getenv("ASSAY_QUEUE_URL")
	if queue == "" {
		return fmt.Errorf("ASSAY_QUEUE_URL is not set: %w", assay.ErrInvalid)
	}
	http := client(queue, p.getenv("AWS_ENDPOINT_URL"), p.getenv("AWS_ENDPOINT_URL_SFN"), p.getenv("AWS_ENDPOINT_URL_SQS"))
	loaded, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(http))
	if err != nil {
		return fmt.Errorf("configuration of AWS: %w: %w", assay.ErrInvalid, err)
	}
	a, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	w := &stepfn.Worker{
		Functions: a.Functions, Queue: sqs.NewFromConfig(loaded), QueueURL: queue, Tokens: sfn.NewFromConfig(loaded),
		Log: func(err error) { fmt.Fprintln(p.log, "assay-lambda:", err) },
	}
	return w.Run(ctx)
}
