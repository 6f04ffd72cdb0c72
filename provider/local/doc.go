// Package local runs BERT-family models on the processor, in pure Go: sentence
// encoders such as gte-small, all-MiniLM-L6-v2, bge and e5, cross-encoders such as
// ms-marco-MiniLM, and readers that were trained from such an encoder.
//
// A model is a folder as Hugging Face lays it out: config.json, tokenizer.json
// (or vocab.txt and tokenizer_config.json) and model.safetensors with weights in
// F32, F16, BF16, or I8 with a scale per row. Open and OpenDir read an Encoder,
// OpenReranker and OpenRerankerDir a Reranker. A reader's folder holds reader.json and the
// weights that its encoder does not have; OpenReader and OpenReaderDir read a Reader. The files are foreign: what they
// hold is checked, and an error names the file and what is wrong with it.
//
// The package does not fetch models, and it does not run other architectures:
// RoBERTa and XLM-R, for example, are refused by name.
package local
