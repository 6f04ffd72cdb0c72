// Package local runs BERT-family models on the CPU, in pure Go: sentence encoders such as
// gte-small, all-MiniLM-L6-v2, bge and e5, cross-encoders such as ms-marco-MiniLM, and readers
// trained from such an encoder.
//
// A model is a folder in the layout of Hugging Face: config.json, tokenizer.json (or vocab.txt and
// tokenizer_config.json) and model.safetensors with weights in F32, F16, BF16, or I8 with a scale
// per row. Open and OpenDir read an Encoder, OpenReranker and OpenRerankerDir a Reranker. A
// reader's folder holds reader.json and the weights that its encoder does not have; OpenReader and
// OpenReaderDir read a Reader. The files are untrusted: their contents are validated, and an error
// names the file and the problem.
//
// The package does not download models, and it does not run other architectures: RoBERTa and XLM-R,
// for example, are rejected by name.
package local
