// Package bedrocktest implements the server side of Amazon Bedrock's formats, for tests. It is
// written from Bedrock's documentation, not from what the SDK or package bedrock happen to read,
// and imports neither's types of requests and replies.
//
// Sources: AWS, Amazon Bedrock API Reference (Converse, ConverseStream, and the errors of each),
// "Using the Converse API" in the Amazon Bedrock User Guide, and "Event stream encoding" of Amazon
// Transcribe's Developer Guide for the framing.
package bedrocktest
